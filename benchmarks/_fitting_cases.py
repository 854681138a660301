"""Series with known segments for the comparison of fitting methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p4perf.evaluation.fitting.synthetic import SyntheticSeries, piecewise_series

FOLDER = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "fitcases"
GROUPS = {
    "a": ("a0_", "a1_"),
    "b": ("b_",),
    "c": ("c_",),
    "d60": ("d60_",),
    "d500": ("d500_00_", "d500_01_", "d500_02_"),
    "e": ("e_",),
    "f": ("f_",),
    "g": ("g_",),
}
"""For every group of the reference cases, how the names of its cases begin."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """One series.

    Args:
        name: unique name.
        group: cases that are summarised together.
        x: abscissae.
        y: samples.
        truth: values without noise.
        breakpoints: index of the last sample of each segment but the last.
        sharp: whether each breakpoint can be found to within a sample.
        families: name of the function of every segment.
    """

    name: str
    group: str
    x: Array
    y: Array
    truth: Array
    breakpoints: tuple[int, ...]
    sharp: tuple[bool, ...]
    families: tuple[str, ...]

    @property
    def floor(self) -> float:
        """Error of the truth: no method that does not follow the noise comes below it by much."""
        return smape(self.y, self.truth)


def smape(y: Array, f: Array) -> float:
    """Mean of ``|f - y| / (|f| + |y|)``, with 0/0 as 0."""
    whole = np.abs(y) + np.abs(f)
    return float(np.mean(np.divide(np.abs(f - y), whole, out=np.zeros_like(whole), where=whole != 0)))


def cases() -> list[Case]:
    """The reference cases; where they are not there, synthetic ones."""
    if (FOLDER / "index.json").exists():
        names = json.loads((FOLDER / "index.json").read_text())
        return [_reference(group, n) for group, begins in GROUPS.items() for n in names if n.startswith(begins)]
    print(f"{FOLDER} is not here: synthetic series instead")
    drawn = [(f"n{n}-k{k}", s, piecewise_series(s, n, k)) for n in (60, 200) for k in (1, 2, 3, 4) for s in range(8)]
    return [_synthetic(group, seed, series) for group, seed, series in drawn]


def _synthetic(group: str, seed: int, series: SyntheticSeries) -> Case:
    s = series
    return Case(f"{group}-{seed}", group, s.x, s.y, s.truth, s.breakpoints, s.sharp, s.families)


_CURVES: dict[str, Callable[[Array, list[float]], Array]] = {
    "const": lambda x, p: np.full_like(x, p[0]),
    "poly1": lambda x, p: np.polyval(p, x),
    "poly2": lambda x, p: np.polyval(p, x),
    "log": lambda x, p: p[0] * np.log(x) + p[1],
    "exp": lambda x, p: p[0] * np.exp(p[1] * x) + p[2],
    "inv_poly1": lambda x, p: 1 / np.polyval(p, x),
}
"""Curves of the reference cases from their parameters."""


def _reference(group: str, name: str) -> Case:
    about: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    x, y = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1).T
    segments = about["segments"]
    truth = [_CURVES[p["family"]](x[p["start"] : p["end"] + 1], p["params"]) for p in segments]
    families = tuple(p["family"] for p in segments)
    return Case(name, group, x, y, np.concatenate(truth), tuple(about["splits"]), tuple(about["sharp"]), families)
