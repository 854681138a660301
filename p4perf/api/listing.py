"""What there is to choose from, by kind: experiments, plug-ins, metrics, and what papers describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from p4perf.errors import UsageError
from p4perf.models.component import ComponentModel
from p4perf.plugins import load_plugin, plugin_names
from p4perf.records import Document, Record, doc, listing, spread
from p4perf.results.names import RunSummary
from p4perf.specs import METRICS, list_catalogue
from p4perf.specs.messages import nearest


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


listing("list.published-models", _PublishedModel, "`p4perf list published-models`: models that papers print.")


class _CostModel(Record):
    name: str = doc("name for `predict --model`")
    target: str = doc("target")
    processor: str = doc("processor of its machine; empty if unknown")
    made: str = doc("when it was made; empty if unknown")
    file: str = doc("its file; `reference` if it ships with p4perf")
    here: bool = doc("whether it is of a machine like this one")
    used: bool = doc("whether `predict` uses it here for that target without `--model`")


listing("list.models", _CostModel, "`p4perf list models`: cost models of the folder `models`, and those that ship.")


listing("list.runs", RunSummary, "`p4perf list runs`: run directories.")


class _EivuItemsRow(Record):
    item: str = doc("001 to 141", of="number")
    name: str = doc("in a few words")
    category: str = doc("base, programmatic, configurational or combinational")
    group: str = doc("class and subclass")
    process: str = doc("rx, nf, tx or all: whose behaviour it changes")
    parents: tuple[str, ...] = doc("items that it inherits from")
    factors: str = doc("factors that it consists of, in brackets one that it is a part of")
    runs: bool = doc("whether component `vio` can run it")
    change: str = doc("values before and after")
    settings: tuple[str, ...] = doc("parameters of component `vio`")
    not_run_because: str = doc("why it cannot be run; empty if it can")


EivuItemsDocument = listing("list.eivu", _EivuItemsRow, "`p4perf list eivu`: the items of the study.")


class _EivuCellsRow(Record):
    a: int = doc("1 with the factor; `b` to `f` likewise")
    b: int = doc("")
    c: int = doc("")
    d: int = doc("")
    e: int = doc("")
    f: int = doc("")
    S1_mpps: float = doc("throughput on server S1, where the network function was profiled", "Mpps")
    S1_l1_misses: float = doc("L1 misses of the network function", "misses/packet")
    S2_mpps: float = doc("the same on S2", "Mpps")
    S2_l1_misses: float = doc("", "misses/packet")
    S3_mpps: float = doc("the same on S3", "Mpps")
    S3_l1_misses: float = doc("", "misses/packet")
    S4_mpps: float = doc("the same on S4", "Mpps")
    S4_l1_misses: float = doc("", "misses/packet")


EivuCellsDocument = listing(
    "list.eivu-cells",
    _EivuCellsRow,
    "`p4perf list eivu-cells`: a row for each combination of factors that was measured.",
)


def _capabilities(what: str, *, whole: bool) -> Document:
    from p4perf.experiment.planning import Column, coverage, limits

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


def list_items(
    what: str = "experiments",
    *,
    components: bool = False,
    limits: bool = False,
    items: Sequence[str] = (),
    data: Path | None = None,
) -> Document:
    """What there is of a kind: experiments, targets, metrics, models and more.

    Args:
        components, limits: of targets or generators: which experiments they support, and what limits them.
        items: of ``eivu``: only these items, such as ``014``.
        data: of ``eivu-cells``: folder with an eivu_results.csv of your own.
    """
    kinds = [
        kind[5:] for kind in Document.KINDS if kind[:5] == "list." and kind.count(".") == 1 and kind != "list.runs"
    ]
    if what not in kinds:
        raise UsageError(f"there is no list of {what!r}", hint=nearest(what, kinds, "lists"))
    if components or limits:
        return _capabilities(what, whole=components)
    kind = Document.KINDS[f"list.{what}"]
    rows: Iterable[Record]
    match what:
        case "experiments":
            rows = map(_Experiment.read, list_catalogue())
        case "metrics":
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
            rows = _cost_models()
        case "published-models":
            from p4perf.models.published import published_models

            rows = map(_published, published_models())
        case "eivu":
            from p4perf.specs.items import items_of, read_items

            found = items_of(list(items)) if items else read_items()
            rows = (_EivuItemsRow.read(i, settings=tuple(f"{k}={v}" for k, v in i.settings.items())) for i in found)
        case "eivu-cells":
            rows = _cells(data)
        case _:
            group = f"p4perf.{what.replace('-', '_')}"
            rows = (_plugin(what, name, load_plugin(group, name)) for name in plugin_names(group))
    return kind.read(None, rows=tuple(rows))


def _cost_models() -> Iterator[_CostModel]:
    from p4perf.evaluation.prediction.library import known_models
    from p4perf.models.program.costs import CostModel

    for model, used in known_models():
        costs = model.pricing
        assert isinstance(costs, CostModel)  # noqa: S101 - it was read from a file
        facts = {"processor": costs.machine.get("cpu_model", ""), "made": str(costs.provenance.get("made", ""))}
        yield _CostModel(
            name=model.name, target=model.target, file=model.origin, here=not model.elsewhere, used=used, **facts
        )


def _published(model: ComponentModel) -> _PublishedModel:
    from p4perf.models.published import subject_of

    first, last = model.domain
    derived = bool(model.provenance.get("derived"))
    return _PublishedModel.read(model, subject=subject_of(model), first=first, last=last, derived=derived)


def _plugin(what: str, name: str, plugin: Any) -> _Plugin:
    from p4perf.targets.roles import Connects

    if what == "targets":
        return _Target.read(plugin, name=name, links=plugin.links if issubclass(plugin, Connects) else ())
    if what == "components":
        return _Component.read(plugin, name=name, parameters=tuple(plugin.Parameters.model_fields))
    return _Plugin.read(plugin, name=name)


def _cells(folder: Path | None) -> Iterator[Record]:
    """The factorial cells of the study, from its data or those of a folder."""
    from p4perf.evaluation.papers.takeya2024.eivu import FACTORS, SERVERS, read_study

    study = read_study(folder)
    cells = {server: study.factorial(server).cells for server in SERVERS}
    for present in sorted(cells["S1"], key=lambda p: (len(p), sorted(p))):
        row: dict[str, Any] = {name: int(name in present) for name in FACTORS}
        for server in SERVERS:
            cell = cells[server][present]
            row |= {f"{server}_mpps": cell.median, f"{server}_l1_misses": cell.cache}
        yield _EivuCellsRow.read(row)
