"""A folder of results for others: RO-Crate metadata, and one zip, the same bytes from the same folder.

Written as the specification RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) and the profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5) ask: the folder is a ``Dataset`` of ``File`` entities with ``encodingFormat``,
``contentSize`` and ``sha256``, and of a ``Dataset`` for each run where there are several. Every run in it is the result
of a ``CreateAction`` whose ``instrument`` is p4perf in the version that measured, whose ``object`` are the spec and the
facts of the machine, and whose ``result`` is the rest of the run. Nothing is invented: who published it, and under
which licence, stands there only if it was given.

What processes leave in the folder while they work is no result: locks, temporary files, and a description that an
earlier packing wrote. Names are sorted, times are one given time, permissions are those of an ordinary file.
Compression is that of zlib, so another version of that library may make other bytes of the same content.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from p4perf.errors import DataError, Location, UsageError
from p4perf.results import files
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.manifest import read_manifest
from p4perf.results.rundir import RunDirectory
from p4perf.version import __version__

_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")


@dataclass(frozen=True)
class Author:
    """Who publishes the results."""

    name: str
    orcid: str | None = None

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"{self.name!r} is not the name of an author")
        if self.orcid is not None and not _is_orcid(self.orcid):
            raise UsageError(f"{self.orcid!r} is not an ORCID", hint="such as 0000-0002-1825-0097")

    @classmethod
    def parse(cls, text: str) -> Author:
        """An author from text such as ``Jane Doe`` or ``Jane Doe <0000-0002-1825-0097>``."""
        match = re.fullmatch(r"\s*([^<>]+?)\s*(?:<(?:https?://orcid\.org/)?([^<>]*)>)?\s*", text)
        if match is None:
            raise UsageError(f"{text!r} is not the name of an author", hint="such as 'Jane Doe <0000-0002-1825-0097>'")
        return cls(match[1], match[2])


@dataclass(frozen=True)
class CrateOptions:
    """What the folder itself cannot say.

    Args:
        licence: an SPDX identifier such as ``CC-BY-4.0``, the address of a licence, or a sentence; None says that
            there is none.
        published: when; by default the time of the newest run in it.
    """

    name: str | None = None
    description: str | None = None
    licence: str | None = None
    authors: tuple[Author, ...] = ()
    published: datetime | None = None


def _is_orcid(text: str) -> bool:
    """Whether the last character is the check character of ISO 7064, MOD 11-2."""
    if not _ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return text[-1] == ("X" if check == 10 else str(check))


METADATA_FILE = "ro-crate-metadata.json"
"""Name of the description of an RO-Crate, at its root."""

CHUNK_BYTES = 1 << 20
_LOCK = ".lock"
_TEMPORARY = (".p4perf-", ".tmp")


@dataclass(frozen=True)
class FileEntry:
    """A file of a folder; ``path`` is relative to it, in POSIX form, without ``..``."""

    path: str
    size_bytes: int
    sha256: str


def inventory(folder: Path) -> tuple[FileEntry, ...]:
    """The files of a folder, at any depth, by path.

    Links are not followed: what they point to is somewhere else when the archive is read.

    Raises:
        DataError: there is no such folder, something in it cannot be read, is a link or no file at all, or has a name
            that is not text; names it.
    """
    if not folder.is_dir():
        raise DataError("there is no such folder", location=Location(str(folder)))
    return tuple(_entry(folder, path) for path in sorted(_paths(folder, folder)))


def pieces(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(CHUNK_BYTES):
                yield piece
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", location=Location(str(path))) from error


def _paths(root: Path, folder: Path) -> Iterator[str]:
    where = Location(str(folder))
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", location=where) from error
    for entry in entries:
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        if entry.name == _LOCK or relative == METADATA_FILE:
            continue
        if entry.name.startswith(_TEMPORARY[0]) and entry.name.endswith(_TEMPORARY[1]):
            continue
        here = Location(str(path).encode(errors="replace").decode())
        if "\\" in entry.name or not entry.name.isprintable():  # what not every system can have in an archive
            raise DataError("has a name that is not text in UTF-8, or holds control characters", location=here)
        if entry.is_symlink():
            raise DataError("is a link: only files can be packed", location=here, hint="put a copy in its place")
        if entry.is_dir(follow_symlinks=False):
            yield from _paths(root, path)
        elif entry.is_file(follow_symlinks=False):
            yield relative
        else:
            raise DataError("is no file that can be packed", location=here)


def _entry(folder: Path, relative: str) -> FileEntry:
    path, digest, size = folder / relative, hashlib.sha256(), 0
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", location=Location(str(path))) from error
    if not stat.S_ISREG(mode):  # it became something else since its folder was listed
        raise DataError("is no file that can be packed", location=Location(str(path)))
    for piece in pieces(path):
        digest.update(piece)
        size += len(piece)
    return FileEntry(relative, size, digest.hexdigest())


APACHE = "https://spdx.org/licenses/Apache-2.0"
NO_LICENCE = "No licence was given: ask those who published these results before you use them."
FORMATS = {
    ".c": "text/x-c",
    ".csv": "text/csv",
    ".h": "text/x-c",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".lua": "text/x-lua",
    ".md": "text/markdown",
    ".p4": "text/x-p4",
    ".parquet": "application/vnd.apache.parquet",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".sh": "text/x-shellscript",
    ".svg": "image/svg+xml",
    ".tex": "text/x-tex",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
TEXT_FORMATS = (".log", ".spec", ".txt", ".io", "")
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{1,63}")

Entity = dict[str, Any]


class Graph:
    """Entities by their ``@id``, each of them once, in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[str, Entity] = {}

    @property
    def entities(self) -> list[Entity]:
        """All entities; the metadata file and the root come first."""
        first = [METADATA_FILE, "./"]
        return [self._known[key] for key in [*first, *(key for key in self._known if key not in first)]]

    def add(self, entity: Entity) -> Entity:
        """Add an entity; returns the reference to it."""
        self._known.setdefault(entity["@id"], entity)
        return reference(entity["@id"])

    def fact(self, name: str, value: str) -> Entity:
        tag = hashlib.sha256(value.encode()).hexdigest()[:8]
        return self.add({"@id": f"#fact-{quote(name)}-{tag}", "@type": "PropertyValue", "name": name, "value": value})

    def software(self, version: str) -> Entity:
        entity = {
            "@id": f"#p4perf-{quote(version)}",
            "@type": "SoftwareApplication",
            "name": "p4perf",
            "description": "Measures generated data-plane programs and derives performance models.",
            "license": reference(APACHE),
            "softwareVersion": version,
        }
        return self.add(entity)

    def people(self, authors: Iterable[Author]) -> list[Entity]:
        found = []
        for who in authors:
            key = f"https://orcid.org/{who.orcid}" if who.orcid else f"#author-{quote(who.name)}"
            found.append(self.add({"@id": key, "@type": "Person", "name": who.name}))
        return found


