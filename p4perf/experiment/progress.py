"""What the conductor tells while it works; the command line shows it, tests record it, the default ignores it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Listener of a sweep. All times in seconds."""

    def planned(self, trials: int, finished: int) -> None:
        """So many trials are planned in all, so many of them are on disk already."""

    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        """A trial ended; about so many trials and seconds are left."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Silent:
    """Tells nobody."""

    def planned(self, trials: int, finished: int) -> None:
        """Ignore it."""

    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""
