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
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p4perf.errors import CapabilityError
from p4perf.evaluation.prediction.operations import drawn_packets
from p4perf.evaluation.prediction.reading.locality import spread_lookups
from p4perf.evaluation.prediction.reading.names import SENT, SWX, XDP
from p4perf.evaluation.prediction.reading.own import read_own
from p4perf.evaluation.prediction.reading.packets import (
    Lookups,
    Passed,
    Runner,
    count_shares,
    own_runner,
    passed_steps,
)
from p4perf.evaluation.prediction.reading.places import Places
from p4perf.evaluation.prediction.reading.reuse import Tables
from p4perf.evaluation.prediction.reading.swx import is_run, renamed, swx_flow
from p4perf.evaluation.prediction.reading.swx_packets import SwxMachine, UnknownDecisionError, hashed_tables
from p4perf.formats.swx_spec import read_specification
from p4perf.generators.c.xdp_layout import header_layout
from p4perf.generators.swx.spec import Pipeline
from p4perf.models.program import Construct, ProgramGraph, construct
from p4perf.models.program.graph import Size, mispredicted_branch, out_of_step
from p4perf.models.templates import FloatArray
from p4perf.programs import ir
from p4perf.programs.analysis import statements
from p4perf.programs.component import TrafficPlan
from p4perf.programs.decisions import FAILED, Decision, Decisions, called
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import Program, Workload
from p4perf.programs.packets import FCS_BYTES, frame
from p4perf.programs.reading.flow import FULL, Flow, oversized_tables, resolve

PacketPath = tuple[tuple[Construct, float], ...]
"""What an average packet meets: constructs in the order in which they are met first, and how often."""


def packet_path(
    program: Program, workload: Workload, traffic: TrafficPlan, *, apart: bool = False, tables: Tables = "dpdk"
) -> PacketPath:
    """What an average packet of a workload meets in its program, or in its baseline.

    Args:
        apart: whether headers are kept apart from the packet, in memory.
        tables: whose tables are looked up.

    Raises:
        CapabilityError: a packet cannot be followed to its end.
    """
    flow = read_own(program, program.name, workload.packets.frame_size_bytes, configured=True, apart=apart)
    tally, short, kept = Tally(), Fraction(0), False
    packets = Decisions(program, Lookups)
    lookups = packets.interpreter
    assert isinstance(lookups, Lookups)  # noqa: S101 - it was made here
    lookups.places = Places(program, tables, drawn=traffic.distribution not in ("sequential", "single"))
    frames = packets_of(workload, traffic)
    _settle(program, frames, packets.run, lookups)
    lookups.forget()
    for data, weight in frames:
        visits: Counter[str] = Counter()
        packets.run(data)
        for decisions in packets.whole:
            passed, failed = None, False
            tally.begin(weight)
            for passed in passed_steps(flow, decisions, apart=apart):
                failed = failed or passed.label == FAILED
                visits[passed.step.name] += 1
                tally.count(passed, f"{passed.step.name}, {visits[passed.step.name]}")
                kept = kept or passed.step.name == SENT or any(what.kind in _LASTING for what in passed.constructs)
            if failed or passed is None or passed.step.edges:
                short += weight
    _check_lengths(short)
    if not kept and not apart:  # compilers leave out all that is done for packets that are dropped in any case
        return ()
    if not workload.frames:
        return tuple((lookups.walked(what), times) for what, times in tally.met())
    copies = any(isinstance(statement, ir.Clone) for statement in statements(program))  # none: no session is there
    found = [(what, times) for what, times in tally.met() if copies or what.kind != "clone"]
    far = lookups.reused(found, (len(frames), workload.packets.frame_size_bytes))
    searched = [part for each in found for part in (*lookups.searched(*each), *lookups.within(*each))]
    return (*((lookups.walked(what), times) for what, times in searched), *far)


PASSES = 2
"""How often all packets pass before they are counted if a register is read: they come again and again, and what the
first of them leave there is soon no longer new."""


def _settle(
    program: Program, frames: Sequence[tuple[bytes, Fraction]], run: Callable[[bytes], object], *machines: Interpreter
) -> None:
    """Bring registers to where packets that come again and again leave them; as they were if that is not known."""
    if not any(isinstance(statement, ir.ReadRegister) for statement in statements(program)):
        return
    before = [machine.snapshot() for machine in machines]
    try:
        for data, _ in list(frames) * PASSES:
            run(data)
    except (ValueError, RecursionError, UnknownDecisionError):
        for machine, state in zip(machines, before, strict=True):
            machine.restore(state)


_LASTING = ("lookup", "counter", "meter", "register read", "register write", "clone", "unknown")
"""Kinds of what is there even if no packet is sent."""

MOST_SHORT = Fraction(1, 2)
"""Largest share of packets that end before their headers do: what becomes of them is counted up to there."""