def reference(identifier: str) -> Entity:
    return {"@id": identifier}


def encoding_format(path: str) -> str:
    suffix = PurePosixPath(path).suffix
    return FORMATS.get(suffix, "text/plain" if suffix in TEXT_FORMATS else "application/octet-stream")


def file_id(path: str) -> str:
    """The identifier of a file: its path as a relative reference of RFC 3986."""
    return quote(path)


def file_entity(entry: FileEntry) -> Entity:
    return {
        "@id": file_id(entry.path),
        "@type": "File",
        "name": entry.path,
        "encodingFormat": encoding_format(entry.path),
        "contentSize": str(entry.size_bytes),
        "sha256": entry.sha256,
    }


def licence_entity(graph: Graph, text: str | None) -> Entity | str:
    """The licence of the results: a reference, or a sentence where there is nothing to refer to."""
    if text is None:
        return NO_LICENCE
    wanted = text.strip()
    if not wanted or not wanted.isprintable():
        raise UsageError(f"{text!r} is not a licence", hint="such as CC-BY-4.0")
    if urlsplit(wanted).scheme in ("http", "https"):
        address, name = wanted, wanted
    elif _SPDX.fullmatch(wanted):
        address, name = f"https://spdx.org/licenses/{wanted}", wanted
    else:
        return wanted
    about = f"The licence of these results: {name}."
    return graph.add({"@id": address, "@type": "CreativeWork", "name": name, "description": about})


