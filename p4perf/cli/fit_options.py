"""Options that say how a model is derived, as ``fit`` and ``fit-many`` share them."""

from __future__ import annotations

from typing import Annotated

import typer

PartsOption = Annotated[int | None, typer.Option("--parts", min=1, help="Exactly so many parts.")]
MaxPartsOption = Annotated[int | None, typer.Option("--max-parts", min=1, help="At most so many parts; 5 for files.")]
MinPointsOption = Annotated[int | None, typer.Option("--min-points", min=1, help="Fewest points of a part.")]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", help="exact, or scholz2021: the rules of the paper to the letter.")
]
ErrorOption = Annotated[
    str | None, typer.Option("--error", help="Error metric: smape, smape_pooled, mape, rmse, emd, or a plug-in.")
]
LossOption = Annotated[
    str | None, typer.Option("--loss", help="squares, or l1: relative distances, which outliers hardly move.")
]
SplitFinderOption = Annotated[
    str | None,
    typer.Option("--split-finder", help="dynamic, brute-force, second-derivative, savitzky-golay, or a plug-in."),
]
LevelOption = Annotated[
    float | None, typer.Option("--level", min=0.5, max=0.999, help="Coverage that intervals aim at.")
]
