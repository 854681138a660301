"""A series of samples with its labels, and what became of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from p4perf.errors import ExitCode, P4PerfError
from p4perf.evaluation.fitting.component import DerivedModel, derive_model
from p4perf.evaluation.fitting.options import FitOptions
from p4perf.models.component import ComponentModel, Scale
from p4perf.results.table import Samples
from p4perf.version import __version__


def label_text(labels: Mapping[str, str]) -> str:
    """Labels for people: ``target=dpdk-c, metric=cycles``."""
    return ", ".join(f"{name}={value}" for name, value in labels.items())


@dataclass(frozen=True)
class NamedSamples:
    """One of many series.

    Args:
        labels: what distinguishes it from the others, such as ``{"target": "dpdk-c", "metric": "cycles"}``.
        samples: the measurements, or why they cannot be used; then that is the result.
        provenance: further facts to store in the model, as JSON values.
    """

    labels: Mapping[str, str]
    samples: Samples | P4PerfError
    name: str = ""
    target: str = ""
    x_scale: Scale = "linear"
    x_unit: str = ""
    options: FitOptions | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model_name(self) -> str:
        return self.name or " / ".join(self.labels.values())


@dataclass(frozen=True)
class SeriesResult:
    """What became of one series: a model, or a failure.

    Args:
        exit_code: the kind of the failure; ``UNAVAILABLE`` if the processes that worked on the series died.
    """

    labels: Mapping[str, str]
    derived: DerivedModel | None = None
    failure: str = ""
    exit_code: ExitCode = ExitCode.OK

    @property
    def model(self) -> ComponentModel | None:
        return None if self.derived is None else self.derived.model

    @classmethod
    def failed(cls, labels: Mapping[str, str], error: BaseException) -> SeriesResult:
        if isinstance(error, P4PerfError):
            return cls(labels, failure=str(error), exit_code=error.exit_code)
        text = f"this is a defect of p4perf or of a plug-in: {type(error).__name__}: {error}"
        return cls(labels, failure=text, exit_code=ExitCode.INTERNAL)


def fit_series(series: NamedSamples, options: FitOptions) -> SeriesResult:
    """Derive the model of one series. Whatever fails becomes the failure of this series."""
    if isinstance(series.samples, P4PerfError):
        return SeriesResult.failed(series.labels, series.samples)
    own = options if series.options is None else replace(series.options, threads=options.threads)
    try:
        derived = derive_model(
            series.samples,
            name=series.model_name,
            target=series.target,
            x_scale=series.x_scale,
            x_unit=series.x_unit,
            options=own,
            provenance=series.provenance,
        )
    except Exception as error:
        return SeriesResult.failed(series.labels, error)
    return SeriesResult(series.labels, derived)


def fingerprint(series: NamedSamples, options: FitOptions) -> str:
    """A hash of everything that the model of a series depends on.

    That is: the samples, names, units, options and the version of p4perf, but not the number of threads.
    """
    samples = series.samples
    record = {
        "version": __version__,
        "labels": list(series.labels.items()),
        "samples": repr(samples),
        "named": [series.model_name, series.target, series.x_scale, series.x_unit],
        "options": repr(replace(series.options or options, threads=None)),
    }
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:32]
