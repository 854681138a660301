"""What is usable on a testbed, and how well it can measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from p4perf.errors import P4PerfError, TestbedError, UsageError
from p4perf.experiment.bench import open_target, open_testbed
from p4perf.experiment.recorder import steal_share
from p4perf.plugins import load_plugin, plugin_names
from p4perf.records import Document, Record, counted, doc
from p4perf.results.files import temporary_folder
from p4perf.specs import METRICS
from p4perf.specs.metrics import LOAD_METRICS
from p4perf.targets.base import NodeFacts, Problem, Target
from p4perf.targets.roles import Simulates, calibration_of, links_of
from p4perf.testbeds import health, tuning
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.batch.base import BatchTestbed


class _DoctorRow(Record):
    area: str = doc("`testbed`, `target`, `load generator`, `metric`, `tool`, `setting`, `environment` or `noise`")
    check: str = doc("what was checked, for people")
    state: str = doc("`ok`, `warning`, `missing` or `info`")
    value: str = doc("what was found, for people")
    advice: str = doc("what to do; empty if nothing")


class DoctorDocument(Document, kind="doctor"):
    """`p4perf doctor`: one row for each check."""

    usable_targets: tuple[str, ...] = doc("targets that can be used here")
    summary: tuple[str, ...] = doc("what works, and what to install for more, for people")
    rows: tuple[_DoctorRow, ...] = doc("")

    @property
    def good(self) -> bool:
        """Whether something can be measured there."""
        return bool(self.usable_targets) or not any(row.state == "missing" for row in self.rows)


def doctor(
    testbed: str = "local", *, fix: bool = False, undo: bool = False, told: Callable[[str], object] = lambda text: None
) -> DoctorDocument:
    """What is usable on a testbed, and how well it can measure: a row for each check.

    Args:
        fix: apply reversible settings of this machine first: hugepages, autogroup (root).
        undo: restore what ``fix`` changed (root).
        told: gets the changes as lines.
    """
    if fix and undo:
        raise UsageError("--fix and --undo are opposites")
    place = open_testbed(testbed)
    if (fix or undo) and place.name != "local":
        raise UsageError("--fix and --undo change this machine", hint=f"run p4perf doctor on the node of {place.label}")
    if fix or undo:
        _tune(place, undo=undo, told=told)
    found = place.problems()
    checks = [health.Check("testbed", place.label, "missing" if p.fatal else "warning", p.what, p.hint) for p in found]
    usable: list[str] = []
    if not isinstance(place, BatchTestbed):
        checks, usable = _diagnose(place, checks)
    elif not any(check.state == "missing" for check in checks):  # its node is asked when it measures, not before
        said = "the first run shows what works there, and how well: this testbed works in batches"
        checks.append(health.Check("testbed", place.label, "ok", "usable from here", said))
    return DoctorDocument.read(None, usable_targets=usable, summary=_summary(usable, checks), rows=checks)


def _tune(place: Testbed, *, undo: bool, told: Callable[[str], object]) -> None:
    record = tuning.undo_record()
    wanted = tuning.wanted_settings(place.facts().number("memory_available_bytes"))
    changes = tuning.undo(record) if undo else tuning.apply(wanted, record)
    for change in changes:
        told(f"{change.path}: {change.before} -> {change.after}")
    restore = f"undo with: p4perf doctor --undo (record: {record})"
    told(restore if changes and not undo else counted(len(changes), "change"))


def _summary(usable: Sequence[str], checks: Sequence[health.Check]) -> list[str]:
    """What works here, and what to install for more."""
    missing = [check for check in checks if check.state == "missing"]
    said = [f"You can measure on {', '.join(usable)}."] if usable else ["No target can be used here."]
    said += [f"{c.check}: {c.advice}." for c in missing if not usable and c.area in ("testbed", "target") and c.advice]
    names = {check.check: check.advice for check in missing}
    if health.OWN_P4 in names:
        said.append(f"To measure P4 source, {names[health.OWN_P4]}.")
    if health.VALGRIND in names:
        said.append(f"To simulate cache misses, install valgrind ({names[health.VALGRIND]}).")
    return said


def _usable(area: str, name: str, problems: Sequence[Problem], usable: str) -> health.Check:
    """A target or load generator; without fatal problems it is usable."""
    fatal = [p for p in problems if p.fatal]
    value = "; ".join(p.what for p in fatal) or usable
    return health.Check(area, name, "missing" if fatal else "ok", value, next((p.hint for p in fatal if p.hint), ""))


def _diagnose(place: Testbed, checks: list[health.Check]) -> tuple[list[health.Check], list[str]]:
    """The checks of a testbed with those of everything that it has, and the targets that are usable there."""
    try:
        facts = place.facts()
    except TestbedError:
        if not checks:
            raise
        return checks, []  # why there are no facts is among the problems
    targets = [open_target(name) for name in plugin_names("p4perf.targets")]
    judged = [_usable("target", target.name, target.problems(facts), "usable") for target in targets]
    usable = [target for target, check in zip(targets, judged, strict=True) if check.state == "ok"]
    generators, given = _load_checks(usable, facts)
    given |= {metric for target in usable for metric in target.metrics}
    checks += [*judged, *generators, *(_metric(name, given, targets, usable, facts) for name in METRICS)]
    checks += health.tool_checks(facts) + health.setting_checks(facts) + health.environment_checks(facts)
    if usable:
        checks += _noise(usable[0], place, facts)
    return checks, [target.name for target in usable]


def _metric(
    name: str, given: set[str], targets: Sequence[Target], usable: Sequence[Target], facts: NodeFacts
) -> health.Check:
    """Whether a metric is measured or simulated here, and what it takes if not."""
    unit = METRICS[name].unit
    if name in given:
        return health.Check("metric", name, "ok", unit)
    simulators = [t for t in targets if isinstance(t, Simulates) and name in t.simulates]
    if simulators:
        here = facts.text("tool_valgrind") and any(target in usable for target in simulators)
        advice = "" if here else "apt: valgrind"
        return health.Check("metric", name, "ok" if here else "missing", f"{unit}, simulated by cachegrind", advice)
    others = [target.name for target in targets if name in target.metrics]
    advice = f"{' or '.join(others)} gives it" if others else "needs hardware counters, which virtual machines hide"
    return health.Check("metric", name, "missing", unit, advice)


def _load_checks(targets: list[Target], facts: NodeFacts) -> tuple[list[health.Check], set[str]]:
    """Load generators, and the metrics that they make possible."""
    group = "p4perf.load_generators"
    reached = ", ".join(f"{t.name} ({', '.join(links_of(t))})" for t in targets if links_of(t))
    usable = f"usable, reaches {reached or 'no target'}"
    checks = [
        _usable("load generator", name, load_plugin(group, name)().problems(facts), usable)
        for name in plugin_names(group)
    ]
    return checks, set(LOAD_METRICS) if reached and any(check.state == "ok" for check in checks) else set()


def _noise(target: Target, place: Testbed, before: NodeFacts) -> list[health.Check]:
    job = calibration_of(target)
    if job is None:
        return []
    with temporary_folder() as folder:
        try:
            output = place.run(job, folder).stdout
        except P4PerfError as error:
            return [health.Check("noise", "calibration", "missing", error.message, error.hint or "")]
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return health.noise_checks(lines, steal_share(before, place.facts()))
