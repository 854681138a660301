"""The values of a swept variable: a list, or a rule for values (``log``, ``range``, ``linear``).

A rule is never expanded to be counted: :class:`ValueGrid` knows how many values there are and each by its index, so
that a sweep of 10**12 points can be refused, or thinned to a few, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Discriminator, Field, StrictInt, Tag

from p4perf.errors import SpecError
from p4perf.specs.messages import quoted
from p4perf.specs.source import Scalar
from p4perf.specs.types import MAX_INTEGER, Number, Strict, SweptValue, Whole

MANTISSAS = {1: (1,), 2: (1, 3), 3: (1, 2, 5), 9: (1, 2, 3, 4, 5, 6, 7, 8, 9)}
"""Values of a decade for the numbers of points that have customary ones."""


class LogValues(Strict):
    """Values spread evenly on a logarithmic axis, both bounds included.

    1, 2, 3 and 9 points per decade are the customary 1; 1-3; 1-2-5; and 1-2-3-...-9. Any other number spaces the values
    geometrically from the lower bound. Whole bounds give whole values.
    """

    log: tuple[Number, Number] = Field(description="lower and upper bound, both above 0, both included")
    points_per_decade: StrictInt = Field(
        9, ge=1, le=100, description="values in each decade: 1, 2 (1-3), 3 (1-2-5), 9 (1-2-...-9), or other"
    )


class RangeValues(Strict):
    """Whole numbers from the lower bound in steps, up to and including the upper bound if a step meets it."""

    range: tuple[Whole, Whole] = Field(description="first and last whole number, both included")
    step: StrictInt = Field(1, ge=1, le=MAX_INTEGER, description="distance of the values")


class LinearValues(Strict):
    """Numbers from the lower bound in steps, up to and including the upper bound if a step meets it."""

    linear: tuple[Number, Number] = Field(description="lower and upper bound, both included")
    step: Number = Field(gt=0, description="distance of the values")


_KINDS: dict[str, type[Strict]] = {"log": LogValues, "range": RangeValues, "linear": LinearValues}


def _branch(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return "<list>"
    written = value if isinstance(value, dict) else ()
    return next((f"<{name}>" for name, kind in _KINDS.items() if name in written or isinstance(value, kind)), None)


def _branch_or_value(value: Any) -> str | None:
    return "<value>" if isinstance(value, bool | int | float | str) else _branch(value)


_FORMS = "expected a list of values, {log: [lo, hi]}, {range: [lo, hi]} or {linear: [lo, hi], step: s}"

_Rules = (
    Annotated[tuple[SweptValue, ...], Tag("<list>")]
    | Annotated[LogValues, Tag("<log>")]
    | Annotated[RangeValues, Tag("<range>")]
    | Annotated[LinearValues, Tag("<linear>")]
)

VariableSpec = Annotated[_Rules, Discriminator(_branch, custom_error_type="p4perf_form", custom_error_message=_FORMS)]
"""How a spec writes the values of a variable."""

AssignedSpec = Annotated[
    Annotated[SweptValue, Tag("<value>")] | _Rules,
    Discriminator(_branch_or_value, custom_error_type="p4perf_form", custom_error_message=_FORMS),
]
"""What a variant assigns to a variable: one value, or several."""


@dataclass(frozen=True, slots=True)
class ValueGrid:
    """A finite sequence of values, known by rule; no ``Sequence``, since ``len()`` fails above 2**63."""

    size: int
    value: Callable[[int], Scalar]

    def __iter__(self) -> Iterator[Scalar]:
        return map(self.value, range(self.size))


def grid_of(values: Any, key: str) -> ValueGrid:
    match values:
        case RangeValues():
            return _steps(*values.range, values.step, key)
        case LinearValues():
            return _steps(*values.linear, values.step, key)
        case LogValues():
            listed = _log_values(values, key)
        case list() | tuple():
            listed = _listed(values, key)
        case _:
            listed = (values,)
    return ValueGrid(len(listed), listed.__getitem__)


def thin(grid: ValueGrid, points: int) -> tuple[Scalar, ...]:
    """At most ``points`` of the values, evenly chosen; the first and (from two points on) the last stay."""
    if grid.size <= points:
        return tuple(grid)
    if points == 1:
        return (grid.value(0),)
    last, gaps = grid.size - 1, points - 1
    return tuple(grid.value((2 * i * last + gaps) // (2 * gaps)) for i in range(points))


def _listed(values: Sequence[Scalar], key: str) -> tuple[Scalar, ...]:
    if not values:
        raise SpecError("the list has no values, so the sweep is empty", key=key)
    seen: set[tuple[bool, Scalar]] = set()
    for value in values:
        mark = (isinstance(value, bool), value)
        if mark in seen:
            raise SpecError(f"duplicate value {quoted(value)}", key=key)
        seen.add(mark)
    return tuple(values)


def _steps(low: int | float, high: int | float, step: int | float, key: str) -> ValueGrid:
    """``low + index * step``; exact, and rounded to a float only at the end unless all three are whole."""
    _ordered(low, high, key)
    whole = all(isinstance(number, int) for number in (low, high, step))
    start, end, distance = (Fraction(Decimal(repr(number))) for number in (low, high, step))
    number: type[int] | type[float] = int if whole else float
    return ValueGrid(int((end - start) // distance) + 1, lambda index: number(start + index * distance))


def _ordered(low: int | float, high: int | float, key: str) -> None:
    if high < low:
        raise SpecError(f"the upper bound {high} is below the lower bound {low}, so the sweep is empty", key=key)


def _log_values(spec: LogValues, key: str) -> tuple[Scalar, ...]:
    low, high = spec.log
    _ordered(low, high, key)
    if low <= 0:
        raise SpecError(f"a logarithmic sweep must start above 0, not at {low}", key=key)
    whole = isinstance(low, int) and isinstance(high, int)
    mantissas = MANTISSAS.get(spec.points_per_decade)
    inner = _decades(low, high, mantissas) if mantissas else _geometric(low, high, spec.points_per_decade)
    values = {low, *(round(value) if whole else value for value in inner), high}
    return tuple(value if whole else float(value) for value in sorted(values) if low <= value <= high)


def _decades(low: int | float, high: int | float, mantissas: tuple[int, ...]) -> Iterator[int | float]:
    first, last = Decimal(repr(low)).adjusted(), Decimal(repr(high)).adjusted()
    for exponent in range(first, last + 1):
        for mantissa in mantissas:
            value = mantissa * 10**exponent if exponent >= 0 else float(f"{mantissa}e{exponent}")
            if low <= value <= high:
                yield value


def _geometric(low: int | float, high: int | float, points: int) -> Iterator[float]:
    # Whole decades are exact; what is between them is a power of ten below one.
    steps = [10 ** (rest / points) for rest in range(points)]
    start = Fraction(Decimal(repr(low)))
    while start <= high:
        for step in steps:
            if (value := float(start) * step) > high:
                return
            yield value
        start *= 10
