"""The fake targets, in this process."""

import sys

import pytest
from support.command import FAKES

from p4perf import plugins


@pytest.fixture
def fakes(monkeypatch):
    """The fake targets are registered for the time of a test."""
    monkeypatch.setattr(sys, "path", [str(FAKES), *sys.path])
    plugins._found.cache_clear()
    yield lambda name: plugins.load_plugin("p4perf.targets", name)
    plugins._found.cache_clear()
    sys.modules.pop("p4perf_fake", None)
