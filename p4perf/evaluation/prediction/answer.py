"""THE ANSWER: what a program costs on a target, which rates and latencies follow, and what costs how much.

    packets/s = cores * clock / cycles,    at most line rate / (8 * (frame + 20 bytes))

Cores are taken to share nothing, so that several do the multiple of one. A frame takes 20 bytes on Ethernet besides
itself: preamble and start delimiter 8, gap 12.

The service time of a packet is the cost of its path through the program over the clock. Packets on different paths have
different service times, so the law of the service time is the distribution of the cost over all paths. Arrivals are a
Poisson process that is spread evenly over the cores; each has a ring of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.prediction.breakdown import (
    CostSpread,
    Itemised,
    Met,
    behind_lookups,
    cost_spread,
    extremes,
    guessed,
    itemise,
)
from p4perf.evaluation.prediction.reading.swx import is_run
from p4perf.models.eo.mapping import MIN_FRAME_BYTES, OVERHEAD_BYTES, check_frame
from p4perf.models.estimate import Estimate, exactly
from p4perf.models.program import Construct, CostBreakdown, Edge, Node, Pricing, ProgramGraph
from p4perf.models.program.costs import Basis, BatchCycles
from p4perf.models.program.graph import mispredicted_branch, out_of_step
from p4perf.models.program.memory import ProgramMemory
from p4perf.models.program.paths import Analysis, ProgramPath, analyse, constructs_on, sorted_nodes, taken
from p4perf.programs.reading.flow import OVERSIZED

FRAME_SIZES_BYTES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of Ethernet with FCS (RFC 2544, section 9.1)."""

RateBound = Literal["cpu", "line"]


@dataclass(frozen=True, slots=True)
class SizeRate:
    """What all cores reach with frames of one size: packets, and 10**9 bit/s on the line with preamble and gap."""

    frame_bytes: int
    mpps: Estimate
    gbps: Estimate
    line_mpps: float
    bound: RateBound


def per_core(cycles: Estimate, clock_hz: float) -> Estimate:
    return cycles.map(lambda x: clock_hz / 1e6 / x if x > 0 else math.inf)


def line_mpps(line_rate_bps: float, frame_bytes: int) -> float:
    return line_rate_bps / (8 * (frame_bytes + OVERHEAD_BYTES)) / 1e6


def size_rate(core_mpps: Estimate, cores: int, line_rate_bps: float, frame_bytes: int) -> SizeRate:
    line = line_mpps(line_rate_bps, frame_bytes)
    all_cores = core_mpps * cores
    mpps = all_cores.map(lambda x: min(x, line))
    wire_kbit = 8 * (frame_bytes + OVERHEAD_BYTES) / 1e3
    return SizeRate(frame_bytes, mpps, mpps * wire_kbit, line, "cpu" if all_cores.value < line else "line")


def line_rate_from_bytes(mpps: float, line_rate_bps: float) -> int | None:
    """The smallest frame with which a line is full, None if the largest of Ethernet is not enough [bytes]."""
    if not mpps > 0:
        return None
    smallest = MIN_FRAME_BYTES
    if math.isfinite(mpps):
        smallest = max(math.ceil(line_rate_bps / (8e6 * mpps) - OVERHEAD_BYTES - 1e-9), MIN_FRAME_BYTES)
    return smallest if smallest <= FRAME_SIZES_BYTES[-1] else None


QUANTILES: tuple[tuple[str, float], ...] = (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999))
STEPS = 8
"""Steps of the lattice in the mean service time: quantiles are exact to that."""

MOST_OF_BATCH = 0.8
"""A batch costs this share of full ones at most: a full one is known, and its packets cost something."""

ELSEWHERE = 2.0
"""Factor by which both ends of an interval are further away on another machine than that of the model. On a Xeon
(6-207-2) by the models of another one, 72, 35 and 0 % of 134 costs of programs on dpdk-c, dpdk-swx and xdp were inside
of intervals without it, and 100, 100 and 56 % with it."""

