"""Files of Extra-P, in and out."""

from __future__ import annotations

from pathlib import Path

from p4perf.evaluation.extrap.jsonformat import parse_json
from p4perf.evaluation.extrap.series import ExtrapSeries
from p4perf.evaluation.extrap.textformat import extrap_text, parse_text
from p4perf.evaluation.statistics import Samples
from p4perf.results.files import read_text, write_text_atomically


def parse_extrap(text: str, file: str, *, x: str | None = None) -> tuple[ExtrapSeries, ...]:
    """Series of an Extra-P experiment in its text, JSON or JSON Lines format, told apart by the first character.

    Args:
        text: contents of the file.
        file: its name, for messages.
        x: the parameter that is the abscissa; by default the one that varies.

    Raises:
        UsageError: there is no parameter x.
        DataError: it cannot be read as what it looks like, has no measurements, or several parameters vary; with file,
            line and key.
    """
    parse = parse_json if text.lstrip().startswith("{") else parse_text
    return parse(text, file).series(x)


def read_extrap(path: Path, *, x: str | None = None) -> tuple[ExtrapSeries, ...]:
    """Read a file of Extra-P in its text, JSON or JSON Lines format.

    Repetitions are kept. Where one region and metric comes more than once, or one point, they are further repetitions.

    Args:
        path: the file, UTF-8.
        x: the parameter that is the abscissa; by default the one that varies.

    Returns:
        One series for each region and metric, in the order of the file.

    Raises:
        UsageError: there is no parameter x.
        DataError: the file cannot be read, and as in :func:`parse_extrap`.
    """
    return parse_extrap(read_text(path).removeprefix("\ufeff"), str(path), x=x)


def write_extrap_text(samples: Samples, path: Path, *, region: str = "main") -> None:
    """Write samples in the text format of Extra-P, see :func:`extrap_text`.

    Raises:
        StorageError: the file cannot be written.
    """
    write_text_atomically(path, extrap_text(samples, region=region))
