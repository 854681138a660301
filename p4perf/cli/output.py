"""How commands speak: data on stdout in the format that was asked for, talk on stderr."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

SCHEMA_VERSION = 1
"""Version of the JSON that the commands print; it rises when a key changes its meaning or goes."""


class Format(StrEnum):
    """Formats of the data on stdout."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the result.")]

Row = Mapping[str, Any]


def emit(fmt: Format, kind: str, rows: Sequence[Row], *, title: str = "", **more: Any) -> None:
    """Print rows.

    JSON is one object: ``schema_version``, ``kind``, the keys of ``more``, and the rows under ``rows``. CSV and the
    table have the rows only; what else a person should read the command says on stderr.
    """
    if fmt is Format.JSON:
        print_json({"schema_version": SCHEMA_VERSION, "kind": kind, **more, "rows": list(rows)})
    elif fmt is Format.CSV:
        _print_csv(rows)
    else:
        _print_table(rows, title)


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object (strict: no NaN, no infinity)."""
    sys.stdout.write(json.dumps(_strict(data), indent=2, allow_nan=False, default=str) + "\n")


def _strict(value: Any) -> Any:
    """NaN and infinities have no place in JSON: they become null."""
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return None
    if isinstance(value, Mapping):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    return value


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _print_csv(rows: Sequence[Row]) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows([{k: _cell(v) for k, v in row.items()} for row in rows])
    sys.stdout.write(out.getvalue())


def _print_table(rows: Sequence[Row], title: str) -> None:
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


def say_origin(manifest: Mapping[str, Any]) -> None:
    """Tell the user if a run was not measured by p4perf."""
    from p4perf.experiment.record import origin

    if text := origin(manifest):
        say(f"note: {text}")


def say_environment(manifest: Mapping[str, Any]) -> None:
    """Say how the controls of the environment stood when a run began."""
    for check in manifest.get("environment", []):
        advice = f" ({check['advice']})" if check["advice"] else ""
        say(f"environment: {check['check']}: {check['value']}{advice}")


def say(text: str) -> None:
    """Tell the user something, on stderr."""
    sys.stderr.write(text + "\n")
