"""Target t4p4s: P4 compiled by t4p4s, in one process, packets from memory, no NIC.

The harness is that of dpdk-c: its packet source and sink stand in the place of RX and TX, and windows are gated alike.
Program and baseline are shared libraries. ``t4p4s.sh`` compiles them in copies of its checkout, see
:mod:`p4perf.targets.t4p4s_service`, with a variant of p4perf's own (beside ``std``, which takes packets from network
interfaces, and ``test``, which takes them from a file): ``t4p4s_ports.c`` exchanges packets with the harness. The
script's variable for the C compiler names a wrapper that links a shared library instead of a program, because program
and baseline have to be in one process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import render
from p4perf.generators.p4.t4p4s import CAPABILITIES as DIALECT
from p4perf.generators.p4.t4p4s import MAX_ENTRIES, T4P4S
from p4perf.programs import ir
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.targets import builds
from p4perf.targets import t4p4s_service as service
from p4perf.targets.base import BuildPlan, JobResult, NodeFacts, PointPlan, Problem, TrialRecord
from p4perf.targets.dpdk import HARNESS_LIMITS, HARNESS_VERSION, POOL_BYTES, DpdkTarget
from p4perf.targets.dpdk_c import TBL24_BYTES, key_slot_bytes
from p4perf.targets.oracle import frame_files, verification_file
from p4perf.targets.t4p4s_program import check_own, own_text, own_verification
from p4perf.targets.t4p4s_service import ServedT4P4S
from p4perf.version import __version__

PRODUCT = "t4p4s"
INTERFACE = "library.h"
PORTS = "t4p4s_ports.c"

VARIANT = "p4perf"
"""Value of the option ``variant=`` of ``t4p4s.sh``."""

BUILD_TIMEOUT_S = 1800.0
"""Its compiler takes one to two minutes for 1024 entries; and only one of them may work at a time."""

OMISSIONS = (
    "Warning: while",
    "Error: while",
    "[Nn]ot (currently )?supported",
    "syntax error",
    r"\[--Werror=",
    "^(Name|Type|Key|Value|Attribute|Index|NotImplemented)Error",
)
"""What its compiler prints where it leaves something out: extended regular expressions (POSIX).

It ends with status 0 after most of them (compiler_log_warnings_errors.py: warnings do not count).
"""

FAILURES = (
    "No space left on device",
    "ERROR: ",
    ": (fatal )?error: |undefined (symbol|reference)",
    "^[A-Za-z]+Error: ",
    "Error|Cannot ",
)
"""Lines that explain a missing library, the most specific first: a full disk, meson, the C compiler and linker,
Python, the script itself."""

_LINK = """set -e
march=$1
shift
cc=${CC:-cc}
flags="-std=gnu11 -O3 -Wall -Wextra -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=$march"
exec "$cc" $flags -o "$@" $(pkg-config --libs libdpdk) -lrte_net_ring -lm -ldl"""

_TOGETHER = """for file; do
	test -e "${file##*/}" || cp -- "$file" . || exit
