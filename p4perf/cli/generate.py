"""The command that generates programs and load-generator scripts, verifies them, and measures nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from p4perf.cli.app import Format, FormatOption, PointsOption, SetOption, app, emit, say
from p4perf.errors import ExitCode, UsageError
from p4perf.records import Document, Record, Scalar, counted, doc, spread

if TYPE_CHECKING:
    from p4perf.experiment.generation import Commands, Generated


@app.command()
def generate(
    spec: Annotated[str | None, Argument(help="Experiment of the catalogue, or path of a spec file.")] = None,
    generator: Annotated[
        list[str] | None,
        Option("--generator", "-g", help="Generator (p4perf list generators); repeatable. Default: all."),
    ] = None,
    target: Annotated[
        list[str] | None, Option("--target", "-t", help="Use the generator of this target, such as bmv2. Repeatable.")
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="Folder for the files.")] = Path("generated"),
    sets: SetOption = None,
    points: PointsOption = None,
    max_entries: Annotated[
        int | None,
        Option(min=0, help="Leave out entry files of larger tables; default: 1000000, or 0 with --all."),
    ] = None,
    everything: Annotated[bool, Option("--all", help="Generate every experiment of the catalogue.")] = False,
    verify: Annotated[bool, Option("--verify", help="Compile the P4 programs with the tools of p4c.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Write programs, table entries and load-generator scripts.

    Each point gets a folder GENERATOR/INDEX below the output folder (with --all: GENERATOR/EXPERIMENT/INDEX).
    Reports the points that a generator refuses, and continues with the others.
    """
    from p4perf.api import setup
    from p4perf.experiment.generation import find_tools

    if everything == (spec is not None):
        raise UsageError("generate takes an experiment or --all", hint="p4perf list shows the experiments")
    names = setup.generators_of([*(generator or ()), *(target or ())])
    tools = find_tools(names) if verify else None
    outcome = setup.generate(spec, names, output=output, set=sets or (), points=points, max_entries=max_entries)
    if tools is not None:
        _report_verdicts(fmt, outcome, *tools)
    elif everything:
        _report_all(fmt, outcome, names)
    else:
        _report_files(fmt, outcome)


class _GenerateRow(Record):
    point: int = doc("number of the point, from 0", of="index")
    values: dict[str, Scalar] = spread("variable", "value of a swept variable")
    generator: str = doc("generator")
    file: str = doc("path of the file", of="path")


class _RefusedPoint(Record):
    point: int = doc("number of a point that a generator refuses", of="index")
    generator: str = doc("the generator")
    reason: str = doc("why")


class GenerateDocument(Document, kind="generate"):
    """`p4perf generate SPEC`: one row for each file."""

    left_out: int = doc("entry files that `--max-entries` left out")
    refused: tuple[_RefusedPoint, ...] = doc("")
    rows: tuple[_GenerateRow, ...] = doc("", of="written")


def _report_files(fmt: Format, outcome: Generated) -> None:
    emit(fmt, GenerateDocument.read(outcome))
    for (generator, reason), count in Counter((r.generator, r.reason) for r in outcome.refused).items():
        say(f"note: {generator} refuses {counted(count, 'point')}: {reason}")
    if outcome.left_out:
        say(f"note: {counted(outcome.left_out, 'entry file')} of larger tables left out (--max-entries)")


class _GenerateAllRow(Record):
    generator: str = doc("generator")
    experiments: int = doc("experiments with a point that it accepts")
    points: int = doc("points that were written")
    refused: int = doc("points that it refuses")
    files: int = doc("files that were written")
    programs: int | None = doc("distinct P4 programs; null for a generator that writes none")
    refused_most: str | None = doc("the experiments with most refused points")


class GenerateAllDocument(Document, kind="generate.all"):
    """`p4perf generate --all`: one row for each generator."""

    left_out: int = doc("entry files that `--max-entries` left out")
    impossible: int = doc("points that no program can express")
    rows: tuple[_GenerateAllRow, ...] = doc("")


def _report_all(fmt: Format, outcome: Generated, names: Sequence[str]) -> None:
    rows = []
    programs = Counter(files[0].generator for files in outcome.programs())
    for name in names:
        files = [w for w in outcome.written if w.generator == name]
        refused = [r for r in outcome.refused if r.generator == name]
        rows.append(
            _GenerateAllRow(
                generator=name,
                experiments=len({w.experiment for w in files}),
                points=len({(w.experiment, w.index) for w in files}),
                refused=len(refused),
                files=len(files),
                programs=programs[name] or None,
                refused_most=", ".join(f"{e} {n}" for e, n in Counter(r.experiment for r in refused).most_common(3))
                or None,
            )
        )
    impossible = sum(not r.generator for r in outcome.refused)
    emit(fmt, GenerateAllDocument(left_out=outcome.left_out, impossible=impossible, rows=tuple(rows)))
    if outcome.refused:
        say(f"note: refused.json lists {counted(len(outcome.refused), 'refused point')} with reasons")
    if outcome.left_out:
        say(f"note: {counted(outcome.left_out, 'entry file')} left out (--max-entries)")


class _Missing(Record):
    generator: str = doc("a generator")
    tools: tuple[str, ...] = doc("compilers of its programs that are not on the path")


class _GenerateVerifyRow(Record):
    generator: str = doc("generator", of="written.generator")
    experiment: str = doc("name of the experiment", of="written.experiment")
    point: int = doc("number of the first point that has the program", of="written.index")
    file: str = doc("path of its file", of="written.path")
    programs: int = doc("files with the same program")
    tool: str = doc("the compiler")
    verdict: str = doc("`ok`, `refused`, `crashed` or `timeout`")
    message: str | None = doc("what the compiler said")


class GenerateVerifyDocument(Document, kind="generate.verify"):
    """`p4perf generate --verify`: one row for each distinct program and tool."""

    missing: tuple[_Missing, ...] = doc("")
    refused: int = doc("points that a generator refuses")
    rows: tuple[_GenerateVerifyRow, ...] = doc("")


def _report_verdicts(fmt: Format, outcome: Generated, tools: Commands, missing: Mapping[str, tuple[str, ...]]) -> None:
    from p4perf.cli.progress import Share
    from p4perf.experiment.generation import verify

    absent = {name: names for name, names in missing.items() if names}
    for name, names in absent.items():
        left = ", ".join(c[0] for c in tools[name]) or "nothing"
        say(f"note: {name} is not verified by {', '.join(names)}, which is not on the path (but by {left})")
    with Share("compiling") as share:
        rows = tuple(map(_GenerateVerifyRow.read, verify(outcome, tools, share)))
    lacking = tuple(_Missing(generator=name, tools=names) for name, names in absent.items())
    emit(fmt, GenerateVerifyDocument(missing=lacking, refused=len(outcome.refused), rows=rows))
    failed = sum(row.verdict != "ok" for row in rows)
    say(f"{len(rows) - failed} of {len(rows)} verdicts are ok")
    if failed:
        raise typer.Exit(int(ExitCode.VERDICT_FAILED))
