"""A load generator that nothing disturbs unless it is told to, with a device of a known capacity.

Everything is computed: the same offers give the same accounts. :class:`FakeGenerator` is registered as a plug-in by the
distribution in :data:`PLUGIN`, beside a target with links.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from p4perf.errors import MeasurementError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.testbeds.loadgen.base import Account, Load, LoadGenerator, LoadSession

PLUGIN = Path(__file__).parent / "fake_load_plugin"
SUPPORT = Path(__file__).parent.parent

READY = {
    "load_version": 1,
    "ready": True,
    "slots": 1024,
    "verified_packets": 100,
    "hugepages": True,
    "invariant_tsc": True,
}


def columns(segments: int = 2, **changes: Any) -> dict[str, Any]:
    """A record of the native generator without anything wrong: a million packets per second for 100 ms a segment.

    Args:
        segments: their number.
        changes: keys and values, which are repeated for every segment unless they are lists.
    """
    record: dict[str, Any] = {
        "planned": 100_000,
        "sent": 100_000,
        "received": 100_000,
        "received_while_sending": 99_990,
        "link_full": 0,
        "duplicated": 0,
        "reordered": 0,
        "foreign": 0,
        "sending_us": 99_999.0,
        "draining_us": 12.5,
        "max_lag_us": 1.5,
        "max_gap_us": 2.0,
        "gaps": 0,
        "switches": 0,
        "realtime": True,
        "device_received": 100_000,
        "device_sent": 100_000,
        "device_dropped": 0,
        "device_copies": 0,
        "device_tx_full": 0,
        "device_max_gap_us": 3.0,
        "device_gaps": 0,
        "device_switches": 0,
        **{f"{who}chain_{when}_tsc": 12.0 for who in ("", "device_") for when in ("before", "after")},
        **{f"{who}mix_{when}_tsc": 3.0 for who in ("", "device_") for when in ("before", "after")},
    }
    record = {key: [value] * segments for key, value in record.items()}
    for key, value in changes.items():
        record[key] = value if isinstance(value, list) else [value] * segments
    return {"load_version": 1, "segments": segments, "rate_pps": 1e6, "duration_ms": 100.0 * segments, **record}


def record_of(histogram: LatencyHistogram) -> dict[str, Any]:
    """A histogram as load generators print it."""
    return {**asdict(histogram.layout), "counts": [list(pair) for pair in histogram.counts]}


def histogram(base_us: float, samples: int) -> dict[str, Any]:
    """Latencies of so many packets: nine tenths around ``base_us``, the others up to twice that."""
    values = [base_us * 1e3 * (1 + n / 10) for n in range(11)]
    counts = [samples - samples // 10, *([samples // 100] * 10)]
    counts[0] += samples - sum(counts)
    found = record_of(LatencyHistogram.from_values(values, counts))
    return {**found, "min_ns": int(values[0]), "max_ns": int(values[-1]), "overflow": 0}


@dataclass
class FakeSession(LoadSession):
    """A device that forwards ``capacity_pps`` and loses the rest, behind a generator of ``generator_pps``.

    Args:
        capacity_pps: of the program; baseline and null device have none but the generator's.
        generator_pps: the generator sends no more than that.
        base_us: latency of the link alone; through the program it is twice that.
        always_lost: packets that the program loses of every trial, however slow.
        flags: of the n-th offer, counted from 0.
        spoil: changes an account after it was made.
    """

    capacity_pps: float = 2e6
    generator_pps: float = 10e6
    base_us: float = 5.0
    always_lost: int = 0
    flags: Callable[[int, Load], Sequence[str]] = field(default=lambda n, load: ())
    spoil: Callable[[int, Load, Account], Account] = field(default=lambda n, load, account: account)
    ready: Mapping[str, Any] = field(default_factory=lambda: dict(READY))
    asked: list[Load] = field(default_factory=list)
    gate_ratios: list[float | None] = field(default_factory=list)

    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        number = len(self.asked)
        self.asked.append(load)
        self.gate_ratios.append(gate_ratio)
        rate_pps = min(load.rate_pps or float("inf"), self.generator_pps)
        planned = round((load.rate_pps or rate_pps) * load.duration_s)
        sent = round(rate_pps * load.duration_s)
        room = round(self.capacity_pps * load.duration_s) if load.device == "program" else sent
        lost = max(0, sent - room, self.always_lost if load.device == "program" else 0)
        received = sent - lost
        raw: dict[str, Any] = {"number": number, "duration_ms": 1e3 * load.duration_s}
        if load.latency:
            raw["histogram"] = histogram(self.base_us * (1 if load.device == "null" else 2), received)
        account = Account(
            *(planned, sent, received, lost, 0, 0, 0, rate_pps, received / load.duration_s),
            tuple(self.flags(number, load)),
            raw.get("histogram"),
            raw,
        )
        return self.spoil(number, load, account)

    def offered(self, **wanted: Any) -> list[Load]:
        """The offers that have these attributes, in order."""
        return [load for load in self.asked if all(getattr(load, key) == value for key, value in wanted.items())]


class FakeGenerator(LoadGenerator):
    """The load generator ``fake``. It notes every session that ends in the file that ``P4PERF_FAKE_LOAD_LOG`` names.

    ``P4PERF_FAKE_LOAD`` holds options as JSON: ``flag`` (of all trials), ``fail_entries`` (a point of so many entries
    fails), ``capacity_pps``, ``always_lost``, and ``kill_at``: the process is killed in the session of that number,
    counted from 0 by the lines of the file.
    """

    name = "fake"
    summary = "computes what a device of known capacity would do, for tests only"
    opened: ClassVar[list[FakeSession]] = []

    def problems(self, facts):
        return ()

    @contextmanager
    def open(self, target, plan, link, testbed, facts, folder: Path) -> Iterator[LoadSession]:
        options = json.loads(os.environ.get("P4PERF_FAKE_LOAD", "{}"))
        log = os.environ.get("P4PERF_FAKE_LOAD_LOG")
        target.load(plan, link, facts)
        entries = sum(table.entries.count for table in plan.workload.program.tables)
        if entries in options.get("fail_entries", ()):
            raise MeasurementError("the device under test died (signal 11)")
        session = FakeSession(options.get("capacity_pps", 2e6), always_lost=options.get("always_lost", 0))
        if flag := options.get("flag"):
            session = replace(session, flags=lambda n, load: (flag,))
        if log and sessions(log) and len(sessions(log)) == options.get("kill_at"):
            session = replace(session, flags=_killing)
        self.opened.append(session)
        yield session
        if log:
            rates = [load.rate_pps for load in session.asked]
            with Path(log).open("a") as file:
                file.write(json.dumps({"key": plan.key, "entries": entries, "rates": rates}) + "\n")


def _killing(number: int, load: Load) -> Sequence[str]:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return ()


def sessions(log: str | Path) -> list[dict[str, Any]]:
    """What :class:`FakeGenerator` noted: point, entries and the rates of all offers of each session."""
    path = Path(log)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
