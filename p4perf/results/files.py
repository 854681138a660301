"""Files and folders that are either old or new, never half: atomic writes, locks, strict JSON and rows as text."""

from __future__ import annotations

import contextlib
import csv
import errno
import fcntl
import io
import itertools
import json
import math
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn

from p4perf.errors import DataError, Location, StorageError, UsageError
from p4perf.formats.plain import bounded as bounded
from p4perf.formats.plain import decoded as decoded
from p4perf.formats.plain import read_bytes as read_bytes
from p4perf.formats.plain import read_text as read_text
from p4perf.formats.plain import reading as reading
from p4perf.formats.plain import real as real
from p4perf.formats.plain import shown

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space and run again; finished results are kept"),
    errno.EDQUOT: ("the disk quota is used up", "free some space and run again; finished results are kept"),
    errno.EFBIG: ("the file would be larger than the limit for files", "raise the limit (ulimit -f) and run again"),
    errno.EROFS: ("the file system is read-only", "choose another output folder"),
    errno.EACCES: ("permission denied", "choose another output folder, or change its permissions"),
    errno.ELOOP: ("it is a symbolic link, or behind one", "put a file or folder in its place, and run again"),
    errno.EPERM: ("the operation is not permitted", "choose another output folder, or change its permissions"),
}

LOCK = ".lock"
"""Lock file of a folder of results."""

TEMPORARY = re.compile(r"\.p4perf-(\d+)-[0-9a-f]{8}\.tmp")
"""Names of :func:`temporary_sibling`."""

_LARGE_JSON = 1 << 24
"""Longer texts are parsed within limits of memory and time: each byte may become many."""

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


@contextlib.contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn a failure of the operating system while ``path`` is written into a :class:`StorageError`.

    Raises:
        StorageError: the body raised an ``OSError``; the message names the path and the reason.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) and "\0" not in str(path):
            raise
        known = error if isinstance(error, OSError) else OSError(errno.EINVAL, "it has a zero byte in its name")
        reason, hint = _REASONS.get(known.errno or 0, (known.strerror or str(known), None))
        raise StorageError(f"cannot write {shown(path)}: {reason}", hint=hint) from error


def open_to_change(path: Path, flags: int = 0) -> int:
    """A handle of a file, made if need be, that is changed where it is, perhaps in a folder that came from elsewhere.

    Raises:
        StorageError: it is a symbolic link, has a second name or is no regular file: what it holds may be of others.
    """
    with storing(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, 0o666)
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
            return handle
        os.close(handle)
    what = "another name (a hard link)" if stat.S_ISREG(status.st_mode) else "not a regular file"
    raise StorageError(
        f"cannot write {shown(path)}: it {'has' if stat.S_ISREG(status.st_mode) else 'is'} {what}",
        hint="put a copy in its place, and run again",
    )


def sync_directory(path: Path) -> None:
    """Make the names in a folder durable (``fsync``); file systems that cannot do that are left alone.

    Raises:
        OSError: the folder is not there or the device failed.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def temporary_sibling(path: Path) -> Path:
    """A unique name in the folder of ``path``; it contains the number of this process."""
    return path.with_name(f".p4perf-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def take_over(root: Path) -> None:
    """Remove what processes that died left below ``root``, before anything is written there.

    Raises:
        StorageError: there is a symbolic link below it, which leads what is written to another place.
    """
    for place, folders, names in os.walk(root):
        folder = Path(place)
        for name in (*folders, *names):
            if (folder / name).is_symlink():
                raise StorageError(
                    f"{shown(folder / name)} is a symbolic link: p4perf would write where it leads",
                    hint=f"copy the folder with cp -rL, or remove the link; nothing below {shown(root)} was changed",
                )
        remove_leftovers(folder, (*folders, *names))


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove those of the names in a folder that are temporary and whose process died before it could."""
    for name in names:
        if (match := TEMPORARY.fullmatch(name)) and not _alive(int(match[1])):
            path = folder / name
            with contextlib.suppress(OSError), held(path):  # a process of another machine would hold it
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a temporary file or folder for the body; an OSError if another process does."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _hold(stack: contextlib.ExitStack, path: Path) -> None:
    """Hold the lock of a temporary file or folder, where the file system has locks."""
    with contextlib.suppress(OSError):
        stack.enter_context(held(path))