done"""


def measured_plan(libraries: Mapping[str, BuildPlan], facts: NodeFacts) -> BuildPlan:
    """The harness with the libraries of ``program`` and ``baseline``, whoever makes them."""
    # What loads the libraries is the same for all programs.
    sources = builds.harness_text((*builds.HARNESS_HEADERS, INTERFACE, "library.c"))
    link = builds.shell(_LINK, builds.NATIVE, PRODUCT, "library.c", "{harness}/harness.o")
    harness, context = {"harness": builds.harness_plan(facts)}, builds.context_of(facts)
    parts = {**libraries, "executable": BuildPlan(sources, (link,), PRODUCT, context, harness)}
    files = ["{executable}/" + PRODUCT, "{program}/" + builds.COMPILE_TIME_FILE]
    files += [f"{{{role}}}/{role}.so" for role in libraries]
    return BuildPlan({}, (builds.shell(_TOGETHER, *files),), PRODUCT, builds.context_of(facts), parts)


def library_plan(role: str, text: str, facts: NodeFacts) -> BuildPlan:
    """The library of one program, and in the file :data:`COMPILE_TIME_FILE` how long ``t4p4s.sh`` took for it."""
    added = render("t4p4s/ports.cfg.j2", version=__version__, variant=VARIANT, ports=PORTS)
    compiler = render("t4p4s/cc.sh.j2", programs=service.PROGRAMS, compiler_file="cc.path")
    library = render(
        "t4p4s/library.sh.j2",
        built=service.BUILT,
        compiler_file="cc.path",
        failures=FAILURES,
        omissions="|".join(OMISSIONS),
        time_file=builds.COMPILE_TIME_FILE,
    )
    files = {
        f"{role}.p4": text,
        "p4perf.cfg": render("t4p4s/examples.cfg.j2", version=__version__, programs=service.PROGRAMS),
        service.ADDED_FILE: added,
        "cc.sh": compiler,
        "library.sh": library,
        **{name: service.script(name) for name in ("isolate.sh", "environment.sh", "compile.sh")},
        **builds.harness_text((INTERFACE, PORTS)),
    }
    checkout, p4c = facts.text("tool_t4p4s", "."), facts.text("tool_p4c", ".")
    options = (*service.OPTIONS, f"variant={VARIANT}")
    make = ("sh", "library.sh", role, p4c, facts.text("t4p4s_python", "python3"), *options)
    # t4p4s.sh has fixed names below /tmp. Its own file is what there is one of; the lock is not handed on to it.
    locked = ("flock", "-o", f"{checkout}/t4p4s.sh", *make)
    context = builds.context_of(facts, *service.CONTEXT) | builds.context_of(facts)
    return BuildPlan(files, (("sh", "isolate.sh", checkout), locked), f"{role}.so", context, timeout_s=BUILD_TIMEOUT_S)


REPLICAS = 2
"""Every table exists twice, so that one can change while the other is used (NB_REPLICA, dpdk_lib_conf.h)."""

INSERTION_S = 200e-6
"""Pause of the control plane after an entry (TABCHANGE_SLEEP_MICROS, dpdk_lib.h)."""

LPM_GROUPS = 1 << 8
LPM6_GROUPS = 1 << 16
"""``tbl8`` groups that t4p4s has rte_lpm and rte_lpm6 make, needed or not (dpdk_tables.h)."""

LONGEST_LPM_BITS = 32
"""Longer keys are looked up in rte_lpm6."""


@dataclass(frozen=True, slots=True)
class GeneratedCapabilities(Capabilities):
    """A table, and what the generator finds only when it looks at a whole program."""

    @override
    def refusal(
        self, program: ir.Program, packets: ir.PacketSpec | None = None, traffic: TrafficPlan | None = None
    ) -> str | None:
        reason = Capabilities.refusal(self, program, packets, traffic)
        if reason is not None:
            return reason
        try:
            T4P4S().files("program", program, packets)
        except CapabilityError as error:
            return error.message
        return None


class T4P4STarget(ServedT4P4S, DpdkTarget):
    """What t4p4s makes of a program, from memory to memory on one core; or between interfaces, loaded from outside."""

    name = "t4p4s"
    summary = "P4 compiled by t4p4s for DPDK, memory to memory on one core, or between network interfaces"
    caution = (
        "of what the baseline of t4p4s costs, four fifths are calls between its C files, which link-time optimisation "
        "removes (docs/targets.md: where its cycles go)"
    )
    standalone: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = GeneratedCapabilities(
        DIALECT.owner,
        {
            **DIALECT.missing,
            "counter": "nothing of it is in the packets, and a library does not show its cells",
            "register write": "nothing of it is in the packets, and a library does not show its cells",
            "offered load": "packets come from memory as fast as the program takes them",
        },
        {**DIALECT.limits, **HARNESS_LIMITS},
        {c: remark for c, remark in DIALECT.remarks.items() if c != "counter"},
    )

    @override
    def capabilities_at(self, facts: NodeFacts) -> Capabilities:
        return DIALECT if self.is_served(facts) else self.capabilities

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        if self.is_served(facts):
            return self.served_problems(facts)
        found = list(super().problems(facts))
        for look, variable in ((service.checkout_of, "T4P4S"), (service.compiler_of, "P4C")):
            try:
                look(facts)
            except CapabilityError as error:
                found.append(Problem(error.message, f"set {variable} to the folder of the checkout"))
        if lacking := facts.text("t4p4s_lacks").split():
            what = f"t4p4s.sh calls what is not here: {', '.join(lacking)}"
            found.append(Problem(what, "install it, as bootstrap-t4p4s.sh of the checkout does"))
        return tuple(found)

    @override
    def plan(self, workload: ir.Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        if self.is_served(facts):
            return self.served_plan(workload, traffic, facts)
        return super().plan(workload, traffic, facts)

    @override
    def runs_text(self, workload: ir.Workload) -> bool:
        return bool(workload.frames)

    @override
    def check(self, workload: ir.Workload, traffic: TrafficPlan) -> None:
        super().check(workload, traffic)
        if workload.frames:
            check_own(workload, self.capabilities)

    @override
    def memory_bytes(self, workload: ir.Workload) -> int:
        return POOL_BYTES + sum(self.memory(workload.program).values())

    @override
    def build(self, workload: ir.Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        written = replace(workload, program=workload.baseline) if workload.frames else workload
        programs = {f.path.removesuffix(".p4"): f.text() for f in T4P4S().generate(written, traffic)}
        programs |= {"program": own_text(workload)} if workload.frames else {}
        build = measured_plan({role: library_plan(role, text, facts) for role, text in programs.items()}, facts)
        return build, (build.key, self.traffic_arguments(workload, traffic), HARNESS_VERSION)

    @override
    def population_s(self, program: ir.Program) -> float:
        """Entries come one at a time, with pauses."""
        return 4 * INSERTION_S * sum(t.entries.count for t in program.tables)

    @override
    def job_files(self, workload: ir.Workload) -> dict[str, bytes]:
        if workload.frames:
            return {"verify.bin": own_verification(workload), **frame_files(workload)}
        # What fields of absent headers hold is up to the compiler of P4.
        return {"verify.bin": verification_file(workload, foreign_packets=False, counted=False)}

    @override
    def memory(self, program: ir.Program) -> Mapping[str, int]:
        return {t.name: REPLICAS * table_bytes(program, t) for t in program.tables}

    @override
    def parse(self, result: JobResult) -> TrialRecord:
        record = dict(super().parse(result))
        lines = (line for line in result.stdout.splitlines() if line.startswith('{"library"'))
        try:
            record["libraries"] = {described["library"]: described for described in map(json.loads, lines)}
            record["code_bytes"] = record["libraries"]["program"]["code_bytes"]
        except (KeyError, ValueError) as error:
            raise MeasurementError(f"the program printed a damaged description of its libraries: {error}") from error
        return record


def table_bytes(program: ir.Program, table: ir.Table) -> int:
    """Memory of one replica of a table in bytes, from the layouts of DPDK 22.11 and what t4p4s asks of them."""
    bits, count = program.key_bits(table), max(table.entries.count, 1)
    data_bits = max((program.action(name).data_bits for name in table.listed), default=0)
    entry = 64 * (1 + -(-(4 + data_bits // 8) // 64))
    content = 8 * count + count * entry + 128
    if program.match_kind(table) == "exact":
        return content + MAX_ENTRIES * (64 // 8 + key_slot_bytes(bits) + 8) + (16 << 10)
    groups = LPM_GROUPS if bits <= LONGEST_LPM_BITS else LPM6_GROUPS
    rule = 8 if bits <= LONGEST_LPM_BITS else 80
    return content + TBL24_BYTES + groups * (4 << 8) + count * rule + (16 << 10)