MAX_LOAD = 1.5
"""Largest load of a core: beyond it, loss makes latencies meaningless."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What is offered: a share of what cores and line allow at the expected cost, or a rate over all cores."""

    load: float | None = 0.7
    rate_mpps: float | None = None
    ring: int = 1024
    burst: int = 32

    def __post_init__(self) -> None:
        if (self.load is None) == (self.rate_mpps is None):
            raise UsageError("latency needs a load or a rate, and not both")
        if self.load is not None and not 0 < self.load <= MAX_LOAD:
            message = f"a load is a share of what the program can do, above 0 and up to {MAX_LOAD:g}, not {self.load:g}"
            raise UsageError(message, hint="such as 0.7 or 70%")
        if self.rate_mpps is not None and not self.rate_mpps > 0:
            raise UsageError("a rate is more than zero")


@dataclass(frozen=True)
class LatencyAnswer:
    """Latency and loss at a load. Overloaded: the cost, or its upper end, is more than the cores can do."""

    rate_mpps: float
    load: Estimate
    loss: Estimate
    mean_us: Estimate
    quantiles_us: tuple[tuple[str, Estimate], ...]
    overloaded: bool


@dataclass(frozen=True, slots=True)
class _Solved:
    loss: float
    mean_us: float
    quantiles_us: tuple[float, ...]

    def slower(self, factor: float) -> _Solved:
        """The same system with all times multiplied by a factor."""
        return _Solved(self.loss, self.mean_us * factor, tuple(q * factor for q in self.quantiles_us))


def latency_at(
    spread: CostSpread,
    cycles: Estimate,
    clock_hz: float,
    cores: int,
    offered: Offered,
    possible_mpps: float,
    batches: BatchCycles | None = None,
) -> LatencyAnswer:
    """Latency and loss of a program.

    The ends of the intervals come of the ends of the interval of the cost. With a load, a share of what the cores can
    do, the rate is another one where the cost is: all times grow with the cost. With a rate, or where the line is full
    before the cores are, the rate stays, and a higher cost is a higher load.

    Args:
        spread: distribution of the cost of packets [cycles]; its mean is the expected cost.
        possible_mpps: what cores and line allow at the expected cost.
        batches: what a batch costs; the cost of a packet is that in a full one.

    Raises:
        UsageError: more than :data:`MAX_LOAD` of what the cores can do is offered, or the queue cannot be solved.
    """
    rate_mpps, load = offered_load(cycles, clock_hz, cores, offered, possible_mpps)
    mhz, own_mpps = clock_hz / 1e6, rate_mpps / cores
    middle = _solve(spread, mhz, own_mpps, offered, batches)
    if _follows(cycles, clock_hz, cores, offered, possible_mpps):
        low, high = (middle.slower(end / cycles.value) for end in (cycles.low, cycles.high))
    else:
        # Both ends are kept within what the queue model can solve.
        lowest = max(cycles.low, 0.02 * cycles.value)
        highest = max(min(cycles.high, MAX_LOAD * mhz / own_mpps), cycles.value)
        low, high = (
            _solve(spread.scaled(end / cycles.value), mhz, own_mpps, offered, batches) for end in (lowest, highest)
        )
    return LatencyAnswer(
        rate_mpps=rate_mpps,
        load=load,
        loss=Estimate(middle.loss, low.loss, high.loss),
        mean_us=Estimate(middle.mean_us, low.mean_us, high.mean_us),
        quantiles_us=tuple(
            (name, Estimate(*ends))
            for (name, _), *ends in zip(QUANTILES, *(s.quantiles_us for s in (middle, low, high)), strict=True)
        ),
        overloaded=load.high > 1,
    )


def offered_load(
    cycles: Estimate, clock_hz: float, cores: int, offered: Offered, possible_mpps: float
) -> tuple[float, Estimate]:
    """The rate over all cores [Mpps], and the load of a core; with a share of what the cores can do just that.

    Raises:
        UsageError: more than :data:`MAX_LOAD` of what the cores can do is offered.
    """
    rate_mpps = possible_mpps * offered.load if offered.load is not None else offered.rate_mpps or 0.0
    load = cycles * (1e6 * rate_mpps / cores / clock_hz)
    if load.value > MAX_LOAD * (1 + 1e-9):
        who = "one core" if cores == 1 else f"{cores} cores"
        message = f"{rate_mpps:.4g} Mpps are {load.value:.3g} times what {who} can do"
        raise UsageError(message, hint="offer less, or give more --cores")
    return rate_mpps, exactly(load.value) if _follows(cycles, clock_hz, cores, offered, possible_mpps) else load


