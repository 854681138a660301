"""Load generation at a point: the plan as data, throughput by search, loss, and latency at loads.

Everything that was seen is kept in one record: every trial of the search, what the generator can do without a device,
latencies with their histograms, and beside each the same through the link alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from p4perf.experiment.search import LoadTrial, SearchLimits, SearchResult, ndr_and_pdr, open_search
from p4perf.formats.pcap import Capture
from p4perf.programs.component import TrafficPlan
from p4perf.specs import ExperimentSpec, Point
from p4perf.specs.metrics import LOAD_METRICS
from p4perf.specs.sections import FractionLoad, RateLoad
from p4perf.targets.link import LinkPlan, interleaved
from p4perf.testbeds.loadgen.base import Account, Device, Load, LoadSession, Spacing
from p4perf.testbeds.loadgen.native import BLAMELESS

LATENCY_AT = (0.1, 0.5, 0.7)
"""Loads at which latency is measured if the spec names none, as fractions of the throughput (Scholz 2021, 2.1)."""

SEARCH_LOADS = 9
"""Loads on which a search usually decides, all trials of each of them included."""

PAUSES = 1.3
"""What a trial takes for each second of its traffic, in seconds."""

SEARCHED = ("throughput_ndr", "throughput_pdr")


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What is measured with a load generator.

    Args:
        fractions: loads that are offered, as fractions of the maximum; empty where the load is a rate or only searched.
        single: whether the point has one offered load, so that its metrics need not say which.
    """

    generator: str
    link: LinkPlan
    spacing: Spacing
    metrics: tuple[str, ...]
    rate_pps: float | None
    fractions: tuple[float, ...]
    single: bool
    search: str
    width: float
    pdr_loss_ratio: float
    exceed_ratio: float
    trials_per_load: int
    max_trials: int
    trial_s: float
    latency_s: float
    served: bool = field(default=False, repr=False)
    """Whether all metrics of the target come from its load, by an overload of program and baseline. It follows from
    target and testbed, and is no part of what the point is."""

    @property
    def searches(self) -> bool:
        """Whether the throughput has to be found."""
        return bool(set(self.metrics) & set(SEARCHED)) or bool(self.fractions)

    @property
    def of_search(self) -> LoadPlan:
        """What decides on the throughput: equal for points that differ in their offered loads only."""
        return replace(self, metrics=(), rate_pps=None, fractions=(), single=False, latency_s=0.0)

    @property
    def expected_s(self) -> float:
        """What one repetition takes, roughly."""
        search_s = SEARCH_LOADS * self.trials_per_load * PAUSES * self.trial_s if self.searches else 0.0
        offered = len(self.fractions) + (self.rate_pps is not None)
        return 1.0 + search_s + self.trial_s * (1 + self.saturates) + 2 * self.latency_s * offered

    @property
    def saturates(self) -> bool:
        """Whether more is offered than the device takes."""
        return self.served or "receive_rate" in self.metrics


def load_plan(
    spec: ExperimentSpec,
    point: Point,
    links: Sequence[str] = ("ring",),
    capture: Capture | None = None,
    *,
    generator: str = "native",
    served: bool = False,
) -> LoadPlan:
    """What the load generator does at a point of an experiment.

    Args:
        links: of the target, the fastest first.
        capture: of which the frames are sent instead of those of the point.
        generator: load generator of the testbed, if the spec names none.
        served: whether all metrics of the target come from its load.
    """
    traffic, load = point.traffic, spec.load
    offered = traffic.offered_load
    asked = {*spec.metrics.collect, *spec.metrics.optional}
    fractions: tuple[float, ...] = ()
    if isinstance(offered, FractionLoad):
        fractions = tuple(float(f) for f in offered.fraction_of_max)
    elif not isinstance(offered, RateLoad) and "latency" in asked:
        fractions = tuple(float(f) for f in traffic.latency_at) or LATENCY_AT
    recorded_pps = capture.rate_pps if capture and traffic.replay and traffic.replay.timing == "recorded" else None
    if recorded_pps is not None:
        fractions = ()
    burst = traffic.burst
    return LoadPlan(
        generator=load.generator or generator,
        link=LinkPlan(
            load.link or next(iter(links), "interfaces"),
            load.slots,
            interleaved(traffic.mix) if traffic.mix else (),
            capture,
        ),
        spacing=Spacing(
            "recorded" if recorded_pps is not None else str(traffic.pattern),
            int(burst.length) if burst else 32,
            float(burst.gap_us) if burst and burst.gap_us is not None else None,
            burst.spacing_ns if burst else 0.0,
        ),
        metrics=tuple(m for m in LOAD_METRICS if m in asked),
        rate_pps=1e6 * float(offered.rate_mpps) if isinstance(offered, RateLoad) else recorded_pps,
        fractions=fractions,
        single=isinstance(offered, RateLoad)
        or recorded_pps is not None
        or (isinstance(offered, FractionLoad) and len(fractions) == 1),
        search=load.search,
        width=load.width,
        pdr_loss_ratio=load.pdr_loss_ratio,
        exceed_ratio=load.exceed_ratio,
        trials_per_load=load.trials_per_load,
        max_trials=load.max_trials,
        trial_s=1e-3 * load.trial_ms,
        latency_s=1e-3 * load.latency_ms,
        served=served,
    )


