"""What components cost beside one another beyond their sum: the forms of it, fitted to measured programs.

Of a program with baseline ``b``, costs of its parts alone ``f_i``, ``t`` table lookups and ``m`` lookups that miss the
cache, whose other parts cost ``r``:

* ``sum``: ``b + sum f_i``;
* ``scaled``: ``b + (1 + a1) sum f_i + a0 + a2 max(t - 1, 0) + a3 m min(1, r / R)``: later tables cost something else
  than the first, and misses hide less beside long programs;
* ``spacing``: tables share the cache (:mod:`~p4perf.models.program.sharing`), and every miss costs ``X(r / max(1, m))``
  more than alone: the longer the way to the next miss, the fewer misses a processor has in flight at once. ``X`` is
  measured, and rises;
* ``spacing, scaled``: both, without ``a3``.

Errors are relative, so coefficients minimise relative squares, drawn towards zero a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

FormName = Literal["sum", "scaled", "spacing", "spacing, scaled"]
FORMS: tuple[FormName, ...] = get_args(FormName)

LONG_CYCLES = 170.0
"""``R``: what a program costs beside its misses when they hide nothing any more, in cycles per packet."""

RIDGE = 0.003
"""How much coefficients are drawn towards zero, as a share of what the programs say of them."""

FEW_MISSES = 0.2
"""Programs with fewer misses per packet say nothing about what a miss costs."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Composition:
    """What the forms see of a program. Cycles are per packet.

    Args:
        baseline: of the empty program.
        alone: sum of the costs of its parts, each as if alone.
        shared: the same with tables that share the cache.
        tables: lookups per packet.
        misses: lookups that miss the cache, in units of one whose table is far beyond it; tables as if alone.
        shared_misses: the same with tables that share the cache.
        rest: cost of what does not miss; tables as if alone.
        shared_rest: the same with tables that share the cache.
    """

    baseline: float
    alone: float
    shared: float
    tables: float
    misses: float
    shared_misses: float
    rest: float
    shared_rest: float

    @property
    def spacing(self) -> float:
        """Cycles from one miss to the next, as far as it is work that does not miss."""
        return self.shared_rest / max(1.0, self.shared_misses)


@dataclass(frozen=True)
class Form:
    """A fitted form.

    Args:
        name: which one.
        coefficients: ``a0, a1, a2, a3``; empty without.
        spacings: where ``X`` is known, ascending.
        excess: ``X`` there, rising.
    """

    name: FormName = "sum"
    coefficients: tuple[float, ...] = ()
    spacings: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()

    def total(self, program: Composition) -> float:
        """Cycles per packet of a program."""
        total = program.baseline + (program.shared if self.spacings else program.alone) + self._missed(program)
        if self.coefficients:
            total += float(np.dot(_features(program, spaced=bool(self.spacings)), self.coefficients))
        return total

    def _missed(self, program: Composition) -> float:
        if not self.spacings:
            return 0.0
        return program.shared_misses * float(np.interp(program.spacing, self.spacings, self.excess))


def fit_form(name: FormName, programs: Sequence[Composition], measured: Sequence[float]) -> Form:
    """Fit one form to measured programs, in cycles per packet."""
    form = Form(name)
    if name.startswith("spacing"):
        spacings, excess = _rising(programs, measured)
        form = Form(name, (), spacings, excess)
    if name.endswith("scaled"):
        rest = np.asarray(measured) - np.asarray([form.total(p) for p in programs])
        features = np.asarray([_features(p, spaced=bool(form.spacings)) for p in programs])
        weights = 1 / np.asarray(measured)
        design, target = features * weights[:, None], rest * weights
        scales = np.sqrt(np.sum(design**2, axis=0))
        used = scales > 0
        scaled = design[:, used] / scales[used]
        square = scaled.T @ scaled + RIDGE * np.eye(int(used.sum()))
        found = np.zeros(len(scales))
        found[used] = np.linalg.solve(square, scaled.T @ target) / scales[used]
        form = Form(name, tuple(float(c) for c in found), form.spacings, form.excess)
    return form


def _features(program: Composition, *, spaced: bool) -> FloatArray:
    """What ``a0`` to ``a3`` are multiplied with."""
    missed = 0.0 if spaced else program.misses * min(1.0, program.rest / LONG_CYCLES)
    parts = program.shared if spaced else program.alone
    return np.asarray([1.0 if parts else 0.0, parts, max(program.tables - 1.0, 0.0), missed])


def _rising(programs: Sequence[Composition], measured: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """``X``: the rising function of spacing that is nearest to what misses cost in excess (pool adjacent violators)."""
    points = [(0.0, 0.0, 1e3)]
    for program, cycles in zip(programs, measured, strict=True):
        if program.shared_misses >= FEW_MISSES:
            missing = (cycles - program.baseline - program.shared) / program.shared_misses
            points.append((program.spacing, missing, (100 * program.shared_misses / cycles) ** 2))
    points.sort()
    blocks: list[list[float]] = []  # weighted sums of spacing and excess, and weights
    for spacing, excess, weight in points:
        blocks.append([spacing * weight, excess * weight, weight])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][2] >= blocks[-1][1] / blocks[-1][2]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    spacings = tuple(block[0] / block[2] for block in blocks)
    return spacings, tuple(block[1] / block[2] for block in blocks)
