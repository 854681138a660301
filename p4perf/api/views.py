"""Runs, models and claims as data, with tables, figures and HTML; and the functions that open those on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from p4perf.api.arguments import PathLike, checked
from p4perf.errors import DataError, ExitCode, UsageError
from p4perf.models.component import ComponentModel
from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import cost_model_json
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.records import Tabular, counted, short
from p4perf.results import Run, all_run_folders, find_run, read_model
from p4perf.results.files import write_text_atomically
from p4perf.results.names import FOLDER, RunSummary

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from matplotlib.figure import Figure

    from p4perf.evaluation.papers import Finding, PaperClaims
    from p4perf.models.component import Fitting
    from p4perf.models.templates import FloatArray


class LoadedModel(ComponentModel):
    """A model of a component that was derived before: its curve, and how it looks."""

    @classmethod
    def of(cls, model: ComponentModel) -> LoadedModel:
        return cls(**vars(model))

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        return self.evaluate(x)

    def to_frame(self) -> pd.DataFrame:
        """A row for each segment, with its parameters and their intervals."""
        from p4perf.evaluation.fitting.tables import model_frame

        return model_frame(self)

    def plot(self) -> Figure:
        from p4perf.evaluation.plots import model_figure

        return model_figure(self)

    def _repr_html_(self) -> str:
        from p4perf.evaluation.fitting.tables import model_html
        from p4perf.evaluation.plots.style import picture

        return picture(self.plot()) + model_html(self)


class LearntModel(Tabular, CostModel):
    """What programs cost on one target of this machine, as it was learnt."""

    @classmethod
    def of(cls, model: CostModel) -> LearntModel:
        return cls(**{each.name: getattr(model, each.name) for each in fields(model)})

    @override
    def __repr__(self) -> str:
        prices = len(self.primitives["prices"])
        return f"<LearntModel of {self.target}: baseline {self.baseline:.1f} cycles, {prices} prices>"

    def to_json(self) -> str:
        """The text of a file for ``models=`` of predict."""
        return cost_model_json(self)

    def save(self, path: Path) -> None:
        write_text_atomically(path, self.to_json())

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        """How well sums of prices agree with what they were learnt from: a row for each experiment."""
        agreement = PrimitiveCosts.from_record(dict(self.primitives)).agreement
        return [
            {"what": a.experiment, "points": a.points, "median_error": a.median, "p90_error": a.p90, "bias": a.bias}
            for a in agreement
        ]


class OpenRun(Run):
    """A run that was measured or imported: its table, its model, and how it looks."""

    @override
    def __repr__(self) -> str:
        state = self.directory.state()
        return f"<OpenRun {self.name}: {len(state.finished)} of {counted(len(state.planned), 'point')}>"

    def to_frame(self) -> pd.DataFrame:
        """The tidy table: a row for each trial and metric, with unit, flags and whether the trial was accepted."""
        return self.table

    def points(self, metric: str | None = None) -> pd.DataFrame:
        """A row for each point: the median of the accepted starts with its interval, and how many there are."""
        import pandas as pd

        from p4perf.experiment.evaluate import point_rows

        return pd.DataFrame(point_rows(self, metric)[0])

    @property
    @override
    def model(self) -> LoadedModel:
        return LoadedModel.of(super().model)

    @property
    def segments(self) -> tuple[Fitting, ...]:
        return self.model.segments

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """First x of each segment of the model but the first."""
        return self.model.breakpoints

    def plot(self) -> Figure:
        """The measured points, with the model of the run.

        Raises:
            DataError: the run has no model.
        """
        from p4perf.evaluation.plots import model_figure

        return model_figure(self.model, self.samples(self.model.y.name))

    def _repr_html_(self) -> str:
        from p4perf.evaluation.plots.style import picture

        return (picture(self.plot()) if self.has_model else "") + self.points().to_html(index=False)


class RunList(tuple[OpenRun, ...]):
    """Runs, by name."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return short(f"<RunList of {len(self)}: {', '.join(run.name for run in self)}>")

    def to_frame(self) -> pd.DataFrame:
        """A row for each run: what was measured where, and how far it has come."""
        import pandas as pd

        return pd.DataFrame([RunSummary.of(run).as_dict() for run in self], columns=list(RunSummary.KEYS))

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False)


@dataclass(frozen=True, repr=False)
class Reproduced(Tabular):
    """What was found of claims of papers, and the folder that keeps it."""

    findings: tuple[Finding, ...]
    papers: tuple[PaperClaims, ...]
    path: Path
    code: ExitCode
    files: tuple[Path, ...]

    @override
    def __repr__(self) -> str:
        unexpected = sum(not finding.as_expected for finding in self.findings)
        said = f"{unexpected} not" if unexpected else "all"
        return f"<Reproduced: {counted(len(self.findings), 'claim')}, {said} as expected>"

    @override
    def rows_of_table(self) -> list[dict[str, Any]]:
        """A row for each claim: what the paper says, what is found here, and the verdict."""
        from p4perf.experiment.reproduction import claim_record

        return list(map(claim_record, self.findings))

    @override
    def _repr_html_(self) -> str:
        columns = ["paper", "claim", "paper_value", "our_value", "verdict", "as_expected"]
        return self.to_frame()[columns].to_html(index=False)


@checked
def open_run(name: PathLike = "latest", folder: PathLike = FOLDER) -> OpenRun:
    """A run by its path or by its name.

    >>> import p4perf
    >>> run = p4perf.open_run("latest")  # doctest: +SKIP
    >>> run.points(), run.to_frame()  # medians with intervals, and all trials  # doctest: +SKIP

    Args:
        name: a path, ``latest``, ``latest~2``, or the beginning of the name or time of a run in ``folder`` or in a
            campaign there.
        folder: where names are looked up.

    Raises:
        UsageError: the name fits several runs.
        DataError: there is no such run, or it is damaged.
    """
    return OpenRun.open(find_run(name, Path(folder)))


@checked
def list_runs(folder: PathLike = FOLDER, *, told: Callable[[str], object] = warnings.warn) -> RunList:
    """The runs in a folder and in the campaigns in it, in the order in which they began.

    >>> import p4perf
    >>> p4perf.list_runs().to_frame()  # a row for each run  # doctest: +SKIP

    Args:
        told: is called with the reason why a damaged run is left out; by default a warning.

    Raises:
        UsageError: there is no such folder.
    """
    if Path(folder) != FOLDER and not Path(folder).is_dir():
        raise UsageError(f"there is no folder {folder}")
    found = []
    for path in all_run_folders(Path(folder)):
        try:
            run = OpenRun.open(path)
            RunSummary.of(run)
        except DataError as error:
            told(str(error))
            continue
        found.append(run)
    return RunList(sorted(found, key=lambda run: run.identity.created))


@checked
def load_model(path: PathLike) -> LoadedModel:
    """The model in a file, or of a run that is given by its path or name.

    >>> import p4perf
    >>> model = p4perf.load_model("latest")  # doctest: +SKIP
    >>> model(1000), model.estimate(1000)  # the value; value and interval, in units of model.y  # doctest: +SKIP

    Raises:
        UsageError: the name fits several runs.
        DataError: there is none, or it is damaged.
    """
    return LoadedModel.of(read_model(find_run(path)))
