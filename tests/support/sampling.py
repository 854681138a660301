"""Sweeps of parameters of which ``make test`` runs a sample, and ``make test-all`` everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], *sample: Any) -> list[Any]:
    """The values for a parametrized test; those outside the sample are marked as thorough."""
    listed = list(values)
    assert all(value in listed for value in sample), "the sample is among the values"
    return [value if value in sample else pytest.param(value, marks=pytest.mark.thorough) for value in listed]
