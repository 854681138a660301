"""Queue models with units: operating points, and what was measured beside them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.datafiles import csv_records
from p4perf.evaluation.load.queue_sources import Law, number_in
from p4perf.models.queue import Bernoulli, Lattice, ModeratedQueue, Poisson, PollQueue, QueueResult
from p4perf.models.queue.moderated import SecondMethod, second_method
from p4perf.models.queue.simulation import Estimated, Simulated, simulate
from p4perf.results import Run
from p4perf.results.files import read_text

Mode = Literal["moderated", "poll"]
ROUNDED = 0.02
"""A constant time that a lattice changes by more than this share does not fit it."""


@dataclass(frozen=True)
class System:
    """A processor and what stands in front of it.

    An interrupt costs ``overhead_us``; in poll mode a batch costs ``batch_cost_us``, ``idle_cost_us`` more behind a
    poll that finds nothing, which takes ``empty_poll_us``. ``buffer_us`` is the work that the buffer holds, None if it
    never overflows.
    """

    service: Law
    mode: Mode
    step_us: float
    overhead_us: float = 0.0
    buffer_us: float | None = None
    batch_cost_us: float = 0.0
    ring: int = 1024
    burst: int = 32
    empty_poll_us: float = 0.0
    idle_cost_us: float = 0.0

    def moderated(self, arrivals: Law, moderation_us: float) -> ModeratedQueue:
        """The system behind a card that moderates interrupts."""
        limit = None
        if self.buffer_us is not None:
            limit = steps_of(self.buffer_us, self.step_us, "the buffer")
        return ModeratedQueue(
            arrivals.on_lattice(self.step_us),
            self.service.on_lattice(self.step_us),
            steps_of(moderation_us, self.step_us, "the moderation interval"),
            Law("det", self.overhead_us).on_lattice(self.step_us),
            limit,
            self.step_us,
        )

    def polled(self, arrivals: Law) -> PollQueue:
        mean = arrivals.mean_us / self.step_us
        process: Lattice | Poisson | Bernoulli
        if arrivals.kind == "exponential":
            process = Poisson(mean)
        elif arrivals.kind == "geometric":
            process = Bernoulli(mean)
        else:
            process = arrivals.on_lattice(self.step_us)
        return PollQueue(
            process,
            self.service.on_lattice(self.step_us),
            Law("det", self.batch_cost_us).on_lattice(self.step_us),
            self.ring,
            self.burst,
            max(round(self.empty_poll_us / self.step_us), 1),
            self.step_us,
            Law("det", self.idle_cost_us).on_lattice(self.step_us),
        )


def steps_of(time_us: float, step_us: float, what: str) -> int:
    """A time in whole steps, which may change it by 2 % at most."""
    steps = round(time_us / step_us)
    if steps < 1 or abs(steps * step_us / time_us - 1) > ROUNDED:
        hint = "give a finer --lattice"
        raise UsageError(f"the lattice is too coarse: {what} is {time_us / step_us:.4g} of its steps", hint=hint)
    return steps


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """One row: what was asked, and what came out.

    ``simulated`` and ``agreement`` are there where they were asked for; ``result`` is None where there is only the
    simulation of a trace.
    """

    arrivals: Law
    moderation_us: float | None
    result: QueueResult | None
    simulated: Simulated | None = None
    agreement: SecondMethod | None = None

    @property
    def rate_mpps(self) -> float:
        return 1 / self.arrivals.mean_us

    def row(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "arrivals": self.arrivals.text or self.arrivals.kind,
            "rate_mpps": self.rate_mpps,
            "interarrival_us": self.arrivals.mean_us,
            "moderation_us": self.moderation_us,
        }
        r = self.result
        out |= {name: r and getattr(r, name) for name in ("load", "utilisation", "loss", "mean_us", "std_us")}
        for share, name in ((0.5, "p50_us"), (0.9, "p90_us"), (0.99, "p99_us"), (0.999, "p999_us")):
            out[name] = r and r.quantile_us(share)
        out["mean_batch"] = r and r.mean_batch
        s = self.simulated
        if s is not None:
            out |= {
                "simulated_mean_us": s.mean_us.value, "simulated_mean_ci_us": s.mean_us.half_width,
                "simulated_p50_us": s.quantiles_us[0.5].value, "simulated_p99_us": s.quantiles_us[0.99].value,
                "simulated_loss": s.loss.value, "simulated_loss_ci": s.loss.half_width,
            }  # fmt: skip
        if self.agreement is not None:
            out["second_method"] = self.agreement.largest
        return out


def operating_points(
    system: System,
    arrivals: Sequence[Law],
    moderations_us: Sequence[float],
    *,
    solve: Callable[[ModeratedQueue], QueueResult] = ModeratedQueue.solve,
    check: bool = False,
    packets: int = 0,
    seed: int = 1,
) -> list[OperatingPoint]:
    """Every kind of arrivals with every moderation interval.

    Args:
        moderations_us: intervals [us]; not used in poll mode.
        check: solve by the second method as well; moderated systems with a buffer only.
        packets: packets that are simulated for each point; 0: none. A trace is always simulated as it is.
    """
    intervals: Sequence[float | None] = moderations_us if system.mode == "moderated" else [None]

    def point(law: Law, interval: float | None) -> OperatingPoint:
        queue = system.polled(law) if interval is None else system.moderated(law, interval)
        traced = law.ordered and packets > 0
        result, agreement, seen = None, None, None
        try:
            result = solve(queue) if isinstance(queue, ModeratedQueue) else queue.solve()
        except UsageError:
            # A trace has a simulation in any case.
            if not traced:
                raise
        if check and isinstance(queue, ModeratedQueue) and queue.limit is not None:
            agreement = second_method(queue, result.seen) if result is not None and result.seen is not None else None
        if packets:
            gaps = [v / system.step_us for v in law.values_us] if traced else None
            seen = simulate(queue, packets, gaps=gaps, seed=seed)
        return OperatingPoint(law, interval, result, seen, agreement)

    return [point(law, interval) for interval in intervals for law in arrivals]


METRICS = {"latency_mean": "mean_us", "latency_p50": "p50_us", "latency_p99": "p99_us", "loss_ratio": "loss"}
"""Metrics of a run, and what they are called here."""
NAMES = tuple(METRICS.values())


@dataclass(frozen=True)
class MeasuredLoad:
    """One offered load: ``mean_us``, ``p50_us``, ``p99_us`` and ``loss``, as far as they are known.

    Intervals (95 %) are over the repetitions.
    """

    rate_mpps: float
    values: dict[str, Estimated]

    def row(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, found in self.values.items():
            out[f"measured_{name}"] = found.value
            out[f"measured_{name}_ci"] = found.half_width if math.isfinite(found.half_width) else None
        return out


def read_measured(path: Path) -> tuple[MeasuredLoad, ...]:
    """The measurements of a run whose points have one offered load each, or of a CSV file.

    A CSV file has a column ``rate_mpps`` or ``interarrival_us``, and columns of ``mean_us``, ``p50_us``, ``p99_us``
    and ``loss`` as far as they are known. Several lines with the same rate are repetitions.

    Raises:
        UsageError: there is no such file or run, or the run has no latency at loads.
        DataError: it is damaged.
    """
    if not path.exists():
        raise UsageError(f"there is no run directory or file {path}")
    return _of_run(path) if path.is_dir() else _of_csv(path)


def _of_run(path: Path) -> tuple[MeasuredLoad, ...]:
    table = Run.open(path).table
    table = table[table["accepted"]]
    found = []
    for _, rows in table.groupby("point_index", sort=True):
        rates = rows[rows["metric"] == "offered_rate"]["value"].astype(float).tolist()
        values = {
            name: Estimated.of([float(v) for v in rows[rows["metric"] == metric]["value"]])
            for metric, name in METRICS.items()
            if (rows["metric"] == metric).any()
        }
        if rates and any(name != "loss" for name in values):
            found.append(MeasuredLoad(sum(rates) / len(rates), values))
    if not found:
        hint = "a run of load/rate has, or any with one load a point"
        raise UsageError(f"the run {path} has no latency at offered loads", hint=hint)
    return tuple(sorted(found, key=lambda m: m.rate_mpps))


def _of_csv(path: Path) -> tuple[MeasuredLoad, ...]:
    names, where, records = csv_records(read_text(path).removeprefix("\ufeff"), str(path))
    rate = next((name for name in ("rate_mpps", "interarrival_us") if name in names), None)
    known = [name for name in NAMES if name in names]
    if rate is None or not known:
        raise DataError("needs a column rate_mpps or interarrival_us, and one of " + ", ".join(NAMES), location=where)
    groups: dict[float, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, cells in records:
        at = number_in(cells, rate, place)
        if at <= 0:
            raise DataError(f"{rate} is not more than zero", location=place)
        for name in known:
            groups[at if rate == "rate_mpps" else 1 / at][name].append(number_in(cells, name, place))
    if not groups:
        raise DataError("has a header but no rows", location=where)
    return tuple(
        MeasuredLoad(at, {name: Estimated.of(values) for name, values in groups[at].items()}) for at in sorted(groups)
    )


def nearest(measured: Sequence[MeasuredLoad], rate_mpps: float, *, within: float = 1e-3) -> MeasuredLoad | None:
    close = [m for m in measured if abs(m.rate_mpps / rate_mpps - 1) <= within]
    return min(close, key=lambda m: abs(m.rate_mpps - rate_mpps), default=None)
