"""From timed windows to numbers: which windows count, and the summary of a trial.

A window counts if no involuntary context switch fell into it, the ratio of the two calibrators stayed near that of an
undisturbed core before and after it (below it times ``1 + gate_tolerance``, above it times ``1 - GATE_TOLERANCE``), and
the core clock moved by less than ``drift_tolerance``. Core cycles are TSC cycles times 12 over the TSC cycles of one
iteration of the 12-cycle latency chain. A trial is accepted if :data:`MIN_WINDOWS` windows and :data:`MIN_SHARE` of all
count, for every program, and their spread stays below :data:`MAX_SPREAD`. The spread is the interquartile range in
units of a standard deviation over the median: every window uses other packet buffers, about one placement in ten of
these is slow, and such windows, which the median does not see, must not spoil a trial.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p4perf.errors import MeasurementError
from p4perf.targets.base import MetricValue, TrialSummary

MIN_WINDOWS = 20
MIN_SHARE = 0.05
MAX_SPREAD = 0.15
FEWEST_WINDOWS = 10
"""With fewer windows a trial says nothing of an undisturbed core by itself."""

SAME_CLOCK_PERCENT = 5
"""A gate ratio counts for trials whose clock is no further away from that at which it was seen."""

GATE_TOLERANCE = 0.05
"""A window counts if its calibration ratio is less than this share above that of an undisturbed core, or below it: then
the latency chain was disturbed, and core cycles would be too few."""

COMPACT, AROUND = 0.6, 1.03
"""This share of the ratios within a factor of 1.03 of an undisturbed core's are within half a percent above it."""

LEVEL, POPULATED = 1.01, 0.2
"""Ratios within this factor are one level of a machine; the lowest counts that was seen at least this often, compared
with the level that was seen most."""