def _check_lengths(short: Fraction) -> None:
    if short > MOST_SHORT:
        raise CapabilityError("packets are too short for what the parser extracts")


def packets_of(workload: Workload, traffic: TrafficPlan) -> list[tuple[bytes, Fraction]]:
    """Packets of a workload, without FCS, with the share of packets that are like each."""
    if workload.frames:
        each = Fraction(1, len(workload.frames))
        return [(data, each) for data in workload.frames]
    program, packets = workload.program, workload.packets
    return [(frame(program, packets, drawn), weight) for drawn, weight in drawn_packets(workload, traffic)]


def workload_path(target: str, workload: Workload, traffic: TrafficPlan, *, baseline: bool = False) -> PacketPath:
    """What an average packet of a workload meets, in the constructs in which programs for a target are read.

    Args:
        baseline: in the baseline instead of the program.

    Raises:
        CapabilityError: SWX cannot express the program.
        UnknownDecisionError: a decision depends on what the machine of SWX does not know.
    """
    program = workload.baseline if baseline else workload.program
    if target.partition(":")[0] != SWX:
        if target == XDP:
            path = packet_path(program, workload, traffic, apart=header_layout(program).whole, tables="kernel")
        else:
            path = packet_path(program, workload, traffic)
    else:
        path = tuple((what, times) for what, times in swx_path(program, workload, traffic) if is_run(what, target))
    return path if workload.frames else spread_lookups(path, traffic)


