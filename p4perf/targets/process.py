"""Targets that are measured as one process of p4perf's own harness, which prints its windows as a line of JSON."""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.base import render
from p4perf.programs.capabilities import of_program
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.targets import base
from p4perf.targets.roles import Measures
from p4perf.targets.windows import (
    Undisturbed,
    WindowStatistics,
    trial_summary,
    undisturbed_core,
    window_statistics,
)

HUGEPAGE_BYTES = 2 << 20

MEMORY_SHARE = 0.9
"""Share of the available memory that a point may take."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a node has to have, and the problem if it does not; ``{kernel}`` stands for the release of its kernel."""

    met: Callable[[base.NodeFacts], bool]
    what: str
    hint: str
    fatal: bool = True


def has(fact: str) -> Callable[[base.NodeFacts], bool]:
    return lambda facts: bool(facts.text(fact))


COMPILER = Need(
    lambda f: bool(f.text("cc_version") or f.text("cc_fault")), "no C compiler (cc) on the PATH", "install gcc"
)
COMPILER_RUNS = Need(
    lambda f: not f.text("cc_fault"),
    "the C compiler (cc) does not run: cc --version crashes, hangs or prints nothing",
    "see what cc --version does, and install gcc again",
)
REALTIME = Need(
    lambda facts: facts.text("realtime") == "yes",
    "no right to real-time scheduling",
    "run as root or grant CAP_SYS_NICE",
    fatal=False,
)
HUGEPAGES = Need(
    lambda facts: bool(facts.number("hugepages_free")),
    "no free hugepages",
    "p4perf doctor --fix reserves some (root)",
    fatal=False,
)


def harness_record(result: base.JobResult, version: int) -> base.TrialRecord:
    """The record that a harness printed as the last line that begins with a brace."""
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.timed_out:
        raise MeasurementError(f"the program was stopped after {result.duration_s:.0f} s without a result")
    if not lines:
        message = f"the program {base.ending(result.returncode)} and left no result: {result.tail or 'no output'}"
        raise MeasurementError(message)
    try:
        record = json.loads(lines[-1])
    except json.JSONDecodeError as error:
        raise MeasurementError(f"the program printed damaged JSON: {error}") from error
    if "error" in record:
        kind = str(record.get("kind", ""))
        raise MeasurementError(str(record["error"]), key="verify" if kind == "verifier" else kind or None)
    if result.returncode != 0 or record.get("harness_version") != version:
        raise MeasurementError(f"the program {base.ending(result.returncode)} or speaks another version")
    window_statistics(record)
    return dict(record)


