"""Service times and arrivals of queue models, from data, runs, models, specs and captures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from p4perf.errors import DataError, Location, SpecError, UsageError
from p4perf.evaluation.fitting.datafiles import csv_records, finite_number
from p4perf.evaluation.load import LatencyHistogram, read_hlog, read_moongen_histogram
from p4perf.formats.pcap import read_capture
from p4perf.models.queue import Lattice, distributions
from p4perf.results import Run, read_model
from p4perf.results.files import read_text
from p4perf.specs.units import parse_quantity

STEPS_OF_SERVICE = 7
"""Fewest steps of the mean service time when a step is chosen."""
_SELECTOR = re.compile(r"(.*?)\[([^\[\]]*)\]", re.DOTALL)

_SHAPES: Mapping[str, Callable[[float], Lattice]] = MappingProxyType(
    {
        "det": distributions.deterministic,
        "exponential": distributions.exponential,
        "poisson-pmf": distributions.poisson_pmf,
        "geometric": distributions.geometric,
        "nbin": distributions.negative_binomial,
    }
)

ARRIVALS: Mapping[str, str] = MappingProxyType(
    {"poisson": "exponential", "cbr": "det", **{kind: kind for kind in _SHAPES}}
)
"""Names of arrivals, and the distribution of the interarrival time. ``poisson`` is a Poisson process."""


@dataclass(frozen=True)
class Law:
    """The distribution of a time, before a lattice is chosen.

    ``kind`` is ``det``, ``exponential``, ``poisson-pmf``, ``geometric``, ``nbin``, ``gamma`` or ``data``. Data are
    ``ordered`` if they are a trace; ``origin`` says for people where a number comes from that the text does not state.
    """

    kind: str
    mean_us: float
    cv: float = 0.0
    values_us: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    text: str = ""
    origin: str = ""
    ordered: bool = False

    def on_lattice(self, step_us: float) -> Lattice:
        """The distribution in steps; the mean stays exact."""
        mean = self.mean_us / step_us
        if self.kind == "gamma":
            return distributions.gamma(mean, self.cv)
        if self.kind == "data":
            return distributions.from_samples([v / step_us for v in self.values_us], self.weights or None)
        if self.kind == "det" and mean == 0:
            return distributions.from_samples([0.0])
        return _SHAPES[self.kind](mean)

    def scaled(self, mean_us: float) -> Law:
        """The same distribution with another mean; of data, all times by the same factor."""
        factor = mean_us / self.mean_us
        return replace(self, mean_us=mean_us, values_us=tuple(v * factor for v in self.values_us))


def data_law(values_us: list[float], weights: list[float] | None, text: str, *, ordered: bool = False) -> Law:
    """The law of times, of which at least one is above zero and none below."""
    counts = weights if weights is not None else [1.0] * len(values_us)
    total = sum(counts)
    if not values_us or not total > 0:
        raise UsageError(f"{text}: there is no time in it")
    if min(values_us) < 0:
        raise UsageError(f"{text}: a time is negative: {min(values_us):g} us")
    mean = sum(v * c for v, c in zip(values_us, counts, strict=True)) / total
    if not mean > 0:
        raise UsageError(f"{text}: all times are zero")
    return Law("data", mean, values_us=tuple(values_us), weights=tuple(weights or ()), text=text, ordered=ordered)


def parse_time_us(text: str, what: str) -> float:
    """A time with a unit, zero at least, in us."""
    try:
        value = float(parse_quantity(text, "time", "us"))
    except SpecError as error:
        raise UsageError(f"{what}: {error.message}", hint=error.hint) from error
    if value < 0:
        raise UsageError(f"{what}: a time is negative: {text}")
    return value


def named_law(text: str) -> Law | None:
    """The law named by a text such as ``det:7us``, ``exponential:7 us`` or ``gamma:7us,0.4``; None for other text."""
    kind, colon, rest = text.partition(":")
    if not colon or (kind not in _SHAPES and kind not in ("gamma", "exp")):
        return None
    mean_text, _, cv_text = rest.partition(",")
    mean_us = parse_time_us(mean_text.strip(), text)
    if kind != "gamma":
        if cv_text:
            raise UsageError(f"{text}: only gamma has a coefficient of variation")
        if kind != "det" and mean_us == 0:
            raise UsageError(f"{text}: the mean is zero")
        return Law("exponential" if kind == "exp" else kind, mean_us, text=text)
    cv = finite_number(cv_text)
    if not 0 <= cv < 100 or mean_us == 0:
        raise UsageError(f"{text}: expected mean and coefficient of variation, such as gamma:7us,0.4")
    return Law("gamma", mean_us, cv=cv, text=text)


def split_selector(text: str) -> tuple[str, dict[str, str]]:
    """``run:DIR[a=1,b=2]`` as ``run:DIR`` and a mapping; without brackets the mapping is empty."""
    match = _SELECTOR.fullmatch(text)
    if match is None or Path(text).exists():
        return text, {}
    chosen: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in match[2].split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{text}: expected name=value in the brackets, not {part!r}")
        chosen[name.strip()] = value.strip()
    return match[1], chosen


def choose_step_us(service: Law, others_us: tuple[float, ...] = (), longest_us: float = 0.0) -> float:
    """A step for a lattice: 1, 2 or 5 times a power of ten us.

    The mean service time has at least :data:`STEPS_OF_SERVICE` steps; a coarser step is taken where the buffer or a
    moderation interval would have more than 20 000 of them. A step that divides the other constant times (moderation,
    overhead) is preferred.
    """
    longest_us = max(longest_us, *others_us, 0.0)
    candidates = [m * 10.0**e for e in range(-4, 4) for m in (1.0, 2.0, 5.0)]
    fine = [c for c in candidates if c <= service.mean_us / STEPS_OF_SERVICE] or candidates[:1]
    coarse = [c for c in fine if longest_us / c <= 20_000]
    if not coarse:
        return next((c for c in candidates if longest_us / c <= 20_000 and c <= service.mean_us), fine[-1])
    for step in reversed(coarse[-3:]):
        if all(abs(t / step - round(t / step)) < 1e-9 for t in others_us):
            return step
    return coarse[-1]


_TIME_COLUMN = re.compile(r"(?:.*_)?(ns|us|ms|s)")
_FACTOR_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_WEIGHTS = ("count", "n", "prob", "probability", "p", "weight")
_PROBABILITIES = ("prob", "probability", "p")
SUM_TOLERANCE = 1e-6
"""Largest difference of the sum of probabilities in a file from one."""


def service_law(text: str, *, frequency_ghz: float | None = None) -> Law:
    """The service time that a text names.

    Args:
        text: ``det:7us``, ``exponential:7us``, ``gamma:7us,0.4`` and so on; ``run:DIR`` with ``[variable=value]`` where
            the run swept one; ``model:FILE[x=1000]``; or a file of data or of a histogram (.csv, .hlog).
        frequency_ghz: of the core, where cycles have to become time and the source does not say it.

    Raises:
        UsageError: it cannot be read, or does not say which point is meant.
        DataError: a file is damaged.
    """
    named = named_law(text)
    if named is not None:
        return named
    place, chosen = split_selector(text)
    if place.startswith("run:"):
        return _of_run(Path(place.removeprefix("run:")), chosen, frequency_ghz, text)
    if place.startswith("model:"):
        return _of_model(Path(place.removeprefix("model:")), chosen, frequency_ghz, text)
    if Path(place).is_file():
        return _of_file(Path(place), chosen, text)
    hint = "det:7us, exponential:7us, gamma:7us,0.4, run:DIR[x=1], model:FILE[x=1], or a file .csv or .hlog"
    raise UsageError(f"unknown service time {text!r}, and no such file", hint=hint)


def arrival_law(text: str, rate_pps: float | None) -> Law:
    """The interarrival time that a text names.

    Args:
        text: a name of :data:`~p4perf.evaluation.load.queue_sources.ARRIVALS`; ``pcap:FILE``, the gaps of a capture;
            ``spec:SPEC``, the traffic part of a spec; or a file of data or of a histogram.
        rate_pps: mean rate; data are scaled to it; needed unless the source has a rate.

    Raises:
        UsageError: it cannot be read, or there is no rate.
        DataError: a file is damaged.
    """
    if text in ARRIVALS:
        if rate_pps is None:
            raise UsageError("how many packets come in a second?", hint="give --rate, such as 0.5Mpps")
        return Law(ARRIVALS[text], 1e6 / rate_pps, text=text)
    if text.startswith("spec:"):
        return _of_spec(text.removeprefix("spec:"), rate_pps)
    if text.startswith("pcap:"):
        capture = read_capture(Path(text.removeprefix("pcap:")))
        law = data_law([gap / 1e3 for gap in capture.gaps_ns], None, text, ordered=True)
        return law if rate_pps is None else law.scaled(1e6 / rate_pps)
    place, chosen = split_selector(text)
    if Path(place).is_file():
        law = _of_file(Path(place), chosen, text)
        return law if rate_pps is None else law.scaled(1e6 / rate_pps)
    hint = f"{', '.join(ARRIVALS)}, pcap:FILE, spec:SPEC, or a file .csv"
    raise UsageError(f"unknown arrivals {text!r}, and no such file", hint=hint)


def _of_spec(source: str, rate_pps: float | None) -> Law:
    """The arrivals of the traffic part of a spec, at its first point."""
    from p4perf.specs import RateLoad, load_experiment

    experiment = load_experiment(source)
    traffic = experiment.points[0].traffic
    if isinstance(traffic.offered_load, RateLoad):
        rate_pps = rate_pps or float(traffic.offered_load.rate_mpps) * 1e6
    if traffic.replay is not None and experiment.capture is not None:
        law = data_law([g / 1e3 for g in experiment.capture.gaps_ns], None, f"spec:{source}", ordered=True)
        return law if traffic.replay.timing == "recorded" or rate_pps is None else law.scaled(1e6 / rate_pps)
    burst = traffic.burst
    if traffic.pattern == "burst" and burst is not None and burst.gap_us is not None:
        spread = (int(burst.length) - 1) * burst.spacing_ns / 1e3
        rate_pps = rate_pps or int(burst.length) * 1e6 / (spread + float(burst.gap_us))
    if rate_pps is None:
        hint = "give --rate, such as 0.5Mpps"
        raise UsageError(f"the spec {source} offers a share of the highest rate, which is not known here", hint=hint)
    mean_us = 1e6 / rate_pps
    if traffic.pattern != "burst":
        return Law(ARRIVALS[traffic.pattern], mean_us, text=f"spec:{source}", origin=f"{traffic.pattern} of the spec")
    length, spacing_us = (32, 0.0) if burst is None else (int(burst.length), burst.spacing_ns / 1e3)
    pause_us = length * mean_us - (length - 1) * spacing_us
    if pause_us < 0:
        raise UsageError(f"the bursts of {source} are longer than the rate allows")
    gaps = [spacing_us] * (length - 1) + [pause_us]
    return data_law(gaps, None, f"spec:{source}", ordered=True)


def _of_run(path: Path, chosen: Mapping[str, str], frequency_ghz: float | None, text: str) -> Law:
    """Cycles per packet of one point over the frequency of the core."""
    run = Run.open(path)
    table = run.table[run.table["accepted"]]
    for name, value in chosen.items():
        if name not in table.columns:
            raise UsageError(f"{text}: the run has no variable {name!r}")
        table = table[[_same(cell, value) for cell in table[name]]]
    points = table["point"].unique()
    if len(points) == 0:
        raise UsageError(f"{text}: no accepted trial of such a point")
    if len(points) > 1:
        raise UsageError(f"{text}: {len(points)} points of the run fit", hint="name one, such as run:DIR[entries=1000]")

    def median(metric: str) -> float | None:
        values = table[table["metric"] == metric]["value"]
        return float(values.median()) if len(values) else None

    cycles, ticks, clock_ghz = median("cycles_per_packet"), median("tsc_cycles_per_packet"), median("core_frequency")
    given = frequency_ghz or clock_ghz
    if cycles is not None and given is not None:
        origin = f"{cycles:.4g} cycles at {given:.4g} GHz"
        return Law("det", cycles / given / 1e3, text=text, origin=origin)
    tsc_hz = _tsc_hz(run, str(points[0]))
    if ticks is not None and tsc_hz is not None:
        origin = f"{ticks:.4g} cycles of a time stamp counter of {tsc_hz / 1e9:.4g} GHz"
        return Law("det", ticks / tsc_hz * 1e6, text=text, origin=origin)
    if cycles is None and ticks is None:
        raise UsageError(f"{text}: the run has no cycles per packet")
    raise UsageError(f"{text}: the run does not say the frequency of the core", hint="give --frequency, such as 2.5GHz")


def _same(cell: object, value: str) -> bool:
    return str(cell) == value or math.isclose(finite_number(str(cell)), finite_number(value), rel_tol=1e-12)


def _tsc_hz(run: Run, point: str) -> float | None:
    for trial in run.directory.trials(point):
        record = trial.get("record")
        if isinstance(record, Mapping) and isinstance(record.get("tsc_hz"), int | float):
            return float(record["tsc_hz"])
    return None


def _of_model(path: Path, chosen: Mapping[str, str], frequency_ghz: float | None, text: str) -> Law:
    """The value of a component model at one x."""
    model = read_model(path)
    known = {model.x.name, "x"}
    values = [value for name, value in chosen.items() if name in known]
    if len(values) != 1 or len(chosen) != 1:
        raise UsageError(f"{text}: say at which {model.x.name}", hint=f"model:FILE[{model.x.name}=1000]")
    if math.isnan(at := finite_number(values[0])):
        raise UsageError(f"{text}: {values[0]!r} is not a number")
    y = float(model.evaluate([at])[0])
    unit = model.y.unit.partition("/")[0].strip()
    first, last = model.domain
    beyond = "" if first <= at <= last else f", beyond what was measured ({first:g} to {last:g})"
    if not (math.isfinite(y) and y > 0):
        raise UsageError(f"{text}: the model says {y:g} there")
    if unit in _FACTOR_US:
        return Law("det", y * _FACTOR_US[unit], text=text, origin=f"{y:.4g} {unit}{beyond}")
    if "cycles" not in unit and "cycles" not in model.y.name:
        raise UsageError(f"{text}: the model is of {model.y.name} [{model.y.unit}], which is neither cycles nor time")
    if frequency_ghz is None:
        raise UsageError(f"{text}: cycles become time only with a frequency", hint="give --frequency, such as 2.5GHz")
    origin = f"{y:.4g} cycles at {frequency_ghz:.4g} GHz{beyond}"
    return Law("det", y / frequency_ghz / 1e3, text=text, origin=origin)


def _of_file(path: Path, chosen: Mapping[str, str], text: str) -> Law:
    if path.suffix == ".hlog":
        return _of_hlog(path, chosen, text)
    content = read_text(path).removeprefix("\ufeff")
    lines = [line for line in content.splitlines() if line.strip()]
    if not lines:
        raise DataError("the file is empty", location=Location(str(path)))
    if re.fullmatch(r"[\s0-9.,eE+-]+", lines[0]):
        if lines[0].count(",") == 1:
            return _of_histogram(read_moongen_histogram(path), text)
        raise DataError("has no header line", location=Location(str(path), 1), hint="name the column, such as time_us")
    return _of_csv(content, path, chosen, text)


def _of_hlog(path: Path, chosen: Mapping[str, str], text: str) -> Law:
    logged = [h for h in read_hlog(path) if h.tag == chosen.get("tag", h.tag)]
    if len(logged) != 1:
        tags = ", ".join(h.tag for h in read_hlog(path))
        raise UsageError(f"{text}: say which histogram", hint=f"[tag=...], of {tags}")
    return _of_histogram(logged[0].histogram, text)


def _of_histogram(histogram: LatencyHistogram, text: str) -> Law:
    middles_us, counts = histogram.middles_us()
    return data_law(middles_us.tolist(), counts.tolist(), text)


def _of_csv(content: str, path: Path, chosen: Mapping[str, str], text: str) -> Law:
    """Times in a column whose name ends in a unit; probabilities or counts in another."""
    names, where, records = csv_records(content, str(path))
    times = [(name, match[1]) for name in names if (match := _TIME_COLUMN.fullmatch(name))]
    if len(times) != 1:
        message = "needs exactly one column of times"
        raise DataError(message, location=where, hint="its name ends in _ns, _us, _ms or _s")
    missing = [name for name in chosen if name not in names]
    if missing:
        raise UsageError(f"{text}: there is no column {missing[0]!r}", hint=f"columns: {', '.join(names)}")
    column, unit = times[0]
    weight = next((name for name in names if name.lower() in _WEIGHTS), None)
    values, weights = [], []
    for place, cells in records:
        if any(not _same(cells.get(name, ""), value) for name, value in chosen.items()):
            continue
        values.append(number_in(cells, column, place) * _FACTOR_US[unit])
        if weight is not None:
            weights.append(number_in(cells, weight, place))
    if not values:
        raise UsageError(f"{text}: no row of the file fits")
    if weight is not None and weight.lower() in _PROBABILITIES and abs(sum(weights) - 1) > SUM_TOLERANCE:
        hint = "name the column count, or choose rows, such as FILE[service=a]"
        raise DataError(f"the probabilities sum to {sum(weights):.9g}, not to 1", location=where, key=weight, hint=hint)
    try:
        return data_law(values, weights if weight is not None else None, text)
    except UsageError as error:
        raise DataError(error.message, location=where) from error


def number_in(cells: Mapping[str, str], name: str, where: Location) -> float:
    """The number, zero at least, of a cell."""
    value = finite_number(cells[name])
    if not value >= 0:
        raise DataError(f"column {name!r}: {cells[name]!r:.40} is not a number of zero or more", location=where)
    return value
