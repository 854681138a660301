"""Files of machines and functions: those of the catalogue by name, others by path; read as strictly as specs are."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from p4perf.errors import DataError, Location, SpecError, UsageError
from p4perf.evaluation.eo.schema import FunctionFile, HardwareFile
from p4perf.models.eo import Hardware, NetworkFunction
from p4perf.specs.messages import explain, nearest
from p4perf.specs.source import MAX_BYTES, Node, parse_bytes

SUFFIXES = (".yaml", ".yml")

Model = TypeVar("Model", bound=BaseModel)


def hardware_names() -> tuple[str, ...]:
    """Machines of the catalogue."""
    return tuple(sorted(name for name, _ in _catalogue("hardware")))


def function_names() -> tuple[str, ...]:
    """Functions of the catalogue."""
    return tuple(sorted(name for name, _ in _catalogue("functions")))


def load_hardware(name: str, profile: str | None = None) -> Hardware:
    """A machine by its name in the catalogue, or by the path of its file, as a profile reads it.

    Raises:
        UsageError: there is no such machine or profile.
        DataError: the file is wrong; with its place.
    """
    for found, file in _catalogue("hardware"):
        if found == name:
            return parse_hardware(file.read_bytes(), str(file)).with_profile(profile)
    if not name.endswith(SUFFIXES):
        raise UsageError(
            f"there is no hardware {name!r}",
            hint=f"{nearest(name, hardware_names(), 'the catalogue has')} or name a .yaml file (p4perf calibrate)",
        )
    return read_hardware(Path(name)).with_profile(profile)


def load_function(name: str) -> NetworkFunction:
    """A function by its name in the catalogue, or by the path of its file.

    Raises:
        UsageError: there is no such function.
        DataError: the file is wrong; with its place.
    """
    for found, file in _catalogue("functions"):
        if found == name:
            return parse_function_file(file.read_bytes(), str(file))
    if not name.endswith(SUFFIXES):
        raise UsageError(f"there is no function {name!r}", hint=nearest(name, function_names(), "the catalogue has"))
    return read_function(Path(name))


def read_hardware(path: Path) -> Hardware:
    """The machine of a file.

    Raises:
        DataError: it cannot be read or is wrong; with file, line and key.
    """
    return parse_hardware(_bytes(path, "description of hardware"), str(path))


def read_function(path: Path) -> NetworkFunction:
    """The function of a file.

    Raises:
        DataError: it cannot be read or is wrong; with file, line and key.
    """
    return parse_function_file(_bytes(path, "function"), str(path))


def parse_hardware(data: bytes, file: str) -> Hardware:
    """The machine that a text describes; ``file`` is its name, for messages."""
    return _parsed(data, file, HardwareFile).make()


def parse_function_file(data: bytes, file: str) -> NetworkFunction:
    """The function that a text describes; ``file`` is its name, for messages."""
    return _parsed(data, file, FunctionFile).make()


def is_function_file(path: Path) -> bool:
    """Whether a file describes a function: it has ``operations``, which a spec has not."""
    try:
        return parse_bytes(_bytes(path, "file"), str(path)).child("operations") is not None
    except (SpecError, DataError):
        return False


def _parsed(data: bytes, file: str, model: type[Model]) -> Model:
    root = Node(None, Location(file))
    try:
        root = parse_bytes(data, file)
        return model.model_validate(root.plain())
    except ValidationError as error:
        raise _damaged(explain(error, root)) from error
    except SpecError as error:
        raise _damaged(error) from error


def _damaged(error: SpecError) -> DataError:
    message = error.message.replace("the spec", "the file").replace("for a spec", "for it")
    return DataError(message, location=error.location, key=error.key, hint=error.hint)


def _bytes(path: Path, what: str) -> bytes:
    where = Location(str(path))
    try:
        if not path.is_file():
            raise DataError(f"there is no such {what}", location=where)
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}", location=where) from error


def _catalogue(kind: str) -> Iterator[tuple[str, Traversable]]:
    yield from _walk(files("p4perf.evaluation.eo").joinpath("catalogue", kind), "")


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(SUFFIXES[0]):
            yield prefix + item.name.removesuffix(SUFFIXES[0]), item
