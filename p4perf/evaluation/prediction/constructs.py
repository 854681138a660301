"""What packets meet: a program of ours and its packets become constructs, in the order in which they are met.

The reference interpreter runs packets that are drawn as the load generator draws them, and says what each one meets.
An average packet meets the averages. What is read here is the program as it is written: what a compiler or a target
leaves out, merges or moves has no construct of its own.

* A statement ``destination = expression`` is one ``compute`` for each operator in it and one ``write``.
* Statements of externs (hash, meter, register, random) have the writing of their result in them, and so does adding a
  header the values of its fields.
* A lookup has its key in it, and the reading of action data; what the action does with them is met after it.
* Headers that are valid at the end of a pass are emitted, unless the packet is dropped or resubmitted; every further
  pass is met whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from p4perf.evaluation.eo.derivation import drawn_packets
from p4perf.generators.analysis import condition_operands, operands, subexpressions
from p4perf.generators.base import TrafficPlan
from p4perf.generators.interpreter import Interpreter
from p4perf.generators.packets import FCS_BYTES, frame
from p4perf.generators.program import (
    METADATA,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Clone,
    Compare,
    Condition,
    ControlNode,
    CountPacket,
    Drop,
    FieldRef,
    Hash,
    If,
    MeterPacket,
    Multicast,
    ParserState,
    PassNumber,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    RunOperator,
    SetEgress,
    Statement,
    Workload,
    WriteRegister,
)
from p4perf.generators.workload import build_workload
from p4perf.models.program import Construct, construct
from p4perf.models.program.constructs import Size

VALIDITY_BITS = 1
PASS_BITS = 32

Met = tuple[tuple[Construct, float], ...]


@dataclass(frozen=True, slots=True)
class PacketWay:
    """What an average packet meets.

    Args:
        met: constructs in the order in which they are met first, and how often.
        mispredicted: decisions of selects and conditions that a packet makes otherwise than most packets do, which a
            processor cannot predict.
    """

    met: Met
    mispredicted: float = 0.0


def packet_way(program: Program, workload: Workload, traffic: TrafficPlan) -> PacketWay:
    """What an average packet of a workload meets in a program.

    Args:
        program: the program of the workload, or its baseline.
        workload: whose packets they are.
        traffic: frame size and share of packets that hit.
    """
    tally = Tally()
    for drawn, weight in drawn_packets(workload, traffic):
        walk = _Walk(program, workload.packets.frame_size_bytes - FCS_BYTES, tally, weight)
        data = frame(workload.program, workload.packets, drawn)
        outcome = Interpreter(program, watch=walk.watch).run(data)
        walk.end(sent=bool(outcome.sent))
    return PacketWay(tally.met(), tally.mispredicted())


def increment(workload: Workload, traffic: TrafficPlan) -> PacketWay:
    """What an average packet meets beyond the baseline; what the baseline has and the program has not is negative."""
    whole = packet_way(workload.program, workload, traffic)
    return without(whole, packet_way(workload.baseline, workload, traffic))


def component_increments(
    components: Sequence[tuple[str, Mapping[str, Any]]], traffic: TrafficPlan, *, baseline: str = "l2fwd"
) -> tuple[PacketWay, ...]:
    """What each component of a composed program adds to those before it, in their order.

    Args:
        components: names and parameters, in order.
        traffic: frame size and share of packets that hit.
        baseline: name of the component that every program starts with.

    Raises:
        SpecError: an unknown component, or parameters that it does not take.
        CapabilityError: the components do not go together.
    """
    size = traffic.frame_size_bytes
    whole = build_workload(components, frame_size_bytes=size, baseline=baseline)
    shorter = [
        build_workload(components[:n], frame_size_bytes=size, baseline=baseline).program
        for n in range(1, len(components))
    ]
    ways = [packet_way(program, whole, traffic) for program in (whole.baseline, *shorter, whole.program)]
    return tuple(without(way, before) for before, way in pairwise(ways))


def without(whole: PacketWay, part: PacketWay) -> PacketWay:
    """What a way has beyond another one; what that has alone is negative.

    Constructs are the same where kind and sizes are, wherever they stand.
    """
    left: dict[tuple[str, tuple[tuple[str, Size], ...]], float] = {}
    for what, times in part.met:
        left[what.kind, what.sizes] = left.get((what.kind, what.sizes), 0.0) + times
    found = []
    for what, times in whole.met:
        less = min(times, left.get((what.kind, what.sizes), 0.0))
        if less:
            left[what.kind, what.sizes] -= less
        if times != less:
            found.append((what, times - less))
    found += [(Construct(*key), -times) for key, times in left.items() if times]  # type: ignore[arg-type]
    return PacketWay(tuple(found), whole.mispredicted - part.mispredicted)


class Tally:
    """How often each construct is met, and how decisions go."""

    def __init__(self) -> None:
        self._times: dict[Construct, Fraction] = {}
        self._lookups: dict[Construct, Fraction] = {}
        self._ways: dict[str, dict[str | bool | None, Fraction]] = {}

    def add(self, what: Construct, times: Fraction) -> None:
        """A construct, and how often an average packet meets it here."""
        self._times[what] = self._times.get(what, Fraction(0)) + times

    def lookup(self, what: Construct, hit: bool, times: Fraction) -> None:
        """A lookup of which it is known only at the end how many packets find an entry."""
        self.add(what, times)
        self._lookups[what] = self._lookups.get(what, Fraction(0)) + (times if hit else 0)

    def branch(self, place: str, outcome: str | bool | None, times: Fraction) -> None:
        """A decision at a place of the program, and how it went."""
        outcomes = self._ways.setdefault(place, {})
        outcomes[outcome] = outcomes.get(outcome, Fraction(0)) + times

    def met(self) -> Met:
        """All constructs, in the order in which they were met first."""
        found = []
        for what, times in self._times.items():
            if what in self._lookups:
                sizes = dict(what.sizes) | {"hit": float(self._lookups[what] / times)}
                what = construct("lookup", what.where, **sizes)
            found.append((what, float(times)))
        return tuple(found)

    def mispredicted(self) -> float:
        """Decisions per packet that are made otherwise than most packets do."""
        return float(sum((sum(w.values()) - max(w.values()) for w in self._ways.values()), Fraction(0)))


class _Walk:
    """One packet on its way."""

    def __init__(self, program: Program, packet_bytes: int, tally: Tally, weight: Fraction) -> None:
        self._program = program
        self._packet_bytes = packet_bytes
        self._tally = tally
        self._weight = weight
        self._place = ""
        self._passes = 0
        self._visits: Counter[str] = Counter()
        self._valid: set[str] = set()
        self._dropped = False
        self._resubmitted = False

    def _add(self, what: Construct) -> None:
        self._tally.add(what, self._weight)

    def _branch(self, place: str, outcome: str | bool | None) -> None:
        self._visits[place] += 1
        self._tally.branch(f"{place}, {self._visits[place]}", outcome, self._weight)

    def watch(self, met: ParserState | ControlNode | Statement, outcome: str | bool | None) -> None:
        """Take in what the packet meets."""
        match met:
            case ParserState():
                self._state(met, outcome)
            case If(condition):
                self._add(construct("condition", bits=self._condition_bits(condition)))
                for expression in condition_operands(condition):
                    self._compute(expression, self._condition_bits(condition), "condition")
                self._branch(f"if {id(met)}", outcome)
            case CallAction(name):
                self._place = f"action {name}"
            case ApplyTable(name):
                self._lookup(name, bool(outcome))
            case _:
                self._statement(met)

    def _state(self, state: ParserState, outcome: str | bool | None) -> None:
        if state.name == "start":
            if self._passes and not self._resubmitted:
                self._emit()
            self._passes += 1
            self._resubmitted = False
            self._valid.clear()
        where = f"state {state.name}"
        for name in state.extracts:
            self._add(construct("extract", where, bytes=self._program.header(name).size_bytes))
            self._valid.add(name)
        if state.select is not None:
            bits = self._program.width_bits(state.select)
            self._add(construct("select", where, cases=len(state.cases), key_bits=bits))
            self._branch(where, outcome)
        if outcome == "accept":
            for checksum in self._program.verified:
                if checksum.header in self._valid:
                    size = self._program.header(checksum.header).size_bytes
                    self._add(construct("checksum verify", f"header {checksum.header}", bytes=size))

    def _condition_bits(self, condition: Condition) -> int:
        """Width of what is compared; whether a header is valid is one bit."""
        if not isinstance(condition, Compare):
            return VALIDITY_BITS
        return max(self._bits(e) for e in condition_operands(condition)) or PASS_BITS

    def _bits(self, expression: object) -> int:
        match expression:
            case FieldRef():
                return self._program.width_bits(expression)
            case PassNumber():
                return PASS_BITS
            case BinaryOp(_, left, right):
                return max(self._bits(left), self._bits(right))
            case _:
                return 0

    def _compute(self, expression: Any, bits: int, where: str) -> None:
        for part in subexpressions(expression):
            if isinstance(part, BinaryOp):
                self._add(construct("compute", where, operator=part.operator, bits=bits))

    def _lookup(self, name: str, hit: bool) -> None:
        program = self._program
        table = program.table(name)
        what = construct(
            "lookup",
            f"table {name}",
            match_kind=program.match_kind(table),
            entries=table.entries.count,
            key_bits=program.key_bits(table),
            action_data_bytes=program.action(table.entries.action).data_bits // 8,
            hit=1.0,
        )
        self._tally.lookup(what, hit, self._weight)
        self._place = f"action {table.entries.action if hit else table.default_action}"

    def _statement(self, statement: Statement) -> None:
        self._dropped = self._dropped or isinstance(statement, Drop)
        self._resubmitted = self._resubmitted or isinstance(statement, Resubmit)
        bits = self._program.width_bits(statement.destination) if isinstance(statement, Assign) else PASS_BITS
        if not isinstance(statement, RunOperator | Hash):
            for expression in operands(statement):
                self._compute(expression, bits, self._place)
        if (what := self._construct(statement)) is not None:
            self._add(what)

    def _construct(self, statement: Statement) -> Construct | None:
        """The construct that a statement is, besides what it computes."""
        where, program = self._place, self._program
        match statement:
            case Assign(ref, _):
                to = "metadata" if ref.header == METADATA else "header"
                return construct("write", where, bits=program.width_bits(ref), to=to)
            case SetEgress():
                return construct("set egress", where)
            case Drop():
                return construct("drop", where)
            case AddHeader(name, _):
                self._valid.add(name)
                return construct("add header", where, bytes=program.header(name).size_bytes)
            case RemoveHeader(name):
                self._valid.discard(name)
                return construct("remove header", where, bytes=program.header(name).size_bytes)
            case Hash(_, algorithm, fields):
                size = sum(program.width_bits(f) for f in fields) // 8
                return construct("hash", where, algorithm=algorithm, bytes=size)
            case CountPacket(name, _):
                return construct("counter", where, cells=program.counter(name).size)
            case MeterPacket(_, name, _):
                return construct("meter", where, cells=program.meter(name).size)
            case ReadRegister(_, name, _):
                register = program.register(name)
                return construct("register read", where, cells=register.size, bits=register.width_bits)
            case WriteRegister(name, _, _):
                register = program.register(name)
                return construct("register write", where, cells=register.size, bits=register.width_bits)
            case Random(ref):
                return construct("random", where, bits=program.width_bits(ref))
            case Recirculate():
                return construct("recirculate", where)
            case Resubmit():
                return construct("resubmit", where)
            case Clone():
                return construct("clone", where, bytes=self._packet_bytes)
            case Multicast(ports):
                return construct("multicast", where, ports=len(ports))
            case RunOperator(_, operator):
                return construct("unknown", where, name=f"operator {operator.name}")
            case _:
                return None

    def _emit(self) -> None:
        """The deparser of one pass."""
        for checksum in self._program.updated:
            if checksum.header in self._valid:
                size = self._program.header(checksum.header).size_bytes
                self._add(construct("checksum update", f"header {checksum.header}", bytes=size))
        for name in self._program.emit:
            if name in self._valid:
                self._add(construct("emit", f"header {name}", bytes=self._program.header(name).size_bytes))

    def end(self, sent: bool) -> None:
        """The packet leaves, or it was dropped."""
        if sent and not self._dropped:
            self._emit()