IQR_PER_SIGMA = 1.349
"""Interquartile range of the normal distribution in standard deviations."""

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normally distributed values."""

DETECTABLE = 1.96
"""Standard errors above which a difference is significant with 95 % confidence."""

_CALIBRATORS = ("chain_before_tsc", "mix_before_tsc", "chain_after_tsc", "mix_after_tsc")
_ARRAYS = ("program", "preemptions", "tsc_per_packet", *_CALIBRATORS)
_PEER = tuple(f"peer_{key}" for key in ("preemptions", *_CALIBRATORS))
"""Columns of a second process on another core that takes part in every window, where there is one: a window counts if
both were undisturbed."""

_COUNTERS = ("instructions", "cache_misses")
"""Columns of hardware counters, per packet, which a record has only where the kernel offers them."""


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """Statistics over the windows of one program. Cycles are per packet; the raw median is over all windows."""

    core_cycles: float
    tsc_cycles: float
    raw_core_cycles: float
    cv: float
    spread: float
    counted: int
    tried: int
    instructions: float | None = None
    """Per packet, of hardware counters; None where there are none."""
    cache_misses: float | None = None
    chain_tsc: float = float("nan")
    """TSC cycles of an iteration of the latency chain around the counted windows, median."""

    @property
    def standard_error(self) -> float:
        """Of the median of core cycles: for n normally distributed windows, 1.2533 standard deviations / sqrt(n)."""
        return self.relative_error * self.core_cycles

    @property
    def relative_error(self) -> float:
        """The same, as a share of the median."""
        return MEDIAN_ERROR * self.spread / math.sqrt(self.counted) if self.counted else math.nan

    @property
    def share(self) -> float:
        """Counted windows over all windows."""
        return self.counted / self.tried if self.tried else 0.0

    def failures(self) -> tuple[str, ...]:
        """The acceptance rules that are broken, as quality flags."""
        broken = {
            "few_windows": self.counted < MIN_WINDOWS,
            "low_acceptance": self.share < MIN_SHARE,
            "high_spread": self.counted > 1 and self.spread >= MAX_SPREAD,
        }
        return tuple(flag for flag, is_broken in broken.items() if is_broken)


def detectable_difference(program: WindowStatistics, baseline: WindowStatistics) -> float:
    """The least significant difference of two medians of one start, in core cycles per packet."""
    return DETECTABLE * cost_error(program, baseline)


def cost_error(program: WindowStatistics, baseline: WindowStatistics) -> float:
    """Standard error of the difference of two medians of one start, in core cycles per packet."""
    return math.hypot(program.standard_error, baseline.standard_error)


def undisturbed(
    mix_tsc: NDArray[np.float64], chain_tsc: NDArray[np.float64], gate_ratio: float, tolerance: float = GATE_TOLERANCE
) -> NDArray[np.bool_]:
    """Whether calibrators are those of an undisturbed core, of shape (windows,)."""
    least: NDArray[np.bool_] = mix_tsc > gate_ratio * (1 - GATE_TOLERANCE) * chain_tsc
    return least & (mix_tsc < gate_ratio * (1 + tolerance) * chain_tsc)


def lower_mode(ratios: Sequence[float]) -> float:
    """Calibration ratio of an undisturbed core: the lowest of the ratios that many others are next to.

    What lies below comes from disturbed latency chains, which spread, by a few percent at least; an undisturbed core
    repeats itself to a few parts in a thousand. Without any such cluster it is the tenth percentile.

    Args:
        ratios: of the two calibrators, in ascending order; or quantiles of these at even distances.
    """
    others = max(len(ratios) // 20, 3)
    for n, (lowest, other) in enumerate(zip(ratios, ratios[others:], strict=False)):
        if other <= 1.005 * lowest:
            around = bisect_right(ratios, AROUND * lowest) - bisect_left(ratios, lowest / AROUND)
            if bisect_right(ratios, 1.005 * lowest) - n >= COMPACT * around:
                return float(lowest)
    return float(ratios[len(ratios) // 10])


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """How the core looked when nothing disturbed it: its gate ratio, and TSC cycles of an iteration of the chain."""

    gate_ratio: float
    chain_tsc: float


def undisturbed_core(record: Mapping[str, Any]) -> Undisturbed | None:
    """What a trial or a line of the calibration saw; None if it says nothing.

    Of a trial it is the lower mode of its own windows: the ratio in force can be one of another clock.
    """
    ratio, windows = record.get("gate_ratio"), record.get("windows")
    if isinstance(ratio, list):
        return Undisturbed(lower_mode(ratio), float(record["chain_tsc"][len(record["chain_tsc"]) // 2]))
    if not ratio or not record.get("gated") or not isinstance(windows, Mapping):
        return None
    try:
        chain, mix = (np.asarray(windows[key], dtype=float) for key in ("chain_after_tsc", "mix_after_tsc"))
        own = lower_mode(np.sort(mix / chain).tolist()) if len(chain) >= FEWEST_WINDOWS else float(ratio)
        return Undisturbed(own, float(np.median(chain)))
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementError(f"missing or invalid calibrators in the record of a trial: {error}") from error


class GateRatios:
    """The gate ratios that a machine has shown, each for the clock at which it was seen.

    At another clock the same undisturbed core can have another ratio: a machine that was slower for a second had one
    that no window reached when it was as fast as before. At one clock it is the lowest level that is seen again and
    again: a trial whose latency chains were disturbed all along has a lower one.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Counter[float]] = defaultdict(Counter)
        self._last = 0

    def observe(self, seen: Undisturbed) -> bool:
        """Learn what a trial or a calibration saw; whether trials that were judged before have to be judged anew.

        Within half a percent nothing changes, and every trial would be judged again and again.
        """
        self._last = _percent(seen.chain_tsc)
        known = self.at(seen.chain_tsc)
        self._seen[self._last][round(seen.gate_ratio, 4)] += 1
        return known is not None and abs((self.at(seen.chain_tsc) or known) / known - 1) > 0.005

    def at(self, chain_tsc: float | None = None) -> float | None:
        """The gate ratio at a clock, by default that of what was seen last; None if it is not known."""
        clock = self._last if chain_tsc is None else _percent(chain_tsc)
        seen: Counter[float] = Counter()
        for other, ratios in self._seen.items():
            if abs(other - clock) <= SAME_CLOCK_PERCENT:
                seen.update(ratios)
        near = sorted(seen)
        below = [0, *accumulate(seen[ratio] for ratio in near)]
        levels = [below[bisect_right(near, LEVEL * ratio)] - less for ratio, less in zip(near, below, strict=False)]
        return next((r for r, level in zip(near, levels, strict=True) if level >= POPULATED * max(levels)), None)


def _percent(chain_tsc: float) -> int:
    return round(math.log(chain_tsc) / math.log(1.01)) if chain_tsc > 0 else 0


