"""Files of others, read with care: how large, whether text, and nothing from outside of a folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from p4perf.errors import DataError, Location
from p4perf.results.files import parse_object, read_bytes

MAX_FILE_MIB = 64
"""Larger files are refused."""

MAX_FILES = 200_000
"""A folder with more files is refused."""

HEAD_BYTES = 4096
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ARCHIVES = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def read_plain_text(path: Path) -> str:
    """The text of a file: UTF-8, without byte order mark, with colours of terminals taken out."""
    where = Location(str(path))
    check_file(path)
    data = read_bytes(path)
    for magic, kind in _ARCHIVES.items():
        if data.startswith(magic):
            raise DataError(f"is an archive ({kind})", location=where, hint="unpack it first")
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise DataError("is binary: there is a zero byte in it", location=Location(str(path), line))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("is not text in UTF-8", location=Location(str(path), line)) from error
    return without_colours(text.removeprefix("\ufeff")).replace("\r\n", "\n")


def without_colours(text: str) -> str:
    """A text without the codes by which terminals colour it."""
    return _ANSI.sub("", text)


def check_file(path: Path) -> None:
    """Raise a DataError if a path is not a regular file of a size that can be read."""
    where = Location(str(path))
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", location=where) from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError("is not a file", location=where)
    if status.st_size > MAX_FILE_MIB * 2**20:
        size = f"{status.st_size / 2**20:.0f} MiB"
        raise DataError(f"has {size}, more than the limit of {MAX_FILE_MIB} MiB", location=where)


def head_of(path: Path) -> str:
    """The beginning of a file as text, for recognising it; empty if it cannot be read as text."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data else without_colours(data.decode(errors="ignore").removeprefix("\ufeff"))


def json_of(path: Path) -> dict[str, Any]:
    """A file with one JSON object, for recognising it; empty if it is none."""
    try:
        return read_json(path) if head_of(path).lstrip().startswith("{") else {}
    except DataError:
        return {}


def files_below(folder: Path) -> Iterator[Path]:
    """All files below a folder, in order; hidden ones and their folders are passed over."""
    root = folder.resolve()
    count = 0
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *sorted(names)):
            path = Path(place, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise DataError(f"is a link to a place outside of {folder}", location=Location(str(path)))
        for name in sorted(names):
            if name.startswith("."):
                continue
            count += 1
            if count > MAX_FILES:
                raise DataError(f"has more than {MAX_FILES} files", location=Location(str(folder)))
            yield Path(place, name)


def _unreadable(error: OSError) -> NoReturn:
    raise DataError(f"cannot be read: {error.strerror or error}", location=Location(str(error.filename))) from error


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object. Numbers are finite."""
    text = read_plain_text(path)
    if not text.strip():
        raise DataError("is empty", location=Location(str(path)))
    return parse_object(text, path)
