"""Target nfp4000: an Agilio CX (Netronome NFP-4000) whose firmware nfp4build makes of a program in P4.

Flags and names are those of public builds with SDK 6.1-preview; the SDK itself is proprietary.

The card forwards by itself: all that is measured of it comes from a load generator outside. **Nothing here was ever
run with a real card**; it is built on public programs, outputs and configurations for SDK 6.1-preview, and tested
with tools that do as those say.

Cycles are not among the metrics. A packet is worked on by one of many microengines with four or eight threads each,
which wait for memory while others run: neither is it known how many of them were busy, nor does the card tell. The rate
of an overload divided by clock and number of microengines would be a number, but no cost of the program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.p4 import nfp
from p4perf.programs.capabilities import Capabilities, Limit, Quantity, both
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.targets.base import BuildPlan, JobResult, MetricValue, NodeFacts, PointPlan, Problem, point_key
from p4perf.targets.builds import context_of, shell
from p4perf.targets.nfp4000_service import CardDesign, evidence_of, judge, service_of
from p4perf.targets.roles import Serves
from p4perf.targets.service import ServedProgram, Service, Step

FIRMWARE = "firmware.nffw"
OUTPUT = "out"
"""Folder of a build for what nfp4build makes besides the firmware."""

DESIGN = f"{OUTPUT}/pif_design.json"
"""The description of the program that the runtime needs to load the firmware."""

COMPILE_TIME = "compile_ms"
"""File of a build with the time that nfp4build took, in milliseconds."""

BUILD_TIMEOUT_S = 3600.0
"""How long a build may take, in seconds: it compiles C for some fifty microengines."""

SDK_FOLDER = "/opt/netronome/p4"
"""Folder of the SDK, unless the path of nfp4build implies another."""

PORT_STRIDES = {"lithium": 1, "hydrogen": 4, "beryllium": 4, "carbon": 1, "starfighter1": 1}
"""Platforms of nfp4build (``-l``), and how far apart the numbers of neighbouring physical ports are.

A port of 40 Gbit/s takes four channels: rtecli lists ``p0`` and ``p4`` for a card with two of them. Only those and
lithium (two of 10 Gbit/s, ``p0`` and ``p1``) are known from public output; for the others it is assumed, and the ports
are looked for before a design is used.
"""

CARDS = {"AMDA0096-0001": "lithium", "AMDA0081-0001": "hydrogen"}
"""Part numbers of cards that public builds give beside their platform."""

DEFAULT_PLATFORM = "lithium"
"""What is planned for where no card is known; nothing can be measured there."""

_PART = re.compile(r"(AMDA\d{4}-\d{4})")

_BUILD = f"""mkdir -p {OUTPUT} || exit
start=$(date +%s%N)
"$@" >nfp4build.log 2>&1 || {{ status=$?; cat nfp4build.log >&2; exit "$status"; }}
end=$(date +%s%N)
for product in {FIRMWARE} {DESIGN}; do
	[ -s "$product" ] || {{ cat nfp4build.log >&2; echo "error: nfp4build left no $product" >&2; exit 1; }}
done
echo $(((end - start) / 1000000)) >{COMPILE_TIME}
cat nfp4build.log"""
"""nfp4build drives make and several compilers, which print to either output."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its platform, the flags of nfp4build for it, and the distance of its ports' numbers."""

    platform: str
    flags: tuple[str, ...]
    port_stride: int


def model_of(facts: NodeFacts) -> str:
    """What the card of a node is called, by platform or by part number; empty if that is not known."""
    return (facts.text("nfp_model") or facts.text("nfp_partno")).strip()


def card_of(facts: NodeFacts) -> Card:
    """The card of a node.

    ``nfp_model`` is what nfp-hwinfo calls ``assembly.model``, the platform; a part number is understood too.
    """
    model = model_of(facts) or DEFAULT_PLATFORM
    for platform, stride in PORT_STRIDES.items():
        if model.lower().startswith(platform):
            return Card(platform, ("-l", platform), stride)
    part = _PART.match(model)
    if part is not None and part[1] in CARDS:
        platform = CARDS[part[1]]
        return Card(platform, ("--sku", f"{part[1]}:0", "-l", platform), PORT_STRIDES[platform])
    known = ", ".join((*PORT_STRIDES, *CARDS))
    raise CapabilityError(
        f"unknown card {model[:40]!r} (assembly.model of nfp-hwinfo; supported: {known})", key="target"
    )


def firmware_plan(source: str, card: Card, variants: Collection[str], facts: NodeFacts) -> BuildPlan:
    """The build of a program in P4.

    Args:
        source: the program. What stands before its first line of code is left out, so that equal programs are built
            once, whatever they are called.
    """
    tool = facts.text("tool_nfp4build", "nfp4build")
    command = shell(_BUILD, tool, *_flags(card, variants, tool))
    context = context_of(facts, "nfp_sdk_version", "nfp4build_checksum")
    return BuildPlan({"program.p4": _bare(source)}, (command,), FIRMWARE, context, timeout_s=BUILD_TIMEOUT_S)


