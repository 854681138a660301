"""Costs of operators: measured with repetitions, or laws that were published or stand in a file of the user.

The cost of an operator is a difference of two rates (Ren 2025, equation 3)::

    C_op = F (1 / R_op - 1 / R_base)

with the clock rate F in cycles/s, and R_base and R_op in packets/s of the baseline without and with the operator.
In core cycles, F is the rate of the core at that moment; in TSC cycles, that of the time stamp counter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, field_validator, model_validator

from p4perf.errors import DataError, UsageError
from p4perf.models.operator import PowerLaw
from p4perf.models.templates import FloatArray
from p4perf.results.table import interval_of
from p4perf.specs.loader import yaml_files
from p4perf.specs.messages import nearest, validation_error
from p4perf.specs.types import Strict, parse_strictly, read_strictly

if TYPE_CHECKING:
    import pandas as pd


COST = "cost_cycles_per_packet"
RESOLUTION = "cost_resolution_cycles_per_packet"
COST_TSC = "cost_tsc_cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"

OPERATOR, PACKET_SIZE = "operator", "packet_size"
"""The swept variables."""

TOGETHER = "+"
"""Joins the names of two operators that run together."""


def cost_cycles(clock_hz: float, operator_pps: float, baseline_pps: float) -> float:
    """Equation 3: cycles for a packet, from rates in packets a second and a clock in Hz."""
    return clock_hz * (1 / operator_pps - 1 / baseline_pps)


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """One operator on packets of one size. Costs are in core cycles per packet unless their name has another unit.

    ``low`` and ``high`` are the ends of a 95 % interval over starts. A cost below ``resolution_cycles`` cannot be
    distinguished from zero.
    """

    operator: str
    packet_size_bytes: int
    cost_cycles: float
    low: float
    high: float
    resolution_cycles: float
    cost_tsc_cycles: float
    baseline_cycles: float
    starts: int

    @property
    def resolved(self) -> bool:
        """Whether the cost can be distinguished from zero."""
        return self.cost_cycles >= self.resolution_cycles

    def text(self) -> str:
        """The cost, or below what it is, in words."""
        return f"{self.cost_cycles:.1f}" if self.resolved else f"below {self.resolution_cycles:.1f} cycles"


def operator_costs(measurements: pd.DataFrame) -> tuple[OperatorCost, ...]:
    """Costs of all operators of a run that have accepted starts, by operator in the order of the run, then by size.

    The resolution is the largest of two: the least difference that the windows of one start tell from none (median over
    starts), and half the range of the costs of the starts.

    Raises:
        DataError: the run sweeps no operators, or has no accepted cost.
    """
    for column in (OPERATOR, PACKET_SIZE):
        if column not in measurements.columns:
            raise DataError(f"the run does not sweep {column}: it has no costs of operators")
    accepted = measurements[measurements["accepted"].astype(bool)]
    if not (accepted["metric"] == COST).any():
        raise DataError(f"the run has no accepted {COST}")
    found = []
    for (name, size), rows in accepted.groupby([OPERATOR, PACKET_SIZE], sort=False):
        by_metric = dict(iter(rows.groupby("metric")))
        values = {m: of["value"].to_numpy(dtype=np.float64) for m, of in by_metric.items()}
        if COST not in values:
            continue
        costs = values[COST]
        median, low, high = interval_of(by_metric[COST])
        within = float(np.median(values[RESOLUTION])) if RESOLUTION in values else 0.0
        found.append(
            OperatorCost(
                operator=str(name),
                packet_size_bytes=int(str(size)),
                cost_cycles=median,
                low=low,
                high=high,
                resolution_cycles=max(within, float(np.ptp(costs)) / 2),
                cost_tsc_cycles=float(np.median(values[COST_TSC])) if COST_TSC in values else math.nan,
                baseline_cycles=float(np.median(values[BASELINE])) if BASELINE in values else math.nan,
                starts=len(costs),
            )
        )
    order = {name: n for n, name in enumerate(dict.fromkeys(measurements.sort_values("point_index")[OPERATOR]))}
    return tuple(sorted(found, key=lambda c: (order[c.operator], c.packet_size_bytes)))


@dataclass(frozen=True)
class OperatorCosts:
    """Measured costs of one operator on one platform, each the difference to a baseline measured beside it.

    Args:
        packet_size_bytes: ascending sizes, without duplicates; n of them.
        cycles: for each size the accepted repetitions, one at least, in cycles per packet. A cost can be negative.
        resolution_cycles: for each size the cost below which it cannot be distinguished from zero.
        same_as: what the operator is called on other platforms, if not by its own name.
    """

    operator: str
    platform: str
    packet_size_bytes: tuple[int, ...]
    cycles: tuple[tuple[float, ...], ...]
    resolution_cycles: tuple[float, ...]
    same_as: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = f"the costs of {self.operator} on {self.platform}"
        if not len(self.packet_size_bytes) == len(self.cycles) == len(self.resolution_cycles) >= 1:
            raise DataError(f"{what} need sizes, repetitions and resolutions of the same number, one at least")
        if any(b <= a for a, b in zip((0, *self.packet_size_bytes), self.packet_size_bytes, strict=False)):
            raise DataError(f"{what} have sizes that are not positive and ascending")
        if any(not values for values in self.cycles):
            raise DataError(f"{what} have a size without repetitions")
        every = [v for values in self.cycles for v in values]
        if not all(math.isfinite(v) for v in (*every, *self.resolution_cycles)) or min(self.resolution_cycles) < 0:
            raise DataError(f"{what} are not finite, or a resolution is negative")

    @property
    def sizes(self) -> FloatArray:
        return np.asarray(self.packet_size_bytes, dtype=np.float64)

    def medians(self) -> FloatArray:
        """Median cost at each size in cycles, shape (n,)."""
        return np.array([np.median(values) for values in self.cycles])

    def seen(self) -> tuple[bool, ...]:
        """For each size, whether the median differs from zero: positive, and not below the resolution."""
        return tuple(bool(m >= r and m > 0) for m, r in zip(self.medians(), self.resolution_cycles, strict=True))

    def at(self, size_bytes: int) -> tuple[float, ...] | None:
        known = dict(zip(self.packet_size_bytes, self.cycles, strict=True))
        return known.get(size_bytes)


@dataclass(frozen=True)
class StatedLaw:
    """A published law of an operator; ``same_as`` are its names on other platforms, if not its own."""

    operator: str
    platform: str
    law: PowerLaw
    r_squared: float | None
    sizes_bytes: tuple[int, ...]
    same_as: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """A machine with its operators; ``source`` is a run directory or a publication, ``pairs`` are named ``a+b``."""

    name: str
    title: str
    source: str
    published: bool
    operators: tuple[OperatorCosts | StatedLaw, ...]
    pairs: tuple[OperatorCosts, ...] = ()

    def __post_init__(self) -> None:
        names = [row.operator for row in (*self.operators, *self.pairs)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{self.name} has a duplicate operator {twice[0]}")
        if others := [row for row in (*self.operators, *self.pairs) if row.platform != self.name]:
            raise DataError(f"{others[0].operator} belongs to {others[0].platform}, not to {self.name}")

    def named(self, wanted: str) -> tuple[OperatorCosts | StatedLaw, ...]:
        """Operators that are called so, here or elsewhere."""
        return tuple(o for o in self.operators if wanted == o.operator or wanted in o.same_as)


def same_operator(a: OperatorCosts | StatedLaw, b: OperatorCosts | StatedLaw) -> bool:
    """Whether rows of two platforms are about the same operator: their names elsewhere have one in common."""
    return not {*(a.same_as or (a.operator,))}.isdisjoint(b.same_as or (b.operator,))


def pair_of(name: str, operators: Mapping[str, OperatorCosts] | Sequence[str]) -> tuple[str, str] | None:
    """The two operators that a name joins; None if it joins no two of those that are there."""
    first, sign, second = name.partition(TOGETHER)
    return (first, second) if sign and first in operators and second in operators else None


_NAME = r"^[^\x00-\x1f\x7f]{1,60}$"
_SIZE = r"^[1-9][0-9]{0,4}$"
_SHIPPED = files("p4perf.evaluation.papers.ren2025").joinpath("platforms")

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
        0.0, description="Costs below this are reported as below it; with cycles."
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
            hint = "write one of both forms"
            raise validation_error("an operator has base_cycles and exponent, or cycles", hint=hint)
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


def load_platforms(name: str) -> tuple[Platform, ...]:
    """The platforms of a file: one that ships with p4perf, such as ``ren2025``, or one by its path.

    Raises:
        UsageError: there is neither; names the nearest.
        DataError: the file cannot be read or is wrong; with the place.
    """
    shipped = dict(yaml_files(_SHIPPED))
    if name in shipped:
        content, _ = parse_strictly(shipped[name].read_bytes(), str(shipped[name]), PlatformFile)
    elif not Path(name).exists() and not name.endswith((".yaml", ".yml")) and "/" not in name:
        hint = nearest(name, shipped, "p4perf has")
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
