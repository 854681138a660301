"""Elementary operations of a machine, measured one by one by micro-benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf import errors
from p4perf.evaluation.papers.baldi2018.calibration import CaseCycles, Chase, MachineCalibration, read_chase
from p4perf.experiment.bench import measured_gate_ratios, open_target, refuse_batches
from p4perf.experiment.session import require_usable
from p4perf.results.files import temporary_folder
from p4perf.targets.base import NodeFacts, TrialOptions
from p4perf.targets.eo_bench import Case, case_cycles, case_job, cases, chase_job, level_bytes
from p4perf.targets.roles import Measures, measuring
from p4perf.testbeds.base import Testbed
from p4perf.version import __version__

ATTEMPTS = 5
"""Starts of a case for each accepted one, at most."""

FREE_BYTES = 1 << 30
"""Available memory that is assumed where it is unknown."""


def calibrate(
    testbed: Testbed,
    *,
    name: str = "",
    starts: int = 3,
    mode: str = "gated",
    told: Callable[[str], object] = lambda line: None,
) -> MachineCalibration:
    """Measure every micro-benchmark on the node of a testbed.

    The cases follow each other, and then again, so that a disturbed minute does not spoil all starts of one.

    Raises:
        UsageError: a testbed that works in batches.
        TestbedError, TargetUnavailableError: there is no compiler, no DPDK, or no way to reach the node.
        BuildError: a micro-benchmark does not compile.
        MeasurementError: a case has no accepted start.
    """
    refuse_batches(testbed, "a calibration needs answers: run p4perf learn --operations on the node")
    target = measuring(open_target("dpdk-c"))
    facts = require_usable(target, testbed)
    available = facts.number("memory_available_bytes") or FREE_BYTES
    wanted = cases(facts.cache_bytes, available)
    with temporary_folder() as folder:
        runner = _Runner(target, testbed, facts, folder, mode)
        runner.hugepages = target.use_hugepages(max(case.memory_bytes for case in wanted), facts)
        told("pointer chase")
        chases = runner.chase(level_bytes(facts.cache_bytes, available))
        pairs = _measure_all(runner, wanted, starts, told)
    return MachineCalibration(
        name=name or _slug(facts.text("cpu_model", "this machine")),
        facts=facts,
        clock_hz=runner.clock_hz,
        measured={case.name: CaseCycles(case, tuple(pairs[case.name])) for case in wanted},
        chases=chases,
        starts=starts,
        hugepages=runner.hugepages,
        made=datetime.now(UTC).strftime("%Y-%m-%d"),
        version=__version__,
    )


def _measure_all(
    runner: _Runner, wanted: Sequence[Case], starts: int, told: Callable[[str], object]
) -> dict[str, list[tuple[float, float]]]:
    """Accepted starts of every case. What is rejected is tried again when all others had their turn."""
    pairs: dict[str, list[tuple[float, float]]] = {case.name: [] for case in wanted}
    reasons: dict[str, str] = {}
    for turn in range(starts * ATTEMPTS):
        todo = [case for case in wanted if len(pairs[case.name]) < min(turn + 1, starts)]
        if not todo:
            break
        for number, case in enumerate(todo):
            told(f"turn {turn + 1}: {case.name} ({number + 1} of {len(todo)})")
            try:
                pairs[case.name].append(runner.measure(case, turn + 1))
            except errors.MeasurementError as error:
                reasons[case.name] = error.message
                told(f"  {case.name}: {error.message}")
    if missing := [name for name, found in pairs.items() if not found]:
        raise errors.MeasurementError(
            f"no start of {', '.join(missing)} was accepted: {reasons[missing[0]]}",
            hint="wait for a quieter time (p4perf doctor)",
        )
    return pairs


class _Runner:
    """The node, its gate ratios and its clock as they are known by now."""

    def __init__(self, target: Measures, testbed: Testbed, facts: NodeFacts, folder: Path, mode: str) -> None:
        self._target, self._testbed, self._facts, self._folder = target, testbed, facts, folder
        self._gates = measured_gate_ratios(target, testbed, folder)
        self._options = TrialOptions(mode=mode, gate_ratio=self._gates.at())
        self._clocks: list[float] = []
        self.hugepages = False

    @property
    def clock_hz(self) -> float:
        """Core clock, median over the starts."""
        return sorted(self._clocks)[len(self._clocks) // 2]

    def chase(self, sizes: dict[str, int]) -> dict[tuple[str, int], Chase]:
        result = self._testbed.run(chase_job(list(sizes.values()), self._facts), self._folder)
        if result.returncode != 0 or result.timed_out:
            raise errors.MeasurementError(f"the pointer chase failed: {result.stderr.strip()[:200] or 'no message'}")
        lines: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        by_size = {size: level for level, size in sizes.items()}
        return {(by_size[c.size_bytes], c.chains): c for c in read_chase(lines)}

    def measure(self, case: Case, seed: int) -> tuple[float, float]:
        """One start of a case: core cycles of a packet with the operation, and without."""
        options = replace(self._options, seed=seed, hugepages=self.hugepages)
        record = self._target.parse(self._testbed.run(case_job(case, options, self._facts), self._folder))
        if (seen := self._target.undisturbed(record)) is not None:
            self._gates.observe(seen)
            self._options = replace(self._options, gate_ratio=self._gates.at())
        pair = case_cycles(record, self._options.gate_ratio)
        chains = sorted(float(c) for c in record["windows"]["chain_before_tsc"])
        self._clocks.append(float(record["tsc_hz"]) * float(record["chain_core_cycles"]) / chains[len(chains) // 2])
        return pair


def _slug(model: str) -> str:
    """A name for files: small letters and digits, joined by hyphens."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", " ", model.lower()))
    return "-".join(w for w in words if w not in ("cpu", "processor", "intel", "amd"))[:60] or "this-machine"