@cache
def _tidy(folder: Path) -> None:
    """Remove leftovers from a folder in which this process writes, once."""
    with contextlib.suppress(OSError):
        remove_leftovers(folder, [path.name for path in folder.iterdir()])


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder in ``$TMPDIR`` for the time of the body; what killed processes left there goes first."""
    parent = Path(tempfile.gettempdir())
    _tidy(parent)
    folder = temporary_sibling(parent / "folder")
    with storing(folder):
        folder.mkdir(mode=0o700)
    try:
        with contextlib.ExitStack() as stack:
            _hold(stack, folder)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Replace ``path`` by what the body writes; missing folders are made.

    The bytes go to a temporary file in the same folder, which is forced to disk and renamed. On any failure the old
    file stays as it was and the temporary file is removed.

    Raises:
        StorageError: the file cannot be written.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _tidy(path.parent)
        temporary = temporary_sibling(path)
        try:
            with temporary.open("xb") as file, contextlib.ExitStack() as stack:
                _hold(stack, temporary)
                yield file
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace ``path`` by the bytes of ``pieces``, joined, as :func:`replacing` does."""
    with replacing(path) as file:
        file.writelines(pieces)


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes to an open file: the system may take them in pieces."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def write_text_atomically(path: Path, text: str | Iterable[str]) -> None:
    """Replace ``path`` by a text, or by the pieces of one, in UTF-8. Line ends are written as they are.

    Raises:
        UsageError: the text holds a character that UTF-8 does not have (half of a surrogate pair).
    """
    pieces = (text,) if isinstance(text, str) else text
    try:
        write_atomically(path, (piece.encode() for piece in pieces))
    except UnicodeEncodeError as error:
        raise UsageError(f"the text for {path} cannot be written as UTF-8: {error}") from error


def strict_json(value: Any, *, indent: int | None = None) -> str:
    """``value`` as JSON in ASCII that reads back as it was: no NaN, no infinity, keys are strings.

    Raises:
        UsageError: JSON cannot hold the value; ``key`` is the path to the offending part.
    """
    try:
        _check(value, "")
        return json.dumps(value, indent=indent, allow_nan=False, separators=None if indent else (",", ":"))
    except (RecursionError, ValueError) as error:
        raise UsageError(f"cannot be written as JSON: {error}") from error


def json_text(value: Mapping[str, Any]) -> str:
    """A JSON object as it stands in a file; errors as of :func:`strict_json`."""
    return strict_json(dict(value), indent=2) + "\n"


