"""A run as everybody reads it: what was measured, where, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from p4perf.errors import DataError, Location, NoVerdictError, UsageError
from p4perf.results.files import bounded, read_text
from p4perf.results.manifest import Manifest, NodeFacts, RunIdentity
from p4perf.results.rundir import RunDirectory

if TYPE_CHECKING:
    import pandas as pd

    from p4perf.models.component import ComponentModel
    from p4perf.results.table import Samples
    from p4perf.specs import Experiment, ExperimentSpec


@dataclass(frozen=True)
class Run:
    """The contents of a run directory, or of its points that :meth:`at` chooses.

    Each part is read when it is first asked for, and only once.
    """

    directory: RunDirectory
    x: str | None = None
    where: tuple[tuple[str, str], ...] = ()

    @classmethod
    def open(cls, path: Path) -> Self:
        """The run in a folder.

        Raises:
            DataError: it is not a run directory, is damaged, or was made by a newer version; says which file and key.
        """
        return cls(RunDirectory.open(path))

    def at(self, where: Mapping[str, str], x: str | None = None) -> Self:
        """The points where swept variables have these values, given as text; ``x`` is the variable on the abscissa.

        Raises:
            UsageError: one of them is not swept.
        """
        from p4perf.specs.messages import nearest

        for name in (*where, *([x] if x is not None else [])):
            if name not in (swept := self.swept):
                raise UsageError(f"{self.name} does not sweep {name}", hint=nearest(name, swept, "swept variables"))
        usual = not where and x == self.spec.variable
        return replace(self, x=None if usual else x, where=tuple(where.items()))

    @property
    def is_whole(self) -> bool:
        """Whether these are the points of the run directory, over the variable of its spec."""
        return self.x is None and not self.where

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def name(self) -> str:
        return self.directory.path.name

    @cached_property
    def identity(self) -> RunIdentity:
        return self.directory.identity()

    @cached_property
    def manifest(self) -> Manifest:
        """What is on record of the run and its machine.

        Raises:
            DataError: the manifest is damaged, or lacks what evaluations need; with file and key.
        """
        return self.directory.record()

    @property
    def node(self) -> NodeFacts:
        return self.manifest.node

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment as it was resolved.

        Raises:
            SpecError: the spec of the run is damaged; with its place.
        """
        from p4perf.specs import load_experiment  # here, so that what only lists runs starts at once

        return load_experiment(str(self.directory.spec_file))

    @property
    def spec(self) -> ExperimentSpec:
        return self.experiment.spec

    @property
    def title(self) -> str:
        """Name of the experiment, with the values that choose its points: ``my/spec at frame=64``."""
        return self.spec.name + (f" at {', '.join(map('='.join, self.where))}" if self.where else "")

    @cached_property
    def table(self) -> pd.DataFrame:
        """The tidy table of measurements, see :mod:`p4perf.results.table`.

        Raises:
            DataError: there is none yet, or it is damaged.
            UsageError: nothing was measured at the chosen values.
        """
        from p4perf.results.table import rows_where

        return rows_where(self.directory.read_measurements(), dict(self.where))

    @property
    def measured(self) -> pd.DataFrame:
        """The tidy table, which has some rows.

        Raises:
            NoVerdictError: no trial ran to its end.
        """
        if self.table.empty:
            raise NoVerdictError(f"{self.path} has no trial that ran to its end")
        return self.table

    @property
    def variable(self) -> str | None:
        """The swept variable on the abscissa: the chosen one, or that of :attr:`p4perf.specs.ExperimentSpec.variable`.

        Without it, the only one that is not fixed; None if there are several.
        """
        if self.x is not None:
            return self.x
        fixed, named = dict(self.where), self.spec.variable
        if not fixed or (named is not None and named not in fixed):
            return named
        free = [name for name in self.swept if name not in fixed]
        return free[0] if len(free) == 1 else None

    @property
    def swept(self) -> list[str]:
        """The swept variables."""
        points = self.manifest.points
        return list(points[0].values) if points else []

    @property
    def planned(self) -> int:
        """Number of planned points."""
        from p4perf.results.table import is_at

        if not self.where:
            return len(self.manifest.planned_points)
        return sum(all(is_at(p.values[name], text) for name, text in self.where) for p in self.manifest.points)

    @property
    def choice(self) -> str:
        """Options that choose points over one variable, by example: ``--where frame=64``."""
        fixed = dict(self.where)
        x = self.variable or next((name for name in self.swept if name not in fixed), None)
        values = self.manifest.points[0].values if self.swept else {}
        free = [f"--where {name}={value}" for name, value in values.items() if name not in fixed and name != x]
        return " ".join(free) or f"--x {x}"

    @property
    def unmodelled(self) -> str:
        """Why a run without a model has none, and how one is derived."""
        if not self.swept:
            return "the spec sweeps no variable"
        why = "the spec has no section model"
        if self.spec.model is not None or len(self.swept) > 1:
            why = f"the spec sweeps {', '.join(self.swept)}, and a model is over one variable"
        return f"{why} (p4perf fit {self.path} {self.choice} derives one)"

    @property
    def columns(self) -> list[str]:
        """Columns of the table that distinguish points: the swept variables, or the number of the point without any."""
        return self.swept or ["point_index"]

    @property
    def headline(self) -> str:
        """The modelled metric; without a model the first that the spec asks for, or a measured one derived from it."""
        asked = self.spec.headline
        if self.spec.model is not None:
            return asked
        measured = [str(metric) for metric in self.table["metric"].unique()]
        return asked if asked in measured else next((m for m in measured if m.startswith(f"{asked}_")), asked)

    def samples(self, metric: str | None = None) -> Samples:
        """Accepted trials of a metric, by default the headline, over the swept variable.

        Raises:
            DataError: there are no measurements of that metric, or they are damaged.
            UsageError: several variables are swept, or none.
            NoVerdictError: no trial was accepted.
        """
        from p4perf.results.table import Samples

        if self.variable is None:
            raise UsageError(f"{self.path} sweeps {', '.join(self.swept) or 'nothing'}: no curve describes it")
        return Samples.from_measurements(self.table, metric or self.headline, self.variable)

    @property
    def has_model(self) -> bool:
        return self.is_whole and self.directory.model_file.is_file()

    @property
    def model(self) -> ComponentModel:
        """The derived model.

        Raises:
            DataError: there is none, or it is damaged.
        """
        if not self.has_model:
            hint = "p4perf fit RUN derives one, unless the run sweeps nothing or several variables"
            raise DataError(f"{self.path} has no model", hint=hint)
        return read_model_file(self.directory.model_file)

    @cached_property
    def flag_counts(self) -> dict[str, int]:
        """Number of accepted trials with each quality flag, most frequent first."""
        trials = self.table[self.table["accepted"].astype(bool)].drop_duplicates(["point", "attempt"])["flags"]
        counts = Counter(flag for flags in trials for flag in str(flags).split(",") if flag)
        return dict(counts.most_common())


def is_run(folder: Path) -> bool:
    """Whether a folder is a run directory, perhaps a damaged one."""
    try:
        return RunDirectory(folder).manifest_file.is_file()
    except OSError:  # such as a name that is too long
        return False


def run_folders(folder: Path) -> list[Path]:
    """Run directories in a folder, sorted by name; unfinished copies and other folders are left out."""
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if not path.name.startswith(".") and is_run(path)]


def readable_runs(folder: Path) -> Iterator[Run]:
    """The runs in a folder, by name; damaged ones are left out."""
    for path in run_folders(folder):
        with suppress(DataError):
            yield Run.open(path)


def read_model(path: Path) -> ComponentModel:
    """The model in a run directory, in another folder with a model, or in a file.

    Raises:
        DataError: there is none, or it is damaged.
    """
    stored = RunDirectory(path).model_file
    if path.is_dir() and (is_run(path) or not stored.is_file()):
        return Run.open(path).model
    return read_model_file(stored if path.is_dir() else path)


def read_model_file(file: Path) -> ComponentModel:
    from p4perf.models.component import ComponentModel  # here, so that what needs no model starts without numpy

    with bounded(Location(str(file))):
        return ComponentModel.from_json(read_text(file), file=str(file))
