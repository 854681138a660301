"""t4p4s on network interfaces: a switch on cores of its own, loaded by a load generator on another machine.

Facts are those of P4ELTE/t4p4s, commit 7cd5bac (January 2023), by file and line of that checkout.

A program is compiled by ``t4p4s.sh`` in a copy of the checkout of the node, and run by it there. t4p4s has no counters
of its own in a build that is to be fast, so cycles come from the packets that come back while more are offered than the
switch takes. It polls: its cores are always busy, and in overload every cycle is one of the packets that come back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import render
from p4perf.generators.p4.t4p4s import T4P4S
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload
from p4perf.targets.base import BuildPlan, Job, JobResult, MetricValue, NodeFacts, PointPlan, Problem, ending, point_key
from p4perf.targets.builds import context_of
from p4perf.targets.counters import CYCLES, LLC_MISSES, not_counted, perf_counts, perf_job
from p4perf.targets.link import PCI_ADDRESS, check_frame_size
from p4perf.targets.roles import ServedProgram, Serves, Service, ServiceStep, step_failed
from p4perf.version import __version__

INTERFACES = ("ingress", "egress")
"""Names of the interfaces in the node file, in the order of their ports: programs send to port 1."""

PROGRAMS = ("program", "baseline")

COPIED = ("colours.cfg", "lights.cfg", "opts_dpdk.cfg", "meson.build.base", "src")
"""What is copied of a checkout besides ``t4p4s.sh``."""

TOOLS = ("bash", "python3", "sudo", "which", "netcat", "lsof", "netstat", "killall", "shuf", "ccache", "ninja")
"""Commands that ``t4p4s.sh`` calls without looking whether they are there."""

DRIVERS = ("vfio-pci", "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core")
"""Kernel drivers that leave a network interface to DPDK."""

HUGEPAGES_MIB = 512
"""Hugepages that the pools of a switch take (``dpdk_nicon.h``, ``dpdk_lib_conf.h``), in MiB, with some room."""

OPTIONS = ("model=v1model", "ctr=off", "hugepages=keep", "bw", "light=0")
"""Options of every call: the model is mandatory, all entries stand in the program, the hugepages of the node stay as
they are, and output has neither colours (``bw``) nor escape sequences that end them (``light=0``)."""

MEMORY_CHANNELS = 4
"""As in ``opts_dpdk.cfg``."""

BUILD_TYPE = "release"
"""For meson; t4p4s' own default is ``debugoptimized`` (t4p4s.sh, ``MESON_BUILDTYPE``)."""

ADDED_FILE = "added.cfg"
"""Lines that are added to the options of the checkout."""

CONTEXT = ("t4p4s_commit", "hlir16_commit", "tool_p4c", "p4test_version", "dpdk_version", "cpu_model", "cpu_id")
"""Facts on which a switch depends besides its program."""

BUILT = "p4perf: there is a switch"
LOG_MARK = "p4perf: the end of"

MAX_TRIPLES = 900
"""Characters of the map of queues: t4p4s reads no more than 1024 of an option (t4p4s.sh, ``conn.recv``)."""

_PATH = re.compile(r"/[A-Za-z0-9/._@+-]+")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

READY = "P4_FWD: entering main loop on lcore [0-9]+"
"""A log line at level INFO (dpdk_nicon.c, ``init_lcore_data``); most other output of a switch needs ``dbg``."""

BROKEN = "Cannot parse option|lcore [0-9]+ has nothing to do"
"""An option that t4p4s ignores, a map without a queue; after everything worse the switch ends by itself."""

CAUSES = "Cause: |^EAL: .*([Cc]annot|[Ff]ailed|FATAL|No free)|PANIC in |Egress port"

