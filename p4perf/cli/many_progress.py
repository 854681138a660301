"""Progress of many series on stderr: how many of them, how fast, and how long it will take."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from p4perf.cli.output import LINE_EVERY_S, SHOW_AFTER_S

if TYPE_CHECKING:
    pass


class SeriesProgress:
    """A bar on a terminal, a line now and then elsewhere. Use it as a context manager.

    Args:
        total: number of series.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._terminal = sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._bar = Progress(
            TextColumn("[bold]fitting"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not self._terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> SeriesProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def finished(self, count: int) -> None:
        """Show that so many series are finished."""
        now = time.monotonic()
        took_s = now - self._began
        if took_s < SHOW_AFTER_S:
            return
        speed = f"{count / took_s:.3g} series/s, about {_left((self._total - count) * took_s / count)} left"
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, speed="")
        self._bar.update(self._task, completed=count, speed=speed)
        if not self._terminal and now - self._last >= LINE_EVERY_S:
            self._last = now
            sys.stderr.write(f"fitting: {count} of {self._total} series, {speed}\n")


def _left(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
