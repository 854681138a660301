"""Plain files, read whole: only regular ones and pipes that somebody fills, up to a limit."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from p4perf.errors import DataError, Location

MAX_BYTES = 1 << 30
"""Larger files are not read whole."""

_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where shells put pipes that somebody fills."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a failure of the operating system while ``path`` is read into a :class:`DataError` with its reason."""
    try:
        yield
    except (OSError, ValueError) as error:
        known = error.strerror if isinstance(error, OSError) else None
        missing = isinstance(error, OSError) and error.errno == errno.ENOENT
        reason = "there is no such file" if missing else known or str(error)
        raise DataError(f"cannot be read: {reason}", location=Location(shown(path))) from error


def shown(path: Path) -> str:
    """A path for messages: without what a terminal would obey, and its end alone if it is very long."""
    text = str(path) if str(path).isprintable() else ascii(str(path))[1:-1]
    return text if len(text) <= 500 else f"...{text[-500:]}"


def read_bytes(path: Path, limit: int = MAX_BYTES, hint: str | None = None) -> bytes:
    """The bytes of a file.

    Raises:
        DataError: it is not there, cannot be read, is a device or the like, or is larger than ``limit``.
    """
    with reading(path):
        pipe = str(path).startswith(_PIPES)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipe else os.O_NONBLOCK))
        with os.fdopen(handle, "rb") as file:
            kind = os.fstat(handle).st_mode
            if not stat.S_ISREG(kind) and not (pipe and stat.S_ISFIFO(kind)):
                code = errno.EISDIR if stat.S_ISDIR(kind) else 0
                raise OSError(code, os.strerror(code) if code else "it is not a regular file")
            data = file.read(limit + 1)
    if len(data) > limit:
        raise DataError(f"is larger than {limit >> 20} MiB", location=Location(shown(path)), hint=hint)
    return data


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """The text of a file in UTF-8, line ends as they are.

    Raises:
        DataError: as :func:`read_bytes`, or it is not UTF-8.
    """
    return decoded(read_bytes(path, limit), path)


def decoded(data: bytes, path: Path) -> str:
    """The bytes of a file as text; a DataError with the line if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("is not text in UTF-8", location=Location(shown(path), line)) from error
