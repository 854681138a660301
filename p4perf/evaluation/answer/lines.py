"""The bill of a program line by line: which node and which part of the program each charge belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from p4perf.evaluation.reading.flow import base_name
from p4perf.models.program import Bill, Charge, Construct, NodeKind, Pricing

PARTS: Mapping[NodeKind, str] = MappingProxyType(
    {
        "parser state": "parser",
        "table": "tables",
        "action": "actions",
        "condition": "conditions",
        "block": "blocks",
        "deparser": "deparser",
        "end": "end",
    }
)
"""The part of a program that a node belongs to, in the order of bills."""


ORDER = (*PARTS.values(), "others")
"""All parts; ``others`` is what a model charges besides the constructs of a program."""


@dataclass(frozen=True, slots=True)
class Met:
    """A construct with the node that it stands in, and how often a packet meets it."""

    node: str
    kind: NodeKind
    what: Construct
    times: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a bill."""

    node: str
    part: str
    charge: Charge

    @property
    def label(self) -> str:
        """The construct for people: ``lookup exact, 1000 entries, 32 bit key``."""
        return describe(self.charge.what)


@dataclass(frozen=True)
class Itemised:
    """A bill whose charges know their nodes."""

    bill: Bill
    lines: tuple[Line, ...]

    def by_node(self) -> tuple[NodeSum, ...]:
        """Sums of the nodes, the dearest first within a part, parts in the order of a program."""
        found: dict[tuple[str, str], list[tuple[str, Charge]]] = {}
        for line in self.lines:
            found.setdefault((line.part, base_name(line.node)), []).append((line.node, line.charge))
        sums = [NodeSum(part, node, *_sums(charges)) for (part, node), charges in found.items()]
        return tuple(sorted(sums, key=lambda s: (ORDER.index(s.part), -s.cycles)))

    @property
    def unpriced(self) -> tuple[Line, ...]:
        """Lines without a model: bounded, or not even that."""
        return tuple(line for line in self.lines if line.charge.basis in ("bounded", "unknown"))

    @property
    def extrapolated(self) -> tuple[Line, ...]:
        """Lines outside of what was measured."""
        return tuple(line for line in self.lines if line.charge.basis == "extrapolated")


@dataclass(frozen=True, slots=True)
class NodeSum:
    """What a node costs altogether."""

    part: str
    node: str
    times: float
    cycles: float
    low: float
    high: float


def itemise(pricing: Pricing, met: Sequence[Met]) -> Itemised:
    """The bill of what is met, its charges put to their nodes."""
    bill = pricing.bill([(each.what, each.times) for each in met])
    return Itemised(bill, tuple(_lines(bill.charges, met)))


def _lines(charges: Sequence[Charge], met: Sequence[Met]) -> Iterable[Line]:
    # A model may leave out what its baseline has paid for, and add what is no construct of the program.
    waiting: dict[Construct, list[Met]] = {}
    for each in met:
        waiting.setdefault(each.what, []).append(each)
    for charge in charges:
        left = waiting.get(charge.what)
        if not left:
            yield Line(charge.what.where, "others", charge)
            continue
        found = left.pop(0) if len(left) > 1 else left[0]
        yield Line(found.node, PARTS[found.kind], charge)


def _sums(lines: Sequence[tuple[str, Charge]]) -> tuple[float, float, float, float]:
    """How often one of the copies of a node is met, and what all lines come to."""
    by_node: dict[str, float] = {}
    for node, charge in lines:
        by_node[node] = max(by_node.get(node, 0.0), charge.times)
    charges = [charge for _, charge in lines]
    return (
        sum(by_node.values()),
        sum(c.cycles for c in charges),
        sum(c.low for c in charges),
        sum(c.high for c in charges),
    )


def describe(what: Construct) -> str:
    """A construct for people."""
    size = dict(what.sizes)
    if what.kind == "component":
        rest = ", ".join(f"{name}={value}" for name, value in what.sizes[1:])
        return f"{size.get('name', '')} {rest}".strip()
    if what.kind in _TEXTS:
        return _TEXTS[what.kind](size)
    rest = ", ".join(f"{name} {_plain(value)}" for name, value in what.sizes)
    return f"{what.kind} {rest}".strip()


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lookup(size: Mapping[str, object]) -> str:
    entries, bits, hit = (size.get(n) for n in ("entries", "key_bits", "hit"))
    text = f"lookup {size.get('match_kind')}, {_plain(entries)} entries, {_plain(bits)} bit key"
    return text if hit in (1, True) else f"{text}, hit {_plain(hit)}"


_TEXTS: Mapping[str, Callable[[Mapping[str, object]], str]] = MappingProxyType(
    {
        "lookup": _lookup,
        "extract": lambda s: f"extract {_plain(s.get('bytes'))} B",
        "emit": lambda s: f"emit {_plain(s.get('bytes'))} B",
        "select": lambda s: f"select {_plain(s.get('cases'))} cases, {_plain(s.get('key_bits'))} bit",
        "write": lambda s: f"write {_plain(s.get('bits'))} bit to {s.get('to')}",
        "compute": lambda s: f"compute {s.get('operator')}, {_plain(s.get('bits'))} bit",
        "condition": lambda s: f"condition, {_plain(s.get('bits'))} bit",
        "hash": lambda s: f"hash {s.get('algorithm')}, {_plain(s.get('bytes'))} B",
        "unknown": lambda s: f"unknown: {s.get('name')}",
    }
)
