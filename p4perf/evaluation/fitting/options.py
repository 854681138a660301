"""Options of a derivation, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from p4perf.errors import UsageError
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.selection import GAMMA, KAPPA, KAPPA_REL
from p4perf.evaluation.fitting.split_finders import SplitFinder, open_split_finder
from p4perf.models.templates import Template
from p4perf.results.table import LEVEL, SEED

Profile = Literal["exact", "scholz2021"]
Loss = Literal["squares", "l1"]
Search = Literal["auto", "exact", "coarse"]
MIN_POINTS = 5
COARSE_POINTS = 1000
"""Longer series are searched from coarse to fine unless an exact search is asked for."""
RESAMPLES = 200


@dataclass(frozen=True)
class FitOptions:
    """How a curve and its intervals are derived.

    Args:
        segments: take this number of segments instead of choosing one.
        error: error metric: ``smape``, ``smape_pooled``, ``mape``, ``rmse``, ``emd`` or another registered one.
        loss: what parameters minimise: ``squares``, or relative distances (``l1``), which outliers hardly move.
        min_points: smallest number of samples of a segment. Default: 5, of fewer than ten samples half (two at least);
            1 in the profile scholz2021.
        templates: function templates; default all registered ones, in the profile scholz2021 those of the paper.
        kappa: absolute margin of Eq. 3 (for an error metric with a unit: as a fraction of the RMS of y).
        gamma: smallest magnitude of a parameter (Eq. 2); only in the profile scholz2021.
        split_finder: name of a split finder, or one with options. Default: ``dynamic``; in the profile scholz2021
            ``second-derivative``, which tries everything up to three segments.
        search: ``exact``; ``coarse`` (from coarse to fine); or ``auto``: coarse for more than
            :data:`COARSE_POINTS` samples. Only with the default split finder of the profile exact.
        threads: number of threads; default all processors of this process. The result does not depend on it.
        level: coverage that intervals aim at.
        resamples: bootstrap resamples; 0 leaves the uncertainty out.
    """

    max_segments: int = 5
    segments: int | None = None
    error: str = "smape"
    profile: Profile = "exact"
    loss: Loss = "squares"
    min_points: int | None = None
    templates: tuple[Template, ...] | None = None
    kappa: float = KAPPA
    kappa_rel: float = KAPPA_REL
    gamma: float = GAMMA
    split_finder: str | SplitFinder | None = None
    search: Search = "auto"
    threads: int | None = None
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = SEED

    def check(self) -> None:
        """Raise a UsageError for an option that is wrong whatever the samples are."""
        if any(number is not None and number < 1 for number in (self.max_segments, self.segments, self.min_points)):
            raise UsageError("max_segments, segments and min_points must be 1 at least")
        if not 0 < self.level < 1:
            raise UsageError(f"the level must lie between 0 and 1, not {self.level}")
        for name, value, kind in (
            ("profile", self.profile, Profile), ("loss", self.loss, Loss), ("search", self.search, Search),
        ):  # fmt: skip
            if value not in get_args(kind):
                raise UsageError(f"there is no {name} {value!r}", hint=f"known: {', '.join(get_args(kind))}")
        if self.templates is not None and not self.templates:
            raise UsageError("there must be one template at least")
        error_metric(self.error)
        if isinstance(self.split_finder, str):
            open_split_finder(self.split_finder)
