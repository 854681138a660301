"""Predictions beside measurements, and their files: ``prediction.json`` and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4perf.errors import MeasurementError, UsageError
from p4perf.evaluation.plots.style import write_outputs
from p4perf.evaluation.prediction.answer import MeasuredPrediction, PathName, Prediction
from p4perf.evaluation.prediction.programs import UNIFORM, ProgramSubject, Wanted, sent_program
from p4perf.evaluation.prediction.record import Answers, predict_document
from p4perf.experiment.bench import open_target, open_testbed
from p4perf.experiment.evaluate import COST, point_rows
from p4perf.experiment.own import own_experiment
from p4perf.experiment.planning import point_workload
from p4perf.experiment.session import measure_run, new_run
from p4perf.models.estimate import Estimate
from p4perf.records import counted
from p4perf.results import Run
from p4perf.results.files import file_word, json_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_FLAMES = 12
"""Cost breakdowns of more predictions than these are not drawn."""


def write_predictions(found: Answers, path: PathName, folder: Path, now: datetime) -> tuple[Path, tuple[Path, ...]]:
    """Write ``prediction.json`` and the plots, with the cost breakdown of a path.

    Result and errors are those of :func:`~p4perf.evaluation.plots.style.write_outputs`.
    """
    texts = {"prediction.json": json_text(predict_document(found, path).as_dict())}
    return write_outputs(texts, dict(_figures(found, path, now)), folder, folder)


def _figures(found: Answers, path: PathName, now: datetime) -> Iterator[tuple[str, Figure]]:
    from p4perf.evaluation.plots.prediction import flame_figure, rate_figure
    from p4perf.evaluation.plots.style import PlotInfo

    info = PlotInfo(date=now.strftime("%Y-%m-%d"))
    yield "rates", rate_figure(found.predictions[:MOST_FLAMES], info=info)
    names: set[str] = set()
    for each in found.predictions[:MOST_FLAMES]:
        values = (f"{k}={v}" for k, v in each.values.items())
        words = ("breakdown", each.graph.name, *values, *each.changes, each.model.target)
        name = "--".join(map(file_word, words))[:150]
        while name in names:
            name += "-2"
        names.add(name)
        yield name, flame_figure(each, path, info=info)


TOTAL = "cycles_per_packet"


def sent(wanted: Wanted, fills: Sequence[str], frame_size_bytes: int | None, **shape: Any) -> ProgramSubject:
    """A program of your own with the entries and the packets that ``p4perf measure`` gives it.

    Args:
        fills: how many entries tables get, as ``p4perf measure`` takes it.
        shape: further arguments of :func:`~p4perf.experiment.own.own_experiment`.

    Raises:
        UsageError: it is an experiment, or is to be changed; shares are uniform.
        CapabilityError: what becomes of its packets is not known.
        P4PerfError: otherwise as of :func:`~p4perf.experiment.own.own_experiment`.
    """
    if wanted.is_experiment:
        raise UsageError("--traffic is for programs of your own", hint="what packets of an experiment do is known")
    if changes := [f"--set {text}" for text in wanted.sets] + [f"--without {text}" for text in wanted.without]:
        raise UsageError(
            f"{changes[0]} does not go with --traffic or --measure: their packets are of the unchanged program",
            hint="leave these out, or change the file; --fill TABLE=N goes with both",
        )
    shares = wanted.probabilities
    if shares is not None and wanted.capture is not None:
        raise UsageError("--probabilities and --capture both state branch probabilities", hint="give one of them")
    if shares == UNIFORM:
        raise UsageError("equal shares of all branches cannot be sent", hint="state them in a file")
    experiment = own_experiment(
        Path(wanted.program),
        entries=wanted.read.commands,
        p4info=wanted.read.p4info,
        arch=wanted.read.arch,
        std=wanted.read.std,
        defines=wanted.read.defines,
        includes=wanted.read.includes,
        fill=fills,
        shares=None if shares is None else Path(shares),
        capture=wanted.capture,
        frame_size_bytes=frame_size_bytes,
        **shape,
    )
    workload, _ = point_workload(experiment, experiment.points[0])
    return sent_program(experiment, workload, Path(wanted.program))


def measure(
    subjects: Sequence[tuple[ProgramSubject, Prediction]], testbed: str, parent: Path, told: Callable[[str], object]
) -> tuple[MeasuredPrediction, ...]:
    """Measure the points of an experiment in one run for each target.

    A program of your own is compared as it is. Of an experiment, the cost beyond the baseline of the same start is
    added to the baseline of the model: beside the baseline, the packet source draws keys and indices for components.

    Args:
        subjects: the points, with what was said of them.

    Raises:
        UsageError: a component was left out.
        MeasurementError: no start was accepted.
    """
    found: list[MeasuredPrediction] = []
    if any(text.startswith("without ") for subject, _ in subjects for text in subject.changes):
        raise UsageError("--measure cannot leave a component out", hint="measure an experiment without it")
    for target in dict.fromkeys(prediction.model.target for _, prediction in subjects):
        own = [(s, p) for s, p in subjects if p.model.target == target]
        found += _points(own, target, testbed, parent, told)
    return tuple(found)


def _points(
    subjects: Sequence[tuple[ProgramSubject, Prediction]],
    label: str,
    testbed: str,
    parent: Path,
    told: Callable[[str], object],
) -> list[MeasuredPrediction]:
    """Measure the points of an experiment in one run; those without an accepted start are left out with a warning."""
    experiment = subjects[0][0].experiment
    assert experiment is not None  # noqa: S101 - only points come here
    target, place = open_target(label), open_testbed(testbed)
    run, plan = new_run(experiment, target, place, parent)
    told(f"measuring {counted(len(plan.points), 'point')} on {label} ({place.label}): {run.path}")
    outcome = measure_run(experiment, plan.points, target, place, run)
    if outcome.waiting:
        raise UsageError(f"testbed {testbed} measures later: {outcome.waiting}", hint=f"p4perf resume {run.path}")
    own = bool(subjects[0][0].graph.packets)
    rows, _, _ = point_rows(Run(run), TOTAL if own else COST)
    found = []
    for subject, prediction in subjects:
        row = next((r for r in rows if all(r.get(name) == value for name, value in subject.values.items())), None)
        if row is None or not row["n"]:
            values = ", ".join(f"{name}={value}" for name, value in subject.values.items())
            told(f"warning: {subject.graph.name}{f' at {values}' if values else ''} has no accepted start")
            continue
        baseline = 0.0 if own else prediction.expected.breakdown.baseline
        found.append(_measured(prediction, row, baseline, run.path))
    if not found:
        raise MeasurementError(f"no start of {experiment.spec.name} was accepted", hint=f"p4perf show {run.path}")
    return found


def _measured(prediction: Prediction, row: Mapping[str, Any], baseline: float, folder: Path) -> MeasuredPrediction:
    flags = tuple(flag for flag in str(row["flags"]).split(",") if flag)
    cycles = Estimate(*(baseline + row[name] for name in ("median", "low", "high")))
    return MeasuredPrediction(prediction, cycles, int(row["n"]), flags, folder)


RENAMED_KEYS = {
    "bill": "breakdown",
    "ways": "path_count",
    "context_cycles": "interaction_cycles",
    "best_cycles": "lowest_cost_cycles",
    "worst_cycles": "highest_cost_cycles",
}
"""Keys of ``prediction.json`` of version 1, and what they are called now."""

RENAMED_PATHS = {"best": "lowest-cost", "worst": "highest-cost"}


def current_keys(content: Any) -> Any:
    """The content of a ``prediction.json`` of any version in the keys of the current one."""
    if isinstance(content, Mapping):
        found = {RENAMED_KEYS.get(key, key): current_keys(value) for key, value in content.items()}
        if isinstance(path := found.get("path"), str):
            found["path"] = RENAMED_PATHS.get(path, path)
        return found
    return [current_keys(value) for value in content] if isinstance(content, list) else content
