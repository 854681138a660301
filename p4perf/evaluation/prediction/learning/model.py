"""Measured programs, the cost model that follows from them, and the errors of predictions relative to them.

Components measured alone give the curves. Composed programs decide what components cost beside one another: every form
of :mod:`p4perf.models.program.interactions` is fitted to all of them but one, predicts that one, and so on; the form
with the smallest errors is taken, and its errors are the width of the intervals.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from p4perf.errors import DataError, UsageError
from p4perf.models.program.costs import LEVEL, TABLE, Calibration, CheckedProgram, CostModel, TableCache
from p4perf.models.program.curves import ComponentCosts, CostPoint
from p4perf.models.program.graph import Construct, Size, construct
from p4perf.models.program.interactions import (
    CACHED,
    DENSITIES,
    DENSITY,
    FORMS,
    Composition,
    Form,
    FormName,
    Layout,
    TableUse,
    fit_form,
)
from p4perf.plugins import load_plugin

if TYPE_CHECKING:
    import pandas as pd

    from p4perf.specs import Point


def relative_error(predicted: float, measured: float) -> float:
    """``(predicted - measured) / measured``: positive where the prediction is too high."""
    return (predicted - measured) / measured


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """Errors of several predictions; shares, not per cent.

    Args:
        median: of the absolute relative errors.
        bias: mean of the signed errors; positive where predictions are too high.
        coverage: share of programs inside of their intervals; None without intervals.
    """

    programs: int
    median: float
    p90: float
    largest: float
    bias: float
    coverage: float | None = None


def prediction_errors(
    predicted: Sequence[float], measured: Sequence[float], intervals: Sequence[tuple[float, float]] | None = None
) -> PredictionErrors:
    """Summarise errors.

    Args:
        predicted: cycles per packet, or any other unit.

    Raises:
        UsageError: there are no programs, or the sequences have different lengths.
    """
    if not predicted or len(predicted) != len(measured):
        raise UsageError("errors of predictions need as many predictions as measurements, and one at least")
    errors = np.asarray([relative_error(p, m) for p, m in zip(predicted, measured, strict=True)])
    inside = None
    if intervals is not None:
        inside = float(np.mean([low <= m <= high for (low, high), m in zip(intervals, measured, strict=True)]))
    absolute = np.abs(errors)
    return PredictionErrors(
        programs=len(errors),
        median=float(np.median(absolute)),
        p90=float(np.percentile(absolute, 90)),
        largest=float(absolute.max()),
        bias=float(errors.mean()),
        coverage=inside,
    )


CYCLES = "cycles_per_packet"
BASELINE = "baseline_cycles_per_packet"
MEMORY, CODE = "memory_bytes", "code_bytes"

LEAST_ERROR = 0.004
"""Standard error of a median over starts, relative to it, below which few starts that happen to agree say nothing."""

MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normally distributed values."""

Components = tuple[tuple[str, Mapping[str, Size]], ...]


@dataclass(frozen=True, slots=True)
class MeasuredProgram:
    """A program and its accepted starts.

    Args:
        starts: cycles per packet of every start.
        baselines: of the baseline beside it, in the same starts; empty where it was not measured.
        memory_bytes: of its tables and arrays, median over starts; None if it was not measured.
        code_bytes: of its machine code; None if it was not measured.
    """

    components: Components
    starts: tuple[float, ...]
    baselines: tuple[float, ...] = ()
    experiment: str = ""
    frame_bytes: int = 0
    memory_bytes: float | None = None
    code_bytes: float | None = None

    @property
    def cycles(self) -> float:
        return statistics.median(self.starts)

    @property
    def costs(self) -> tuple[float, ...]:
        """Cycles per packet over the baseline of the same start; over nothing where that was not measured."""
        if len(self.baselines) != len(self.starts):
            return self.starts
        return tuple(start - baseline for start, baseline in zip(self.starts, self.baselines, strict=True))

    @property
    def cost(self) -> float:
        """Cycles per packet over the baseline: the median over starts."""
        return statistics.median(self.costs)

    @property
    def error(self) -> float:
        least = LEAST_ERROR * self.cycles
        if len(self.starts) < 2:
            return 5 * least
        return max(MEDIAN_ERROR * statistics.stdev(self.costs) / math.sqrt(len(self.costs)), least)

    def over(self, baseline: float) -> float:
        """Cycles per packet on a given baseline.

        The packet source draws a key for every table, in the baseline beside a program too. What that takes is no part
        of the program, so programs are compared by what they cost over the baseline of their own start.
        """
        return baseline + self.cost if len(self.baselines) == len(self.starts) else self.cycles


def construct_of(name: str, parameters: Mapping[str, Size]) -> Construct:
    return construct("component", "", name=name, **parameters)


