"""Checks of Gebert et al. 2016, "Performance Modeling of Softwarized Network Functions Using Discrete-Time Analysis".

A lattice step is 1 us. Operating points are written ``ARRIVALS MEAN MODERATION``, such as ``nbin 8 200``, with the four
distributions of the paper: det, pois (a Poisson pmf of the time between packets), geo and nbin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise, product
from typing import Literal

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.papers.claims import Quantity, number_of
from p4perf.evaluation.papers.gebert2016 import printed_result
from p4perf.models.eo.mapping import MIN_FRAME_BYTES, OVERHEAD_BYTES
from p4perf.models.queue import Lattice, ModeratedQueue, QueueResult, distributions
from p4perf.models.queue.simulation import simulate

ARRIVALS: Mapping[str, Callable[[float], Lattice]] = {
    "det": distributions.deterministic,
    "pois": distributions.poisson_pmf,
    "geo": distributions.geometric,
    "nbin": distributions.negative_binomial,
}
OVERHEAD_US = 4
"""Work of an interrupt (section V-C)."""
LIMIT_US = 5200
"""What the buffer holds (section V-C)."""

SERVICE = (
    *(0.05394, 0.113673, 0.148623, 0.151634, 0.134337, 0.109314, 0.084383),
    *(0.063007, 0.046075, 0.033269, 0.02385, 0.017039, 0.012164, 0.008692),
)
"""Probabilities of service times of 3 to 16 us: mean 7.25 us, as in section V-B, cut at the same 16 us. The paper draws
its measured distribution (figure 6b) and prints none; this one is log-normal in shape."""
FIRST_SERVICE_US = 3

Profile = Literal["exact", "printed"]
"""The equations corrected, or as the paper prints them."""

Number = Literal[
    "mean_us", "std_us", "loss_percent", "load", "packet_load", "mean_batch", "mean_interval_us", "p50_us", "p99_us"
]


def queue_point(point: str, profile: Profile = "exact", overhead: int = OVERHEAD_US) -> dict[str, Quantity]:
    """Processing time, loss, load and batch size at an operating point.

    ``max_wait_us`` is the longest processing time less the interval and the longest service.
    """
    found = _solved(point, profile, overhead)
    return {
        "mean_us": found.mean_us,
        "std_us": found.std_us,
        "p50_us": found.quantile_us(0.5),
        "p99_us": found.quantile_us(0.99),
        "max_wait_us": found.max_us - _parsed(point)[2] - _service().last,
        "loss_percent": 100 * found.loss,
        "load": found.load,
        "packet_load": found.packet_load,
        "mean_batch": found.mean_batch,
        "mean_interval_us": found.mean_interval * found.step_us,
    }


SIMULATED_PACKETS = 1_000_000


def over_simulation(point: str, profile: Profile = "exact") -> dict[str, Quantity]:
    """Interval of batches, and mean, deviation and quantiles of the processing time, over those that are simulated."""
    kind, mean, moderation = _parsed(point)
    queue = ModeratedQueue(ARRIVALS[kind](mean), _service(), moderation, OVERHEAD_US, LIMIT_US)
    seen, found = simulate(queue, SIMULATED_PACKETS), _solved(point, profile, OVERHEAD_US)
    return {
        "interval": found.mean_interval / (seen.mean_batch.value * mean),
        "mean": found.mean_us / seen.mean_us.value,
        "std": found.std_us / seen.std_us.value,
        "p50": found.quantile_us(0.5) / seen.quantiles_us[0.5].value,
        "p99": found.quantile_us(0.99) / seen.quantiles_us[0.99].value,
    }


def queue_ratio(quantity: Number, first: str | tuple[str, ...], second: str | tuple[str, ...]) -> dict[str, Quantity]:
    """A number at one operating point over the same at another, or such ratios of several pairs.

    A single point is the partner of all.
    """
    firsts, seconds = ((points,) if isinstance(points, str) else points for points in (first, second))
    ratios = []
    for one, other in zip(firsts, seconds * len(firsts) if len(seconds) == 1 else seconds, strict=True):
        over = number_of(queue_point(other), quantity)
        ratios.append(number_of(queue_point(one), quantity) / over if over else math.inf)
    return {"ratio": ratios[0] if len(ratios) == 1 else tuple(ratios)}


def queue_spread(quantity: Number, arrivals: tuple[str, ...], mean: float, moderation: int) -> dict[str, Quantity]:
    """Largest less smallest of a number over kinds of arrivals, as a share of the smallest."""
    points = [queue_point(f"{kind} {mean:g} {moderation}") for kind in arrivals]
    found = [number_of(point, quantity) for point in points]
    return {
        "spread": (max(found) - min(found)) / min(found),
        "values": tuple(found),
        "largest_std_us": max(number_of(point, "std_us") for point in points),
    }


def queue_loss(
    arrivals: tuple[str, ...], means: tuple[float, ...], moderations: tuple[int, ...], profile: Profile = "exact"
) -> dict[str, Quantity]:
    """Least and largest loss over kinds of arrivals, mean times between packets and intervals, in per cent."""
    points = [f"{kind} {mean:g} {moderation}" for kind, mean, moderation in product(arrivals, means, moderations)]
    found = [number_of(queue_point(point, profile), "loss_percent") for point in points]
    return {"least_percent": min(found), "most_percent": max(found)}


def loss_gap(first: str, second: str, means: tuple[float, ...], moderation: int) -> dict[str, Quantity]:
    """By how much less one kind of arrivals loses than another, at most, in per cent of that one's loss."""
    gaps = []
    for mean in means:
        losses = [number_of(queue_point(f"{kind} {mean:g} {moderation}"), "loss_percent") for kind in (first, second)]
        gaps.append(100 * (1 - losses[0] / losses[1]) if losses[1] else 0.0)
    return {"gap_percent": max(gaps)}


