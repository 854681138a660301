"""WHAT is measured: schema, loader and sweep expansion of specs, and the catalogue that ships with p4perf."""

from p4perf.specs.experiment import Experiment as Experiment
from p4perf.specs.experiment import load_experiment as load_experiment
from p4perf.specs.experiment import spec_hash as spec_hash
from p4perf.specs.loader import CatalogueEntry as CatalogueEntry
from p4perf.specs.loader import list_catalogue as list_catalogue
from p4perf.specs.metrics import METRICS as METRICS
from p4perf.specs.metrics import Metric as Metric
from p4perf.specs.points import Point as Point
from p4perf.specs.schema import ExperimentSpec as ExperimentSpec
from p4perf.specs.schema import MetricsSpec as MetricsSpec
from p4perf.specs.schema import ModelSpec as ModelSpec
from p4perf.specs.schema import SweepSpec as SweepSpec
from p4perf.specs.schema import TrialsSpec as TrialsSpec
from p4perf.specs.schema import json_schema as json_schema
from p4perf.specs.schema import json_schema_text as json_schema_text
from p4perf.specs.sections import CombinedSpec as CombinedSpec
from p4perf.specs.sections import FlowsSpec as FlowsSpec
from p4perf.specs.sections import FractionLoad as FractionLoad
from p4perf.specs.sections import ProgramSpec as ProgramSpec
from p4perf.specs.sections import RateLoad as RateLoad
from p4perf.specs.sections import TrafficSpec as TrafficSpec
from p4perf.specs.sections import VariantSpec as VariantSpec
from p4perf.specs.source import Scalar as Scalar
from p4perf.specs.units import parse_quantity as parse_quantity
from p4perf.specs.variants import active_variants as active_variants
from p4perf.specs.variants import describe_variants as describe_variants
