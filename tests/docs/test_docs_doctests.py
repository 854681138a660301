"""The examples in docstrings run as printed."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import p4perf

ROOT = Path(p4perf.__file__).parents[1]
PROMPT = re.compile(r"^\s*>>> ", re.MULTILINE)
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "p4perf").rglob("*.py")
    if PROMPT.search(path.read_text())
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert {"p4perf", "p4perf.api", "p4perf.models"} <= set(MODULES)
