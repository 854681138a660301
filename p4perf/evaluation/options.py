"""All options of a derivation in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from p4perf.evaluation.derivation import Derivation, Loss, Profile, Search, derive
from p4perf.evaluation.selection import GAMMA, KAPPA, KAPPA_REL, ExactRule
from p4perf.evaluation.split_finders import SplitFinder
from p4perf.evaluation.statistics import LEVEL, SEED, Samples
from p4perf.evaluation.uncertainty import RESAMPLES, bootstrap
from p4perf.models.fitting import PiecewiseFitting
from p4perf.models.quantities import Uncertainty
from p4perf.models.templates import Template, registered_templates


@dataclass(frozen=True)
class FitOptions:
    """What a curve is derived with; see :func:`p4perf.evaluation.derive` for all but the last three.

    Args:
        max_parts: largest number of parts.
        parts: this number of parts instead of choosing one.
        error: name of the error metric.
        profile: ``exact`` or ``scholz2021``.
        loss: ``squares`` or ``l1``.
        min_points: smallest number of samples of a part; None takes the default of the profile.
        templates: function templates; None takes the default of the profile.
        kappa: absolute margin of Eq. 3.
        kappa_rel: relative margin of Eq. 3.
        gamma: smallest magnitude of a parameter, profile scholz2021 only.
        split_finder: a split finder or its name; None takes the default of the profile.
        search: ``auto``, ``exact`` or ``coarse``.
        threads: number of threads; None takes all processors of this process.
        level: coverage that intervals aim at.
        resamples: bootstrap resamples; 0 leaves the uncertainty out.
        seed: seed of the bootstrap.
    """

    max_parts: int = 5
    parts: int | None = None
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

    def derive(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, log_x: bool = False, progress: Callable[[float], Any] | None = None
    ) -> Derivation:
        """Derive with these options; arguments and errors as of :func:`p4perf.evaluation.derive`."""
        return derive(
            x,
            y,
            max_parts=self.max_parts,
            parts=self.parts,
            error=self.error,
            profile=self.profile,
            loss=self.loss,
            min_points=self.min_points,
            templates=self.templates,
            kappa=self.kappa,
            kappa_rel=self.kappa_rel,
            gamma=self.gamma,
            split_finder=self.split_finder,
            search=self.search,
            log_x=log_x,
            threads=self.threads,
            progress=progress,
        )

    def bootstrap(self, samples: Samples, fitting: PiecewiseFitting) -> Uncertainty | None:
        """Intervals of a curve that was derived with these options, or None if no resamples are wanted.

        In the profile scholz2021 parts keep their templates: its choice depends on an order, not on the data alone.
        """
        if self.resamples <= 0:
            return None
        templates = self.templates or registered_templates()
        return bootstrap(
            samples,
            fitting,
            error=self.error,
            templates=templates if self.profile == "exact" else None,
            rule=ExactRule(self.kappa, self.kappa_rel),
            robust=self.loss == "l1",
            level=self.level,
            resamples=self.resamples,
            seed=self.seed,
        )
