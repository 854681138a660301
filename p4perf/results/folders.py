"""Folders of results that appear all at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from p4perf.errors import UsageError
from p4perf.results import files
from p4perf.results.naming import move_to_free_name


def new_folder(wanted: Path, fill: Callable[[Path], object]) -> Path:
    """Make a folder with all that belongs into it, or nothing at all.

    Args:
        wanted: where; if that is taken, ``wanted-2``, ``wanted-3`` and so on. Missing folders above are made.
        fill: puts the files into the folder that it is given, which gets its name afterwards.

    Returns:
        Where it is.

    Raises:
        StorageError: it cannot be written; nothing is left behind.
    """
    wanted = wanted.absolute()
    with files.storing(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        temporary = files.temporary_sibling(wanted)
        temporary.mkdir()
        try:
            fill(temporary)
            files.sync_directory(temporary)
            path = move_to_free_name(temporary, wanted)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        files.sync_directory(wanted.parent)
    return path


def filled_folder(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Put results into a folder that somebody named.

    Args:
        folder: one that is not there yet appears all at once; in one that is there, files of the same names are
            replaced.
        fill: puts the files into the folder that it is given.

    Returns:
        Where it is, as an absolute path.

    Raises:
        StorageError: it cannot be written.
        UsageError: it is a file.
    """
    if folder.is_dir():
        path = folder.absolute()
        with files.storing(path):
            fill(path)
        return path
    if folder.exists():
        raise UsageError(f"{folder} is a file, not a folder")
    return new_folder(folder, fill)
