"""Output of commands: data on stdout in the format that was asked for, diagnostics and progress on stderr."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Such as ``12.3 [12.1, 12.6]``; the value alone if an end is unknown, and nothing without a value."""
    known = [end for end in (value, low, high) if end is not None and math.isfinite(end)]
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.4g} [{low:.4g}, {high:.4g}]" if len(known) == 3 else f"{value:.4g}"


def say_origin(run: RunIdentity) -> None:
    if run.origin:
        say(f"note: {run.origin}")


def say_environment(run: Manifest) -> None:
    """Say how the controls of the environment stood when a run began."""
    for check in run.environment:
        advice = f" ({check['advice']})" if check["advice"] else ""
        say(f"environment: {check['check']}: {check['value']}{advice}")


def say(text: str) -> None:
    """Print a line for people on stderr."""
    sys.stderr.write(text + "\n")


LINE_EVERY_S = 15.0
"""Without a terminal, shortest time between two lines."""
SHOW_AFTER_S = 1.0
"""A step that takes no longer than this shows no bar."""
