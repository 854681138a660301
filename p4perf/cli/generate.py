"""The command that generates programs and load-generator scripts, and measures nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.options import PointsOption, SetOption, SpecArgument, load
from p4perf.cli.output import Format, FormatOption, emit, say

MAX_ENTRIES = 1_000_000


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
    """Write the programs, table entries and load-generator scripts of every point of an experiment."""
    from p4perf.experiment import point_workload, traffic_plan
    from p4perf.generators.base import Generator
    from p4perf.plugins import load_plugin, plugin_names
    from p4perf.results.files import write_text_atomically

    experiment = load(spec, sets, points)
    names = target or plugin_names("p4perf.generators")
    generators: dict[str, Generator] = {name: load_plugin("p4perf.generators", name)() for name in names}
    width = len(str(len(experiment.points) - 1))
    rows, left_out = [], 0
    for point in experiment.points:
        workload, _ = point_workload(experiment, point)
        folder = f"{point.index:0{width}d}"
        described = {"experiment": experiment.spec.name, "values": dict(point.values), "index": point.index}
        for name, generator in generators.items():
            entries = max((t.entries.count for t in workload.program.tables), default=0)
            for file in generator.generate(workload, traffic_plan(point)):
                if file.path.startswith("commands") and entries > max_entries:
                    left_out += 1
                    continue
                path = output / name / folder / file.path
                write_text_atomically(path, file.pieces)
                rows.append({"point": point.index, **point.values, "generator": name, "file": str(path)})
            write_text_atomically(output / name / folder / "point.json", json.dumps(described, indent=2) + "\n")
    emit(fmt, "generate", rows, left_out=left_out)
    if left_out:
        say(f"note: {left_out} entry files with more than {max_entries:,} entries left out (--max-entries)")
