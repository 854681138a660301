"""Results of other tools as run directories: a spec of what is known, their files and their values."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from p4perf.errors import DataError, SpecError, UsageError
from p4perf.evaluation.imports import Assembly, ImportedValue, ImportOptions, Named, Reading, assemble, read_sources
from p4perf.evaluation.imports.base import check_file, fact
from p4perf.formats.plain import bounded
from p4perf.models.component import Scale
from p4perf.results import Run, RunDirectory
from p4perf.results.files import read_bytes
from p4perf.results.run import readable_runs
from p4perf.results.table import TRIAL_COLUMNS, VALUE_COLUMNS
from p4perf.specs import METRICS
from p4perf.specs.experiment import spec_yaml
from p4perf.specs.metrics import metric_named
from p4perf.specs.schema import IMPORTED
from p4perf.specs.types import MAX_NAME, NAME_PATTERN
from p4perf.version import __version__

UNKNOWN = "unknown"
SOURCE = "source"
"""Folder of a run with the files that it was imported from."""

EXAMPLES = 20
"""Most places that are named for each reason why something was left out."""

_HEAD = "# imported, not measured by p4perf; what is not said here is not known\n"


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """Properties of the whole run that the user states; empty ones come from the source, or are unknown.

    ``y`` is the metric that is modelled; by default the first that was asked for, or the most telling one.
    """

    name: str = ""
    target: str = ""
    testbed: str = ""
    title: str = ""
    y: str = ""
    x_scale: Scale = "linear"


@dataclass(frozen=True, slots=True)
class FoundResults:
    importer: str
    paths: tuple[Path, ...]
    readings: tuple[Reading, ...]
    assembly: Assembly
    spec: Mapping[str, Any]
    target: str
    testbed: str

    def left_out(self) -> list[dict[str, Any]]:
        """Reasons why something is not imported: ``reason``, ``count``, ``examples`` of places; most frequent first."""
        places: dict[str, list[str]] = {}
        for item in self.assembly.left_out:
            places.setdefault(item.reason, []).append(item.place)
        groups = sorted(places.items(), key=lambda group: -len(group[1]))
        return [{"reason": reason, "count": len(some), "examples": some[:EXAMPLES]} for reason, some in groups]


Changes = Mapping[str, object] | Sequence[str] | str
"""Names with values, or texts such as ``frame_size=64``."""


def read_results(
    sources: Sequence[Path],
    *,
    kind: str | None = None,
    x: Changes = (),
    metrics: Changes = (),
    units: Changes = (),
    set: Changes = (),
    only: Changes = (),
    experiment: str = "",
    target: str = "",
    testbed: str = "",
    title: str = "",
    y: str = "",
    x_scale: Scale = "linear",
    repetition: str = "",
    name: str = "",
    value: str = "",
    metric_column: str = "",
    unit_column: str = "",
    device: str = "",
    skip_damaged: bool = False,
) -> FoundResults:
    """What results of other tools hold; nothing is written.

    Args:
        kind: importer; by default the one that knows the sources.
        x, metrics: variables and metrics, each with its name in the source if that is another.
        units: of CSV: a unit, or units by metric.
        set: variables with values that the source does not state.
        only: variables with the values that are imported.
        name: meaning of numbers in names of files or tests.
        repetition, value, metric_column, unit_column, device, skip_damaged: as in
            :class:`~p4perf.evaluation.imports.ImportOptions`.

    Raises: as :func:`read_import`.
    """
    options = ImportOptions(
        variables=tuple(map(Named.parse, _texts(x))), metrics=tuple(map(Named.parse, _texts(metrics))),
        units=_units(units), settings=_facts(set, "--set"), only=_facts(only, "--only"), repetition=repetition,
        pattern=name, value=value, metric_column=metric_column, unit_column=unit_column, device=device,
        skip_damaged=skip_damaged,
    )  # fmt: skip
    order = ImportOrder(experiment, target, testbed, title, y, x_scale)
    return read_import(sources, options, order, importer=kind)


def _texts(given: Changes) -> list[str]:
    if isinstance(given, Mapping):
        return [f"{name}={value}" for name, value in given.items()]
    return [given] if isinstance(given, str) else list(given)


def _facts(texts: Changes, option: str) -> dict[str, int | float | str]:
    found: dict[str, int | float | str] = {}
    example = f"for example {option} frame_size=64"
    for text in _texts(texts):
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value):
            raise UsageError(f"{option} {text}: expected VARIABLE=VALUE", hint=example)
        if name in found:
            raise UsageError(f"{option}: {name} is given twice", hint=f"give {name} one value")
        found[name] = fact(value)
    return found


def _units(texts: Changes) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in _texts(texts):
        name, equals, unit = text.partition("=")
        found[name.strip() if equals else ""] = (unit if equals else text).strip()
    return found


@bounded()
def read_import(
    paths: Sequence[Path], options: ImportOptions, order: ImportOrder, *, importer: str | None = None
) -> FoundResults:
    """Read results and put them together; nothing is written.

    Raises:
        DataError: something is damaged, contradicts itself, or there is nothing to import.
        UsageError: a name or an option does not suit the source.
    """
    name, readings = read_sources(paths, options, importer=importer)
    assembly = assemble(readings, options)
    target = order.target or _only({r.target for r in readings})
    testbed = order.testbed or _only({r.testbed for r in readings})
    for option, text in (("--target", target), ("--testbed", testbed)):
        if not text.isprintable() or not 0 < len(text) <= MAX_NAME:
            raise UsageError(f"{option} {text!r:.60}: expected a name of at most {MAX_NAME} characters")
    spec = _spec(order, assembly, options, paths[0])
    return FoundResults(name, tuple(paths), tuple(readings), assembly, spec, target, testbed)


def write_import(found: FoundResults, parent: Path) -> tuple[RunDirectory, bool]:
    """Make the run directory, which appears when it is whole, and say whether it is new.

    The same results in the same folder are the same run: a command that was killed at its end may be given again.

    Raises:
        DataError: a source file cannot be read any more, or the variables cannot be those of a spec.
    """
    places = _places(found)
    for path in places:
        check_file(path)
    contents = {path: read_bytes(path) for path in places}
    texts = (json.dumps(dict(point.values), sort_keys=True) for point in found.assembly.points)
    keys = [hashlib.sha256(f"{IMPORTED} {text}".encode()).hexdigest()[:16] for text in texts]
    origin = {
        "importer": found.importer,
        "p4perf": __version__,
        "sources": [str(path) for path in found.paths],
        "files": [
            {"file": name, "bytes": len(contents[path]), "sha256": hashlib.sha256(contents[path]).hexdigest()}
            for path, name in places.items()
        ],
        "constants": dict(found.assembly.constants),
        "left_out": found.left_out(),
    }
    spec = _HEAD + spec_yaml(found.spec)
    for known in readable_runs(parent):
        manifest = known.directory.manifest()
        names = manifest.get("target"), manifest.get("testbed")
        if (manifest.get("imported"), names, known.directory.spec()) == (origin, (found.target, found.testbed), spec):
            return known.directory, False
    manifest = {
        "planned_points": keys,
        "points": [
            {"hash": key, "index": index, "values": dict(point.values)}
            for index, (key, point) in enumerate(zip(keys, found.assembly.points, strict=True))
        ],
        "refused": [],
        "node": {},
        "hugepages": None,
        "versions": {},
        "command": sys.argv[1:],
        "imported": origin,
    }

    def fill(run: RunDirectory) -> None:
        for path, name in places.items():
            run.write_bytes(name, contents[path])
        try:
            experiment = Run(run).experiment
        except SpecError as error:
            raise DataError(f"the variables cannot be those of a spec: {error.message}", key=error.key) from error
        run.update_manifest({"spec_hash": experiment.spec_hash})
        for key, records in zip(keys, _records(found.assembly, places), strict=True):
            for record in records:
                run.append_trial(key, record)
            run.finish_point(key, {"accepted": len(records), "imported": True})
        run.write_measurements(imported_table(found.assembly, keys))

    made = RunDirectory.create(
        parent,
        experiment_name=str(found.spec["name"]),
        target=found.target,
        testbed=found.testbed,
        resolved_spec=spec,
        manifest=manifest,
        now=datetime.now(UTC),
        fill=fill,
    )
    return made, True


def imported_table(assembly: Assembly, keys: Sequence[str]) -> pd.DataFrame:
    """The tidy table, as of :meth:`p4perf.experiment.ledger.Ledger.table`; every row has the flag imported."""
    rows: list[tuple[Any, ...]] = []
    for index, (key, point) in enumerate(zip(keys, assembly.points, strict=True)):
        swept = tuple(point.values[name] for name in assembly.variables)
        for result in point.results:
            head = (key, index, result.repetition, result.repetition)
            flags = ",".join(sorted({IMPORTED, *result.flags}))
            rows += [(*head, *swept, v.metric, v.value, v.unit, True, flags) for v in result.values.values()]
    return pd.DataFrame(rows, columns=[*TRIAL_COLUMNS, *assembly.variables, *VALUE_COLUMNS])


# --- spec


def _spec(order: ImportOrder, assembly: Assembly, options: ImportOptions, path: Path) -> dict[str, Any]:
    """The content of the spec: what is known, and nothing more."""
    words = re.findall(r"[a-z0-9]+", path.resolve().stem.lower())
    name = order.name or f"imported/{'-'.join(words)[:60].strip('-') or 'results'}"
    if len(name) > MAX_NAME or not re.fullmatch(NAME_PATTERN[1:-1], name):
        hint = "write small letters, digits, hyphens and slashes, such as mat/exact-entries"
        raise UsageError(f"--experiment {name!r:.120} is not a name of an experiment", hint=hint)
    y = order.y or _headline(assembly.metrics, options)
    if y not in assembly.metrics:
        raise UsageError(f"--y {y}: there are {', '.join(assembly.metrics)}")
    content: dict[str, Any] = {"spec_version": 1, "name": name}
    if order.title:
        content["title"] = order.title
    content["metrics"] = {"collect": list(dict.fromkeys(_collected(metric) for metric in (y, *assembly.metrics)))}
    content["program"] = {"component": IMPORTED, "parameters": {v: f"${v}" for v in assembly.variables}}
    columns = {v: sorted({point.values[v] for point in assembly.points}) for v in assembly.variables}
    content["sweep"] = columns
    x = _abscissa(assembly, options)
    if x is not None and not isinstance(columns[x][0], str):
        lowest = columns[x][0]
        if order.x_scale == "log" and isinstance(lowest, int | float) and lowest <= 0:
            raise UsageError(f"--x-scale log: a logarithmic axis has no {x} = {lowest}")
        content["model"] = {"x": x, "y": y, "x_scale": order.x_scale}
    return content


def _headline(metrics: Sequence[str], options: ImportOptions) -> str:
    """The metric that was asked for first, or the first in the order of all metrics."""
    for named in options.metrics:
        for metric in metrics:
            if named.name in (metric, _collected(metric)):
                return metric
    order = list(METRICS)
    return min(metrics, key=lambda metric: order.index(_collected(metric)))


def _collected(metric: str) -> str:
    """The metric of a spec that a metric falls into, such as ``latency`` for ``latency_p99``."""
    found = metric_named(metric)
    return metric if metric in METRICS or found is None else str(found.derived_from)


def _abscissa(assembly: Assembly, options: ImportOptions) -> str | None:
    if options.variables or len(assembly.variables) <= 1:
        return next(iter(assembly.variables), None)
    raise UsageError(
        f"several variables differ in the source: {', '.join(assembly.variables)}",
        hint=f"name the one of the abscissa: --x {assembly.variables[0]}; --only NAME=VALUE holds another",
    )


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 and names != {""} else UNKNOWN


# --- files and trials


def _places(found: FoundResults) -> dict[Path, str]:
    """Where each source file is kept in the run directory."""
    names = [path.resolve().name for path in found.paths]
    apart = len(set(names)) < len(names)
    places: dict[Path, str] = {}
    for number, (path, name, reading) in enumerate(zip(found.paths, names, found.readings, strict=True)):
        folder = f"{SOURCE}/{number}" if apart else SOURCE
        for file in reading.files:
            below = "" if file == path else f"/{file.relative_to(path).as_posix()}"
            places.setdefault(file, f"{folder}/{name}{below}")
    return places


def _records(assembly: Assembly, places: Mapping[Path, str]) -> Iterator[list[dict[str, Any]]]:
    for point in assembly.points:
        yield [
            {
                "trial": {"repetition": result.repetition, "attempt": result.repetition},
                "imported": [_record(value, places) for value in result.values.values()],
                "flags": list(result.flags),
            }
            for result in point.results
        ]


def _record(value: ImportedValue, places: Mapping[Path, str]) -> dict[str, Any]:
    place = value.place
    where = {"file": places.get(place.file, str(place.file)), "line": place.line, "key": place.key}
    return {"metric": value.metric, "value": value.value, "unit": value.unit, "name": value.name, **where}
