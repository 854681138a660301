"""The journal of a point: one JSON line a trial, on disk before the next trial begins."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location, UsageError
from p4perf.results.files import parse_object, read_bytes, storing, strict_json, sync_directory

_Signature = tuple[int, int, int]


class Journal:
    """An append-only file of trial records.

    A record is a JSON object with a key ``trial``: an object with the whole numbers ``repetition`` and ``attempt``,
    both from 0, and whatever else distinguishes trials. It identifies the trial; no two records share it.

    A last line without its line end was cut off by a kill: it was never acknowledged, is not read, and is truncated
    away by the next append.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: set[str] = set()
        self._signature: _Signature | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one record on disk. When this returns, the record survives a crash of the process or the machine.

        Raises:
            UsageError: the record is not strict JSON, has no valid ``trial``, or that trial is there already.
        """
        line = strict_json(dict(record)).encode() + b"\n"
        identity = _identity(record)
        with self._open() as handle:
            end = self._recall(handle)
            if identity in self._known:
                raise UsageError(f"trial {identity} is in {self.path} already", key="trial")
            with storing(self.path):
                try:
                    _write_all(handle, line)
                    os.fsync(handle)
                    if end == 0:
                        sync_directory(self.path.parent)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.ftruncate(handle, end)
                        os.fsync(handle)
                    raise
                self._known.add(identity)
                self._signature = _signature(handle)

    def records(self) -> list[dict[str, Any]]:
        """All acknowledged records in order of time; none if nothing was ever appended."""
        return _parse(read_bytes(self.path), self.path) if self.path.exists() else []

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        """The journal for appending, locked, so that no other process truncates what is being written."""
        with storing(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with storing(self.path):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _recall(self, handle: int) -> int:
        """Read the file if another process changed it, and drop a torn line; its size in bytes."""
        if _signature(handle) != self._signature:
            data = read_bytes(self.path)
            self._known = {_identity(record) for record in _parse(data, self.path)}
            end = data.rfind(b"\n") + 1
            with storing(self.path):
                if end < len(data):
                    os.ftruncate(handle, end)
                    os.fsync(handle)
            self._signature = _signature(handle)
        return os.fstat(handle).st_size


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _signature(handle: int) -> _Signature:
    stat = os.fstat(handle)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _identity(record: Mapping[str, Any]) -> str:
    trial = record.get("trial")
    if not isinstance(trial, dict):
        raise UsageError("a trial record needs the object 'trial' with repetition and attempt", key="trial")
    for name in ("repetition", "attempt"):
        number = trial.get(name)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UsageError(f"{number!r} is not a whole number from 0", key=f"trial.{name}")
    return json.dumps(trial, sort_keys=True)


def _parse(data: bytes, path: Path) -> list[dict[str, Any]]:
    records = []
    seen: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        where = Location(str(path), number)
        record = parse_object(line, path, line=number)
        try:
            identity = _identity(record)
        except UsageError as error:
            raise DataError(error.message, location=where, key=error.key) from error
        if identity in seen:
            raise DataError(f"repeats the trial of line {seen[identity]}", location=where, key="trial")
        seen[identity] = number
        records.append(record)
    return records
