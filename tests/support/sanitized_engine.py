"""Run the fit engine with another build of its kernel: ``python sanitized_engine.py kernel.so``. Prints ``done``."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np

NAME = "p4perf.evaluation.fitting.engine._kernel"


def main(kernel: str) -> None:
    spec = importlib.util.spec_from_file_location(NAME, kernel)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[NAME] = module

    from p4perf.evaluation.fitting import engine
    from p4perf.evaluation.fitting.selection import ExactRule
    from p4perf.models import standard_templates

    assert sys.modules[NAME].__file__ == kernel
    assert engine._kernel is module
    templates = standard_templates()
    rng = np.random.default_rng(1)
    for x, y in odd_series(rng):
        starts, ends = np.triu_indices(len(x))
        row = rng.integers(0, 2, len(starts))
        both = np.stack([y, y[::-1]])
        for robust in (False, True):
            for metric in engine.METRICS:
                choice = ExactRule().choice(metric)
                engine.chosen_templates(x, both, starts, ends, templates, choice, row=row, robust=robust, threads=3)
            engine.fitted_templates(x, both, starts, ends, templates, row=row, robust=robust, threads=3)
    for template in templates:
        engine.fitted_templates(x, y, starts, ends, [template])
    print("done")


def odd_series(rng: np.random.Generator):
    """Abscissae near and far, close and wide; ordinates of every sign and size."""
    for n in (1, 2, 3, 17):
        index = np.arange(float(n))
        abscissae = (
            index, index * 1e-12 + 1, np.geomspace(1, 2e7, n + 1)[1:], index - n / 2, index * 1e300 / n,
            np.cumsum(10.0 ** rng.uniform(-300, 0, n)) + index,
        )  # fmt: skip
        ordinates = (
            rng.uniform(1, 2, n), rng.standard_normal(n), np.zeros(n), np.full(n, -1.7e308),
            10.0 ** rng.uniform(-300, 300, n), np.where(rng.random(n) < 0.5, 0.0, 5e-324), np.exp(index),
        )  # fmt: skip
        for x in abscissae:
            for y in ordinates:
                yield np.unique(x), y[: len(np.unique(x))]


if __name__ == "__main__":
    main(sys.argv[1])
