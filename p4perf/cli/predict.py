"""The commands about what programs cost on a machine: predict, and learn, which writes the cost model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from p4perf.cli.app import (
    DefaultFillOption,
    DefinesOption,
    EntriesOption,
    Format,
    FormatOption,
    IncludesOption,
    MissOption,
    P4infoOption,
    PacketsOption,
    PortOption,
    QuietOption,
    SetOption,
    StdOption,
    ZipfOption,
    app,
    emit,
    once,
    print_table,
    refuse,
    say,
    share_option,
    told_by,
)
from p4perf.errors import UsageError
from p4perf.records import Document, Record, counted, doc
from p4perf.results import find_run

if TYPE_CHECKING:
    from p4perf.evaluation.prediction.answer import MeasuredPrediction, PathName, Prediction
    from p4perf.evaluation.prediction.programs import CostDifference
    from p4perf.evaluation.prediction.record import Answers
    from p4perf.models.estimate import Estimate


MOST_STEPS = 12
MOST_BREAKDOWNS = 4
MOST_LINES = 60
MOST_ROWS = 7
LEAST_SHARE = 0.01
"""Rows of a cost breakdown without ``--verbose``, and the least share of the cost that has one of its own."""

MOST_WARNINGS = 3


def print_answers(found: Answers, path: PathName, *, quiet: bool = False, verbose: bool = False) -> None:
    """Print everything for people: tables on stdout, what is said of them on stderr."""
    changed = any(each.changes for each in found.predictions)
    shown = found.changed
    if not quiet:
        sent = [f"packets as p4perf measure sends them; {each.graph.packets}" for each in shown if each.graph.packets]
        for text in dict.fromkeys((*map(_premise, shown), *sent)):
            say(text)
    print_table(
        [_answer_row(each, changed=changed, verbose=verbose) for each in found.predictions],
        title="the answer (in brackets, 90 % intervals)",
    )
    warnings = _warnings(shown, verbose=verbose)
    if _paths_differ(shown, path):
        warnings.insert(0, "the targets are priced on different paths; --traffic sends the same packets to all")
    for text in warnings[: None if verbose else MOST_WARNINGS]:
        say(f"warning: {text}")
    for difference in found.differences:
        _print_difference(difference, path, MOST_LINES if verbose else MOST_ROWS)
    if len(shown) > MOST_BREAKDOWNS:
        if not quiet:
            fewer = "--points 1 or -t TARGET" if any(each.values for each in shown) else "-t TARGET"
            how = f"choose fewer with {fewer}, or read all with --format json"
            say(f"{len(shown)} predictions: cost breakdowns are printed for up to {MOST_BREAKDOWNS}; {how}")
    elif verbose:
        for each in shown:
            _print_one(each, path, several=len(shown) > 1)
    else:
        print_table(_short_breakdown(shown, path), title=f"cost breakdown of the {path} path [cycles/packet]")
    if found.measured:
        print_table([_measured_row(each) for each in found.measured], title="prediction and measurement")
    for refusal in found.refusals:
        at = ", ".join(f"{k}={v}" for k, v in refusal.values.items())
        say(f"refused: {refusal.program}{f' at {at}' if at else ''} on {refusal.model}: {refusal.reason}")
    if outside := sum(not each.holds for each in found.measured):
        say(
            f"{outside} of {counted(len(found.measured), 'measurement')} OUTSIDE the interval of the prediction; "
            "p4perf learn makes a model of this machine"
        )


FAR_APART = 3.0
"""How many times as much as the cheapest path the most expensive one costs, where people should know that."""


def _premise(each: Prediction) -> str:
    """The premises of the answer: the model, the path of packets where shares are unknown, and the size of tables."""
    from p4perf.evaluation.prediction.library import REFERENCE
    from p4perf.programs.reading.flow import FULL

    shipped = each.model.origin == REFERENCE
    model = f"shipped model of {each.model.machine}" if shipped else f"model {each.model.origin} ({each.model.machine})"
    said = [f"{model}, cores at {each.clock_hz / 1e9:.4g} GHz"]
    if each.graph.assumed and not each.graph.packets:
        said.append("assuming that tables hit and packets are sent (change with --traffic, --probabilities)")
        low, high = each.cycles("lowest-cost"), each.cycles("highest-cost")
        if high.value > FAR_APART * low.value:
            said.append(f"paths cost {low.alike(low.value)} to {high.alike(high.value)} cycles")
    if FULL in each.graph.remarks:
        said.append("tables are full (change with --fill, --entries)")
    return f"{each.model.target}: {'; '.join(said)}"


def _warnings(shown: Sequence[Prediction], *, verbose: bool) -> list[str]:
    """What to know of the answers, each once, with the targets that it is about unless it is about all."""
    targets: dict[str, list[str]] = {}
    for each in shown:
        for text in each.warnings if verbose else each.advice:
            targets.setdefault(text, []).append(each.model.target)
    every = {each.model.target for each in shown}
    return [
        text if {*named} == every else f"{', '.join(dict.fromkeys(named))}: {text}" for text, named in targets.items()
    ]


def _paths_differ(shown: Sequence[Prediction], path: PathName) -> bool:
    """Whether packets look something up in other tables on one target than on another, where nobody says which."""
    from p4perf.programs.reading.flow import base_name

    tables = {
        frozenset(
            base_name(line.node)
            for line in each.breakdowns[path].lines
            if line.charge.what.kind == "lookup" and line.charge.times > 0
        )
        for each in shown
        if each.graph.assumed and not (each.graph.packets or each.changes)
    }
    return len(tables) > 1


def _short_breakdown(shown: Sequence[Prediction], path: PathName) -> list[dict[str, Any]]:
    """What costs most, side by side, and the rest of each prediction in one row."""
    from p4perf.models.estimate import exactly

    sums: dict[tuple[str, str], dict[str, Estimate]] = {}
    shares: dict[tuple[str, str], float] = {}
    for each in shown:
        name = _name(each) if len({e.model.name for e in shown}) < len(shown) else each.model.target
        found = each.breakdowns[path]
        ends = {(end, ""): exactly(getattr(found.breakdown, end)) for end in ("baseline", "interaction")}
        for item, cycles in (found.by_item() | ends).items():
            sums.setdefault(item, {})[name] = cycles
            share = abs(cycles.value) / (found.breakdown.cycles.value or 1.0)
            shares[item] = max(share, shares.get(item, 0.0))
    order = sorted(sums, key=lambda item: (item[0] != "baseline", -shares[item]))
    kept = [item for item in order[: MOST_ROWS - 1] if shares[item] >= LEAST_SHARE]
    rest = order[len(kept) :]
    if len(rest) == 1:
        kept, rest = order, []
    rows = [{"part": part, "name": name, **_rounded(sums[part, name])} for part, name in kept]
    if rest:
        together: dict[str, Estimate] = {}
        for item in rest:
            for name, cycles in sums[item].items():
                together[name] = together.get(name, exactly(0.0)) + cycles
        rows.append({"part": "others", "name": ", ".join(dict(rest)), **_rounded(together)})
    return rows


def _rounded(cycles: Mapping[str, Estimate]) -> dict[str, str]:
    return {name: _digits(each) for name, each in cycles.items()}


def _digits(cycles: Estimate) -> str:
    """A cost with as many digits as its interval supports; with two if it has none."""
    return cycles.rounded() if cycles.low < cycles.high else f"{float(f'{cycles.value:.2g}'):g}"


def _answer_row(each: Prediction, *, changed: bool, verbose: bool) -> dict[str, Any]:
    from p4perf.evaluation.prediction.answer import Conditions

    row: dict[str, Any] = {
        "program": each.graph.name,
        **({"change": "; ".join(each.changes) or "none"} if changed else {}),
        **each.values,
        "target": each.model.target,
        "machine": f"{each.model.machine}{' (not this one)' if each.model.elsewhere else ''}",
        "cycles": f"{'>= ' if each.open_above else ''}{each.cycles().rounded()}",
        "Mpps/core": each.core_mpps.rounded(),
    }
    if verbose or each.conditions != Conditions():
        row |= {
            f"Mpps, {counted(each.conditions.cores, 'core')}, {each.frame_bytes} B": each.rate.mpps.rounded(),
            "Gbit/s": f"{each.rate.gbps.value:.4g}",
            "bound": each.rate.bound,
        }
    if verbose:
        row |= {
            "lowest cost": f"{each.cycles('lowest-cost').value:.4g}",
            "highest cost": f"{each.cycles('highest-cost').value:.4g}",
        }
    if (verbose or each.conditions != Conditions()) and each.latency is not None:
        quantiles = dict(each.latency.quantiles_us)
        row |= {"p50 us": quantiles["p50_us"].rounded(), "p99 us": quantiles["p99_us"].rounded()}
        row["loss"] = f"{each.latency.loss.value:.3g}"
    return row


def _print_one(each: Prediction, path: PathName, *, several: bool) -> None:
    from p4perf.evaluation.prediction.answer import PATHS
    from p4perf.evaluation.prediction.record import breakdown_rows, memory_records, node_rows, rate_rows, sources, steps
    from p4perf.records import as_rows

    name = _name(each) if several else each.graph.name
    for extreme in PATHS[1:]:
        taken = _shortened(steps(each.path(extreme)))
        say(f"{extreme} path, {each.cycles(extreme).rounded()} cycles: {taken}")
    if (paths := each.analysis.paths) > 1:
        likely = each.path("expected")
        count = str(paths) if paths < 1_000_000 else f"{float(paths):.2g}"
        say(f"{count} paths; the most probable ({likely.probability:.3g}): {_shortened(steps(likely))}")
    rows = rate_rows(each.sizes, each.conditions.line_rate_bps)
    print_table(rows, title=f"{name}: rate over frame size, {counted(each.conditions.cores, 'core')}")
    say(_line_text(each))
    if (latency := each.latency) is not None:
        quantiles = ", ".join(f"{name.removesuffix('_us')} {band.rounded()}" for name, band in latency.quantiles_us)
        say(
            f"at {latency.rate_mpps:.4g} Mpps (load {latency.load.rounded()}), Poisson arrivals, polled: "
            f"{quantiles} us; loss {latency.loss.rounded()}"
        )
    itemised = each.breakdowns[path]
    nodes = [{k: v for k, v in row.items() if v is not None or k != "low"} for row in node_rows(itemised)]
    print_table(nodes[:MOST_LINES], title=f"{name}: cost breakdown of the {path} path [cycles/packet]")
    if len(itemised.lines) <= MOST_LINES:
        print_table(breakdown_rows(itemised), title=f"{name}: every construct [cycles/packet]")
    else:
        say(f"{counted(len(itemised.lines), 'construct')}: --format json has all of them")
    if memory := as_rows(memory_records(each)):
        print_table(memory[:MOST_LINES], title=f"{name}: memory")
    if each.memory is not None and each.memory.size_bytes is not None:
        say(f"memory: {each.memory.size_bytes:.4g} B")
    if names := sources(each):
        say(f"component models: {', '.join(names)}")


def _name(each: Prediction) -> str:
    values = ", ".join(f"{k}={v}" for k, v in each.values.items())
    changes = "; ".join(each.changes)
    inside = ", ".join(text for text in (values, changes) if text)
    return f"{each.graph.name}{f' ({inside})' if inside else ''} on {each.model.name}"


def _shortened(steps: Sequence[str]) -> str:
    if len(steps) <= MOST_STEPS:
        return " -> ".join(steps)
    half = MOST_STEPS // 2
    left = f"... {len(steps) - 2 * half} more ..."
    return " -> ".join([*steps[:half], left, *steps[-half:]])


def _line_text(each: Prediction) -> str:
    value, low, high = each.line_rate_from
    rate = f"{each.conditions.line_rate_bps / 1e9:g} Gbit/s"
    if value is None:
        return f"no frame size of Ethernet fills {rate} with {counted(each.conditions.cores, 'core')}"
    ends = " .. ".join("more than 1518" if end is None else str(end) for end in (high, low))
    return f"{rate} is full from frames of {value} B on ({ends}); Gbit/s count preamble and gap"


def _print_difference(found: CostDifference, path: PathName, most: int) -> None:
    from p4perf.evaluation.prediction.breakdown import describe
    from p4perf.models.estimate import exactly

    rows: list[Mapping[str, Any]] = [
        {
            "part": line.part,
            "node": line.node,
            "construct": describe(line.what),
            "before": "none" if line.before is None else _digits(line.before.cycles),
            "after": "none" if line.after is None else _digits(line.after.cycles),
            "difference": _digits(line.cycles) if line.is_known else "not known",
        }
        for line in found.lines[:most]
    ]
    whole = found.after.cycles(path) if found.cycles is None or found.cycles.low == found.cycles.high else found.cycles
    if float(whole.alike(found.interaction)):
        ends = [_digits(exactly(each.breakdowns[path].breakdown.interaction)) for each in (found.before, found.after)]
        cells = dict(zip(("before", "after", "difference"), (*ends, _digits(exactly(found.interaction))), strict=True))
        rows.append({"part": "interaction", "node": "all", "construct": "together beyond their sum", **cells})
    values = ", ".join(f"{k}={v}" for k, v in found.after.values.items())
    where = f"{values}{', ' if values else ''}{'; '.join(found.after.changes)} on {found.after.model.name}"
    if not rows:
        say(f"{where}: nothing differs on the {path} path; --probabilities or --capture names other paths of packets")
        return
    print_table(rows, title=f"{where}: what differs [cycles/packet]")
    by = f"not known: {', '.join(found.unknown)} was not measured with such sizes"
    if found.cycles == exactly(0.0):
        by = "no difference: the model prices both alike"
    elif found.cycles is not None and found.mpps is not None:
        by = f"{_digits(found.cycles)} cycles, {_digits(found.mpps)} Mpps per core"
    say(f"{where}: {by}")


def _measured_row(each: MeasuredPrediction) -> dict[str, Any]:
    return {
        "program": each.prediction.graph.name,
        **each.prediction.values,
        "target": each.prediction.model.target,
        "predicted": each.prediction.cycles().rounded(),
        "measured": each.cycles.rounded(),
        "error": f"{100 * each.error:+.1f} %",
        "inside interval": each.holds,
        "starts": each.starts,
        "flags": list(each.flags),
    }


@app.command()
def predict(
    program: Annotated[
        str,
        Argument(
            metavar="PROG", help="An experiment (name or file), the JSON of p4c-bm2-ss, a .spec of SWX, or a .p4 file."
        ),
    ],
    models: Annotated[
        list[str] | None,
        Option(
            "--model",
            "-m",
            help="Cost model: a file, or TARGET@MACHINE (p4perf list models). Repeatable; default: all.",
        ),
    ] = None,
    targets: Annotated[
        list[str] | None, Option("--target", "-t", help="Only models of this target. Repeatable.")
    ] = None,
    frame_size: Annotated[
        int | None,
        Option(help="Frame size in bytes, with FCS; default: that of the program, or 64; with --traffic 128."),
    ] = None,
    cores: Annotated[int, Option(min=1, help="Cores that run the program.")] = 1,
    line_rate: Annotated[str, Option(help="Rate of the line.")] = "10Gbit/s",
    frequency: Annotated[
        str | None, Option(help="Clock of the cores, such as 3GHz; default: that of the model.")
    ] = None,
    load: Annotated[
        float | None, share_option("--load", help="For latency and loss: share of the possible rate; default: 70%.")
    ] = None,
    rate: Annotated[str | None, Option(help="For latency and loss: rate, such as 1Mpps.")] = None,
    probabilities: Annotated[
        str | None, Option(help="YAML file of branch probabilities and traffic shares; or uniform.")
    ] = None,
    capture: Annotated[Path | None, Option(help="Count the paths that the packets of this pcap file take.")] = None,
    traffic: Annotated[
        bool, Option("--traffic", help="Use the entries and packets of p4perf measure, with its options for them.")
    ] = False,
    arch: Annotated[
        str | None, Option(help="For a .p4: v1model (p4c-bm2-ss), psa or pna (p4c-dpdk); default: from its include.")
    ] = None,
    std: StdOption = None,
    includes: IncludesOption = None,
    defines: DefinesOption = None,
    entries: EntriesOption = None,
    p4info: P4infoOption = None,
    fill: Annotated[
        list[str] | None,
        Option(help="TABLE=N: how many entries a table holds; with --traffic as for p4perf measure. Repeatable."),
    ] = None,
    default_fill: DefaultFillOption = None,
    miss: MissOption = None,
    zipf: ZipfOption = None,
    packets: PacketsOption = None,
    port: PortOption = None,
    sets: Annotated[
        list[str] | None,
        Option(
            "--set",
            help="What if: TABLE.entries=1e6, TABLE.match_kind=lpm, TABLE.hit=0.5; for an experiment: change the spec.",
        ),
    ] = None,
    without: Annotated[list[str] | None, Option(help="What if: leave out this table or step. Repeatable.")] = None,
    points: Annotated[
        int | None, Option(min=1, help="For an experiment: at most N values of every swept variable.")
    ] = None,
    path: Annotated[
        Literal["expected", "lowest-cost", "highest-cost"], Option(help="Path whose cost breakdown is printed.")
    ] = "expected",
    measure: Annotated[
        bool, Option("--measure", help="Measure it as well; your own program with the packets of --traffic.")
    ] = False,
    testbed: Annotated[str, Option(help="With --measure: testbed of the target.")] = "local",
    runs: Annotated[Path, Option(help="With --measure: folder for the records.")] = Path("runs"),
    output: Annotated[Path | None, Option("--output", "-o", help="Folder for prediction.json and plots.")] = None,
    quiet: QuietOption = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Also print paths, rates, latency, memory, every construct and warning.")
    ] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Predict the cost of a program on a target.

    Prints cycles, packet rate, latency and loss, with the cost breakdown.
    """
    from p4perf import api
    from p4perf.evaluation.prediction.record import predict_document

    found = api.predict(
        program, once(targets), models=models or (), frame_size=frame_size, cores=cores, line_rate=line_rate,
        frequency=frequency, load=load, rate=rate, probabilities=probabilities, capture=capture, traffic=traffic,
        arch=arch, std=std, includes=includes or (), defines=defines or (), entries=entries, p4info=p4info,
        fill=fill or (), default_fill=default_fill, miss=miss or (), zipf=zipf, packets=packets, port=port,
        set=sets or (), without=without or (), points=points, path=path, measure=measure, testbed=testbed, runs=runs,
        told=told_by(quiet=quiet),
    )  # fmt: skip
    plots: tuple[Path, ...] = ()
    if output is not None:
        from p4perf.experiment.prediction import write_predictions

        output, plots = write_predictions(found, path, output, datetime.now(UTC))
    if fmt is Format.TABLE:
        if not (quiet or models or targets):
            _say_left_out({each.model.target for each in found.predictions})
        print_answers(found, path, quiet=quiet, verbose=verbose)
    else:
        emit(fmt, predict_document(found, path, plots=plots))
    if output is not None and not quiet:
        say(f"written: {output}")


