"""What is wrong with a trial of the native load generator: flags that go with every number made of it.

=================== ==========================================================================================
``preempted``       another thread had the core of generator or device, or the machine stopped for longer than the
                    link can bridge: packets may be lost for which the device is not to blame
``disturbed_core``  the core of the device shared its units with somebody else (calibration before or after)
``drift``           the clock of a core changed by more than :data:`MAX_DRIFT` while traffic ran
``no_realtime``     real-time scheduling was not granted
``rate_off_target`` the achieved rate is off the asked one by more than :data:`RATE_TOLERANCE`
``foreign_packets`` packets came back without a stamp of this trial: the program changes the end of frames, or a link
                    is shared
=================== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p4perf.errors import MeasurementError
from p4perf.targets.windows import GATE_TOLERANCE
from p4perf.testbeds.loadgen.base import Load

RATE_TOLERANCE = 1e-3
MAX_DRIFT = 0.05
LINK_SHARE = 0.5
"""A gap is harmless if fewer packets come in it than this share of what the link holds."""

BLAMELESS = ("preempted", "disturbed_core")
"""Flags of trials whose loss is not the device's fault."""

_NUMBERS = (
    *("planned", "sent", "received", "received_while_sending", "link_full", "duplicated", "reordered", "foreign"),
    *("sending_us", "draining_us", "max_lag_us", "max_gap_us", "gaps", "switches"),
    *("chain_before_tsc", "mix_before_tsc", "chain_after_tsc", "mix_after_tsc"),
    *("device_received", "device_sent", "device_dropped", "device_copies", "device_tx_full", "device_max_gap_us"),
    *("device_gaps", "device_switches"),
    *("device_chain_before_tsc", "device_mix_before_tsc", "device_chain_after_tsc", "device_mix_after_tsc"),
)


@dataclass(frozen=True, slots=True)
class Segments:
    """The columns of a record, one number for each segment of traffic."""

    columns: Mapping[str, Sequence[float]]
    realtime: Sequence[bool]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Segments:
        """Read a record.

        Raises:
            MeasurementError: a column is missing, or has another length than the others.
        """
        try:
            columns = {name: [_number(value) for value in record[name]] for name in _NUMBERS}
            realtime = [bool(value) for value in record["realtime"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MeasurementError(f"the record of the load generator lacks or garbles {error}") from error
        lengths = {len(values) for values in columns.values()} | {len(realtime)}
        if len(lengths) != 1 or not realtime:
            raise MeasurementError("the record of the load generator has columns of different lengths")
        return cls(columns, realtime)

    def __len__(self) -> int:
        return len(self.realtime)

    def column(self, name: str) -> Sequence[float]:
        """One number for each segment."""
        return self.columns[name]

    def total(self, name: str) -> int:
        """Sum of counts."""
        return int(sum(self.columns[name]))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the number {value!r}")
    return float(value)


def trial_flags(segments: Segments, load: Load, slots: int, gate_ratio: float | None) -> tuple[str, ...]:
    """The flags of a trial."""
    found = {
        "preempted": any(_preempted(segments, load, slots)),
        "disturbed_core": gate_ratio is not None and any(_shared(segments, "device_", gate_ratio)),
        "drift": _drifted(segments),
        "no_realtime": not all(segments.realtime),
        "rate_off_target": _off_target(segments, load),
        "foreign_packets": segments.total("foreign") > 0,
    }
    return tuple(flag for flag, present in found.items() if present)


def counted_segments(segments: Segments, load: Load, slots: int, gate_ratio: float | None) -> tuple[bool, ...]:
    """The segments that count where loss decides on something: those in which nothing disturbed generator and device.

    Returns:
        A truth value for each segment.
    """
    stopped = _preempted(segments, load, slots)
    shared = [False] * len(segments) if gate_ratio is None else _shared(segments, "device_", gate_ratio)
    return tuple(not (p or s) for p, s in zip(stopped, shared, strict=True))


def _preempted(segments: Segments, load: Load, slots: int) -> list[bool]:
    rate_pps = load.rate_pps or _rate_pps(segments)
    longest_us = LINK_SHARE * slots / rate_pps * 1e6 if rate_pps else 0.0
    names = ("switches", "device_switches", "max_gap_us", "device_max_gap_us")
    return [
        switches + device_switches > 0 or max(gap_us, device_gap_us) > longest_us
        for switches, device_switches, gap_us, device_gap_us in zip(*map(segments.column, names), strict=True)
    ]


def _rate_pps(segments: Segments) -> float:
    sending_us = sum(segments.column("sending_us"))
    return 1e6 * segments.total("sent") / sending_us if sending_us else 0.0


def _shared(segments: Segments, who: str, gate_ratio: float) -> list[bool]:
    limit = gate_ratio * (1 + GATE_TOLERANCE)
    shared = [False] * len(segments)
    for when in ("before", "after"):
        pairs = zip(segments.column(f"{who}mix_{when}_tsc"), segments.column(f"{who}chain_{when}_tsc"), strict=True)
        shared = [s or mix > limit * chain for s, (mix, chain) in zip(shared, pairs, strict=True)]
    return shared


def _drifted(segments: Segments) -> bool:
    for who in ("", "device_"):
        clocks = [*segments.column(f"{who}chain_before_tsc"), *segments.column(f"{who}chain_after_tsc")]
        if min(clocks) > 0 and max(clocks) / min(clocks) - 1 > MAX_DRIFT:
            return True
    return False


def _off_target(segments: Segments, load: Load) -> bool:
    """Whether a constant rate was missed. Random spacings have no exact rate, and neither have bursts."""
    if load.rate_pps is None or load.spacing.pattern != "cbr":
        return False
    sending_us = sum(segments.column("sending_us"))
    intervals = segments.total("sent") - len(segments)
    if intervals <= 0 or sending_us <= 0:
        return False
    achieved = 1e6 * intervals / sending_us
    return abs(achieved / load.rate_pps - 1) > RATE_TOLERANCE or segments.total("sent") < segments.total("planned")
