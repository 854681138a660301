"""Output of commands: data on stdout in the format that was asked for, diagnostics and progress on stderr."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from p4perf.results import Manifest, RunIdentity

if TYPE_CHECKING:
    from p4perf.records import Document


class Format(StrEnum):
    """Formats of the data on stdout."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the result.")]

Row = Mapping[str, Any]


def emit(fmt: Format, document: Document, *, title: str = "", rows: Sequence[Row] | None = None) -> None:
    """Print a document.

    Args:
        fmt: JSON is the whole document; CSV and the table are its rows.
        document: what the command found.
        title: of the table.
        rows: what CSV and table have instead of the rows of the document.
    """
    content = document.as_dict()
    if fmt is Format.JSON:
        sys.stdout.write(json.dumps(content, indent=2, allow_nan=False, default=str) + "\n")
    elif fmt is Format.CSV:
        _print_csv(content["rows"] if rows is None else rows)
    else:
        print_table(content["rows"] if rows is None else rows, title)


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _print_csv(rows: Sequence[Row]) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows([{k: _cell(v) for k, v in row.items()} for row in rows])
    sys.stdout.write(out.getvalue())


def print_table(rows: Sequence[Row], title: str = "") -> None:
    """Print rows for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A pipe gets no line breaks inside cells: 200 columns hold every table of p4perf.
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200, highlight=False)
    if not rows:
        console.print("nothing to show")
        return
    table = Table(
        title=Text(title, no_wrap=True, overflow="ignore") if title else None,
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    for column in _columns(rows):
        numeric = all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in _columns(rows)))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(v) for v in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_cell(v)}" for k, v in value.items())
    return str(value)


def say_origin(run: RunIdentity) -> None:
    """Say if a run was not measured by p4perf."""
    if run.origin:
        say(f"note: {run.origin}")


def say_environment(run: Manifest) -> None:
    """Say how the controls of the environment stood when a run began."""
    for check in run.environment:
        advice = f" ({check['advice']})" if check["advice"] else ""
        say(f"environment: {check['check']}: {check['value']}{advice}")


def say(text: str) -> None:
    """Tell the user something, on stderr."""
    sys.stderr.write(text + "\n")


LINE_EVERY_S = 15.0
"""Without a terminal, one line at most so often."""
SHOW_AFTER_S = 1.0
"""A step that takes no longer than this shows no bar."""


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
