"""The parts of an experiment spec: metrics, traffic, program (Scholz 2021, section 2.1), device, sweep, trials, model.

These pydantic models are the border: what they accept is what a spec may say, and the JSON Schema for editors is made
from them. What goes across several parts (references, sizes) is checked when the experiment is put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, GetJsonSchemaHandler, StrictInt, WithJsonSchema
from pydantic import model_validator as checked
from pydantic_core import CoreSchema

from p4perf.plugins import GROUPS, plugin_names
from p4perf.specs import types as kinds
from p4perf.specs.grids import VariableSpec
from p4perf.specs.messages import nearest, quoted, validation_error
from p4perf.specs.metrics import LOAD_METRICS, METRICS, MODELLED_PATTERN, metric_named
from p4perf.specs.sections import CombinedSpec, MultiplexSpec, ProgramSpec, TrafficSpec, VariantSpec

IMPORTED = "imported"
"""The component of a run that was imported: what the program was is not known, and it cannot be generated."""

VARIANT = "variant"
"""The swept variable that holds the name of the variant, where a sweep multiplexes."""


RESERVED = frozenset(
    {
        *("point", "point_index", "repetition", "attempt", "metric", "value", "unit", "accepted", "rejected", "flags"),
        *("median", "low", "high", "n", "index", "memory_bytes", "generator", "file"),
    }
)
"""Names that variables may not have, because tables of results have columns of these names."""


def _known(noun: str, names: Callable[[], Collection[str]], supported: str = "known") -> AfterValidator:
    """Accept names that are known by then only."""

    def check(name: str) -> str:
        if name not in names():
            raise validation_error(f"unknown {noun} {quoted(name)}", hint=nearest(name, names(), supported))
        return name

    return AfterValidator(check)


class _MetricSchema:
    """The JSON Schema of the name of a registered metric, with ``modelled`` also of what one falls into.

    It is made when a schema is asked for: plug-ins that add metrics may import this module.
    """

    def __init__(self, *, modelled: bool = False) -> None:
        self._modelled = modelled

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> dict[str, Any]:
        if self._modelled:
            return {"anyOf": [{"enum": list(METRICS)}, {"type": "string", "pattern": MODELLED_PATTERN}]}
        return {"enum": list(METRICS), "type": "string"}


MetricName = Annotated[str, _known("metric", METRICS.keys, "supported"), _MetricSchema()]
"""The name of a metric that can be collected."""


class SourceSpec(kinds.Strict):
    """Where an experiment was published."""

    paper: str = Field(description="key of the paper, such as scholz2021")
    section: str | None = Field(None, description="section of the paper")
    figure: kinds.Whole | str | None = Field(None, description="figure of the paper")


class MetricsSpec(kinds.Strict):
    """What is measured. A target that cannot give a metric of ``collect`` refuses the experiment."""

    collect: tuple[MetricName, ...] = Field(
        ("cycles_per_packet", "packet_rate"), min_length=1, description="metrics that must be measured"
    )
    optional: tuple[MetricName, ...] = Field((), description="metrics measured if the target can")

    @checked(mode="after")
    def _once(self) -> MetricsSpec:
        kinds.check_once("metric", {("collect",): self.collect, ("optional",): self.optional})
        return self


class DeviceSpec(kinds.Strict):
    """Settings of the machine under test, where its testbed can make them."""

    cpu_frequency: kinds.FrequencyGhz | None = Field(
        None, description="frequency of the measuring core in GHz; default: unchanged"
    )


_GROUP: dict[str, Any] = {"type": "array", "items": kinds.WORD_SCHEMA}


class SweepSpec(kinds.Strict):
    """The swept variables and how they are combined: as a product, unless ``zip`` or ``multiplex`` say otherwise."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, VariableSpec] = Field(init=False)

    zip: Annotated[
        tuple[tuple[kinds.Word, ...], ...], WithJsonSchema({"anyOf": [_GROUP, {"type": "array", "items": _GROUP}]})
    ] = Field((), description="variables that advance together, such as [a, b]; or a list of such groups")
    filter: tuple[str, ...] = Field((), description='conditions that points must satisfy, such as "$writes <= $fields"')
    skip_impossible: bool = Field(
        False, strict=True, description="leave out impossible points, such as headers beyond the frame"
    )
    multiplex: MultiplexSpec = Field(
        default_factory=dict,
        description="variants of the section variants: a list of which all subsets are measured, or subsets_of, "
        "sizes, each_of; or a mapping of names to what they assign to the same variables, one after another",
    )

    @checked(mode="before")
    @classmethod
    def _readable(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        for name, values in data.items():
            if name not in cls.model_fields:
                kinds.check_word(name, (name,), key=True)
                if name in RESERVED:
                    raise validation_error(f"{name} is a column of the tables of results", path=(name,), key=True)
                if name == VARIANT:
                    raise validation_error(f"{VARIANT} is the name of the variant of multiplex", path=(name,), key=True)
                if isinstance(values, bool | int | float | str):
                    raise validation_error(
                        f"expected a list of values, got {quoted(values)}", path=(name,), hint="write [value]"
                    )
        groups = data.get("zip")
        if isinstance(groups, list | tuple) and groups and all(isinstance(item, str) for item in groups):
            data["zip"] = (tuple(groups),)
        return data

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables and their values (:data:`VariableSpec`), in the order of the spec."""
        return self.__pydantic_extra__

    @property
    def assigned(self) -> Mapping[str, Mapping[str, Any]]:
        """What the variants of ``multiplex`` assign, where it is a mapping of them."""
        return self.multiplex if isinstance(self.multiplex, dict) else {}

    @property
    def combined(self) -> CombinedSpec:
        """The variants of the section ``variants`` that are measured; none where there are none."""
        match self.multiplex:
            case CombinedSpec():
                return self.multiplex
            case tuple():
                return CombinedSpec(subsets_of=self.multiplex)
        return CombinedSpec.model_construct()


class TrialsSpec(kinds.Strict):
    """How often, how long and in which order the points are measured."""

    repetitions: StrictInt = Field(3, ge=1, le=1000, description="starts of the process for every point")
    duration_ms: kinds.DurationMs = Field(20.0, gt=0, description="counted time of the program in a trial, in ms")
    warmup_ms: kinds.DurationMs = Field(10.0, description="time before it that is not measured, in ms")
    interleave_baseline: bool = Field(True, strict=True, description="measure the baseline in every trial")
    order: Literal["random", "sequential"] = Field("random", description="order of the points")
    seed: StrictInt = Field(1, ge=0, le=2**63 - 1, description="random seed")
    mode: Literal["gated", "plain"] = Field(
        "gated", description="gated: windows between calibrations, for shared machines; plain: for an isolated core"
    )
    max_attempts: StrictInt = Field(5, ge=1, le=1000, description="attempts before a gated trial is given up")


class LoadSpec(kinds.Strict):
    """How load is offered and throughput searched, for metrics that need a load generator."""

    generator: kinds.Word | None = Field(
        None, description="load generator (p4perf list load-generators); default: that of the testbed, or native"
    )
    link: Literal["ring", "memif", "af-packet"] | None = Field(
        None, description="link between load generator and device; default: the fastest of the target"
    )
    slots: StrictInt = Field(1024, ge=32, le=32768, description="packets that the link holds in each direction")
    search: kinds.Word = Field("mlrsearch", description="how throughput is searched (p4perf list searches)")
    trial_ms: kinds.DurationMs = Field(200.0, ge=1, description="duration of a trial of the search, in ms")
    latency_ms: kinds.DurationMs = Field(400.0, ge=1, description="duration of a measurement of latency, in ms")
    width: float = Field(
        0.005, gt=0, le=0.5, description="the search ends when its bounds differ by this share of the upper one"
    )
    pdr_loss_ratio: float = Field(0.005, gt=0, lt=1, description="loss ratio of the partial drop rate")
    exceed_ratio: float = Field(
        0.75, ge=0, lt=1, description="share of the trials at a load that may lose more than that (MLRsearch)"
    )
    trials_per_load: StrictInt = Field(
        12, ge=1, le=1000, description="trials that decide on a load (MLRsearch); 1 is RFC 2544"
    )
    max_trials: StrictInt = Field(300, ge=4, le=10000, description="trials after which a search is given up")


def _modelled(name: str) -> str:
    if metric_named(name) is None:
        raise validation_error(f"unknown metric {quoted(name)}", hint=nearest(name, METRICS))
    return name


ModelledName = Annotated[str, AfterValidator(_modelled), _MetricSchema(modelled=True)]
"""The name of a metric that can be modelled."""


class ModelSpec(kinds.Strict):
    """The model that is fitted: ``y`` over ``x``, in segments."""

    x: kinds.Word | None = Field(None, description="swept variable; the only one if not given")
    y: ModelledName = Field("cycles_per_packet", description="metric that is modelled")
    x_scale: Literal["linear", "log"] = Field("linear", description="axis on which the points are evenly spaced")
    max_segments: StrictInt = Field(5, ge=1, le=6, description="largest number of segments")
    segments: kinds.Whole | None = Field(
        None, ge=1, le=6, description="number of segments; without it the number is chosen"
    )
    min_points: kinds.Whole | None = Field(None, ge=1, description="fewest points of a segment")
    error: Annotated[
        str,
        _known(GROUPS["p4perf.error_metrics"], lambda: plugin_names("p4perf.error_metrics")),
        WithJsonSchema({"type": "string"}),
    ] = Field("smape", description="error metric: smape, smape_pooled, mape, rmse, emd, or a plug-in")
    loss: Literal["auto", "squares", "l1"] = Field(
        "auto", description="what parameters minimise: squares, l1 (relative distances), or auto: l1 where needed"
    )
    split_finder: Annotated[
        Annotated[str, _known(GROUPS["p4perf.split_finders"], lambda: plugin_names("p4perf.split_finders"))] | None,
        WithJsonSchema({"type": ["string", "null"]}),
    ] = Field(None, description="dynamic, brute-force, second-derivative, savitzky-golay, or a plug-in")
    profile: Literal["exact", "scholz2021"] = Field(
        "exact", description="exact: the best fit; scholz2021: the rules of the paper, literally"
    )


class ExperimentSpec(kinds.Strict):
    """One experiment, complete: what is measured, with which traffic, on which program."""

    spec_version: Literal[1] = Field(1, description="version of this format")
    name: kinds.ExperimentName = Field(description="name, such as mat/exact-entries")
    title: str = Field("", description="one line for people")
    description: str = Field("", description="purpose of the experiment")
    source: SourceSpec | None = Field(None, description="where it was published")
    extends: str | None = Field(
        None, description="spec to start from: a name of the catalogue, or a file in the same folder (./base.yaml)"
    )
    metrics: MetricsSpec = MetricsSpec()
    traffic: TrafficSpec = TrafficSpec()
    program: ProgramSpec
    device: DeviceSpec = DeviceSpec()
    variants: dict[kinds.Word, VariantSpec] = Field(
        default_factory=dict, description="named changes, which can inherit from each other and which sweeps combine"
    )
    sweep: SweepSpec = SweepSpec()
    trials: TrialsSpec = TrialsSpec()
    load: LoadSpec = LoadSpec()
    model: ModelSpec | None = None

    @property
    def asks_load(self) -> bool:
        """Whether it needs a load generator, or would use one where there is one."""
        asked = {*self.metrics.collect, *self.metrics.optional}
        traffic = self.traffic
        return bool(asked & set(LOAD_METRICS)) or traffic.offered_load != "max" or traffic.replay is not None

    @property
    def variable(self) -> str | None:
        """The swept variable on the abscissa: the one that the model names, or the only one; None if there is none."""
        if self.model is not None and self.model.x is not None:
            return self.model.x
        variables = list(self.sweep.variables)
        return variables[0] if len(variables) == 1 and not self.sweep.combined.subsets_of else None

    @property
    def headline(self) -> str:
        """The modelled metric, or else the first that is collected."""
        return self.model.y if self.model is not None else self.metrics.collect[0]

    @checked(mode="after")
    def _modelled_metric_is_measured(self) -> ExperimentSpec:
        if self.model is None:
            return self
        measured = {*self.metrics.collect, *self.metrics.optional}
        y = self.model.y
        metric = metric_named(y)
        source = y if metric is None or metric.derived_from is None else metric.derived_from
        if not measured & {y, source}:
            missing = source if y not in METRICS else y
            raise validation_error(
                f"{y} is modelled but not measured", path=("model", "y"), hint=f"add {missing} to metrics.collect"
            )
        return self


SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

PARTIAL = ("ExperimentSpec", "ProgramSpec", "SourceSpec")
"""Parts of which a file may leave out keys that it inherits; the loader reports what is missing in the end."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a spec file."""
    schema = ExperimentSpec.model_json_schema()
    for name, part in {"ExperimentSpec": schema, **schema.get("$defs", {})}.items():
        if name in PARTIAL:
            part.pop("required", None)
    return {"$schema": SCHEMA_DIALECT, **schema, "title": "p4perf experiment"}


def json_schema_text() -> str:
    """The schema as the text of the file that ships with p4perf."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
