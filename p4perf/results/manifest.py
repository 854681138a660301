"""``manifest.json``: which run this is, what was true when it was made, and how far it has come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from typing_extensions import override

from p4perf.errors import DataError, Location, UsageError
from p4perf.results import files

SCHEMA_VERSION = 1
"""Version of the layout of a run directory and of ``manifest.json``. Older ones are read, newer ones refused."""

_OWN_KEYS = ("schema_version", "experiment", "target", "testbed", "created")


def new_manifest(experiment: str, target: str, testbed: str, now: datetime, rest: Mapping[str, Any]) -> str:
    """The text of a new manifest: who the run is, then the ``rest``."""
    refuse_own_keys(rest)
    identity = (SCHEMA_VERSION, experiment, target, testbed, now.astimezone(UTC).isoformat(timespec="seconds"))
    return files.json_text(dict(zip(_OWN_KEYS, identity, strict=True)) | dict(rest))


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
    for key in _OWN_KEYS:
        if key in mapping:
            raise UsageError("is set by the run directory itself", key=key)


IDENTITY_FACTS = ("cpu_model", "cpu_id", "machine", "cc_version", "dpdk_version")
"""Facts in which two machines must agree to be the same for a measurement."""

COMPARED_FACTS = (
    *("cpu_model", "cpu_id", "microcode", "machine", "virtual_machine"),
    *("kernel", "dpdk_version", "cc_version"),
)
"""Facts of a machine that comparisons report; with them hugepages, the testbed and the version of p4perf."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts of the machine that runs the device under test. Sizes in bytes; ``None`` where unknown."""

    values: Mapping[str, str]
    """Facts as the probe printed them."""

    def text(self, key: str, default: str = "") -> str:
        return self.values.get(key, default)

    def number(self, key: str) -> int | None:
        """A fact as an integer, or None if it is absent or no integer."""
        value = self.values.get(key, "")
        return int(value) if re.fullmatch("-?[0-9]{1,18}", value) else None

    @property
    def cache_bytes(self) -> dict[str, int]:
        """Data cache sizes that one core sees, by level: ``{"L1": ..., "L2": ..., "L3": ...}``."""
        sizes = {level: self.number(f"cache_{level.lower()}_bytes") for level in ("L1", "L2", "L3")}
        return {level: size for level, size in sizes.items() if size}

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that may be used, best first: the device gets the first one, the load generator the second.

        Isolated CPUs come first; of the others the last ones, because interrupts prefer CPU 0.
        """
        allowed = cpu_list(self.text("cpus_allowed"))
        isolated = [c for c in cpu_list(self.text("isolated_cpus")) if c in allowed]
        return (*isolated, *(c for c in reversed(allowed) if c not in isolated))


def cpu_list(text: str) -> list[int]:
    """CPUs of a list such as ``0-3,8``."""
    parts = (re.fullmatch("([0-9]{1,5})(?:-([0-9]{0,5}))?", part.strip()) for part in text.split(","))
    return [cpu for part in parts if part for cpu in range(int(part[1]), int(part[2] or part[1]) + 1)]


def differences(began: NodeFacts, found: NodeFacts) -> str:
    """In which of :data:`IDENTITY_FACTS` two machines differ, in words; empty if they are the same."""
    changed = [f for f in IDENTITY_FACTS if began.text(f) != found.text(f)]
    return "; ".join(f"{f} was {began.text(f)!r}, is {found.text(f)!r}" for f in changed)


def machine_facts(node: NodeFacts, versions: Mapping[str, str], testbed: str, hugepages: bool | None) -> dict[str, str]:
    """What comparisons report of a machine, as text."""
    facts = {key: str(node.text(key, "unknown")) for key in COMPARED_FACTS}
    facts["hugepages"] = "unknown" if hugepages is None else "yes" if hugepages else "no"
    return {**facts, "testbed": testbed, "p4perf": str(versions.get("p4perf", "unknown"))}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an imported run comes from: the importer, and the files or folders that it read."""

    importer: str
    sources: tuple[str, ...]

    @override
    def __str__(self) -> str:
        more = f" and {len(self.sources) - 1} more" if len(self.sources) > 1 else ""
        return f"imported by {self.importer} from {self.sources[0]}{more}, not measured by p4perf"


