"""What t4p4s is told and what it says: files for a copy of its checkout, maps of cores and ports, exit codes, messages.

Facts are those of P4ELTE/t4p4s, commit 7cd5bac (January 2023), by file and line of that checkout.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.rendering import render
from p4perf.targets.base import BuildPlan, JobResult, NodeFacts, step_failed
from p4perf.targets.service import Step
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
"""Whatever is done: the model has to be told, all entries stand in the program, the hugepages of the node stay as they
are, and output has neither colours (``bw``) nor escape sequences that end them (``light=0``)."""

MEMORY_CHANNELS = 4
"""As in ``opts_dpdk.cfg``."""

BUILD_TYPE = "release"
"""For meson; t4p4s' own default is ``debugoptimized`` (t4p4s.sh, ``MESON_BUILDTYPE``)."""

ADDED_FILE = "added.cfg"
"""Lines that are added to the options of the checkout."""

CONTEXT = ("t4p4s_commit", "hlir16_commit", "tool_p4c", "p4test_version", "dpdk_version", "cpu_model", "cpu_id")
"""Facts that tell one switch from another made of the same program."""

BUILT = "p4perf: there is a switch"
LOG_MARK = "p4perf: the end of"

MAX_TRIPLES = 900
"""Characters of the map of queues: t4p4s reads no more than 1024 of an option (t4p4s.sh, ``conn.recv``)."""

_PATH = re.compile(r"/[A-Za-z0-9/._@+-]+")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

READY = "P4_FWD: entering main loop on lcore [0-9]+"
"""A log line at level INFO (dpdk_nicon.c, ``init_lcore_data``); most of what else a switch says needs ``dbg``."""

BROKEN = "Cannot parse option|lcore [0-9]+ has nothing to do"
"""An option that t4p4s goes on without, a map without a queue; after everything worse the switch ends by itself."""

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
    if 128 < status <= 128 + 64:
        names = {int(s): s.name for s in signal.Signals}
        return f"it died of signal {status - 128} ({names.get(status - 128, 'unknown')})"
    return "it failed"


@dataclass(frozen=True, slots=True)
class CoreMap:
    """Which CPU is which lcore, and which queue of which port it serves: queue n of every port is of lcore n.

    lcores are numbered from 0 without a gap, whatever their CPUs: t4p4s sets up the transmit queues of lcores 0 to
    n - 1 only (dpdk_lib_init_hw.c, ``dpdk_init_port``).
    """

    cpus: tuple[int, ...]
    ports: int = len(INTERFACES)

    @property
    def lcores(self) -> int:
        """How many lcores there are."""
        return len(self.cpus)

    @property
    def eal_lcores(self) -> str:
        """For ``--lcores`` of EAL: ``0@2,1@3``."""
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
        """What ``t4p4s.sh`` is told: queues of a port times ports, as its own ``opts_dpdk.cfg`` has it."""
        return (f"cores={self.lcores}", f"ports={self.lcores}x{self.ports}")


def core_map(facts: NodeFacts, lcores: int) -> CoreMap:
    """The map of the first CPUs that the node file allows.

    Raises:
        CapabilityError: there are too few of them, or the map is longer than t4p4s reads.
    """
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
    """PCI addresses of the interfaces, in the order of their ports.

    Raises:
        CapabilityError: one is not in the node file, or DPDK would number them the other way round: it does so by
            PCI address.
    """
    found = []
    for name in INTERFACES:
        address = facts.text(f"interface_{name}")
        if not _PCI.fullmatch(address):
            what = f"{address!r} is no PCI address" if address else f"the node file names no interface {name}"
            raise CapabilityError(
                f"t4p4s receives on interface ingress and sends on egress: {what}",
                key="interfaces",
                hint='write interfaces: {ingress: "0000:03:00.0", egress: "0000:03:00.1"} in the node file',
            )
        found.append(address)
    if found != sorted(set(found)):
        raise CapabilityError(
            f"interface ingress ({found[0]}) has to come before egress ({found[1]}): DPDK numbers ports by PCI "
            "address, and programs send to the second",
            key="interfaces",
            hint="exchange the two in the node file, and the ends of the cables at the load generator",
        )
    return tuple(found)


def folder_of(facts: NodeFacts, key: str, what: str, hint: str) -> str:
    """A folder of the node, from its facts.

    Raises:
        CapabilityError: it is not known, or its path has characters that ``t4p4s.sh`` does not quote.
    """
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
    """A script that runs on the node, by its name."""
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

    Args:
        name: ``program`` or ``baseline``.
        text: in P4.
        facts: of the node.
        lcores: how many there are to be.

    Raises:
        CapabilityError: the node has too few cores or interfaces, or lacks the checkout.
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
    context = {key: facts.text(key) for key in CONTEXT}
    return BuildPlan(files, (("sh", "isolate.sh", checkout_of(facts)),), "t4p4s.sh", context)


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


def check_compiled(step: Step, result: JobResult) -> None:
    """Judge the phases p4 and c by exit code and output together.

    t4p4s compiles some constructs to nothing and says so in a warning only; it goes on after meson failed; and where
    its surroundings are wrong, it may print an error and exit with 0.

    Raises:
        MeasurementError: there is no switch, or it is not what the program says. The key is ``refused`` where the
            program is the reason.
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


def _refused(step: Step, why: str) -> MeasurementError:
    return MeasurementError(f"{step.what}: {why}", key="refused")


def _failed(step: Step, why: str) -> MeasurementError:
    return MeasurementError(f"{step.what}: {why}")


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("p4perf: ")]
    return lines[-1] if lines else "it said nothing"


def _log(said: str, name: str) -> str:
    """The end of a log that ``compile.sh`` prints after a failure; empty if it is not there."""
    parts = re.split(rf"^{re.escape(LOG_MARK)} (\S+)$", said, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "")
