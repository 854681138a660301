"""What is wrong with a trial of the native load generator: flags that go with every number made of it.

=================== ==========================================================================================
``preempted``       another thread had the core of generator or device, or the machine stopped for longer than the
                    link can bridge: packets may be lost for which the device is not to blame
``disturbed_core``  the core of the device shared its units with another thread (calibration before or after)
``drift``           the clock of a core changed by more than :data:`MAX_DRIFT` while traffic ran
``no_realtime``     real-time scheduling was not granted
``rate_off_target`` the achieved rate is off the asked one by more than :data:`RATE_TOLERANCE`
``foreign_packets`` packets came back without a stamp of this trial: the program changes the end of frames, or a link
                    is shared
=================== ==========================================================================================

Load generator native: C on DPDK with a core of its own, connected with the device by a virtual link.

Packets are paced on a schedule in fixed-point TSC cycles. Every frame carries the time at which it was sent and its
number, so that loss, duplication and reordering are counted, not estimated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError, TestbedError
from p4perf.targets.base import NodeFacts, PointPlan, Problem, Target
from p4perf.targets.link import LinkPlan, check_stamp_room
from p4perf.targets.roles import connected
from p4perf.targets.windows import GATE_TOLERANCE
from p4perf.testbeds.base import Conversation, Testbed
from p4perf.testbeds.loadgen.base import Account, Counted, Load, LoadGenerator, LoadSession

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

    columns: Mapping[str, NDArray[np.float64]]
    realtime: Sequence[bool]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Segments:
        try:
            columns = {name: np.array([_number(value) for value in record[name]]) for name in _NUMBERS}
            realtime = [bool(value) for value in record["realtime"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MeasurementError(f"missing or invalid field in the record of the load generator: {error}") from error
        lengths = {len(values) for values in columns.values()} | {len(realtime)}
        if len(lengths) != 1 or not realtime:
            raise MeasurementError("the record of the load generator has columns of different lengths")
        return cls(columns, realtime)

    def __len__(self) -> int:
        return len(self.realtime)

    def total(self, name: str, chosen: NDArray[np.bool_] | None = None) -> int:
        """The sum of a column, over the chosen segments or all."""
        values = self.columns[name]
        return int((values if chosen is None else values[chosen]).sum())


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the number {value!r}")
    return float(value)


def trial_flags(segments: Segments, load: Load, slots: int, gate_ratio: float | None) -> tuple[str, ...]:
    found = {
        "preempted": _preempted(segments, load, slots).any(),
        "disturbed_core": _shared(segments, gate_ratio).any(),
        "drift": _drifted(segments),
        "no_realtime": not all(segments.realtime),
        "rate_off_target": _off_target(segments, load),
        "foreign_packets": segments.total("foreign") > 0,
    }
    return tuple(flag for flag, present in found.items() if present)


def counted_segments(segments: Segments, load: Load, slots: int, gate_ratio: float | None) -> NDArray[np.bool_]:
    """Whether each segment counts where loss decides: nothing disturbed generator or device in it."""
    return ~(_preempted(segments, load, slots) | _shared(segments, gate_ratio))


def _preempted(segments: Segments, load: Load, slots: int) -> NDArray[np.bool_]:
    columns = segments.columns
    sending_us = columns["sending_us"].sum()
    rate_pps = load.rate_pps or (1e6 * segments.total("sent") / sending_us if sending_us else 0.0)
    longest_us = LINK_SHARE * slots / rate_pps * 1e6 if rate_pps else 0.0
    switched = columns["switches"] + columns["device_switches"] > 0
    stopped: NDArray[np.bool_] = np.maximum(columns["max_gap_us"], columns["device_max_gap_us"]) > longest_us
    return switched | stopped


def _shared(segments: Segments, gate_ratio: float | None) -> NDArray[np.bool_]:
    """Whether the core of the device was shared in each segment; False without a ratio to judge by."""
    if gate_ratio is None:
        return np.zeros(len(segments), dtype=bool)
    columns, limit = segments.columns, gate_ratio * (1 + GATE_TOLERANCE)
    before: NDArray[np.bool_] = columns["device_mix_before_tsc"] > limit * columns["device_chain_before_tsc"]
    return before | (columns["device_mix_after_tsc"] > limit * columns["device_chain_after_tsc"])


def _drifted(segments: Segments) -> bool:
    columns = segments.columns
    both = (np.append(columns[f"{who}chain_before_tsc"], columns[f"{who}chain_after_tsc"]) for who in ("", "device_"))
    return any(clocks.min() > 0 and clocks.max() / clocks.min() - 1 > MAX_DRIFT for clocks in both)


def _off_target(segments: Segments, load: Load) -> bool:
    """Whether a constant rate was missed. Random spacings have no exact rate, and neither have bursts."""
    if load.rate_pps is None or load.spacing.pattern != "cbr":
        return False
    sending_us = float(segments.columns["sending_us"].sum())
    intervals = segments.total("sent") - len(segments)
    if intervals <= 0 or sending_us <= 0:
        return False
    achieved = 1e6 * intervals / sending_us
    return abs(achieved / load.rate_pps - 1) > RATE_TOLERANCE or segments.total("sent") < segments.total("planned")


LOAD_VERSION = 1
ANSWER_S = 5.0
"""How long an answer may take beyond the time of the trial itself."""

SEGMENT_MS = 40.0
"""Time of traffic without a rest. The kernel takes the core from real-time threads that hardly ever sleep, and on a
machine that others use as well few longer times are undisturbed."""

LONGEST_SEGMENT_MS = 400.0

REST_MS = 10.0

_PIPELINE = '{"pipeline"'
"""Start of the line with which a pipeline of SWX describes itself; it comes first."""

FINAL_KINDS = ("verify", "refused")
"""Kinds of errors that come again at the next start: keys of failures that are final."""

QUEUE_SHARE = 0.0025
"""The link holds less than this share of the packets of a segment, so that no more overload than that hides in it."""


class NativeGenerator(LoadGenerator):
    name = "native"
    summary = "C on DPDK: paces by the TSC, stamps and counts every packet; needs a core beside that of the device"

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        if len(facts.cpus) < 2:
            return (Problem("load generator and device need a CPU each", "allow this process two CPUs (taskset)"),)
        return ()

    @contextmanager
    @override
    def open(
        self, target: Target, plan: PointPlan, link: LinkPlan, testbed: Testbed, facts: NodeFacts, folder: Path
    ) -> Iterator[LoadSession]:
        check_stamp_room(plan.workload, link)
        if problems := self.problems(facts):
            raise CapabilityError(problems[0].what, key="load", hint=problems[0].hint)
        if testbed.node("loadgen") is not testbed:
            raise TestbedError(
                f"{testbed.label}: the load generator native runs beside the device, which has not the role loadgen",
                hint="give it both roles, or name the load_generator of the other node",
            )
        job = connected(target).load(plan, link, facts)
        with testbed.converse(job, folder) as conversation:
            yield _NativeSession(conversation, link, job.timeout_s)


class _NativeSession(LoadSession):
    def __init__(self, conversation: Conversation, link: LinkPlan, timeout_s: float) -> None:
        self._conversation = conversation
        self._link = link
        line = conversation.answer(timeout_s)
        while line.startswith(_PIPELINE):
            line = conversation.answer(timeout_s)
        self.ready = _record(line, "ready")

    @override
    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        timeout_s = 3 * load.duration_s + ANSWER_S
        record = _record(self._conversation.ask(_words(load, self._link.slots), timeout_s), "segments")
        return account(record, load, self._link.slots, gate_ratio)


def _words(load: Load, slots: int) -> str:
    words = [f"rate_pps={load.rate_pps or 0:.6f}", f"duration_ms={1e3 * load.duration_s:.6f}"]
    words += [f"segment_ms={_segment_ms(load, slots):.3f}", f"rest_ms={REST_MS}", f"seed={load.seed}"]
    words.append(f"device={load.device}")
    words.append(f"latency={int(load.latency)}")
    if load.device == "faulty":
        words += [f"{name}={every}" for name, every in zip(("lose", "duplicate", "swap"), load.faults, strict=True)]
    spacing = load.spacing
    if load.rate_pps is not None or spacing.burst_gap_us is not None:
        words.append(f"pattern={spacing.pattern}")
    if spacing.pattern == "burst":
        words += [f"burst={spacing.burst_length}", f"burst_spacing_ns={spacing.burst_spacing_ns}"]
        words.append(f"burst_gap_us={spacing.burst_gap_us or 0}")
    return " ".join(["offer", *words])


def _segment_ms(load: Load, slots: int) -> float:
    needed_ms = 1e3 * slots / (QUEUE_SHARE * load.rate_pps) if load.rate_pps else 0.0
    return min(max(SEGMENT_MS, needed_ms), LONGEST_SEGMENT_MS)


def _record(line: str, key: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise MeasurementError(f"the load generator printed damaged JSON: {error}") from error
    if "error" in record:
        kind = str(record.get("kind", ""))
        raise MeasurementError(str(record["error"]), key=kind if kind in FINAL_KINDS else None)
    if record.get("load_version") != LOAD_VERSION or key not in record:
        raise MeasurementError("the load generator speaks another version")
    return dict(record)


def account(record: Mapping[str, Any], load: Load, slots: int, gate_ratio: float | None) -> Account:
    """What a line of the generator says."""
    segments = Segments.of(record)
    sent, received = segments.total("sent"), segments.total("received")
    dropped = segments.total("device_dropped")
    sending_s = 1e-6 * float(segments.columns["sending_us"].sum())
    # Of n packets there are n - 1 intervals, in every segment.
    intervals = sent - len(segments)
    counted = counted_segments(segments, load, slots, gate_ratio)
    return Account(
        planned=max(segments.total("planned"), sent),
        sent=sent,
        received=received,
        lost=sent - received - dropped,
        duplicated=max(0, segments.total("duplicated") - segments.total("device_copies")),
        reordered=segments.total("reordered"),
        dropped=dropped,
        rate_pps=intervals / sending_s if sending_s > 0 else 0.0,
        receive_rate_pps=segments.total("received_while_sending") / sending_s if sending_s > 0 else 0.0,
        counted=_counted(segments, counted),
        flags=trial_flags(segments, load, slots, gate_ratio),
        histogram=record.get("histogram"),
        raw=record,
    )


def _counted(segments: Segments, chosen: NDArray[np.bool_]) -> Counted:
    sent, planned = segments.total("sent", chosen), segments.total("planned", chosen)
    lost = sent - segments.total("received", chosen) - segments.total("device_dropped", chosen)
    whole = segments.total("sent")
    return Counted(sent / whole if whole else 0.0, max(planned, sent), sent, lost)
