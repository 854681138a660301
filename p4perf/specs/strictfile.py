"""Files that describe machines: YAML, read as strictly as specs are, because they may come from other people."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from p4perf.errors import DataError, Location, SpecError
from p4perf.specs.messages import explain
from p4perf.specs.source import MAX_BYTES, SourceNode, parse_bytes

Model = TypeVar("Model", bound=BaseModel)


def read_strictly(file: Path, model: type[Model], what: str) -> tuple[Model, SourceNode]:
    """The content of a file, and its tree with the places of all values.

    Args:
        what: its kind, for messages: ``node file``.

    Raises:
        DataError: it cannot be read or is wrong; with the place.
    """
    return parse_strictly(_read(file, what), str(file), model)


def parse_strictly(data: bytes, file: str, model: type[Model]) -> tuple[Model, SourceNode]:
    """The same for the bytes of a file.

    Raises:
        DataError: it is wrong; with the place.
    """
    try:
        root = parse_bytes(data, file)
    except SpecError as error:
        raise _damaged(error) from error
    try:
        return model.model_validate(root.plain()), root
    except ValidationError as error:
        raise _damaged(explain(error, root)) from error


def _read(file: Path, what: str) -> bytes:
    where = Location(str(file))
    try:
        if not file.is_file():
            raise DataError(f"there is no such {what}", location=where)
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", location=where) from error


def _damaged(error: SpecError) -> DataError:
    message = error.message.replace("the spec", "the file").replace("for a spec", "for it")
    return DataError(message, location=error.location, key=error.key, hint=error.hint)