def without_load(traffic: TrafficPlan) -> TrafficPlan:
    """The traffic of a target that is its own packet source, beside a load generator that takes care of the load."""
    return replace(traffic, pattern="cbr", offered_load_mpps=None, latency_at=())


RECORD_VERSION = 1

WARMUP_S = 0.05
"""Traffic before anything is measured: caches, tables and clocks settle."""

GENERATOR_SHARE = 0.9
"""Loads are searched up to this share of what the generator reaches without a device; beyond it its pace suffers."""

LOWEST_PACKETS = 20
"""Packets of a trial of the lowest load."""

FIRST_TRIALS = 4
"""The first trials of a search, which decide on nothing, are shorter than the last ones by this factor."""

SEARCH_S = 600.0
"""A search may take so long, or as long as all of its trials where the generator has none so short."""

LEAST_COUNTED = 0.4
"""Share of the traffic of a trial that must be undisturbed for the trial to count; only that share is judged."""

ATTEMPTS = 4
"""Most trials of an offered load while trials are disturbed; the least disturbed one counts."""


class LoadMeasurement:
    """One repetition of a point with a load generator.

    Args:
        found: the record of a search for the same throughput in this repetition, which is not made again.
        attempts: most trials of a load while they are disturbed.
    """

    def __init__(
        self,
        session: LoadSession,
        plan: LoadPlan,
        seed: int,
        gate_ratio: float | None,
        found: Mapping[str, Any] | None = None,
        *,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._session, self._plan, self._seed, self._gate_ratio = session, plan, seed, gate_ratio
        self._found, self._attempts = found, attempts
        self._trial_s = max(plan.trial_s, session.shortest_s)
        self._latency_s = max(plan.latency_s, session.shortest_s)

    def measure(self) -> dict[str, Any]:
        """Everything that the plan asks for.

        Returns:
            The record, as JSON data: ``generator``, ``link``, ``ready``, ``alone`` (an overload without a device, None
            if there is none), ``search``, ``overload``, ``offered`` (a list of loads) and ``baseline`` (an overload of
            it), what is not asked for or not there left out.

        Raises:
            MeasurementError: the device died, hangs or loses every packet.
        """
        plan = self._plan
        record: dict[str, Any] = {
            "record_version": RECORD_VERSION,
            "generator": plan.generator,
            "link": {"kind": plan.link.kind, "slots": plan.link.slots},
            "ready": dict(self._session.ready),
            "alone": None,
        }
        generator_pps = 0.0
        if "null" in self._session.devices:
            self._offer(None, WARMUP_S)
            alone = self._undisturbed(None, self._trial_s, "null")
            record["alone"] = _account_record(alone)
            generator_pps = alone.receive_rate_pps
        maximum_pps: float | None = None
        if plan.saturates or not generator_pps:
            overload = self._undisturbed(None, self._trial_s)
            record["overload"] = _account_record(overload)
            generator_pps = generator_pps or overload.rate_pps
        if plan.searches:
            found = self._found or _search_record(self._search(generator_pps))
            record["search"] = dict(found)
            # Of a search for one bound only, that one; else the load without loss, or the one with little.
            maximum_pps = next((b["lower_pps"] for b in found["bounds"].values() if b["lower_pps"]), None)
        loads: list[tuple[float | None, float]] = [(None, plan.rate_pps)] if plan.rate_pps is not None else []
        loads += [(f, f * maximum_pps) for f in plan.fractions if maximum_pps]
        record["offered"] = [self._offered(fraction, rate) for fraction, rate in loads]
        if plan.served:
            # Last, because another program has to be loaded for it.
            record["baseline"] = _account_record(self._undisturbed(None, self._trial_s, "baseline"))
        return record

    def _search(self, generator_pps: float) -> SearchResult:
        plan = self._plan
        lowest_pps = LOWEST_PACKETS / self._trial_s
        highest_pps = max(GENERATOR_SHARE * generator_pps, 2 * lowest_pps)
        longest_s = max(SEARCH_S, plan.max_trials * self._session.shortest_s)
        limits = SearchLimits(lowest_pps, highest_pps, plan.max_trials, longest_s)
        goals = ndr_and_pdr(
            self._trial_s,
            trials_per_load=plan.trials_per_load,
            exceed_ratio=plan.exceed_ratio,
            width=plan.width,
            pdr_loss_ratio=plan.pdr_loss_ratio,
            initial_trial_duration_s=max(self._trial_s / FIRST_TRIALS, self._session.shortest_s),
        )
        return open_search(plan.search).find(self._trial, goals, limits)

    def _trial(self, load_pps: float, duration_s: float) -> LoadTrial:
        begun = time.monotonic()
        account = self._offer(load_pps, duration_s)
        took_s = time.monotonic() - begun
        counted = account.counted
        if counted is not None and counted.share >= LEAST_COUNTED:
            lost = counted.lost + counted.planned - counted.sent
            return LoadTrial(load_pps, duration_s, counted.sent, lost, took_s, counted_s=counted.share * duration_s)
        lost = account.lost + account.planned - account.sent
        valid = not set(account.flags) & set(BLAMELESS)
        return LoadTrial(load_pps, duration_s, account.sent, lost, took_s, valid=valid)

    def _offered(self, fraction: float | None, rate_pps: float | None) -> dict[str, Any]:
        """One offered load: through the program, and through the link alone."""
        latency = "latency" in self._plan.metrics
        account = self._undisturbed(rate_pps, self._latency_s, latency=latency)
        entry = {"fraction": fraction, "rate_pps": rate_pps, "program": _account_record(account)}
        if latency and "null" in self._session.devices:
            entry["floor"] = _account_record(self._undisturbed(rate_pps, self._latency_s, "null", latency=True))
        return entry

    def _undisturbed(
        self, rate_pps: float | None, duration_s: float, device: Device = "program", *, latency: bool = False
    ) -> Account:
        """The first trial without a flag, or the one with the fewest."""
        tried: list[Account] = []
        for _ in range(self._attempts):
            tried.append(self._offer(rate_pps, duration_s, device, latency=latency))
            if not set(tried[-1].flags) & {*BLAMELESS, "rate_off_target", "drift"}:
                break
        return min(tried, key=lambda account: len(account.flags))

    def _offer(
        self, rate_pps: float | None, duration_s: float, device: Device = "program", *, latency: bool = False
    ) -> Account:
        self._seed += 1
        load = Load(rate_pps, duration_s, self._plan.spacing, latency, device, self._seed)
        return self._session.offer(load, self._gate_ratio)


_KEPT = ("planned", "sent", "received", "lost", "duplicated", "reordered", "dropped", "rate_pps", "receive_rate_pps")


def _account_record(account: Account) -> dict[str, Any]:
    """An account as JSON data, with what the generator printed."""
    kept = {name: getattr(account, name) for name in _KEPT}
    return {**kept, "flags": list(account.flags), "raw": dict(account.raw)}


def _search_record(result: SearchResult) -> Mapping[str, Any]:
    discarded = set(result.discarded)
    return {
        "method": result.method,
        "end": str(result.end),
        "duration_s": round(result.duration_s, 3),
        "bounds": {
            name: {
                "lower_pps": bounds.lower_pps,
                "upper_pps": bounds.upper_pps,
                "throughput_pps": bounds.throughput_pps,
                "flags": [str(f) for f in bounds.flags],
            }
            for name, bounds in result.bounds.items()
        },
        "trials": [
            [
                *(t.intended_load_pps, t.intended_duration_s, t.sent, t.lost, int(t.valid), int(n not in discarded)),
                t.counted_s,
            ]
            for n, t in enumerate(result.trials)
        ],
    }
