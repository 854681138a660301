"""Least squares for many segments at once, in plain numpy: what the compiled fit engine is compared with.

A :class:`Batch` holds samples of many segments, one row each, padded to the same length; every step below works on all
rows together. Coefficients come from a QR factorisation. A shape parameter is searched on a logarithmic grid with
the coefficients eliminated (variable projection), and refined by Gauss-Newton steps. Reciprocal forms ``y = 1 / q``
start from the linear problem ``y^2 q = y`` and are refined by the same steps on ``y - 1 / q``.

What a fit may be is the same as in the engine: shapes from :func:`shape_range`, reciprocals and powers only of samples
of one sign. How it is found is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p4perf.models.templates import (
    Basis,
    BasisTemplate,
    Exponential,
    FloatArray,
    Logarithm,
    Polynomial,
    Power,
    ShiftedLogarithm,
)

GRID_POINTS = 36
STEPS = 5
"""Gauss-Newton steps; each is halved up to twice if it does not improve the fit."""
TINY = 1e-300


def shape_signs(basis: Basis) -> tuple[int, ...]:
    """Signs that the shape parameter may take about its fitting origin: growth and decay, or one only."""
    return (1, -1) if isinstance(basis, Exponential | Power) else (1,)


def applicable(basis: Basis, first: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether segments that begin at these abscissae can be described at all."""
    return np.asarray(first > 0 if isinstance(basis, Logarithm | Power) else np.isfinite(first))


def fitting_origin(basis: Basis, first: FloatArray, last: FloatArray, sign: int) -> FloatArray:
    """Origin that keeps fitting a segment well conditioned: an exponential is largest there."""
    if isinstance(basis, Exponential):
        return last if sign > 0 else first
    return first if isinstance(basis, Polynomial | ShiftedLogarithm) else np.zeros_like(first)


