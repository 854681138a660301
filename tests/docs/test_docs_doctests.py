"""The examples in docstrings run as printed."""

import doctest
import importlib
import pkgutil

import pytest

import p4perf

MODULES = sorted(m.name for m in pkgutil.walk_packages(p4perf.__path__, "p4perf.") if not m.name.endswith("__main__"))


@pytest.mark.parametrize("name", ["p4perf", *MODULES])
def test_examples_of_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    assert (
        sum(len(test.examples) for test in finder.find(importlib.import_module("p4perf.evaluation.fitting.component")))
        >= 3
    )
