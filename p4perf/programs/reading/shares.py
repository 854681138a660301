"""What users know of their traffic: traffic shares and branch probabilities, from a YAML file.

    tables:
      ipv4_lpm: {hit: 0.95, actions: {set_nhop: 0.9, drop: 0.1}, entries: 1000}
    parser:
      start: {0x800: 0.8}
    conditions:
      node_3: 0.25

``hit`` is the share of the packets at a table that find an entry, ``actions`` is what these then run (of a table
without a key: what all run), ``entries`` how many there are. The share of a condition is that of the packets for
which it holds. What is not named shares equally what is left. Names may leave out leading parts (``ipv4_lpm`` for
``MyIngress.ipv4_lpm``) as long as they are unique; a condition may be named by its text in P4, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from p4perf.errors import DataError, Location, SpecError, UsageError
from p4perf.models.program.graph import Construct, Node, ProgramGraph
from p4perf.models.program.paths import TOLERANCE, weigh
from p4perf.programs.reading.flow import FULL, base_name
from p4perf.programs.reading.tree import match_name, without_index
from p4perf.specs.source import SourceNode as Value
from p4perf.specs.source import parse_bytes, read_bytes

SECTIONS = ("tables", "parser", "conditions")

TABLE_KEYS = ("hit", "actions", "entries")


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of packets by node and label of its edges (:func:`~p4perf.models.program.paths.weigh`), and entries."""

    edges: Mapping[str, Mapping[str, float]]
    entries: Mapping[str, int] = field(default_factory=dict)

    def apply(self, graph: ProgramGraph) -> ProgramGraph:
        nodes = dict(graph.nodes)
        for name, count in self.entries.items():
            if name not in nodes:
                raise UsageError(f"{graph.name} has no table {name!r}")
            nodes[name] = replace(nodes[name], constructs=_with_entries(nodes[name].constructs, count))
        remarks = graph.remarks
        looked_up = (n for n in nodes.values() if n.kind == "table" and any(c.kind == "lookup" for c in n.constructs))
        if all(n.name in self.entries for n in looked_up):
            remarks = tuple(remark for remark in remarks if remark != FULL)
        return weigh(replace(graph, nodes=nodes, remarks=remarks), self.edges)


def _with_entries(constructs: tuple[Construct, ...], count: int) -> tuple[Construct, ...]:
    first = next((n for n, c in enumerate(constructs) if c.kind == "lookup"), None)
    return tuple(
        replace(c, sizes=tuple((name, count if name == "entries" else v) for name, v in c.sizes)) if n == first else c
        for n, c in enumerate(constructs)
    )


def read_shares(path: Path | str, graph: ProgramGraph) -> Shares:
    try:
        data = read_bytes(Path(path))
    except SpecError as error:
        raise DataError(error.message, location=error.location, key=error.key, hint=error.hint) from error
    return parse_shares(data, str(path), graph)


def parse_shares(data: bytes, source: str, graph: ProgramGraph) -> Shares:
    """The same of a text; ``source`` is what messages call it."""
    try:
        root = parse_bytes(data, source, truth_keys=True)
    except SpecError as error:
        raise DataError(error.message, location=error.location, key=error.key, hint=error.hint) from error
    return _Reader(graph).read(root)


