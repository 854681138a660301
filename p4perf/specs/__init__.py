"""WHAT is measured: schema, loader and sweep expansion of experiment specs, and the catalogue that ships with p4perf.

Everything that other rooms need is here; the modules below are the room's own business.
"""

from p4perf.specs.experiment import Experiment, load_experiment, spec_hash
from p4perf.specs.loader import CatalogueEntry, list_catalogue
from p4perf.specs.metrics import METRICS, Metric, MetricName
from p4perf.specs.points import Point
from p4perf.specs.schema import (
    ExperimentSpec,
    MetricsSpec,
    ModelSpec,
    SweepSpec,
    TrialsSpec,
    json_schema,
    json_schema_text,
)
from p4perf.specs.sections import CombinedSpec, FlowsSpec, FractionLoad, ProgramSpec, RateLoad, TrafficSpec, VariantSpec
from p4perf.specs.source import Scalar
from p4perf.specs.units import format_quantity, parse_quantity
from p4perf.specs.variants import active_variants, describe_variants

__all__ = [
    "METRICS",
    "CatalogueEntry",
    "CombinedSpec",
    "Experiment",
    "ExperimentSpec",
    "FlowsSpec",
    "FractionLoad",
    "Metric",
    "MetricName",
    "MetricsSpec",
    "ModelSpec",
    "Point",
    "ProgramSpec",
    "RateLoad",
    "Scalar",
    "SweepSpec",
    "TrafficSpec",
    "TrialsSpec",
    "VariantSpec",
    "active_variants",
    "describe_variants",
    "format_quantity",
    "json_schema",
    "json_schema_text",
    "list_catalogue",
    "load_experiment",
    "parse_quantity",
    "spec_hash",
]