COMPILE_CODES: Mapping[int, str] = {
    1: "ninja failed, or meson did and t4p4s went on",
    2: "the C compiler failed",
    3: "the compiler from P4 to C failed",
    9: "a tool is missing",
    10: "it was not told the architecture model",
    254: "it was interrupted",
    255: "it failed",
}
"""Exit codes of the phases p4 and c (t4p4s.sh:13-29). ``ERRCODE_C``, which is to be 2 or 1, is defined nowhere: a
failure of meson does not end the script, and one of ninja ends it with ninja's own code."""

RUN_CODES: Mapping[int, str] = {
    0: "the switch ended by itself, or was never started",
    1: "DPDK refused its arguments or a device",
    4: "the switch is in an endless loop",
    5: "packets were dropped, or sent, that should not be",
    6: "the switch computed a wrong packet",
    7: "a requirement on the control flow is not met",
    8: "there are too few hugepages",
    9: "a tool is missing",
    10: "it was not told the architecture model",
    11: "the program set no egress port",
    137: "the switch was killed",
    139: "the switch had a segmentation fault",
    143: "the switch was stopped",
    254: "it was interrupted",
    255: "the switch failed",
}
"""Exit codes of the phase run: those of the script, and those that it hands on from the switch.

4 to 7 and 11 are of the offline tests.
"""


def meaning(status: int, codes: Mapping[int, str]) -> str:
    """What an exit code (0 to 255) of ``t4p4s.sh`` means."""
    if status in codes:
        return codes[status]
    return f"it {ending(128 - status)}" if 128 < status <= 128 + 64 else "it failed"


@dataclass(frozen=True, slots=True)
class CoreMap:
    """Which CPU is which lcore, and which queue of which port it serves: queue n of every port is of lcore n.

    lcores are numbered from 0 without a gap, whatever their CPUs: t4p4s sets up the transmit queues of lcores 0 to
    n - 1 only (dpdk_lib_init_hw.c, ``dpdk_init_port``).
    """

    cpus: tuple[int, ...]
    ports: ClassVar[int] = len(INTERFACES)

    @property
    def lcores(self) -> int:
        return len(self.cpus)

    @property
    def eal_lcores(self) -> str:
        return ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(self.cpus))

    @property
    def port_mask(self) -> str:
        """For ``-p``: ``0x3``."""
        return hex((1 << self.ports) - 1)

    @property
    def queues(self) -> tuple[tuple[int, int, int], ...]:
        """Port, queue and lcore of every receive queue, port by port."""
        return tuple((port, lcore, lcore) for port in range(self.ports) for lcore in range(self.lcores))

    @property
    def triples(self) -> str:
        """For ``--config``: ``(0,0,0),(1,0,0)``."""
        return ",".join(f"({port},{queue},{lcore})" for port, queue, lcore in self.queues)

    @property
    def options(self) -> tuple[str, ...]:
        """Options of ``t4p4s.sh``: queues of a port times ports, as its own ``opts_dpdk.cfg`` has it."""
        return (f"cores={self.lcores}", f"ports={self.lcores}x{self.ports}")


def core_map(facts: NodeFacts, lcores: int) -> CoreMap:
    """The map of the first CPUs that the node file allows."""
    words = facts.text("cores").split(",") if facts.text("cores") else []
    if not all(word.isascii() and word.isdigit() for word in words) or len(set(words)) < len(words):
        raise CapabilityError(
            f"{facts.text('cores')!r} is no list of CPUs", key="cores", hint="write cores: [2, 3] in the node file"
        )
    if len(words) < lcores:
        raise CapabilityError(
            f"t4p4s needs {lcores} core{'s' * (lcores > 1)} of its own, and the node file names {len(words) or 'none'}",
            key="cores",
            hint="name isolated CPUs of the node as cores in the node file",
        )
    found = CoreMap(tuple(int(word) for word in words[:lcores]))
    if len(found.triples) > MAX_TRIPLES:
        raise CapabilityError(
            f"t4p4s reads no map of {lcores} cores: options have at most 1024 characters", key="cores"
        )
    return found


