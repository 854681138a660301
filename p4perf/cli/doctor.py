"""The command that reports what works here, and how well."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import ExitCode, P4PerfError, TestbedError, UsageError
from p4perf.records import Document, Record, doc

if TYPE_CHECKING:
    from p4perf.targets.base import NodeFacts, Problem, Target
    from p4perf.testbeds.base import Testbed
    from p4perf.testbeds.health import Check


class _DoctorRow(Record):
    area: str = doc("`testbed`, `target`, `load generator`, `metric`, `tool`, `setting` or `noise`")
    check: str = doc("what was looked at, for people")
    state: str = doc("`ok`, `warning`, `missing` or `info`")
    value: str = doc("what was found, for people")
    advice: str = doc("what to do; empty if nothing")


class DoctorDocument(Document):
    """`p4perf doctor`: one row for each check."""

    KIND = "doctor"

    usable_targets: tuple[str, ...] = doc("targets that can be used here")
    rows: tuple[_DoctorRow, ...] = doc("")


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Apply reversible settings: hugepages, autogroup (root).")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Set back what --fix changed (root).")] = False,
    testbed: Annotated[str, typer.Option("--testbed", help="Where to look: local, or ssh:FILE:NODE.")] = "local",
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Tell which targets, testbeds, metrics and tools are usable here and how good a measurement can be.

    Changes nothing, unless --fix or --undo says so. Exit code 0 if a target is usable, else 3.
    """
    from p4perf.experiment import open_testbed
    from p4perf.testbeds import tuning
    from p4perf.testbeds.batch.base import BatchTestbed

    if fix and undo:
        raise UsageError("--fix and --undo are opposites")
    place = open_testbed(testbed)
    if (fix or undo) and place.name != "local":
        raise UsageError("--fix and --undo change this machine", hint=f"run p4perf doctor on the node of {place.label}")
    if fix or undo:
        facts = place.facts()
        record = tuning.undo_record()
        wanted = tuning.wanted_settings(facts.number("memory_available_bytes"))
        changes = tuning.undo(record) if undo else tuning.apply(wanted, record)
        for change in changes:
            say(f"{change.path}: {change.before} -> {change.after}")
        say(f"undo with: p4perf doctor --undo (record: {record})" if fix and changes else f"{len(changes)} changes")
    if isinstance(place, BatchTestbed):
        return _batches(place, fmt)
    checks, usable = _diagnose(place)
    emit(fmt, DoctorDocument.read(None, usable_targets=usable, rows=checks))
    return int(ExitCode.OK if usable else ExitCode.UNAVAILABLE)


def _batches(place: Testbed, fmt: Format) -> int:
    """A testbed whose node is asked when it measures, not before."""
    from p4perf.testbeds.health import Check

    checks = _problems(place)
    fatal = any(check.state == "missing" for check in checks)
    if not fatal:
        said = "what works there, and how well, the first run tells: this testbed works in batches"
        checks.append(Check("testbed", place.label, "ok", "usable from here", said))
    emit(fmt, DoctorDocument.read(None, usable_targets=(), rows=checks))
    return int(ExitCode.UNAVAILABLE if fatal else ExitCode.OK)


def _problems(place: Testbed) -> list[Check]:
    from p4perf.testbeds.health import Check

    found = place.problems()
    return [Check("testbed", place.label, "missing" if p.fatal else "warning", p.what, p.hint) for p in found]


def _usable(area: str, name: str, problems: Sequence[Problem], usable: str) -> Check:
    """A target or load generator; without fatal problems it is usable."""
    from p4perf.testbeds.health import Check

    fatal = [p for p in problems if p.fatal]
    value = "; ".join(p.what for p in fatal) or usable
    return Check(area, name, "missing" if fatal else "ok", value, "; ".join(p.hint for p in fatal))


def _diagnose(place: Testbed) -> tuple[list[Check], list[str]]:
    from p4perf.experiment import open_target
    from p4perf.plugins import plugin_names
    from p4perf.specs import METRICS
    from p4perf.testbeds.health import Check, environment_checks, setting_checks, tool_checks

    checks = _problems(place)
    try:
        facts = place.facts()
    except TestbedError:
        if not checks:
            raise
        return checks, []  # why there are no facts is among the problems
    targets = [open_target(name) for name in plugin_names("p4perf.targets")]
    judged = [_usable("target", target.name, target.problems(facts), "usable") for target in targets]
    usable = [target for target, check in zip(targets, judged, strict=True) if check.state == "ok"]
    metrics = {metric for target in usable for metric in target.metrics}
    generators, given = _load_checks(usable, facts)
    named = [Check("metric", n, "ok" if n in metrics | given else "missing", METRICS[n].unit) for n in METRICS]
    checks += [*judged, *generators, *named]
    checks += tool_checks(facts) + setting_checks(facts) + environment_checks(facts)
    if usable:
        checks += _noise(usable[0], place, facts)
    return checks, [target.name for target in usable]


def _load_checks(targets: list[Target], facts: NodeFacts) -> tuple[list[Check], set[str]]:
    """Load generators, and the metrics that they make possible."""
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.specs.metrics import LOAD_METRICS
    from p4perf.targets.roles import links_of

    group = "p4perf.load_generators"
    reached = ", ".join(f"{t.name} ({', '.join(links_of(t))})" for t in targets if links_of(t))
    usable = f"usable, reaches {reached or 'no target'}"
    checks = [
        _usable("load generator", name, load_plugin(group, name)().problems(facts), usable)
        for name in plugin_names(group)
    ]
    return checks, set(LOAD_METRICS) if reached and any(check.state == "ok" for check in checks) else set()


def _noise(target: Target, place: Testbed, before: NodeFacts) -> list[Check]:
    from p4perf.experiment.recorder import steal_share
    from p4perf.targets.roles import calibration_of
    from p4perf.testbeds.health import Check, noise_checks

    job = calibration_of(target)
    if job is None:
        return []
    with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
        try:
            output = place.run(job, Path(folder)).stdout
        except P4PerfError as error:
            return [Check("noise", "calibration", "missing", error.message, error.hint or "")]
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return noise_checks(lines, steal_share(before, place.facts()))
