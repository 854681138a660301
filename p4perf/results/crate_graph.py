"""The files and entities of an RO-Crate, and the options that its files do not hold.

What processes leave in the folder while they work is no result: locks, temporary files, and a description that an
earlier packing wrote.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from p4perf.errors import DataError, Location, UsageError

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
