"""WHAT is measured: schema, loader and sweep expansion of specs, and the catalogue that ships with p4perf."""

from p4perf.specs.experiment import Experiment as Experiment
from p4perf.specs.experiment import load_experiment as load_experiment
from p4perf.specs.loader import list_catalogue as list_catalogue
from p4perf.specs.metrics import METRICS as METRICS
from p4perf.specs.points import Point as Point
from p4perf.specs.schema import ExperimentSpec as ExperimentSpec
from p4perf.specs.schema import ModelSpec as ModelSpec
from p4perf.specs.schema import json_schema as json_schema
from p4perf.specs.schema import json_schema_text as json_schema_text
from p4perf.specs.sections import FractionLoad as FractionLoad
from p4perf.specs.sections import RateLoad as RateLoad
from p4perf.specs.variants import active_variants as active_variants
from p4perf.specs.variants import describe_variants as describe_variants