CONTEXT = ("https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context")
CRATE = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"

FACTS = (
    *("cpu_model", "cpu_id", "microcode", "machine", "virtual_machine", "cpus", "memory_total_bytes"),
    *("cache_l1_bytes", "cache_l2_bytes", "cache_l3_bytes", "kernel", "system"),
    *("dpdk_version", "cc_version", "clang_version", "libbpf_version"),
)
"""Facts of a node that go into the description; all of them stand in the manifest of the run."""


@dataclass(frozen=True)
class _Run:
    """A run directory below the folder; ``folder`` is relative to it, ``""`` for the folder itself."""

    folder: str
    manifest: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.manifest['experiment']} on {self.manifest['target']} ({self.manifest['testbed']})"


def crate_metadata(folder: Path, options: CrateOptions | None = None) -> str:
    """The text of ``ro-crate-metadata.json`` for a folder.

    Run directories are found at any depth. The folder may hold anything else, too: a campaign, a comparison, a report.

    Raises:
        DataError: the folder or something in it cannot be read, is a link, or a run in it is damaged.
        UsageError: there is no run in it that says when it was made, and ``published`` is not given.
    """
    return describe(folder, inventory(folder), options or CrateOptions())


def describe(folder: Path, entries: Sequence[FileEntry], options: CrateOptions) -> str:
    """As :func:`crate_metadata`, of files that are known already."""
    runs = _runs(folder, entries)
    graph = Graph()
    actions = [_action(graph, run, entries, options) for run in runs]
    actions += _comparison(graph, folder, entries, options)
    _root(graph, folder, entries, runs, actions, options)
    return files.json_text({"@context": list(CONTEXT), "@graph": graph.entities})


def newest(folder: Path, entries: Iterable[FileEntry]) -> datetime | None:
    """When the newest run in a folder, or of a comparison, was begun; None if there is none."""
    times = [str(run.manifest["created"]) for run in _runs(folder, entries)]
    if (path := folder / "comparison.json").is_file():
        times += [str(run.get("created", "")) for run in _compared(files.parse_object(files.read_text(path), path))]
    known = [time for text in times if (time := _time(text)) is not None]
    return max(known, default=None)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _runs(folder: Path, entries: Iterable[FileEntry]) -> list[_Run]:
    """The run directories below a folder: those with a manifest and a spec."""
    paths = {entry.path for entry in entries}
    found = []
    for path in sorted(paths):
        above, _, name = path.rpartition("/")
        beside = f"{above}/spec.yaml" if above else "spec.yaml"
        if name == "manifest.json" and beside in paths:
            found.append(_Run(above, read_manifest(folder / path)))
    return found


def _of_run(run: _Run, entries: Iterable[FileEntry]) -> list[FileEntry]:
    return [entry for entry in entries if not run.folder or entry.path.startswith(f"{run.folder}/")]


def _action(graph: Graph, run: _Run, entries: Sequence[FileEntry], options: CrateOptions) -> Entity:
    manifest, prefix = run.manifest, f"{run.folder}/" if run.folder else ""
    spec = f"{prefix}spec.yaml"
    paths = [entry.path for entry in entries]
    versions, node = _mapping(manifest, "versions"), _mapping(manifest, "node")
    facts = {"target": manifest["target"], "testbed": manifest["testbed"]}
    facts |= {key: node[key] for key in FACTS if isinstance(node.get(key), str | int | float)}
    if isinstance(manifest.get("hugepages"), bool):
        facts["hugepages"] = "yes" if manifest["hugepages"] else "no"
    action: Entity = {
        "@id": f"#run-{quote(run.folder or 'this', safe='')}",
        "@type": "CreateAction",
        "name": run.name,
        "description": _origin(manifest),
        "instrument": graph.software(str(versions.get("p4perf", "unknown"))),
        "object": [reference(file_id(spec)), *(graph.fact(name, str(value)) for name, value in facts.items())],
        "result": [reference(f"{file_id(run.folder)}/")]
        if run.folder
        else [reference(file_id(p)) for p in paths if p != spec],
    }
    begun, ended = _time(str(manifest["created"])), _ended(manifest)
    if begun is not None:
        action["startTime"] = begun.isoformat(timespec="seconds")
    if ended is not None:
        action["endTime"] = ended.isoformat(timespec="seconds")
    if options.authors:
        action["agent"] = graph.people(options.authors)
    return graph.add(action)


