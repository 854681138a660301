"""Functions before and beside measuring: check, generate, status."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from p4perf.api import arguments as given
from p4perf.api.arguments import Changes, Count, PathLike, Texts, checked
from p4perf.errors import CapabilityError, UsageError
from p4perf.experiment import open_target, open_testbed, plan_sweep, require_usable
from p4perf.experiment.campaign_report import CellRecord, cell_records
from p4perf.experiment.generation import Generated, Generation, generate_all, generate_into
from p4perf.experiment.planning import RefusedPoint, possible_points
from p4perf.experiment.sizing import accepted_share, all_cells
from p4perf.plugins import load_plugin, plugin_names
from p4perf.records import Document, Record, doc, listing
from p4perf.results import Run, find_run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import write_text_atomically
from p4perf.results.names import RunSummary
from p4perf.specs import describe_variants


class _CheckRow(Record):
    experiment: str = doc("name of the experiment")
    points: int = doc("points of the sweep")
    trials: int = doc("accepted trials that are wanted: points x repetitions")
    spec_hash: str = doc("[hash](specs.md#the-hash-of-a-spec) of the spec, 64 hexadecimal digits")
    targets: tuple[str, ...] = doc("the named targets, which can measure it here")


CheckDocument = listing("check", _CheckRow, "`p4perf check SPEC`: one row.")


@checked
def check(
    spec: PathLike,
    targets: Texts = (),
    *,
    testbed: str = "local",
    set: Changes = (),
    points: Count | None = None,
    skip_impossible: bool = False,
    told: Callable[[str], object] = warnings.warn,
) -> Document:
    """Check a spec, and that targets can measure it here: the number of its points and trials, and its hash.

    Args:
        set, points, skip_impossible: as for :func:`p4perf.run`.
        told: gets the points that are left out, and what variants change.
    """
    experiment = given.experiment(spec, set, points, skip=skip_impossible, told=told)
    refused: dict[str, RefusedPoint] = {} if targets else {p.label: p for p in possible_points(experiment)[1]}
    for name in given.listed(targets):
        chosen, place = open_target(name), open_testbed(testbed)
        refused |= {p.label: p for p in plan_sweep(experiment, chosen, require_usable(chosen, place)).refused}
    skipped = list(refused.values())
    if skipped and not experiment.spec.sweep.skip_impossible:
        first = skipped[0]
        more = f" (and {len(skipped) - 1} more points)" if len(skipped) > 1 else ""
        hint = "--skip-impossible accepts that; p4perf run leaves such points out"
        raise CapabilityError(f"{experiment.spec.name} at {first.label}: {first.reason}{more}", hint=hint)
    for point in skipped:
        told(f"left out: {point.label}: {point.reason}")
    for line in describe_variants(experiment.spec):
        told(line)
    count = len(experiment.points) - len(skipped)
    row = _CheckRow(
        experiment=experiment.spec.name,
        points=count,
        trials=count * experiment.spec.trials.repetitions,
        spec_hash=experiment.spec_hash,
        targets=tuple(given.listed(targets)),
    )
    return CheckDocument(rows=(row,))


MAX_ENTRIES = 1_000_000
"""Largest table whose entry files are written, unless something else is asked for."""
REFUSED_FILE = "refused.json"
_OF_TARGET = {"bmv2": "v1model", "dpdk-swx": "swx", "nfp4000": "nfp"}
"""Generators of targets that have other names."""


def generators_of(names: Sequence[str]) -> list[str]:
    """The generators of these names or targets; without any, all."""
    found = [_OF_TARGET.get(name, name) for name in names] or plugin_names("p4perf.generators")
    for name in found:
        load_plugin("p4perf.generators", name)
    return found


@checked
def generate(
    spec: PathLike | None = None,
    generators: Texts = (),
    *,
    targets: Texts = (),
    output: PathLike = "generated",
    set: Changes = (),
    points: Count | None = None,
    max_entries: int | None = None,
) -> Generated:
    """Write programs, table entries and load-generator scripts: the files, and the points that generators refuse.

    Args:
        spec: name of an experiment of the catalogue or path of a spec; without one, the whole catalogue.
        generators: names of generators or their targets; by default all.
        targets: targets whose generators are used as well.
        max_entries: leave out entry files of larger tables; by default 1000000, or 0 for the whole catalogue.
    """
    names, folder = generators_of([*given.listed(generators), *given.listed(targets)]), Path(output)
    limit = max_entries if max_entries is not None else 0 if spec is None else MAX_ENTRIES
    if spec is not None:
        experiment = given.experiment(spec, set, points)
        return generate_into(folder, lambda place: Generation(names, place, limit, alone=True).run(experiment))
    if set:
        raise UsageError("--set changes one spec, and --all generates many", hint="leave one of them out")
    outcome = generate_into(folder, lambda place: generate_all(names, points, place, limit))
    write_text_atomically(folder / REFUSED_FILE, json.dumps([asdict(r) for r in outcome.refused], indent=1) + "\n")
    return outcome


class CampaignDocument(Document, kind="campaign"):
    """`p4perf run` with several specs or targets, `--all` or `--budget`.

    `p4perf resume`, `show` and `status CAMPAIGN` print it, too. One row for each experiment and target.
    See [campaigns](campaigns.md).
    """

    campaign: str = doc("path of its folder")
    accepted_share: float = doc("share of planned points with accepted trials", "ratio")
    rows: tuple[CellRecord, ...] = doc("")


StatusDocument = listing("status", RunSummary, "`p4perf status RUN`: one row.")


def campaign_document(folder: CampaignDirectory) -> CampaignDocument:
    cells = all_cells(folder)
    found = cell_records(folder, cells)
    rows = tuple(CellRecord.read(row, run=str(folder.path / row.run) if row.run else "") for row in found)
    return CampaignDocument(campaign=str(folder.path), accepted_share=accepted_share(cells), rows=rows)


@checked
def status(run: PathLike = "latest") -> Document:
    """How far a run has come, or a campaign: a row for it, or for each experiment on each target of it."""
    path = find_run(run)
    if CampaignDirectory.is_one(path):
        return campaign_document(CampaignDirectory.open(path))
    return StatusDocument(rows=(RunSummary.of(Run.open(path)),))
