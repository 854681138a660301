"""The command that generates programs and load-generator scripts, verifies them, and measures nothing."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.app import app
from p4perf.cli.options import PointsOption, SetOption, load
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import CapabilityError, ExitCode, UsageError

if TYPE_CHECKING:
    from p4perf.cli.generation import Outcome, Refused
    from p4perf.cli.verification import Tools

MAX_ENTRIES = 1_000_000
"""Largest table whose entry files are written, unless something else is asked for."""

REFUSED_FILE = "refused.json"


@app.command()
def generate(
    spec: Annotated[
        str | None, typer.Argument(help="Name of an experiment of the catalogue, or path of a spec file.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Generator (p4perf list generators); repeatable. Default: all."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("generated"),
    sets: SetOption = None,
    points: PointsOption = None,
    max_entries: Annotated[
        int | None,
        typer.Option(
            "--max-entries",
            min=0,
            help=f"Leave out entry files of larger tables. Default: {MAX_ENTRIES}; with --all none are written.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment of the catalogue.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Compile the P4 programs with the tools of p4c.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Write the programs, table entries and load-generator scripts of every point of an experiment, or of all.

    Each point gets a folder GENERATOR/INDEX below the output folder (with --all: GENERATOR/EXPERIMENT/INDEX). What a
    generator refuses is reported, and does not stop the others.
    """
    from p4perf.cli.generation import Generation
    from p4perf.cli.verification import find_tools
    from p4perf.plugins import load_plugin, plugin_names

    if everything == (spec is not None):
        raise UsageError("generate takes an experiment or --all", hint="p4perf list shows the experiments")
    names = target or plugin_names("p4perf.generators")
    for name in names:
        load_plugin("p4perf.generators", name)
    tools = find_tools(names) if verify else None
    limit = max_entries if max_entries is not None else 0 if everything else MAX_ENTRIES
    if spec is None:
        if sets:
            raise UsageError("--set changes one spec, and --all generates many", hint="leave one of them out")
        outcome = _all(names, points, output, limit)
    else:
        generation = Generation(names, output, limit, standalone=True)
        generation.run(load(spec, sets, points), named=False, skip_impossible=False)
        outcome = generation.outcome
    if not outcome.written:
        raise _nothing(outcome)
    if everything:
        _write_refused(output, outcome.refused)
    if tools is not None:
        _report_verdicts(fmt, outcome, tools)
    elif everything:
        _report_all(fmt, outcome, names)
    else:
        _report_files(fmt, outcome)


def _all(names: Sequence[str], points: int | None, output: Path, max_entries: int) -> Outcome:
    """Every experiment of the catalogue, on all processors."""
    from p4perf.cli.generation import Order, Outcome, carry_out
    from p4perf.specs.catalogue import list_catalogue

    orders = [Order(entry.name, points, tuple(names), output, max_entries) for entry in list_catalogue()]
    whole = Outcome()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(carry_out, orders):
            whole.add(outcome)
    return whole


def _nothing(outcome: Outcome) -> CapabilityError:
    reasons = list(dict.fromkeys(r.reason for r in outcome.refused))
    if len(reasons) == 1:
        return CapabilityError(reasons[0])
    return CapabilityError("nothing was generated: " + "; ".join(reasons[:5]))


def _write_refused(output: Path, refused: Sequence[Refused]) -> None:
    from p4perf.results.files import write_text_atomically

    write_text_atomically(output / REFUSED_FILE, json.dumps([asdict(r) for r in refused], indent=1) + "\n")


def _report_files(fmt: Format, outcome: Outcome) -> None:
    rows = [{"point": w.index, **w.values, "generator": w.generator, "file": str(w.path)} for w in outcome.written]
    refused = [{"point": r.index, "generator": r.generator, "reason": r.reason} for r in outcome.refused]
    emit(fmt, "generate", rows, left_out=outcome.left_out, refused=refused)
    for (generator, reason), count in Counter((r.generator, r.reason) for r in outcome.refused).items():
        say(f"note: {generator} refuses {count} {'point' if count == 1 else 'points'}: {reason}")
    if outcome.left_out:
        say(f"note: {outcome.left_out} entry files of larger tables left out (--max-entries)")


def _report_all(fmt: Format, outcome: Outcome, names: Sequence[str]) -> None:
    rows: list[dict[str, Any]] = []
    impossible = sum(not r.generator for r in outcome.refused)
    for name in names:
        files = [w for w in outcome.written if w.generator == name]
        refused = [r for r in outcome.refused if r.generator == name]
        rows.append(
            {
                "generator": name,
                "experiments": len({w.experiment for w in files}),
                "points": len({(w.experiment, w.index) for w in files}),
                "refused": len(refused),
                "files": len(files),
                "programs": sum(generator == name for generator, _ in outcome.texts) or None,
                "refused_most": _most(refused),
            }
        )
    emit(fmt, "generate.all", rows, left_out=outcome.left_out, impossible=impossible)
    if outcome.refused:
        say(f"note: {REFUSED_FILE} lists the {len(outcome.refused)} refused points with their reasons")
    if outcome.left_out:
        say(f"note: {outcome.left_out} entry files left out (--max-entries)")


def _most(refused: Sequence[Refused]) -> str | None:
    counts = Counter(r.experiment for r in refused)
    return ", ".join(f"{name} {n}" for name, n in counts.most_common(3)) or None


def _report_verdicts(fmt: Format, outcome: Outcome, tools: Tools) -> None:
    """The verdicts, and exit code 1 if one is negative."""
    from p4perf.cli.progress import Share
    from p4perf.cli.verification import verify

    for name, missing in tools.missing.items():
        if missing:
            left = ", ".join(c[0] for c in tools.found[name]) or "nothing"
            say(f"note: {name} is not verified by {', '.join(missing)}, which is not on the path (but by {left})")
    with Share("compiling") as share:
        verdicts = list(verify(outcome, tools, share))
    rows = [
        {
            "generator": v.written.generator,
            "experiment": v.written.experiment,
            "point": v.written.index,
            "file": str(v.written.path),
            "programs": v.copies,
            "tool": v.tool,
            "verdict": v.verdict,
            "message": v.message or None,
        }
        for v in verdicts
    ]
    absent = [{"generator": name, "tools": list(found)} for name, found in tools.missing.items() if found]
    emit(fmt, "generate.verify", rows, missing=absent, refused=len(outcome.refused))
    failed = sum(not v.accepted for v in verdicts)
    say(f"{len(verdicts) - failed} of {len(verdicts)} verdicts are ok")
    if failed:
        raise typer.Exit(int(ExitCode.VERDICT_FAILED))
