"""How micro-benchmarks of elementary operations are built and run: commands and files for a testbed."""

from __future__ import annotations

from p4perf.errors import MeasurementError
from p4perf.generators.rendering import render
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, TrialOptions, TrialRecord
from p4perf.targets.dpdk_c import HARNESS_VERSION, POOL_BYTES
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, build_plan, harness_text
from p4perf.targets.eo_cases import HEADER_BYTES, Case
from p4perf.targets.outcome import harness_record
from p4perf.targets.windows import window_statistics
from p4perf.version import __version__

_ETHERNET = bytes.fromhex("02000000000202000000000188b5")


def case_build(case: Case, facts: NodeFacts) -> BuildPlan:
    """The program with the operation, the baseline without it, on the harness of dpdk-c."""
    sources = {
        "program.c": render("c/operation.c.j2", role="under_test", version=__version__, **case.context),
        "baseline.c": render("c/operation.c.j2", role="baseline", version=__version__, **Case.NOTHING),
    }
    return build_plan(sources, facts)


def case_job(case: Case, options: TrialOptions, facts: NodeFacts) -> Job:
    """One start of a case."""
    memory = (POOL_BYTES + case.memory_bytes) * 5 // 4 // 2**20 + 64
    argv = ["{build}/dpdk-c", "-l", facts.text("measuring_cpu", "0"), "--no-pci", "--no-telemetry", "--no-shconf"]
    argv += ["--log-level=4", "-m", str(memory), "--in-memory" if options.hugepages else "--no-huge", "--"]
    frame = _ETHERNET + bytes((n % 199) + 1 for n in range(case.frame_bytes - HEADER_BYTES))
    if case.vary_bytes:
        # What does not change of a key is zero.
        zeros = max(case.vary_bytes, case.key_bits // 8)
        frame = frame[:HEADER_BYTES] + bytes(zeros) + frame[HEADER_BYTES + zeros :]
    argv += ["--frame", frame.hex()]
    if case.restore:
        argv += ["--restore", str(case.restore)]
    if case.vary_bytes:
        # A key is a number, its last bytes change; of an lpm key those before the free bits.
        end = HEADER_BYTES + max(case.vary_bytes, (case.key_bits - case.free_bits) // 8)
        argv += ["--key-offset", str(end - case.vary_bytes), "--key-length", str(case.vary_bytes)]
        argv += ["--keys", str(case.keys)]
    if case.table:
        argv += ["--entries", str(case.entries)]
    argv += ["--compile-time", "{build}/" + COMPILE_TIME_FILE, "--seed", str(options.seed)]
    argv += ["--windows", str(options.windows), "--window-us", str(options.window_us)]
    argv += ["--timeout-ms", str(options.timeout_ms), "--warmup-ms", str(options.warmup_ms)]
    argv += ["--warmup-packets", str(min(max(2 * max(case.entries, case.cells), 20_000), 3_000_000))]
    if options.mode == "plain":
        argv.append("--plain")
    elif options.gate_ratio:
        argv += ["--gate-ratio", f"{options.gate_ratio:.5f}"]
    timeout_s = 60 + case.setup_s + 4e-3 * options.timeout_ms
    return Job(tuple(argv), timeout_s, case_build(case, facts))


def case_record(result: JobResult) -> TrialRecord:
    """The record of a start.

    Raises:
        MeasurementError: there is none.
    """
    return harness_record(result, HARNESS_VERSION)


def case_cycles(record: TrialRecord, gate_ratio: float | None) -> tuple[float, float]:
    """Core cycles of a packet with the operation, and without.

    Raises:
        MeasurementError: the start does not meet the rules of acceptance.
    """
    statistics = window_statistics(record, gate_ratio)
    program, baseline = (statistics[name] for name in _programs(record))
    broken = sorted({*program.failures(), *baseline.failures()})
    if broken:
        raise MeasurementError(f"not accepted: {', '.join(broken)}")
    return program.core_cycles, baseline.core_cycles


def _programs(record: TrialRecord) -> tuple[str, str]:
    names = list(record["programs"])
    return names[0], names[1]


def chase_job(sizes_bytes: list[int], facts: NodeFacts) -> Job:
    """Latencies of loads that depend on each other, over working sets of these sizes, without DPDK."""
    sources = harness_text(("clock.h", "eo_chase.c"))
    command = ("sh", "-c", 'exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -o chase eo_chase.c')
    build = BuildPlan(sources, (command,), "chase")
    return Job(("{build}/chase", *map(str, sizes_bytes)), 60 + 10 * len(sizes_bytes), build)
