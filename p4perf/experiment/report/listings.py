"""Texts that a run holds and people want to read: the spec as resolved, and the program that was generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from p4perf.errors import DataError, P4PerfError
from p4perf.evaluation.report.highlighting import highlighted
from p4perf.experiment.planning import point_workload
from p4perf.plugins import load_plugin
from p4perf.results import RunDirectory
from p4perf.results.files import read_text
from p4perf.specs.experiment import Experiment

MOST_CHARACTERS = 12_000
"""Longer texts are cut at the end of a line: the whole text is in the run directory."""
MOST_GENERATED = 6_000
"""The same of texts that are made for the page."""
_DIALECT, _LOAD = "v1model", "moongen"
_SUFFIXES = (".p4", ".lua", ".spec", ".bpf.c")
_PROGRAMS = ("program.c", "program.h")


@dataclass(frozen=True)
class Listing:
    """A text of a run.

    Args:
        title: what it is.
        note: whether something is left out, or where it comes from.
        html: the text with its words marked.
    """

    title: str
    note: str
    html: Markup


def run_listings(run: RunDirectory, manifest: Mapping[str, Any], experiment: Experiment) -> tuple[Listing, ...]:
    """The spec, and the generated program of one point: the second, in which the component is there already.

    Raises:
        DataError: the spec cannot be read.
    """
    found = [_listing("Spec as resolved", "spec.yaml", run.spec(), "")]
    points = [p for p in manifest["points"] if isinstance(p, dict) and p.get("hash")]
    if points:
        point = points[min(1, len(points) - 1)]
        at = ", ".join(f"{k}={v}" for k, v in dict(point.get("values") or {}).items()) or "the only point"
        files = list(_programs(run.path / "points" / str(point["hash"]), run))
        names = {name.rpartition(".")[2] for name, _ in files}
        if "p4" not in names:
            title = f"The same as P4 ({_DIALECT}) at {at}"
            found += _generated(experiment, point.get("index"), _DIALECT, ".p4", title)
        if "lua" not in names:
            title = f"Its load for MoonGen (Lua) at {at}"
            found += _generated(experiment, point.get("index"), _LOAD, ".lua", title)
        found += [_listing(f"{name} at {at}", name, text, "as it was built") for name, text in files]
    return tuple(found)


def _programs(folder: Path, run: RunDirectory) -> Iterator[tuple[str, str]]:
    if not folder.resolve().is_relative_to(run.path.resolve()) or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and (path.name.endswith(_SUFFIXES) or path.name in _PROGRAMS):
            try:
                yield path.name, read_text(path)
            except DataError:
                continue


def _generated(experiment: Experiment, index: Any, generator: str, suffix: str, title: str) -> list[Listing]:
    """What a generator makes of the point, the first file of that kind; nothing if the program cannot be written so."""
    point = next((p for p in experiment.points if p.index == index), None)
    if point is None:
        return []
    try:
        workload, traffic = point_workload(experiment, point)
        files = load_plugin("p4perf.generators", generator)().generate(workload, traffic)
        name, text = next((f.path, "".join(f.pieces)) for f in files if f.path.endswith(suffix))
    except (P4PerfError, StopIteration):
        return []
    short = _cut(text, MOST_GENERATED)
    return [Listing(title, "what p4perf generate writes" + ", cut" * (short != text), highlighted(short, name))]


def _listing(title: str, name: str, text: str, note: str) -> Listing:
    short = _cut(text, MOST_CHARACTERS)
    if short != text:
        note = f"{note}; " * bool(note) + "cut, the whole text is in the run directory"
    return Listing(title, note, highlighted(short, name))


def _cut(text: str, most: int) -> str:
    """Whole lines of a text, as many as the characters allow; the text itself if it is short enough."""
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) + 1] or text[:most]
