"""What the figures of loss, latency and throughput show: arrays with units, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.models.templates import FloatArray

OVERHEAD_BYTES = 20
"""What a frame takes on the wire besides itself: preamble and start delimiter 8, interframe gap 12 (IEEE 802.3)."""
SMALLEST_FRAME_BYTES = 64
LINE_RATES_GBIT_PER_S = (10.0, 25.0, 40.0, 100.0)


class LoadUnit(StrEnum):
    """The unit of offered load (RFC 2285, section 3.5.2)."""

    SHARE = "share"
    """As a fraction of the largest load, 0 to 1."""
    MPPS = "mpps"
    """In millions of frames per second."""

    @property
    def label(self) -> str:
        return "offered load [fraction of the maximum]" if self is LoadUnit.SHARE else "offered load [Mpps]"


@dataclass(frozen=True, slots=True, eq=False)
class LatencyCurve:
    """The cumulative distribution of the latencies at one load.

    Args:
        share: share of the samples up to each latency, ascending to 1.
        samples: number of samples; without it the figure does not tell which part of the tail is chance.
        floor: the same of the link without a device, at the same load: what generator and link add themselves.
    """

    label: str
    value_us: FloatArray
    share: FloatArray
    samples: int | None = None
    floor: LatencyCurve | None = None

    def __post_init__(self) -> None:
        what = f"the latencies of {self.label!r}"
        _need_pairs(what, self.value_us, self.share)
        if (np.diff(self.value_us) <= 0).any() or self.value_us[0] < 0:
            raise DataError(f"{what} are negative or not ascending")
        if (np.diff(self.share) < 0).any() or not (self.share[0] > 0 and abs(self.share[-1] - 1) < 1e-9):
            raise DataError(f"{what} do not come with shares that rise to 1")

    @classmethod
    def from_histogram(
        cls, label: str, histogram: LatencyHistogram, *, floor: LatencyHistogram | None = None
    ) -> LatencyCurve:
        """The curve of a histogram, and of the noise floor at the same load."""
        below = None if floor is None else cls.from_histogram(f"floor of {label}", floor)
        value_us, share = histogram.cumulative()
        return cls(label, value_us, share, histogram.samples, below)


@dataclass(frozen=True, slots=True, eq=False)
class LatencyLine:
    """One percentile of the latency over offered load.

    Args:
        values_us: latency of each repetition at each load [µs], positive; none where it is not supported or nothing
            was accepted: a gap.
        flagged: whether each load has quality flags; drawn hollow. None: no load has.
        floor_us: the same percentile of the link without a device, at each load [µs]; NaN where it is not known.
        joined: whether a line joins the loads; not for maxima, which are single samples.
    """

    label: str
    offered: FloatArray
    values_us: tuple[tuple[float, ...], ...]
    flagged: tuple[bool, ...] | None = None
    floor_us: FloatArray | None = None
    joined: bool = True

    def __post_init__(self) -> None:
        what = f"the latencies {self.label!r}"
        _need_offered(what, self.offered, len(self.values_us), self.flagged)
        if any(not (np.isfinite(v) and v > 0) for values in self.values_us for v in values):
            raise DataError(f"{what} are not all positive")
        if self.floor_us is not None and self.floor_us.shape != self.offered.shape:
            raise DataError(f"{what} have {self.offered.size} loads but {self.floor_us.size} values of the floor")


@dataclass(frozen=True, slots=True, eq=False)
class LossCurve:
    """Loss ratio over offered load.

    Args:
        loss: loss ratio of each repetition at each load, 0 to 1: frames lost / frames sent (RFC 1242, section 3.6).
        flagged: whether each load has quality flags; drawn hollow. None: no load has.
        frames: frames sent in one repetition, the fewest; zero loss means less than one of them.
    """

    label: str
    offered: FloatArray
    loss: tuple[tuple[float, ...], ...]
    flagged: tuple[bool, ...] | None = None
    frames: int | None = None

    def __post_init__(self) -> None:
        what = f"the loss of {self.label!r}"
        _need_offered(what, self.offered, len(self.loss), self.flagged)
        if any(not 0 <= v <= 1 for values in self.loss for v in values):
            raise DataError(f"{what} is not between 0 and 1 everywhere")


@dataclass(frozen=True, slots=True)
class RateBound:
    """A rate that a search found, with the loads between which it is: NDR or PDR.

    RFC 2544, section 26.1, and draft-ietf-bmwg-mlrsearch, whose conditional throughput ``value`` is.

    Args:
        low: largest load known to pass.
        high: smallest load known to fail.
        loss: loss ratio that the search tolerated, 0 to 1.
    """

    label: str
    value: float
    low: float
    high: float
    loss: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high < np.inf:
            raise DataError(f"{self.label}: {self.value:g} is not between its bounds, {self.low:g} and {self.high:g}")
        if not 0 <= self.loss < 1:
            raise DataError(f"{self.label}: {self.loss:g} is not a loss ratio")


@dataclass(frozen=True, slots=True, eq=False)
class ThroughputCurve:
    """Throughput over frame size.

    Args:
        frame_size_bytes: frame sizes with the FCS, ascending [B].
        flagged: whether each size has quality flags; drawn hollow. None: no size has.
    """

    label: str
    frame_size_bytes: FloatArray
    rate_mpps: FloatArray
    low_mpps: FloatArray
    high_mpps: FloatArray
    flagged: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        what = f"the throughput {self.label!r}"
        for rates in (self.rate_mpps, self.low_mpps, self.high_mpps):
            _need_pairs(what, self.frame_size_bytes, rates)
        _need_offered(what, self.frame_size_bytes, self.rate_mpps.size, self.flagged)
        if self.frame_size_bytes[0] < SMALLEST_FRAME_BYTES:
            raise DataError(f"{what} has frames below {SMALLEST_FRAME_BYTES} bytes: sizes include the FCS")
        if (self.rate_mpps <= 0).any():
            raise DataError(f"{what} is not positive everywhere")
        if not ((self.low_mpps <= self.rate_mpps) & (self.rate_mpps <= self.high_mpps)).all():
            raise DataError(f"{what} is not within its intervals")


def line_rate_mpps(frame_size_bytes: float, gbit_per_s: float) -> float:
    """Frames per second that fill an Ethernet link.

    Equation: rate / (8 (frame + 20)), where 20 bytes are preamble, start delimiter and interframe gap (RFC 2544,
    appendix B; IEEE 802.3). For 64 bytes at 10 Gbit/s it is 14.88 Mpps.

    Returns:
        Rate of frames [Mpps].
    """
    if not frame_size_bytes >= SMALLEST_FRAME_BYTES:
        raise UsageError(
            f"an Ethernet frame has {SMALLEST_FRAME_BYTES} bytes at least, not {frame_size_bytes:g}",
            hint="frame sizes include the FCS",
        )
    if not 0 < gbit_per_s < np.inf:
        raise UsageError(f"the rate of a link is positive, not {gbit_per_s:g} Gbit/s")
    return 1e3 * gbit_per_s / (8 * (frame_size_bytes + OVERHEAD_BYTES))


def array(values: npt.ArrayLike) -> FloatArray:
    """Numbers as an array for the classes here."""
    return np.asarray(values, dtype=np.float64).ravel()


def repetitions(values: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    """Repetitions at each load as tuples for the classes here."""
    return tuple(tuple(float(v) for v in each) for each in values)


def _need_pairs(what: str, first: FloatArray, second: FloatArray) -> None:
    if first.size == 0:
        raise DataError(f"{what}: there is no value")
    if first.shape != second.shape or first.ndim != 1:
        raise DataError(f"{what}: {first.size} and {second.size} values do not belong together")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError(f"{what}: a value is not finite")


def _need_offered(what: str, offered: FloatArray, count: int, flagged: tuple[bool, ...] | None) -> None:
    if offered.size == 0:
        raise DataError(f"{what}: there is no value")
    if offered.ndim != 1 or offered.size != count or (flagged is not None and len(flagged) != count):
        raise DataError(f"{what}: {offered.size} abscissae do not belong to {count} values, or the flags do not")
    if not np.isfinite(offered).all() or offered[0] < 0 or (np.diff(offered) <= 0).any():
        raise DataError(f"{what}: the abscissae are negative or not ascending")
