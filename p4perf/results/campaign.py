"""A campaign on disk: many experiments on several targets, measured one after another within a budget.

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
from typing import Any

from p4perf.errors import DataError, Location
from p4perf.results import files
from p4perf.results.folders import new_folder
from p4perf.results.locking import exclusive
from p4perf.results.naming import dated_name

SCHEMA_VERSION = 1
"""Version of ``campaign.json``."""

_FILE = "campaign.json"
_RUNS = "runs"
_LOCK = ".lock"
_KEYS: dict[str, type] = {"experiments": list, "targets": list, "testbed": str, "budget_s": float, "cells": list}


class CampaignDirectory:
    """One campaign on disk. Make it with :meth:`create` or :meth:`open`; every write is atomic and durable."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    @classmethod
    def create(cls, parent: Path, name: str, request: Mapping[str, Any], now: datetime) -> CampaignDirectory:
        """Make a new campaign folder ``<name>--<YYYYMMDDTHHMMSS>`` below ``parent``.

        Args:
            parent: the folder of all runs.
            name: what is measured, such as ``catalogue``.
            request: what was asked for: ``experiments``, ``targets``, ``testbed``, ``budget_s``, and whatever else it
                takes to go on with the campaign.
            now: the time for the name and for ``created``.

        Raises:
            StorageError: it cannot be written; nothing is left behind.
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "created": now.astimezone(UTC).isoformat(timespec="seconds"),
            **request,
            "spent_s": 0.0,
            "cells": [],
        }
        text = files.strict_json(content, indent=2) + "\n"

        def fill(folder: Path) -> None:
            files.write_text_atomically(folder / _FILE, text)
            (folder / _RUNS).mkdir()

        return cls(new_folder(parent / dated_name((name,), now), fill))

    @classmethod
    def open(cls, path: Path) -> CampaignDirectory:
        """An existing campaign.

        Raises:
            DataError: it is none, or its ``campaign.json`` is damaged.
        """
        campaign = cls(path)
        campaign.content()
        return campaign

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a folder is a campaign."""
        return (path / _FILE).is_file()

    @property
    def path(self) -> Path:
        """The folder, as an absolute path."""
        return self._path

    @property
    def runs(self) -> Path:
        """The folder of its run directories."""
        return self._path / _RUNS

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that works on this campaign.

        Raises:
            StorageError: another process does.
        """
        with exclusive(self._path / _LOCK, f"the campaign {self._path}"):
            yield

    def content(self) -> dict[str, Any]:
        """``campaign.json`` as it is on disk.

        Raises:
            DataError: it is missing or damaged.
        """
        path = self._path / _FILE
        content = files.parse_object(files.read_text(path), path)
        for key, kind in _KEYS.items():
            if not isinstance(content.get(key), kind | (int if kind is float else kind)):
                raise DataError(f"is missing or not a {kind.__name__}", location=Location(str(path)), key=key)
        if content.get("schema_version") != SCHEMA_VERSION:
            raise DataError(
                f"is {content.get('schema_version')!r}, but this p4perf knows version {SCHEMA_VERSION}",
                location=Location(str(path)),
                key="schema_version",
            )
        return content

    def update(self, changes: Mapping[str, Any]) -> None:
        """Set some keys of ``campaign.json`` at once; the others stay.

        Raises:
            StorageError: it cannot be written; the old one is unharmed.
        """
        text = files.strict_json(self.content() | dict(changes), indent=2) + "\n"
        files.write_text_atomically(self._path / _FILE, text)

    def write_text(self, name: str, text: str) -> Path:
        """Write a file of the campaign. Returns its place.

        Raises:
            StorageError: it cannot be written.
        """
        path = self._path / name
        with files.storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text_atomically(path, text)
        return path