def addresses(facts: NodeFacts) -> tuple[str, ...]:
    """PCI addresses of the interfaces, in the order of their ports."""
    found = []
    for name in INTERFACES:
        address = facts.text(f"interface_{name}")
        if not PCI_ADDRESS.fullmatch(address):
            what = f"{address!r} is no PCI address" if address else f"the node file names no interface {name}"
            raise CapabilityError(
                f"t4p4s receives on interface ingress and sends on egress: {what}",
                key="interfaces",
                hint='write interfaces: {ingress: "0000:03:00.0", egress: "0000:03:00.1"} in the node file',
            )
        found.append(address)
    if found != sorted(set(found)):
        raise CapabilityError(
            f"interface ingress ({found[0]}) must come before egress ({found[1]}): DPDK numbers ports by PCI "
            "address, and programs send to the second",
            key="interfaces",
            hint="exchange the two in the node file, and the ends of the cables at the load generator",
        )
    return tuple(found)


def folder_of(facts: NodeFacts, key: str, what: str, hint: str) -> str:
    path = facts.text(key)
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        problem = f"its path {path!r} has characters that t4p4s.sh does not quote" if path else "the node has none"
        raise CapabilityError(f"t4p4s needs {what}: {problem}", key=key, hint=hint)
    return path


def checkout_of(facts: NodeFacts) -> str:
    """Path of the checkout of t4p4s; errors as in :func:`folder_of`."""
    return folder_of(facts, "tool_t4p4s", "its checkout on the node", "set T4P4S there, or clone it to ~/t4p4s")


def compiler_of(facts: NodeFacts) -> str:
    """Path of the folder of p4c (``$P4C``); errors as in :func:`folder_of`."""
    return folder_of(facts, "tool_p4c", "p4c, built in its source folder", "set P4C there, or build it in ~/p4c")


def script(name: str) -> str:
    return render(
        f"t4p4s/{name}.j2",
        added_file=ADDED_FILE,
        built=BUILT,
        build_type=BUILD_TYPE,
        causes=CAUSES,
        copied=COPIED,
        drivers=DRIVERS,
        error=255,
        examples_file="p4perf.cfg",
        hugepages_mib=HUGEPAGES_MIB,
        log_lines=20,
        log_mark=LOG_MARK,
        meanings=RUN_CODES,
        options_file="opts_p4perf.cfg",
        stop_polls=50,
        tools=TOOLS,
    )


def build_plan(name: str, text: str, facts: NodeFacts, lcores: int) -> BuildPlan:
    """A copy of the checkout with a program in it, and with the scripts that compile and run it there.

    Nothing is compiled yet. The checkout itself is only read.
    """
    cores = render(
        "t4p4s/lcores.cfg.j2",
        version=__version__,
        map=core_map(facts, lcores),
        channels=MEMORY_CHANNELS,
        addresses=addresses(facts),
        prefix="p4perf",
    )
    files = {
        f"{name}.p4": text,
        "p4perf.cfg": render("t4p4s/examples.cfg.j2", version=__version__, programs=PROGRAMS),
        ADDED_FILE: cores,
        **{each: script(each) for each in ("isolate.sh", "environment.sh", "compile.sh", "run.sh")},
    }
    return BuildPlan(files, (("sh", "isolate.sh", checkout_of(facts)),), "t4p4s.sh", context_of(facts, *CONTEXT))


_OMITTED = re.compile(r"^Warning: while .*|^(?!.*\bwarning: ).*(?:not supported|not implemented).*", re.M)
_REFUSED = re.compile(
    r"^(?:Error: while |.*: error: |.*\[--Werror=|.*syntax error|Compiler Bug|"
    r"(?:Assertion|Attribute|Index|Key|Name|NotImplemented|Type|Value)Error: ).*",
    re.M,
)
"""Of the compiler, and of Python where that did not expect a program; not that a module or a file is missing."""

