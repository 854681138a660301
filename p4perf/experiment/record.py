"""What a run noted in its manifest when it began, checked before it is relied on."""

from __future__ import annotations

from typing import Any

from p4perf.errors import DataError, Location
from p4perf.results import RunDirectory

_KEYS: dict[str, type] = {"planned_points": list, "points": list, "node": dict, "hugepages": bool, "versions": dict}


def run_record(run: RunDirectory) -> dict[str, Any]:
    """The manifest of a run that can be resumed and evaluated.

    Raises:
        DataError: the manifest is damaged or lacks what :func:`~p4perf.experiment.session.new_run` writes.
    """
    manifest = run.manifest()
    for key, kind in _KEYS.items():
        if not isinstance(manifest.get(key), kind):
            raise DataError(
                f"is missing or not a {_NOUNS[kind]}",
                location=Location(str(run.path / "manifest.json")),
                key=key,
                hint="the manifest was changed or is damaged: start a new run",
            )
    return manifest


_NOUNS = {list: "list", dict: "mapping", bool: "truth value"}