def window_statistics(record: Mapping[str, Any], gate_ratio: float | None = None) -> dict[str, WindowStatistics]:
    """Statistics by program name, by the gate ratio of the machine, or the record's own one if that is not known."""
    try:
        names = list(record["programs"])
        known_keys = (*_ARRAYS, *(_PEER if _PEER[0] in record["windows"] else ()))
        w = {key: np.asarray(record["windows"][key], dtype=float) for key in known_keys}
        own = float(record["gate_ratio"])
        gate_tolerance, drift_tolerance = float(record["gate_tolerance"]), float(record["drift_tolerance"])
        gated = bool(record["gated"])
        chain_cycles = float(record["chain_core_cycles"])
    except (KeyError, TypeError, ValueError) as error:
        raise MeasurementError(f"missing or invalid field in the record of a trial: {error}") from error
    shapes = {values.shape for values in w.values()}
    if len(shapes) != 1 or len(w["program"].shape) != 1 or not len(w["program"]):
        raise MeasurementError("the record of a trial has no windows or arrays of different lengths")

    def calm(of: str) -> NDArray[np.bool_]:
        """Which windows count as far as one process knows: the measuring one, or its peer (``of`` is ``peer_``)."""
        counts: NDArray[np.bool_] = w[f"{of}preemptions"] == 0
        if gated:
            for when in ("before", "after"):
                mix, chain = w[f"{of}mix_{when}_tsc"], w[f"{of}chain_{when}_tsc"]
                counts &= undisturbed(mix, chain, gate_ratio or own, gate_tolerance)
            counts &= np.abs(w[f"{of}chain_after_tsc"] / w[f"{of}chain_before_tsc"] - 1) < drift_tolerance
        return counts

    counts = calm("")
    if _PEER[0] in w:
        counts &= calm("peer_")
    counters = {key: np.asarray(record["windows"][key], dtype=float) for key in _COUNTERS if key in record["windows"]}
    if any(values.shape != w["program"].shape for values in counters.values()):
        raise MeasurementError("the record of a trial has counters of some windows only")
    tsc, chain = w["tsc_per_packet"], (w["chain_before_tsc"] + w["chain_after_tsc"]) / 2
    core = tsc * chain_cycles * 2 / (w["chain_before_tsc"] + w["chain_after_tsc"])

    def statistics(of_program: NDArray[np.bool_]) -> WindowStatistics:
        use = of_program & counts
        tried, raw = int(of_program.sum()), float(np.median(core[of_program])) if of_program.any() else math.nan
        chosen = core[use]
        if not len(chosen):
            return WindowStatistics(math.nan, math.nan, raw, math.nan, math.nan, 0, tried)
        return WindowStatistics(
            core_cycles=float(np.median(chosen)),
            tsc_cycles=float(np.median(tsc[use])),
            raw_core_cycles=raw,
            cv=float(np.std(chosen) / np.mean(chosen)),
            spread=float(np.subtract(*np.percentile(chosen, [75, 25])) / IQR_PER_SIGMA / np.median(chosen)),
            counted=len(chosen),
            tried=tried,
            chain_tsc=float(np.median(chain[use])),
            **{name: float(np.median(values[use])) for name, values in counters.items()},
        )

    return {name: statistics(w["program"] == n) for n, name in enumerate(names)}


COST_METRICS = ("cycles_per_packet", "tsc_cycles_per_packet", "baseline_cycles_per_packet", "cost_cycles_per_packet")


def cost_metrics(program: WindowStatistics, baseline: WindowStatistics) -> tuple[MetricValue, ...]:
    """Cycles per packet; the cost is program minus baseline of the same start."""
    cost, error = program.core_cycles - baseline.core_cycles, cost_error(program, baseline)
    return (
        *cycle_metrics(program),
        MetricValue("baseline_cycles_per_packet", baseline.core_cycles, "cycles/packet", baseline.standard_error),
        MetricValue("cost_cycles_per_packet", cost, "cycles/packet", error),
    )


def cycle_metrics(program: WindowStatistics) -> tuple[MetricValue, ...]:
    """Cycles per packet of a program, of the core and of the TSC."""
    tsc_error = program.relative_error * program.tsc_cycles
    return (
        MetricValue("cycles_per_packet", program.core_cycles, "cycles/packet", program.standard_error),
        MetricValue("tsc_cycles_per_packet", program.tsc_cycles, "TSC cycles/packet", tsc_error),
    )


def counter_metrics(program: WindowStatistics) -> tuple[MetricValue, ...]:
    """Values of hardware counters, where the kernel offers them."""
    values = (
        ("instructions", program.instructions, "instructions/packet"),
        ("cache_misses", program.cache_misses, "misses/packet"),
    )
    return tuple(MetricValue(name, value, unit) for name, value, unit in values if value is not None)


def packet_rate(metric: str, record: Mapping[str, Any], statistics: WindowStatistics) -> MetricValue:
    """Packets in a second by the TSC, in Mpps."""
    rate_mpps = float(record["tsc_hz"]) / statistics.tsc_cycles / 1e6
    return MetricValue(metric, rate_mpps, "Mpps", statistics.relative_error * rate_mpps)


def core_frequency(record: Mapping[str, Any], statistics: WindowStatistics) -> MetricValue:
    """Clock of the core, from the latency chain around the counted windows, in GHz."""
    hz = float(record["tsc_hz"]) * float(record["chain_core_cycles"]) / statistics.chain_tsc
    return MetricValue("core_frequency", hz / 1e9, "GHz")


def trial_summary(
    statistics: Sequence[WindowStatistics], values: Iterable[MetricValue], environment: Collection[str]
) -> TrialSummary:
    """Metrics, acceptance and flags of a trial of some programs, the one under test first.

    Without counted windows of every program there are no metrics.
    """
    failures = {flag for each in statistics for flag in each.failures()}
    flags = tuple(sorted(failures.union(environment)))
    if not all(each.counted for each in statistics):
        return TrialSummary((), False, flags)
    windows = (
        MetricValue("windows_counted", float(statistics[0].counted), "windows"),
        MetricValue("windows_tried", float(statistics[0].tried), "windows"),
    )
    return TrialSummary((*values, *windows), not failures, flags)
