"""From swept variables to points: product, zip, multiplex, filter, and the limit on their number.

The number of points is calculated before any of them is made.

``$name`` refers to a swept variable, else to a parameter of the component in which it stands, else to a parameter of
any component (where it has to be unambiguous). Nothing is ever evaluated; a reference is replaced by a value.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p4perf.errors import SpecError
from p4perf.specs.grids import ValueGrid, grid_of, thin
from p4perf.specs.messages import nearest, quoted
from p4perf.specs.schema import RESERVED, VARIANT, SweepSpec
from p4perf.specs.source import Scalar, read_plain
from p4perf.specs.types import reference_name

MAX_POINTS = 100_000
"""Most points of a sweep, before filters."""

Values = Mapping[str, Scalar]
"""An assignment of the swept variables, or of the parameters of a component."""

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_CONDITION = re.compile(r"\s*(\$?[A-Za-z0-9_.+-]{1,64})\s*(<=|>=|==|!=|<|>)\s*(\$?[A-Za-z0-9_.+-]{1,64})\s*")


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a spec defines: swept variables, and the parameters of every component in order."""

    variables: frozenset[str]
    components: tuple[tuple[str, Values], ...]

    def names(self) -> set[str]:
        return {*self.variables, *(name for _, parameters in self.components for name in parameters)}

    def definition(self, name: str, own: Values, key: str) -> Scalar | None:
        """What a parameter is set to (perhaps a reference again); None if the name is a swept variable."""
        if name in self.variables:
            return None
        if name in own:
            return own[name]
        found = [parameters[name] for _, parameters in self.components if name in parameters]
        if not found:
            hint = nearest(name, self.names(), "swept variables and parameters")
            raise SpecError(f"${name} refers to no swept variable or parameter", key=key, hint=hint)
        if any(value != found[0] for value in found):
            raise SpecError(f"${name} is ambiguous: several components have it, with different values", key=key)
        return found[0]

    def variables_of(self, value: object, own: Values, key: str) -> Iterator[str]:
        """The swept variables that a value depends on."""
        trail: list[str] = []
        while (name := reference_name(value)) is not None:
            if name in trail:
                raise SpecError(f"${name} refers to itself: {' -> '.join([*trail, name])}", key=key)
            trail.append(name)
            if name in self.variables:
                yield name
                return
            value = self.definition(name, own, key)

    def resolve(self, value: Any, own: Values, values: Values, key: str) -> Any:
        """The value with its reference, if it is one, replaced; :meth:`variables_of` has to have accepted it."""
        while (name := reference_name(value)) is not None:
            value = values[name] if name in values else self.definition(name, own, key)
        return value


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter: two operands and a comparison."""

    left: Scalar
    operator: str
    right: Scalar
    text: str
    key: str

    def holds(self, scope: Scope, values: Values) -> bool:
        """Whether the point with these values of the swept variables meets the condition."""
        left = scope.resolve(self.left, {}, values, self.key)
        right = scope.resolve(self.right, {}, values, self.key)
        if isinstance(left, str) != isinstance(right, str):
            raise SpecError(f"{self.text}: cannot compare {quoted(left)} with {quoted(right)}", key=self.key)
        return bool(_COMPARISONS[self.operator](left, right))


def parse_condition(text: str, key: str) -> Condition:
    """Read ``operand comparison operand``, where an operand is ``$name``, a number or a word."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        hint = 'write two operands and one of < <= == != >= >, such as "$writes <= $fields"'
        raise SpecError(f"{quoted(text)} is not a condition", key=key, hint=hint)
    left, comparison, right = match.groups()
    operands: list[Scalar] = []
    for word in (left, right):
        try:
            value = word if word.startswith("$") else read_plain(word)
        except ValueError as error:
            raise SpecError(f"{quoted(text)}: {error}", key=key) from error
        operands.append(word if value is None else value)
    return Condition(operands[0], comparison, operands[1], text, key)


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """What advances together: ``size`` assignments of the same variables, made as they are asked for, once."""

    key: str
    """Where the spec says it."""
    size: int
    steps: Iterator[dict[str, Scalar]]


def variable_names(sweep: SweepSpec) -> tuple[str, ...]:
    """The swept variables, in the order of the spec; the variant, what it assigns, and those of subsets come last."""
    assigned = (name for variant in sweep.assigned.values() for name in variant)
    named = [VARIANT] if sweep.assigned or sweep.combined.each_of else []
    return tuple(dict.fromkeys([*sweep.variables, *named, *assigned, *sweep.combined.subsets_of]))


def sweep_axes(sweep: SweepSpec) -> tuple[SweepAxis, ...]:
    """The axes whose product the sweep is, the slowest first."""
    grids = {name: grid_of(values, f"sweep.{name}") for name, values in sweep.variables.items()}
    leader: dict[str, tuple[str, ...]] = {}
    for group in sweep.zip:
        _check_group(group, grids, leader)
        leader |= dict.fromkeys(group, group)
    axes = []
    for name in grids:
        group = leader.get(name, (name,))
        together = [member for member in grids if member in group]
        if name == together[0]:
            axes.append(_zipped(f"sweep.{name}", {member: grids[member] for member in together}))
    if sweep.assigned:
        axes.append(_variants(sweep))
    if sweep.combined.each_of:
        each = sweep.combined.each_of
        axes.append(SweepAxis("sweep.multiplex", len(each), ({VARIANT: name} for name in each)))
    if sweep.combined.subsets_of:
        axes.append(_subsets(sweep))
    return tuple(axes)


