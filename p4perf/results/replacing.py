"""Folders that are made again and again: the new one takes the place of the old one at once."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from p4perf.errors import UsageError
from p4perf.results import files


def replace_folder(wanted: Path, content: Mapping[str, bytes], marker: str) -> Path:
    """Make a folder of these files, or replace one that was made the same way.

    The new folder is complete before the old one goes; between the two renames nothing of that name is there.

    Args:
        wanted: where. Missing folders above are made.
        content: bytes by path in the folder, with slashes.
        marker: the file by which a folder of this kind is known; it is part of the content.

    Returns:
        Where it is, as an absolute path.

    Raises:
        StorageError: it cannot be written; the old folder stays.
        UsageError: what is there is not of this kind.
    """
    wanted = wanted.absolute()
    _check(wanted, marker)
    with files.storing(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        temporary, old = files.temporary_sibling(wanted), files.temporary_sibling(wanted)
        temporary.mkdir()
        try:
            for name, data in content.items():
                path = temporary / PurePosixPath(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            _check(wanted, marker)
            if wanted.exists():
                wanted.rename(old)
            try:
                temporary.rename(wanted)
            except OSError:
                if old.exists():
                    old.rename(wanted)
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
        files.sync_directory(wanted.parent)
    return wanted


def _check(folder: Path, marker: str) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is there and no folder", hint="name a new folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise UsageError(
            f"{folder} holds files that p4perf did not make, and is not replaced", hint="name a new folder"
        )
