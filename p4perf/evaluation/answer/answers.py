"""Predictions of several programs on several targets, with what a target refuses, beside one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.evaluation.answer.differences import Difference, difference
from p4perf.evaluation.answer.measured import Measured
from p4perf.evaluation.answer.prediction import Conditions, PathName, Prediction, TargetModel, predict
from p4perf.evaluation.answer.subjects import Pair, Subject

Check = Callable[[Subject, str], None]


@dataclass(frozen=True)
class Refusal:
    """A program that a target cannot do, and why."""

    program: str
    values: tuple[tuple[str, object], ...]
    target: str
    reason: str


@dataclass(frozen=True)
class Answers:
    """Everything that was asked for.

    Args:
        predictions: of every program on every target, the unchanged one in front of the changed one.
        differences: between these.
        refusals: what targets cannot do.
        measured: what was measured beside it.
    """

    predictions: tuple[Prediction, ...]
    differences: tuple[Difference, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    measured: tuple[Measured, ...] = ()

    @property
    def changed(self) -> tuple[Prediction, ...]:
        """Without the unchanged ones that are there for comparison only."""
        before = [d.before for d in self.differences]
        return tuple(p for p in self.predictions if not any(p is b for b in before))


def answer(
    pairs: Sequence[Pair],
    models: Sequence[TargetModel],
    conditions: Conditions,
    *,
    path: PathName = "expected",
    check: Check = lambda _subject, _target: None,
) -> Answers:
    """Predict all programs with all models.

    Args:
        pairs: programs, with what they were before.
        models: prices.
        conditions: frame size, cores, line, load.
        path: the way that differences are of.
        check: raises a CapabilityError where a target cannot do a program.

    Raises:
        P4PerfError: as :func:`~p4perf.evaluation.answer.prediction.predict`.
        CapabilityError: no target can do any of the programs; with the reason of the first.
    """
    predictions: list[Prediction] = []
    differences: list[Difference] = []
    refusals: list[Refusal] = []
    first: CapabilityError | None = None
    for pair in pairs:
        for model in models:
            try:
                found = _predicted(pair.subject, model, conditions, check)
            except CapabilityError as error:
                first = first or error
                values = tuple(pair.subject.values.items())
                refusals.append(Refusal(pair.subject.graph.name, values, model.name, error.message))
                continue
            if pair.before is not None:
                before = _predicted(pair.before, model, conditions, check)
                predictions.append(before)
                differences.append(difference(before, found, path))
            predictions.append(found)
    if not predictions and first is not None:
        raise first
    return Answers(tuple(predictions), tuple(differences), tuple(refusals))


def _predicted(subject: Subject, model: TargetModel, conditions: Conditions, check: Check) -> Prediction:
    check(subject, model.target)
    return predict(subject.graph, model, conditions, changes=subject.changes, values=subject.values)