_OF_PYTHON = re.compile(r"^[A-Za-z]+Error: .*", re.M)
_IN_C = re.compile(r"^(?!ninja: ).*(?:: (?:fatal )?error: |undefined (?:symbol|reference)).*", re.M)
_OF_MESON = re.compile(r".*\bERROR: .*")
_GENERAL = re.compile(r"^(?:Error: |.*Cannot parse option|.*Cannot not find).*", re.M)


def check_compiled(step: ServiceStep, result: JobResult) -> None:
    """Judge the phases p4 and c by exit code and output together.

    t4p4s compiles some constructs to nothing with a warning only, continues after meson failed, and may print an error
    and exit with 0.
    """
    if result.timed_out:
        raise step_failed(step, result)
    said = _ESCAPES.sub("", f"{result.stdout}\n{result.stderr}")
    compiler, _, rest = said.partition("COMPILE SWITCH")
    if omitted := _OMITTED.search(compiler):
        raise _refused(step, f"t4p4s leaves out a part of the program: {omitted[0].strip()}")
    if result.returncode == 0 and said.rstrip().endswith(BUILT):
        return
    if "No space left on device" in said:
        raise _failed(step, "the disk of the node is full")
    if not rest and (refused := _REFUSED.search(compiler)):
        raise _refused(step, f"t4p4s refuses the program: {refused[0].strip()}")
    meson = _log(rest, "20_meson.txt")
    if (failed := _OF_MESON.search(meson)) or (meson and "ninja: error: loading" in rest):
        raise _failed(step, f"meson failed, and t4p4s went on: {failed[0].strip() if failed else _last_line(meson)}")
    if failed := _IN_C.search(rest):
        raise _refused(step, f"its C does not compile: {failed[0].strip()}")
    general = _OF_PYTHON.search(compiler) or _GENERAL.search(said)
    why = meaning(result.returncode, COMPILE_CODES) if result.returncode else "it made no switch"
    raise _failed(step, f"{why} (status {result.returncode}): {general[0].strip() if general else _last_line(said)}")


def _refused(step: ServiceStep, why: str) -> MeasurementError:
    return MeasurementError(f"{step.what}: {why}", key="refused")


def _failed(step: ServiceStep, why: str) -> MeasurementError:
    return MeasurementError(f"{step.what}: {why}")


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("p4perf: ")]
    return lines[-1] if lines else "it said nothing"


def _log(said: str, name: str) -> str:
    """The end of a log that ``compile.sh`` prints after a failure; empty if it is not there."""
    parts = re.split(rf"^{re.escape(LOG_MARK)} (\S+)$", said, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "")


OUTSIDE = "moongen"
"""Value of the fact ``load_generator`` where load comes from another machine."""

MIN_LOSS_PPS = 0.1e6
"""Cycles per packet need a saturated switch: loss in packets per second must exceed this (Scholz et
al. 2021, plots of the published measurements: transmitted minus received rate above 0.1 Mpps)."""

PERF_S = 2.0
"""How long events are counted in a trial, as in the published measurements, in seconds."""

MAX_FRAME_BYTES = 1518
"""``RTE_ETHER_MAX_LEN``, which t4p4s sets as MTU (dpdk_lib_init_hw.c)."""

MEMORY_BYTES = 512 << 20
"""Pools of packets on up to two sockets, and tables (at most 1024 entries each), in bytes, roughly."""

READY_S = 240.0
"""t4p4s asks a helper about every option (some seconds), waits up to 9 s for links (dpdk_lib_print.c), fills tables."""

SETTLE_S = 5.0
"""Between the begin of forwarding and the first packet, as in the published measurements."""

COMPILE_S, CHECK_S, DAY_S = 900.0, 60.0, 86400.0
"""How long compiling, a short command, and the switch may take, in seconds."""

CHECKING = "checking the node for t4p4s"
COMPILING = "compiling with t4p4s"
COUNTING = "counting events with perf"
STOPPING = "stopping t4p4s"


