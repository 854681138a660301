"""Functions of published methods: estimates of costs, placement, latency and throughput, and analyses of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from p4perf.api import arguments as given
from p4perf.api.arguments import Changes, Count, PathLike, Runs, Texts, checked
from p4perf.errors import UsageError
from p4perf.evaluation.fitting.datafiles import read_csv
from p4perf.evaluation.load.queue_sources import Law, arrival_law, choose_step_us, parse_time_us, service_law
from p4perf.evaluation.load.queueing import MeasuredLoad, Mode, OperatingPoint, System, operating_points, read_measured
from p4perf.evaluation.papers.baldi2018 import function_names, load_function, load_hardware
from p4perf.evaluation.papers.baldi2018.files import SUFFIXES, is_function_file
from p4perf.evaluation.papers.gebert2016 import printed_result
from p4perf.evaluation.papers.ren2025 import OpqAnalysis, OpqOptions, Threshold, analyse, load_platforms
from p4perf.evaluation.papers.ren2025.analysis import DEFAULT_CONTRAST
from p4perf.evaluation.papers.takeya2024 import cesim
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, factorial_from_csv
from p4perf.evaluation.papers.takeya2024.factors import analyse as analyse_factorial
from p4perf.evaluation.prediction.operations import derive
from p4perf.experiment import point_workload
from p4perf.experiment.factors import factors_document, run_factorial
from p4perf.experiment.opq import opq_document, read_platforms
from p4perf.models.eo import Demand, Hardware, Host, NetworkFunction, RateEstimate, estimate, parse_expression, place
from p4perf.models.queue import ModeratedQueue
from p4perf.models.queue.moderated import Tuned
from p4perf.models.queue.moderated import tune as best_interval
from p4perf.records import Document, Record, Tabular, as_rows, doc
from p4perf.results import Run, find_run
from p4perf.specs import Experiment
from p4perf.specs.loader import catalogue_names
from p4perf.specs.messages import nearest
from p4perf.specs.units import parse_quantity, positive_quantity


@dataclass(frozen=True, repr=False)
class OperationEstimates(Tabular):
    """What functions cost on a machine; of an experiment, each of its points."""

    machine: Hardware
    functions: tuple[NetworkFunction, ...]
    estimates: tuple[RateEstimate, ...]
    experiment: Experiment | None = None

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        values = [point.values for point in self.experiment.points] if self.experiment else [{}]
        names = ("mpps_per_core", "mpps", "gbps", "bound")
        rows = zip(values, self.estimates, strict=True)
        return [{**v, "cycles": e.breakdown.cycles.value, **{n: getattr(e, n) for n in names}} for v, e in rows]


@checked
def estimate_eo(
    functions: Texts,
    hardware: str,
    *,
    profile: str | None = None,
    frame_size: Count | None = None,
    cores: Count = 1,
    remote: float = 0.0,
    symbols: Changes = (),
    keep_io: bool = False,
    set: Changes = (),
    points: Count | None = None,
) -> OperationEstimates:
    """Estimate network functions in sequence, or every point of an experiment, from elementary operations.

    Args:
        functions: names (``switch/basic``) or files, or one experiment.
        hardware: a name of the catalogue, or a file.
        remote: share of packets that the NIC places in another socket's cache.
        symbols: values of the symbols of functions, such as ``{"ps": 1000}``.
        keep_io: each of several functions receives and sends.
    """
    machine = load_hardware(hardware, profile)
    values = {name: parse_expression(value).value({}) for name, value in given.pairs(symbols, "--symbol")}
    options: dict[str, Any] = {"cores": cores, "remote": remote, "keep_io": keep_io, "symbols": values}
    names = given.listed(functions)
    found = _functions(names, bool(set) or points is not None)
    if found is not None:
        return OperationEstimates(machine, tuple(found), (estimate(found, machine, frame_bytes=frame_size, **options),))
    if values:
        raise UsageError("an experiment has no symbols", hint="--set changes its parameters")
    if frame_size is not None:
        raise UsageError("an experiment has frame sizes of its own", hint=f"--set traffic.frame_size={frame_size}")
    experiment = given.experiment(names[0], set, points)
    derived = [derive(*point_workload(experiment, p), name=experiment.spec.name) for p in experiment.points]
    estimates = tuple(estimate([function], machine, **options) for function in derived)
    return OperationEstimates(machine, tuple(derived), estimates, experiment)


def _functions(names: Sequence[str], as_spec: bool) -> list[NetworkFunction] | None:
    """The functions of these names; None if there is one, which is an experiment."""
    known = function_names()
    if len(names) == 1 and names[0] not in known:
        name = names[0]
        if name in catalogue_names():
            return None
        if not name.endswith(SUFFIXES):
            hint = nearest(name, [*known, *catalogue_names()], "functions")
            raise UsageError(f"there is no function and no experiment {name!r}", hint=hint)
        if Path(name).is_file() and not is_function_file(Path(name)):
            return None
    if as_spec:
        raise UsageError("--set and --points are for experiments", hint="--symbol changes a symbol of a function")
    return [load_function(name) for name in names]


class _Need(Record):
    function: str = doc("a function, or several joined by `+`", of="demand.name")
    load_mpps: float = doc("its load", "Mpps", of="demand.load_mpps")
    mpps_per_core: float = doc("rate of one core", "Mpps", of="estimate.mpps_per_core")
    cores: float = doc("cores that it takes")
    cycles: float = doc("core cycles", "cycles/packet", of="estimate.breakdown.cycles.value")
    dram_accesses: float = doc("accesses missing all caches", "accesses/packet", of="estimate.breakdown.dram_accesses")


class _PlaceRow(Record):
    host: str = doc("the host as it was given", of="host.name")
    possible: bool = doc("whether it can run everything at once")
    bound: str = doc(
        "the resource that is taken most: `cpu`, `memory`, `link` or `capacity` (of memory); `unknown` if an operation "
        "has no rule there"
    )
    cores: int = doc("free cores", of="host.cores")
    cores_needed: float | None = doc("cores that it takes; null if that is not known")
    use: dict[str, Any] = doc("share of each resource that is taken", "ratio")
    reason: str = doc("why it cannot, for people; empty if it can")
    needs: tuple[_Need, ...] = doc("")


class PlaceDocument(Document, kind="place"):
    """`p4perf estimate place FUNCTION=LOAD...`: one row for each host."""

    share_cores: bool = doc("whether a core may run several functions")
    rows: tuple[_PlaceRow, ...] = doc("")


@checked
def estimate_place(
    demands: Changes,
    hosts: Texts,
    *,
    profile: str | None = None,
    frame_size: Count | None = None,
    remote: float = 0.0,
    share_cores: bool = False,
) -> PlaceDocument:
    """Find out which hosts can run all functions at once: a verdict for each host.

    Args:
        demands: functions with their loads, such as ``{"switch/basic": "5Mpps"}``; chains as ``a+b``.
        hosts: names or files of machines, with free cores as in ``NAME:4``.
    """
    wanted = [_demand(text, frame_size, remote) for text in given.texts(demands)]
    verdicts = place([_host(text, profile) for text in given.listed(hosts)], wanted, share_cores=share_cores)
    rows = (_PlaceRow.read(v, cores_needed=sum(n.cores for n in v.needs) if v.needs else None) for v in verdicts)
    return PlaceDocument(share_cores=share_cores, rows=tuple(rows))


def _demand(text: str, frame_size: int | None, remote: float) -> Demand:
    names, equals, amount = text.rpartition("=")
    if not equals:
        raise UsageError(f"{text}: expected FUNCTION=LOAD", hint="for example switch/basic=5Mpps")
    functions = tuple(load_function(name.strip()) for name in names.split("+"))
    return Demand(names, functions, float(parse_quantity(amount, "packet rate")) / 1e6, frame_size, remote)


def _host(text: str, profile: str | None) -> Host:
    name, colon, amount = text.rpartition(":")
    if not colon or not re.fullmatch("[0-9]{1,9}", amount):
        name, amount = text, ""
    machine = load_hardware(name, profile)
    cores = int(amount) if amount else machine.total_cores
    if not 1 <= cores <= machine.total_cores:
        raise UsageError(f"--host {text}: {machine.name} has {machine.total_cores} cores, not {cores}")
    return Host(text, machine, cores)


DEFAULT_MODERATION = "100us"


@dataclass(frozen=True, repr=False)
class QueueEstimate(Tabular):
    """Operating points of a system, or the best moderation intervals, and what was measured at its loads."""

    system: System
    arrivals: tuple[Law, ...]
    moderations_us: tuple[float, ...]
    measured: tuple[MeasuredLoad, ...]
    points: tuple[OperatingPoint, ...] = ()
    tuned: tuple[Tuned, ...] = ()

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        if self.tuned:
            return [
                _tuned_row(law, found, self.system.step_us)
                for law, found in zip(self.arrivals, self.tuned, strict=True)
            ]
        rows = [point.row() for point in self.points]
        for row, point in zip(rows, self.points, strict=True):
            for known in self.measured:
                if abs(known.rate_mpps / point.rate_mpps - 1) < 1e-6:
                    row |= known.row()
        return rows


def _tuned_row(law: Law, found: Tuned, step_us: float) -> dict[str, Any]:
    result = found.result
    return {
        "arrivals": law.text or law.kind,
        "rate_mpps": 1 / law.mean_us,
        "moderation_us": found.moderation * step_us,
        "objective_us": found.objective_us,
        "mean_us": result.mean_us,
        "p99_us": result.quantile_us(0.99),
        "loss": result.loss,
        "load": result.load,
        "tried": len(found.tried),
    }


@checked
def estimate_queue(
    service: str,
    *,
    arrivals: Texts = (),
    rates: Texts = (),
    mode: Mode = "moderated",
    moderations: Texts = (),
    overhead: str = "0us",
    buffer: str = "none",
    batch_cost: str = "0us",
    idle_cost: str = "0us",
    ring: Count = 1024,
    burst: Count = 32,
    empty_poll: str | None = None,
    lattice: str | None = None,
    frequency: str | None = None,
    profile: Literal["exact", "printed"] = "exact",
    check: bool = False,
    simulate: int = 0,
    seed: int = 1,
    tune: str | None = None,
    max_loss: float = 0.0,
    measured: PathLike | None = None,
) -> QueueEstimate:
    """Predict latency and loss at a load from the cost of a packet.

    Args:
        service: service time, such as ``det:7us``, ``run:latest[entries=1000]`` or a file.
        arrivals: such as ``poisson``, ``det`` or ``pcap:FILE``; ``rates`` and times are texts with units.
        tune: search for the moderation interval with the smallest ``mean``, or percentile such as ``p99``.
    """
    frequency_ghz = None if frequency is None else positive_quantity(frequency, "frequency", "GHz", "--frequency")
    law = service_law(service, frequency_ghz=frequency_ghz)
    moderations_us = [parse_time_us(text, "--moderation") for text in given.listed(moderations) or [DEFAULT_MODERATION]]
    overhead_us = parse_time_us(overhead, "--overhead")
    buffer_us: float | None = None
    if buffer.isdecimal():  # packets, with their mean service time
        buffer_us = float(buffer) * law.mean_us
    elif buffer != "none":
        buffer_us = parse_time_us(buffer, "--buffer")
    batch_cost_us, idle_cost_us = parse_time_us(batch_cost, "--batch-cost"), parse_time_us(idle_cost, "--idle-cost")
    if lattice is not None:
        step_us = parse_time_us(lattice, "--lattice")
    else:
        beside = (*moderations_us, overhead_us) if mode == "moderated" else (batch_cost_us, idle_cost_us)
        step_us = choose_step_us(law, beside, buffer_us or 0.0)
    if step_us <= 0:
        raise UsageError("--lattice: a step is longer than zero")
    empty_us = step_us if empty_poll is None else parse_time_us(empty_poll, "--empty-poll")
    system = System(law, mode, step_us, overhead_us, buffer_us, batch_cost_us, ring, burst, empty_us, idle_cost_us)
    compared = () if measured is None else read_measured(find_run(measured))
    asked_pps = [positive_quantity(text, "packet rate", "pps", "--rate") for text in given.listed(rates)]
    rates_pps = asked_pps or [m.rate_mpps * 1e6 for m in compared]
    kinds = given.listed(arrivals) or ["poisson"]
    laws = tuple(
        [arrival_law(kind, pps) for kind in kinds for pps in rates_pps] or [arrival_law(kind, None) for kind in kinds]
    )
    asked = QueueEstimate(system, laws, tuple(moderations_us), tuple(compared))
    if tune is not None:
        queues = [system.moderated(law, max(moderations_us)) for law in laws]
        return replace(
            asked, tuned=tuple(best_interval(q, tune, max_loss=max_loss, low=1, high=q.tau.last) for q in queues)
        )
    solve = ModeratedQueue.solve if profile == "exact" else printed_result
    points = operating_points(system, laws, moderations_us, solve=solve, check=check, packets=simulate, seed=seed)
    return replace(asked, points=tuple(points))


class _CesimRow(Record):
    variant: str = doc("`simple`, `beta1` or `parallelised`")
    revision: str = doc("`fixed` or `pre-fix`")
    alpha: float = doc("share of pure processing", "ratio")
    beta: float = doc("acceleration by overlap", "ratio")
    asked: str = doc("what was asked for: `throughput` or `hit ratio`")
    hit_ratio: float = doc("hit ratio of L1", "ratio")
    miss_ratio: float = doc("one less that", "ratio")
    mpps: float = doc("throughput", "Mpps")


class _Fit(Record):
    variant: str = doc("variant that was fitted", of="model.variant")
    alpha: float = doc("share of pure processing", "ratio", of="model.alpha")
    beta: float = doc("acceleration by overlap", "ratio")
    accesses_per_packet: float = doc("what that makes of the loads", "loads/packet", of="model.accesses_per_packet")
    rms_log_error: float = doc("root of the mean square of ln(model / measured)")
    factor: float = doc("the same as a factor", "ratio")
    n: int = doc("pairs")
    at_bounds: tuple[str, ...] = doc("parameters that the data do not determine")


class CesimDocument(Document, kind="cesim"):
    """`p4perf estimate cesim`: a row for each variant and question."""

    parameters: dict[str, Any] = doc("parameters of the model before a fit, units in their names")
    tipping_points: tuple[cesim.TippingPoint, ...] = doc("")
    fits: tuple[_Fit, ...] = doc("")
    rows: tuple[_CesimRow, ...] = doc("")


DEFAULT_HIT_RATIOS = (0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)


@checked
def estimate_cesim(
    hit_ratios: Sequence[float] = (),
    inverse: Texts = (),
    *,
    variants: Sequence[cesim.Variant] = (),
    revision: cesim.Revision = "fixed",
    alpha: float = 0.5,
    best: str | float = "172mpps",
    accesses: float = 163.0,
    fit: PathLike | None = None,
    x: str = "hit_ratio",
    y: str = "throughput_mpps",
    **hierarchy: float,
) -> CesimDocument:
    """Estimate throughput from the L1 hit ratio, or the reverse: a row for each variant and question.

    Args:
        inverse: throughputs whose hit ratios are wanted, such as ``100mpps``.
        fit: CSV with columns ``x`` and ``y``, to fit alpha and beta to.
        hierarchy: fields of :class:`~p4perf.evaluation.papers.takeya2024.cesim.CacheHierarchy`, such as ``clock_ghz``.
    """
    caches = cesim.CacheHierarchy(**hierarchy)
    base = cesim.CacheModel(alpha, _mpps(best, "--best"), accesses, caches, "parallelised", revision)
    models = [base.with_variant(name) for name in variants or cesim.VARIANTS]
    fits: list[cesim.CacheFit] = []
    if fit is not None:
        samples = read_csv(Path(fit), x, y)
        measured = np.repeat(samples.x, list(map(len, samples.values))), np.concatenate(samples.values)
        fits = [cesim.fit_cache_model(*measured, model) for model in models]
        models = [found.model for found in fits]
    rates = [_mpps(text, "--inverse") for text in given.listed(inverse)]
    ratios = hit_ratios or (() if rates else DEFAULT_HIT_RATIOS)
    numbers = asdict(base) | asdict(caches)
    return CesimDocument(
        parameters={key: value for key, value in numbers.items() if key not in ("hierarchy", "variant", "revision")},
        tipping_points=tuple(model.tipping_point() for model in models),
        fits=tuple(_Fit.read(found) for found in fits),
        rows=tuple(row for model in models for row in _cesim_rows(model, ratios, rates)),
    )


def _mpps(text: str | float, option: str) -> float:
    """A rate in Mpps: a plain number is in Mpps; units in upper or lower case."""
    with_unit = text if str(text).lower().rstrip().endswith("pps") else f"{text} Mpps"
    return positive_quantity(str(with_unit), "packet rate", "Mpps", option)


def _cesim_rows(model: cesim.CacheModel, ratios: Sequence[float], rates: Sequence[float]) -> Iterator[_CesimRow]:
    for ratio in ratios:
        mpps = float(model.throughput_mpps(ratio))
        yield _CesimRow.read(model, asked="throughput", hit_ratio=ratio, miss_ratio=1 - ratio, mpps=mpps)
    for rate in rates:
        miss = model.miss_ratio_for(rate)
        yield _CesimRow.read(model, asked="hit ratio", hit_ratio=1 - miss, miss_ratio=miss, mpps=rate)


@dataclass(frozen=True, repr=False)
class Operators(Tabular):
    """The analysis of operators: a row for each operator of each platform."""

    analysis: OpqAnalysis

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        return as_rows(opq_document(self.analysis).rows)


@checked
def analyse_opq(
    runs: Runs = (),
    beside: Texts = (),
    *,
    threshold: str = "global-median",
    ties: Literal["high", "low"] = "high",
    median_without: Texts = (),
    median_of: str | None = None,
    contrasts: Texts = (),
    clock: Literal["core", "tsc"] = "core",
    agree: bool = False,
    level: float = 0.95,
) -> Operators:
    """Analyse operators: base cost, exponent and quadrant, on each machine.

    Args:
        runs: runs that swept operator and packet_size.
        beside: platforms to compare with: ``ren2025``, or a file.
        median_without, median_of: operators that the median of the threshold leaves out, and its platform.
        contrasts: pairs of operators such as ``HIGH,LOW``.
    """
    names = given.runs(runs)
    if agree and len(names) != 2:
        raise UsageError("--agree compares two runs", hint="name two runs of the same machine")
    if not names and not beside:
        raise UsageError("no run and no platform given", hint="--with ren2025 shows the published one")
    options = OpqOptions(
        threshold=Threshold.parse(threshold, ties=ties, without=given.listed(median_without), of=median_of),
        contrasts=tuple(map(_pair, given.listed(contrasts))) or (DEFAULT_CONTRAST,),
        level=level,
    )
    measured = read_platforms([find_run(name) for name in names], clock=clock)
    published = [platform for name in given.listed(beside) for platform in load_platforms(name)]
    return Operators(analyse([*published, *measured], options, agree=(measured[0], measured[1]) if agree else None))


def _pair(text: str) -> tuple[str, str]:
    dear, comma, cheap = (part.strip() for part in text.partition(","))
    if not (comma and dear and cheap) or "," in cheap:
        raise UsageError(f"--contrast {text}: expected two operators", hint="such as printf_file,rte_log_suppressed")
    return dear, cheap


@dataclass(frozen=True, repr=False)
class Factors(Tabular):
    """The analysis of combined variants, with the titles of its factors."""

    analysis: FactorAnalysis
    titles: Mapping[str, str]

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        return as_rows(factors_document(self.analysis, self.titles).rows)


@checked
def analyse_factors(
    source: PathLike,
    metric: str | None = None,
    *,
    factors: Texts = (),
    where: Changes = (),
    cache: str | None = None,
    lower_is_better: bool = False,
    seed: int = 1,
) -> Factors:
    """Analyse combined variants of a run or a CSV file: effects, interactions and the best order.

    Args:
        factors: variables or columns of 0 and 1; by default the combined variants.
        where: values of other swept variables, such as ``{"frame": 64}``.
        cache: metric or column of cache use.
        lower_is_better: of a file: as for cycles.
    """
    path, chosen, titles = find_run(source), given.listed(factors), dict[str, str]()
    if path.is_dir():
        if lower_is_better:
            raise UsageError("--lower-is-better is for files; of a run's metrics it is known")
        values = dict(given.pairs(where, "--where"))
        cells, titles = run_factorial(Run.open(path), metric=metric, factors=chosen, where=values, cache=cache)
    else:
        if metric is None or where:
            raise UsageError("a file needs --metric, and has no --where", hint="leave out rows of the file instead")
        cells = factorial_from_csv(path, metric, chosen, cache=cache, higher_is_better=not lower_is_better)
    return Factors(analyse_factorial(cells, seed=seed), titles)
