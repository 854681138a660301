"""Target nfp4000: an Agilio CX (Netronome NFP-4000) whose firmware nfp4build makes of a program in P4.

The card forwards by itself: all that is measured of it comes from a load generator outside. **Nothing here was ever
run with a real card**; it is built on public programs, outputs and configurations for SDK 6.1-preview, and tested
with tools that do as those say.

Cycles are not among the metrics. A packet is worked on by one of many microengines with four or eight threads each,
which wait for memory while others run: neither is it known how many of them were busy, nor does the card tell. The rate
of an overload divided by clock and number of microengines would be a number, but no cost of the program.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, NoReturn

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.capabilities import Capabilities, Limit, Quantity, both
from p4perf.generators.p4 import nfp
from p4perf.generators.program import Program, Workload
from p4perf.targets.base import (
    BuildPlan,
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    Target,
    TrialOptions,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.nfp4000_build import card_of, firmware_plan, model_of
from p4perf.targets.nfp4000_evidence import evidence_of
from p4perf.targets.nfp4000_service import Design, judge, service_of
from p4perf.targets.service import ServedProgram, Service, Step

MAX_ENTRIES = 1 << 18
"""Entries of a table: rules go to the runtime in one file, 150 to 600 B each. How many the card takes is not known."""

LOADING_S = 120.0
"""What loading a design takes, in seconds, roughly."""

_ENTRIES = Limit(MAX_ENTRIES, "all rules go to the runtime in one file; what the card takes is not known")
_QUANTITIES: tuple[Quantity, ...] = ("exact entries", "lpm entries", "ternary entries")

CAPABILITIES = both(Capabilities("nfp4000", limits=dict.fromkeys(_QUANTITIES, _ENTRIES)), nfp.CAPABILITIES)


class Nfp4000Target(Target):
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

    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """The tools of the SDK, and a card that is known."""
        found = []
        for tool, what in (("nfp4build", "hosted toolchain"), ("rtecli", "runtime environment")):
            if not facts.text(f"tool_{tool}"):
                hint = f"install the {what} of Netronome's SDK 6.1; {tool} is looked for in /opt/netronome/p4/bin"
                found.append(Problem(f"no {tool}", hint))
        if not model_of(facts):
            found.append(Problem("no Agilio CX: nfp-hwinfo tells no assembly.model", "run as root on the node of it"))
            return tuple(found)
        try:
            card_of(facts)
        except CapabilityError as error:
            found.append(Problem(error.message, "use a card with an NFP-4000"))
        return tuple(found)

    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """The firmware of the program; that of the baseline is planned with it.

        The memory of the tables is that of the card.
        """
        self.capabilities.check(workload.program, workload.packets)
        programs = [self._firmware(program, facts) for program in (workload.program, workload.baseline)]
        entries = [
            [(t.name, asdict(t.entries)) for t in program.tables] for program in (workload.program, workload.baseline)
        ]
        identity = [[p.key for p in programs], entries, asdict(traffic), repr(workload.packets), self.chosen]
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return PointPlan(key, programs[0], workload, traffic, memory_bytes=0, setup_s=LOADING_S)

    def _firmware(self, program: Program, facts: NodeFacts) -> BuildPlan:
        card = card_of(facts)
        source, *_ = nfp.Nfp().files("program", nfp.with_ports(program, card.port_stride))
        return firmware_plan(source.text(), card, self.chosen, facts)

    def is_served(self, facts: NodeFacts) -> bool:
        """Always: there is no other way to measure a card."""
        return True

    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        """Load the design with its rules; nothing runs on the node meanwhile."""
        workload = plan.workload
        chosen = nfp.with_ports(
            workload.program if program == "program" else workload.baseline, card_of(facts).port_stride
        )
        _, *rules = nfp.Nfp().files("program", chosen)
        design = Design(
            build=plan.build if program == "program" else self._firmware(workload.baseline, facts),
            rules="".join(rules[0].pieces).encode("ascii") if rules else None,
            rule_count=sum(t.entries.count for t in chosen.tables),
            ports=nfp.ports_of(chosen),
        )
        return service_of(design, facts)

    def check_step(self, step: Step, result: JobResult) -> None:
        """By status and ``error:``, with what to do about what is known to happen."""
        judge(step, result)

    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        """Counters with their differences, and what was built."""
        return evidence_of(results)

    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        """The rate at which packets come back, and what nfp4build took where it is known."""
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

    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        """There are none: a card has no packet source of its own.

        Raises:
            CapabilityError: always.
        """
        raise CapabilityError(
            f"target {self.label} is measured by a load generator outside only",
            key="load",
            hint="name a node with the role loadgen",
        )

    def parse(self, result: JobResult) -> TrialRecord:
        """There is nothing to read; errors as in :meth:`summarise`."""
        self._no_trials()

    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        """There is nothing to judge.

        Raises:
            MeasurementError: always.
        """
        self._no_trials()

    def _no_trials(self) -> NoReturn:
        raise MeasurementError(f"target {self.label} has no trials of its own: a load generator measures it")
