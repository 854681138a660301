"""Predictions as files: ``prediction.json`` and plots."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.evaluation.answer.answers import Answers
from p4perf.evaluation.answer.prediction import PathName, Prediction
from p4perf.evaluation.answer.record import difference_record, record, summary
from p4perf.results.files import strict_json, write_text_atomically
from p4perf.results.folders import filled_folder
from p4perf.results.naming import file_word

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
"""Version of ``prediction.json``; it rises when a key changes its meaning or goes."""

KIND = "predict"
MOST_FLAMES = 12
"""Bills of more predictions than these are not drawn."""


def body(found: Answers, path: PathName) -> dict[str, Any]:
    """Everything but the rows, as JSON values."""
    return {
        "path": path,
        "predictions": [record(each) for each in found.predictions],
        "differences": [difference_record(each) for each in found.differences],
        "refused": [
            {"program": r.program, "values": dict(r.values), "model": r.target, "reason": r.reason}
            for r in found.refusals
        ],
        "measured": [each.row() for each in found.measured],
    }


def rows(found: Answers) -> list[dict[str, Any]]:
    """One row for each prediction."""
    return [summary(each) for each in found.predictions]


def write_predictions(found: Answers, path: PathName, folder: Path, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write ``prediction.json`` and the plots.

    Args:
        found: what was predicted.
        path: the way whose bill is drawn.
        folder: where. One that is not there yet appears all at once; in one that is there, files of the same names are
            replaced.
        now: the date for the plots.

    Returns:
        The folder, and the plots in it.

    Raises:
        StorageError: it cannot be written.
        UsageError: ``folder`` is a file.
    """
    content = {"schema_version": SCHEMA_VERSION, "kind": KIND, **body(found, path), "rows": rows(found)}
    figures = dict(_figures(found, path, now))

    def fill(place: Path) -> None:
        from p4perf.evaluation.plots.style import save_figure

        write_text_atomically(place / "prediction.json", strict_json(content, indent=2) + "\n")
        for name, figure in figures.items():
            for kind in ("svg", "png"):
                save_figure(figure, place / f"{name}.{kind}")

    where = filled_folder(folder, fill)
    return where, tuple(where / f"{name}.{kind}" for name in figures for kind in ("svg", "png"))


def _figures(found: Answers, path: PathName, now: datetime) -> Iterator[tuple[str, Figure]]:
    from p4perf.evaluation.plots.flame import flame_figure
    from p4perf.evaluation.plots.prediction import rate_figure
    from p4perf.evaluation.plots.style import PlotInfo

    info = PlotInfo(date=now.strftime("%Y-%m-%d"))
    yield "rates", rate_figure(found.predictions[:MOST_FLAMES], info=info)
    names: set[str] = set()
    for each in found.predictions[:MOST_FLAMES]:
        name = flame_name(each)
        while name in names:
            name += "-2"
        names.add(name)
        yield name, flame_figure(each, path, info=info)


def flame_name(each: Prediction) -> str:
    """Name of the file of a bill."""
    words = ["bill", each.graph.name, *(f"{k}={v}" for k, v in each.values.items()), *each.changes, each.model.target]
    return "--".join(file_word(word) for word in words)[:150]
