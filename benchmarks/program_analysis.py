"""How long it takes to read and analyse a program for bmv2, against parsing its JSON alone.

Programs of 25 to 200 tables, each with two actions, are written as p4c-bm2-ss writes them. Measured is the CPU time of
reading the file into a graph, and of everything that is said of its ways (2**200 and more of them): counts, visits,
mean and deviation, the best and worst way, the five most expensive and most probable ones. The ratio to ``json.loads``
of the same text says how much of it is ours whatever the machine.

    python benchmarks/program_analysis.py
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.bmv2_json import chain_of_tables

from p4perf.evaluation.prediction.reading import read_program
from p4perf.models.program.graph import Edge, Node
from p4perf.models.program.paths import analyse

TABLES = (25, 50, 100, 200)
REPETITIONS = 7
LIMIT_S = 2.0
"""What reading and analysing two hundred tables may take."""


def cpu_s(work: Callable[[], Any]) -> float:
    """Median CPU time of a piece of work, in seconds."""
    taken = []
    for _ in range(REPETITIONS):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def cost(node: Node, edge: Edge | None) -> float:
    """A cost that differs from way to way."""
    return len(node.constructs) + (0.5 if edge is not None and edge.label == "hit" else 0.0)


def main() -> int:
    """Print the table; 1 if the limit does not hold."""
    print("tables  nodes  ways       json.loads  read      analyse   both      ratio")
    both = 0.0
    for tables in TABLES:
        text = json.dumps(chain_of_tables(tables), indent=2)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.json"
            path.write_text(text)
            plain = cpu_s(lambda text=text: json.loads(text))
            read = cpu_s(lambda path=path: read_program(path))
            graph = read_program(path)
        found = analyse(graph, cost)
        analysed = cpu_s(lambda graph=graph: analyse(graph, cost))
        both = read + analysed
        times = "".join(f"{seconds * 1e3:8.1f} ms" for seconds in (plain, read, analysed, both))
        ways = f"2**{found.paths.bit_length() - 1}"
        print(f"{tables:6d} {len(graph.nodes):6d}  {ways:8s} {times}  {both / plain:5.1f}")
    kept = both <= LIMIT_S
    print(f"{TABLES[-1]} tables in {both:.2f} s of CPU: {'within' if kept else 'beyond'} the limit of {LIMIT_S:g} s")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
