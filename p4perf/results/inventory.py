"""All files of a folder of results, with size and hash: what an archive of it holds.

What processes leave in the folder while they work is no result: locks, temporary files, and a description that an
earlier packing wrote.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p4perf.errors import DataError, Location

METADATA_FILE = "ro-crate-metadata.json"
"""Name of the description of an RO-Crate, at its root."""

CHUNK_BYTES = 1 << 20
_LOCK = ".lock"
_TEMPORARY = (".p4perf-", ".tmp")


@dataclass(frozen=True)
class FileEntry:
    """A file of a folder.

    Args:
        path: relative to the folder, in POSIX form, without ``..``.
        size_bytes: its size.
        sha256: hash of its content, in hexadecimal digits.
    """

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
    """The content of a file, piece by piece.

    Raises:
        DataError: it cannot be read.
    """
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
        if not _is_text(entry.name):
            raise DataError("has a name that is not text in UTF-8, or holds control characters", location=here)
        if entry.is_symlink():
            raise DataError("is a link: only files can be packed", location=here, hint="put a copy in its place")
        if entry.is_dir(follow_symlinks=False):
            yield from _paths(root, path)
        elif entry.is_file(follow_symlinks=False):
            yield relative
        else:
            raise DataError("is no file that can be packed", location=here)


def _is_text(name: str) -> bool:
    """Whether a name can stand in an archive on any system: no surrogates, no control characters, no backslash."""
    return "\\" not in name and name.isprintable()


def _entry(folder: Path, relative: str) -> FileEntry:
    path, digest, size = folder / relative, hashlib.sha256(), 0
    for piece in _regular(path):
        digest.update(piece)
        size += len(piece)
    return FileEntry(relative, size, digest.hexdigest())


def _regular(path: Path) -> Iterator[bytes]:
    """The content of a file that did not become something else since its folder was listed."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", location=Location(str(path))) from error
    if not stat.S_ISREG(mode):
        raise DataError("is no file that can be packed", location=Location(str(path)))
    yield from pieces(path)
