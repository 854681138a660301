"""Plain files, read whole: only regular ones and pipes that somebody fills, up to a limit."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import resource
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from p4perf.errors import DataError, Location

MAX_BYTES = 1 << 30
"""Larger files are not read whole."""

MAX_MEMORY_BYTES = 4 << 30
"""Reading a program or a tree of results takes no more than this beyond what was taken before."""
MAX_PROCESSOR_S = 300.0
"""Nor does it take longer than this, in seconds of processor time of this process."""

_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where shells put pipes that somebody fills."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a failure of the operating system while ``path`` is read into a :class:`DataError` with its reason."""
    try:
        yield
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) and "\0" not in str(path):
            raise
        known = error.strerror if isinstance(error, OSError) else None
        missing = isinstance(error, OSError) and error.errno == errno.ENOENT
        reason = "there is no such file" if missing else known or str(error)
        hint = near_path(path) if missing else None
        raise DataError(f"cannot be read: {reason}", location=Location(shown(path)), hint=hint) from error


def near_path(path: Path) -> str | None:
    """A hint for a file that is not there: the one that is called most alike; None if none is."""
    with contextlib.suppress(OSError, ValueError):
        first = next((each for each in (*reversed(path.parents), path) if not each.exists()), path)
        rest = path.relative_to(first)
        known = [each.name for each in first.parent.iterdir() if (each / rest).is_file()]
        if close := difflib.get_close_matches(first.name, known, n=1):
            return f"did you mean {shown(first.parent / close[0] / rest)}?"
    return None


def shown(path: Path) -> str:
    """A path for messages: without what a terminal would obey, and its end alone if it is very long."""
    text = str(path) if str(path).isprintable() else ascii(str(path))[1:-1]
    return text if len(text) <= 500 else f"...{text[-500:]}"


def real(path: Path) -> Path:
    """The path with all links followed; a loop of links stays as it is, and cannot be opened."""
    return Path(os.path.realpath(path))


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


@contextlib.contextmanager
def bounded(where: Location | None = None) -> Iterator[None]:
    """Limit memory and processor time of a body that reads what may come from elsewhere; also decorates functions.

    The time is limited in the main thread only, where Python handles signals.

    Raises:
        DataError: a limit is reached.
    """
    hint = "read a smaller file, or part of it"
    timed = threading.current_thread() is threading.main_thread()
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = _data_bytes() + MAX_MEMORY_BYTES
    known = [limit for limit in before if limit != resource.RLIM_INFINITY]

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise DataError(f"reading takes more than {MAX_PROCESSOR_S:.0f} s of processor time", location=where, hint=hint)

    handler = signal.signal(signal.SIGVTALRM, stop) if timed else None
    resource.setrlimit(resource.RLIMIT_DATA, (min([most, *known]), before[1]))
    try:
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, MAX_PROCESSOR_S)
        yield
    except MemoryError as error:
        what = f"reading takes more than {MAX_MEMORY_BYTES >> 20} MiB of memory"
        raise DataError(what, location=where, hint=hint) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, handler)


def _data_bytes() -> int:
    """The memory of this process that the limit counts."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    return pages * resource.getpagesize()
