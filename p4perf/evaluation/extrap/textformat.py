"""The text format of Extra-P: one section a line.

    PARAMETER p
    POINTS (4) (8) (16)
    METRIC time
    REGION main->solve
    DATA 8.31 8.02 8.14
    DATA 22.74 22.66 23.20
    DATA 65.79 64.74 66.62

``PARAMETER`` and ``POINTS`` can be given more than once and add up. The coordinates of a point stand in brackets, each
one in brackets of its own if one likes; of one parameter only, brackets can be left out. ``METRIC`` and ``REGION`` hold
for all data below, until the next; after either, there is one ``DATA`` line for each point, with its repetitions. Lines
that begin with ``#`` are comments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from p4perf.errors import DataError, Location
from p4perf.evaluation.extrap.series import Experiment, Point
from p4perf.evaluation.statistics import Samples
from p4perf.specs.messages import nearest

_TOKEN = re.compile(r"[()]|[^\s()]+")


class _Reader:
    """Takes one line after the other."""

    def __init__(self, file: str) -> None:
        self.experiment = Experiment(file, ())
        self.points: list[Point] = []
        self.region = self.metric = ""
        self.filled = 0
        """DATA lines below the last REGION or METRIC."""
        self.opened = 0
        """Number of the line with the last REGION or METRIC."""
        self.number, self.text = 0, ""
        self.sections: dict[str, Callable[[int], None]] = {
            "PARAMETER": self.parameter,
            "POINTS": self.add_points,
            "METRIC": self.name,
            "REGION": self.name,
            "DATA": self.data,
        }

    def fail(
        self, message: str, column: int | None = None, *, key: str | None = None, hint: str | None = None
    ) -> NoReturn:
        place = Location(self.experiment.file, self.number, column, None if column is None else self.text)
        raise DataError(message, location=place, key=key, hint=hint)

    def take(self, number: int, text: str) -> None:
        self.number, self.text = number, text
        section = _TOKEN.search(text)
        if section is None or section[0].startswith("#"):
            return
        if section[0] not in self.sections:
            hint = nearest(section[0].upper(), self.sections, "sections")
            self.fail(f"{section[0]!r} is no section", section.start() + 1, hint=hint)
        if not text[section.end() :].strip():
            self.fail("is empty", key=section[0])
        self.sections[section[0]](section.end())

    def parameter(self, start: int) -> None:
        if self.points:
            self.fail("must stand before all POINTS", key="PARAMETER")
        for name in self.text[start:].split():
            if name in self.experiment.parameters:
                self.fail(f"{name!r} is there twice", key="PARAMETER")
            self.experiment.parameters += (name,)

    def add_points(self, start: int) -> None:
        parameters = self.experiment.parameters
        if not parameters:
            self.fail("there must be a PARAMETER above", key="POINTS")
        if self.experiment.values:
            self.fail("must stand before all DATA", key="POINTS")
        depth, point = 0, []
        for token in _TOKEN.finditer(self.text, start):
            column = token.start() + 1
            if token[0] == "(":
                depth += 1
                if depth > 2:
                    self.fail("brackets are nested too deeply", column, key="POINTS")
                continue
            if token[0] == ")":
                depth -= 1
                if depth < 0:
                    self.fail("a bracket is closed that was not opened", column, key="POINTS")
            else:
                point.append(self.value(token[0], column, "POINTS"))
            if depth == 0:
                if len(point) != len(parameters):
                    names = ", ".join(parameters)
                    self.fail(
                        f"a point has one coordinate for each parameter ({names}), not {len(point)}",
                        column,
                        key="POINTS",
                    )
                self.points.append(tuple(point))
                point = []
        if depth:
            self.fail("a bracket is not closed", key="POINTS")

    def name(self, start: int) -> None:
        self.close()
        words = " ".join(self.text[start:].split())
        if self.text[:start].strip() == "REGION":
            self.region = words
        else:
            self.metric = words
        self.filled, self.opened = 0, self.number

    def data(self, start: int) -> None:
        if not self.points:
            self.fail("there must be POINTS above", key="DATA")
        if self.filled == len(self.points):
            self.fail(f"there are more DATA lines than points ({len(self.points)})", key="DATA")
        tokens = re.finditer(r"\S+", self.text[start:])
        values = [self.value(token[0], start + token.start() + 1, "DATA") for token in tokens]
        self.experiment.add(self.region, self.metric, self.points[self.filled], values)
        self.filled += 1

    def value(self, token: str, column: int, key: str) -> float:
        try:
            value = float(token)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{token!r} is not a finite number", column, key=key)
        return value

    def close(self) -> None:
        """See that the data below the last REGION or METRIC are complete; there may be none before the next one."""
        if 0 < self.filled < len(self.points):
            self.number = self.opened or self.number
            named = " ".join(name for name in (self.region, self.metric) if name)
            self.fail(f"{named}: {self.filled} DATA lines for {len(self.points)} points".removeprefix(": "))


def parse_text(text: str, file: str) -> Experiment:
    """Read the text format.

    Args:
        text: contents of the file.
        file: its name, for messages.

    Raises:
        DataError: a line cannot be understood, or there are more or fewer ``DATA`` lines than points; with file, line,
            column and section.
    """
    reader = _Reader(file)
    for number, line in enumerate(text.split("\n"), start=1):
        reader.take(number, line.rstrip("\r"))
    reader.close()
    return reader.experiment


def extrap_text(samples: Samples, *, region: str = "main") -> str:
    """Samples in the text format; numbers are written exactly, without exponents.

    Names are kept, except that white space in the name of the variable becomes an underscore: Extra-P would take it for
    several parameters. The unit stands in a comment.

    Args:
        samples: what was measured. Points without an accepted repetition are left out.
        region: name of the region.
    """
    metric, unit = _words(samples.y_name), f" [{samples.y_unit}]" if samples.y_unit else ""
    lines = [
        f"# {metric}{unit} over {_words(samples.x_name)}",
        f"PARAMETER {_words(samples.x_name).replace(' ', '_')}",
        f"POINTS {' '.join(f'({_exact(x)})' for x in samples.x)}",
        f"METRIC {metric}",
        f"REGION {_words(region)}",
        *(f"DATA {' '.join(map(_exact, values))}" for values in samples.values),
    ]
    return "\n".join(lines) + "\n"


def _words(name: str) -> str:
    return " ".join(name.split()) or "unnamed"


def _exact(value: float) -> str:
    return np.format_float_positional(value, trim="-")
