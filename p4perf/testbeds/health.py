"""How good can a measurement be on a node? Judges facts and calibrations; changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from p4perf.programs.reading.p4c import WHERE_P4C
from p4perf.results.manifest import NodeFacts, cpu_list
from p4perf.targets.windows import GATE_TOLERANCE, lower_mode

State = Literal["ok", "warning", "missing", "info"]

STEAL_WARNING = 0.01
UNDISTURBED_WARNING = 0.8
CLOCK_WARNING = 0.05

OWN_P4, VALGRIND = "own P4 text", "valgrind, simulates caches"

TOOLS = {
    "cc_version": ("C compiler", "apt: gcc"),
    "pkg_config_version": ("pkg-config", "apt: pkg-config"),
    "dpdk_version": ("DPDK", "apt: libdpdk-dev"),
    "tool_luajit": ("LuaJIT, checks MoonGen scripts", "apt: luajit"),
    "tool_valgrind": (VALGRIND, "apt: valgrind"),
    "tool_p4test": ("p4test, checks generated P4", "install p4c"),
    "tool_p4c_bm2_ss": ("p4c-bm2-ss, compiles P4 for v1model and bmv2", "install p4c"),
    "tool_p4c_dpdk": ("p4c-dpdk, compiles P4 for PSA, PNA and DPDK", "install p4c"),
    "tool_simple_switch": ("bmv2", "build behavioral-model from source"),
    "tool_moongen": ("MoonGen, load generator", "build MoonGen from source"),
    "tool_t4p4s": ("t4p4s, a checkout in $T4P4S", "clone t4p4s"),
    "tool_p4c": ("p4c, a checkout in $P4C, for t4p4s", "build p4c from source"),
    "tool_pos": ("pos, testbed orchestration", "part of a pos testbed"),
    "tool_nfp4build": ("nfp4build, compiles for the NFP-4000", "part of the proprietary Netronome SDK"),
    "tool_rtecli": ("rtecli, loads the NFP-4000", "part of the proprietary Netronome SDK"),
    "nfp_model": ("Agilio CX (NFP-4000)", "nfp-hwinfo of the Netronome SDK must show its model, as root"),
}


@dataclass(frozen=True, slots=True)
class Check:
    area: str
    check: str
    state: State
    value: str
    advice: str = ""


def tool_checks(facts: NodeFacts) -> list[Check]:
    found = ((name, facts.text(key), advice) for key, (name, advice) in TOOLS.items())
    compiler, without = facts.text("tool_p4c_bm2_ss"), "p4c missing; JSON of p4c-bm2-ss works without it"
    own = Check("tool", OWN_P4, "ok" if compiler else "missing", compiler or without, WHERE_P4C * (not compiler))
    return [own] + [
        Check("tool", name, "ok" if value else "missing", value, "" if value else advice)
        for name, value, advice in found
    ]


def setting_checks(facts: NodeFacts) -> list[Check]:
    """Settings of the node that decide how quiet a measurement is."""
    root = facts.text("user") == "0"
    free, total = facts.number("hugepages_free") or 0, facts.number("hugepages_total") or 0
    size = (facts.number("hugepage_bytes") or 0) >> 10
    governor, turbo_off, smt = facts.text("governor"), facts.text("turbo_off"), facts.text("smt")
    isolated = facts.text("isolated_cpus")
    autogroup = facts.text("autogroup")
    return [
        _check("real-time scheduling", facts.text("realtime") == "yes", facts.text("realtime"), "run as root"),
        _check(
            "hugepages",
            free > 0,
            f"{free} of {total} free, {size} KiB each",
            "doctor --fix reserves some; without, 4 KiB pages add TLB misses to large tables",
        ),
        _check(
            "scheduler autogroup",
            autogroup == "0",
            {"0": "off", "1": "on"}.get(autogroup, "unknown"),
            "doctor --fix turns it off; nice values then count between sessions",
        ),
        _check(
            "frequency governor",
            governor in ("performance", ""),
            governor or "not under control of this system",
            "set it to performance",
        ),
        _check("turbo", turbo_off != "0", {"0": "on", "1": "off"}.get(turbo_off, "unknown"), "turn it off"),
        _check("hyperthreading", smt != "on", smt or "unknown", "turn it off, or keep the sibling CPU idle"),
        Check(
            "setting",
            "isolated CPUs",
            "info",
            isolated or "none",
            "" if isolated else "isolcpus makes plain mode possible",
        ),
        Check("setting", "virtual machine", "info", facts.text("virtual_machine", "no"), ""),
        _check("user", root, "root" if root else "not root", "runs get flags: no real-time bursts, no hugepages"),
    ]


def environment_checks(facts: NodeFacts) -> list[Check]:
    """The environment controls of Ren 2025, section II-B: a core of its own, interrupts elsewhere, a constant clock.

    What a control lacks does not spoil the numbers here: windows with a preemption or a neighbour do not count, and the
    clock of the core is measured beside each window.
    """
    cpu, isolated = facts.text("measuring_cpu"), facts.text("isolated_cpus")
    alone = cpu.isdigit() and int(cpu) in cpu_list(isolated)
    there, of_all = facts.number("irqs_there"), facts.number("irqs")
    governor, turbo = facts.text("governor"), {"0": "turbo on", "1": "turbo off"}.get(facts.text("turbo_off"), "")
    clock = ", ".join(part for part in (governor and f"governor {governor}", turbo) if part)
    fixed = governor == "performance" and turbo == "turbo off"
    rows: list[tuple[str, bool | None, str, str]] = [
        (
            "dedicated core",
            alone if cpu else None,
            f"bound to CPU {cpu}, {'isolated' if alone else 'shared with other processes'}",
            "isolcpus reserves a core; without it, disturbed windows are discarded",
        ),
        (
            "interrupts",
            None if there is None or of_all is None else there == 0,
            f"{there} of {of_all} interrupts go to CPU {cpu}",
            "set /proc/irq/*/smp_affinity_list to other CPUs",
        ),
        (
            "constant frequency",
            fixed if clock else None,
            clock,
            "governor performance and turbo off; without it core cycles are right, TSC cycles move with the clock",
        ),
    ]
    return [_check(*row, area="environment") for row in rows]


def _check(name: str, good: bool | None, value: str, advice: str, *, area: str = "setting") -> Check:
    if good is None:
        return Check(area, name, "info", "not under control of this system")
    return Check(area, name, "ok" if good else "warning", value or "unknown", "" if good else advice)


def noise_checks(calibrations: Sequence[Mapping[str, Any]], steal: float | None) -> list[Check]:
    """What the calibrators saw on every CPU, and the time that the hypervisor took away."""
    rows = []
    floor = min((lower_mode(c["gate_ratio"]) for c in calibrations), default=0.0)
    for c in calibrations:
        undisturbed = sum(float(r) < floor * (1 + GATE_TOLERANCE) for r in c["gate_ratio"]) / len(c["gate_ratio"])
        chain = [float(v) for v in c["chain_tsc"]]
        drift = chain[90] / chain[10] - 1
        clock_ghz = float(c["tsc_hz"]) * 12 / chain[50] / 1e9
        cpu, longest_us = f"CPU {c['cpu']}", float(c["longest_sample_us"])
        clock = f"{clock_ghz:.2f} GHz, 10th to 90th percentile {100 * drift:.1f} % apart"
        share, quiet = f"{100 * undisturbed:.0f} %", undisturbed >= UNDISTURBED_WARNING
        busy = "another thread uses this core: sweeps take longer"
        moves = "the clock moves: compare core cycles, not TSC cycles"
        rows += [
            _check(f"{cpu}: share of undisturbed samples", quiet, share, busy, area="noise"),
            _check(f"{cpu}: core clock", drift < CLOCK_WARNING, clock, moves, area="noise"),
            Check("noise", f"{cpu}: longest sample", "info", f"{longest_us:.0f} us"),
        ]
    if steal is not None:
        taken = "the hypervisor gives the CPUs to others"
        rows.append(_check("stolen CPU time", steal < STEAL_WARNING, f"{100 * steal:.1f} %", taken, area="noise"))
    return rows
