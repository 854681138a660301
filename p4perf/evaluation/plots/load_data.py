"""What the figures of loss, latency and throughput show: arrays with units, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.errors import DataError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.models.eo.mapping import MIN_FRAME_BYTES, OVERHEAD_BYTES
from p4perf.models.templates import FloatArray

LINE_RATES_GBIT_PER_S = (10.0, 25.0, 40.0, 100.0)


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """The latencies at one load, and those of the link without a device: what generator and link add themselves."""

    label: str
    latency: LatencyHistogram
    floor: LatencyHistogram | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LatencyLine:
    """One percentile of the latency over offered load, of each repetition [µs]; none where it is not supported: a gap.

    A load with quality flags is drawn hollow. ``floor_us`` is the percentile of the link without a device; NaN:
    unknown.
    """

    label: str
    offered: FloatArray
    values_us: tuple[tuple[float, ...], ...]
    flagged: tuple[bool, ...] | None = None
    floor_us: FloatArray | None = None

    def __post_init__(self) -> None:
        what = f"the latencies {self.label!r}"
        _need_offered(what, self.offered, len(self.values_us), self.flagged)
        if any(not (np.isfinite(v) and v > 0) for values in self.values_us for v in values):
            raise DataError(f"{what} are not all positive")
        if self.floor_us is not None and self.floor_us.shape != self.offered.shape:
            raise DataError(f"{what} have {self.offered.size} loads but {self.floor_us.size} values of the floor")


@dataclass(frozen=True, slots=True, eq=False)
class LossCurve:
    """Loss ratio of each repetition at each load: frames lost / frames sent (RFC 1242, section 3.6).

    A load with quality flags is drawn hollow. ``frames`` are those sent in one repetition, the fewest: zero loss means
    less than one of them.
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
    """A rate that a search found, NDR or PDR, between the largest load known to pass and the smallest known to fail.

    It is the conditional throughput of draft-ietf-bmwg-mlrsearch (RFC 2544, section 26.1); ``loss`` is the loss ratio
    that the search tolerated, 0 to 1.
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
    """Throughput over frame sizes with the FCS, ascending; a size with quality flags is drawn hollow."""

    label: str
    frame_size_bytes: FloatArray
    rate_mpps: FloatArray
    low_mpps: FloatArray
    high_mpps: FloatArray
    flagged: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        what = f"the throughput {self.label!r}"
        for rates in (self.rate_mpps, self.low_mpps, self.high_mpps):
            _need_offered(what, self.frame_size_bytes, rates.size, self.flagged)
        if self.frame_size_bytes[0] < MIN_FRAME_BYTES:
            raise DataError(f"{what} has frames below {MIN_FRAME_BYTES} bytes: sizes include the FCS")
        within = (self.low_mpps <= self.rate_mpps) & (self.rate_mpps <= self.high_mpps)
        if not (within & (self.rate_mpps > 0) & np.isfinite(self.high_mpps)).all():
            raise DataError(f"{what} is not positive and within its intervals everywhere")


def line_rate_mpps(frame_size_bytes: float, gbit_per_s: float) -> float:
    """Frames per second that fill an Ethernet link [Mpps]: rate / (8 (frame + 20)).

    The 20 bytes are preamble, start delimiter and interframe gap (RFC 2544, appendix B; IEEE 802.3). For 64 bytes at
    10 Gbit/s it is 14.88 Mpps.
    """
    return 1e3 * gbit_per_s / (8 * (frame_size_bytes + OVERHEAD_BYTES))


def array(values: npt.ArrayLike) -> FloatArray:
    """Numbers as an array for the classes here."""
    return np.asarray(values, dtype=np.float64).ravel()


def repetitions(values: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    """Repetitions at each load as tuples for the classes here."""
    return tuple(tuple(float(v) for v in each) for each in values)


def _need_offered(what: str, offered: FloatArray, count: int, flagged: tuple[bool, ...] | None) -> None:
    if offered.size == 0:
        raise DataError(f"{what}: there is no value")
    if offered.ndim != 1 or offered.size != count or (flagged is not None and len(flagged) != count):
        raise DataError(f"{what}: {offered.size} abscissae do not belong to {count} values, or the flags do not")
    if not np.isfinite(offered).all() or offered[0] < 0 or (np.diff(offered) <= 0).any():
        raise DataError(f"{what}: the abscissae are negative or not ascending")