def _follows(cycles: Estimate, clock_hz: float, cores: int, offered: Offered, possible_mpps: float) -> bool:
    """Whether the rate is another one where the cost is: it is a share of what the cores, not the line, can do."""
    return offered.load is not None and possible_mpps >= cores * clock_hz / 1e6 / cycles.value * (1 - 1e-9)


def _solve(spread: CostSpread, mhz: float, own_mpps: float, offered: Offered, batches: BatchCycles | None) -> _Solved:
    from p4perf.evaluation.load.queue_sources import Law, data_law
    from p4perf.evaluation.load.queueing import System, operating_points

    step_us = spread.mean / mhz / STEPS
    # A packet takes one step at least, on a lattice that is made for the average one.
    costs = batches or BatchCycles(0.0, 0.0, 0.0)
    batch = min(costs.batch, MOST_OF_BATCH * offered.burst * spread.mean)
    times_us = np.maximum((spread.cycles - batch / offered.burst) / mhz, step_us)
    service = data_law(times_us.tolist(), spread.weights.tolist(), "service time")
    system = System(
        service, "poll", step_us, batch_cost_us=batch / mhz, idle_cost_us=costs.idle / mhz, ring=offered.ring,
        burst=offered.burst, empty_poll_us=max(costs.empty / mhz, step_us),
    )  # fmt: skip
    (point,) = operating_points(system, [Law("exponential", 1 / own_mpps)], [])
    result = point.result
    assert result is not None  # noqa: S101 - only traces have none
    return _Solved(result.loss, result.mean_us, tuple(result.quantile_us(share) for _, share in QUANTILES))


PathName = Literal["expected", "lowest-cost", "highest-cost"]
PATHS: tuple[PathName, ...] = ("expected", "lowest-cost", "highest-cost")
DEFAULT_FRAME_BYTES = 64

SHIPPED = "-shipped"
"""Behind the name of the machine of a model that ships, where another model has that name."""


@dataclass(frozen=True)
class TargetModel:
    """Prices of one target on one machine.

    Args:
        machine, here: names of the machine that the model is of, and of the one that p4perf runs on; empty if unknown.
        origin: where the model comes from: a file, or ``reference``.
        batches: what batches cost behind a ring; None if unknown.
    """

    pricing: Pricing
    machine: str
    clock_hz: float | None
    origin: str
    here: str = ""
    memory: Callable[[ProgramGraph], ProgramMemory] | None = field(default=None, compare=False)
    batches: BatchCycles | None = None

    @property
    def target(self) -> str:
        return self.pricing.target

    @property
    def elsewhere(self) -> bool:
        """Whether it is known to be of another machine than this one."""
        return bool(self.here) and self.machine.removesuffix(SHIPPED) != self.here

    @property
    def name(self) -> str:
        """``target@machine``."""
        return f"{self.target}@{self.machine}"


@dataclass(frozen=True)
class Conditions:
    """Conditions of a prediction. Not given: the frame size is that of the program or 64, nothing is offered."""

    frame_bytes: int | None = None
    cores: int = 1
    line_rate_bps: float = 10e9
    offered: Offered | None = field(default_factory=Offered)
    clock_hz: float | None = None

    def __post_init__(self) -> None:
        if self.frame_bytes is not None:
            check_frame(self.frame_bytes)
        if not 1 <= self.cores <= 4096:
            raise UsageError(f"{self.cores} cores are not possible")
        if not self.line_rate_bps > 0 or (self.clock_hz is not None and not self.clock_hz > 0):
            raise UsageError("line rates and clocks are more than zero")


