"""What a run noted in its manifest when it began, checked before it is relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from p4perf.errors import DataError, Location
from p4perf.experiment.planning import PlannedPoint, SweepPlan
from p4perf.results import RunDirectory
from p4perf.targets.base import NodeFacts, Target
from p4perf.testbeds.health import environment_checks

_KEYS: dict[str, type] = {"planned_points": list, "points": list, "node": dict, "hugepages": bool, "versions": dict}


def run_record(run: RunDirectory) -> dict[str, Any]:
    """The manifest of a run that can be evaluated. Whether an imported run had hugepages is not known: None.

    Raises:
        DataError: the manifest is damaged or lacks what :func:`~p4perf.experiment.session.new_run` writes.
    """
    manifest = run.manifest()
    for key, kind in _KEYS.items():
        if key == "hugepages" and imported_by(manifest) is not None and manifest.get(key) is None:
            continue
        if not isinstance(manifest.get(key), kind):
            raise DataError(
                f"is missing or not a {_NOUNS[kind]}",
                location=Location(str(run.path / "manifest.json")),
                key=key,
                hint="the manifest was changed or is damaged: start a new run",
            )
    return manifest


def plan_record(plan: SweepPlan, target: Target, facts: NodeFacts) -> dict[str, Any]:
    """What a manifest notes of the points, and of the machine that they were planned for."""
    points = plan.points
    return {
        "planned_points": [p.key for p in points],
        "points": [{"hash": p.key, "index": p.point.index, "values": dict(p.point.values)} for p in points],
        "refused": [{"values": dict(r.point.values), "reason": r.reason} for r in plan.refused],
        "node": dict(facts.values),
        "environment": [asdict(check) for check in environment_checks(facts)],
        "working_set": _working_set(target, points[0]),
        "build": {
            "commands": [list(command) for command in points[0].plan.build.commands],
            "context": dict(points[0].plan.build.context),
        },
    }


def _working_set(target: Target, planned: PlannedPoint) -> dict[str, float] | None:
    figures = target.bytes_per_entry(planned.plan.workload)
    return None if figures is None else {"fixed_bytes": figures[0], "bytes_per_entry": figures[1]}


_NOUNS = {list: "list", dict: "mapping", bool: "truth value"}


def imported_by(manifest: Mapping[str, Any]) -> str | None:
    """The importer that a run comes from; None if p4perf measured it."""
    imported = manifest.get("imported")
    return str(imported.get("importer", "unknown")) if isinstance(imported, dict) else None


def origin(manifest: Mapping[str, Any]) -> str | None:
    """One sentence that a run is imported, for people; None if p4perf measured it."""
    importer = imported_by(manifest)
    if importer is None:
        return None
    sources = manifest["imported"].get("sources") or ["unknown"]
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return f"imported by {importer} from {sources[0]}{more}, not measured by p4perf"
