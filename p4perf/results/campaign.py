"""A campaign on disk: many experiments on several targets, measured one after another within a budget.

A campaign folder holds its runs and what became of each of them::

    runs/catalogue--20261121T101500/
      campaign.json        what was asked for, what it took, and the state of every cell
      runs/<run>/          one run directory for every experiment and target that could be measured
      report.html          and further files that are made from the runs
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location
from p4perf.results import files
from p4perf.results.folders import new_folder
from p4perf.results.naming import dated_name
from p4perf.results.record_folder import RecordFolder

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


class CampaignDirectory(RecordFolder):
    """One campaign on disk. Make it with :meth:`create` or :meth:`open`; every write is atomic and durable."""

    FILE, NOUN, VERSION, KEYS = "campaign.json", "campaign", SCHEMA_VERSION, _KEYS

    @classmethod
    def create(cls, parent: Path, name: str, request: Mapping[str, Any], now: datetime) -> CampaignDirectory:
        """Make a new campaign folder ``<name>--<YYYYMMDDTHHMMSS>`` below ``parent``.

        Args:
            parent: the folder of all runs.
            name: what is measured, such as ``catalogue``.
            request: what was asked for: ``experiments`` (their names), ``sources`` (names of the catalogue or paths
                from which they are loaded), ``targets``, ``testbed``, ``budget_s`` (None without one), ``overrides``
                (pairs of key and value) and ``points`` (None for all).
            now: the time for the name and for ``created``.

        Raises:
            StorageError: it cannot be written; nothing is left behind.
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "created": now.astimezone(UTC).isoformat(timespec="seconds"),
            **request,
            "spent_s": 0.0,
            "left_s": request["budget_s"],
            "cells": [],
        }
        return cls(new_folder(parent / dated_name((name,), now), lambda folder: cls.fill(folder, content)))

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
        """``campaign.json`` as it is on disk.

        Raises:
            DataError: it is missing or damaged.
        """
        content = self.read_record()
        pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in content["overrides"])
        if not pairs or len(content["sources"]) != len(content["experiments"]):
            raise DataError("is damaged: its lists do not fit together", location=Location(str(self.file)))
        return content

    def update(self, changes: Mapping[str, Any]) -> None:
        """Set some keys of ``campaign.json`` at once; the others stay.

        Raises:
            StorageError: it cannot be written; the old one is unharmed.
        """
        self.write_record(self.content() | dict(changes))

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