def workload_increment(target: str, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet meets beyond the baseline; what the baseline has and the program has not is negative.

    Raises as :func:`workload_path` does.
    """
    whole = workload_path(target, workload, traffic)
    return without(whole, workload_path(target, workload, traffic, baseline=True))


def without(whole: PacketPath, part: PacketPath) -> PacketPath:
    """What a path has beyond another one; what that has alone is negative.

    Constructs are the same where kind and sizes are, wherever they stand.
    """
    left: dict[tuple[str, tuple[tuple[str, Size], ...]], float] = {}
    for what, times in part:
        left[what.kind, what.sizes] = left.get((what.kind, what.sizes), 0.0) + times
    found = []
    for what, times in whole:
        less = max(min(times, left.get((what.kind, what.sizes), 0.0)), 0.0)
        if less:
            left[what.kind, what.sizes] -= less
        if times != less:
            found.append((what, times - less))
    found += [(Construct(*key), -times) for key, times in left.items() if times]  # type: ignore[arg-type]
    return tuple(found)


DECIDED = 0.5
"""Once an earlier decision of a packet is known, a later one that goes otherwise than expected at most so often as
without it is predicted from it, as processors predict branches from those before them."""

Place = tuple[str, str, bool]
"""A decision: where it is made, at what kind of step, and whether behind a lookup."""


class Tally:
    """How often each construct is met, and how decisions go.

    Args:
        in_turn: whether other packets take their turn at every table, and with it the history of branches.
    """

    def __init__(self, *, in_turn: bool = False) -> None:
        self._times: dict[Construct, Fraction] = {}
        self._hits: dict[Construct, Fraction] = {}
        self._made: list[tuple[Fraction, dict[Place, str]]] = []
        self._turns: list[tuple[Fraction, int]] = []
        self._weight = Fraction(0)
        self._late, self._in_turn = False, in_turn

    def begin(self, weight: Fraction) -> None:
        """Begin with a pass of a share of the packets."""
        self._late, self._weight = False, weight
        self._made.append((weight, {}))
        self._turns.append((weight, 1))

    def count(self, passed: Passed, place: str) -> None:
        """Count a step that these packets pass; ``place`` tells its decision from others."""
        times = self._weight
        for what in passed.constructs:
            self._times[what] = self._times.get(what, Fraction(0)) + times
            if what.kind == "lookup":  # how many packets find an entry is known only at the end
                self._hits[what] = self._hits.get(what, Fraction(0)) + (0 if passed.label == "miss" else times)
        looked_up = any(what.kind == "lookup" for what in passed.constructs)
        if looked_up and self._in_turn:
            self._made.append((times, {}))
            self._turns[-1] = (times, self._turns[-1][1] + 1)
        if passed.decided:
            self._made[-1][1][place, passed.step.kind, self._late] = passed.to
        self._late = self._late or looked_up

    def _mispredicted(self) -> dict[bool, float]:
        """How often decisions go otherwise than expected at the start of a packet, and behind lookups."""
        weights = np.array([float(weight) for weight, _ in self._made])
        found, taken = {False: 0.0, True: 0.0}, dict[Place, npt.NDArray[np.int64]]()
        for place in dict.fromkeys(place for _, made in self._made for place in made):
            numbers = {"": 0}
            ways = np.array([numbers.setdefault(made.get(place, ""), len(numbers)) for _, made in self._made])
            if len(numbers) < 3:
                continue
            if place[1] != "table":  # hits and misses are those of the lookup
                here = ways > 0
                alone = _rest(weights[here], ways[here], 0 * ways[here])
                best = min((_rest(weights[here], ways[here], way[here]) for way in taken.values()), default=alone)
                found[place[2]] += best if best <= DECIDED * alone else alone
            taken[place] = ways
        return found

    def _out_of_step(self) -> float:
        shares, turns = (np.array(each, dtype=float) for each in zip(*self._turns, strict=True))
        mean = float(np.average(turns, weights=shares))
        return out_of_step(mean, float(np.average((turns - mean) ** 2, weights=shares)))

    def met(self) -> PacketPath:
        """All constructs."""
        found = []
        for what, times in self._times.items():
            if what in self._hits:
                what = construct("lookup", what.where, **dict(what.sizes) | {"hit": float(self._hits[what] / times)})
            found.append((what, float(times)))
        for late, wrong in self._mispredicted().items():
            if wrong:
                found.append((mispredicted_branch("lookup" if late else "start"), wrong))
        if self._in_turn and (wrong := self._out_of_step()):
            found.append((mispredicted_branch("turn"), wrong))
        return tuple(found)


def _rest(weights: FloatArray, ways: npt.NDArray[np.int64], before: npt.NDArray[np.int64]) -> float:
    """How many packets go another way than most of those that went the same way before."""
    counts = np.zeros((before.max() + 1, ways.max() + 1))
    np.add.at(counts, (before, ways), weights)
    return float((counts.sum(axis=1) - counts.max(axis=1)).sum())


def swx_path(program: Program, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet of a workload meets in a program on SWX: in its own specification, or the generated one.

    The reference interpreter says what lookups find.
    """
    _, machine, reference = _on_swx(program, workload)
    tally, short = Tally(in_turn=True), Fraction(0)
    frames = packets_of(workload, traffic)

    def run(data: bytes) -> None:
        reference.run(data)
        for _ in machine.walk(data):
            pass

    _settle(program, frames, run, machine, reference)
    for data, weight in frames:
        reference.run(data)
        tally.begin(weight)
        visits: Counter[str] = Counter()
        for passed in machine.walk(data):
            visits[passed.step.name] += 1
            tally.count(passed, f"{passed.step.name}, {visits[passed.step.name]}")
        short += weight if machine.short else 0
    _check_lengths(short)
    met = tally.met()
    if not workload.frames:
        return tuple((reference.walked(what), times) for what, times in met)
    far = reference.reused(met, (len(frames), workload.packets.frame_size_bytes))
    return (*((reference.walked(reference.seen(what)), times) for what, times in met), *far)


def _on_swx(program: Program, workload: Workload) -> tuple[Flow, SwxMachine, Lookups]:
    """The steps of a program on SWX, what runs its packets, and the reference interpreter, that looks up."""
    packet_bytes = workload.packets.frame_size_bytes - FCS_BYTES
    pipeline = None
    text = workload.text("swx") if program is workload.program else None
    if text is None:
        pipeline = Pipeline(program, "program", packet_bytes)
        text = pipeline.specification()
    spec = read_specification(text, program.name)
    counts = {called(table) if pipeline is None else table.name: table.entries.count for table in program.tables}
    flow = swx_flow(spec, program.name, program.name, counts if pipeline is None else {}, packet_bytes)
    if pipeline is not None:
        flow = renamed(flow, {table.name: called(table) for table in program.tables})
    reference = Lookups(program)
    called_there = {table.name: called(table) if pipeline is None else table.name for table in program.tables}
    declared = {name: spec.tables[there] for name, there in called_there.items() if there in spec.tables}
    reference.places = Places(program, "swx", hashed=hashed_tables(declared))
    return flow, SwxMachine(spec, flow, lookup=lambda table: reference.next(table, pipeline)), reference


def workload_graph(target: str, workload: Workload) -> ProgramGraph:
    """A program that was read, with the shares of its packets in their first pass, as programs for a target are read.

    Raises:
        CapabilityError: SWX cannot express the program.
    """
    program, frame_bytes = workload.program, workload.packets.frame_size_bytes
    if target.partition(":")[0] == SWX:
        flow, machine, reference = _on_swx(program, workload)

        def run(data: bytes) -> tuple[list[Decision], str]:
            reference.run(data)
            return machine.decisions(data)

        runner: Runner = run
    else:
        flow = read_own(program, program.name, frame_bytes, source="bmv2", configured=True)
        runner = own_runner(program)
    graph = resolve(flow, program.name)
    found, remarks = count_shares(graph, runner, workload.frames)
    remarks = tuple(r for r in (*graph.remarks, *remarks) if r != FULL)
    remarks = tuple(dict.fromkeys((*remarks, *oversized_tables(program))))
    return replace(found.apply(graph), remarks=remarks, frame_bytes=frame_bytes, packets=workload.notes[0])
