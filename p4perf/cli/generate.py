"""The command that generates programs and load-generator scripts, and measures nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.options import PointsOption, SetOption, SpecArgument, load
from p4perf.cli.output import Format, FormatOption, emit, say

if TYPE_CHECKING:
    from p4perf.generators.base import TrafficPlan
    from p4perf.generators.program import Workload

MAX_ENTRIES = 1_000_000
ENTRY_FILES = ("commands.txt", "baseline-commands.txt")


@app.command()
def generate(
    spec: SpecArgument,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Generator (p4perf list generators); repeatable. Default: all."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("generated"),
    sets: SetOption = None,
    points: PointsOption = None,
    max_entries: Annotated[
        int, typer.Option("--max-entries", min=0, help="Leave out entry files of points with more table entries.")
    ] = MAX_ENTRIES,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Write the programs, table entries and load-generator scripts of every point of an experiment.

    Each point gets a folder GENERATOR/INDEX below the output folder, with point.json saying which point it is.
    """
    from p4perf.experiment import point_workload, traffic_plan
    from p4perf.plugins import plugin_names
    from p4perf.results.files import write_atomically

    experiment = load(spec, sets, points)
    names = target or plugin_names("p4perf.generators")
    width = len(str(len(experiment.points) - 1))
    rows, left_out = [], 0
    for point in experiment.points:
        workload, _ = point_workload(experiment, point)
        entries = max((t.entries.count for t in workload.program.tables), default=0)
        described = {"experiment": experiment.spec.name, "values": dict(point.values), "index": point.index}
        for name in names:
            folder = output / name / f"{point.index:0{width}d}"
            files = dict(_files(name, workload, traffic_plan(point)))
            files["point.json"] = (json.dumps(described, indent=2).encode() + b"\n",)
            for path, pieces in files.items():
                if path in ENTRY_FILES and entries > max_entries:
                    left_out += 1
                    continue
                write_atomically(folder / path, pieces)
                rows.append({"point": point.index, **point.values, "generator": name, "file": str(folder / path)})
    emit(fmt, "generate", rows, left_out=left_out)
    if left_out:
        say(f"note: {left_out} entry files with more than {max_entries:,} entries left out (--max-entries)")


def _files(name: str, workload: Workload, traffic: TrafficPlan) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The files that a generator makes of a point.

    Where it belongs to a target of the same name, they include what it takes to build and run without p4perf.
    """
    from p4perf.generators.base import Generator
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.targets.base import NodeFacts, Target
    from p4perf.targets.standalone import standalone_files

    generator: Generator = load_plugin("p4perf.generators", name)()
    for file in generator.generate(workload, traffic):
        yield file.path, (piece.encode() for piece in file.pieces)
    if name in plugin_names("p4perf.targets"):
        target: Target = load_plugin("p4perf.targets", name)()
        for path, data in standalone_files(target, target.plan(workload, traffic, NodeFacts({}))).items():
            yield path, (data,)
