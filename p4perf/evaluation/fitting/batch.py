"""Samples and fitted curves of many segments at once, one row each, padded to the same length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.models.templates import FloatArray, Template

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SegmentBatch:
    """Samples of many segments, x ascending; ``mask`` is false on the padding (which repeats the last sample).

    Args:
        x: abscissae, shape (segments, longest).
    """

    x: FloatArray
    y: FloatArray
    mask: npt.NDArray[np.bool_]
    points: IndexArray

    @classmethod
    def of_segments(
        cls, x: FloatArray, y: FloatArray, starts: IndexArray, ends: IndexArray, row: IndexArray | None = None
    ) -> SegmentBatch:
        """Rows are the samples ``starts[r]`` to ``ends[r]``, both included.

        Args:
            x: ascending abscissae, shape (n,).
            y: samples, shape (n,), or (series, n).
            row: which series each segment belongs to, if there are several.
        """
        points = ends - starts + 1
        columns = np.arange(int(points.max()))
        index = np.minimum(starts[:, None] + columns, ends[:, None])
        values = y[index] if row is None else y[row[:, None], index]
        return cls(x[index], values, columns < points[:, None], points)

    def between(self) -> FloatArray:
        """Abscissae halfway between samples; the last of them once more where there is only padding."""
        middle = (self.x[:, 1:] + self.x[:, :-1]) / 2
        if middle.shape[1] == 0:
            return self.x
        last = np.take_along_axis(middle, np.maximum(self.points - 2, 0)[:, None], axis=1)
        return np.where(self.mask[:, 1:], middle, last)


@dataclass(frozen=True, eq=False)
class BatchFit:
    """One template fitted to every row of a batch.

    Args:
        parameters: shape (segments, parameters); not finite where the template does not apply.
        origin: abscissa about which the parameters of each row are written.
    """

    parameters: FloatArray
    origin: FloatArray

    def values(self, template: Template, x: FloatArray) -> FloatArray:
        """Values of the curves at x, shape (segments, abscissae)."""
        return template.evaluate(x, self.parameters[:, None, :], self.origin[:, None])

    def only(self, rows: npt.NDArray[np.bool_]) -> BatchFit:
        """The same with NaN in all other rows."""
        return BatchFit(np.where(rows[:, None], self.parameters, np.nan), self.origin)
