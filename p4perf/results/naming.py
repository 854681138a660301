"""What a run directory is called, and how it gets a name that is free."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


def folder_name(experiment: str, target: str, testbed: str, now: datetime) -> str:
    """``<experiment>--<target>--<testbed>--<YYYYMMDDTHHMMSS>``; what is unfit for a folder name becomes ``-``."""
    return dated_name((experiment, target, testbed), now)


def dated_name(words: Iterable[str], now: datetime) -> str:
    """``<word>--<word>--<YYYYMMDDTHHMMSS>``; what is unfit for a folder name becomes ``-``."""
    return "--".join([*map(file_word, words), now.strftime("%Y%m%dT%H%M%S")])


def file_word(word: str) -> str:
    """A word as part of a file name: what is unfit becomes ``-``."""
    return _UNFIT.sub("-", word).lstrip(".") or "-"


def move_to_free_name(folder: Path, wanted: Path) -> Path:
    """Rename a folder that is not empty to the first free one of ``wanted``, ``wanted-2``, ``wanted-3`` and so on.

    Raises:
        OSError: it cannot be renamed at all.
    """
    names = itertools.chain([wanted], (wanted.with_name(f"{wanted.name}-{count}") for count in itertools.count(2)))
    while True:
        path = next(names)
        if os.path.lexists(path):
            continue
        try:
            return folder.rename(path)
        except OSError as error:
            somebody_was_faster = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
            if not somebody_was_faster:
                raise
