"""Small campaigns on fake targets, in this process."""

from datetime import UTC, datetime

import pytest

from p4perf.experiment import campaign as module
from p4perf.experiment.campaign import Campaign
from p4perf.experiment.evaluate import evaluate_run
from p4perf.results.campaign import CampaignDirectory
from p4perf.specs import load_experiment

TABLES = "{name: my/tables, extends: mat/exact-entries, sweep: {entries: [1, 10, 100, 1000, 10000, 100000]}}"
HEADERS = "{name: my/headers, extends: parser/headers, sweep: {headers: [0, 2, 4]}}"
PREFIXES = "{name: my/prefixes, extends: mat/lpm-tables, sweep: {tables: [1, 2]}}"


class Listener:
    """Keeps what it is told; an interrupt comes after so many cells."""

    def __init__(self, interrupt_after=None):
        self.told = []
        self.interrupt_after = interrupt_after

    def __call__(self, text):
        self.told.append(text)
        if len(self.told) == self.interrupt_after:
            raise KeyboardInterrupt


def specs(folder, *texts):
    """Spec files."""
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.yaml"
        path.write_text(text)
        paths.append(str(path))
    return paths


def new_campaign(folder, sources, targets, *, budget_s=None, overrides=(), points=None):
    request = {
        "experiments": [load_experiment(source).spec.name for source in sources],
        "sources": list(sources),
        "targets": list(targets),
        "testbed": "local",
        "budget_s": budget_s,
        "overrides": [list(pair) for pair in overrides],
        "points": points,
    }
    return CampaignDirectory.create(folder / "runs", "catalogue", request, datetime(2026, 11, 21, 10, 15, tzinfo=UTC))


def measure(campaign, listener=None, conclude=evaluate_run, reached=lambda what, left_s: None):
    """Measure, and draw nothing; the cells by experiment and target."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "evaluate_run", lambda run, plots: conclude(run, plots=False))
        cells = Campaign(campaign, listener or Listener(), reached=reached).measure()
    return {(c.experiment, c.target): c for c in cells}
