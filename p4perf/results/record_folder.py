"""A folder with a record in JSON, run directories below it, and a lock, as campaigns and reproductions are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from p4perf.errors import DataError, Location
from p4perf.results import files
from p4perf.results.locking import exclusive

RUNS = "runs"
_LOCK = ".lock"


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
        """Whether a folder is one of these."""
        return (path / cls.FILE).is_file()

    @classmethod
    def fill(cls, folder: Path, content: Mapping[str, Any]) -> None:
        """Put the first record and the folder of runs into a new folder.

        Raises:
            StorageError: they cannot be written.
        """
        (folder / RUNS).mkdir()
        files.write_text_atomically(folder / cls.FILE, _text(content))

    @property
    def path(self) -> Path:
        """The folder, as an absolute path."""
        return self._path

    @property
    def file(self) -> Path:
        """The record."""
        return self._path / self.FILE

    @property
    def runs(self) -> Path:
        """The folder of its run directories."""
        return self._path / RUNS

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that works on this folder.

        Raises:
            StorageError: another process does.
        """
        with exclusive(self._path / _LOCK, f"the {self.NOUN} {self._path}"):
            yield

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
        """Replace the record.

        Raises:
            StorageError: it cannot be written; the old one is unharmed.
        """
        files.write_text_atomically(self.file, _text(content))


def _text(content: Mapping[str, Any]) -> str:
    return files.strict_json(dict(content), indent=2) + "\n"
