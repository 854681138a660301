"""What users know of their traffic: which share of the packets takes which way, from a YAML file.

    tables:
      ipv4_lpm: {hit: 0.95, actions: {set_nhop: 0.9, drop: 0.1}, entries: 1000}
    parser:
      start: {0x800: 0.8}
    conditions:
      node_3: {true: 0.25}

``hit`` is the share of packets that find an entry, ``actions`` what these then run; ``entries`` is how many there are.
What is not named shares equally what is left. Names may leave out leading parts (``ipv4_lpm`` for
``MyIngress.ipv4_lpm``) as long as they are unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.models.program.graph import ProgramGraph


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of packets, as :func:`p4perf.models.program.paths.weigh` takes them, and entries of tables.

    Args:
        edges: name of a node, label of an edge, share of the packets at that node.
        entries: name of the node of a table, number of its entries.
    """

    edges: Mapping[str, Mapping[str, float]]
    entries: Mapping[str, int] = field(default_factory=dict)

    def apply(self, graph: ProgramGraph) -> ProgramGraph:
        """The graph with these shares and entries.

        Raises:
            UsageError: they do not belong to this graph.
        """
        raise NotImplementedError


def read_shares(path: Path, graph: ProgramGraph) -> Shares:
    """Read a file of shares for a program.

    Raises:
        DataError: the file cannot be read, is no such file, names something that the program does not have (the message
            names the nearest that it has), or has shares below 0 or beyond a sum of 1; with the line.
    """
    raise NotImplementedError