def _flags(card: Card, variants: Collection[str], tool: str) -> list[str]:
    """Which of two modes is the default of nfp4build is not documented: one of them is always named."""
    flags = ["-o", FIRMWARE, "-p", OUTPUT, "-4", "program.p4", *card.flags]
    flags += ["--nfp4c_p4_version", "16", "--nfp4c_p4_compiler", "p4c-nfp", "--no-debug-info"]
    flags.append("--reduced-thread-usage" if "reduced-threads" in variants else "--no-reduced-thread-usage")
    flags.append("--shared-codestore" if "shared-codestore" in variants else "--no-shared-codestore")
    if "flowcache" not in variants:
        # Its headers are included even where it is disabled.
        include = f"{_sdk_folder(tool)}/components/flowcache/me/lib/flowcache"
        flags += ["--disable-component", "flowcache", "-D", "PIF_GLOBAL_FLOWCACHE_DISABLED", "-I", include]
    return flags


def _sdk_folder(tool: str) -> str:
    path = PurePosixPath(tool)
    return str(path.parent.parent) if path.is_absolute() and path.parent.name == "bin" else SDK_FOLDER


def _bare(source: str) -> str:
    lines = source.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    return "".join(lines[first:])


MAX_ENTRIES = 1 << 18
"""Entries of a table: rules go to the runtime in one file, 150 to 600 B each. How many the card takes is not known."""

LOADING_S = 120.0
"""What loading a design takes, in seconds, roughly."""

_ENTRIES = Limit(MAX_ENTRIES, "all rules go to the runtime in one file; what the card takes is not known")
_QUANTITIES: tuple[Quantity, ...] = ("exact entries", "lpm entries", "ternary entries")

CAPABILITIES = both(Capabilities("nfp4000", limits=dict.fromkeys(_QUANTITIES, _ENTRIES)), nfp.CAPABILITIES)


class Nfp4000Target(Serves):
    """An Agilio CX between the packets of a load generator."""

    name = "nfp4000"
    summary = "Netronome Agilio CX (NFP-4000, SDK 6.1), loaded from outside; never run with a real card"
    metrics = ("packet_rate", "compile_time")
    served_gives: ClassVar[tuple[str, ...]] = metrics
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    variants: ClassVar[Mapping[str, str]] = {
        "flowcache": "the first lookups of a flow are cached, as by default of the SDK",
        "reduced-threads": "four threads a microengine instead of eight, with more memory each",
        "shared-codestore": "two microengines share their code store",
    }

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = []
        for tool, what in (("nfp4build", "hosted toolchain"), ("rtecli", "runtime environment")):
            if not facts.text(f"tool_{tool}"):
                hint = f"install the {what} of Netronome's SDK 6.1; {tool} is looked for in /opt/netronome/p4/bin"
                found.append(Problem(f"no {tool}", hint))
        if not model_of(facts):
            found.append(Problem("no Agilio CX: nfp-hwinfo reports no assembly.model", "run as root on the node of it"))
            return tuple(found)
        try:
            card_of(facts)
        except CapabilityError as error:
            found.append(Problem(error.message, "use a card with an NFP-4000"))
        return tuple(found)

    @override
    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """The firmware of the program; that of the baseline is planned with it.

        The memory of the tables is that of the card.
        """
        self.capabilities.check(workload.program, workload.packets)
        programs = [self._firmware(program, facts) for program in (workload.program, workload.baseline)]
        entries = [
            [(t.name, asdict(t.entries)) for t in program.tables] for program in (workload.program, workload.baseline)
        ]
        key = point_key([p.key for p in programs], entries, asdict(traffic), repr(workload.packets), self.chosen)
        return PointPlan(key, programs[0], workload, traffic, memory_bytes=0, setup_s=LOADING_S)

    def _firmware(self, program: Program, facts: NodeFacts) -> BuildPlan:
        card = card_of(facts)
        source, *_ = nfp.Nfp().files("program", nfp.with_ports(program, card.port_stride))
        return firmware_plan(source.text(), card, self.chosen, facts)

    @override
    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        workload = plan.workload
        chosen = nfp.with_ports(
            workload.program if program == "program" else workload.baseline, card_of(facts).port_stride
        )
        _, *rules = nfp.Nfp().files("program", chosen)
        design = CardDesign(
            build=plan.build if program == "program" else self._firmware(workload.baseline, facts),
            rules="".join(rules[0].pieces).encode("ascii") if rules else None,
            rule_count=sum(t.entries.count for t in chosen.tables),
            ports=nfp.ports_of(chosen),
        )
        return service_of(design, facts)

    @override
    def check_step(self, step: Step, result: JobResult) -> None:
        judge(step, result)

    @override
    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        return evidence_of(results)

    @override
    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        program = overload.get("program") or {}
        found = []
        rate = program.get("receive_rate_pps")
        if isinstance(rate, int | float) and math.isfinite(rate) and rate > 0:
            found.append(MetricValue("packet_rate", rate / 1e6, "Mpps"))
        evidence = program.get("evidence") or (program.get("raw") or {}).get("evidence") or {}
        compile_ms = (evidence.get("firmware") or {}).get("compile_ms")
        if isinstance(compile_ms, int | float):
            found.append(MetricValue("compile_time", float(compile_ms), "ms"))
        return tuple(found)
