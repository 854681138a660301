"""What a load generator does at a point, in one piece of data that is part of what the point is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p4perf.generators.base import TrafficPlan
from p4perf.specs import ExperimentSpec, Point
from p4perf.specs.captures import Capture
from p4perf.specs.metrics import LOAD_METRICS
from p4perf.specs.traffic_schema import FractionLoad, RateLoad
from p4perf.targets.link import LinkPlan, interleaved
from p4perf.testbeds.loadgen.base import Spacing

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
        generator: name of the load generator.
        link: how it reaches the device.
        spacing: how packets are spaced.
        metrics: those of :data:`~p4perf.specs.metrics.LOAD_METRICS` that are asked for.
        rate_pps: the offered load, where it is a rate.
        fractions: loads that are offered, as fractions of the maximum; empty where the load is a rate or only searched.
        single: whether the point has one offered load, so that its metrics need not say which.
        search: method of the search.
        width, pdr_loss_ratio, exceed_ratio, trials_per_load, max_trials: options of the search.
        trial_s: duration of its trials, in seconds.
        latency_s: duration of a trial at an offered load, in seconds.
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
        spec: the experiment.
        point: of it.
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
