"""Campaigns on the command line: many experiments on several targets within a budget."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.cli.output import Format, emit, say
from p4perf.errors import ExitCode, NoVerdictError, SpecError, UsageError

if TYPE_CHECKING:
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.cells import Cell
    from p4perf.results import RunDirectory

NOT_IN_A_CATALOGUE = ("demo/", "composition/")
"""Experiments of the catalogue that repeat others, for a quick look, and those that ``p4perf learn`` measures."""

KIND = "campaign"

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)\s*h)?\s*(?:(\d+(?:\.\d+)?)\s*(?:m|min))?\s*(?:(\d+(?:\.\d+)?)\s*s)?")


def duration_s(text: str) -> float:
    """A time such as ``90s``, ``30m``, ``1h30m`` or ``2 h``, in seconds.

    Raises:
        UsageError: it is none, or zero.
    """
    match = _DURATION.fullmatch(text.strip())
    parts = [float(p) if p else 0.0 for p in match.groups()] if match else []
    seconds = sum(p * unit for p, unit in zip(parts, (3600, 60, 1), strict=False))
    if not seconds:
        raise UsageError(f"--budget {text}: expected a time", hint="for example 90s, 30m or 1h30m")
    return seconds


def chosen_experiments(specs: Sequence[str], *, every: bool, only: Sequence[str]) -> list[str]:
    """The experiments that a command line names, in order.

    Raises:
        UsageError: it names none, or a pattern matches none.
    """
    from p4perf.specs import list_catalogue

    if only and not every:
        raise UsageError("--only chooses from the catalogue", hint="add --all")
    if every and specs:
        raise UsageError("name experiments or write --all, not both")
    if not every:
        if not specs:
            raise UsageError("no spec is named", hint="p4perf list has the catalogue; --all is everything in it")
        return list(dict.fromkeys(specs))
    catalogue = [e.name for e in list_catalogue() if not e.name.startswith(NOT_IN_A_CATALOGUE)]
    for pattern in only:
        if not fnmatch.filter(catalogue, pattern):
            raise UsageError(f"--only {pattern} matches no experiment of the catalogue", hint="p4perf list has them")
    return [name for name in catalogue if not only or any(fnmatch.fnmatchcase(name, p) for p in only)]


def campaign(
    experiments: Sequence[str],
    targets: Sequence[str],
    testbed: str,
    cluster: tuple[str | None, str | None] = (None, None),
    *,
    budget: str | None,
    sets: list[str] | None,
    points: int | None,
    output: Path,
    quiet: bool,
    fmt: Format,
) -> int:
    """Start a campaign and measure it, on a scheduler and workers of a cluster if they are named; the exit code."""
    from p4perf.cli.options import load, overrides_of
    from p4perf.experiment import open_target, open_testbed
    from p4perf.results.campaign import CampaignDirectory
    from p4perf.specs import list_catalogue
    from p4perf.testbeds.batch.base import BatchTestbed

    # The workers of a cluster open testbeds of their own.
    place = open_testbed(testbed) if cluster[0] is None else None
    if isinstance(place, BatchTestbed):
        raise UsageError(
            f"testbed {place.label} works in batches, and a campaign decides between trials",
            hint="run its experiments one after another",
        )
    catalogue = {entry.name for entry in list_catalogue()}
    names: dict[str, str] = {}
    for source in experiments:
        name = load(source, sets, points).spec.name
        if name in names:
            raise UsageError(f"{names[name]} and {source} are both called {name}", hint="give them different names")
        names[name] = source if source in catalogue else str(Path(source).absolute())
    request = {
        "experiments": list(names),
        "sources": list(names.values()),
        "targets": list(dict.fromkeys(open_target(label).label for label in targets)),
        "testbed": place.record["address"] if place is not None else testbed,
        "budget_s": duration_s(budget) if budget is not None else None,
        "overrides": [list(pair) for pair in overrides_of(sets)],
        "points": points,
    }
    title = "catalogue" if len(names) > 1 else next(iter(names))
    folder = CampaignDirectory.create(output, title, request, datetime.now().astimezone())
    return _measure(folder, cluster, fmt, quiet=quiet)


def resume_campaign(path: Path, cluster: tuple[str | None, str | None], fmt: Format, *, quiet: bool) -> int:
    """Go on with a campaign; the exit code."""
    from p4perf.results.campaign import CampaignDirectory

    return _measure(CampaignDirectory.open(path), cluster, fmt, quiet=quiet)


def _measure(folder: Any, cluster: tuple[str | None, str | None], fmt: Format, *, quiet: bool) -> int:
    from p4perf.cli.cluster import crew_opener, resuming
    from p4perf.cli.measure import resumable
    from p4perf.experiment.campaign import Campaign
    from p4perf.experiment.campaign_report import write_report

    content = folder.content()
    targets, budget_s = content["targets"], content["budget_s"]
    if not quiet:
        limit = "without a budget" if budget_s is None else f"within {budget_s / 60:.4g} minutes"
        number = len(content["experiments"])
        say(f"{number * len(targets)} runs: {number} experiments on {', '.join(targets)}, {limit}")
        say(f"campaign: {folder.path}")
    with crew_opener(*cluster, quiet=quiet) as crew, resumable(folder.path, cluster[0]):
        cells = Campaign(folder, _Talk(quiet=quiet), crew).measure(lambda run: _conclude(run, plots=len(targets) == 1))
        report = write_report(folder, cells)
    emit(fmt, KIND, [row_of(c) for c in cells], campaign=str(folder.path), accepted_share=report.accepted_share)
    if report.note:
        say(f"warning: {report.note}")
    if not quiet:
        say(f"{100 * report.accepted_share:.1f} % of the planned points have accepted trials")
        for path in report.files:
            say(f"report: {path}")
    if not all(c.complete for c in cells):
        say(f"not everything is measured; {resuming(folder.path, cluster[0])} goes on with it")
    return int(exit_code(cells))


def show_campaign(path: Path, fmt: Format) -> None:
    """Tell how far a campaign has come."""
    from p4perf.experiment.campaign import all_cells
    from p4perf.experiment.cells import accepted_share
    from p4perf.results.campaign import CampaignDirectory

    folder = CampaignDirectory.open(path)
    cells = all_cells(folder)
    rows = [row_of(c) for c in cells]
    emit(fmt, KIND, rows, campaign=str(folder.path), accepted_share=accepted_share(cells))


def _conclude(run: RunDirectory, *, plots: bool) -> None:
    """The model of a run, and its plots unless the report compares it; a run that allows none keeps its numbers."""
    from p4perf.experiment.evaluate import evaluate_run

    try:
        evaluate_run(run, plots=plots)
    except (NoVerdictError, SpecError):
        return


def row_of(cell: Cell) -> dict[str, Any]:
    """A cell as a row of the commands."""
    from p4perf.experiment.cells import summary

    return {
        "experiment": cell.experiment,
        "target": cell.target,
        "state": cell.state,
        "points": cell.points,
        "accepted": cell.accepted,
        "repetitions": cell.repetitions,
        "wall_s": cell.wall_s,
        "what": summary(cell),
        "run": cell.run,
    }


def exit_code(cells: Sequence[Cell]) -> ExitCode:
    """0 if everything that a target can do is measured; 3 if a target cannot be used or all is refused; else 4."""
    from p4perf.experiment.cells import REFUSED, UNAVAILABLE

    here = [c for c in cells if c.state != UNAVAILABLE]
    if not all(c.good for c in here):
        return ExitCode.INVALID_MEASUREMENT
    return ExitCode.OK if here == list(cells) and any(c.state != REFUSED for c in here) else ExitCode.UNAVAILABLE


class _Talk:
    """Tells how a campaign goes, a line for every run."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def cell(self, number: int, total: int, cell: Cell, text: str) -> None:
        if not self._quiet:
            say(f"[{number:{len(str(total))}d}/{total}] {cell.experiment} on {cell.target}: {text}")

    def run(self) -> SweepProgress:
        from p4perf.cli.progress import SweepProgress

        return SweepProgress(quiet=True)