def measured_programs(
    table: pd.DataFrame, points: Sequence[Point], experiment: str = ""
) -> tuple[MeasuredProgram, ...]:
    """The programs of a tidy table of measurements, by point; those without an accepted start are out.

    Args:
        table: as in ``measurements.parquet`` of a run directory.

    Raises:
        DataError: the table has no cycles per packet.
    """
    rows = table[table["accepted"].astype(bool)]
    if not (rows["metric"] == CYCLES).any():
        raise DataError(f"the measurements have no accepted {CYCLES}", hint="p4perf show lists what there is")
    starts: dict[tuple[int, str], list[float]] = {}
    for index, metric, value in zip(rows["point_index"], rows["metric"], rows["value"], strict=True):
        if metric in (CYCLES, BASELINE, MEMORY, CODE):
            starts.setdefault((int(index), str(metric)), []).append(float(value))
    found = []
    for point in points:
        cycles = starts.get((point.index, CYCLES))
        if cycles:
            components = tuple((name, dict(parameters)) for name, parameters in point.components)
            baselines = tuple(starts.get((point.index, BASELINE), ()))
            sizes = (starts.get((point.index, metric)) for metric in (MEMORY, CODE))
            memory, code = (statistics.median(values) if values else None for values in sizes)
            found.append(
                MeasuredProgram(components, tuple(cycles), baselines, experiment, point.frame_size_bytes, memory, code)
            )
    return tuple(found)


INSIDE, BEYOND = 0.5, 5.0
"""Sizes of a table that fits into the second-level cache well, and of one most of which does not, in caches."""

MAPS: Mapping[str, Layout] = {"xdp": "bpf_map"}
"""Targets whose tables are not made as those of DPDK."""

REPRESENTATIVE = "composition/programs"
"""The experiment whose programs stand for all programs: its errors choose the form."""

FEW = 8
"""With fewer programs of an experiment, or of those with a table beyond the cache, all programs stand for them."""

FEWEST_COMPOSED = 6
"""With fewer composed programs nothing is learnt of composition: the model is the sum."""

SIMPLER = 0.9
"""A form has to have errors below this share of those of a simpler one."""

LARGEST = 0.15
"""Larger errors count as that: a program whose memory was disturbed must not decide about forms."""


def learn(
    programs: Sequence[MeasuredProgram],
    *,
    target: str,
    cache_bytes: Mapping[str, float] | None = None,
    machine: Mapping[str, str] | None = None,
    provenance: Mapping[str, Any] | None = None,
    form: FormName | None = None,
) -> CostModel:
    """Make the cost model of a target from programs that were measured on one machine.

    Args:
        programs: components alone and, for what they cost beside one another, composed programs.
        cache_bytes: sizes of the data caches of the core, as ``{"L1": ..., "L2": ...}``.
        form: what components cost beside one another; None: the one with the smallest errors.

    Raises:
        DataError: no component was measured alone, or frames have several sizes.
    """
    sizes = sorted({p.frame_bytes for p in programs})
    if len(sizes) > 1:
        raise DataError(
            f"the programs have frames of {', '.join(map(str, sizes))} B",
            hint="what is compared has to have frames of one size; the experiments composition/* have",
        )
    baseline, error = _baseline(programs)
    code = next((p.code_bytes for p in programs if _is_empty(p) and p.code_bytes is not None), None)
    components = _components(programs, baseline, error, code)
    model = CostModel(
        target=target,
        baseline=baseline,
        baseline_error=error,
        components=components,
        cache=_cache(components, cache_bytes, MAPS.get(target.partition(":")[0], "rte_hash")),
        frame_bytes=sizes[0] if sizes else 0,
        machine=dict(machine or {}),
        provenance=dict(provenance or {}),
        baseline_code_bytes=code,
    )
    composed = [p for p in programs if len(p.components) > 1 and _known(model, p)]
    return _composed(model, composed, form)


def _baseline(programs: Sequence[MeasuredProgram]) -> tuple[float, float]:
    empty = [p for p in programs if _is_empty(p)]
    starts = [start for p in empty for start in p.starts] or [b for p in programs for b in p.baselines]
    if not starts:
        raise DataError(
            "neither the empty program nor a baseline was measured", hint="composition/components has the empty program"
        )
    found = MeasuredProgram((), tuple(starts))
    return found.cycles, found.error


def _is_empty(program: MeasuredProgram) -> bool:
    """Whether it only forwards."""
    return all(name == "l2fwd" or _is_nothing(name, parameters) for name, parameters in program.components)


def _is_nothing(name: str, parameters: Mapping[str, Size]) -> bool:
    return name == "parser_headers" and parameters.get("headers") == 0


def _components(
    programs: Sequence[MeasuredProgram], baseline: float, baseline_error: float, baseline_code: float | None
) -> dict[str, ComponentCosts]:
    """Curves of all components that were measured alone."""
    points: dict[str, list[CostPoint]] = {}
    defaults: dict[str, dict[str, Size]] = {}
    for program in programs:
        if len(program.components) != 1 or program.components[0][0] == "l2fwd":
            continue
        name, parameters = program.components[0]
        if name not in defaults:
            defaults[name] = _defaults(name)
        error = math.hypot(program.error, baseline_error)
        cycles = 0.0 if _is_nothing(name, parameters) else program.over(baseline) - baseline
        code = None
        if program.code_bytes is not None and baseline_code is not None:
            code = program.code_bytes - baseline_code
        whole = {**defaults[name], **parameters}
        points.setdefault(name, []).append(CostPoint(whole, cycles, error, program.memory_bytes, code))
    if not points:
        raise DataError("no component was measured alone", hint="measure composition/components")
    for name, found in points.items():
        named = sorted({key for point in found for key in point.parameters})
        for point in found:
            if missing := [key for key in named if key not in point.parameters]:
                raise DataError(f"component {name} was measured with and without {', '.join(missing)}")
    return {name: ComponentCosts(name, defaults[name], tuple(found)) for name, found in points.items()}


