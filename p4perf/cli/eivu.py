"""The command about the study of virtual network I/O: its items, its cells, its claims."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import UsageError


class About(StrEnum):
    """What of the study."""

    ITEMS = "items"
    SPEC = "spec"
    CELLS = "cells"
    CLAIMS = "claims"


@app.command()
def eivu(
    about: Annotated[About, typer.Argument(help="What of the study.")] = About.ITEMS,
    item: Annotated[
        list[str] | None, typer.Option("--item", help="Of items and spec: only these, such as 014. May be repeated.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Of cells and claims: folder with an eivu_results.csv of your own.")
    ] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """The study of virtual network I/O (EIVU): its 141 items, a spec of them, its factorial cells, its claims."""
    if item and about not in (About.ITEMS, About.SPEC):
        raise UsageError("--item is for items and spec")
    if data is not None and about not in (About.CELLS, About.CLAIMS):
        raise UsageError("--data is for cells and claims")
    if about is About.ITEMS:
        _items(item, fmt)
    elif about is About.SPEC:
        from p4perf.specs.experiment import spec_yaml
        from p4perf.specs.items import items_of, items_spec

        sys.stdout.write(spec_yaml(items_spec(items_of(item) if item else None)))
    elif about is About.CELLS:
        _cells(data, fmt)
    else:
        _claims(data, fmt)


def _items(numbers: list[str] | None, fmt: Format) -> None:
    from p4perf.specs.items import items_of, read_items

    rows = [
        {
            "item": item.number,
            "name": item.name,
            "category": item.category,
            "group": item.group,
            "process": item.process,
            "parents": list(item.parents),
            "factors": item.factors,
            "runs": item.runs,
            "change": item.change,
            "settings": [f"{key}={value}" for key, value in item.settings.items()],
            "not_run_because": item.not_run_because,
        }
        for item in (items_of(numbers) if numbers else read_items())
    ]
    if fmt is not Format.TABLE:
        emit(fmt, "eivu.items", rows)
        return
    short = ("item", "category", "process", "factors", "runs", "change")
    emit(fmt, "", [{key: row[key] for key in short} for row in rows])
    say(f"{len(rows)} items, {sum(bool(row['runs']) for row in rows)} of which component vio can do")


def _cells(folder: Path | None, fmt: Format) -> None:
    from p4perf.evaluation.eivu import SERVERS, read_study
    from p4perf.evaluation.eivu.study import FACTORS

    study = read_study(folder)
    cells = {server: study.factorial(server).cells for server in SERVERS}
    rows = []
    for present in sorted(cells["S1"], key=lambda p: (len(p), sorted(p))):
        row: dict[str, object] = {name: int(name in present) for name in FACTORS}
        for server in SERVERS:
            cell = cells[server][present]
            row |= {f"{server}_mpps": cell.median, f"{server}_l1_misses": cell.cache}
        rows.append(row)
    emit(fmt, "eivu.cells", rows)


def _claims(folder: Path | None, fmt: Format) -> None:
    from p4perf.evaluation.eivu import check_claims, read_study

    claims = check_claims(read_study(folder))
    rows = [{"number": c.number, "claim": c.text, "verdict": c.verdict, "finding": c.finding} for c in claims]
    if fmt is Format.JSON:
        emit(fmt, "eivu.claims", [{**row, "numbers": dict(c.numbers)} for row, c in zip(rows, claims, strict=True)])
    else:
        emit(fmt, "eivu.claims", rows)
