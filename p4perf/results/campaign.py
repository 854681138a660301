"""Folders with a record in JSON, run directories below it, and a lock: campaigns and reproductions.

A campaign folder holds its runs and what became of each of them::

    runs/catalogue--20261121T101500/
      campaign.json        what was asked for, what it took, and the state of every cell
      runs/<run>/          one run directory for every experiment and target that could be measured
      report.html          and further files that are made from the runs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from p4perf.errors import DataError, Location
from p4perf.results import files

RUNS = "runs"


class RecordFolder:
    """Such a folder; every write is atomic and durable."""

    FILE: ClassVar[str]
    """Name of the record."""
    NOUN: ClassVar[str]
    """What the folder is, for messages."""
    VERSION: ClassVar[int]
    """The ``schema_version`` that is read."""
    KEYS: ClassVar[Mapping[str, type | tuple[type, ...]]]
    """What the record has at least, with the types of the values."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    @classmethod
    def is_one(cls, path: Path) -> bool:
        return (path / cls.FILE).is_file()

    @classmethod
    def fill(cls, folder: Path, content: Mapping[str, Any]) -> None:
        (folder / RUNS).mkdir()
        files.write_text_atomically(folder / cls.FILE, files.json_text(content))

    @property
    def path(self) -> Path:
        return self._path

    @property
    def file(self) -> Path:
        return self._path / self.FILE

    @property
    def runs(self) -> Path:
        return self._path / RUNS

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that works on this folder."""
        with files.exclusive(self._path / files.LOCK, f"the {self.NOUN} {self._path}"):
            files.take_over(self._path)
            yield

    def run(self, relpath: str) -> Path:
        """The place of a run that the record names.

        Raises:
            DataError: it lies outside of the folder.
        """
        path = self._path / relpath
        if not relpath or "\0" in relpath or not files.real(path).is_relative_to(files.real(self._path)):
            what = f"names a run that leads out of the {self.NOUN}: {relpath!r:.200}"
            raise DataError(what, location=Location(str(self.file)))
        return path

    def read_record(self) -> dict[str, Any]:
        """The record as it is on disk.

        Raises:
            DataError: it is missing or damaged, or of another version; with the key.
        """
        content = files.parse_object(files.read_text(self.file), self.file)
        where = Location(str(self.file))
        if (version := content.get("schema_version")) != self.VERSION:
            message = f"is no {self.NOUN} that this p4perf can read: its version is {version!r}, not {self.VERSION}"
            raise DataError(message, location=where, key="schema_version")
        for key, kind in self.KEYS.items():
            if key not in content or not isinstance(content[key], kind):
                raise DataError("is missing or not what it should be", location=where, key=key)
        return content

    def write_record(self, content: Mapping[str, Any]) -> None:
        files.write_text_atomically(self.file, files.json_text(content))


SCHEMA_VERSION = 1
"""Version of ``campaign.json``."""

_NUMBER, _NUMBER_OR_NONE = (int, float), (int, float, type(None))
_KEYS: dict[str, type | tuple[type, ...]] = {
    "created": str,
    "experiments": list,
    "sources": list,
    "targets": list,
    "testbed": str,
    "budget_s": _NUMBER_OR_NONE,
    "overrides": list,
    "points": (int, type(None)),
    "spent_s": _NUMBER,
    "left_s": _NUMBER_OR_NONE,
    "cells": list,
}


def campaign_of(run: Path) -> Path | None:
    """The folder of the campaign that a run is part of; None if it is of none."""
    folder = run.parent.parent
    return folder if run.parent.name == RUNS and CampaignDirectory.is_one(folder) else None


class CampaignDirectory(RecordFolder):
    """One campaign on disk. Make it with :meth:`create` or :meth:`open`; every write is atomic and durable."""

    FILE, NOUN, VERSION, KEYS = "campaign.json", "campaign", SCHEMA_VERSION, _KEYS

    @classmethod
    def create(cls, parent: Path, name: str, request: Mapping[str, Any], now: datetime) -> CampaignDirectory:
        """Make a new campaign folder ``<name>--<YYYYMMDDTHHMMSS>`` below ``parent``.

        Args:
            request: what was asked for: ``experiments`` (their names), ``sources`` (names of the catalogue or paths
                from which they are loaded), ``targets``, ``testbed``, ``budget_s`` (None without one), ``overrides``
                (pairs of key and value) and ``points`` (None for all).
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "created": now.astimezone(UTC).isoformat(timespec="seconds"),
            **request,
            "spent_s": 0.0,
            "left_s": request["budget_s"],
            "cells": [],
        }
        wanted = parent / files.dated_name((name,), now)
        return cls(files.new_folder(wanted, lambda folder: cls.fill(folder, content)))

    @classmethod
    def open(cls, path: Path) -> CampaignDirectory:
        """An existing campaign.

        Raises:
            DataError: it is none, or its ``campaign.json`` is damaged.
        """
        campaign = cls(path)
        campaign.content()
        return campaign

    def content(self) -> dict[str, Any]:
        content = self.read_record()
        pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in content["overrides"])
        if not pairs or len(content["sources"]) != len(content["experiments"]):
            raise DataError("is damaged: its lists do not fit together", location=Location(str(self.file)))
        return content

    def update(self, changes: Mapping[str, Any]) -> None:
        self.write_record(self.content() | dict(changes))

    def write_text(self, name: str, text: str) -> Path:
        path = self._path / name
        files.write_text_atomically(path, text)
        return path
