"""Load generator MoonGen: on a node of its own, with network interfaces that reach those of the device.

Every trial is a run of one of the generated scripts. Latencies are those of probes with hardware timestamps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError, TestbedError
from p4perf.formats.moongen import read_output
from p4perf.generators.base import render
from p4perf.generators.moongen import DEFAULT_WARMUP_S, MoonGen
from p4perf.targets.base import Job, JobResult, NodeFacts, PointPlan, Problem, Target
from p4perf.targets.link import PCI_ADDRESS, LinkPlan
from p4perf.targets.roles import serving
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.loadgen.base import Account, Device, Load, LoadGenerator, LoadOffers, LoadSession, Offer
from p4perf.testbeds.serving import ServedDevice
from p4perf.version import __version__

MIN_RUNTIME_S = 5
"""Rates are means over whole seconds without the first and the last."""

START_S = 90.0
"""What a run takes beyond its load: initialisation, and links that come up (up to 18 s)."""

RATE_TOLERANCE = 0.01
"""Deviation of the achieved rate up to which a trial is what was asked for: rate limiters of devices have steps."""

MAX_QUEUES = 4
_TASKS = 3
"""Tasks beside those that send: master, counters, probes."""

_CONFIGURATION = "dpdk-conf.lua"
_FILES = {
    "max-load": ("max-load-tx.csv", "max-load-rx.csv"),
    "latency": ("latency-tx.csv", "latency-rx.csv", "histogram.csv", "probes.csv"),
}


class MoonGenGenerator(LoadGenerator):
    """MoonGen on the node with the role loadgen; the device runs on the node with the role dut."""

    name = "moongen"
    summary = "MoonGen on a node of its own, through network interfaces: line rate, hardware timestamps"

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = []
        if not facts.text("tool_moongen"):
            found.append(Problem("MoonGen is missing", "name it in the node file, under tools: {moongen: PATH}"))
        try:
            _ports(facts)
        except TestbedError as error:
            found.append(Problem(error.message, error.hint or ""))
        return tuple(found)

    @contextmanager
    @override
    def open(
        self, target: Target, plan: PointPlan, link: LinkPlan, testbed: Testbed, facts: NodeFacts, folder: Path
    ) -> Iterator[LoadSession]:
        node = testbed.node("loadgen")
        own = node.facts()
        try:
            offers = self.offers(plan, link, own)
        except TestbedError as error:
            raise TestbedError(f"{node.label}, {error.message}", hint=error.hint) from error
        with ServedDevice(serving(target), plan, testbed, facts, folder) as device:
            yield MoonGenSession(offers, device, node, folder)

    @override
    def offers(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> MoonGenOffers:
        if link.capture is not None or link.sizes_bytes:
            raise CapabilityError(
                "MoonGen's scripts send frames of one size", key="traffic", hint="leave out mix and replay"
            )
        if problems := self.problems(facts):
            raise TestbedError(f"load generator: {problems[0].what}", hint=problems[0].hint)
        return MoonGenOffers(plan, facts)


class MoonGenOffers(LoadOffers):
    devices: ClassVar[tuple[Device, ...]] = ("program", "baseline")
    shortest_s: ClassVar[float] = MIN_RUNTIME_S

    def __init__(self, plan: PointPlan, facts: NodeFacts) -> None:
        self._moongen = facts.text("tool_moongen")
        self._cores = tuple(int(core) for core in facts.text("cores").split(",") if core.isdigit())
        addresses, self._ports = _ports(facts)
        scripts = {f.path: f.text().encode() for f in MoonGen().generate(plan.workload, plan.traffic)}
        configuration = render(f"lua/{_CONFIGURATION}.j2", cores=self._cores, interfaces=addresses, version=__version__)
        self._files = {**scripts, _CONFIGURATION: configuration.encode()}

    @override
    def offer(self, load: Load) -> Offer:
        if load.device not in self.devices:
            raise MeasurementError(f"there is no device {load.device} behind MoonGen's interfaces")
        spacing = load.spacing
        if spacing.pattern not in ("cbr", "poisson", "burst"):
            raise CapabilityError(f"MoonGen's scripts know no pattern {spacing.pattern}", key="traffic.pattern")
        stem, runtime_s = _stem(load), _runtime_s(load)
        words = [*map(str, self._ports), "-t", str(runtime_s), "-w", str(DEFAULT_WARMUP_S)]
        if self._cores:
            free = len(self._cores) - _TASKS
            queues = max(1, min(MAX_QUEUES, free if spacing.pattern == "cbr" else free // 2))
            words += ["-q", str(queues)]
        if load.rate_pps:
            words += ["-r", f"{load.rate_pps / 1e6:.9f}"]
        if stem == "latency":
            words += ["-p", spacing.pattern]
        if spacing.pattern == "burst" and stem == "latency":
            words += ["-b", str(spacing.burst_length), "--burst-spacing", f"{spacing.burst_spacing_ns:.6f}"]
            words += ["--burst-gap", f"{spacing.burst_gap_us:.6f}"] if spacing.burst_gap_us is not None else []
        argv = (self._moongen, f"{{folder}}/{stem}.lua", f"--dpdk-config={{folder}}/{_CONFIGURATION}", *words)
        return Offer(Job(argv, runtime_s + DEFAULT_WARMUP_S + START_S, None, self._files), _FILES[stem])

    @override
    def account(
        self, load: Load, result: JobResult, left: Mapping[str, str], evidence: Mapping[str, Any], node: str
    ) -> Account:
        """What a run of a script says. Packets that the program drops on purpose are counted as lost, too."""
        try:
            if result.timed_out:
                raise MeasurementError(f"MoonGen was stopped after {result.duration_s:.0f} s without an end")
            said = result.stdout if result.stdout.strip() else result.stderr
            output = read_output(said, left, result.returncode)
        except MeasurementError as error:
            raise MeasurementError(f"{node}, {_stem(load)}.lua: {error.message}", hint=error.hint) from error
        runtime_s = _runtime_s(load)
        paced_mpps = load.rate_pps / 1e6 if load.rate_pps is not None and load.spacing.pattern == "cbr" else None
        load_mpps = output.send_rate_mpps - output.probes_sent / runtime_s / 1e6
        flags = []
        if paced_mpps is not None and abs(load_mpps / paced_mpps - 1) > RATE_TOLERANCE:
            flags.append("rate_off_target")
        if output.probes_lost:
            flags.append("probes_lost")
        histogram = {"latencies_ns": [list(pair) for pair in output.latencies_ns]} if load.latency else None
        raw = {
            "exit_code": result.returncode,
            "runtime_s": runtime_s,
            "duration_ms": 1e3 * runtime_s,
            "send_rate_mpps": output.send_rate_mpps,
            "receive_rate_mpps": output.receive_rate_mpps,
            "probes_sent": output.probes_sent,
            "probes_lost": output.probes_lost,
            "files": {name: text for name, text in left.items() if name != "histogram.csv"},
            "evidence": dict(evidence),
            **({"histogram": histogram} if histogram else {}),
        }
        return Account(
            planned=output.sent,
            sent=output.sent,
            received=output.received,
            lost=max(0, output.sent - output.received),
            duplicated=max(0, output.received - output.sent),
            reordered=0,
            dropped=0,
            rate_pps=1e6 * load_mpps,
            receive_rate_pps=1e6 * output.receive_rate_mpps,
            flags=tuple(flags),
            histogram=histogram,
            raw=raw,
        )


class MoonGenSession(LoadSession):
    devices = MoonGenOffers.devices
    shortest_s = MoonGenOffers.shortest_s

    def __init__(self, offers: MoonGenOffers, device: ServedDevice, testbed: Testbed, folder: Path) -> None:
        self._offers, self._device, self._testbed, self._folder = offers, device, testbed, folder
        self.ready: Mapping[str, Any] = {"generator": "moongen", "node": testbed.label}

    @override
    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        offer = self._offers.offer(load)
        assert load.device in ("program", "baseline")  # noqa: S101 - there are no others
        self._device.switch(load.device)
        for name in offer.leaves:
            self._testbed.artifact_path(self._folder, name).unlink(missing_ok=True)
        with self._device.watched() as seen:
            result = self._testbed.run(offer.job, self._folder)
        places = {name: self._testbed.artifact_path(self._folder, name) for name in offer.leaves}
        left = {n: p.read_text(encoding="utf-8", errors="replace") for n, p in places.items() if p.is_file()}
        return self._offers.account(load, result, left, self._device.evidence(seen), self._testbed.label)


def _stem(load: Load) -> str:
    return "latency" if load.rate_pps and (load.latency or load.spacing.pattern != "cbr") else "max-load"


def _runtime_s(load: Load) -> int:
    return math.ceil(max(load.duration_s, MIN_RUNTIME_S))


def _ports(facts: NodeFacts) -> tuple[list[str], tuple[int, int]]:
    """PCI addresses in the order in which DPDK numbers them, and the numbers of the ports that send and receive."""
    named = {k.removeprefix("interface_"): v for k, v in facts.values.items() if k.startswith("interface_")}
    if not named:
        return [], (0, 1)
    if len(named) == 1:
        named = dict.fromkeys(("tx", "rx"), next(iter(named.values())))
    if not {"tx", "rx"} <= named.keys() or not all(PCI_ADDRESS.fullmatch(a) for a in named.values()):
        raise TestbedError(
            f"the interfaces of the load generator are {', '.join(named)}",
            hint="name two of them tx and rx in the node file, or only one that does both",
        )
    addresses = sorted({named["tx"], named["rx"]})
    return addresses, (addresses.index(named["tx"]), addresses.index(named["rx"]))
