"""Variants of a target are parts of its name."""

import sys

import pytest
from support.command import FAKES, p4perf

from p4perf import plugins
from p4perf.errors import UsageError
from p4perf.experiment import open_target


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FAKES), *sys.path])
    plugins._found.cache_clear()
    yield
    plugins._found.cache_clear()


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("fake-small", "fake-small"),
        ("fake-small:", "fake-small"),
        ("fake-small:bold", "fake-small:bold"),
        ("fake-small:bold+careful", "fake-small:careful+bold"),
        ("fake-small:careful+bold", "fake-small:careful+bold"),
        ("fake-small:bold+bold", "fake-small:bold"),
    ],
)
def test_a_label_is_the_same_however_it_is_written(written, label):
    target = open_target(written)
    assert target.label == label
    assert open_target(target.label).chosen == target.chosen


def test_a_variant_that_there_is_not():
    with pytest.raises(UsageError, match="target fake-small has no variant quick") as caught:
        open_target("fake-small:quick")
    assert caught.value.hint == "it has careful, bold"
    with pytest.raises(UsageError) as caught:
        open_target("fake:bold")
    assert caught.value.hint == "it has none"


def test_a_target_that_there_is_not():
    with pytest.raises(UsageError, match="unknown target 'fake-smal'") as caught:
        open_target("fake-smal:bold")
    assert caught.value.hint == "did you mean fake-small?"


@pytest.mark.thorough
def test_a_run_with_a_variant_can_be_resumed(tmp_path):
    options = ["--points", 2, "--target", "fake-small:bold", "--set", "entries=[1, 10]", "-q"]
    done = p4perf("run", "mat/exact-entries", *options, "-o", tmp_path)
    assert done.code == 0, done.err
    (run,) = tmp_path.iterdir()
    assert "--fake-small-bold--" in run.name
    assert "fake-small:bold" in (run / "manifest.json").read_text()
    assert p4perf("resume", run, "-q").code == 0
