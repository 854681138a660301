"""The cells of a campaign: one experiment on one target, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, Location

MEASURED, REFUSED, UNAVAILABLE, FAILED, OPEN = "measured", "refused", "unavailable", "failed", "open"


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment on one target.

    ``state`` is ``measured``, ``refused`` (the target cannot do it), ``unavailable`` (the target cannot be used here),
    ``failed``, or ``open`` (not reached, or stopped before its end); ``reason`` says why it is not measured.
    ``points`` were planned, of ``full_points`` of the whole sweep; ``accepted`` have accepted trials. What is not
    ``complete`` is taken up again by a resume.
    """

    experiment: str
    target: str
    state: str
    reason: str = ""
    run: str = ""
    points: int = 0
    full_points: int = 0
    refused_points: tuple[str, ...] = ()
    failed_points: tuple[str, ...] = ()
    accepted: int = 0
    repetitions: int = 0
    full_repetitions: int = 0
    trials: int = 0
    wall_s: float = 0.0
    complete: bool = True

    @property
    def thinned(self) -> bool:
        """Whether points were left out for lack of time."""
        return self.state == MEASURED and self.points + len(self.refused_points) < self.full_points

    @property
    def good(self) -> bool:
        """Whether every point that the target can do is measured."""
        if self.state == MEASURED:
            return self.accepted == self.points
        return self.state == REFUSED


def summary(cell: Cell) -> str:
    """What became of a cell, in one line."""
    if cell.state != MEASURED:
        return f"{cell.state}: {cell.reason}" if cell.reason else cell.state
    parts = [f"{cell.accepted} of {cell.points} points accepted"]
    if cell.thinned:
        parts.append(f"thinned to {cell.points + len(cell.refused_points)} of {cell.full_points}")
    if cell.repetitions < cell.full_repetitions:
        parts.append(f"{cell.repetitions} of {cell.full_repetitions} repetitions")
    if cell.refused_points:
        parts.append(f"{len(cell.refused_points)} points refused")
    if cell.failed_points:
        parts.append(f"{len(cell.failed_points)} points failed")
    parts.append(f"{cell.wall_s:.0f} s")
    if not cell.complete:
        parts.append("not complete")
    return ", ".join(parts)


def accepted_share(cells: Sequence[Cell]) -> float:
    """Share of the planned points that have accepted trials, over all cells that were begun."""
    planned = sum(c.points for c in cells)
    return sum(c.accepted for c in cells) / planned if planned else 0.0


def entry_of(cell: Cell) -> dict[str, Any]:
    """A cell as it stands in ``campaign.json``."""
    return asdict(cell)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "tuple[str, ...]": (list, tuple),
}


def cell_of(entry: object, file: Path) -> Cell:
    """A cell from ``campaign.json``.

    Raises:
        DataError: the entry is damaged.
    """
    given = entry if isinstance(entry, dict) else {}
    values: dict[str, Any] = {}
    for field in fields(Cell):
        if field.name not in given and field.default is not MISSING:
            continue
        value = given.get(field.name)
        if not isinstance(value, _TYPES[str(field.type)]):
            raise DataError(
                "is missing or not what it should be", location=Location(str(file)), key=f"cells.{field.name}"
            )
        values[field.name] = tuple(str(text) for text in value) if isinstance(value, list | tuple) else value
    return Cell(**values)
