"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p4perf.cli.output import say
from p4perf.errors import UsageError

if TYPE_CHECKING:
    from p4perf.specs import Experiment

SpecArgument = Annotated[str, typer.Argument(help="Name of an experiment of the catalogue, or path of a spec file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change the spec: entries=1000, trials.repetitions=5. May be repeated."),
]
PointsOption = Annotated[
    int | None,
    typer.Option("--points", min=1, help="Keep at most so many values of every swept variable, evenly thinned."),
]


def load(spec: str, sets: list[str] | None, points: int | None) -> Experiment:
    """The experiment with the changes of the command line.

    Raises:
        UsageError: a --set has no equals sign.
        SpecError: the spec or a change is wrong.
    """
    from p4perf.specs import load_experiment

    experiment = load_experiment(spec, overrides=overrides_of(sets), points=points)
    combined = experiment.spec.sweep.combined
    if points is not None and (names := [*combined.each_of, *combined.subsets_of]):
        say(f"note: --points leaves all combinations of {', '.join(names)} there; sweep.multiplex chooses among them")
    return experiment


def overrides_of(sets: list[str] | None) -> list[tuple[str, str]]:
    """Keys and values of every ``--set``.

    Raises:
        UsageError: a --set has no equals sign.
    """
    overrides = []
    for text in sets or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text}: expected key=value", hint="for example --set entries=1000")
        overrides.append((key.strip(), value.strip()))
    return overrides


def check_choice(value: str | None, option: str, known: tuple[str, ...]) -> None:
    """Refuse what is none of two or more words; None is no choice at all.

    Raises:
        UsageError: it is another word.
    """
    if value is not None and value not in known:
        raise UsageError(f"{option} {value}: expected {', '.join(known[:-1])} or {known[-1]}")