class HarnessTarget(Measures):
    """Plans points, checks memory, reads records and judges windows; a subclass adds what is its own."""

    harness_version: ClassVar[int]
    """Version in the records of the harness. It is a part of the hash of a point."""

    needs: ClassVar[tuple[Need, ...]]

    no_load: ClassVar[str] = ""
    """Why trials have no offered load; empty where the capabilities state it."""

    no_load_hint: ClassVar[str] = "use pattern: cbr and offered_load: max"

    @override
    def problems(self, facts: base.NodeFacts) -> tuple[base.Problem, ...]:
        missing = (need for need in self.needs if not need.met(facts))
        return tuple(
            base.Problem(need.what.format(kernel=facts.text("kernel")), need.hint, need.fatal) for need in missing
        )

    @override
    def plan(self, workload: Workload, traffic: TrafficPlan, facts: base.NodeFacts) -> base.PointPlan:
        with of_program(workload.program):
            self.check(workload, traffic)
            memory_bytes = self.memory_bytes(workload)
            if (available := facts.number("memory_available_bytes")) is not None:
                self.check_memory(workload, memory_bytes, available)
            build, identity = self.build(workload, traffic, facts)
        if workload.frames:
            identity = (*identity, _digest(workload))
        return base.PointPlan(
            base.point_key(*identity), build, workload, traffic, memory_bytes, self.setup_s(workload.program)
        )

    def check(self, workload: Workload, traffic: TrafficPlan) -> None:
        """Refuse what is beyond the limits."""
        if self.no_load and (traffic.pattern != "cbr" or traffic.offered_load_mpps is not None):
            raise CapabilityError(self.no_load, key="traffic", hint=self.no_load_hint)
        program = workload.baseline if self.runs_text(workload) else workload.program
        self.capabilities.check(program, workload.packets, traffic)

    def runs_text(self, workload: Workload) -> bool:
        """Whether the target takes the text of the program itself; limits of generated programs do not apply then."""
        return False

    @override
    def check_program(self, workload: Workload, traffic: TrafficPlan, facts: base.NodeFacts) -> None:
        if not self.runs_text(workload):
            super().check_program(workload, traffic, facts)

    @abstractmethod
    def memory_bytes(self, workload: Workload) -> int:
        """Memory that tables, states and buffers of a point take, in bytes."""

    memory_noun: ClassVar[str] = "tables"

    def check_memory(self, workload: Workload, memory_bytes: int, available_bytes: int) -> None:
        """Refuse a point that takes more memory than the node has."""
        if memory_bytes > MEMORY_SHARE * available_bytes:
            gibibytes = f"{memory_bytes / 2**30:.1f} GiB, but {available_bytes / 2**30:.1f} GiB are available"
            hint = "use fewer entries or less action data"
            raise CapabilityError(f"the {self.memory_noun} take about {gibibytes}", key="entries", hint=hint)

    @abstractmethod
    def build(
        self, workload: Workload, traffic: TrafficPlan, facts: base.NodeFacts
    ) -> tuple[base.BuildPlan, Sequence[Any]]:
        """The build of a point, and the JSON data by which the point is known."""

    def setup_s(self, program: Program) -> float:
        """Time in which the tables of one start are filled, roughly, in seconds."""
        return 0.0

    @override
    def parse(self, result: base.JobResult) -> base.TrialRecord:
        return harness_record(result, self.harness_version)

    @override
    def summarise(self, record: base.TrialRecord, gate_ratio: float | None) -> base.TrialSummary:
        statistics = tuple(window_statistics(record, gate_ratio).values())
        return trial_summary(statistics, self.values(record, *statistics), environment_flags(record))

    @abstractmethod
    def values(self, record: base.TrialRecord, *statistics: WindowStatistics) -> Sequence[base.MetricValue]:
        """Metric values of a record with the statistics of its programs, usually program and baseline."""

    @override
    def undisturbed(self, record: base.TrialRecord) -> Undisturbed | None:
        return undisturbed_core(record)


def _digest(workload: Workload) -> str:
    """The hash of packets and entries one by one, which are files of a trial and may be in no file of the build."""
    found = hashlib.sha256()
    for frame in workload.frames:
        found.update(len(frame).to_bytes(4, "big") + frame)
    for table in workload.program.tables:
        found.update(repr((table.name, table.default_action, table.default_data)).encode())
        for entry in table.listing:
            matches = [(match.mask, match.low, match.high) for match in entry.matches]
            found.update(repr((matches, entry.action, entry.data, entry.choices)).encode())
    return found.hexdigest()


def window_arguments(
    options: base.TrialOptions, *further: str, window: tuple[str, int] | None = None, warmup: bool = True
) -> list[str]:
    """Arguments of a harness: how many windows of which length, time limit, warm-up, gate.

    Args:
        further: arguments to put before those of the gate.
        window: option and value of the length of a window, where it is not a time.
    """
    name, length = window or ("--window-us", options.window_us)
    arguments = ["--windows", str(options.windows), name, str(length), "--timeout-ms", str(options.timeout_ms)]
    if warmup:
        arguments += ["--warmup-ms", str(options.warmup_ms)]
    arguments += further
    if options.mode == "plain":
        arguments.append("--plain")
    elif options.gate_ratio:
        arguments += ["--gate-ratio", f"{options.gate_ratio:.5f}"]
    return arguments


