"""Reversible settings of this machine, with a record of what they were."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from p4perf.errors import DataError, Location, StorageError, TestbedError
from p4perf.results.files import json_text, read_text, write_text_atomically
from p4perf.testbeds.local import state_folder

HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
SETTINGS = (str(HUGEPAGES), str(AUTOGROUP))
"""All that is ever changed, and set back."""
HUGEPAGES_WANTED = 2048
"""4 GiB in pages of 2 MiB: an exact table of twenty million entries, and the packet buffers."""


_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class SettingChange:
    path: str
    before: str
    after: str


def undo_record() -> Path:
    """The record of changes, which ``doctor --undo`` reads."""
    return state_folder() / "undo.json"


def wanted_settings(memory_available_bytes: int | None) -> dict[Path, str]:
    """The settings that ``doctor --fix`` makes: hugepages (at most a quarter of the memory), autogroup off."""
    pages = HUGEPAGES_WANTED
    if memory_available_bytes is not None:
        pages = min(pages, memory_available_bytes // 4 // (2 << 20))
    return {HUGEPAGES: str(pages), AUTOGROUP: "0"}


def apply(settings: Mapping[Path, str], record: Path) -> list[SettingChange]:
    """Make the settings that differ, after noting in the record what they were. A setting that is absent is left out.

    Hugepages are never reduced. What an earlier call noted stays noted, so that undoing leads back to the beginning.

    Raises:
        TestbedError: a setting cannot be changed (no root).
        StorageError: the record cannot be written; nothing was changed then.
    """
    changes = []
    for path, value in settings.items():
        with contextlib.suppress(FileNotFoundError):
            before = path.read_text(encoding="ascii").strip()
            if before != value and not (path.name == HUGEPAGES.name and int(before) >= int(value)):
                changes.append(SettingChange(str(path), before, value))
    if not changes:
        return []
    noted = read_record(record)
    known = {c.path for c in noted}
    kept = [asdict(change) for change in (*noted, *(c for c in changes if c.path not in known))]
    try:
        write_text_atomically(record, json_text({"changes": kept}))
    except StorageError as error:
        raise StorageError(error.message, hint="nothing was changed") from error
    for change in changes:
        _write_setting(Path(change.path), change.after)
    return changes


def undo(record: Path) -> list[SettingChange]:
    """Set everything back to what the record says, and remove the record."""
    changes = [SettingChange(c.path, c.after, c.before) for c in read_record(record)]
    for change in changes:
        _write_setting(Path(change.path), change.after)
    record.unlink(missing_ok=True)
    return changes


def read_record(record: Path) -> list[SettingChange]:
    """The changes noted in the record; none if there is no record.

    Raises:
        DataError: it is not a record of this user, or names something else than a number for one of :data:`SETTINGS`.
    """
    where = Location(str(record))
    try:
        if record.lstat().st_uid != os.geteuid():
            raise DataError("belongs to another user", location=where, hint="run doctor as that user, or remove it")
        data = json.loads(read_text(record))
        changes = [SettingChange(str(c["path"]), str(c["before"]), str(c["after"])) for c in data["changes"]]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError("is not an undo record", location=where) from error
    for change in changes:
        if change.path not in SETTINGS or not _NUMBER.fullmatch(change.before):
            what = f"sets {change.path:.100} to {change.before:.100}, which p4perf never does"
            raise DataError(what, location=where, hint="remove it; nothing was changed")
    return changes


def _write_setting(path: Path, value: str) -> None:
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        raise TestbedError(f"cannot set {path} to {value}: {error.strerror}", hint="run as root") from error
