"""What an Extra-P experiment holds, as series of samples over one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.statistics import Samples
from p4perf.specs.messages import nearest

Point = tuple[float, ...]
VALUE = "value"
"""Name of a metric that the file does not name."""


@dataclass(frozen=True)
class ExtrapSeries:
    """One metric of one region over one parameter.

    Args:
        region: the region or callpath, such as ``main->solve``; empty if the file names none.
        metric: the metric; empty if the file names none.
        samples: its repetitions over the parameter, without a unit: Extra-P knows none.
        constants: the other parameters, which did not vary, with their values.
    """

    region: str
    metric: str
    samples: Samples
    constants: tuple[tuple[str, float], ...] = ()

    def label(self) -> str:
        """Region and metric for people."""
        named = [f"{noun} {name!r}" for noun, name in (("region", self.region), ("metric", self.metric)) if name]
        return ", ".join(named) or "the only series"


@dataclass
class Experiment:
    """Measurements while a file is read.

    Args:
        file: name of the file, for messages.
        parameters: names of the parameters.
        values: repetitions by region and metric, then by point, in the order of the file.
    """

    file: str
    parameters: tuple[str, ...]
    values: dict[tuple[str, str], dict[Point, list[float]]] = field(default_factory=dict)

    def add(self, region: str, metric: str, point: Point, values: Sequence[float]) -> None:
        """Repetitions at a point; they come after those that are there."""
        self.values.setdefault((region, metric), {}).setdefault(point, []).extend(values)

    def series(self, x: str | None = None) -> tuple[ExtrapSeries, ...]:
        """All series.

        Args:
            x: the parameter that is the abscissa; by default the one that varies.

        Raises:
            UsageError: there is no parameter of that name.
            DataError: there are no measurements, or another parameter varies as well.
        """
        if x is not None and x not in self.parameters:
            hint = nearest(x, self.parameters, "parameters")
            raise UsageError(f"{self.file} has no parameter {x!r}", hint=hint)
        if not self.values:
            raise DataError("has no measurements", location=Location(self.file))
        return tuple(self._one(region, metric, points, x) for (region, metric), points in self.values.items())

    def _one(self, region: str, metric: str, points: dict[Point, list[float]], x: str | None) -> ExtrapSeries:
        columns = dict(zip(self.parameters, zip(*points, strict=True), strict=True))
        varying = [name for name, column in columns.items() if len(set(column)) > 1]
        name = x or next(iter(varying), self.parameters[0])
        others = [other for other in varying if other != name]
        if others:
            both = ", ".join(dict.fromkeys([name, *others]))
            raise DataError(
                f"several parameters vary: {both}; one curve describes one of them",
                location=Location(self.file),
                key=".".join(part for part in (region, metric) if part) or None,
                hint="put the points with one value of all parameters but one into a file of their own",
            )
        pairs = [(at, value) for at, values in zip(columns[name], points.values(), strict=True) for value in values]
        samples = Samples.from_arrays(
            [at for at, _ in pairs], [value for _, value in pairs], x_name=name, y_name=metric or VALUE
        )
        constants = tuple((other, column[0]) for other, column in columns.items() if other != name)
        return ExtrapSeries(region, metric, samples, constants)


def select_series(
    series: Sequence[ExtrapSeries], *, region: str | None = None, metric: str | None = None
) -> ExtrapSeries:
    """The one series of a region and a metric; what there is only one of need not be named.

    Args:
        series: where to look, at least one.
        region: name of the region or callpath.
        metric: name of the metric.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = list(series)
    if region is not None:
        found = _named(found, "region", region, [s.region for s in found])
    if metric is not None:
        found = _named(found, "metric", metric, [s.samples.y_name for s in found])
    if len(found) == 1:
        return found[0]
    regions, metrics = (
        list(dict.fromkeys(names)) for names in zip(*((s.region, s.metric) for s in found), strict=True)
    )
    choices = [(noun, names) for noun, names in (("region", regions), ("metric", metrics)) if len(names) > 1]
    said = "; ".join(f"{noun}s: {', '.join(repr(n) for n in names)}" for noun, names in choices)
    raise UsageError(f"there are {len(found)} series: name {' and '.join(noun for noun, _ in choices)}", hint=said)


def _named(series: Sequence[ExtrapSeries], noun: str, wanted: str, names: Sequence[str]) -> list[ExtrapSeries]:
    found = [s for s, name in zip(series, names, strict=True) if name == wanted]
    if not found:
        raise UsageError(f"there is no {noun} {wanted!r}", hint=nearest(wanted, names, f"{noun}s"))
    return found
