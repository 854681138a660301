"""The commands that look at specs, runs and machines: list, check, status, show, doctor."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from p4perf.cli.app import (
    Format,
    FormatOption,
    PointsOption,
    SetOption,
    SkipOption,
    app,
    emit,
    load,
    refuse,
    say,
    say_origin,
    with_interval,
)
from p4perf.errors import CapabilityError, ExitCode, P4PerfError, TestbedError, UsageError
from p4perf.records import Document, Record, Scalar, counted, doc, json_schema, listing, spread
from p4perf.results import Run, find_run
from p4perf.results.files import temporary_folder
from p4perf.results.names import RunSummary

if TYPE_CHECKING:
    from p4perf.experiment.planning import RefusedPoint
    from p4perf.models.component import ComponentModel
    from p4perf.targets.base import NodeFacts, Problem, Target
    from p4perf.testbeds.base import Testbed
    from p4perf.testbeds.health import Check


Plugins = Literal["targets", "testbeds", "components", "generators", "load-generators", "searches", "importers"]
Papers = Literal["functions", "hardware", "operations", "models", "eivu", "eivu-cells"]
What = Literal[Plugins, Papers, "experiments", "metrics", "runs"]


class _Plugin(Record):
    name: str = doc("name")
    summary: str = doc("one line")


class _Experiment(Record):
    name: str = doc("name for commands")
    title: str = doc("one line")


listing("list.experiments", _Experiment, "`p4perf list experiments`.")


class _Target(_Plugin):
    metrics: tuple[str, ...] = doc("metrics that every accepted trial gives")
    links: tuple[str, ...] = doc("[links](load.md#generator-device-and-link) by which a load generator reaches it")
    variants: tuple[str, ...] = doc("names of its variants")


listing("list.targets", _Target, "`p4perf list targets`: names for `--target`.")


class _Coverage(Record):
    experiment: str = doc("name of the experiment")
    columns: dict[str, str] = spread("target or generator", "`all N`, `M of N: reason` or `no: reason`, of N points")


class _Limit(Record):
    of: str = doc("name of the target or generator")
    what: str = doc("the construct, or what is limited with its unit")
    most: int = doc("the limit; 0 for a construct that is missing")
    source: str = doc("where the limit comes from, or why the construct is missing")


for _what in ("targets", "generators"):
    _command = f"`p4perf list {_what}"
    _meaning = "one row for each experiment of the catalogue."
    listing(f"list.{_what}.components", _Coverage, f"{_command} --components`: {_meaning}")
    _meaning = "one row for each construct that is missing and for each limit."
    listing(f"list.{_what}.limits", _Limit, f"{_command} --limits`: {_meaning}")


class _Component(_Plugin):
    parameters: tuple[str, ...] = doc("names of its parameters")


listing("list.components", _Component, "`p4perf list components`: names for specs.")
listing("list.testbeds", _Plugin, "`p4perf list testbeds`: names for `--testbed`.")
listing("list.generators", _Plugin, "`p4perf list generators`: names for `generate --generator`.")
listing("list.load-generators", _Plugin, "`p4perf list load-generators`: names for `load.generator`.")
listing("list.searches", _Plugin, "`p4perf list searches`: names for `load.search`.")
listing("list.importers", _Plugin, "`p4perf list importers`: names for `import --from`.")


class _Metric(Record):
    name: str = doc("name for specs")
    unit: str = doc("its unit")
    description: str = doc("what it is")


listing("list.metrics", _Metric, "`p4perf list metrics`: names for specs.")


class _Function(Record):
    name: str = doc("name for `estimate eo` and `estimate place`")
    title: str = doc("one line")
    source: str = doc("where it is from")


listing("list.functions", _Function, "`p4perf list functions`: names for `estimate eo` and `estimate place`.")


class _Hardware(Record):
    name: str = doc("name for `--hardware` and `--host`")
    title: str = doc("one line")
    profiles: tuple[str, ...] = doc("names for `--profile`")


listing("list.hardware", _Hardware, "`p4perf list hardware`: names for `--hardware` and `--host`.")


class _Operation(Record):
    operation: str = doc("elementary operation with its parameters", of="signature")
    summary: str = doc("one line")
    source: str = doc("where it is defined")


listing("list.operations", _Operation, "`p4perf list operations`: elementary operations.")


class _PublishedModel(Record):
    subject: str = doc("name for `compare --component`: target and paper")
    component: str = doc("component", of="name")
    variable: str = doc("scaled variable", of="x.name")
    metric: str = doc("metric", of="y.name")
    unit: str = doc("its unit", of="y.unit")
    first: float = doc("first x of the curve")
    last: float = doc("last x of the curve")
    derived: bool = doc("whether the curve is derived from printed numbers")


listing("list.models", _PublishedModel, "`p4perf list models`: published models.")


listing("list.runs", RunSummary, "`p4perf list runs`: run directories.")
StatusDocument = listing("status", RunSummary, "`p4perf status RUN`: one row.")


class _CheckRow(Record):
    experiment: str = doc("name of the experiment")
    points: int = doc("points of the sweep")
    trials: int = doc("accepted trials that are wanted: points x repetitions")
    spec_hash: str = doc("[hash](specs.md#the-hash-of-a-spec) of the spec, 64 hexadecimal digits")


CheckDocument = listing("check", _CheckRow, "`p4perf check SPEC`: one row.")


class _ShowRow(Record):
    values: dict[str, Scalar] = spread("variable", "value of a swept variable; `point_index` if there are none")
    median: float | None = doc("median of the accepted trials; null without any", "of the metric")
    low: float | None = doc("lower end of its 95 % interval", "of the metric")
    high: float | None = doc("upper end", "of the metric")
    unit: str = doc("unit of the metric")
    n: int = doc("accepted trials")
    rejected: int = doc("rejected trials that ran to their end")
    flags: str = doc("[flags](measuring.md#quality-flags) of the accepted trials, separated by commas")


class ShowDocument(Document, kind="show"):
    """`p4perf show RUN`: one row for each point."""

    metric: str = doc("metric that is shown")
    unit: str = doc("its unit")
    run: str = doc("path of the run directory, as it was given")
    rows: tuple[_ShowRow, ...] = doc("")


@app.command("list")
def list_(
    what: Annotated[What, Argument(help="What to list.")] = "experiments",
    folder: Annotated[Path, Option("--in", help="Folder of the runs.")] = Path("runs"),
    components: Annotated[
        bool, Option("--components", help="Of targets or generators: show which experiments they support.")
    ] = False,
    limits: Annotated[
        bool, Option("--limits", help="Of targets or generators: show missing constructs and limits.")
    ] = False,
    item: Annotated[list[str] | None, Option(help="Of eivu: only these items, such as 014. Repeatable.")] = None,
    as_spec: Annotated[bool, Option("--spec", help="Of eivu: print a spec that measures the items.")] = False,
    data: Annotated[Path | None, Option(help="Of eivu-cells: folder with an eivu_results.csv of your own.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """List experiments, runs, targets, metrics, models and more."""
    from p4perf.cli.vio import print_cells, print_items

    if what not in ("targets", "generators"):
        refuse({"--components": components, "--limits": limits}, "for targets and generators only")
    if what != "eivu":
        refuse({"--item": item, "--spec": as_spec}, "for eivu only")
    if what != "eivu-cells":
        refuse({"--data": data}, "for eivu-cells only")
    if what == "eivu":
        print_items(item, fmt, as_spec=as_spec)
    elif what == "eivu-cells":
        print_cells(data, fmt)
    elif components or limits:
        emit(fmt, _capabilities(what, whole=components))
    elif what == "runs":
        from p4perf.api import list_runs

        rows = tuple(map(RunSummary.of, list_runs(folder, told=lambda text: say(f"note: {text}"))))
        document = Document.KINDS["list.runs"].read(None, rows=rows)
        emit(fmt, document, rows=_short(rows) if fmt is Format.TABLE else None)
    else:
        emit(fmt, _listed(what))


def _capabilities(what: What, *, whole: bool) -> Document:
    from p4perf.experiment.planning import Column, coverage, limits
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.specs import list_catalogue

    group = f"p4perf.{what}"
    plugins = {name: load_plugin(group, name) for name in plugin_names(group)}
    columns = {
        name: Column(p.capabilities, getattr(p, "metrics", None))
        for name, p in plugins.items()
        if hasattr(p, "capabilities")
    }
    if not whole:
        return Document.KINDS[f"list.{what}.limits"].read(None, rows=limits(columns))
    rows = []
    for row in coverage([e.name for e in list_catalogue()], columns):
        cells = {name: str(cell) for name, cell in row.items() if name != "experiment"}
        rows.append(_Coverage(experiment=row["experiment"], columns=cells))
    return Document.KINDS[f"list.{what}.components"].read(None, rows=rows)


def _listed(what: What) -> Document:
    """What there is of a kind; what only some kinds need is imported for them alone."""
    kind = Document.KINDS[f"list.{what}"]
    rows: Iterable[Record]
    match what:
        case "experiments":
            from p4perf.specs import list_catalogue

            rows = map(_Experiment.read, list_catalogue())
        case "metrics":
            from p4perf.specs import METRICS

            rows = (_Metric.read(metric, name=name) for name, metric in METRICS.items())
        case "functions":
            from p4perf.evaluation.papers.baldi2018 import function_names, load_function

            rows = (_Function.read(load_function(name)) for name in function_names())
        case "hardware":
            from p4perf.evaluation.papers.baldi2018 import hardware_names, load_hardware

            machines = map(load_hardware, hardware_names())
            rows = (_Hardware.read(m, profiles=tuple(p.name for p in m.profiles)) for m in machines)
        case "operations":
            from p4perf.models.eo import registered_operations

            rows = map(_Operation.read, registered_operations().values())
        case "models":
            from p4perf.models.published import published_models

            rows = map(_published, published_models())
        case _:
            from p4perf.plugins import load_plugin, plugin_names

            group = f"p4perf.{what.replace('-', '_')}"
            rows = (_plugin(what, name, load_plugin(group, name)) for name in plugin_names(group))
    return kind.read(None, rows=tuple(rows))


def _published(model: ComponentModel) -> _PublishedModel:
    from p4perf.models.published import subject_of

    first, last = model.domain
    derived = bool(model.provenance.get("derived"))
    return _PublishedModel.read(model, subject=subject_of(model), first=first, last=last, derived=derived)


def _plugin(what: What, name: str, plugin: Any) -> _Plugin:
    from p4perf.targets.roles import Connects

    if what == "targets":
        return _Target.read(plugin, name=name, links=plugin.links if issubclass(plugin, Connects) else ())
    if what == "components":
        return _Component.read(plugin, name=name, parameters=tuple(plugin.Parameters.model_fields))
    return _Plugin.read(plugin, name=name)


def _short(rows: Sequence[RunSummary]) -> list[dict[str, Any]]:
    """What people want to know of runs; the experiment and the place are in the name."""
    chosen = any(row.accuracy is not None for row in rows)
    return [
        {
            "run": row.run,
            "began": row.created[:16].replace("T", " "),
            "points": f"{row.finished} of {row.points}",
            "trials": row.trials,
            "planned": row.wanted,
            **({"error": "" if row.error is None else f"{100 * row.error:.3g} %"} if chosen else {}),
            "state": row.state,
        }
        for row in rows
    ]


@app.command()
def check(
    spec: Annotated[
        str | None,
        Argument(
            help="Experiment of the catalogue, or path of a spec file; with --schema, kind of a document of JSON.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, Option("--schema", help="Print the JSON Schema of specs, or of a kind of document.")
    ] = False,
    target: Annotated[
        list[str] | None, Option("--target", "-t", help="Also check that this target can measure it here. Repeatable.")
    ] = None,
    testbed: Annotated[str, Option(help="Where the target runs.")] = "local",
    sets: SetOption = None,
    points: PointsOption = None,
    skip_impossible: SkipOption = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Check a spec, and with --target that the target can measure it.

    With --schema, prints the JSON Schema of specs, for editors, or of a document that a command prints, named by its
    kind, such as comparison or list.runs.
    """
    from p4perf.experiment import open_target, open_testbed, plan_sweep, require_usable
    from p4perf.experiment.planning import possible_points
    from p4perf.specs import describe_variants

    if schema:
        refuse({"--target": target, "--set": sets, "--points": points}, "a schema is of all specs")
        _print_schema(spec)
        return
    if spec is None:
        raise UsageError("no spec given", hint="p4perf list shows the catalogue")
    experiment = load(spec, sets, points, skip=skip_impossible)
    refused: dict[str, RefusedPoint] = {} if target else {p.label: p for p in possible_points(experiment)[1]}
    for name in target or ():
        chosen, place = open_target(name), open_testbed(testbed)
        refused |= {p.label: p for p in plan_sweep(experiment, chosen, require_usable(chosen, place)).refused}
    skipped = list(refused.values())
    if skipped and not experiment.spec.sweep.skip_impossible:
        first = skipped[0]
        more = f" (and {len(skipped) - 1} more points)" if len(skipped) > 1 else ""
        hint = "--skip-impossible accepts that; p4perf run leaves such points out"
        raise CapabilityError(f"{experiment.spec.name} at {first.label}: {first.reason}{more}", hint=hint)
    for point in skipped:
        say(f"left out: {point.label}: {point.reason}")
    row = _CheckRow(
        experiment=experiment.spec.name,
        points=len(experiment.points) - len(skipped),
        trials=(len(experiment.points) - len(skipped)) * experiment.spec.trials.repetitions,
        spec_hash=experiment.spec_hash,
    )
    emit(fmt, CheckDocument(rows=(row,)))
    for line in describe_variants(experiment.spec):
        say(line)


