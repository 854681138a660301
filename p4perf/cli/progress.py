"""Progress of long work, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import override

from p4perf.cli.app import near, planned_text, say_stopped
from p4perf.records import counted, duration_text

if TYPE_CHECKING:
    from p4perf.experiment.planning import SweepPlan
    from p4perf.results import RunDirectory

LINE_EVERY_S = 15.0
"""Without a terminal, shortest time between two lines."""
SHOW_AFTER_S = 1.0
"""A step that takes no longer than this shows no bar."""


class _Shown:
    """A bar on a terminal. Use it as a context manager."""

    def __init__(self, *columns: ProgressColumn, quiet: bool = False) -> None:
        self._quiet, self._terminal = quiet, sys.stderr.isatty()
        self._began = self._last = time.monotonic()
        self._task: TaskID | None = None
        self._bar = Progress(
            *columns,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=quiet or not self._terminal,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def _show(self, what: str, total: float, text: str, **fields: Any) -> None:
        """Move the bar of a step that takes longer than a moment, or print a line."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(what, total=total, speed="")
        self._bar.update(self._task, **fields)
        self._line(text)

    def _line(self, text: str, *, now: bool = False) -> None:
        """Print a line where there is no bar, now or if the last one is long ago."""
        if not (self._quiet or self._terminal) and (now or time.monotonic() - self._last >= LINE_EVERY_S):
            self._last = time.monotonic()
            sys.stderr.write(text + "\n")


class SweepProgress(_Shown):
    """Trials of a sweep: a bar from the beginning on.

    Args:
        begins: prints what a new run is.
        path: the run, once it is known; an interruption says how it is continued,
        cluster: with these options of --scheduler and --tls.
    """

    def __init__(
        self,
        begins: Callable[[RunDirectory, SweepPlan], object] = lambda run, plan: None,
        path: Path | None = None,
        cluster: tuple[str | None, Path | None] = (None, None),
        *,
        quiet: bool = False,
    ) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            quiet=quiet,
        )
        self._planned = self._accepted = self._rejected = 0
        self.path, self._begins, self._cluster = path, begins, cluster

    @override
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, value, tb)
        if kind is KeyboardInterrupt and self.path is not None:
            say_stopped(self.path, *self._cluster)

    def begun(self, run: RunDirectory, plan: SweepPlan) -> None:
        self.path = run.path
        self._begins(run, plan)

    def planned(self, trials: int, finished: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task("measuring", total=trials, completed=finished, left="")
        self._planned, self._accepted = trials, finished
        before = f", {finished} of them finished before" if finished else ""
        self._line(f"{counted(trials, 'trial')} planned{before}", now=True)

    def trial(self, label: str, accepted: bool, remaining: int, remaining_s: float) -> None:
        self._accepted += accepted
        self._rejected += not accepted
        left, total = f"about {duration_text(remaining_s)} left", self._accepted + remaining
        if self._task is not None:
            self._bar.update(self._task, advance=accepted, total=total, left=left, description=label)
        planned = "" if total == self._planned else f" ({planned_text(self._planned, total)})"
        rejected = f", {self._rejected} rejected" if self._rejected else ""
        self._line(f"{self._accepted} of {counted(total, 'trial')}{planned} accepted{rejected}, {left}")

    def note(self, text: str) -> None:
        if not self._quiet:
            self._bar.console.print(f"note: {text}", highlight=False, markup=False)


class Share(_Shown):
    """The finished share of one long step: a bar on a terminal, and nothing for steps that are over in a moment."""

    def __init__(self, what: str) -> None:
        super().__init__(TextColumn("[bold]{task.description}"), BarColumn())
        self._what = what

    def __call__(self, share: float) -> None:
        """Show the finished share, from 0 to 1."""
        if time.monotonic() - self._began >= SHOW_AFTER_S:
            self._show(self._what, 1.0, f"{self._what}: {100 * share:.0f} %", completed=share)


class SeriesProgress(_Shown):
    """Finished series, how many a second, and the time that is left."""

    def __init__(self, total: int) -> None:
        super().__init__(
            TextColumn("[bold]fitting"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]}")
        )
        self._total = total

    def __call__(self, count: int) -> None:
        took_s = time.monotonic() - self._began
        if took_s >= SHOW_AFTER_S:
            speed = f"{count / took_s:.3g} series/s, about {duration_text((self._total - count) * took_s / count)} left"
            line = f"fitting: {count} of {self._total} series, {speed}"
            self._show("", self._total, line, completed=count, speed=speed)


class WholeProgress(_Shown):
    """One bar over everything that a call does: the time that it took, of that which it will take."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(
            TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"), quiet=quiet
        )

    def told(self, text: str) -> None:
        if not self._quiet:
            self._bar.console.print(near(text), highlight=False, markup=False, soft_wrap=True)

    def reached(self, what: str, left_s: float) -> None:
        took_s, left = time.monotonic() - self._began, f"about {duration_text(left_s)} left"
        self._line(f"{what}: {left}", now=self._task is None)
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(what, left=left)
        self._bar.update(self._task, description=what, completed=took_s, total=took_s + left_s, left=left)
