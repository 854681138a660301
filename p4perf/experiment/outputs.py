"""Folders that hold what a command prints, and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from p4perf.results.files import filled_folder, new_folder, write_text_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = ("svg", "png")


def write_outputs(
    texts: Mapping[str, str], figures: Mapping[str, Figure], folder: Path | None, default: Path
) -> tuple[Path, tuple[Path, ...]]:
    """Write texts by file name, and figures by name as SVG and as PNG.

    Args:
        folder: one that is not there yet appears all at once; in one that is there, files of the same names are
            replaced. None makes a new one.
        default: the place of a new one, or that with a number behind it if it is taken.

    Returns:
        The folder, and the files of the figures.

    Raises:
        StorageError: it cannot be written.
        UsageError: ``folder`` is a file.
    """

    def fill(place: Path) -> None:
        from p4perf.evaluation.plots.style import save_figure

        for name, text in texts.items():
            write_text_atomically(place / name, text)
        for name, figure in figures.items():
            for kind in _KINDS:
                save_figure(figure, place / f"{name}.{kind}")

    where = new_folder(default, fill) if folder is None else filled_folder(folder, fill)
    return where, tuple(where / f"{name}.{kind}" for name in figures for kind in _KINDS)