def _print_schema(document: str | None) -> None:
    from p4perf.specs import json_schema_text
    from p4perf.specs.messages import nearest

    if document is None:
        sys.stdout.write(json_schema_text())
        return
    known = documents()
    if document not in known:
        raise UsageError(f"unknown document {document!r}", hint=nearest(document, list(known), "documents"))
    sys.stdout.write(json.dumps(json_schema(known[document]), indent=2, ensure_ascii=False) + "\n")


ELSEWHERE = (
    "p4perf.evaluation.prediction.record",
    "p4perf.experiment.compare",
    "p4perf.experiment.gate",
    "p4perf.experiment.many",
    "p4perf.experiment.opq",
    "p4perf.experiment.reproduction",
    "p4perf.experiment.subjects",
)
"""Modules with documents that no module of the command line imports at its start."""


def documents() -> dict[str, type[Document]]:
    """All documents that commands print, by kind."""
    from p4perf.cli import loaded

    loaded()
    for module in ELSEWHERE:
        importlib.import_module(module)
    return dict(sorted(Document.KINDS.items()))


@app.command()
def status(
    run: Annotated[
        Path, Argument(metavar="RUN", parser=find_run, help="A run directory, or the folder of a campaign.")
    ],
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Show the progress of a run or campaign."""
    from p4perf.cli.measure import show_campaign
    from p4perf.results.campaign import CampaignDirectory

    if CampaignDirectory.is_one(run):
        show_campaign(run, fmt)
        return
    opened = Run.open(run)
    row = RunSummary.of(opened)
    say_origin(opened.identity)
    emit(fmt, StatusDocument(rows=(row,)), rows=_short([row]) if fmt is Format.TABLE else None)
    if fmt is Format.TABLE and not row.complete:
        say(f"p4perf resume {run} continues it")


@app.command()
def show(
    run: Annotated[Path, Argument(metavar="RUN", parser=find_run, help="A run directory.")],
    metric: Annotated[str | None, Option(help="Metric to show; default: the modelled one.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Show the measured points of a run.

    Median over the starts, 95 % interval, accepted starts, flags.
    """
    from p4perf.experiment.evaluate import point_rows, states_of

    opened = Run.open(run)
    rows, chosen, unit = point_rows(opened, metric)
    say_origin(opened.identity)
    fixed = _ShowRow.KEYS
    found = (_ShowRow.read(row, values={k: v for k, v in row.items() if k not in fixed}) for row in rows)
    document = ShowDocument(metric=chosen, unit=unit, run=str(opened.path), rows=tuple(found))
    table = [_rounded(row) for row in document.rows] if fmt is Format.TABLE else None
    emit(fmt, document, rows=table, title=f"{chosen} [{unit}], median (95 % interval)")
    for text in states_of(opened, chosen):
        say(text)


def _rounded(row: _ShowRow) -> dict[str, Any]:
    """A point with as many digits as its interval supports."""
    rest = {"n": row.n, "rejected": row.rejected, "flags": row.flags}
    return {**row.values, "median": with_interval(row.median, row.low, row.high), **rest}


class _DoctorRow(Record):
    area: str = doc("`testbed`, `target`, `load generator`, `metric`, `tool`, `setting`, `environment` or `noise`")
    check: str = doc("what was checked, for people")
    state: str = doc("`ok`, `warning`, `missing` or `info`")
    value: str = doc("what was found, for people")
    advice: str = doc("what to do; empty if nothing")


class DoctorDocument(Document, kind="doctor"):
    """`p4perf doctor`: one row for each check."""

    usable_targets: tuple[str, ...] = doc("targets that can be used here")
    summary: tuple[str, ...] = doc("what works, and what to install for more, for people")
    rows: tuple[_DoctorRow, ...] = doc("")


@app.command()
def doctor(
    fix: Annotated[bool, Option("--fix", help="Apply reversible settings: hugepages, autogroup (root).")] = False,
    undo: Annotated[bool, Option("--undo", help="Restore what --fix changed (root).")] = False,
    testbed: Annotated[str, Option(help="Where to look: local, or ssh:FILE:NODE.")] = "local",
    fmt: FormatOption = Format.TABLE,
) -> int:
    """Report what is usable here, and how well it can measure.

    Looks at targets, load generators, metrics and tools. Changes nothing, unless --fix or --undo says so. Exit code 0
    if a target is usable, else 3.
    """
    from p4perf.experiment import open_testbed
    from p4perf.testbeds import tuning
    from p4perf.testbeds.batch.base import BatchTestbed
    from p4perf.testbeds.health import Check

    if fix and undo:
        raise UsageError("--fix and --undo are opposites")
    place = open_testbed(testbed)
    if (fix or undo) and place.name != "local":
        raise UsageError("--fix and --undo change this machine", hint=f"run p4perf doctor on the node of {place.label}")
    if fix or undo:
        facts = place.facts()
        record = tuning.undo_record()
        wanted = tuning.wanted_settings(facts.number("memory_available_bytes"))
        changes = tuning.undo(record) if undo else tuning.apply(wanted, record)
        for change in changes:
            say(f"{change.path}: {change.before} -> {change.after}")
        say(
            f"undo with: p4perf doctor --undo (record: {record})"
            if fix and changes
            else counted(len(changes), "change")
        )
    found = place.problems()
    checks = [Check("testbed", place.label, "missing" if p.fatal else "warning", p.what, p.hint) for p in found]
    usable: list[str] = []
    good = not any(check.state == "missing" for check in checks)
    if not isinstance(place, BatchTestbed):
        checks, usable = _diagnose(place, checks)
        good = bool(usable)
    elif good:  # its node is asked when it measures, not before
        said = "the first run shows what works there, and how well: this testbed works in batches"
        checks.append(Check("testbed", place.label, "ok", "usable from here", said))
    document = DoctorDocument.read(None, usable_targets=usable, summary=_summary(usable, checks), rows=checks)
    if fmt is Format.TABLE:
        typer.echo("\n".join(document.summary))
    emit(fmt, document, rows=_short_checks(checks) if fmt is Format.TABLE else None)
    return int(ExitCode.OK if good else ExitCode.UNAVAILABLE)


def _summary(usable: Sequence[str], checks: Sequence[Check]) -> list[str]:
    """What works here, and what to install for more."""
    from p4perf.testbeds.health import OWN_P4, VALGRIND

    missing = [check for check in checks if check.state == "missing"]
    said = [f"You can measure on {', '.join(usable)}."] if usable else ["No target can be used here."]
    said += [f"{c.check}: {c.advice}." for c in missing if not usable and c.area in ("testbed", "target") and c.advice]
    names = {check.check: check.advice for check in missing}
    if OWN_P4 in names:
        said.append(f"To measure P4 source, {names[OWN_P4]}.")
    if VALGRIND in names:
        said.append(f"To simulate cache misses, install valgrind ({names[VALGRIND]}).")
    return said


def _short_checks(checks: Sequence[Check]) -> list[dict[str, str]]:
    """The checks with the metrics that are there in one row."""
    from dataclasses import asdict

    there = [check for check in checks if check.area == "metric" and check.state == "ok"]
    rows = []
    for check in checks:
        if check in there[1:]:
            continue
        row = asdict(check)
        if check in there:
            row |= {
                "check": counted(len(there), "metric"),
                "value": "all of p4perf list metrics but those missing here",
            }
        rows.append(row)
    return rows


def _usable(area: str, name: str, problems: Sequence[Problem], usable: str) -> Check:
    """A target or load generator; without fatal problems it is usable."""
    from p4perf.testbeds.health import Check

    fatal = [p for p in problems if p.fatal]
    value = "; ".join(p.what for p in fatal) or usable
    return Check(area, name, "missing" if fatal else "ok", value, next((p.hint for p in fatal if p.hint), ""))


def _diagnose(place: Testbed, checks: list[Check]) -> tuple[list[Check], list[str]]:
    """The checks of a testbed with those of everything that it has, and the targets that are usable there."""
    from p4perf.experiment import open_target
    from p4perf.plugins import plugin_names
    from p4perf.specs import METRICS
    from p4perf.testbeds.health import environment_checks, setting_checks, tool_checks

    try:
        facts = place.facts()
    except TestbedError:
        if not checks:
            raise
        return checks, []  # why there are no facts is among the problems
    targets = [open_target(name) for name in plugin_names("p4perf.targets")]
    judged = [_usable("target", target.name, target.problems(facts), "usable") for target in targets]
    usable = [target for target, check in zip(targets, judged, strict=True) if check.state == "ok"]
    generators, given = _load_checks(usable, facts)
    given |= {metric for target in usable for metric in target.metrics}
    checks += [*judged, *generators, *(_metric(name, given, targets, usable, facts) for name in METRICS)]
    checks += tool_checks(facts) + setting_checks(facts) + environment_checks(facts)
    if usable:
        checks += _noise(usable[0], place, facts)
    return checks, [target.name for target in usable]


def _metric(name: str, given: set[str], targets: Sequence[Target], usable: Sequence[Target], facts: NodeFacts) -> Check:
    """Whether a metric is measured or simulated here, and what it takes if not."""
    from p4perf.specs import METRICS
    from p4perf.targets.roles import Simulates
    from p4perf.testbeds.health import Check

    unit = METRICS[name].unit
    if name in given:
        return Check("metric", name, "ok", unit)
    simulators = [t for t in targets if isinstance(t, Simulates) and name in t.simulates]
    if simulators:
        here = facts.text("tool_valgrind") and any(target in usable for target in simulators)
        advice = "" if here else "apt: valgrind"
        return Check("metric", name, "ok" if here else "missing", f"{unit}, simulated by cachegrind", advice)
    others = [target.name for target in targets if name in target.metrics]
    advice = f"{' or '.join(others)} gives it" if others else "needs hardware counters, which virtual machines hide"
    return Check("metric", name, "missing", unit, advice)


def _load_checks(targets: list[Target], facts: NodeFacts) -> tuple[list[Check], set[str]]:
    """Load generators, and the metrics that they make possible."""
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.specs.metrics import LOAD_METRICS
    from p4perf.targets.roles import links_of

    group = "p4perf.load_generators"
    reached = ", ".join(f"{t.name} ({', '.join(links_of(t))})" for t in targets if links_of(t))
    usable = f"usable, reaches {reached or 'no target'}"
    checks = [
        _usable("load generator", name, load_plugin(group, name)().problems(facts), usable)
        for name in plugin_names(group)
    ]
    return checks, set(LOAD_METRICS) if reached and any(check.state == "ok" for check in checks) else set()


def _noise(target: Target, place: Testbed, before: NodeFacts) -> list[Check]:
    from p4perf.experiment.recorder import steal_share
    from p4perf.targets.roles import calibration_of
    from p4perf.testbeds.health import Check, noise_checks

    job = calibration_of(target)
    if job is None:
        return []
    with temporary_folder() as folder:
        try:
            output = place.run(job, folder).stdout
        except P4PerfError as error:
            return [Check("noise", "calibration", "missing", error.message, error.hint or "")]
    lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return noise_checks(lines, steal_share(before, place.facts()))
