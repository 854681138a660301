"""Small campaigns on fake targets, in this process."""

from datetime import UTC, datetime

from p4perf.errors import NoVerdictError
from p4perf.experiment.campaign import Campaign
from p4perf.experiment.evaluate import evaluate_run
from p4perf.experiment.recorder import Silent
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

    def cell(self, number, total, cell, text):
        self.told.append((number, total, cell.experiment, cell.target, text))
        if len(self.told) == self.interrupt_after:
            raise KeyboardInterrupt

    def run(self):
        return Silent()


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


def conclude(run):
    try:
        evaluate_run(run, plots=False)
    except NoVerdictError:
        return


def measure(campaign, listener=None, conclude=conclude):
    """Measure; the cells by experiment and target."""
    cells = Campaign(campaign, listener or Listener()).measure(conclude)
    return {(c.experiment, c.target): c for c in cells}