def _check(value: Any, key: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            _refuse(key, f"{value} is not a number that JSON has")
    elif isinstance(value, Mapping):
        if not isinstance(value, dict):
            _refuse(key, f"a {type(value).__name__} is not a dict")
        for name, item in value.items():
            if not isinstance(name, str):
                _refuse(key, f"the key {name!r} is not a string")
            _check(item, f"{key}.{name}" if key else name)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check(item, f"{key}[{index}]")
    elif value is not None and not isinstance(value, (str, int)):
        _refuse(key, f"a {type(value).__module__}.{type(value).__name__} is not a JSON value")


def _refuse(key: str, message: str) -> NoReturn:
    raise UsageError(message, key=key or None)


def parse_object(text: str | bytes, path: Path, *, line: int | None = None) -> dict[str, Any]:
    """A JSON object, strictly read. ``line`` is the line of ``path`` that ``text`` is; None if it is the whole file.

    Raises:
        DataError: it is damaged or not an object; the location names the place.
    """
    try:
        with bounded(Location(str(path))) if len(text) > _LARGE_JSON else contextlib.nullcontext():
            value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = Location(
            str(path), error.lineno if line is None else line, error.colno, _line_of(error.doc, error.lineno)
        )
        raise DataError(f"is not valid JSON: {error.msg}", location=where) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not valid JSON: {error}", location=Location(str(path), line)) from error
    if not isinstance(value, dict):
        raise DataError("is not a JSON object", location=Location(str(path), line))
    return value


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not a number that JSON has"
    raise ValueError(msg)


def _line_of(text: str, number: int) -> str | None:
    lines = text.split("\n")
    line = lines[number - 1] if number <= len(lines) else ""
    return line if line.isprintable() and len(line) <= 200 else None


def dated_name(words: Iterable[str], now: datetime) -> str:
    """``<word>--<word>--<YYYYMMDDTHHMMSS>``; what is unfit for a folder name becomes ``-``."""
    return "--".join([*map(file_word, words), now.strftime("%Y%m%dT%H%M%S")])


def file_word(word: str) -> str:
    """A word as part of a file name: what is unfit becomes ``-``."""
    return _UNFIT.sub("-", word).lstrip(".") or "-"


def move_to_free_name(folder: Path, wanted: Path) -> Path:
    """Rename a folder that is not empty to the first free one of ``wanted``, ``wanted-2``, ``wanted-3`` and so on."""
    names = itertools.chain([wanted], (wanted.with_name(f"{wanted.name}-{count}") for count in itertools.count(2)))
    while True:
        path = next(names)
        if os.path.lexists(path):
            continue
        try:
            return folder.rename(path)
        except OSError as error:
            taken_meanwhile = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
            if not taken_meanwhile:
                raise


def new_folder(wanted: Path, fill: Callable[[Path], object]) -> Path:
    """Make a folder with all that belongs into it, or nothing at all.

    Args:
        wanted: where; if that is taken, ``wanted-2``, ``wanted-3`` and so on. Missing folders above are made.

    Raises:
        StorageError: it cannot be written; nothing is left behind.
    """
    wanted = wanted.absolute()
    with _filling(wanted) as temporary:
        fill(temporary)
        sync_directory(temporary)
        return move_to_free_name(temporary, wanted)


@contextlib.contextmanager
def _filling(wanted: Path) -> Iterator[Path]:
    """A new folder beside ``wanted``, which the body fills and renames; what is left of it is removed."""
    with storing(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        _tidy(wanted.parent)
        temporary = temporary_sibling(wanted)
        temporary.mkdir()
        try:
            with contextlib.ExitStack() as stack:
                _hold(stack, temporary)
                yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync_directory(wanted.parent)


def filled_folder(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Put results into a folder that the user named.

    Args:
        folder: one that is not there yet appears all at once; in one that is there, files of the same names are
            replaced.

    Raises:
        UsageError: it is a file.
    """
    if folder.is_dir():
        path = folder.absolute()
        with storing(path):
            fill(path)
        return path
    if folder.exists():
        raise UsageError(f"{folder} is a file, not a folder")
    return new_folder(folder, fill)


def replace_folder(wanted: Path, content: Mapping[str, bytes], marker: str) -> Path:
    """Make a folder of these files, or replace one that was made the same way.

    The new folder is complete before the old one goes; between the two renames nothing of that name is there.

    Args:
        marker: the file by which a folder of this kind is known; it is part of the content.

    Raises:
        UsageError: what is there is not of this kind.
    """
    wanted = wanted.absolute()
    _check_replaceable(wanted, marker)
    with _filling(wanted) as temporary:
        for name, data in content.items():
            path = temporary / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        _check_replaceable(wanted, marker)
        old = wanted.with_name(f".{wanted.name}-{secrets.token_hex(4)}.old")  # kept if this process is killed here
        if wanted.exists():
            wanted.rename(old)
        try:
            temporary.rename(wanted)
        except BaseException:
            if old.exists():
                old.rename(wanted)
            raise
        shutil.rmtree(old, ignore_errors=True)
    return wanted


def _check_replaceable(folder: Path, marker: str) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is there and no folder", hint="name a new folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise UsageError(
            f"{folder} holds files that p4perf did not make, and is not replaced", hint="name a new folder"
        )


def lock(handle: int, path: Path, what: str, *, names_holder: bool = False) -> None:
    """Lock an open file; a StorageError if another process holds it, or if it cannot be locked.

    Args:
        what: the locked thing, for the message.
        names_holder: whether the text of the file is the process that holds it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() if names_holder else ""
        message = f"{what} is being written by {holder or 'another process'}"
        raise StorageError(message, hint="wait until it has finished, or stop it") from error
    except OSError as error:
        raise StorageError(f"cannot lock {path}: {error.strerror}", hint="choose an output on a local disk") from error


def is_held(path: Path) -> bool:
    """Whether a process holds a lock file. One without the name of a holder is not touched."""
    try:
        with path.open("rb") as file:
            if file.read(1):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # it is not there, or has no lock on this file system
        return False


@contextlib.contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file ``path`` for the body; ``what`` names the locked thing in the message.

    The file stays where it is (removing it would let two processes lock two files of the same name); only its text,
    the holder, comes and goes. The lock is not re-entrant. A child made by ``fork`` without ``exec`` inherits it.

    Raises:
        StorageError: the lock is held (the message names the process), or the file cannot be written.
    """
    handle = open_to_change(path)
    try:
        lock(handle, path, what, names_holder=True)
        with storing(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of all rows, in the order in which they come."""
    return list(dict.fromkeys(key for row in rows for key in row))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with the keys of all of them as columns; empty if there are none."""
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