def _say_left_out(shown: set[str]) -> None:
    """Name the targets whose models ship and that a folder of one's own models leaves out."""
    from p4perf.evaluation.prediction.library import FOLDER, REFERENCE, known_models

    known = [model for model, _ in known_models()]
    own = {model.target for model in known if model.origin != REFERENCE}
    left = sorted({model.target for model in known} - own - shown)
    if own and left:
        say(f"targets with a model in the folder {FOLDER}; -t uses models that ship: {', '.join(left)}")


class _LearntRow(Record):
    what: str = doc("an experiment that prices were learnt from")
    points: int = doc("its points")
    median_error: float = doc("median of the relative errors of sums of prices", "ratio")
    p90_error: float = doc("90 % quantile of these", "ratio")
    bias: float = doc("mean of the signed errors", "ratio")


class CostModelDocument(Document, kind="cost-model"):
    """`p4perf learn -o FILE`: one row for each experiment."""

    file: str = doc("path of the cost model")
    rows: tuple[_LearntRow, ...] = doc("")


@app.command()
def learn(
    runs: Annotated[
        list[Path] | None,
        Argument(
            metavar="[RUN]...",
            parser=find_run,
            help="Run directories to learn from; default: measure fixtures.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, Option("--target", "-t", help="Target to measure, with variants as in dpdk-swx:interpreter.")
    ] = None,
    testbed: Annotated[str, Option(help="Testbed of the target (p4perf list testbeds).")] = "local",
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="File for the cost model (JSON), or the description (YAML); default: stdout."),
    ] = None,
    folder: Annotated[Path, Option("--runs", help="Folder for the runs of the fixtures.")] = Path("runs"),
    resume: Annotated[bool, Option("--resume", help="Continue the newest session in that folder.")] = False,
    catalogue: Annotated[
        Path | None, Option(help="Relearn prices from this folder of catalogue runs on that target.")
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Measure few fixtures, and take the rest from the shipped model.")
    ] = False,
    budget: Annotated[str | None, Option(help="The same, and measure for this time only, such as 1m.")] = None,
    operations: Annotated[
        bool, Option("--operations", help="Measure elementary operations, and describe the machine in YAML.")
    ] = False,
    name: Annotated[str | None, Option(help="With --operations: name of the machine; default: its processor.")] = None,
    starts: Annotated[
        int | None, Option(min=1, max=100, help="With --operations: accepted starts of each benchmark; default: 3.")
    ] = None,
    plain: Annotated[
        bool, Option("--plain", help="With --operations, on an isolated core: no gate and no real-time bursts.")
    ] = False,
    sets: SetOption = None,
    quiet: QuietOption = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Learn what programs cost on this machine, and write a cost model.

    Measures fixtures for a few minutes; --resume continues an interrupted session. With RUN..., learns from these runs
    and measures nothing. With --operations, measures every elementary operation on target dpdk-c and describes this
    machine for p4perf estimate eo.
    """
    from p4perf import api
    from p4perf.cli.progress import WholeProgress

    if operations:
        refuse(
            {
                "RUN": runs,
                "--target": target,
                "--resume": resume,
                "--catalogue": catalogue,
                "--quick": quick,
                "--budget": budget,
                "--set": sets,
            },
            "for programs; --operations measures elementary operations",
        )
        machine = api.learn_operations(
            name or "", testbed=testbed, starts=starts or 3, plain=plain, output=output, told=told_by(quiet=quiet)
        )
        if output is None:
            sys.stdout.write(machine.text())
        else:
            say(f"{output} describes {machine.name}: p4perf estimate eo switch/basic --hardware {output}")
        return
    refuse({"--name": name, "--starts": starts, "--plain": plain}, "for --operations only")
    if output is not None and output.is_dir():
        raise UsageError(f"--output: {output} is a folder", hint=f"name a file in it: -o {output / 'model.json'}")
    if output is None and sys.stdout.isatty():
        file = f"models/{(target or 'model').replace(':', '-')}.json"
        raise UsageError("a cost model has thousands of lines", hint=f"write it to a file: -o {file}")
    try:
        with WholeProgress(quiet=quiet) as bar:
            model = api.learn(
                runs or (), target, testbed=testbed, folder=folder, resume=resume, catalogue=catalogue, quick=quick,
                budget=budget, set=sets or (), output=output, told=bar.told, reached=bar.reached,
            )  # fmt: skip
    except KeyboardInterrupt:
        if target is not None:
            say("\nstopped; everything finished is on disk")
            options = {"--budget": budget, "--target": target, "--runs": folder, "--output": output}
            again = [f"{name}={value}" for name, value in (options | {"--catalogue": catalogue}).items() if value]
            again += [f"--set={each}" for each in sets or ()] + ["--quick"] * (quick and not budget)
            say(f"continue with: {shlex.join(['p4perf', 'learn', *again, '--resume'])}")
        raise
    if output is None:
        sys.stdout.write(model.to_json())
        return
    if not quiet:
        say(f"baseline {model.baseline:.1f} cycles/packet, {len(model.primitives['prices'])} prices")
        if moved := model.provenance.get("transferred"):
            say(f"prices are those of the model of {moved} that ships, moved to this machine")
        if joined := model.provenance.get("joined"):
            say(f"prices are those of the model of {joined} that ships, which holds here; the programs are added to it")
    document = CostModelDocument.read(None, file=output, rows=model.rows_of_table())
    table = [
        {
            "learnt from": row.what,
            "programs": row.points,
            "median error": f"{100 * row.median_error:.1f} %",
            "90 % are within": f"{100 * row.p90_error:.1f} %",
            "mean (+: too high)": f"{100 * row.bias:+.1f} %",
        }
        for row in document.rows
    ]
    title = "error of the predicted cycles of a packet, for the programs that the model has learnt from"
    emit(fmt, document, rows=table if fmt is Format.TABLE else None, title=title)
