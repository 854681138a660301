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

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from p4perf.errors import DataError, Location, UsageError
from p4perf.records import counted
from p4perf.results import files
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.manifest import mapping_of, read_manifest
from p4perf.results.rundir import RunDirectory
from p4perf.version import __version__

_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")


@dataclass(frozen=True)
class Author:
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


def _spdx_identifier(text: str) -> str:
    """The identifier as the list of SPDX spells it."""
    try:
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        hint = "https://spdx.org/licenses lists identifiers such as CC-BY-4.0; addresses and sentences are taken, too"
        raise UsageError(f"unknown licence {text!r}", hint=hint) from error


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
    with files.reading(path), path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            yield piece


def _paths(root: Path, folder: Path) -> Iterator[str]:
    with files.reading(folder):
        entries = list(os.scandir(folder))
    for entry in entries:
        path = Path(entry.path)
        relative = path.relative_to(root).as_posix()
        if entry.name == files.LOCK or relative == METADATA_FILE or files.TEMPORARY.fullmatch(entry.name):
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
            raise DataError("is not a file that can be packed", location=here)


def _entry(folder: Path, relative: str) -> FileEntry:
    path = folder / relative
    with files.reading(path):
        if not stat.S_ISREG(path.lstat().st_mode):  # it became something else since its folder was listed
            raise DataError("is not a file that can be packed", location=Location(str(path)))
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return FileEntry(relative, file.tell(), digest)


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

Entity = dict[str, Any]


def reference(identifier: str) -> Entity:
    return {"@id": identifier}


def encoding_format(path: str) -> str:
    suffix = PurePosixPath(path).suffix
    return FORMATS.get(suffix, "text/plain" if suffix in TEXT_FORMATS else "application/octet-stream")


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
    """A run directory below the folder, and its files; ``folder`` is relative to it, ``""`` for the folder itself."""

    folder: str
    manifest: Mapping[str, Any]
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.manifest['experiment']} on {self.manifest['target']} ({self.manifest['testbed']})"

    @property
    def origin(self) -> str:
        if isinstance(imported := self.manifest.get("imported"), Mapping):
            return f"Imported by {imported.get('importer', 'unknown')}, not measured by p4perf."
        return f"Measured on target {self.manifest['target']}, testbed {self.manifest['testbed']}."


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
    return files.json_text({"@context": list(CONTEXT), "@graph": _Graph(folder, entries, options).entities()})


def newest(folder: Path, entries: Iterable[FileEntry]) -> datetime | None:
    """When the newest run in a folder, or of a comparison, was begun; None if there is none."""
    times = [str(run.manifest["created"]) for run in _runs(folder, entries)]
    if (path := folder / "comparison.json").is_file():
        times += [str(run.get("created", "")) for run in _compared(path)]
    return max((time for text in times if (time := _time(text)) is not None), default=None)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _runs(folder: Path, entries: Iterable[FileEntry]) -> list[_Run]:
    """The run directories below a folder: those with a manifest and a spec."""
    paths = [entry.path for entry in entries]
    found = []
    for path in sorted(paths):
        prefix, slash, name = path.rpartition("/")
        if name == "manifest.json" and f"{prefix}{slash}spec.yaml" in paths:
            own = tuple(other for other in paths if other.startswith(f"{prefix}{slash}"))
            found.append(_Run(prefix, read_manifest(folder / path), own))
    return found


def _compared(path: Path) -> list[Mapping[str, Any]]:
    """The records of the runs of a comparison."""
    experiments = files.parse_object(files.read_text(path), path).get("experiments")
    groups = [e.get("runs") for e in experiments if isinstance(e, Mapping)] if isinstance(experiments, list) else []
    return [run for group in groups if isinstance(group, list) for run in group if isinstance(run, Mapping)]