class ServedT4P4S(Serves):
    """The part of target t4p4s that a load generator on another machine needs."""

    lcores: ClassVar[int] = 1
    """Cores that forward. Frames without IP, which p4perf's programs have, are spread over no queues by RSS: more cores
    than one would be idle."""

    sysfs: ClassVar[str] = "/sys"
    """Where the node describes its interfaces and hugepages."""

    served_gives: ClassVar[tuple[str, ...]] = (
        *("packet_rate", "cycles_per_packet", "baseline_cycles_per_packet", "cost_cycles_per_packet"),
        *("cache_misses", "core_frequency"),
    )

    @override
    def is_served(self, facts: NodeFacts) -> bool:
        return facts.text("load_generator") == OUTSIDE

    def served_problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """What is missing on the node according to its facts; the steps of :meth:`service` check the node itself."""
        found = []
        for look in (checkout_of, compiler_of, addresses, lambda facts: core_map(facts, self.lcores)):
            try:
                look(facts)
            except CapabilityError as error:
                found.append(Problem(error.message, error.hint or ""))
        if not facts.text("tool_perf") and _ghz(facts.values) is None:
            what = "neither perf nor a fixed frequency of the cores: there are no cycles per packet"
            found.append(Problem(what, "install linux-perf, or write cpu_ghz in the node file", fatal=False))
        return tuple(found)

    def served_plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        if workload.frames:
            raise CapabilityError("a load generator on another machine does not send the packets of a program of yours")
        check_frame_size("t4p4s", traffic.frame_size_bytes, MAX_FRAME_BYTES)
        builds = self._builds(workload, traffic, facts)
        identity = ("served", *(build.key for build in builds.values()), workload.packets.frame_size_bytes)
        return PointPlan(point_key(*identity), builds["program"], workload, traffic, MEMORY_BYTES)

    def _builds(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> dict[str, BuildPlan]:
        """The copies of the checkout for program and baseline."""
        files = T4P4S().generate(workload, traffic)
        texts = {file.path.removesuffix(".p4"): file.text() for file in files}
        return {name: build_plan(name, text, facts, self.lcores) for name, text in texts.items()}

    @override
    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        """Look at the node, compile in a copy of the checkout, run the switch there, and count on its cores."""
        build = self._builds(plan.workload, plan.traffic, facts)[program]
        cores, p4c = core_map(facts, self.lcores), compiler_of(facts)
        look = ("sh", "{folder}/check.sh", checkout_of(facts), p4c, self.sysfs, *addresses(facts))
        stop = Job(("sh", "{folder}/stop.sh", build.key), CHECK_S, None, {"stop.sh": script("stop.sh").encode()})
        here = ("{build}", program, p4c, *OPTIONS)
        main = Job(("sh", "{build}/run.sh", *here, *cores.options), DAY_S, build)
        counting = (ServiceStep(COUNTING, perf_job(cores.cpus, PERF_S)),) if facts.text("tool_perf") else ()
        return Service(
            prepare=(
                ServiceStep(CHECKING, Job(look, CHECK_S, None, {"check.sh": script("check.sh").encode()})),
                ServiceStep(STOPPING, stop),
                ServiceStep(COMPILING, Job(("sh", "{build}/compile.sh", *here), COMPILE_S, build)),
            ),
            main=main,
            ready=READY,
            broken=BROKEN,
            ready_timeout_s=READY_S + plan.setup_s,
            settle_s=SETTLE_S,
            during=counting,
            release=(ServiceStep(STOPPING, stop),),
        )

    @override
    def check_step(self, step: ServiceStep, result: JobResult) -> None:
        """By exit code and output.

        Raises:
            MeasurementError: something is missing on the node, the program was not compiled as it is (key
                ``refused`` if it is the reason), or perf has no access to the counters.
        """
        if step.what == COMPILING:
            check_compiled(step, result)
        elif result.timed_out:
            raise step_failed(step, result)
        elif step.what == CHECKING and result.returncode != 0:
            missing = [line.removeprefix("missing: ") for line in result.stdout.splitlines() if "missing: " in line]
            if not missing:
                raise step_failed(step, result)
            raise MeasurementError(f"{step.what}: it lacks {'; '.join(missing)}")
        elif step.what == COUNTING and result.returncode != 0:
            failed = step_failed(step, result)
            hint = "run as root, or sysctl kernel.perf_event_paranoid=0"
            raise MeasurementError(failed.message, hint=hint)
        else:
            super().check_step(step, result)

    @override
    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        if (result := results.get(COUNTING)) is None:
            return {}
        counts = {event: list(pair) for event, pair in perf_counts(result.stderr).items()}
        return {"perf": {"lcores": self.lcores, "counts": counts, "not_counted": list(not_counted(result.stderr))}}

    @override
    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        """Cycles per packet of program and baseline, where each was saturated, and misses of the last-level cache.

        A core that polls has ``cycles_per_packet = cycles_per_second * lcores / received_packets_per_second``; the
        former is counted by perf, or is the fixed frequency of the node file.
        """
        program, baseline = (_Side(overload.get(name, {}), facts, self.lcores) for name in ("program", "baseline"))
        values = [MetricValue("packet_rate", program.rate_pps / 1e6, "Mpps")] if program.rate_pps > 0 else []
        cycles, idle = program.cycles_per_packet, baseline.cycles_per_packet
        for name, value in (("cycles_per_packet", cycles), ("baseline_cycles_per_packet", idle)):
            if value is not None:
                values.append(MetricValue(name, value, "cycles/packet"))
        if cycles is not None and idle is not None:
            values.append(MetricValue("cost_cycles_per_packet", cycles - idle, "cycles/packet"))
        if (misses := program.llc_misses_per_packet) is not None:
            values.append(MetricValue("cache_misses", misses, "misses/packet"))
        if (hz := program.events_per_second(CYCLES)) is not None:
            values.append(MetricValue("core_frequency", hz / 1e9, "GHz"))
        return tuple(values)


class _Side:
    """An overload of one of the two programs."""

    def __init__(self, counted: Mapping[str, Any], facts: Mapping[str, str], lcores: int) -> None:
        self._facts, self._lcores = facts, lcores
        self.rate_pps = float(counted.get("receive_rate_pps", 0.0))
        self.saturated = self.rate_pps > 0 and float(counted.get("rate_pps", 0.0)) - self.rate_pps > MIN_LOSS_PPS
        self._counts: Mapping[str, Any] = counted.get("evidence", {}).get("perf", {}).get("counts", {})

    def events_per_second(self, event: str) -> float | None:
        """Of one core, on average; None if they were not counted."""
        value, seconds = self._counts.get(event, (0, 0.0))
        return value / seconds if seconds > 0 else None

    @property
    def cycles_per_packet(self) -> float | None:
        """None if the switch was not saturated, or if the clock of the cores is unknown."""
        if not self.saturated:
            return None
        hz = self.events_per_second(CYCLES)
        if hz is None:
            ghz = _ghz(self._facts)
            hz = None if ghz is None else ghz * 1e9
        return None if hz is None else hz * self._lcores / self.rate_pps

    @property
    def llc_misses_per_packet(self) -> float | None:
        """None if the processor is not one of Intel, or they were not counted."""
        misses = self.events_per_second(LLC_MISSES)
        if misses is None or self.rate_pps <= 0 or "Intel" not in self._facts.get("cpu_model", ""):
            return None
        return misses * self._lcores / self.rate_pps


def _ghz(facts: Mapping[str, str]) -> float | None:
    """The fixed frequency of the cores, if the node file has one that can be."""
    try:
        ghz = float(facts.get("cpu_ghz", ""))
    except ValueError:
        return None
    return ghz if 0.1 <= ghz <= 10 else None
