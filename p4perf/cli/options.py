"""Options that several commands share."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p4perf.cli.output import say
from p4perf.errors import SpecError, UsageError

if TYPE_CHECKING:
    from p4perf.experiment import Crew
    from p4perf.specs import Experiment
    from p4perf.specs.units import Dimension
    from p4perf.testbeds.base import Testbed


SpecArgument = Annotated[str, typer.Argument(help="Experiment of the catalogue, or path of a spec file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change the spec: entries=1000, trials.repetitions=5. Repeatable.")
]
PointsOption = Annotated[
    int | None, typer.Option("--points", min=1, help="Keep at most N values of every swept variable, evenly thinned.")
]


def load(spec: str, sets: list[str] | None, points: int | None) -> Experiment:
    """The experiment with the changes of the command line."""
    from p4perf.programs.component import component_parameters
    from p4perf.specs import load_experiment

    experiment = load_experiment(spec, overrides=overrides_of(sets), points=points, parameters_of=component_parameters)
    combined = experiment.spec.sweep.combined
    if points is not None and (names := [*combined.each_of, *combined.subsets_of]):
        say(f"note: --points leaves all combinations of {', '.join(names)} there; sweep.multiplex chooses among them")
    return experiment


def overrides_of(sets: list[str] | None) -> list[tuple[str, str]]:
    """Keys and values of every ``--set``."""
    overrides = []
    for text in sets or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text}: expected key=value", hint="for example --set entries=1000")
        overrides.append((key.strip(), value.strip()))
    return overrides


def quantity(text: str, dimension: Dimension, unit: str, option: str) -> float:
    """The value of an option that is a number above zero with a unit, in that unit."""
    from p4perf.specs.units import parse_quantity

    try:
        value = float(parse_quantity(text, dimension, unit))
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error
    if value <= 0:
        raise UsageError(f"{option}: {text} is not more than zero")
    return value


def assignments(texts: list[str] | None, option: str, form: str, hint: str | None = None) -> dict[str, str]:
    """Names and values of an option such as ``--where frame=64``; of a repeated name the last value."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {text}: expected {form}", hint=hint)
        found[name.strip()] = value.strip()
    return found


def check_choice(value: str | None, option: str, known: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the known words; None is no choice."""
    if value is not None and value not in known:
        raise UsageError(f"{option} {value}: expected {', '.join(known[:-1])} or {known[-1]}")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Measure on all workers with a device of a Dask scheduler: tcp://10.0.0.1:8786."),
]

WorkersOption = Annotated[
    str | None,
    typer.Option("--workers", help="With --scheduler: only workers with names that match, such as 'xeon-*'."),
]


def check_cluster(scheduler: str | None, workers: str | None) -> None:
    """Refuse options that only a cluster understands."""
    from p4perf.evaluation.fitting.cluster import require_distributed

    if scheduler is not None:
        require_distributed()
    elif workers is not None:
        raise UsageError("--workers chooses workers of a cluster", hint="name it with --scheduler")


@contextlib.contextmanager
def crew_opener(scheduler: str | None, workers: str | None, *, quiet: bool) -> Iterator[Callable[[str], Crew] | None]:
    """Open the devices of a cluster for the address of a testbed, once; close them at the end. None without one."""
    from p4perf.experiment import open_crew

    check_cluster(scheduler, workers)
    if scheduler is None:
        yield None
        return
    with contextlib.ExitStack() as stack:

        def open_once(address: str) -> Crew:
            # What the client of Dask says of lost connections, p4perf says, too.
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            crew = open_crew(scheduler, address, workers, lambda text: None if quiet else say(f"note: {text}"))
            stack.callback(crew.close)
            return crew

        yield open_once


@contextlib.contextmanager
def opened_testbed(address: str, scheduler: str | None, workers: str | None, *, quiet: bool) -> Iterator[Testbed]:
    """The testbed at an address, or the devices of a cluster that have theirs there."""
    from p4perf.experiment import open_testbed

    with crew_opener(scheduler, workers, quiet=quiet) as opener:
        yield open_testbed(address) if opener is None else opener(address)


def resuming(path: object, scheduler: str | None) -> str:
    return f"p4perf resume {path}" + (f" --scheduler {scheduler}" if scheduler else "")


SegmentsOption = Annotated[int | None, typer.Option("--segments", min=1, help="Fix the number of segments.")]
MaxSegmentsOption = Annotated[int | None, typer.Option("--max-segments", min=1, help="Most segments; 5 for files.")]
MinPointsOption = Annotated[int | None, typer.Option("--min-points", min=1, help="Fewest points of a segment.")]
ProfileOption = Annotated[str | None, typer.Option("--profile", help="exact, or scholz2021: the rules of the paper.")]
ErrorOption = Annotated[
    str | None, typer.Option("--error", help="Error metric: smape, smape_pooled, mape, rmse, emd, or a plug-in.")
]
LossOption = Annotated[str | None, typer.Option("--loss", help="squares, or l1: relative, robust to outliers.")]
SplitFinderOption = Annotated[
    str | None,
    typer.Option("--split-finder", help="dynamic, brute-force, second-derivative, savitzky-golay, or a plug-in."),
]
LevelOption = Annotated[float | None, typer.Option("--level", min=0.5, max=0.999, help="Coverage of intervals.")]