def expand(
    sweep: SweepSpec,
    scope: Scope,
    conditions: Sequence[Condition] = (),
    *,
    limit: int = MAX_POINTS,
    scope_at: Callable[[Values], Scope] | None = None,
) -> tuple[Values, ...]:
    """All points: the values of the swept variables, the last variable changing fastest.

    Args:
        limit: most points before filtering.
        scope_at: names that conditions may refer to at a point, where they differ from point to point.
    """
    axes = sweep_axes(sweep)
    size = math.prod(axis.size for axis in axes)
    if size > limit:
        largest = max(axes, key=lambda axis: axis.size)
        raise SpecError(
            f"the sweep has {_thousands(size)} points, more than the limit of {_thousands(limit)}",
            key=largest.key,
            hint="use fewer values or wider steps, or thin every list with --points N",
        )
    points = tuple(
        values
        for values in _product(axes)
        if all(condition.holds(scope_at(values) if scope_at else scope, values) for condition in conditions)
    )
    if not points:
        raise SpecError(f"the filter leaves none of the {size} points, so the sweep is empty", key="sweep.filter")
    return points


def thinned(sweep: SweepSpec, points: int) -> SweepSpec:
    """The same sweep with at most ``points`` values of each variable, evenly chosen; the first and last stay.

    All combined variants stay: with fewer of their subsets, the effects of two variants could not be separated.
    """
    if points < 1:
        raise SpecError(f"the number of points must be at least 1, got {points}", key="--points")
    sweep_axes(sweep)  # variables that are zipped have to be of one length before they are thinned

    def few(values: Any, key: str) -> Any:
        grid = grid_of(values, key)
        return values if grid.size <= points else list(thin(grid, points))

    changed: dict[str, Any] = {name: few(values, f"sweep.{name}") for name, values in sweep.variables.items()}
    variants = {
        variant: {name: few(values, f"sweep.multiplex.{variant}.{name}") for name, values in assigned.items()}
        for variant, assigned in sweep.assigned.items()
    }
    multiplex = variants or sweep.multiplex
    kept = {"zip": sweep.zip, "filter": sweep.filter, "skip_impossible": sweep.skip_impossible}
    return SweepSpec.model_validate({**changed, **kept, "multiplex": multiplex})


def _product(axes: Sequence[SweepAxis]) -> Iterator[dict[str, Scalar]]:
    for parts in itertools.product(*(axis.steps for axis in axes)):
        values: dict[str, Scalar] = {}
        for part in parts:
            values |= part
        yield values


def _zipped(key: str, grids: Mapping[str, ValueGrid]) -> SweepAxis:
    """Variables that advance together, of one length."""
    size = next(iter(grids.values())).size
    return SweepAxis(key, size, ({name: grid.value(index) for name, grid in grids.items()} for index in range(size)))


def _check_group(group: tuple[str, ...], grids: Mapping[str, ValueGrid], taken: Mapping[str, tuple[str, ...]]) -> None:
    if len(group) < 2:
        raise SpecError("a group of zipped variables needs at least two", key="sweep.zip", hint="write zip: [a, b]")
    for name in group:
        if name not in grids:
            hint = nearest(name, grids, "swept variables")
            raise SpecError(f"{name} is zipped, but is not a swept variable", key="sweep.zip", hint=hint)
        if name in taken or group.count(name) > 1:
            raise SpecError(f"{name} is zipped twice", key="sweep.zip")
    if len({grids[name].size for name in group}) > 1:
        sizes = ", ".join(f"{name} has {_thousands(grids[name].size)}" for name in group)
        raise SpecError(f"zipped variables need as many values each: {sizes}", key="sweep.zip")


def _variants(sweep: SweepSpec) -> SweepAxis:
    """Variant after variant, each a product of what it assigns."""
    names = list(dict.fromkeys(name for variant in sweep.assigned.values() for name in variant))
    found: list[tuple[str, list[SweepAxis]]] = []
    for variant, assigned in sweep.assigned.items():
        key = f"sweep.multiplex.{variant}"
        if missing := [name for name in names if name not in assigned]:
            raise SpecError(f"the variant {variant} does not assign {', '.join(missing)}, which another does", key=key)
        if twice := [name for name in assigned if name in sweep.variables]:
            raise SpecError(f"{twice[0]} is swept already", key=f"{key}.{twice[0]}")
        if VARIANT in assigned:
            raise SpecError(f"{VARIANT} is the name of the variant, and cannot be assigned", key=f"{key}.{VARIANT}")
        found.append((variant, [_zipped(key, {name: grid_of(assigned[name], f"{key}.{name}")}) for name in names]))
    size = sum(math.prod(axis.size for axis in axes) for _, axes in found)
    steps: Iterator[dict[str, Scalar]] = (
        {VARIANT: variant, **values} for variant, axes in found for values in _product(axes)
    )
    return SweepAxis("sweep.multiplex", size, steps)


def _subsets(sweep: SweepSpec) -> SweepAxis:
    """Every subset of some sizes, the small ones first; a variable of each combined variant is 1 or 0."""
    names, sizes = sweep.combined.subsets_of, sweep.combined.subset_sizes
    for name in names:
        taken = "swept already" if name in sweep.variables else ""
        if name in RESERVED or name == VARIANT:
            taken = "a column of the tables of results"
        if taken:
            raise SpecError(f"{name} is {taken}", key="sweep.multiplex", hint="give the variant another name")
    chosen = (subset for size in sizes for subset in itertools.combinations(names, size))
    steps: Iterator[dict[str, Scalar]] = ({name: int(name in subset) for name in names} for subset in chosen)
    return SweepAxis("sweep.multiplex", sum(math.comb(len(names), size) for size in sizes), steps)


def _thousands(number: int) -> str:
    return f"{number:,}" if number < 10**30 else f"about 10^{math.log10(number):.0f}"
