"""CESim: packets per second of virtual network I/O as a function of the hit ratio of the L1 cache (Takeya 2024).

A packet takes some processing that knows no memory, and N loads. In the parallelised model the loads overlap as long as
all of them hit; a miss cancels the overlap, so that all N0 loads of the packet are paid one after another. Symbols:

* T0 ``best_mpps``: throughput at a hit ratio of 1, in Mpps; t0 = 1000 / T0 is its time per packet in ns
* N0 ``accesses_per_packet``: loads per packet
* alpha: share of t0 that is pure processing; L_proc = alpha t0
* N = (1 - alpha) t0 / l_L1: loads per packet that are paid one after another, where all hit
* beta = N0 / N: acceleration by overlap
* r: hit ratio of L1; L1+(r), L2+, L3+: mean latency of an access that looks into that level, in ns

    L3+ = l_L3 + (1 - r3) l_mem,   L2+ = l_L2 + (1 - r2) L3+,   L1+(r) = l_L1 + (1 - r) L2+

    simple (eq. 3):         T(r) = 1000 / (L_proc + N L1+(r))
    parallelised (eq. 10):  T(r) = 1000 / (L_proc + N*(r) L1+(r)),  N*(r) = r^beta N + (1 - r^beta) N0

``beta1`` is eq. 10 with an exponent of 1, the acceleration disabled; it is not eq. 3. Before the revision of 2024-12-08
the latency of each level was weighted with its hit ratio (L1+(r) = r l_L1 + (1 - r) L2+, and so on): ``pre-fix``.

Source: CESim, https://github.com/sdnnitech/CESim, f06ac39 (2024-12-08) and 6dc794f (2023-02-14); the parameters are
those that it ships, for an i9-11900K. They come from counters that also ran while the processes waited for their start,
so N0 is far above the loads of a packet; results scale with it (see :meth:`CacheModel.tipping_point`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, UsageError
from p4perf.models.templates import FloatArray
from p4perf.records import Record, doc

Variant = Literal["simple", "beta1", "parallelised"]
VARIANTS: tuple[Variant, ...] = ("simple", "beta1", "parallelised")

Revision = Literal["fixed", "pre-fix"]
REVISIONS: tuple[Revision, ...] = ("fixed", "pre-fix")

_BISECTIONS = 200


@dataclass(frozen=True, slots=True)
class CacheHierarchy:
    """Latencies and hit ratios of a processor's caches; ``memory_cycles`` is the part that scales with the clock.

    Raises:
        UsageError: a clock or latency that is not positive, latencies that do not rise from level to level, or a ratio
            beyond 0 to 1.
    """

    clock_ghz: float = 3.5
    l1_cycles: float = 4.0
    l2_cycles: float = 14.0
    l3_cycles: float = 68.0
    memory_cycles: float = 79.0
    memory_ns: float = 50.0
    l2_hit_ratio: float = 0.70
    l3_hit_ratio: float = 0.79

    def __post_init__(self) -> None:
        for name in ("clock_ghz", "l1_cycles"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"must be above 0, got {getattr(self, name)}", key=name)
        for name in ("l2_hit_ratio", "l3_hit_ratio"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"must be 0 to 1, got {getattr(self, name)}", key=name)
        if not (self.l1_ns <= self.l2_ns <= self.l3_ns <= self.memory_total_ns < math.inf and self.memory_ns >= 0):
            raise UsageError(
                "latencies must rise from level to level: they are "
                f"{self.l1_ns:g}, {self.l2_ns:g}, {self.l3_ns:g} and {self.memory_total_ns:g} ns",
                key="l2_cycles",
            )

    @property
    def l1_ns(self) -> float:
        return self.l1_cycles / self.clock_ghz

    @property
    def l2_ns(self) -> float:
        return self.l2_cycles / self.clock_ghz

    @property
    def l3_ns(self) -> float:
        return self.l3_cycles / self.clock_ghz

    @property
    def memory_total_ns(self) -> float:
        return self.memory_ns + self.memory_cycles / self.clock_ghz

    def beyond_l1_ns(self, revision: Revision = "fixed") -> float:
        """L2+: mean latency of an access that missed L1, in ns."""
        r2, r3 = self.l2_hit_ratio, self.l3_hit_ratio
        paid2, paid3 = (1.0, 1.0) if revision == "fixed" else (r2, r3)
        beyond_l2 = paid3 * self.l3_ns + (1 - r3) * self.memory_total_ns
        return paid2 * self.l2_ns + (1 - r2) * beyond_l2


class TippingPoint(Record):
    """Where throughput tips over, as miss ratios of L1 (1 - r); None where a model never gets there.

    Near a hit ratio of 1 the model is a hyperbola, T = T0 / (1 + x K / t0) with x = 1 - r. Half of T0 by formula is
    (1 - alpha) (t0 / S)^2 with S = N0 l_L1, which is t0 / K for beta >> 1; by the hyperbola t0 / K. The knee is where
    log T over log x bends most, the slope dT/dr at r = 1, and 1 / beta where all loads are paid one after another.
    """

    variant: str = doc("variant")
    analytic_miss_ratio: float | None = doc("half of the best throughput, by formula", "ratio")
    linear_miss_ratio: float = doc("half of it, by the slope at a hit ratio of 1", "ratio")
    half_miss_ratio: float | None = doc("half of it in the model; null where it is never reached", "ratio")
    knee_miss_ratio: float | None = doc("where throughput bends down most", "ratio")
    serial_miss_ratio: float | None = doc("from there on all loads are paid one after another", "ratio")
    slope_mpps: float = doc("change of throughput per hit ratio at a hit ratio of 1", "Mpps")


@dataclass(frozen=True, slots=True)
class CacheModel:
    """The model of one processor and one program, with alpha, T0 and N0.

    Raises:
        UsageError: a parameter out of its bounds, or fewer accesses than fit into t0 one after another (beta < 1).
    """

    alpha: float = 0.5
    best_mpps: float = 172.0
    accesses_per_packet: float = 163.0
    hierarchy: CacheHierarchy = CacheHierarchy()
    variant: Variant = "parallelised"
    revision: Revision = "fixed"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            hint = "1 leaves no time for loads"
            raise UsageError(f"must be 0 to below 1, got {self.alpha}", key="alpha", hint=hint)
        for name in ("best_mpps", "accesses_per_packet"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"must be above 0, got {getattr(self, name)}", key=name)
        if self.variant not in VARIANTS:
            raise UsageError(f"unknown variant {self.variant!r} (supported: {', '.join(VARIANTS)})", key="variant")
        if self.revision not in REVISIONS:
            raise UsageError(f"unknown revision {self.revision!r} (supported: {', '.join(REVISIONS)})", key="revision")
        if self.beta < 1:
            raise UsageError(
                f"{self.accesses_per_packet:g} accesses are fewer than the {self.serial_accesses:.4g} that fit into a "
                f"packet at {self.best_mpps:g} Mpps one after another (beta = {self.beta:.3g} < 1)",
                key="accesses_per_packet",
                hint="give more accesses, a higher best throughput or a larger alpha",
            )

    @property
    def packet_ns(self) -> float:
        """t0: time per packet at a hit ratio of 1, in ns."""
        return 1000.0 / self.best_mpps

    @property
    def processing_ns(self) -> float:
        return self.alpha * self.packet_ns

    @property
    def serial_accesses(self) -> float:
        """N: loads per packet, as if one after another."""
        return (1 - self.alpha) * self.packet_ns / self.hierarchy.l1_ns

    @property
    def beta(self) -> float:
        return self.accesses_per_packet / self.serial_accesses

    @property
    def serial_ns(self) -> float:
        """S: time of all loads of a packet one after another, where all hit, in ns."""
        return self.accesses_per_packet * self.hierarchy.l1_ns

    def throughput_mpps(self, hit_ratio: npt.ArrayLike) -> FloatArray:
        """T(r) in Mpps, of the shape of ``hit_ratio`` (0 to 1)."""
        r = np.asarray(hit_ratio, dtype=float)
        if not np.all((r >= 0) & (r <= 1)):
            raise UsageError("must be 0 to 1", key="hit_ratio", hint="99.9 % is 0.999")
        l1_ns = self.hierarchy.l1_ns
        latency_ns = (l1_ns if self.revision == "fixed" else r * l1_ns) + (1 - r) * self._beyond_ns
        n, n0 = self.serial_accesses, self.accesses_per_packet
        if self.variant == "simple":
            accesses: FloatArray | float = n
        else:
            overlapped = r ** (1.0 if self.variant == "beta1" else self.beta)
            accesses = overlapped * n + (1 - overlapped) * n0
        return np.asarray(1000.0 / (self.processing_ns + accesses * latency_ns), dtype=float)

    def hit_ratio_for(self, throughput_mpps: float) -> float:
        """The lowest hit ratio with that throughput; 0 if every hit ratio has it."""
        return 1.0 - self.miss_ratio_for(throughput_mpps)

    def miss_ratio_for(self, throughput_mpps: float) -> float:
        """The highest miss ratio with that throughput, more exact near 0 than the hit ratio; errors as there."""
        if not 0 < throughput_mpps <= self.best_mpps:
            message = f"{throughput_mpps:g} Mpps are not within 0 and the {self.best_mpps:g} Mpps of a hit ratio of 1"
            raise UsageError(message, key="inverse")
        low, high = 0.0, 1.0
        if float(self.throughput_mpps(0.0)) >= throughput_mpps:
            return 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if float(self.throughput_mpps(1.0 - middle)) >= throughput_mpps:
                low = middle
            else:
                high = middle
        return low

    def tipping_point(self) -> TippingPoint:
        """Where throughput tips over, by formula and in numbers."""
        lost_ns = self._lost_ns
        beta_matters = self.variant == "parallelised"
        half = 0.5 * self.best_mpps
        reached = float(self.throughput_mpps(0.0)) < half
        return TippingPoint(
            variant=self.variant,
            analytic_miss_ratio=(1 - self.alpha) * (self.packet_ns / self.serial_ns) ** 2 if beta_matters else None,
            linear_miss_ratio=self.packet_ns / lost_ns if lost_ns > 0 else math.inf,
            half_miss_ratio=self.miss_ratio_for(half) if reached else None,
            knee_miss_ratio=self._knee() if reached else None,
            slope_mpps=self.best_mpps * lost_ns / self.packet_ns,
            serial_miss_ratio=1 / self.beta if beta_matters else None,
        )

    def with_variant(self, variant: Variant) -> CacheModel:
        return replace(self, variant=variant)

    @property
    def _beyond_ns(self) -> float:
        return self.hierarchy.beyond_l1_ns(self.revision)

    @property
    def _lost_ns(self) -> float:
        """K: time that a packet loses per miss ratio at a hit ratio of 1, in ns (d latency / d x at x = 0)."""
        l1_ns = self.hierarchy.l1_ns
        slower_ns = self._beyond_ns - (0.0 if self.revision == "fixed" else l1_ns)
        gained = {"simple": 0.0, "beta1": 1.0, "parallelised": self.beta}[self.variant]
        more = gained * (self.accesses_per_packet - self.serial_accesses)
        return more * l1_ns + self.serial_accesses * slower_ns

    def _knee(self) -> float:
        """Where log T over log x bends down most, on a grid of 400 points a decade around t0 / K."""
        centre = math.log10(self.packet_ns / self._lost_ns)
        x = np.logspace(centre - 2, min(centre + 2, 0.0), 1601)
        bend = np.gradient(np.gradient(np.log(self.throughput_mpps(1 - x)), np.log(x)), np.log(x))
        return float(x[2:-2][int(np.argmin(bend[2:-2]))])


MAX_ALPHA = 0.999
MIN_POWER, MAX_POWER = -3.0, 6.0
"""Bounds of log10(beta - 1)."""

AT_BOUND = 1e-4
"""A parameter nearer to a bound than this share of its range was not determined."""

_ROUNDS = 11
_STEPS = 11
_SHRINK = 0.3


@dataclass(frozen=True, slots=True)
class CacheFit:
    """A fitted model, with the accesses per packet that make the beta found.

    ``at_bounds`` are parameters that ended at a bound of their search, which the data do not determine.
    """

    model: CacheModel
    rms_log_error: float
    n: int
    at_bounds: tuple[str, ...]

    @property
    def beta(self) -> float:
        return self.model.beta

    @property
    def factor(self) -> float:
        """The error as a factor: the model is off by this much."""
        return math.exp(self.rms_log_error)


def log_error(model: CacheModel, hit_ratio: npt.ArrayLike, throughput_mpps: npt.ArrayLike) -> float:
    """Root of the mean square of ln(model / measured)."""
    measured = np.asarray(throughput_mpps, dtype=float)
    return float(np.sqrt(np.mean(np.log(model.throughput_mpps(hit_ratio) / measured) ** 2)))


def fit_cache_model(hit_ratio: npt.ArrayLike, throughput_mpps: npt.ArrayLike, start: CacheModel) -> CacheFit:
    """Find alpha, and beta with it, so that the squares of log errors are least.

    The best throughput, the caches, the variant and the revision are those of ``start``; the accesses per packet follow
    from beta (N0 = beta N). The search is deterministic: the best beta for every alpha, and the best alpha of these,
    each by a grid that contracts around its best point.

    Raises:
        DataError: not as many values of both, fewer than three pairs or than two hit ratios, or values that are no
            ratios or not positive.
    """
    r, measured = np.asarray(hit_ratio, dtype=float), np.asarray(throughput_mpps, dtype=float)
    if r.ndim != 1 or r.shape != measured.shape:
        raise DataError("as many hit ratios as throughputs are needed")
    if r.size < 3 or len(np.unique(r)) < 2:
        raise DataError(f"a fit needs three pairs with two hit ratios at least, there are {r.size}")
    if not (np.all((r >= 0) & (r <= 1)) and np.all(np.isfinite(measured)) and np.all(measured > 0)):
        raise DataError("hit ratios must be 0 to 1, and throughputs above 0")
    logs = np.log(measured)

    def model_of(alpha: float, power: float) -> CacheModel:
        """The model with another alpha, and another beta of which the power is log10(beta - 1)."""
        accesses = (1 + 10.0**power) * (1 - alpha) * start.packet_ns / start.hierarchy.l1_ns
        return replace(start, alpha=alpha, accesses_per_packet=accesses)

    def best_power(alpha: float) -> tuple[float, float]:
        """The power of least error at an alpha, and that error."""

        def squares(power: float) -> float:
            return float(np.sum((np.log(model_of(alpha, power).throughput_mpps(r)) - logs) ** 2))

        return _contracted(squares, MIN_POWER, MAX_POWER)

    alpha, _ = _contracted(lambda alpha: best_power(alpha)[1], 0.0, MAX_ALPHA)
    power, _ = best_power(alpha)
    chosen = model_of(alpha, power)
    bounds = {"alpha": (alpha, 0.0, MAX_ALPHA), "beta": (power, MIN_POWER, MAX_POWER)}
    at_bounds = tuple(
        name for name, (at, low, high) in bounds.items() if min(at - low, high - at) < AT_BOUND * (high - low)
    )
    return CacheFit(chosen, log_error(chosen, r, measured), int(r.size), at_bounds)


def _contracted(error_at: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where an error is least, and the error: a grid that contracts around its best point."""
    lowest, highest = low, high
    best = (low, math.inf)
    for _ in range(_ROUNDS):
        for at in np.linspace(low, high, _STEPS):
            error = error_at(float(at))
            if error < best[1]:
                best = float(at), error
        half = _SHRINK * (high - low) / 2
        low, high = max(best[0] - half, lowest), min(best[0] + half, highest)
    return best