class _Graph:
    """Entities by their ``@id``, each of them once, in the order in which they came."""

    def __init__(self, folder: Path, entries: Sequence[FileEntry], options: CrateOptions) -> None:
        self._folder, self._entries, self._options = folder, entries, options
        self._runs = _runs(folder, entries)
        self._known: dict[str, Entity] = {}

    def entities(self) -> list[Entity]:
        """All entities; the metadata file and the root come first."""
        actions = [self._run_action(run) for run in self._runs]
        if any(entry.path == "comparison.json" for entry in self._entries):
            actions.append(self._comparison())
        self._root(actions)
        first = [METADATA_FILE, "./"]
        return [self._known[key] for key in [*first, *(key for key in self._known if key not in first)]]

    def _add(self, key: str, kind: str, **properties: Any) -> Entity:
        """Add an entity, unless it is there; returns the reference to it."""
        self._known.setdefault(key, {"@id": key, "@type": kind, **properties})
        return reference(key)

    def _fact(self, name: str, value: str) -> Entity:
        tag = hashlib.sha256(value.encode()).hexdigest()[:8]
        return self._add(f"#fact-{quote(name)}-{tag}", "PropertyValue", name=name, value=value)

    def _software(self, version: str) -> Entity:
        return self._add(
            f"#p4perf-{quote(version)}",
            "SoftwareApplication",
            name="p4perf",
            description="Measures generated data-plane programs and derives performance models.",
            license=reference(APACHE),
            softwareVersion=version,
        )

    def _people(self, role: str) -> Entity:
        """The authors in a role; nothing if none is given."""
        found = []
        for who in self._options.authors:
            key = f"https://orcid.org/{who.orcid}" if who.orcid else f"#author-{quote(who.name)}"
            found.append(self._add(key, "Person", name=who.name))
        return {role: found} if found else {}

    def _file(self, entry: FileEntry) -> Entity:
        return self._add(
            quote(entry.path),
            "File",
            name=entry.path,
            encodingFormat=encoding_format(entry.path),
            contentSize=str(entry.size_bytes),
            sha256=entry.sha256,
        )

    def _licence(self) -> Entity | str:
        """The licence of the results: a reference, or a sentence where there is nothing to refer to."""
        if self._options.licence is None:
            return NO_LICENCE
        wanted = self._options.licence.strip()
        if not wanted or not wanted.isprintable():
            raise UsageError(f"{self._options.licence!r} is not a licence", hint="such as CC-BY-4.0")
        if urlsplit(wanted).scheme in ("http", "https"):
            address = wanted
        elif " " in wanted:
            return wanted
        else:
            address = f"https://spdx.org/licenses/{_spdx_identifier(wanted)}"
        about = f"The licence of these results: {wanted}."
        return self._add(address, "CreativeWork", name=wanted, description=about)

    def _run_action(self, run: _Run) -> Entity:
        manifest, node = run.manifest, mapping_of(run.manifest.get("node"))
        spec = f"{run.folder}/spec.yaml" if run.folder else "spec.yaml"
        results = [f"{run.folder}/"] if run.folder else [path for path in run.paths if path != spec]
        facts = {"target": manifest["target"], "testbed": manifest["testbed"]}
        facts |= {key: node[key] for key in FACTS if isinstance(node.get(key), str | int | float)}
        if isinstance(manifest.get("hugepages"), bool):
            facts["hugepages"] = "yes" if manifest["hugepages"] else "no"
        sessions = manifest.get("sessions")
        ends = [s.get("ended") for s in sessions if isinstance(s, Mapping)] if isinstance(sessions, list) else []
        ended = max((time for end in ends if (time := _time(str(end))) is not None), default=None)
        times = {"startTime": _time(str(manifest["created"])), "endTime": ended}
        return self._add(
            f"#run-{quote(run.folder or 'this', safe='')}",
            "CreateAction",
            name=run.name,
            description=run.origin,
            instrument=self._software(str(mapping_of(manifest.get("versions")).get("p4perf", "unknown"))),
            object=[reference(quote(spec)), *(self._fact(name, str(value)) for name, value in facts.items())],
            result=[reference(quote(path)) for path in results],
            **{key: time.isoformat(timespec="seconds") for key, time in times.items() if time is not None},
            **self._people("agent"),
        )

    def _comparison(self) -> Entity:
        runs = _compared(self._folder / "comparison.json")
        return self._add(
            "#comparison",
            "CreateAction",
            name="comparison of runs",
            description=f"Compares {len(runs)} runs.",
            instrument=self._software(__version__),
            object=[self._fact("run", PurePosixPath(str(run.get("run", "unknown"))).name) for run in runs],
            result=[reference(quote(entry.path)) for entry in self._entries],
            **self._people("agent"),
        )

    def _root(self, actions: Sequence[Entity]) -> None:
        published = self._options.published or newest(self._folder, self._entries)
        if published is None:
            what = f"{self._folder} holds no run: nothing says when it was made"
            raise UsageError(what, hint="say when it was published")
        inner = [run for run in self._runs if run.folder]
        elsewhere = {path for run in inner for path in run.paths}
        parts = [self._file(entry) for entry in self._entries if entry.path not in elsewhere]
        for run in inner:
            dataset = self._add(
                f"{quote(run.folder)}/",
                "Dataset",
                name=run.name,
                description=run.origin,
                hasPart=[reference(quote(path)) for path in run.paths],
            )
            parts.append(dataset)
        for entry in self._entries:
            self._file(entry)
        for address, name in ((CRATE, "RO-Crate"), (PROFILE, "Process Run Crate")):
            self._add(address, "CreativeWork", name=name, version=address.rpartition("/")[2])
        self._add(METADATA_FILE, "CreativeWork", conformsTo=reference(CRATE), about=reference("./"))
        own_name = next((run.name for run in self._runs if not run.folder), self._folder.absolute().name)
        self._add(
            "./",
            "Dataset",
            conformsTo=reference(PROFILE),
            name=self._options.name or own_name,
            description=self._options.description or self._summary(),
            datePublished=published.astimezone(UTC).strftime("%Y-%m-%d"),
            license=self._licence(),
            hasPart=parts,
            **({"mentions": actions} if actions else {}),
            **self._people("author"),
        )
        if actions:
            self._add(APACHE, "CreativeWork", name="Apache-2.0", description="Licence of p4perf.")

    def _summary(self) -> str:
        runs = self._runs
        experiments = {str(run.manifest["experiment"]) for run in runs}
        what = f"{len(runs)} runs of {counted(len(experiments), 'experiment')}" if len(runs) != 1 else "one run"
        about = f"{what}, {counted(len(self._entries), 'file')}" if runs else counted(len(self._entries), "file")
        return f"Results of p4perf: {about}."


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
