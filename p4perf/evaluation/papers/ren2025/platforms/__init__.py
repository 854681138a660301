"""Platforms as data: files of operators on machines that p4perf did not measure itself.

``ren2025`` ships with p4perf and is marked as published; users write files of their own in the same form, which is
strict: an unknown key or a wrong value is an error with file, line and key.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from p4perf.errors import UsageError
from p4perf.evaluation.papers.ren2025.costs import TOGETHER, OperatorCosts, Platform, StatedLaw
from p4perf.models.operator import PowerLaw
from p4perf.specs.messages import nearest, validation_error
from p4perf.specs.source import MAX_BYTES
from p4perf.specs.strictfile import parse_strictly, read_strictly
from p4perf.specs.types import Strict

_NAME = r"^[^\x00-\x1f\x7f]{1,60}$"
_SIZE = r"^[1-9][0-9]{0,4}$"
_SUFFIX = ".yaml"

Name = Annotated[str, Field(pattern=_NAME)]
Cycles = Annotated[float, Field(ge=-1e12, le=1e12)]
Size = Annotated[int, Field(ge=1, le=99999, strict=True)]


class OperatorRow(Strict):
    """One operator: either base cost and exponent, or cycles by size."""

    base_cycles: Annotated[float, Field(gt=0, le=1e12)] | None = Field(None, description="C(64), cycles per packet.")
    exponent: Annotated[float, Field(ge=-10, le=10)] | None = Field(None, description="k of Eq. 4.")
    r_squared: Annotated[float, Field(le=1)] | None = Field(None, description="R2 of that fit, as published.")
    cycles: dict[Annotated[str, Field(pattern=_SIZE)], tuple[Cycles, ...]] | None = Field(
        None, min_length=1, max_length=1000, description="Repetitions by packet size, in cycles per packet."
    )
    resolution_cycles: Annotated[float, Field(ge=0, le=1e12)] = Field(
        0.0, description="Costs below this are told as below it; with cycles."
    )
    same_as: tuple[Name, ...] = Field((), max_length=100, description="Names of the operator on other platforms.")

    @field_validator("cycles", mode="before")
    @classmethod
    def _lists(cls, cycles: object) -> object:
        """A single number stands for one repetition."""
        if isinstance(cycles, dict):
            return {size: [value] if isinstance(value, int | float) else value for size, value in cycles.items()}
        return cycles

    @model_validator(mode="after")
    def _one_form(self) -> OperatorRow:
        stated = self.base_cycles is not None and self.exponent is not None
        if stated == (self.cycles is not None) or (self.base_cycles is None) != (self.exponent is None):
            raise validation_error(
                "an operator has base_cycles and exponent, or cycles", hint="write one of both forms"
            )
        if self.cycles is not None and self.r_squared is not None:
            raise validation_error("r_squared belongs to base_cycles and exponent", path=("r_squared",), key=True)
        if stated and "resolution_cycles" in self.model_fields_set:
            raise validation_error("resolution_cycles belongs to cycles", path=("resolution_cycles",), key=True)
        for size, values in (self.cycles or {}).items():
            if not values:
                raise validation_error("needs one value at least", path=("cycles", size))
        return self


class PlatformRow(Strict):
    title: str = Field("", max_length=200, description="One line: processor and clock.")
    operators: dict[Name, OperatorRow] = Field(min_length=1, max_length=1000, description="Its operators, by name.")

    @field_validator("operators")
    @classmethod
    def _single(cls, operators: dict[str, OperatorRow]) -> dict[str, OperatorRow]:
        for name in operators:
            if TOGETHER in name:
                raise validation_error(f"a name cannot have a {TOGETHER} in it", path=(name,), key=True)
        return operators


class PlatformFile(Strict):
    source: str = Field(min_length=1, max_length=1000, description="Where the numbers come from.")
    published: bool = Field(False, description="Whether they are taken from a publication.")
    packet_size_bytes: tuple[Size, ...] = Field(
        (64, 128, 256), min_length=1, max_length=1000, description="Sizes that the laws were fitted to."
    )
    platforms: dict[Name, PlatformRow] = Field(min_length=1, max_length=100, description="The machines, by name.")


def shipped_platforms() -> tuple[str, ...]:
    found = files(__name__).iterdir()
    return tuple(sorted(item.name.removesuffix(_SUFFIX) for item in found if item.name.endswith(_SUFFIX)))


def load_platforms(name: str) -> tuple[Platform, ...]:
    """The platforms of a file.

    Args:
        name: one that ships with p4perf, such as ``ren2025``, or the path of a file.

    Raises:
        UsageError: there is neither; names the nearest.
        DataError: the file cannot be read or is wrong; with the place.
    """
    if name in shipped_platforms():
        item = files(__name__).joinpath(name + _SUFFIX)
        content, _ = parse_strictly(item.read_bytes()[: MAX_BYTES + 1], str(item), PlatformFile)
    elif not Path(name).exists() and not name.endswith((_SUFFIX, ".yml")) and "/" not in name:
        hint = nearest(name, shipped_platforms(), "p4perf has")
        raise UsageError(f"there is no published platform and no file {name!r}", hint=hint)
    else:
        content, _ = read_strictly(Path(name), PlatformFile, "platform file")
    return tuple(_platform(key, row, content) for key, row in content.platforms.items())


def _platform(name: str, row: PlatformRow, file: PlatformFile) -> Platform:
    operators = tuple(_operator(key, name, each, file) for key, each in row.operators.items())
    return Platform(name, row.title or name, file.source, file.published, operators)


def _operator(name: str, platform: str, row: OperatorRow, file: PlatformFile) -> OperatorCosts | StatedLaw:
    if row.base_cycles is not None and row.exponent is not None:
        sizes = tuple(sorted(set(file.packet_size_bytes)))
        return StatedLaw(name, platform, PowerLaw(row.base_cycles, row.exponent), row.r_squared, sizes, row.same_as)
    cycles = {int(size): values for size, values in (row.cycles or {}).items()}
    ordered = tuple(sorted(cycles))
    resolution = (row.resolution_cycles,) * len(ordered)
    return OperatorCosts(name, platform, ordered, tuple(cycles[s] for s in ordered), resolution, row.same_as)