@dataclass(frozen=True, slots=True)
class PointEntry:
    """A planned point: its hash, its number in the sweep, and the values of the swept variables."""

    key: str
    index: int | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """A point of the sweep that the target cannot do, and why."""

    values: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Which run this is. Every manifest has at least this."""

    experiment: str
    target: str
    testbed: str
    created: str
    """Time in UTC, ISO 8601."""
    spec_hash: str | None
    imported: Origin | None
    """None if p4perf measured the run."""

    @property
    def origin(self) -> str | None:
        """One sentence that the run is imported; None if p4perf measured it."""
        return None if self.imported is None else str(self.imported)


@dataclass(frozen=True, slots=True)
class Manifest(RunIdentity):
    """The manifest of a run that can be evaluated or resumed."""

    planned_points: tuple[str, ...]
    points: tuple[PointEntry, ...]
    refused: tuple[RefusedEntry, ...]
    node: NodeFacts
    hugepages: bool | None
    """Whether the device used hugepages; None if that is not known of an imported run."""
    versions: Mapping[str, str]
    """Versions of p4perf, Python and libraries."""
    commit: str
    """Git commit of the folder in which the run was begun, with a ``+`` if files had changed; empty without one."""
    environment: tuple[Mapping[str, Any], ...]
    """Checks of the machine when the run began: ``check``, ``value``, ``advice``."""
    working_set: Mapping[str, float] | None
    """``fixed_bytes`` and ``bytes_per_entry``, where the target knows them."""
    place: Mapping[str, Any]
    """The testbed on which the run began: ``address``, ``host``, ``node``, ``name``."""
    places: Mapping[str, Mapping[str, Any]]
    """Devices of a cluster that took part, by name."""
    trials: Mapping[str, Any] | None
    """The section ``trials`` of the spec."""
    command: tuple[str, ...] | None
    gate_ratio: float | None
    provisional: bool
    """Whether the run was planned before its machine was known."""
    design: Mapping[str, Any] | None
    """How a run chooses its points: ``accuracy``, the relative error that was asked for (0: as small as possible), and
    ``error``, ``worst`` and ``done``, how far it is. None if the whole sweep is measured."""

    @property
    def machine(self) -> dict[str, str]:
        return machine_facts(self.node, self.versions, self.testbed, self.hugepages)


def identity_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the :class:`RunIdentity` in a manifest that :func:`read_manifest` accepted."""
    known, spec_hash = content.get("imported"), content.get("spec_hash")
    origin = None
    if isinstance(known, dict):
        sources = tuple(map(str, known.get("sources") or ("unknown",)))
        origin = Origin(str(known.get("importer", "unknown")), sources)
    strings = {key: content[key] for key in _OWN_KEYS[1:]}
    return {**strings, "spec_hash": None if spec_hash is None else str(spec_hash), "imported": origin}


_NEEDED = {
    "planned_points": (list, "list"),
    "points": (list, "list"),
    "node": (dict, "mapping"),
    "hugepages": (bool, "truth value"),
    "versions": (dict, "mapping"),
}


def typed_manifest(content: Mapping[str, Any], path: Path) -> Manifest:
    """A manifest that :func:`read_manifest` accepted, as typed fields.

    Raises:
        DataError: a field that evaluations need is missing or of another type; with file and key.
    """

    def refuse(key: str, noun: str) -> DataError:
        hint = "the manifest was changed or is damaged: start a new run"
        return DataError(f"is missing or not a {noun}", location=Location(str(path)), key=key, hint=hint)

    identity = identity_of(content)
    for key, (kind, noun) in _NEEDED.items():
        unknown = key == "hugepages" and identity["imported"] is not None and content.get(key) is None
        if not unknown and not isinstance(content.get(key), kind):
            raise refuse(key, noun)
    table = content.get("working_set")
    if table:
        for key in ("fixed_bytes", "bytes_per_entry"):
            if not isinstance(table, dict) or not isinstance(table.get(key), int | float):
                raise refuse(f"working_set.{key}", "number")
    ratio = content.get("gate_ratio")
    return Manifest(
        **identity,
        planned_points=tuple(map(str, content["planned_points"])),
        points=tuple(map(_point, content["points"])),
        refused=tuple(
            RefusedEntry(mapping_of(entry.get("values")), str(entry.get("reason", "")))
            for entry in _mappings(content.get("refused"))
        ),
        node=NodeFacts({str(key): str(value) for key, value in content["node"].items()}),
        hugepages=content.get("hugepages"),
        versions={str(key): str(value) for key, value in content["versions"].items()},
        commit=str(content.get("commit") or ""),
        environment=_mappings(content.get("environment")),
        working_set=table or None,
        place=mapping_of(content.get("place")),
        places={name: mapping_of(place) for name, place in mapping_of(content.get("places")).items()},
        trials=content.get("trials"),
        command=tuple(map(str, content["command"])) if isinstance(content.get("command"), list) else None,
        gate_ratio=ratio if isinstance(ratio, int | float) else None,
        provisional=bool(content.get("provisional")),
        design=mapping_of(content.get("design")) or None,
    )


def _point(entry: Any) -> PointEntry:
    known = mapping_of(entry)
    key, index = str(known.get("hash", "")), known.get("index")
    return PointEntry(key, index if isinstance(index, int) else None, mapping_of(known.get("values")))


def mapping_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(values: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(v for v in values if isinstance(v, dict)) if isinstance(values, list) else ()


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run has come. All hashes are in the order of the plan."""

    planned: tuple[str, ...]
    """Hashes of all points of the sweep."""
    finished: tuple[str, ...]
    """Those that need no more trials; if the run is ``done``, those that have any."""
    trials: int
    """Number of trials on disk for the planned points."""
    done: bool = False
    """Whether a run that chooses its points is as accurate as was asked for, or can do no more."""
    spent_s: float = 0.0
    """Time that these trials took, in seconds."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Hashes of the points that are not finished, begun or not."""
        done = set(self.finished)
        return tuple(point for point in self.planned if point not in done)

    @property
    def complete(self) -> bool:
        """Whether every planned point is finished (an empty plan is not), or the run needs no more of them."""
        return bool(self.planned) and (self.done or not self.missing)
