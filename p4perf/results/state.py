"""How far a run has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run has come. All hashes are in the order of the plan."""

    planned: tuple[str, ...]
    """Hashes of all points of the sweep."""
    finished: tuple[str, ...]
    """Those that need no more trials."""
    started: tuple[str, ...]
    """Those with some trials on disk that are not finished."""
    trials: int
    """Number of trials on disk for the planned points."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Hashes of the points that are not finished, begun or not."""
        done = set(self.finished)
        return tuple(point for point in self.planned if point not in done)

    @property
    def complete(self) -> bool:
        """Whether every planned point is finished (an empty plan is not)."""
        return bool(self.planned) and not self.missing
