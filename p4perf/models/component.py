"""The model of one component on one target: curve, domain, uncertainty, provenance, and its JSON.

The curve is a fitted function, or several joined at breakpoints (Scholz et al. 2021, section 2.2).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, NamedTuple, NoReturn, Self, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4perf.errors import DataError, Location, UsageError
from p4perf.models.notation import Notation
from p4perf.models.spline import find_function
from p4perf.models.templates import FloatArray, Template


@dataclass(frozen=True, repr=False)
class Fitting:
    """``F = (lambda, p, alpha, beta, eta)``: a template with parameters on a segment of the domain.

    Args:
        template: the function template (lambda).
        parameters: its parameters (p), in units of y per power of x.
        start: first abscissa that was fitted (alpha).
        end: last abscissa that was fitted (beta).
        error: error metric over the fitted samples (eta).
        points: number of samples.
        rank: psi by which the template was chosen; by default its own.
    """

    template: Template
    parameters: tuple[float, ...]
    start: float
    end: float
    error: float
    points: int
    origin: float = 0.0
    rank: float = None  # type: ignore[assignment]  # the template's own until __post_init__ has run

    def __post_init__(self) -> None:
        wanted = self.template.parameter_names
        if len(self.parameters) != len(wanted):
            raise UsageError(f"{self.template.name} takes {len(wanted)} parameters, not {len(self.parameters)}")
        if self.rank is None:
            object.__setattr__(self, "rank", self.template.rank)

    @override
    def __repr__(self) -> str:
        return f"<Fitting {self.start:g} .. {self.end:g}: {self.text()}>"

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """Values of the function, also outside of the segment."""
        return self.template.evaluate(x, self.parameters, self.origin)

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Slopes of the function in units of y per unit of x, also outside of the segment."""
        return self.template.derivative(x, self.parameters, self.origin)

    def text(self, *, x: str = "x", y: str = "y", digits: int = 4) -> str:
        return self.template.text(self.parameters, self.origin, x=x, y=y, digits=digits)

    def formula(self, notation: Notation) -> str:
        """The right-hand side with its numbers in some notation; see :meth:`Template.formula`."""
        return self.template.formula(self.parameters, self.origin, notation)