def warmup_packets(entries: int) -> int:
    """Packets before the first window for a largest table (or array) of that size: two for an entry, within limits."""
    return min(max(2 * entries, 20_000), 3_000_000)


def entries_arguments(program: Program) -> list[str]:
    """Arguments of a harness: the numbers of entries, table by table."""
    return [word for table in program.tables for word in ("--entries", str(table.entries.count))]


def most_entries(program: Program) -> int:
    return max((table.entries.count for table in program.tables), default=0)


def refuse_larger_tables(label: str, program: Program) -> None:
    """Refuse a program that was read with more entries in a table than its text says that the table takes.

    Raises:
        CapabilityError: it has them.
    """
    for table in program.tables:
        if 0 < table.size < table.entries.count:
            raise CapabilityError(
                f"{label} gives table {table.label} the size of its text, {table.size}; {table.entries.count} entries "
                "are more",
                hint=f"--fill {table.label}={table.size}",
            )


def hugepages_hold(size_bytes: int, facts: base.NodeFacts) -> bool:
    """Whether that much memory is free in hugepages of 2 MiB."""
    if facts.number("hugepage_bytes") != HUGEPAGE_BYTES:
        return False
    return (facts.number("hugepages_free") or 0) * HUGEPAGE_BYTES >= size_bytes


def environment_flags(record: Mapping[str, Any]) -> set[str]:
    """Flags of what around a trial was not as it should be, which does not spoil it."""
    gated = bool(record.get("gated"))
    conditions = {
        "no_hugepages": not record.get("hugepages", True),
        "no_realtime": gated and not record.get("realtime"),
        "ungated": not gated,
        "hopped": int(record.get("hops", 0)) > 0,
        "timed_out": bool(record.get("timed_out")),
    }
    return {flag for flag, present in conditions.items() if present}


_RECORDED = {
    "memory_bytes": ("memory_bytes", "B"),
    "code_bytes": ("code_bytes", "B"),
    "program_instructions": ("program_instructions", "instructions"),
    "compile_time": ("compile_ms", "ms"),
    "load_time": ("load_ms", "ms"),
}
"""Metrics that stand in a record as they are, with key and unit."""


def recorded(record: Mapping[str, Any], *metrics: str) -> tuple[base.MetricValue, ...]:
    """Metrics that stand in a record as they are."""
    rows = ((metric, *_RECORDED[metric]) for metric in metrics)
    return tuple(base.MetricValue(metric, float(record[key]), unit) for metric, key, unit in rows)


def standalone_files(target: Measures, plan: base.PointPlan) -> Mapping[str, bytes]:
    """A planned point as a folder: files by name; ``sh build.sh && sh run.sh`` prints what one trial measures."""
    job = target.trial(plan, base.TrialOptions(), base.NodeFacts({}))
    argv = base.placed(job.argv, {"build": ".", "folder": "."})
    files, commands = _flat(plan.build)
    scripts = {
        "build.sh": render("sh/build.sh.j2", commands=[shlex.join(command) for command in commands]),
        "run.sh": render("sh/run.sh.j2", command=shlex.join(argv), target=target.name),
    }
    return {**{name: text.encode() for name, text in (files | scripts).items()}, **job.files}


def _flat(plan: base.BuildPlan) -> tuple[dict[str, str], list[tuple[str, ...]]]:
    """Files and commands of a plan and all of its parts, for one folder."""
    files: dict[str, str] = {}
    commands: list[tuple[str, ...]] = []
    for part in plan.parts.values():
        part_files, part_commands = _flat(part)
        files |= part_files
        commands += part_commands
    return files | dict(plan.files), [*commands, *plan.commands_with(dict.fromkeys(plan.parts, "."))]