def queue_distance(first: str, second: str) -> dict[str, Quantity]:
    """Largest difference between the distribution functions of the processing time at two operating points."""
    return {"distance": _distance(first, second)}


def queue_nearer(arrivals: str, near: str, far: str, means: tuple[float, ...], moderation: int) -> dict[str, Quantity]:
    """Whether the processing times of a kind of arrivals are nearer to those of a second than to those of a third one.

    By mean time between packets, as is ``mean_over_far``, the mean processing time over that of the third kind.
    """
    points = [[f"{kind} {mean:g} {moderation}" for kind in (arrivals, near, far)] for mean in means]
    to_near, to_far = (tuple(_distance(row[0], row[i]) for row in points) for i in (1, 2))
    return {
        "nearer": tuple(one < other for one, other in zip(to_near, to_far, strict=True)),
        "to_near": to_near,
        "to_far": to_far,
        "mean_over_far": tuple(number_of(queue_ratio("mean_us", row[0], row[2]), "ratio") for row in points),
    }


def queue_convergence(first: str, second: str, means: tuple[float, ...], moderation: int) -> dict[str, Quantity]:
    """The distance of :func:`queue_distance` for growing means, and whether it falls all the way."""
    found = tuple(_distance(f"{first} {mean:g} {moderation}", f"{second} {mean:g} {moderation}") for mean in means)
    return {"distances": found, "falling": all(a > b for a, b in pairwise(found)), "last": found[-1]}


def queue_over(quantity: Number, points: tuple[str, ...]) -> dict[str, Quantity]:
    """A number over operating points: its values, and where the smallest is."""
    values = tuple(number_of(queue_point(point), quantity) for point in points)
    lowest = values.index(min(values))
    return {
        "values": values,
        "first_over_last": values[0] / values[-1],
        "falls_first": values[0] > values[1],
        "rises_last": values[-1] > values[lowest],
        "lowest_at": points[lowest],
    }


def queue_segments(point: str, profile: Profile = "exact") -> dict[str, Quantity]:
    """How many peaks the distribution of the processing time has, and the mean batch."""
    found = _solved(point, profile, OVERHEAD_US)
    dense = found.delay.dense(found.delay.last + 2)
    peaks = sum(1 for i in range(1, dense.size - 1) if dense[i - 1] < dense[i] >= dense[i + 1])
    return {"segments": peaks, "mean_batch": found.mean_batch}


def batch_over_share(arrivals: str, mean: float, moderations: tuple[int, ...]) -> dict[str, Quantity]:
    """The mean batch over tau / E[A], by interval."""
    points = {tau: queue_point(f"{arrivals} {mean:g} {tau}") for tau in moderations}
    return {"ratio": tuple(number_of(found, "mean_batch") * mean / tau for tau, found in points.items())}


def waiting_in_card(point: str, packet: int) -> dict[str, Quantity]:
    """Mean time that the i-th packet of a batch waits in the card, by Eq. 5 and of batches that have one [us]."""
    kind, mean, moderation = _parsed(point)
    arrival = ARRIVALS[kind](mean)
    after = np.ones(1)
    for _ in range(packet - 1):
        after = np.convolve(after, arrival.dense(arrival.last + 1))
    left = np.maximum(moderation - np.arange(after.size), 0)
    printed, conditioned = float(after @ left), float(after @ left / after[left > 0].sum())
    return {"printed_us": printed, "conditioned_us": conditioned, "over_conditioned": printed / conditioned}


def line_rate(gbps: tuple[float, ...]) -> dict[str, Quantity]:
    """The smallest frames that links carry, and what bits of frames alone would give [packets per second]."""
    size = {"pps": MIN_FRAME_BYTES + OVERHEAD_BYTES, "frames_alone_pps": MIN_FRAME_BYTES}
    return {name: tuple(1e9 * rate / 8 / frame for rate in gbps) for name, frame in size.items()}


