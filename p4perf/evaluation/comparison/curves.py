"""Comparing the models of one component, without the samples that they were derived from.

Two curves can be compared if they are over the same variable and in the same unit. Where one of them is known only as
an increase over its value at the first x (a paper that prints slopes but no levels), the increase of the other one is
taken too: its curve less its value at the start of the shared domain.

Without samples there is no verdict: nothing is known of how far starts scatter. What there is: the ratio of the curves,
with a band where both have one, and where they cross (:mod:`~p4perf.evaluation.comparison.ratios`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p4perf.errors import UsageError
from p4perf.evaluation.comparison.ratios import Crossing, crossings, model_ratio, shared_domain
from p4perf.models.component import ComponentModel, ConfidenceInterval, Fitting, PiecewiseFitting, Quantity
from p4perf.models.estimate import Estimate
from p4perf.models.published import is_published
from p4perf.models.templates import FloatArray, FunctionTemplate

EVEN = 6
"""Abscissae of a table over a linear axis, besides breakpoints."""


@dataclass(frozen=True)
class CurveSubject:
    """A model, and in words where it is from."""

    label: str
    source: str
    model: ComponentModel

    @property
    def published(self) -> bool:
        return is_published(self.model)

    @property
    def increase_of(self) -> str | None:
        """The metric of which the curve is the increase over its first x, None if it is the metric itself."""
        said = self.model.provenance.get("increase_of")
        return said if isinstance(said, str) else None


@dataclass(frozen=True)
class CurvePair:
    """A model beside the reference.

    Args:
        compared: the quantity whose ratio it is; None if the curves cannot be compared.
        domain: first and last x of the shared domain; None if there is none.
        increase_from: x over which both curves are increases; None if they are compared as they are.
        crossings: where the curves cross; None without a shared domain.
        reason: why there is no ratio, or no crossing; empty if there are both.
    """

    run: str
    reference: str
    compared: Quantity | None
    domain: tuple[float, float] | None
    increase_from: float | None
    crossings: tuple[Crossing, ...] | None
    reason: str
    a: ComponentModel
    b: ComponentModel

    def ratio(self, x: float) -> Estimate | None:
        """Ratio of the curves at an x; None where they cannot be compared or one is not positive."""
        if self.compared is None:
            return None
        found = model_ratio(self.a, self.b, np.asarray([x]))
        value, low, high = (float(v[0]) for v in (found.value, found.low, found.high))
        if not math.isfinite(value):
            return None
        known = math.isfinite(low) and math.isfinite(high)
        return Estimate(value, low, high) if known else Estimate(value)


@dataclass(frozen=True)
class CurveComparison:
    """The models of one component compared with that labelled ``reference``, and abscissae of interest, ascending."""

    component: str
    x: Quantity
    subjects: tuple[CurveSubject, ...]
    reference: str
    pairs: tuple[CurvePair, ...]
    at: tuple[float, ...]


def compare_curves(
    component: str, subjects: Sequence[CurveSubject], *, reference: str, at: Sequence[float] = ()
) -> CurveComparison:
    """Compare models with one of them.

    Args:
        subjects: two models at least.
        at: abscissae of interest; by default the ends and breakpoints of the curves and some in between.

    Raises:
        UsageError: the models are not over the same variable.
    """
    base = next(s for s in subjects if s.label == reference)
    for other in subjects:
        mine, theirs = base.model.x, other.model.x
        if (mine.name, mine.unit) != (theirs.name, theirs.unit):
            said = f"{reference} is over {mine.label()}, {other.label} over {theirs.label()}"
            raise UsageError(f"the models of {component} cannot be compared: {said}")
    pairs = tuple(_pair(s, base) for s in subjects if s is not base)
    places = tuple(sorted(set(at))) or _places(subjects)
    return CurveComparison(component, base.model.x, tuple(subjects), reference, pairs, places)


def increase(model: ComponentModel, start: float, name: str) -> ComponentModel:
    """A curve less its value at an x, with its segments, breakpoints and band.

    The band is that of the curve: the uncertainty of the value at ``start`` is not in it.
    """
    level = float(model.evaluate(start))
    fitting = model.fitting
    segments = tuple(
        replace(segment, template=_less(segment), parameters=(level,), origin=0.0, rank=segment.rank)
        for segment in fitting.segments
    )
    bands = model.uncertainty
    if bands is not None:
        bands = replace(
            bands,
            parameters=tuple((ConfidenceInterval(level, level),) for _ in segments),
            low=tuple(v - level for v in bands.low),
            high=tuple(v - level for v in bands.high),
        )
    curve = PiecewiseFitting(segments, fitting.breakpoints, fitting.error, fitting.rank)
    return replace(model, y=replace(model.y, name=name), fitting=curve, uncertainty=bands)


def _less(segment: Fitting) -> FunctionTemplate:
    """A template with the level that is taken off as its only parameter."""

    def function(x: FloatArray, level: FloatArray) -> FloatArray:
        return segment.evaluate(x) - level

    evaluated: Callable[..., FloatArray] = function
    return FunctionTemplate(f"{segment.template.name}_increase", evaluated, ("level",))


def _pair(one: CurveSubject, base: CurveSubject) -> CurvePair:
    a, b = one.model, base.model
    domain = shared_domain(a, b)
    if reason := _incomparable(one, base):
        return CurvePair(one.label, base.label, None, domain, None, None, reason, a, b)
    start: float | None = None
    if one.increase_of is not None or base.increase_of is not None:
        name = next(s.model.y.name for s in (one, base) if s.increase_of is not None)
        start = max(a.domain[0], b.domain[0])
        a, b = increase(a, start, name), increase(b, start, name)
    if domain is None:
        ends = ", ".join(f"{s.label} from {s.model.domain[0]:g} to {s.model.domain[1]:g}" for s in (one, base))
        reason = f"they share no domain ({ends}): every ratio is extrapolated"
        return CurvePair(one.label, base.label, a.y, None, start, None, reason, a, b)
    return CurvePair(one.label, base.label, a.y, domain, start, crossings(a, b), "", a, b)


def _incomparable(one: CurveSubject, base: CurveSubject) -> str:
    """Why two curves have no ratio; empty if they have one."""
    a, b = one.model.y, base.model.y
    if one.increase_of == base.increase_of:
        same = (a.name, a.unit) == (b.name, b.unit)
        return "" if same else f"{one.label} is in {a.label()}, {base.label} in {b.label()}"
    known, other = (one, base) if one.increase_of is not None else (base, one)
    if other.model.y.name != known.increase_of:
        return f"{known.label} is an increase of {known.increase_of}, {other.label} is {other.model.y.label()}"
    return "" if a.unit == b.unit else f"{one.label} is in {a.unit}, {base.label} in {b.unit}"


def _places(subjects: Sequence[CurveSubject]) -> tuple[float, ...]:
    """Ends and breakpoints of all curves, and the powers of ten or some even steps in between."""
    models = [s.model for s in subjects]
    ends = {end for m in models for end in m.domain}
    marks = ends | {x for m in models for x in m.fitting.breakpoint_x}
    first, last = min(ends), max(ends)
    if models[0].x.scale == "log" and first > 0:
        inner = {10.0**n for n in range(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1)}
    else:
        inner = {float(x) for x in np.linspace(first, last, EVEN)}
    return tuple(sorted(marks | inner))