def shape_range(
    basis: Basis, span: FloatArray, first_gap: FloatArray, last_gap: FloatArray, sign: int
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest magnitude of the shape that data of this span and spacing can tell apart.

    Shift: from a quarter of the first gap (a nearer pole would bend one sample only) to ten spans (a line). Rate: from
    a tenth over the span (a line) to one over the gap at the steep end. Exponent: from a hundredth (a constant) to 30.
    """
    if isinstance(basis, ShiftedLogarithm):
        return first_gap / 4, span * 10
    if isinstance(basis, Exponential):
        return 0.1 / span, 1.0 / (last_gap if sign > 0 else first_gap)
    return np.full_like(span, 0.01), np.full_like(span, 30.0)


def last_column_slope(basis: Basis, x: FloatArray, shape: FloatArray, origin: FloatArray) -> FloatArray:
    """Derivative of the last column with respect to the shape parameter."""
    column = basis.columns(x, shape, origin)[-1]
    if isinstance(basis, ShiftedLogarithm):
        return np.asarray(1.0 / ((x - origin) + shape))
    return np.asarray(column * (np.log(x) if isinstance(basis, Power) else x - origin))


@dataclass(frozen=True)
class Batch:
    """Samples of many segments, a row each, x ascending; ``mask`` is false on the padding (which repeats a sample).

    ``first_gap`` and ``last_gap`` are the distances between the two first and the two last abscissae of each segment.
    """

    x: FloatArray
    y: FloatArray
    mask: npt.NDArray[np.bool_]
    points: npt.NDArray[np.intp]
    first: FloatArray
    last: FloatArray
    first_gap: FloatArray
    last_gap: FloatArray

    @classmethod
    def of_intervals(
        cls, x: FloatArray, y: FloatArray, starts: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
    ) -> Batch:
        """Rows are the samples ``starts[r]`` to ``ends[r]`` (both included) of one series.

        Args:
            x: ascending abscissae, shape (n,).
            y: samples, shape (n,), or (rows, n) if every row has its own.
            starts: index of the first sample of each row.
            ends: index of the last sample of each row.
        """
        points = ends - starts + 1
        columns = np.arange(max(int(points.max()), 8))
        index = np.minimum(starts[:, None] + columns, ends[:, None])
        values = y[index] if y.ndim == 1 else np.take_along_axis(y, index, axis=1)
        return cls(
            x=x[index],
            y=values,
            mask=columns < points[:, None],
            points=points,
            first=x[starts],
            last=x[ends],
            first_gap=x[np.minimum(starts + 1, ends)] - x[starts],
            last_gap=x[ends] - x[np.maximum(ends - 1, starts)],
        )

    def rows(self, chosen: npt.NDArray[np.intp]) -> Batch:
        """Some of the rows."""
        return Batch(
            self.x[chosen], self.y[chosen], self.mask[chosen], self.points[chosen],
            self.first[chosen], self.last[chosen], self.first_gap[chosen], self.last_gap[chosen],
        )  # fmt: skip


@dataclass(frozen=True)
class BatchFit:
    """Parameters of one template for every row of a batch; not finite where the template does not apply."""

    parameters: FloatArray
    origin: FloatArray


def fit_template(batch: Batch, template: BasisTemplate, origin: float | None = None) -> BatchFit:
    """Fit one template to every row of a batch by least squares.

    A row is left out (its parameters are NaN) if it has no more samples than the template has parameters (a constant
    needs one sample only), if the template is not defined on it, or, for reciprocal forms, if the samples are not all
    of the same sign or the curve has a pole between them.

    Args:
        batch: the samples.
        template: what to fit.
        origin: abscissa about which parameters are wanted; by default zero where that is numerically harmless.
    """
    basis, count = template.basis, len(template.parameter_names)
    parameters = np.full((len(batch.points), count), np.nan)
    origins = np.zeros(len(batch.points))
    usable = applicable(basis, batch.first) & (batch.points >= (1 if count == 1 else count + 1))
    if template.inverse or isinstance(basis, Power):
        usable &= (batch.y > 0).all(axis=1) | (batch.y < 0).all(axis=1)
    chosen = np.flatnonzero(usable)
    if chosen.size == 0:
        return BatchFit(parameters, origins)
    rows = batch if chosen.size == len(batch.points) else batch.rows(chosen)
    with np.errstate(all="ignore"):
        found, about = _solve(rows, template)
        if origin is None:
            moved, harmless = basis.about_zero(found, about, rows.first, rows.last)
            harmless &= np.isfinite(moved).all(axis=1)
            found = np.where(harmless[:, None], moved, found)
            about = np.where(harmless, 0.0, about)
        else:
            found = basis.about(found, about, origin)
            about = np.full_like(about, origin)
    parameters[chosen] = found
    origins[chosen] = about
    return BatchFit(parameters, origins)


def fitted_values(batch: Batch, template: BasisTemplate, fit: BatchFit) -> FloatArray:
    """Values of the fitted curves at the samples of every row."""
    return template.evaluate(batch.x, fit.parameters[:, None, :], fit.origin[:, None])


def _solve(batch: Batch, template: BasisTemplate) -> tuple[FloatArray, FloatArray]:
    """Parameters and origins by least squares on y scaled to a largest magnitude of one."""
    scale = np.where(batch.mask, np.abs(batch.y), 0.0).max(axis=1)
    scale[scale == 0] = 1.0
    y = batch.y / scale[:, None]
    basis, linear = template.basis, len(template.basis.linear_names)
    best: FloatArray | None = None
    best_origin, best_rss = np.zeros(len(scale)), np.full(len(scale), np.inf)
    for sign in shape_signs(basis):
        origin = fitting_origin(basis, batch.first, batch.last, sign)
        parameters = _start(batch, y, template, origin, sign)
        if template.inverse or basis.shape_name:
            parameters, rss = _refine(batch, y, template, parameters, origin, sign)
        else:
            rss = np.zeros(len(scale))
        better = rss < best_rss
        best = parameters if best is None else np.where(better[:, None], parameters, best)
        best_origin = np.where(better, origin, best_origin)
        best_rss = np.where(better, rss, best_rss)
    assert best is not None
    best[~np.isfinite(best_rss)] = np.nan
    if template.inverse:
        best[_has_pole(batch, template, best, best_origin)] = np.nan
    best[:, :linear] *= (1.0 / scale if template.inverse else scale)[:, None]
    return best, best_origin


def _start(batch: Batch, y: FloatArray, template: BasisTemplate, origin: FloatArray, sign: int) -> FloatArray:
    """Start values: exact for templates that are linear in all parameters, else the best of the grid."""
    target = 1.0 / y if template.inverse else y
    weight = np.where(batch.mask, y * y if template.inverse else 1.0, 0.0)
    if not template.basis.shape_name:
        columns = template.basis.columns(batch.x, 0.0, origin[:, None])
        design = np.stack(columns, axis=-1)
        coefficients = _linear(design * weight[..., None], target * weight)
        if template.inverse:
            gentle = np.sqrt(weight)
            other = _linear(design * gentle[..., None], target * gentle)
            swap = _rss(batch, y, template, other, origin) < _rss(batch, y, template, coefficients, origin)
            coefficients = np.where(swap[:, None], other, coefficients)
        return coefficients
    return _grid(batch, target, weight * weight, template, origin, sign)


def _grid(
    batch: Batch, target: FloatArray, weight: FloatArray, template: BasisTemplate, origin: FloatArray, sign: int
) -> FloatArray:
    """Variable projection: for each shape of a grid the best coefficients, then the best shape."""
    offset_free = isinstance(template.basis, Power)
    low, high = _log_shape_range(batch, template, sign)
    weight = weight / weight.sum(axis=1, keepdims=True)
    mean = np.einsum("ij,ij->i", weight, target) * (not offset_free)
    wt = weight * (target - mean[:, None])

    def regress(v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        z = template.basis.columns(batch.x, sign * np.exp(v)[:, None], origin[:, None])[-1]
        anchor = z[:, :1] * (not offset_free)
        length = np.abs(z).max(axis=1, keepdims=True)
        z = (z - anchor) / length
        mz = np.einsum("ij,ij->i", weight, z) * (not offset_free)
        szz = np.einsum("ij,ij,ij->i", weight, z, z) - mz * mz
        szt = np.einsum("ij,ij->i", wt, z)
        slope = szt / szz
        gain = np.where((szz > 0) & np.isfinite(slope), szt * slope, -np.inf)
        slope = slope / length[:, 0]
        return gain, slope, mean - slope * (mz * length[:, 0] + anchor[:, 0])

    step = (high - low) / (GRID_POINTS - 1)
    values = [low + g * step for g in range(GRID_POINTS)]
    gains = np.stack([regress(v)[0] for v in values])
    peak = np.clip(gains.argmax(axis=0), 1, GRID_POINTS - 2)
    left, mid, right = (np.take_along_axis(gains, (peak + d)[None], axis=0)[0] for d in (-1, 0, 1))
    bend = left - 2 * mid + right
    offset = np.where(bend < 0, np.clip((left - right) / (2 * np.where(bend < 0, bend, -1.0)), -1, 1), 0.0)
    found = low + (peak + offset) * step
    gain, slope, base = regress(found)
    best_v = low + gains.argmax(axis=0) * step
    keep = gain < gains.max(axis=0)
    if keep.any():
        found = np.where(keep, best_v, found)
        _, slope, base = regress(found)
    return np.stack(([] if offset_free else [base]) + [slope, sign * np.exp(found)], axis=1)


def _log_shape_range(batch: Batch, template: BasisTemplate, sign: int) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the smallest and largest magnitude of the shape."""
    low, high = shape_range(template.basis, batch.last - batch.first, batch.first_gap, batch.last_gap, sign)
    return np.log(low), np.log(np.maximum(high, low * 1.01))


def _linear(design: FloatArray, target: FloatArray) -> FloatArray:
    """Least squares of every row by QR, with columns scaled to length one."""
    design = np.nan_to_num(design, nan=0.0, posinf=0.0, neginf=0.0)
    length = np.sqrt(np.einsum("ijk,ijk->ik", design, design))
    length[length < TINY] = 1.0
    q, r = np.linalg.qr(design / length[:, None, :])
    right = np.einsum("ijk,ij->ik", q, np.nan_to_num(target, nan=0.0, posinf=0.0, neginf=0.0))
    out = np.zeros_like(right)
    for k in range(right.shape[1] - 1, -1, -1):
        rest = right[:, k] - np.einsum("im,im->i", r[:, k, k + 1 :], out[:, k + 1 :])
        pivot = r[:, k, k]
        out[:, k] = np.where(np.abs(pivot) > 1e-14, rest / np.where(pivot == 0, 1.0, pivot), 0.0)
    coefficients: FloatArray = out / length
    return coefficients


def _rss(
    batch: Batch, y: FloatArray, template: BasisTemplate, parameters: FloatArray, origin: FloatArray
) -> FloatArray:
    """Sum of squares of every row, infinite if not finite."""
    off = y - template.evaluate(batch.x, parameters[:, None, :], origin[:, None])
    off = np.where(batch.mask, off, 0.0)
    rss = np.einsum("ij,ij->i", off, off)
    return np.where(np.isfinite(rss), rss, np.inf)


def _refine(
    batch: Batch, y: FloatArray, template: BasisTemplate, parameters: FloatArray, origin: FloatArray, sign: int
) -> tuple[FloatArray, FloatArray]:
    """Gauss-Newton steps on all parameters; the shape moves by a factor within its range, so that it keeps its sign."""
    basis, shaped = template.basis, template.basis.shape_name is not None
    low, high = _log_shape_range(batch, template, sign) if shaped else (origin, origin)
    rss = _rss(batch, y, template, parameters, origin)
    active = np.flatnonzero(np.isfinite(rss))
    for _ in range(STEPS):
        if active.size == 0:
            break
        rows, yr, p, o = batch.rows(active), y[active], parameters[active], origin[active]
        shape: FloatArray = p[:, -1:] if shaped else np.zeros((len(p), 1))
        columns = basis.columns(rows.x, shape, o[:, None])
        total = np.zeros_like(rows.x)
        for k, column in enumerate(columns):
            total = total + p[:, k, None] * column
        if shaped:
            columns.append(p[:, -2, None] * last_column_slope(basis, rows.x, shape, o[:, None]) * shape)
        jacobian = np.stack(columns, axis=-1)
        value = total
        if template.inverse:
            value = 1.0 / total
            jacobian = -jacobian * (value * value)[..., None]
        mask = rows.mask
        step = _linear(jacobian * mask[..., None], np.where(mask, yr - value, 0.0))
        before, now = rss[active], np.full(active.size, np.inf)
        for factor in (1.0, 0.3, 0.05):
            trial = p + factor * step
            if shaped:
                moved = np.log(np.abs(p[:, -1])) + np.clip(factor * step[:, -1], -2.0, 2.0)
                trial[:, -1] = sign * np.exp(np.clip(moved, low[active], high[active]))
            rss_trial = _rss(rows, yr, template, trial, o)
            better = rss_trial < np.minimum(before, now)
            parameters[active[better]] = trial[better]
            now = np.where(better, rss_trial, now)
            if (now < before).all():
                break
        rss[active] = np.minimum(before, now)
        active = active[(now < before * (1 - 1e-9)) & (now > 1e-28)]
    return parameters, rss


def _has_pole(
    batch: Batch, template: BasisTemplate, parameters: FloatArray, origin: FloatArray
) -> npt.NDArray[np.bool_]:
    """Rows whose denominator changes its sign at or between the samples."""
    middle = (batch.x[:, 1:] + batch.x[:, :-1]) / 2
    x = np.concatenate([batch.x, middle], axis=1)
    value = template.evaluate(x, parameters[:, None, :], origin[:, None])
    same = (value > 0).all(axis=1) | (value < 0).all(axis=1)
    return np.asarray(~same)