def overhead_share() -> dict[str, Quantity]:
    """The share of its time that the processor spends on interrupts if every packet has its own."""
    return {"share": OVERHEAD_US / (OVERHEAD_US + _service().mean)}


def interrupt_load(per_second: float, point: str) -> dict[str, Quantity]:
    """The share of a core that a rate of interrupts takes, and the rate that the arriving packets cause."""
    interval = _solved(point, "exact", OVERHEAD_US).mean_interval
    return {"load": per_second * OVERHEAD_US / 1e6, "of_arrivals_per_s": 1e6 / interval}


def arrival_shape(arrivals: str, mean: float) -> dict[str, Quantity]:
    """Coefficient of variation and support of a distribution of the time between packets."""
    found = ARRIVALS[arrivals](mean)
    return {"cv": found.cv, "mean": found.mean, "first": found.first}


def geometric_is_negative_binomial(mean: float) -> dict[str, Quantity]:
    """The r of the negative binomial distribution of this mean, by its moments; the geometric one has r = 1."""
    found = ARRIVALS["nbin"](mean)
    return {"r": found.mean**2 / ((found.cv * found.mean) ** 2 - found.mean)}


def buffer_limit(service_us: float, buffer_bytes: float, payload_bytes: float) -> dict[str, Quantity]:
    """Section V-C: L as the work of the packets that fit into the buffer [us]."""
    return {"limit_us": service_us * buffer_bytes / payload_bytes}


def service_time() -> dict[str, Quantity]:
    """Mean and largest of the service times that are taken here [us]."""
    service = _service()
    return {"mean_us": service.mean, "max_us": service.last}


def packets_per_second(interarrival_us: float) -> dict[str, Quantity]:
    return {"pps": 1e6 / interarrival_us}


def load_approximation(mean: float, moderation: int) -> dict[str, Quantity]:
    """Eq. 10 and both forms of Eq. 14, for arrivals ``nbin``."""
    arrival, service = ARRIVALS["nbin"](mean), _service()
    exact = queue_point(f"nbin {mean:g} {moderation}")
    # The recurrence time as a renewal process has it: P(A > k) / E[A].
    beyond = np.maximum(1.0 - np.cumsum(arrival.dense(arrival.last)), 0.0)
    recurrence = float((beyond / beyond.sum()) @ np.arange(beyond.size))
    return {
        "equation_10": exact["packet_load"],
        "with_interrupts": exact["load"],
        "middle_form": moderation * service.mean / (mean * (recurrence + moderation)),
        "last_form": service.mean / mean,
    }


def largest_accepted_work(mean: float, moderation: int, limit: int) -> dict[str, Quantity]:
    """The most work that an accepted packet found in front of it in overload [us]."""
    service = _service()
    queue = ModeratedQueue(ARRIVALS["geo"](mean), service, moderation, OVERHEAD_US, limit)
    # The longest time is that of the first packet of a batch: the interval, the work in front, its own service.
    return {"work_us": queue.solve().delay.last - moderation - service.last}


def overhead_effect(point: str) -> dict[str, Quantity]:
    """By how much the work of an interrupt raises the mean processing time, as printed and corrected [us]."""
    printed, exact = (
        _solved(point, profile, OVERHEAD_US).mean_us - _solved(point, profile, 0).mean_us
        for profile in ("printed", "exact")
    )
    return {"printed_us": printed, "corrected_us": exact}


def conservation(point: str) -> dict[str, Quantity]:
    """Wald's identity: mean batch times mean time between packets, over the mean interval between batches.

    ``residual`` is how far the unfinished work is from being the same before each batch.
    """
    found = _solved(point, "exact", OVERHEAD_US)
    mean = _parsed(point)[1]
    return {
        "wald": found.mean_batch * mean / found.mean_interval,
        "balance": abs(found.balance),
        "residual": found.residual,
    }


def _parsed(point: str) -> tuple[str, float, int]:
    try:
        kind, mean, moderation = point.split()
        return kind, float(mean), int(moderation)
    except ValueError:
        raise UsageError(f"invalid operating point {point!r}", hint="write nbin 8 200") from None


@cache
def _solved(point: str, profile: Profile, overhead: int) -> QueueResult:
    kind, mean, moderation = _parsed(point)
    if kind not in ARRIVALS:
        raise UsageError(f"there are no arrivals {kind!r}", hint=f"known: {', '.join(ARRIVALS)}")
    queue = ModeratedQueue(ARRIVALS[kind](mean), _service(), moderation, overhead, LIMIT_US)
    return queue.solve() if profile == "exact" else printed_result(queue)


def _service() -> Lattice:
    return Lattice(np.array(SERVICE), FIRST_SERVICE_US)


def _distance(first: str, second: str) -> float:
    one, other = (_solved(point, "exact", OVERHEAD_US).delay for point in (first, second))
    length = max(one.last, other.last) + 1
    return float(np.abs(np.cumsum(one.dense(length)) - np.cumsum(other.dense(length))).max())
