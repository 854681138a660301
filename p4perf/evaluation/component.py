"""From the measurements of a sweep to the model of a component, in one call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

import p4perf
from p4perf.errors import UsageError
from p4perf.evaluation.derivation import Derivation, Profile, derive
from p4perf.evaluation.statistics import LEVEL, SEED, Samples
from p4perf.evaluation.uncertainty import RESAMPLES, bootstrap
from p4perf.models.component import ComponentModel, Quantity, Scale
from p4perf.models.templates import Template


def derive_model(
    measurements: pd.DataFrame | Samples,
    *,
    x: str | None = None,
    y: str = "cycles_per_packet",
    name: str = "",
    target: str = "",
    x_scale: Scale = "linear",
    x_unit: str = "",
    max_parts: int = 2,
    parts: int | None = None,
    error: str = "smape",
    profile: Profile = "exact",
    min_points: int | None = None,
    templates: Sequence[Template] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    provenance: Mapping[str, Any] | None = None,
) -> ComponentModel:
    """Medians, best piecewise curve and its uncertainty for a sweep of one variable.

    Args:
        measurements: the tidy table, or samples of any origin.
        x: the swept variable; needed with a table.
        y: the metric; with a table only.
        name: what was measured.
        target: where.
        x_scale: how x is drawn.
        x_unit: unit of x.
        max_parts: largest number of parts.
        parts: this number of parts.
        error: error metric.
        profile: ``exact`` or ``scholz2021``.
        min_points: smallest number of points of a part.
        templates: function templates.
        level: coverage of the intervals.
        resamples: bootstrap resamples; 0 leaves the uncertainty out.
        seed: seed of the bootstrap.
        provenance: further facts to store; what the derivation did is added.

    Raises:
        UsageError: an option is wrong, or more than one variable varies.
        DataError: the measurements cannot be used.
        NoVerdictError: no row was accepted.
    """
    if isinstance(measurements, Samples):
        samples = measurements
    elif x is None:
        raise UsageError("a table of measurements needs the name of the swept variable x")
    else:
        samples = Samples.from_measurements(measurements, y, x)
    derivation = derive(
        samples.x,
        samples.medians(),
        max_parts=max_parts,
        parts=parts,
        error=error,
        profile=profile,
        min_points=min_points,
        templates=templates,
    )
    uncertainty = None
    if resamples > 0:
        uncertainty = bootstrap(samples, derivation.best, error=error, level=level, resamples=resamples, seed=seed)
    return ComponentModel(
        name=name,
        target=target,
        x=Quantity(samples.x_name, x_unit, x_scale),
        y=Quantity(samples.y_name, samples.y_unit),
        fitting=derivation.best,
        error=derivation.error,
        uncertainty=uncertainty,
        provenance={**(provenance or {}), **derivation_facts(derivation, samples)},
    )


def derivation_facts(derivation: Derivation, samples: Samples) -> dict[str, Any]:
    """What the derivation did, as JSON values: settings, every number of parts, and what was left out."""
    candidates = [
        {
            "parts": len(fitting.parts),
            "error": fitting.error,
            "rank": fitting.rank,
            "splits": list(fitting.splits),
            "split_x": list(fitting.split_x),
            "templates": [part.template.name for part in fitting.parts],
            "criteria": {name: value if math.isfinite(value) else None for name, value in asdict(judged).items()},
        }
        for fitting, judged in zip(derivation.fittings, derivation.criteria, strict=True)
    ]
    return {
        "derivation": {
            "p4perf_version": p4perf.__version__,
            "profile": derivation.profile,
            **dict(derivation.settings),
            "candidates": candidates,
            "points": len(samples.x),
            "repetitions": [min(map(len, samples.values)), max(map(len, samples.values))],
            "points_without_accepted_rows": list(samples.missing),
        }
    }