class _Reader:
    def __init__(self, graph: ProgramGraph) -> None:
        self._graph = graph
        self._edges: dict[str, dict[str, float]] = {}
        self._entries: dict[str, int] = {}

    def read(self, root: Value) -> Shares:
        for section, content in _items(root, "the file"):
            name = match_name(section, SECTIONS, "section", content.key_place)
            for key, value in _items(content, name):
                if name == "tables":
                    self._table(key, value)
                elif name == "parser":
                    self._state(key, value)
                else:
                    self._condition(key, value)
        return Shares(self._edges, self._entries)

    def _nodes(self, wanted: str, nodes: Iterable[tuple[str, Node]], noun: str, where: Location | None) -> list[Node]:
        named: dict[str, list[Node]] = {}
        for name, node in nodes:
            named.setdefault(name, []).append(node)
        return named[match_name(wanted, named, noun, where)]

    def _of_kind(self, *kinds: str) -> list[Node]:
        return [node for node in self._graph.nodes.values() if node.kind in kinds]

    def _table(self, key: str, value: Value) -> None:
        found = self._nodes(key, ((base_name(n.name), n) for n in self._of_kind("table")), "table", value.key_place)
        for name, content in _items(value, f"table {key}"):
            what = match_name(name, TABLE_KEYS, "key", content.key_place)
            if what == "hit":
                share = _share(content)
                self._give(found, {"hit": share, "miss": 1 - share}, content, exact=True)
            elif what == "entries":
                if type(content.content) is not int or content.content < 0:
                    raise DataError("is not a number of entries", location=content.place, key=f"tables.{key}.entries")
                self._entries |= {node.name: content.content for node in found}
            else:
                self._actions(key, found, content)

    def _actions(self, key: str, tables: list[Node], content: Value) -> None:
        names = {base_name(table.name) for table in tables}
        chosen = [n for n in self._graph.nodes.values() if base_name(n.name) in {f"{name} hit" for name in names}]
        if not chosen and not any(e.label in ("hit", "miss") for table in tables for e in table.edges):
            chosen = tables  # without a key
        given = {name: _share(value) for name, value in _items(content, f"actions of {key}")}
        if chosen:
            places = {name: value.key_place for name, value in _items(content, "")}
            labels = [e.label for node in chosen for e in node.edges]
            named = {match_name(n, labels, f"action of {key},", places[n]): share for n, share in given.items()}
            self._give(chosen, named, content)
            return
        _check_sum(given, content)
        raise DataError(
            f"entries of {key} have one action only, so that it has all of them",
            location=content.key_place,
            hint="leave out actions",
        )

    def _state(self, key: str, value: Value) -> None:
        states = ((without_index(base_name(n.name)), n) for n in self._of_kind("parser state"))
        found = self._nodes(key, states, "parser state", value.key_place)
        labels = list(dict.fromkeys(e.label for node in found for e in node.edges if e.label))
        given = {}
        for name, content in _items(value, f"state {key}"):
            label = next((found for found in labels if _numbers(found) == _numbers(name)), None)
            if label is None:
                label = match_name(name, labels, f"case of {key},", content.key_place)
            given[label] = _share(content)
        self._give(found, given, value)

    def _condition(self, key: str, value: Value) -> None:
        nodes = [(base_name(n.name), n) for n in self._of_kind("condition")]
        text = f"condition {' '.join(key.split())}"  # with or without file and line behind it
        by_text = [node for _, node in nodes if text in (node.where, node.where.rpartition(", ")[0])]
        found = by_text or self._nodes(key, nodes, "condition", value.key_place)
        if isinstance(value.content, Mapping):
            given = {}
            for name, content in _items(value, key):
                given[match_name(name, ("true", "false"), "outcome", content.key_place)] = _share(content)
        else:
            share = _share(value)
            given = {"true": share, "false": 1 - share}
        self._give(found, given, value)

    def _give(self, nodes: list[Node], given: dict[str, float], value: Value, *, exact: bool = False) -> None:
        _check_sum(given, value)
        every = {e.label for node in nodes for e in node.edges}
        if exact and not set(given) <= every:
            raise DataError("has no key, so that nothing is found in it", location=value.key_place)
        if set(given) >= every and abs(sum(given.values()) - 1) > TOLERANCE:
            raise DataError(
                f"shares add up to {sum(given.values()):g}, not to 1", location=value.key_place or value.place
            )
        for node in nodes:
            labels = {e.label for e in node.edges}
            here = {label: share for label, share in given.items() if label in labels}
            if len(labels) > 1 and here:
                self._edges[node.name] = here


def _items(value: Value, what: str) -> list[tuple[str, Value]]:
    if not isinstance(value.content, Mapping):
        raise DataError(f"{what} is no mapping of names", location=value.place)
    return list(value.content.items())


def _share(value: Value) -> float:
    if isinstance(value.content, bool) or not isinstance(value.content, int | float) or not 0 <= value.content <= 1:
        raise DataError("a share is a number from 0 to 1", location=value.place)
    return float(value.content)


def _check_sum(given: Mapping[str, float], value: Value) -> None:
    total = sum(given.values())
    if total > 1 + TOLERANCE:
        raise DataError(f"shares add up to {total:g}, to more than 1", location=value.key_place or value.place)


def _numbers(case: str) -> list[list[int | str]]:
    """The values of a case, each with its mask if it has one; words that are no numbers as they are."""
    return [[_number(word.strip()) for word in part.split("&&&")] for part in case.split(",")]


def _number(word: str) -> int | str:
    try:
        return int(word, 0)
    except ValueError:
        return word
