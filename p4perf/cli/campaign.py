"""Campaigns on the command line: many experiments on several targets within a budget."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.cli.output import Format, emit, say
from p4perf.errors import ExitCode, NoVerdictError, SpecError, UsageError

if TYPE_CHECKING:
    from p4perf.cli.progress import SweepProgress
    from p4perf.experiment.campaign import Cell
    from p4perf.results import RunDirectory

NOT_IN_A_CATALOGUE = "demo/"
"""Experiments of the catalogue that repeat others, for a quick look."""

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
    *,
    budget: str | None,
    sets: list[str] | None,
    points: int | None,
    output: Path,
    quiet: bool,
    fmt: Format,
) -> int:
    """Start a campaign and measure it; the exit code."""
    from p4perf.cli.options import load, overrides_of
    from p4perf.experiment import open_target, open_testbed
    from p4perf.results.campaign import CampaignDirectory

    for label in targets:
        open_target(label)
    open_testbed(testbed)
    names = []
    for name in experiments:
        load(name, sets, points)
        names.append(str(Path(name).absolute()) if Path(name).suffix in (".yaml", ".yml") else name)
    request = {
        "experiments": names,
        "targets": list(targets),
        "testbed": testbed,
        "budget_s": duration_s(budget) if budget is not None else 1e9,
        "overrides": [list(pair) for pair in overrides_of(sets)],
        "points": points,
    }
    title = "catalogue" if len(experiments) > 1 else names[0].replace("/", "-")
    folder = CampaignDirectory.create(output, title, request, datetime.now().astimezone())
    return _measure(folder, fmt, quiet=quiet)


def resume_campaign(path: Path, fmt: Format, *, quiet: bool) -> int:
    """Go on with a campaign; the exit code."""
    from p4perf.results.campaign import CampaignDirectory

    return _measure(CampaignDirectory.open(path), fmt, quiet=quiet)


def _measure(folder: Any, fmt: Format, *, quiet: bool) -> int:
    from p4perf.cli.measure import resumable
    from p4perf.experiment.campaign import Campaign
    from p4perf.experiment.campaign_report import write_report

    content = folder.content()
    if not quiet:
        budget_s = float(content["budget_s"])
        limit = "without a budget" if budget_s >= 1e9 else f"within {budget_s / 60:.4g} minutes"
        runs = len(content["experiments"]) * len(content["targets"])
        say(f"{runs} runs: {len(content['experiments'])} experiments on {', '.join(content['targets'])}, {limit}")
        say(f"campaign: {folder.path}")
    with resumable(folder.path):
        several = len(content["targets"]) > 1
        cells = Campaign(folder, _Talk(quiet=quiet)).measure(lambda run: _conclude(run, plots=not several))
        report = write_report(folder, cells)
    emit(fmt, "campaign", [_row(c) for c in cells], campaign=str(folder.path), accepted_share=report.accepted_share)
    if not quiet:
        say(f"{100 * report.accepted_share:.1f} % of the planned points have accepted trials")
        for path in report.files:
            say(f"report: {path}")
    return int(_exit_code(cells))


def _conclude(run: RunDirectory, *, plots: bool) -> None:
    """The model of a run, and its plots unless the report compares it; a run that allows none keeps its numbers."""
    from p4perf.experiment.evaluate import evaluate_run

    try:
        evaluate_run(run, plots=plots)
    except (NoVerdictError, SpecError):
        return


def _row(cell: Cell) -> dict[str, Any]:
    from p4perf.experiment.campaign import summary

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


def _exit_code(cells: Sequence[Cell]) -> ExitCode:
    """0 if everything that was not refused is measured; 3 if nothing could be; 4 if something failed or starved."""
    states = {c.state for c in cells}
    if states == {"refused"}:
        return ExitCode.UNAVAILABLE
    good = all(c.state == "refused" or (c.accepted == c.points and not c.failed_points) for c in cells)
    return ExitCode.OK if good else ExitCode.INVALID_MEASUREMENT


class _Talk:
    """Tells how a campaign goes, a line for every run."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def cell(self, number: int, total: int, cell: Cell | None, text: str) -> None:
        width = int(math.log10(max(total, 1))) + 1
        if not self._quiet and cell is not None:
            say(f"[{number:{width}d}/{total}] {cell.experiment} on {cell.target}: {text}")

    def run(self) -> SweepProgress:
        from p4perf.cli.progress import SweepProgress

        return SweepProgress(quiet=True)
