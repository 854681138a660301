"""A file of models, one JSON object a line, that is written while series are fitted and can be continued.

A line is what ``model.json`` holds, and before it the labels of the series and its fingerprint::

    {"labels": {"metric": "cycles"}, "fingerprint": "9f...", "schema": "p4perf/component-model", ...}

A last line without its end was cut off by a kill; it is not read, and is written over.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.component import SCHEMA, ComponentModel
from p4perf.models.templates import registered_templates
from p4perf.results.files import lock, open_to_change, parse_object, storing, strict_json, write_all

BEGINNING = b'{"labels":'
"""What every line begins with: other files are not touched."""
SYNC_S = 1.0
"""The file is forced to disk this often. A kill of the process loses nothing, a crash of the machine this much."""


@dataclass(frozen=True, slots=True)
class _Place:
    fingerprint: str
    offset: int
    size: int
    line: int


class ModelLines:
    """The file, open for appending. Use it as a context manager; no other process can write it meanwhile.

    Raises:
        UsageError: this is not a file of models.
        DataError: a line is damaged.
        StorageError: the file cannot be written, or another process writes it.
    """

    def __init__(self, path: Path, *, restart: bool = False) -> None:
        self.path = path
        self._places: dict[str, _Place] = {}
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = open_to_change(path, os.O_APPEND)
        try:
            lock(self._handle, path, str(path))
            end = self._read(index=not restart)
            with storing(path):
                os.ftruncate(self._handle, 0 if restart else end)
        except BaseException:
            os.close(self._handle)
            raise
        self._end = 0 if restart else end
        self._lines = len(self._places)
        self._synced = time.monotonic()
        self._templates = registered_templates()

    def __enter__(self) -> ModelLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        try:
            with storing(self.path):
                os.fsync(self._handle)
        finally:
            os.close(self._handle)

    def __len__(self) -> int:
        return len(self._places)

    def has(self, labels: Mapping[str, str], fingerprint: str) -> bool:
        """Whether the model of a series is there.

        Raises:
            UsageError: there is a model of these labels, but from other samples or options.
        """
        place = self._places.get(_key(labels))
        if place is not None and place.fingerprint != fingerprint:
            raise UsageError(
                f"{self.path}:{place.line}: this series was fitted from other data, with other options, or by another "
                "version of p4perf",
                hint="choose another file, or begin it anew with --restart",
            )
        return place is not None

    def read(self, labels: Mapping[str, str]) -> ComponentModel:
        place = self._places[_key(labels)]
        with storing(self.path):
            text = os.pread(self._handle, place.size, place.offset).decode()
        return ComponentModel.from_json(text, file=f"{self.path}:{place.line}", templates=self._templates)

    def append(self, labels: Mapping[str, str], fingerprint: str, model: ComponentModel) -> None:
        record: dict[str, Any] = {"labels": dict(labels), "fingerprint": fingerprint, **json.loads(model.to_json())}
        line = strict_json(record).encode() + b"\n"
        with storing(self.path):
            try:
                write_all(self._handle, line)
                if time.monotonic() > self._synced + SYNC_S:
                    os.fsync(self._handle)
                    self._synced = time.monotonic()
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._handle, self._end)
                raise
        self._lines += 1
        self._places[_key(labels)] = _Place(fingerprint, self._end, len(line), self._lines)
        self._end += len(line)

    def _read(self, *, index: bool) -> int:
        """Learn what is in the file, as far as it is wanted. Returns the end of the last complete line."""
        end = 0
        with storing(self.path), os.fdopen(os.dup(self._handle), "rb") as file:
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if not line.startswith(BEGINNING) and not BEGINNING.startswith(line):
                    hint = "choose another name"
                    raise UsageError(f"{self.path}:{number}: not a file of models; it is left unchanged", hint=hint)
                if not line.endswith(b"\n"):
                    break
                if index:
                    self._remember(line, number, end)
                end += len(line)
        return end

    def _remember(self, line: bytes, number: int, offset: int) -> None:
        record = parse_object(line.rstrip(b"\n"), self.path, line=number)
        labels, fingerprint = record.get("labels"), record.get("fingerprint")
        if record.get("schema") != SCHEMA or not isinstance(labels, dict) or not isinstance(fingerprint, str):
            raise DataError("is not a model with labels", location=Location(str(self.path), number))
        self._places[_key(labels)] = _Place(fingerprint, offset, len(line), number)


def _key(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels), sort_keys=True)