def _mapping(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = manifest.get(key)
    return value if isinstance(value, Mapping) else {}


def _origin(manifest: Mapping[str, Any]) -> str:
    imported = manifest.get("imported")
    if isinstance(imported, Mapping):
        return f"Imported by {imported.get('importer', 'unknown')}, not measured by p4perf."
    return f"Measured on target {manifest['target']}, testbed {manifest['testbed']}."


def _ended(manifest: Mapping[str, Any]) -> datetime | None:
    sessions = manifest.get("sessions")
    ends = [s.get("ended") for s in sessions if isinstance(s, Mapping)] if isinstance(sessions, list) else []
    return max((time for end in ends if (time := _time(str(end))) is not None), default=None)


def _comparison(graph: Graph, folder: Path, entries: Sequence[FileEntry], options: CrateOptions) -> list[Entity]:
    path = folder / "comparison.json"
    if not any(entry.path == path.name for entry in entries):
        return []
    runs = _compared(files.parse_object(files.read_text(path), path))
    action: Entity = {
        "@id": "#comparison",
        "@type": "CreateAction",
        "name": "comparison of runs",
        "description": f"Compares {len(runs)} runs.",
        "instrument": graph.software(__version__),
        "object": [graph.fact("run", PurePosixPath(str(run.get("run", "unknown"))).name) for run in runs],
        "result": [reference(file_id(entry.path)) for entry in entries],
    }
    if options.authors:
        action["agent"] = graph.people(options.authors)
    return [graph.add(action)]


def _compared(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The records of the runs of a comparison."""
    experiments = content.get("experiments")
    groups = [e.get("runs") for e in experiments if isinstance(e, Mapping)] if isinstance(experiments, list) else []
    return [run for group in groups if isinstance(group, list) for run in group if isinstance(run, Mapping)]


def _root(
    graph: Graph,
    folder: Path,
    entries: Sequence[FileEntry],
    runs: Sequence[_Run],
    actions: Sequence[Entity],
    options: CrateOptions,
) -> None:
    published = options.published or newest(folder, entries)
    if published is None:
        raise UsageError(f"{folder} holds no run: nothing says when it was made", hint="say when it was published")
    inner = [run for run in runs if run.folder]
    elsewhere = {entry.path for run in inner for entry in _of_run(run, entries)}
    parts = [graph.add(file_entity(entry)) for entry in entries if entry.path not in elsewhere]
    parts += [graph.add(_dataset(run, entries)) for run in inner]
    for entry in entries:
        graph.add(file_entity(entry))
    for address, name in ((CRATE, "RO-Crate"), (PROFILE, "Process Run Crate")):
        graph.add({"@id": address, "@type": "CreativeWork", "name": name, "version": address.rpartition("/")[2]})
    graph.add({"@id": METADATA_FILE, "@type": "CreativeWork", "conformsTo": reference(CRATE), "about": reference("./")})
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": reference(PROFILE),
        "name": options.name or next((run.name for run in runs if not run.folder), folder.absolute().name),
        "description": options.description or _summary(runs, entries),
        "datePublished": published.astimezone(UTC).strftime("%Y-%m-%d"),
        "license": licence_entity(graph, options.licence),
        "hasPart": parts,
    }
    if actions:
        root["mentions"] = list(actions)
    if options.authors:
        root["author"] = graph.people(options.authors)
    graph.add(root)
    if actions:
        graph.add({"@id": APACHE, "@type": "CreativeWork", "name": "Apache-2.0", "description": "Licence of p4perf."})


def _dataset(run: _Run, entries: Sequence[FileEntry]) -> Entity:
    return {
        "@id": f"{file_id(run.folder)}/",
        "@type": "Dataset",
        "name": run.name,
        "description": _origin(run.manifest),
        "hasPart": [reference(file_id(entry.path)) for entry in _of_run(run, entries)],
    }


def _summary(runs: Sequence[_Run], entries: Sequence[FileEntry]) -> str:
    experiments = dict.fromkeys(str(run.manifest["experiment"]) for run in runs)
    what = f"{len(runs)} runs of {len(experiments)} experiments" if len(runs) != 1 else "one run"
    return f"Results of p4perf: {what}, {len(entries)} files." if runs else f"Results of p4perf: {len(entries)} files."


def require_results(folder: Path) -> None:
    """Refuse what p4perf did not make.

    Raises:
        DataError: the folder is neither a run directory nor a campaign nor a comparison, or it is a damaged one.
    """
    if not folder.is_dir():
        raise DataError("there is no such folder", location=Location(str(folder)))
    if CampaignDirectory.is_one(folder):
        CampaignDirectory.open(folder)
    elif (path := folder / "comparison.json").is_file():
        if files.parse_object(files.read_text(path), path).get("kind") != "comparison":
            raise DataError("is not the file of a comparison", location=Location(str(path)), key="kind")
    elif (folder / "manifest.json").is_file():
        RunDirectory.open(folder)
    else:
        raise DataError(
            "is neither a run directory nor a campaign nor a comparison of p4perf",
            location=Location(str(folder)),
            hint="p4perf list runs shows the runs",
        )


_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
_LATEST = datetime(2107, 12, 31, tzinfo=UTC)
_ORDINARY_FILE = 0o100644 << 16
_UNIX = 3


def pack(folder: Path, archive: Path, options: CrateOptions | None = None) -> tuple[FileEntry, ...]:
    """Write a run directory, a campaign or a comparison into a zip, with its description at the root.

    The zip appears all at once; one that is there is replaced.

    Args:
        options: what goes into the description; ``published`` is also the time of the files in the zip, by default
            that of the newest run.

    Raises:
        DataError: the folder is no result of p4perf, something in it cannot be read or is a link, or it changed while
            it was packed.
        UsageError: the archive is not called ``.zip``, is a folder, or lies within the folder that is packed.
    """
    options = options or CrateOptions()
    require_results(folder)
    _check_place(folder, archive)
    entries = inventory(folder)
    text = describe(folder, entries, options)
    time = options.published or newest(folder, entries) or _EARLIEST
    stamp = min(max(time.astimezone(UTC), _EARLIEST), _LATEST)
    with files.replacing(archive) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as bundle:
        bundle.writestr(_info(METADATA_FILE, stamp), text)
        for entry in entries:
            _add(bundle, folder, entry, stamp)
    return entries


def _check_place(folder: Path, archive: Path) -> None:
    if archive.suffix != ".zip":
        raise UsageError(f"{archive} is not called .zip", hint="give the archive a name that ends in .zip")
    if archive.is_dir():
        raise UsageError(f"{archive} is a folder")
    if archive.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{archive} lies in the folder that is packed", hint="put it somewhere else, with -o")


def _info(name: str, time: datetime) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (time.year, time.month, time.day, time.hour, time.minute, time.second // 2 * 2))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _ORDINARY_FILE
    return info


def _add(bundle: zipfile.ZipFile, folder: Path, entry: FileEntry, time: datetime) -> None:
    """Add a file as the description says that it is."""
    info, digest = _info(entry.path, time), hashlib.sha256()
    info.file_size = entry.size_bytes
    with bundle.open(info, "w") as member:
        for piece in pieces(folder / entry.path):
            digest.update(piece)
            member.write(piece)
    if digest.hexdigest() != entry.sha256:
        raise DataError(
            "changed while it was packed",
            location=Location(str(folder / entry.path)),
            hint="pack a run when it is finished, not while it is measured",
        )
