"""From the measurements of a sweep to the model of a component, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.derivation import Derivation, FitOptions, derive
from p4perf.evaluation.fitting.error_metrics import error_text
from p4perf.evaluation.fitting.remarks import remarks
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.evaluation.fitting.tables import model_frame, model_html, model_rows
from p4perf.evaluation.fitting.uncertainty import bootstrap
from p4perf.evaluation.fitting.working_set import CacheMark, Explanation
from p4perf.models.component import (
    ComponentModel,
    CurveEstimate,
    Fitting,
    PiecewiseFitting,
    Quantity,
    Scale,
    Uncertainty,
)
from p4perf.models.templates import FloatArray, find_template, registered_templates
from p4perf.results.table import Samples
from p4perf.specs.messages import nearest
from p4perf.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from p4perf.evaluation.plots import PlotInfo


@dataclass(frozen=True, repr=False)
class DerivedModel:
    """A model, what it was derived from, and what to know before using it. In a notebook it shows itself.

    ``explanations`` say where its breakpoints may come from (empty if that is unknown); ``plots`` are files.
    """

    model: ComponentModel
    derivation: Derivation
    samples: Samples
    remarks: tuple[str, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    plots: tuple[Path, ...] = ()

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        return self.model.evaluate(x)

    def estimate(self, x: npt.ArrayLike) -> CurveEstimate:
        """Values at x with the ends of their intervals, in units of y; see :meth:`ComponentModel.estimate`.

        >>> import p4perf
        >>> found = p4perf.fit([1, 2, 3, 4], [5.0, 7.1, 8.9, 11.0]).estimate([2.5, 100])
        >>> found.value.round(1).tolist(), found.extrapolated.tolist()
        ([8.0, 201.1], [False, True])
        >>> bool((found.low <= found.value).all() and (found.value <= found.high).all())
        True
        """
        return self.model.estimate(x)

    @override
    def __str__(self) -> str:
        return "\n".join(
            f"{row.start:g} .. {row.end:g}: {row.formula} ({error_text(self.model.error, row.error)})"
            for row in model_rows(self.model)
        )

    @override
    def __repr__(self) -> str:
        return repr(self.model).replace("ComponentModel", "DerivedModel")

    @property
    def segments(self) -> tuple[Fitting, ...]:
        return self.model.segments

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """First x of each segment but the first."""
        return self.model.breakpoints

    @property
    def missing(self) -> tuple[float, ...]:
        """Values of x without an accepted trial."""
        return self.samples.missing

    def to_frame(self) -> pd.DataFrame:
        return model_frame(self.model)

    def plot(self) -> Figure:
        from p4perf.evaluation.plots import model_figure

        return model_figure(self.model, self.samples)

    def plot_residuals(self) -> Figure:
        from p4perf.evaluation.plots import residual_figure

        return residual_figure(self.model, self.samples)

    def plot_segments(self) -> Figure:
        from p4perf.evaluation.plots import segments_overview

        return segments_overview(self.model, self.derivation, self.samples)

    def draw(
        self,
        place: Callable[[str], Path],
        stem: str,
        info: PlotInfo,
        *,
        marks: Sequence[CacheMark] = (),
        baseline: float | None = None,
        every: bool = False,
    ) -> tuple[Path, ...]:
        """Write the model, its residuals and all numbers of segments as SVG and PNG: ``STEM-segments.png`` ...

        With ``every``, a figure of its own for every number of segments as well: ``STEM-2-segments.svg``.
        """
        from p4perf.evaluation import plots

        model, derivation, samples = self.model, self.derivation, self.samples
        figures = {
            "": plots.model_figure(model, samples, marks=marks, info=info, baseline=baseline),
            "-residuals": plots.residual_figure(model, samples, info=info),
            "-segments": plots.segments_overview(model, derivation, samples, info=info),
        }
        if every:
            own = plots.segment_figures(model, derivation, samples, marks=marks, baseline=baseline, info=info)
            figures |= {f"-{segments}-segments": figure for segments, figure in own.items()}
        return tuple(path for name, figure in figures.items() for path in plots.save(figure, place, f"{stem}{name}"))

    def _repr_html_(self) -> str:
        from p4perf.evaluation.plots.style import picture

        return picture(self.plot()) + model_html(self.model)


def derive_model(
    measurements: pd.DataFrame | Samples,
    *,
    x: str | None = None,
    y: str = "cycles_per_packet",
    name: str = "",
    target: str = "",
    x_scale: Scale = "linear",
    x_unit: str = "",
    options: FitOptions | None = None,
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[float], Any] | None = None,
) -> DerivedModel:
    """Medians, best piecewise curve and its uncertainty for a sweep of one variable.

    Args:
        x_scale: how x is drawn; split finders look at it this way.
        provenance: further facts to store; what the derivation did is added.

    Raises:
        UsageError: an option is wrong, or more than one variable varies.
        DataError: the measurements cannot be used.
        NoVerdictError: no row was accepted.
    """
    options = options or FitOptions()
    if isinstance(measurements, Samples):
        samples = measurements
    elif x is None:
        raise UsageError("a table of measurements needs the name of the swept variable x")
    else:
        samples = Samples.from_measurements(measurements, y, x)
    clean = samples.without_traces()
    derivation = derive(
        clean.x, clean.medians(), options, log_x=x_scale == "log", repetitions=clean.values, progress=progress
    )
    counted = clean.without(derivation.outliers)
    settled = replace(options, loss=derivation.loss, floor=derivation.floor)
    model = ComponentModel(
        name=name,
        target=target,
        x=Quantity(samples.x_name, x_unit, x_scale),
        y=Quantity(samples.y_name, samples.y_unit),
        fitting=derivation.best,
        error=derivation.error,
        uncertainty=uncertainty(counted, derivation.best, settled),
        provenance={**(provenance or {}), **derivation_facts(derivation, counted)},
    )
    return DerivedModel(model, derivation, samples, remarks(model, derivation, counted, options))


def fit(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_name: str = "x",
    y_name: str = "y",
    x_unit: str = "",
    y_unit: str = "",
    x_scale: Scale = "linear",
    name: str = "",
    target: str = "",
    **options: Any,
) -> DerivedModel:
    """The model of two columns of numbers, several with the same x as repetitions. See :func:`p4perf.fit`."""
    chosen = known_options(options)
    samples = Samples.from_arrays(x, y, x_name=x_name, y_name=y_name, y_unit=y_unit)
    return derive_model(samples, name=name, target=target, x_scale=x_scale, x_unit=x_unit, options=chosen)


def known_options(options: Mapping[str, Any]) -> FitOptions:
    """The fit options of keyword arguments, of templates their names, too; a UsageError if there is no such option."""
    known = [f.name for f in fields(FitOptions)]
    for option in options:
        if option not in known:
            raise UsageError(f"there is no option {option!r}", hint=nearest(option, known, "options"))
    if templates := options.get("templates"):
        several = [templates] if isinstance(templates, str) else templates
        options = {**options, "templates": tuple(find_template(t) if isinstance(t, str) else t for t in several)}
    for option, value in options.items():
        kinds, what = (int, "a whole number") if option in _WHOLE else (float | int, "a number")
        if option in (*_WHOLE, *_NUMBERS) and value is not None and not isinstance(value, kinds):
            raise UsageError(f"{option}: expected {what}, got {value!r:.60}")
    chosen = FitOptions(**options)
    chosen.check()
    return chosen


_WHOLE = ("max_segments", "segments", "min_points", "threads", "resamples", "seed")
_NUMBERS = ("floor", "kappa", "kappa_rel", "gamma", "level")


def uncertainty(samples: Samples, fitting: PiecewiseFitting, options: FitOptions) -> Uncertainty | None:
    """Intervals of a curve that was derived with these options, or None if no resamples are wanted.

    In the profile scholz2021 segments keep their templates: its choice depends on an order, not on the data alone.
    """
    if options.resamples <= 0:
        return None
    templates = options.templates or registered_templates()
    return bootstrap(
        samples,
        fitting,
        error=options.error,
        templates=templates if options.profile == "exact" else None,
        rule=ExactRule(options.kappa, options.kappa_rel),
        robust=options.loss == "l1",
        floor=options.floor or 0.0,
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )


def derivation_facts(derivation: Derivation, samples: Samples) -> dict[str, Any]:
    """What the derivation did, as JSON values: settings, every number of segments, and what was left out."""
    candidates = [
        {
            "segments": len(fitting.segments),
            "error": fitting.error,
            "rank": fitting.rank,
            "breakpoints": list(fitting.breakpoints),
            "breakpoint_x": list(fitting.breakpoint_x),
            "templates": [segment.template.name for segment in fitting.segments],
            "criteria": {name: value if math.isfinite(value) else None for name, value in asdict(judged).items()},
        }
        for fitting, judged in zip(derivation.fittings, derivation.criteria, strict=True)
    ]
    return {
        "derivation": {
            "p4perf_version": __version__,
            "profile": derivation.profile,
            **dict(derivation.settings),
            "candidates": candidates,
            "points": len(samples.x),
            "repetitions": [min(map(len, samples.values)), max(map(len, samples.values))],
            "points_without_accepted_rows": list(samples.missing),
            "outliers": list(derivation.outliers),
        }
    }