def _defaults(name: str) -> dict[str, Size]:
    fields = load_plugin("p4perf.components", name).Parameters.model_fields
    return {key: field.default for key, field in fields.items() if not field.is_required()}


def _cache(
    components: Mapping[str, ComponentCosts], cache_bytes: Mapping[str, float] | None, layout: Layout
) -> TableCache | None:
    sizes = dict(cache_bytes or {})
    if "L1" not in sizes or "L2" not in sizes or TABLE not in components:
        return None
    far = float(sizes["L2"])
    many = 1e6
    entry_bytes = TableUse(many, layout=layout).size_bytes / many
    cache = TableCache(far, INSIDE * far / entry_bytes, BEYOND * far / entry_bytes, float(sizes["L1"]), layout)
    span = components[TABLE].span("entries")
    return cache if span is not None and span[0] < cache.inside and span[1] > cache.inside else None


def _known(model: CostModel, program: MeasuredProgram) -> bool:
    return all(model.charge(construct_of(*component)).basis != "unknown" for component in program.components)


def _composed(model: CostModel, programs: Sequence[MeasuredProgram], form: FormName | None) -> CostModel:
    """The model with what composed programs say of interactions."""
    if not programs:
        return model if form is None else replace(model, form=Form(form))
    compositions = []
    for program in programs:
        met = [(construct_of(*component), 1.0) for component in program.components]
        compositions.append(model.composition(met, [model.charge(what) for what, _ in met]))
    chosen = [n for n, p in enumerate(programs) if p.experiment == REPRESENTATIVE]
    judged = chosen if len(chosen) >= FEW else list(range(len(programs)))
    cycles = [p.over(model.baseline) for p in programs]
    name, density, errors = _choose(compositions, cycles, judged, form)
    fitted = fit_form(name, compositions, cycles, density)
    checked = [CheckedProgram(programs[n].components, cycles[n], cycles[n] * (1 + errors[n])) for n in judged]
    beyond = [c.shared_misses >= CACHED for c in compositions]
    calibration = Calibration(
        programs=len(programs),
        components=max(len(p.components) for p in programs),
        tables=max(c.tables for c in compositions),
        misses=max(c.shared_misses for c in compositions),
        cycles=max(cycles),
        cached=_half_width([e for e, b in zip(errors, beyond, strict=True) if not b], errors),
        beyond=_half_width([e for e, b in zip(errors, beyond, strict=True) if b], errors),
    )
    return replace(model, form=fitted, checked=tuple(checked), calibration=calibration)


def _choose(
    compositions: Sequence[Composition], cycles: Sequence[float], judged: Sequence[int], form: FormName | None
) -> tuple[FormName, float, list[float]]:
    """The form with the smallest errors of the judged programs, its density, and the errors of all programs."""

    def size(errors: Sequence[float]) -> float:
        return float(np.mean(np.minimum(np.abs([errors[n] for n in judged]), LARGEST)))

    name, density = form or "sum", DENSITY
    errors = _left_out(name, compositions, cycles, density)
    if form is None and len(compositions) < FEWEST_COMPOSED:
        return name, density, errors
    misses = any(c.shared_misses >= CACHED for c in compositions)
    for other in FORMS[1:] if form is None else (form,):
        for dense in DENSITIES if other.startswith("spacing") and misses else (DENSITY,):
            if other.startswith("spacing") and not misses:
                continue
            found = _left_out(other, compositions, cycles, dense)
            if size(found) < SIMPLER * size(errors):
                name, density, errors = other, dense, found
    return name, density, errors


def _left_out(
    name: FormName, compositions: Sequence[Composition], cycles: Sequence[float], density: float
) -> list[float]:
    """Relative errors of programs, each predicted by a form that was fitted without it."""
    errors = []
    for n, measured in enumerate(cycles):
        rest = [k for k in range(len(cycles)) if k != n]
        form = fit_form(name, [compositions[k] for k in rest], [cycles[k] for k in rest], density)
        errors.append(relative_error(form.total(compositions[n]), measured))
    return errors


def _half_width(errors: Sequence[float], all_errors: Sequence[float]) -> float:
    """The relative half width for programs of a kind: that of their own errors, and half of that of all at least."""
    pooled = _covering(all_errors)
    return max(_covering(errors), pooled / 2) if len(errors) >= FEW else pooled


def _covering(errors: Sequence[float]) -> float:
    """The relative half width that covers a new program with 90 % (split conformal prediction, Lei et al. 2018)."""
    used = sorted(abs(e) for e in errors)
    rank = min(math.ceil(LEVEL * (len(used) + 1)), len(used))
    return used[rank - 1]
