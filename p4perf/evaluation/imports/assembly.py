"""From what readers found to points, repetitions and metrics, by the options of the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.imports import base
from p4perf.formats.plain import real
from p4perf.plugins import load_plugin, plugin_names
from p4perf.specs.messages import nearest
from p4perf.specs.sweep import MAX_POINTS

LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class Result:
    """A repetition (from 0) of a point; values by metric, in the order of the source and the units of the metrics."""

    repetition: int
    values: Mapping[str, base.ImportedValue]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportedPoint:
    values: Mapping[str, base.Fact]
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Assembly:
    """What is imported: points ascending, and the facts that are the same everywhere."""

    variables: tuple[str, ...]
    points: tuple[ImportedPoint, ...]
    constants: Mapping[str, base.Fact]
    metrics: tuple[str, ...]
    left_out: tuple[base.LeftOut, ...]


def assemble(readings: Sequence[base.Reading], options: base.ImportOptions) -> Assembly:
    """Put trials together. What varies in their facts is a variable, and so is what the user names.

    Raises:
        DataError: nothing is left, trials lack a variable, one is a number here and a word there, or the same
            duplicate repetition of a metric.
        UsageError: a name of the user is not in the source, a unit does not fit, or a variable has no fit name.
    """
    left_out = [item for reading in readings for item in reading.left_out]
    trials = [trial for reading in readings for trial in reading.trials]
    if not trials:
        raise _nothing(left_out, readings)
    trials = list(_with_facts(trials, options))
    _check_only(trials, options)
    kept = []
    for trial in trials:
        if all(trial.facts.get(name) == value for name, value in options.only.items()):
            kept.append(trial)
        else:
            left_out.append(base.LeftOut(str(trial.place), "is not among --only"))
    chosen = list(_chosen(kept, options, left_out))
    if not chosen:
        raise _nothing(left_out, readings)
    variables = _variables(chosen, options)
    constants = {
        name: value for name, value in chosen[0].facts.items() if name not in variables and _same(chosen, name, value)
    }
    points = tuple(_points(chosen, variables))
    metrics = dict.fromkeys(metric for point in points for result in point.results for metric in result.values)
    return Assembly(variables, points, constants, tuple(metrics), tuple(left_out))


def _nothing(left_out: Sequence[base.LeftOut], readings: Sequence[base.Reading]) -> DataError:
    reasons = list(dict.fromkeys(f"{item.place} {item.reason}" for item in left_out))
    more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
    where = next((Location(str(file)) for reading in readings for file in reading.files), None)
    said = "; ".join(reasons[:3]) + more if reasons else "there are no results in it"
    return DataError(f"there is nothing to import: {said}", location=None if reasons else where)


# --- facts


def _with_facts(trials: Sequence[base.ImportedTrial], options: base.ImportOptions) -> Iterator[base.ImportedTrial]:
    """Trials with facts renamed and set, and numbered if a fact is the repetition."""
    names = {named.wanted: named.name for named in options.variables}
    known = {name for trial in trials for name in trial.facts}
    asked = dict.fromkeys(names, "--x") | ({options.repetition: "--repetition"} if options.repetition else {})
    for name, option in asked.items():
        if name not in known:
            hint = nearest(name, known, "the source says") if known else f"--set {name}=VALUE states it"
            raise UsageError(f"{option}: the source does not state {name!r}", hint=hint)
    for trial in trials:
        facts = {names.get(name, name): value for name, value in trial.facts.items() if name != options.repetition}
        for name, value in options.settings.items():
            if facts.get(name, value) != value:
                raise UsageError(f"--set {name}={value}: {trial.place} says {facts[name]}")
        number = trial.repetition
        if options.repetition and options.repetition in trial.facts:
            told = trial.facts[options.repetition]
            if not isinstance(told, int) or told < 0:
                raise trial.place.error(f"the repetition {told!r} is not a whole number from 0")
            number = told
        yield replace(trial, facts={**facts, **options.settings}, repetition=number)


def _check_only(trials: Sequence[base.ImportedTrial], options: base.ImportOptions) -> None:
    for name, value in options.only.items():
        seen = dict.fromkeys(str(trial.facts[name]) for trial in trials if name in trial.facts)
        if str(value) not in seen:
            hint = nearest(str(value), seen, f"values of {name}")
            raise UsageError(f"--only {name}={value}: there is none", hint=hint)


def _same(trials: Sequence[base.ImportedTrial], name: str, value: base.Fact) -> bool:
    return all(trial.facts.get(name) == value for trial in trials)


def _variables(trials: Sequence[base.ImportedTrial], options: base.ImportOptions) -> tuple[str, ...]:
    named = [item.name for item in options.variables]
    known = dict.fromkeys(name for trial in trials for name in trial.facts)
    varying = [n for n in known if not _same(trials, n, trials[0].facts.get(n, ""))]
    variables = tuple(dict.fromkeys([*named, *varying]))
    for name in variables:
        base.check_variable(name, "variable of the source")
        for trial in trials:
            if name not in trial.facts:
                hint = f"--set {name}=VALUE, or import it alone"
                raise trial.place.error(f"{name} is not known here, but it is elsewhere", hint=hint)
        words = [trial for trial in trials if isinstance(trial.facts[name], str)]
        if words and len(words) < len(trials):
            raise words[0].place.error(f"{name} is the word {words[0].facts[name]!r:.60} here, but a number elsewhere")
        for trial in words:
            word = str(trial.facts[name])
            if not word or word.startswith("$") or not word.isprintable():
                raise trial.place.error(f"{word!r:.60} cannot be a value of {name}")
    return variables


# --- values


def _chosen(
    trials: Sequence[base.ImportedTrial], options: base.ImportOptions, left_out: list[base.LeftOut]
) -> Iterator[base.ImportedTrial]:
    """Trials with the requested values, in the units of their metrics."""
    met: set[str] = set()
    for trial in trials:
        values: dict[str, base.ImportedValue] = {}
        for value in trial.values:
            metrics = list(_metrics_of(value, options))
            met.update(asked for asked, _ in metrics)
            if not metrics:
                left_out.append(base.LeftOut(str(value.place), value.why or f"{value.name} is not asked for"))
            for _, metric in metrics:
                if metric == LATENCY:
                    hint = "write latency_mean, latency_p50, latency_p99, latency_max or the like"
                    raise UsageError(f"{value.place}: which statistic of the latency is it?", hint=hint)
                if metric in values:
                    message = f"{values[metric].place} gives {metric} as well"
                    raise value.place.error(message, hint=f"say which: --metric {metric}={value.name}")
                values[metric] = _converted(value, metric, options)
        if values:
            yield replace(trial, values=tuple(values.values()))
    if missing := [named for named in options.metrics if _label(named.name, named.source) not in met]:
        known = dict.fromkeys(v.name for t in trials for v in t.values)
        what = f"--metric {_label(missing[0].name, missing[0].source)}: the source has no such values"
        raise UsageError(what, hint=nearest(missing[0].wanted, known, "it has"))


def _label(metric: str, source: str) -> str:
    return f"{metric}={source}" if source else metric


def _metrics_of(value: base.ImportedValue, options: base.ImportOptions) -> Iterator[tuple[str, str]]:
    """Options that ask for this value, each with the metric that it then is."""
    if not options.metrics:
        if value.metric:
            yield value.metric, value.metric
        return
    for named in options.metrics:
        is_latency = value.metric.startswith(f"{LATENCY}_")
        own = value.metric == named.name or (named.name == LATENCY and is_latency)
        if (own and not named.source) or (own and value.name == named.source):
            yield _label(named.name, named.source), value.metric
        elif named.source and value.name == named.source and not is_latency and named.name != LATENCY:
            yield _label(named.name, named.source), named.name


def _converted(value: base.ImportedValue, metric: str, options: base.ImportOptions) -> base.ImportedValue:
    unit = value.unit or options.units.get(metric) or options.units.get("") or ""
    try:
        number = base.convert(value.value, unit, metric)
    except UsageError as error:
        raise UsageError(f"{value.place}: {error.message}", hint=error.hint) from error
    return replace(value, value=number, unit=base.unit_of_metric(metric), metric=metric)


# --- points


def _points(trials: Sequence[base.ImportedTrial], variables: tuple[str, ...]) -> Iterator[ImportedPoint]:
    groups: dict[tuple[base.Fact, ...], list[base.ImportedTrial]] = {}
    for trial in trials:
        groups.setdefault(tuple(trial.facts[name] for name in variables), []).append(trial)
    size = 1
    for at in range(len(variables)):
        size *= len({key[at] for key in groups})
    if size > MAX_POINTS:
        message = f"the values of {', '.join(variables)} make {size:,} combinations, more than {MAX_POINTS:,}"
        raise DataError(message, hint="keep some of them with --only, or name fewer variables")
    for key in sorted(groups):
        yield ImportedPoint(dict(zip(variables, key, strict=True)), _results(groups[key]))


def _results(trials: Sequence[base.ImportedTrial]) -> tuple[Result, ...]:
    """Repetitions: those with a number as they are, the others where their metrics have room."""
    slots: dict[int, tuple[dict[str, base.ImportedValue], set[str]]] = {}
    reached: dict[tuple[str, ...], int] = {}
    for trial in sorted(trials, key=lambda trial: trial.repetition is None):
        values = {value.metric: value for value in trial.values}
        number = trial.repetition
        if number is None:
            kinds = tuple(values)
            number = reached.get(kinds, 0)
            while number in slots and set(kinds) & set(slots[number][0]):
                number += 1
            reached[kinds] = number + 1
        held, flags = slots.setdefault(number, ({}, set()))
        for metric, value in values.items():
            if metric in held:
                message = f"duplicate {metric} of repetition {number}, first at {held[metric].place}"
                hint = "name what distinguishes them with --x, or the column of repetitions with --repetition"
                raise value.place.error(message, hint=hint)
            held[metric] = value
        flags.update(trial.flags)
    return tuple(Result(n, values, tuple(sorted(flags))) for n, (values, flags) in sorted(slots.items()))


GROUP = "p4perf.importers"


def read_sources(
    paths: Sequence[Path], options: base.ImportOptions, *, importer: str | None = None
) -> tuple[str, list[base.Reading]]:
    """Read files and folders by one reader, by default the one that recognises the first path; with its name.

    Raises:
        DataError: something is damaged, or no reader recognises it.
        UsageError: there is no such reader, a path is given twice, or the options do not suit it.
    """
    if len({real(path) for path in paths}) < len(paths):
        raise UsageError("a path is given twice", hint="name each file or folder once")
    for path in paths:
        if not path.exists():
            raise DataError("there is no such file or folder", location=Location(str(path)))
    name = importer or recognise(paths[0])
    reader: base.Importer = load_plugin(GROUP, name)()
    for path in paths:
        if importer is not None or reader.recognises(path):
            continue
        if not path.is_file() or base.read_plain_text(path).strip():
            hint = "import files of different kinds one after another, or say what they are with --from"
            raise DataError(f"is not of the kind {name}, as {paths[0]} is", location=Location(str(path)), hint=hint)
    return name, [reader.read(path, options) for path in paths]


def recognise(path: Path) -> str:
    """The name of the reader for a file or folder. A CSV file that another reader recognises goes to that."""
    where = Location(str(path))
    if path.is_file():
        base.check_file(path)
    known = plugin_names(GROUP)
    found = [name for name in known if load_plugin(GROUP, name)().recognises(path)]
    found = [name for name in found if name != "csv"] or found
    if len(found) == 1:
        return found[0]
    if path.is_file() and not found and not base.read_plain_text(path).strip():
        raise DataError("the file is empty", location=where)
    said = f"could be of several kinds: {', '.join(found)}" if found else "is of an unknown kind"
    raise DataError(said, location=where, hint=f"say what it is: --from {', '.join(known)}")
