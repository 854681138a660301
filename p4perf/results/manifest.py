"""``manifest.json``: which run this is, what was true when it was made, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location, UsageError
from p4perf.results import files

SCHEMA_VERSION = 1
"""Version of the layout of a run directory and of ``manifest.json``. Older ones are read, newer ones refused."""

_OWN_KEYS = ("schema_version", "experiment", "target", "testbed", "created")


def new_manifest(experiment: str, target: str, testbed: str, now: datetime, rest: Mapping[str, Any]) -> str:
    """The text of a new manifest: who the run is, then the ``rest``.

    Raises:
        UsageError: the rest sets a key of the identity, or is not strict JSON.
    """
    refuse_own_keys(rest)
    identity = (SCHEMA_VERSION, experiment, target, testbed, now.astimezone(UTC).isoformat(timespec="seconds"))
    return manifest_text(dict(zip(_OWN_KEYS, identity, strict=True)) | dict(rest))


def manifest_text(manifest: dict[str, Any]) -> str:
    """A manifest as it stands in the file.

    Raises:
        UsageError: it is not strict JSON.
    """
    return files.strict_json(manifest, indent=2) + "\n"


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in the file ``path``.

    Raises:
        DataError: it is damaged, lacks a key, or its schema is newer than :data:`SCHEMA_VERSION`.
    """
    manifest = files.parse_object(files.read_text(path), path)
    where = Location(str(path))
    version = manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        problem = "is missing" if version is None else f"{version!r} is not a schema version"
        raise DataError(problem, location=where, key="schema_version")
    if version > SCHEMA_VERSION:
        raise DataError(
            f"is {version}, but this p4perf knows versions up to {SCHEMA_VERSION}",
            location=where,
            key="schema_version",
            hint="install a newer p4perf",
        )
    for key in _OWN_KEYS[1:]:
        if not isinstance(manifest.get(key), str):
            raise DataError("is missing or not a string", location=where, key=key)
    return manifest


def refuse_own_keys(mapping: Mapping[str, Any]) -> None:
    """Let nobody set the identity of a run.

    Raises:
        UsageError: the mapping has one of these keys.
    """
    for key in _OWN_KEYS:
        if key in mapping:
            raise UsageError("is set by the run directory itself", key=key)


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run has come. All hashes are in the order of the plan."""

    planned: tuple[str, ...]
    """Hashes of all points of the sweep."""
    finished: tuple[str, ...]
    """Those that need no more trials."""
    started: tuple[str, ...]
    """Those with some trials on disk that are not finished."""
    trials: int
    """Number of trials on disk for the planned points."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Hashes of the points that are not finished, begun or not."""
        done = set(self.finished)
        return tuple(point for point in self.planned if point not in done)

    @property
    def complete(self) -> bool:
        """Whether every planned point is finished (an empty plan is not)."""
        return bool(self.planned) and not self.missing
