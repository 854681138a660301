"""What packets meet: a program of ours and its packets become constructs, in the order in which they are met.

The program is read as for predictions (:mod:`p4perf.evaluation.prediction.reading.own`). The reference interpreter runs
packets that are drawn as the load generator draws them; what each one decides says which steps it passes. An average
packet meets the averages. What is read is the program as it is written: what a compiler or a target leaves out, merges
or moves has no construct of its own.

* A statement ``destination = expression`` is one ``compute`` for each operator in it and one ``write``.
* Statements of externs (hash, meter, register, random) have the writing of their result in them, and so does adding a
  header the values of its fields.
* A lookup has its key in it, and the reading of action data; what the action does with them is met after it.
* Headers that are valid at the end of a pass are emitted, unless the packet is dropped or resubmitted; every further
  pass is met whole.

Programs that others wrote for SWX are priced by their instructions, so prices on SWX are those of instructions: the
specification that is generated goes through the reader of all specifications, the packets through its machine, and the
reference interpreter says which lookups find an entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from p4perf.evaluation.prediction.operations import drawn_packets
from p4perf.evaluation.prediction.reading.own import read_own
from p4perf.evaluation.prediction.reading.packets import Passed, passed_steps
from p4perf.evaluation.prediction.reading.swx import swx_flow
from p4perf.evaluation.prediction.reading.swx_packets import Found, SwxMachine
from p4perf.formats.swx_spec import Specification, read_specification
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program import Construct, construct
from p4perf.models.program.graph import Size
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.decisions import Decisions
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import ApplyTable, Program, Workload
from p4perf.programs.packets import FCS_BYTES, frame

Met = tuple[tuple[Construct, float], ...]


@dataclass(frozen=True, slots=True)
class PacketPath:
    """What an average packet meets.

    Args:
        met: constructs in the order in which they are met first, and how often.
        mispredicted: decisions of selects and conditions that a packet makes otherwise than most packets do, which a
            processor cannot predict.
    """

    met: Met
    mispredicted: float = 0.0


def packet_path(program: Program, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet of a workload meets in its program, or in its baseline."""
    flow = read_own(program, program.name, workload.packets.frame_size_bytes)
    tally = Tally()
    for drawn, weight in drawn_packets(workload, traffic):
        visits: Counter[str] = Counter()
        for decisions in Decisions(program).run(frame(workload.program, workload.packets, drawn)):
            for passed in passed_steps(flow, decisions):
                visits[passed.step.name] += 1
                tally.count(passed, f"{passed.step.name}, {visits[passed.step.name]}", weight)
    return PacketPath(tally.met(), tally.mispredicted())


def increment(workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet meets beyond the baseline; what the baseline has and the program has not is negative."""
    whole = packet_path(workload.program, workload, traffic)
    return without(whole, packet_path(workload.baseline, workload, traffic))


def component_increments(
    components: Sequence[tuple[str, Mapping[str, Any]]], traffic: TrafficPlan
) -> tuple[PacketPath, ...]:
    """What each component of a composed program adds to those before it, in their order."""
    size = traffic.frame_size_bytes
    whole = build_workload(components, frame_size_bytes=size)
    shorter = [build_workload(components[:n], frame_size_bytes=size).program for n in range(1, len(components))]
    paths = [packet_path(program, whole, traffic) for program in (whole.baseline, *shorter, whole.program)]
    return tuple(without(path, before) for before, path in pairwise(paths))


def without(whole: PacketPath, part: PacketPath) -> PacketPath:
    """What a path has beyond another one; what that has alone is negative.

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
    return PacketPath(tuple(found), whole.mispredicted - part.mispredicted)


class Tally:
    """How often each construct is met, and how decisions go."""

    def __init__(self) -> None:
        self._times: dict[Construct, Fraction] = {}
        self._hits: dict[Construct, Fraction] = {}
        self._outcomes: dict[str, dict[str, Fraction]] = {}

    def count(self, passed: Passed, place: str, times: Fraction) -> None:
        """Count a step that a share of the packets passes; ``place`` tells its decision from others."""
        for what in passed.constructs:
            self._times[what] = self._times.get(what, Fraction(0)) + times
            if what.kind == "lookup":  # how many packets find an entry is known only at the end
                self._hits[what] = self._hits.get(what, Fraction(0)) + (0 if passed.label == "miss" else times)
        if passed.decided and passed.step.kind != "table":
            outcomes = self._outcomes.setdefault(place, {})
            outcomes[passed.label] = outcomes.get(passed.label, Fraction(0)) + times

    def met(self) -> Met:
        found = []
        for what, times in self._times.items():
            if what in self._hits:
                what = construct("lookup", what.where, **dict(what.sizes) | {"hit": float(self._hits[what] / times)})
            found.append((what, float(times)))
        return tuple(found)

    def mispredicted(self) -> float:
        """Decisions per packet that are made otherwise than most packets do."""
        return float(sum((sum(w.values()) - max(w.values()) for w in self._outcomes.values()), Fraction(0)))


OTHER_DATA = 1
"""Action data besides the port. No decision of a generated program depends on them."""


def swx_increment(workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet meets on SWX beyond the baseline, in constructs of its instructions.

    Raises:
        CapabilityError: SWX cannot express the program.
        UnknownDecisionError: a decision depends on what the machine does not know.
    """
    whole = swx_path(workload.program, workload, traffic)
    return without(whole, swx_path(workload.baseline, workload, traffic))


def swx_path(program: Program, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet of a workload meets in a program on SWX."""
    packet_bytes = workload.packets.frame_size_bytes - FCS_BYTES
    spec = read_specification(Pipeline(program, "program", packet_bytes).specification(), program.name)
    flow = swx_flow(spec, program.name, program.name, {}, packet_bytes)
    tally = Tally()
    for drawn, weight in drawn_packets(workload, traffic):
        data = frame(workload.program, workload.packets, drawn)
        outcomes = iter(_lookups(program, data))

        def found(table: str, left: Iterator[tuple[str, bool]] = outcomes) -> Found:
            hit = next((hit for name, hit in left if name == table), False)
            return _entry(program, table, spec) if hit else None

        for passed in SwxMachine(spec, flow, lookup=found).walk(data):
            tally.count(passed, passed.step.name, weight)
    return PacketPath(tally.met(), tally.mispredicted())


def _lookups(program: Program, data: bytes) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []

    def watch(met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ApplyTable):
            found.append((met.table, bool(outcome)))

    Interpreter(program, watch=watch).run(data)
    return found


def _entry(program: Program, table: str, spec: Specification) -> Found:
    rule = program.table(table).rule
    fields = spec.structs.get(spec.arguments(rule.action), ())
    return rule.action, tuple(OTHER_DATA if n else rule.port for n in range(len(fields)))