def abscissae(x: npt.ArrayLike) -> FloatArray:
    """Abscissae as an array; a UsageError if they are no numbers."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"x: expected numbers, got {x!r:.60}") from None


class Gap(NamedTuple):
    """The open interval between two segments, where nothing was measured, and the span of the values at its ends."""

    start: float
    end: float
    low: float
    high: float

    def holds(self, at: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray((at > self.start) & (at < self.end))


@dataclass(frozen=True)
class PiecewiseFitting:
    """Fittings of adjacent segments (Eq. 4).

    Args:
        breakpoints: index, counted from 0 over all samples, of the last sample of each segment but the last.
        error: combined error theta, the mean of the errors of the segments weighted by their numbers of samples.
        rank: combined rank Phi, weighted likewise.
    """

    segments: tuple[Fitting, ...]
    breakpoints: tuple[int, ...]
    error: float
    rank: float

    def __post_init__(self) -> None:
        if not self.segments or len(self.breakpoints) != len(self.segments) - 1:
            raise UsageError(
                f"{len(self.segments)} segments need {len(self.segments) - 1} breakpoints, not {len(self.breakpoints)}"
            )
        ends = np.cumsum([p.points for p in self.segments])[:-1] - 1
        if any(a.end >= b.start for a, b in zip(self.segments, self.segments[1:], strict=False)) or any(
            int(end) != breakpoint for end, breakpoint in zip(ends, self.breakpoints, strict=True)
        ):
            raise UsageError("the segments of a piecewise fitting must follow each other and match its breakpoints")

    @classmethod
    def join(cls, segments: tuple[Fitting, ...]) -> PiecewiseFitting:
        """Put segments together; error and rank are their means weighted by the number of samples."""
        total = sum(p.points for p in segments)
        ends = np.cumsum([p.points for p in segments])[:-1] - 1
        return cls(
            segments=segments,
            breakpoints=tuple(int(e) for e in ends),
            error=sum(p.error * p.points for p in segments) / total,
            rank=sum(p.rank * p.points for p in segments) / total,
        )

    @property
    def breakpoint_x(self) -> tuple[float, ...]:
        """Abscissae at which segments but the first begin; what lies between two belongs to the left one."""
        return tuple(p.start for p in self.segments[1:])

    @property
    def points(self) -> int:
        return sum(p.points for p in self.segments)

    @property
    def domain(self) -> tuple[float, float]:
        return self.segments[0].start, self.segments[-1].end

    @property
    def free_parameters(self) -> int:
        """Number of fitted parameters, breakpoints not counted."""
        return sum(len(p.parameters) for p in self.segments)

    def segment_of(self, x: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Index of the segment that each abscissa belongs to; outside of the domain, the nearest segment."""
        return np.searchsorted(np.asarray(self.breakpoint_x), np.asarray(x, dtype=np.float64), side="right")

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps between adjacent segments."""
        found = []
        for left, right in pairwise(self.segments):
            ends = float(left.evaluate(left.end)), float(right.evaluate(right.start))
            found.append(Gap(left.end, right.start, min(ends), max(ends)))
        return tuple(found)

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """Values by Eq. 4: the segment ``i`` with ``s_i <= x < s_(i+1)``.

        In the gap before the next segment the left one continues, limited to the span of the values at both ends of the
        gap: its function may have a pole there.
        """
        at = abscissae(x)
        values = self._by_segment(at, [segment.evaluate for segment in self.segments])
        for gap in self.gaps:
            values = np.where(gap.holds(at), np.fmin(np.fmax(values, gap.low), gap.high), values)
        return values

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Slopes of the segment that each x belongs to, in units of y per unit of x; without steps at breakpoints.

        Zero where :meth:`evaluate` limits the value in a gap.
        """
        at = abscissae(x)
        slopes = self._by_segment(at, [segment.derivative for segment in self.segments])
        if self.gaps:
            own = self._by_segment(at, [segment.evaluate for segment in self.segments])
            for gap in self.gaps:
                slopes = np.where(gap.holds(at) & ~((own >= gap.low) & (own <= gap.high)), 0.0, slopes)
        return slopes

    def _by_segment(self, at: FloatArray, functions: Sequence[Callable[[FloatArray], FloatArray]]) -> FloatArray:
        which = self.segment_of(at)
        out = np.full_like(at, np.nan)
        for index, function in enumerate(functions):
            mine = which == index
            out[mine] = function(at[mine])
        return out


Scale = Literal["linear", "log"]

T = TypeVar("T")


@dataclass(frozen=True)
class Quantity:
    """What an axis shows; a count has no unit. Its scale is that of drawing and sampling, not of the fit."""

    name: str
    unit: str = ""
    scale: Scale = "linear"

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise UsageError(f"unknown scale {self.scale!r}", hint=f"supported: {', '.join(get_args(Scale))}")

    def label(self) -> str:
        """Name and unit for an axis: ``entries`` or ``memory [B]``."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class ConfidenceInterval:
    """A closed interval; both ends have the unit of what it belongs to."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Uncertainty:
    """Bootstrap intervals of a model.

    Args:
        level: coverage that the intervals aim at, such as 0.95.
        parameters: per segment, per parameter.
        breakpoints: from the last sample that may belong to the left segment to the first of the right one.
        x: abscissae of the band of the curve, whose ends are ``low`` and ``high``.
    """

    level: float
    parameters: tuple[tuple[ConfidenceInterval, ...], ...]
    breakpoints: tuple[ConfidenceInterval, ...]
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.low) == len(self.high):
            raise UsageError("x must be as long as low and high")
        if not 0 < self.level < 1:
            raise UsageError(f"the level of intervals is a share below 1, not {self.level:g}")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise UsageError("low must not exceed high")


