"""Folders of results that appear all at once, under names that are free."""

from __future__ import annotations

import errno
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from p4perf.errors import UsageError
from p4perf.results import files

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


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
    """Put results into a folder that the user named.

    Args:
        folder: one that is not there yet appears all at once; in one that is there, files of the same names are
            replaced.

    Raises:
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
