"""What a site is made of: run directories, campaigns, comparisons, predictions and claims that paths name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from p4perf.errors import UsageError
from p4perf.experiment.sizing import MEASURED, Cell, cell_of
from p4perf.results import is_run, run_folders
from p4perf.results.campaign import RUNS, CampaignDirectory
from p4perf.results.files import parse_object, read_text

_COMPARISON = "comparison.json"
_DOCUMENTS = {"prediction.json": "predict", "reproduction.json": "reproduction"}


@dataclass
class Sources:
    """What was found.

    Args:
        cells: experiments that campaigns did not measure on a target, with the reason.
    """

    runs: list[Path] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    comparisons: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    predictions: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    reproductions: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)


def find_sources(paths: Sequence[Path]) -> Sources:
    """Everything that the paths hold.

    Raises:
        UsageError: a path is not there, or holds nothing of this kind.
        DataError: a file that says what there is is damaged.
    """
    found = Sources()
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no run directory, folder or file {path}")
        inside = sorted(path.iterdir()) if path.is_dir() else []
        folders = [each for each in inside if each.is_dir() and each.name[:1] != "."]
        if not _add(path, found) and not sum(_add(folder, found) for folder in folders):
            raise UsageError(
                f"{path} holds no run, campaign, comparison, prediction or claims",
                hint="name a run directory, a campaign folder, or a folder that holds some",
            )
    found.runs = list({run.resolve(): run for run in found.runs}.values())
    return found


def _add(path: Path, found: Sources) -> bool:
    """Add what a path is; whether it is anything."""
    if path.is_file():
        return _add_document(path, found)
    if is_run(path):
        found.runs.append(path)
        return True
    if CampaignDirectory.is_one(path):
        _add_campaign(CampaignDirectory.open(path), found)
        return True
    known = [path / name for name in (_COMPARISON, *_DOCUMENTS) if (path / name).is_file()]
    for file in known:
        _add_document(file, found)
    return bool(known)


def _add_document(file: Path, found: Sources) -> bool:
    content = parse_object(read_text(file), file)
    kind = content.get("kind")
    if kind == "comparison":
        found.comparisons.append((file, content))
        found.runs += [run for run in _named_runs(content) if is_run(run)]
    elif kind == "predict":
        found.predictions.append((file, content))
    elif kind == "reproduction":
        found.reproductions.append((file, content))
        found.runs += run_folders(file.parent / RUNS)
    else:
        return False
    return True


def _named_runs(content: Mapping[str, Any]) -> list[Path]:
    """The runs of a comparison; none of a damaged one, which the site notes."""
    try:
        return [Path(str(run["run"])) for experiment in content["experiments"] for run in experiment["runs"]]
    except (KeyError, TypeError):
        return []


def _add_campaign(campaign: CampaignDirectory, found: Sources) -> None:
    cells = [cell_of(entry, campaign.file) for entry in campaign.content()["cells"]]
    found.cells += [cell for cell in cells if cell.state != MEASURED]
    named = [campaign.path / cell.run for cell in cells if cell.run]
    found.runs += [run for run in named if is_run(run)]
    comparison = campaign.path / "comparison" / _COMPARISON
    if comparison.is_file():
        found.comparisons.append((comparison, parse_object(read_text(comparison), comparison)))
