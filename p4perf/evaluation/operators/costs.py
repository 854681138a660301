"""The costs that an analysis of operators starts from: measured ones with repetitions, or published laws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p4perf.errors import DataError
from p4perf.evaluation.operator_costs import TOGETHER
from p4perf.models.bases import FloatArray
from p4perf.models.operator import PowerLaw


@dataclass(frozen=True)
class OperatorCosts:
    """Measured costs of one operator on one platform, each the difference to a baseline measured beside it.

    Args:
        operator: name of the operator.
        platform: name of the platform.
        packet_size_bytes: ascending sizes, without duplicates; n of them.
        cycles: for each size the accepted repetitions, one at least, in cycles per packet. A cost can be negative.
        resolution_cycles: for each size the cost below which nothing can be told from zero.
        same_as: what the operator is called on other platforms, if not by its own name.

    Raises:
        DataError: lengths differ, sizes are not ascending, or a value is not finite.
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
        """Sizes in bytes, shape (n,)."""
        return np.asarray(self.packet_size_bytes, dtype=np.float64)

    def medians(self) -> FloatArray:
        """Median cost at each size in cycles, shape (n,)."""
        return np.array([np.median(values) for values in self.cycles])

    def seen(self) -> tuple[bool, ...]:
        """For each size, whether the median is told from zero: positive, and not below the resolution."""
        return tuple(bool(m >= r and m > 0) for m, r in zip(self.medians(), self.resolution_cycles, strict=True))

    def at(self, size_bytes: int) -> tuple[float, ...] | None:
        """The repetitions at a size; None if it was not measured."""
        known = dict(zip(self.packet_size_bytes, self.cycles, strict=True))
        return known.get(size_bytes)


@dataclass(frozen=True)
class StatedLaw:
    """An operator of which only the law is known, such as a row of a published table.

    Args:
        operator: name of the operator.
        platform: name of the platform.
        law: base cost and exponent.
        r_squared: as published; None if it is not.
        sizes_bytes: sizes that it was fitted to.
        same_as: what the operator is called on other platforms, if not by its own name.
    """

    operator: str
    platform: str
    law: PowerLaw
    r_squared: float | None
    sizes_bytes: tuple[int, ...]
    same_as: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """A machine with its operators.

    Args:
        name: short name, unique within an analysis.
        title: one line for people: processor and clock.
        source: where the numbers come from: a run directory, or a publication.
        published: whether they are taken from a publication.
        operators: single operators, in the order in which they are told.
        pairs: two operators together, named ``a+b``.

    Raises:
        DataError: an operator is there twice, or belongs to another platform.
    """

    name: str
    title: str
    source: str
    published: bool
    operators: tuple[OperatorCosts | StatedLaw, ...]
    pairs: tuple[OperatorCosts, ...] = ()

    def __post_init__(self) -> None:
        names = [row.operator for row in (*self.operators, *self.pairs)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{self.name} has the operator {twice[0]} twice")
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