@dataclass(frozen=True)
class Prediction:
    """What a model says of a program.

    Args:
        analysis: all paths through the program; their costs are sums without baseline and interaction.
        breakdowns: of the average packet; on the lowest-cost path; on the highest-cost path, mispredicted.
        changes: what was changed in the program, for people; empty for the program as it is.
    """

    graph: ProgramGraph
    model: TargetModel
    conditions: Conditions
    analysis: Analysis
    paths: Mapping[PathName, ProgramPath]
    breakdowns: Mapping[PathName, Itemised]
    spread: CostSpread
    changes: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def expected(self) -> Itemised:
        return self.breakdowns["expected"]

    def cycles(self, path: PathName = "expected") -> Estimate:
        return band(self.breakdowns[path].breakdown)

    @property
    def clock_hz(self) -> float:
        clock = self.conditions.clock_hz or self.model.clock_hz
        assert clock is not None  # noqa: S101 - checked when it was made
        return clock

    @property
    def frame_bytes(self) -> int:
        """Frame size with FCS."""
        return self.conditions.frame_bytes or self.graph.frame_bytes or DEFAULT_FRAME_BYTES

    @property
    def core_mpps(self) -> Estimate:
        """Million packets a second of one core, whatever the line carries."""
        return per_core(self.cycles(), self.clock_hz)

    @cached_property
    def sizes(self) -> tuple[SizeRate, ...]:
        wanted = sorted({*FRAME_SIZES_BYTES, self.frame_bytes})
        return tuple(self.rate_at(size) for size in wanted)

    @property
    def rate(self) -> SizeRate:
        return self.rate_at(self.frame_bytes)

    @property
    def line_rate_from(self) -> tuple[int | None, int | None, int | None]:
        """Smallest frame that fills the line: expected, and with the lower and the upper end of the rate [bytes]."""
        cores = self.core_mpps * self.conditions.cores
        ends = (cores.value, cores.low, cores.high)
        expected, low, high = (line_rate_from_bytes(end, self.conditions.line_rate_bps) for end in ends)
        return expected, low, high

    @property
    def overloaded(self) -> bool:
        """Whether the cost, or its upper end, is more than the cores can do at the offered load."""
        return self._offered is not None and self._offered[1].high > 1

    @property
    def _offered(self) -> tuple[float, Estimate] | None:
        at = self.conditions
        if at.offered is None:
            return None
        return offered_load(self.cycles(), self.clock_hz, at.cores, at.offered, self.rate.mpps.value)

    @cached_property
    def latency(self) -> LatencyAnswer | None:
        """Latency and loss, solved when they are first asked for; None if nothing is offered.

        Raises:
            UsageError: the queue cannot be solved.
        """
        at = self.conditions
        if at.offered is None:
            return None
        rate_mpps = self.rate.mpps.value
        return latency_at(
            self.spread, self.cycles(), self.clock_hz, at.cores, at.offered, rate_mpps, self.model.batches
        )

    @property
    def open_above(self) -> bool:
        """Whether something has neither a price nor a bound, so that the cost may be any amount higher."""
        return any(line.charge.basis == "unknown" for line in self.expected.lines)

    @cached_property
    def memory(self) -> ProgramMemory | None:
        """Tables and arrays, sized when they are first asked for; None if the model knows no sizes."""
        return None if self.model.memory is None else self.model.memory(self.graph)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that a reader should know."""
        lines = [line for path in PATHS for line in self.breakdowns[path].lines]
        single = {line.charge.what.where for line in lines if line.charge.basis in dict(_BASES)} - {""}
        # What a model says of single constructs is said below, of all at once.
        found = [w for w in self.expected.breakdown.warnings if not any(name in w for name in single)]
        for basis, text in _BASES:
            named = {line.label: line for line in lines if line.charge.basis == basis}
            if named:
                remarks = dict.fromkeys(line.charge.remark for line in named.values() if line.charge.remark)
                said = f" ({'; '.join(list(remarks)[:MOST_NAMED])})" if remarks else ""
                found.append(f"{text}: {_listed([f'{label} at {line.node}' for label, line in named.items()])}{said}")
        if assumed := _listed([name for name in self.analysis.assumed if self.analysis.visits[name] > 0]):
            text = f"unknown branch probabilities at {assumed}"
            found.append(f"{text}: all edges from there count the same (--probabilities)")
        if self.overloaded:
            found.append(OVERLOADED)
        return (*self.graph.remarks, *found, *(self.memory.warnings if self.memory else ()))

    @property
    def advice(self) -> tuple[str, ...]:
        """What a reader should do for a better answer, the most important first."""
        found = []
        if self.model.elsewhere:
            machines = f"{self.model.machine}; this one is {self.model.here}"
            target = self.model.target
            learn = (
                f"p4perf learn --quick -t {target} -o models/{target.replace(':', '-')}.json makes one of this machine"
            )
            found.append(f"the model is of another machine ({machines}), so the interval is wide: {learn}")
        found += [remark for remark in self.graph.remarks if OVERSIZED in remark]
        for basis, text in _BASES:
            lines = [line for line in self.expected.lines if line.charge.basis == basis]
            width = sum(line.charge.cycles.high - line.charge.cycles.low for line in lines)
            if lines and (basis == "unknown" or width > NOTABLE * self.cycles().value):
                largest = sorted(lines, key=lambda line: line.charge.cycles.low - line.charge.cycles.high)
                named = dict.fromkeys(f"{line.label} at {line.item[1] or line.item[0]}" for line in largest)
                found.append(f"{text}: {_listed(list(named), 2)}; p4perf measure says what the program costs here")
        if self.overloaded:
            found.append(OVERLOADED)
        return tuple(found)

    def path(self, name: PathName) -> ProgramPath:
        """The path of a cost breakdown; for the expected one the most probable."""
        return self.paths[name]

    def rate_at(self, frame_bytes: int) -> SizeRate:
        return size_rate(self.core_mpps, self.conditions.cores, self.conditions.line_rate_bps, frame_bytes)


def band(breakdown: CostBreakdown) -> Estimate:
    """Cycles of a cost breakdown with the interval, which does not go below what forwarding alone costs."""
    cycles = breakdown.cycles
    low = min(max(cycles.low, breakdown.baseline), cycles.value)
    return Estimate(cycles.value, low, max(cycles.high, cycles.value))


def predict(
    graph: ProgramGraph,
    model: TargetModel,
    conditions: Conditions,
    *,
    changes: tuple[str, ...] = (),
    values: Mapping[str, object] | None = None,
    met: Sequence[tuple[Construct, float]] | None = None,
    k: int = 5,
) -> Prediction:
    """Say what a program costs.

    Args:
        met: what an average packet meets, and how often; None: that by the shares of the graph.
        k: how many of the most probable and of the most expensive paths are kept.

    Raises:
        UsageError: its shares are no shares, the model says no clock, the load is too high, or the cost is not above
            zero.
        CapabilityError: the target cannot do it.
    """
    if conditions.clock_hz is None and model.clock_hz is None:
        raise UsageError(f"model {model.name} does not say the clock of its cores", hint="--frequency gives it")
    nodes = graph.nodes.items()
    kept = {n: replace(v, constructs=tuple(c for c in v.constructs if is_run(c, model.target))) for n, v in nodes}
    graph = replace(graph, nodes=kept)
    cost = node_costs(model.pricing)
    analysis = analyse(graph, cost, k=k)
    lowest, highest = extremes(graph, model.pricing, cost, analysis)
    average = itemise(model.pricing, met_in(graph, analysis.visits) if met is None else placed(graph, met))
    itemised = (average, _ordered(lowest[1], average, -1), _ordered(highest[1], average, 1))
    if model.elsewhere:
        itemised = (_widened(itemised[0]), _widened(itemised[1]), _widened(itemised[2]))
    breakdowns: dict[PathName, Itemised] = dict(zip(PATHS, itemised, strict=True))
    expected = band(breakdowns["expected"].breakdown)
    if not expected.value > 0:
        raise UsageError(f"{graph.name} costs {expected.value:g} cycles on {model.name}: there is no rate to tell")
    spread = cost_spread(graph, cost, analysis.highest_cost.cost)
    spread = spread.moved_to(expected.value, floor=max(breakdowns["expected"].breakdown.baseline, 0.0))
    taken = (analysis.most_probable[0], lowest[0], highest[0])
    paths: dict[PathName, ProgramPath] = dict(zip(PATHS, taken, strict=True))
    found = Prediction(graph, model, conditions, analysis, paths, breakdowns, spread, changes, dict(values or {}))
    _ = found.overloaded  # refuses what no queue can take
    return found


def _widened(found: Itemised) -> Itemised:
    """A cost breakdown by a model of another machine."""
    low, high = found.breakdown.low / ELSEWHERE, found.breakdown.high * ELSEWHERE
    return replace(found, breakdown=replace(found.breakdown, low=low, high=high))


def _ordered(found: Itemised, average: Itemised, sign: int) -> Itemised:
    """The cost breakdown of a path that is no lower (sign 1), or no higher (-1), than that of the average packet.

    What is known of whole programs may differ between them.
    """
    breakdown = found.breakdown
    shift = average.breakdown.cycles.value - breakdown.cycles.value
    if sign * shift <= 0:
        return found
    ends = {name: getattr(breakdown, name) + shift for name in ("interaction", "low", "high")}
    return replace(found, breakdown=replace(breakdown, **ends))


def node_costs(pricing: Pricing) -> Callable[[Node, Edge | None], float]:
    """Cost of a node that is left by an edge: the sum of the prices of its constructs, each asked for once."""
    known: dict[tuple[object, ...], float] = {}

    def price(what: Construct) -> float:
        key = (what.kind, what.sizes)
        if key not in known:
            known[key] = max(pricing.charge(what).cycles.value, 0.0)
        return known[key]

    return lambda node, edge: sum(price(what) for what in constructs_on(node, edge))


def met_in(graph: ProgramGraph, visits: Mapping[str, float]) -> list[Met]:
    """What an average packet meets, with the branches that the processor mispredicts for it."""
    found: list[Met] = []
    late = behind_lookups(graph)
    for node in sorted_nodes(graph):
        times = visits[node.name]
        if times > 0:
            found += [Met(node.name, node.kind, what, times) for what in constructs_on(node, None)]
            if guessed(node):
                wrong = mispredicted_branch("lookup" if node.name in late else "start")
                found.append(Met(node.name, node.kind, wrong, times * (1 - max(taken(node).values()))))
    if graph.source == "swx":
        turns = analyse(graph, lambda node, edge: sum(what.kind == "lookup" for what in constructs_on(node, edge)), k=0)
        wrong_turns = out_of_step(1 + turns.expected, turns.deviation**2)
        if wrong_turns:
            found.append(Met(EVERYWHERE.name, EVERYWHERE.kind, mispredicted_branch("turn"), wrong_turns))
    return found


EVERYWHERE = Node("all decisions", "condition")
"""Where mispredicted branches of several nodes stand."""


def placed(graph: ProgramGraph, met: Sequence[tuple[Construct, float]]) -> list[Met]:
    """Constructs that packets met, at the nodes in which they stand."""
    nodes = {what.where: node for node in reversed(tuple(graph.nodes.values())) for what in node.constructs}
    found = ((nodes.get(what.where, EVERYWHERE), what, times) for what, times in met)
    return [Met(node.name, node.kind, what, times) for node, what, times in found]


MOST_NAMED = 5

NOTABLE = 0.05
"""Share of the cost from which on it is worth a word how wide an interval is."""

OVERLOADED = "the load (by default 70 % of the possible rate: --load) may be more than the cores can process"

_BASES: tuple[tuple[Basis, str], ...] = (
    ("unknown", "no price and no bound is known, so that the cost may be higher by any amount"),
    ("bounded", "only bounds of the cost are known, which widens the interval"),
    ("extrapolated", "outside of what was measured"),
)


def _listed(names: Sequence[str], most: int = MOST_NAMED) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@dataclass(frozen=True)
class MeasuredPrediction:
    """A prediction, and what was measured: the median of the accepted starts with its 95 % interval."""

    prediction: Prediction
    cycles: Estimate
    starts: int
    flags: tuple[str, ...]
    folder: Path

    @property
    def error(self) -> float:
        """Predicted less measured, relative to measured; positive where the prediction is too high."""
        return self.prediction.cycles().value / self.cycles.value - 1

    @property
    def holds(self) -> bool:
        band = self.prediction.cycles()
        return band.low <= self.cycles.value <= band.high
