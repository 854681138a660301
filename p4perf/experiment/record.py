"""What a run noted in its manifest when it began, checked before it is relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4perf.errors import DataError, Location
from p4perf.results import RunDirectory

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
