"""Samples from a file of measurements, whatever its format: one door for CSV and for the formats of Extra-P."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

from p4perf.errors import UsageError
from p4perf.evaluation.csvdata import parse_csv
from p4perf.evaluation.extrap import parse_extrap, select_series
from p4perf.evaluation.statistics import Samples
from p4perf.results.files import read_text

DataFormat = Literal["csv", "extrap-text", "extrap-json"]
_SECTION = re.compile(r"PARAMETER\s|(POINTS|METRIC|REGION|DATA) ")


def data_format(text: str) -> DataFormat:
    """The format of a text, by its content; what is nothing else is CSV.

    JSON begins with a brace. The text format of Extra-P begins, after comments (``#``), with a section; the name of a
    column of a CSV file is followed by a comma, a semicolon or a tab.
    """
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if text.lstrip().startswith("{"):
        return "extrap-json"
    return "extrap-text" if _SECTION.match(first) else "csv"


def read_series(
    path: Path, x: str | None = None, y: str | None = None, *, region: str | None = None, y_unit: str = ""
) -> Samples:
    """Read one series of samples from a CSV file, or from the text, JSON or JSON Lines format of Extra-P.

    Args:
        path: the file, UTF-8; its format is told by its content, not by its name.
        x: the column of abscissae of a CSV file; the parameter of an Extra-P file, by default the one that varies.
        y: the column of samples of a CSV file; the metric of an Extra-P file, if it has several.
        region: the region or callpath of an Extra-P file, if it has several.
        y_unit: unit of the samples.

    Raises:
        UsageError: a name is missing or unknown.
        DataError: the file cannot be read, or has no samples; with file, line and key.
    """
    text = read_text(path).removeprefix("\ufeff")
    if data_format(text) != "csv":
        chosen = select_series(parse_extrap(text, str(path), x=x), region=region, metric=y)
        return replace(chosen.samples, y_unit=y_unit)
    if region is not None:
        raise UsageError(f"{path} is a CSV file and has no regions", hint="regions are for files of Extra-P")
    if x is None or y is None:
        raise UsageError(f"{path} is a CSV file: name the columns of x and y")
    return parse_csv(text, str(path), x, y, y_unit=y_unit)