@dataclass(frozen=True)
class CurveEstimate:
    """Values of a model, its band (NaN if it has none), and whether they lie outside of the domain; of one shape."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    extrapolated: npt.NDArray[np.bool_]


def fitting_record(fitting: PiecewiseFitting, x: str, y: str) -> dict[str, Any]:
    """A curve as JSON values, keys in a fixed order; ``x`` and ``y`` are names for its formulas."""
    segments = [
        {
            "template": segment.template.name,
            "parameters": dict(zip(segment.template.parameter_names, segment.parameters, strict=True)),
            "origin": segment.origin,
            "start": segment.start,
            "end": segment.end,
            "points": segment.points,
            "error": segment.error,
            "rank": segment.rank,
            "formula": segment.text(x=x, y=y),
        }
        for segment in fitting.segments
    ]
    return {
        "error": fitting.error,
        "rank": fitting.rank,
        "breakpoints": list(fitting.breakpoints),
        "breakpoint_x": list(fitting.breakpoint_x),
        "segments": segments,
    }


class Reader:
    """Typed access to a JSON object; every failure names the file and the dotted key."""

    def __init__(self, data: object, file: str, path: str = "") -> None:
        self.file, self.path = file, path
        if not isinstance(data, dict):
            raise DataError("must be an object", location=Location(file), key=path.rstrip(".") or None)
        self.data: Mapping[str, object] = data

    @classmethod
    def of_text(cls, text: str, file: str) -> Reader:
        try:
            return cls(json.loads(text), file)
        except json.JSONDecodeError as exc:
            raise DataError(f"not JSON: {exc.msg}", location=Location(file, exc.lineno, exc.colno)) from exc
        except (ValueError, RecursionError) as exc:
            raise DataError(f"not a model: {exc}", location=Location(file)) from exc

    def fail(self, key: str, message: str, hint: str | None = None) -> NoReturn:
        raise DataError(message, location=Location(self.file), key=self.path + key, hint=hint)

    def raw(self, key: str) -> object:
        if key not in self.data:
            self.fail(key, "is missing")
        return self.data[key]

    def child(self, key: str) -> Self:
        return type(self)(self.raw(key), self.file, f"{self.path}{key}.")

    def children(self, key: str) -> list[Reader]:
        items = self.value(key, self.raw(key), list)
        return [Reader(item, self.file, f"{self.path}{key}[{i}].") for i, item in enumerate(items)]

    def string(self, key: str) -> str:
        return cast("str", self.value(key, self.raw(key), str))

    def number(self, key: str) -> float:
        return cast("float", self.value(key, self.raw(key), float))

    def numbers(self) -> dict[str, float]:
        """The values of an object that has nothing but numbers."""
        if all(type(value) in (int, float) and abs(value) < 1e300 for value in self.data.values()):  # type: ignore[arg-type]
            return {name: float(value) for name, value in self.data.items()}  # type: ignore[arg-type]
        return {name: self.number(name) for name in self.data}  # which says what is wrong

    def integer(self, key: str) -> int:
        return cast("int", self.value(key, self.raw(key), int))

    def value(self, key: str, value: object, hint: Any) -> Any:
        """A value of the type that an annotation says, below a key."""
        parts = get_args(hint)
        if NoneType in parts:
            return None if value is None else self.value(key, value, parts[0])
        if get_origin(hint) is Literal:
            if value not in parts:
                self.fail(key, f"must be {' or '.join(parts)}, not {value!r}")
            return value
        if hint is list or get_origin(hint) is tuple:
            if not isinstance(value, list):
                self.fail(key, "must be a list")
            return tuple(self.value(f"{key}[{i}]", item, parts[0]) for i, item in enumerate(value)) if parts else value
        if is_dataclass(hint):
            return Reader(value, self.file, f"{self.path}{key}.").read(cast("type", hint))
        if hint is str:
            if not isinstance(value, str):
                self.fail(key, f"must be text, not {value!r}")
            if any("\ud800" <= character <= "\udfff" for character in value):
                self.fail(key, "holds half a character")
            return value
        noun, kinds = ("whole", int) if hint is int else ("finite", int | float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not abs(value) <= sys.float_info.max:
            self.fail(key, f"must be a {noun} number, not {value!r}")
        return hint(value)

    def read(self, kind: type[T], *optional: str, **given: object) -> T:
        """A dataclass whose fields have the names of the keys, but for those given; ``optional`` ones may be absent."""
        names = [each.name for each in fields(cast("Any", kind)) if each.name not in given]
        present = [name for name in names if name in self.data or name not in optional]
        hints = _hints(cast("Any", kind))
        try:
            return kind(**given, **{name: self.value(name, self.raw(name), hints[name]) for name in present})
        except UsageError as error:
            raise DataError(
                error.message, location=Location(self.file), key=self.path.rstrip(".") or None, hint=error.hint
            ) from error


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _segment(reader: Reader, templates: Sequence[Template] | None) -> Fitting:
    name = reader.string("template")
    try:
        template = find_function(name, templates)
    except UsageError as exc:
        reader.fail("template", exc.message, exc.hint)
    values = reader.child("parameters")
    unknown = set(values.data) - set(template.parameter_names)
    if unknown:
        reader.fail(f"parameters.{min(unknown)}", f"is not a parameter of {name}")
    parameters = tuple(values.number(p) for p in template.parameter_names)
    return reader.read(Fitting, "rank", template=template, parameters=parameters)


SCHEMA = "p4perf/component-model"
SCHEMA_VERSION = 2
_FORMER = {"parts": "segments", "splits": "breakpoints", "split_x": "breakpoint_x"}
"""Keys of version 1, and their names since."""


def _current(record: Mapping[str, object]) -> dict[str, object]:
    """A record of version 1 with the keys of today."""

    def renamed(value: object) -> object:
        return {_FORMER.get(key, key): item for key, item in value.items()} if isinstance(value, dict) else value

    found: dict[str, object] = {**record, "schema_version": SCHEMA_VERSION}
    for key in ("fitting", "uncertainty", "provenance"):
        found[key] = renamed(record.get(key))
    provenance = found["provenance"]
    if isinstance(provenance, dict) and isinstance(derivation := provenance.get("derivation"), dict):
        candidates = derivation.get("candidates")
        if isinstance(candidates, list):
            provenance["derivation"] = {**derivation, "candidates": [renamed(each) for each in candidates]}
    return {key: value for key, value in found.items() if key in record}


@dataclass(frozen=True, repr=False)
class ComponentModel:
    """What one component costs on one target.

    Args:
        name: what was measured, such as ``mat/exact-entries``.
        error: name of the error metric of the fitting, such as ``smape``.
        provenance: further facts, as JSON values: profile, margins, machine, versions, hashes.
    """

    name: str
    target: str
    x: Quantity
    y: Quantity
    fitting: PiecewiseFitting
    error: str = "smape"
    uncertainty: Uncertainty | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.uncertainty is not None:
            sizes = [len(p) for p in self.uncertainty.parameters]
            if sizes != [len(p.parameters) for p in self.fitting.segments]:
                raise UsageError("the intervals of a model must match its parameters")
            if len(self.uncertainty.breakpoints) != len(self.fitting.breakpoints):
                raise UsageError("the intervals of a model must match its breakpoints")
        try:
            json.dumps(dict(self.provenance), allow_nan=False)
        except (TypeError, ValueError) as exc:
            raise UsageError(f"the provenance of a model must consist of JSON values: {exc}") from exc

    @override
    def __repr__(self) -> str:
        what = " on ".join(filter(None, (self.name, self.target))) or self.y.name
        segments = "1 segment" if len(self.segments) == 1 else f"{len(self.segments)} segments"
        at = f", breakpoints {', '.join(f'{x:g}' for x in self.breakpoints)}" if self.breakpoints else ""
        return f"<{type(self).__name__} {what}: {segments}{at}>"

    @property
    def segments(self) -> tuple[Fitting, ...]:
        return self.fitting.segments

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """First x of each segment but the first."""
        return self.fitting.breakpoint_x

    @property
    def domain(self) -> tuple[float, float]:
        return self.fitting.domain

    def evaluate(self, x: npt.ArrayLike) -> FloatArray:
        """The curve; outside of the domain its first or last segment continues."""
        return self.fitting.evaluate(x)

    def derivative(self, x: npt.ArrayLike) -> FloatArray:
        """Marginal cost, in units of y per unit of x; see :meth:`PiecewiseFitting.derivative`."""
        return self.fitting.derivative(x)

    def estimate(self, x: npt.ArrayLike) -> CurveEstimate:
        """The curve with its band, and whether it had to be extrapolated.

        Between the abscissae of the band its distances from the curve are interpolated; outside of the domain the
        distances at the ends are kept, so the band says nothing about the risk of extrapolation. Between two segments,
        where nothing was measured, the band includes the values at both ends of the gap.
        """
        at = abscissae(x)
        value = self.evaluate(at)
        low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
        if self.uncertainty is not None:
            grid = np.asarray(self.uncertainty.x)
            centre = self.evaluate(grid)
            low = value + np.interp(at, grid, np.asarray(self.uncertainty.low) - centre)
            high = value + np.interp(at, grid, np.asarray(self.uncertainty.high) - centre)
        for gap in self.fitting.gaps:
            between = gap.holds(at)
            low = np.where(between, np.minimum(low, gap.low), low)
            high = np.where(between, np.maximum(high, gap.high), high)
        first, last = self.domain
        return CurveEstimate(value, low, high, np.asarray((at < first) | (at > last)))

    def formulas(self, digits: int = 4) -> tuple[str, ...]:
        return tuple(p.text(x=self.x.name, y=self.y.name, digits=digits) for p in self.fitting.segments)

    def to_json(self) -> str:
        """The model as JSON text, numbers in full precision; :meth:`from_json` reads exactly the same model back.

        Raises:
            UsageError: a number of the model is not finite.
        """
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "target": self.target,
            "x": asdict(self.x),
            "y": asdict(self.y),
            "error_metric": self.error,
            "fitting": fitting_record(self.fitting, self.x.name, self.y.name),
            "uncertainty": asdict(self.uncertainty) if self.uncertainty else None,
            "provenance": dict(self.provenance),
        }
        try:
            return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        except ValueError as exc:
            raise UsageError(f"the model {self.name!r} cannot be stored: a number in it is not finite") from exc

    @classmethod
    def from_json(
        cls, text: str, *, file: str = "<model>", templates: Sequence[Template] | None = None
    ) -> ComponentModel:
        """Read a model.

        Args:
            templates: known function templates; by default every registered set and the standard one.

        Raises:
            DataError: the text is not a model of a known schema version; names the file and the key.
        """
        root = Reader.of_text(text, file)
        if root.raw("schema") != SCHEMA:
            root.fail("schema", f"must be {SCHEMA!r}: this is not a component model")
        if root.raw("schema_version") == 1:
            root = Reader(_current(root.data), file)
        version = root.raw("schema_version")
        if version != SCHEMA_VERSION:
            hint = "upgrade p4perf to read newer models"
            root.fail("schema_version", f"must be {SCHEMA_VERSION}, not {version!r}", hint)
        fitting = root.child("fitting")
        segments = tuple(_segment(segment, templates) for segment in fitting.children("segments"))
        try:
            return cls(
                name=root.string("name"),
                target=root.string("target"),
                x=root.child("x").read(Quantity),
                y=root.child("y").read(Quantity),
                fitting=fitting.read(PiecewiseFitting, segments=segments),
                error=root.string("error_metric"),
                uncertainty=root.value("uncertainty", root.raw("uncertainty"), Uncertainty | None),
                provenance=root.child("provenance").data,
            )
        except UsageError as exc:
            raise DataError(exc.message, location=Location(file)) from exc
