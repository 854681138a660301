"""Progress of long work, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    pass
from p4perf.cli.output import LINE_EVERY_S, SHOW_AFTER_S


class SweepProgress:
    """Shows what the conductor tells. Use it as a context manager."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=quiet or not self._terminal,
        )
        self._task: TaskID | None = None
        self._last = time.monotonic()
        self._accepted = self._tried = 0

    def __enter__(self) -> SweepProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def planned(self, trials: int, finished: int) -> None:
        """Set up the bar."""
        self._task = self._bar.add_task("measuring", total=trials, completed=finished, left="")
        self._line(f"{trials} trials planned, {finished} of them finished before")

    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        """Advance the bar."""
        self._tried += 1
        self._accepted += accepted
        left = f"about {_duration(remaining_s)} left"
        if self._task is not None:
            total = self._bar.tasks[0].completed + accepted + remaining
            self._bar.update(self._task, advance=accepted, total=total, left=left, description=label)
        if time.monotonic() - self._last >= LINE_EVERY_S:
            self._line(f"{self._accepted} trials accepted of {self._tried}, {remaining} to go, {left}")

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self._quiet:
            self._bar.console.print(f"note: {text}", highlight=False, markup=False)

    def _line(self, text: str) -> None:
        if self._quiet or self._terminal:
            return
        self._last = time.monotonic()
        sys.stderr.write(text + "\n")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Share:
    """The finished share of one long step: a bar on a terminal, and nothing for steps that are over in a moment."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not self._terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Share:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def __call__(self, share: float) -> None:
        """Show that so much is finished, from 0 to 1."""
        now = time.monotonic()
        if now - self._began < SHOW_AFTER_S:
            return
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=1.0)
        self._bar.update(self._task, completed=share)
        if not self._terminal and now - self._last >= LINE_EVERY_S:
            self._last = now
            sys.stderr.write(f"{self._what}: {100 * share:.0f} %\n")
