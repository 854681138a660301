"""Checks of Scholz et al. 2021, "A Framework for Reproducible Data Plane Performance Modeling"."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np

from p4perf.evaluation.fitting import selection, working_set
from p4perf.evaluation.fitting.derivation import FitOptions, Profile, derive
from p4perf.evaluation.fitting.engine import BatchFit, SegmentBatch
from p4perf.evaluation.fitting.error_metrics import error_metric
from p4perf.evaluation.fitting.selection import ExactRule, PairwiseRule
from p4perf.evaluation.fitting.split_finders import SecondDerivative
from p4perf.evaluation.fitting.synthetic import FAMILIES, SyntheticSeries, piecewise_series
from p4perf.evaluation.papers.claims import Quantity
from p4perf.models.component import Fitting, PiecewiseFitting
from p4perf.models.eo.mapping import OVERHEAD_BYTES
from p4perf.models.templates import SCHOLZ2021_RANKS, FloatArray, find_template, scholz2021_templates

FIG_2_SLOPE = 0.072
"""Cycles per entry of the first segment of figure 2 (section 3)."""
FIG_3_KNEE_GBPS, FIG_3_SATURATED_GBPS = 5.7, 4.9
"""Figure 3, frames of 134 B: up to where all is received, and what is received beyond.

All rates of this figure are read as those on the wire, with preamble and gap: the paper offers these frames at up to 10
Gbit/s on a line of 10 Gbit/s."""


def working_set_bytes(key_bytes: float, action_data_bytes: float, entries: float) -> dict[str, Quantity]:
    """Eq. 5: bytes of a table."""
    return {"bytes": working_set.scholz2021_exact_table(key_bytes, action_data_bytes).size_bytes(entries)}


def working_set_entries(key_bytes: float, action_data_bytes: float, cache_bytes: float) -> dict[str, Quantity]:
    """Eq. 5 solved for the entries that fill a cache."""
    found = working_set.scholz2021_exact_table(key_bytes, action_data_bytes).x_at(cache_bytes)
    return {"entries": math.nan if found is None else found}


def working_set_explains(
    key_bytes: float, action_data_bytes: float, cache_bytes: float, breakpoint: float
) -> dict[str, Quantity]:
    """Whether a breakpoint lies near the place where Eq. 5 fills a cache, and how near."""
    table = working_set.scholz2021_exact_table(key_bytes, action_data_bytes)
    (found,) = working_set.explain([breakpoint], working_set.cache_marks(table, {"cache": cache_bytes}))
    return {"explained": found.mark is not None, "ratio": math.nan if found.ratio is None else found.ratio}


def error_over_points(relative_error: float, points: int, more_points: int) -> dict[str, Quantity]:
    """Eq. 1 for a curve that is off by the same share everywhere: as the sum that is printed, and as a mean."""
    off = {}
    for n in (points, more_points):
        y = np.linspace(100.0, 200.0, n)
        off[n] = error_metric("smape")(y, y * (1 + relative_error))
    few, many = (off[n] * n for n in (points, more_points))
    return {
        "sum_growth": many / few,
        "mean_growth": off[more_points] / off[points],
        "sum_percent": 100 * few,
        "mean_percent": 100 * off[points],
    }


def capped_parameters(parameters: tuple[float, ...], gamma: float) -> dict[str, Quantity]:
    """Eq. 2: parameters of a polynomial after the cap."""
    template = find_template(f"poly{len(parameters) - 1}")
    x = np.arange(1.0, 11.0)[None, :]
    batch = SegmentBatch(x, x.copy(), np.ones(x.shape, dtype=np.bool_), np.array([x.size]), x[:, -1])
    fit = BatchFit(np.array([parameters], dtype=np.float64), np.zeros(1))
    found = PairwiseRule(gamma=gamma).admit(template, fit, batch)
    return {"parameters": tuple(float(p) for p in found.parameters[0])}


def simpler_within_margin(
    errors: tuple[float, float], ranks: tuple[float, float], kappa: float, kappa_rel: float = selection.KAPPA_REL
) -> dict[str, Quantity]:
    """Eq. 3 for two fittings: which one is chosen, 1 or 2, as printed and without an order."""
    pairs = list(zip(errors, ranks, strict=True))
    printed = 2 if PairwiseRule(kappa, kappa_rel).challenger_wins(pairs[0], pairs[1]) else 1
    table = np.array([errors], dtype=np.float64)
    exact = ExactRule(kappa, kappa_rel).choose(table, np.array(ranks, dtype=np.float64), np.array([20]))
    return {"printed": printed, "exact": int(exact[0]) + 1}


def winners_over_orders(
    errors: tuple[float, ...], ranks: tuple[float, ...], kappa: float, rule: Literal["printed", "exact"] = "printed"
) -> dict[str, Quantity]:
    """How many different fittings Eq. 3 chooses, if the same ones are compared in every order."""
    found = set()
    for order in itertools.permutations(range(len(errors))):
        table = np.array([[errors[i] for i in order]], dtype=np.float64)
        psi, points = np.array([ranks[i] for i in order], dtype=np.float64), np.array([20])
        judge = PairwiseRule(kappa=kappa) if rule == "printed" else ExactRule(kappa=kappa)
        found.add(order[int(judge.choose(table, psi, points)[0])])
    return {"winners": len(found)}


def function_templates() -> dict[str, Quantity]:
    names = {template.name for template in scholz2021_templates()}
    polynomials = {"const", *(f"poly{degree}" for degree in range(1, 6))}
    others = {"exp", "log"}
    inverse = {f"inv_{name}" for name in (polynomials | others) - {"const"}}
    return {
        "polynomials": len(polynomials & names),
        "exponential_and_logarithm": len(others & names),
        "inverse": len(inverse & names),
    }


def rank_of_polynomial(degree: int) -> dict[str, Quantity]:
    """Rank of a polynomial, and its number of free parameters."""
    template = find_template("const" if degree == 0 else f"poly{degree}")
    return {"rank": SCHOLZ2021_RANKS[template.name], "parameters": len(template.parameter_names)}


def margins() -> dict[str, Quantity]:
    """The margins of Eq. 3 and the cap of Eq. 2 that the published code takes."""
    return {"kappa": selection.KAPPA, "kappa_rel": selection.KAPPA_REL, "gamma": selection.GAMMA}


def piecewise_at_split() -> dict[str, Quantity]:
    """Eq. 4: the segment (constant 1 or 2) that a model takes before, at and behind the breakpoint."""
    const = find_template("const")
    segments = (Fitting(const, (1.0,), 1, 5, 0.0, 5), Fitting(const, (2.0,), 6, 10, 0.0, 5))
    joined = PiecewiseFitting.join(segments)
    before, at, last = (int(v) for v in joined.evaluate([5.999, 6.0, 10.0]))
    return {"before": before, "at": at, "last": last}


def combined_error(errors: tuple[float, ...], ranks: tuple[float, ...], points: tuple[int, ...]) -> dict[str, Quantity]:
    """Error theta and rank Phi of a combination."""
    const, begin, segments = find_template("const"), 0, []
    for error, rank, n in zip(errors, ranks, points, strict=True):
        segments.append(Fitting(const, (1.0,), begin + 1, begin + n, error, n, rank=rank))
        begin += n
    joined = PiecewiseFitting.join(tuple(segments))
    return {"error": joined.error, "rank": joined.rank}


def fittings_of_brute_force(points: int, segments: int) -> dict[str, Quantity]:
    """Fittings of all combinations of breakpoints, and the exponent with which they grow when points double."""

    def fittings(n: int) -> int:
        return math.comb(n - 1, segments - 1) * segments

    return {"fittings": fittings(points), "exponent": math.log2(fittings(2 * points) / fittings(points))}


def derived_segments(
    series: Literal["fig2", "fig3"], max_segments: int = 5, profile: Profile = "exact", segments: int | None = None
) -> dict[str, Quantity]:
    """Segments, functions and breakpoints of a curve that is made of the functions that the paper names.

    The paper prints no samples; see :func:`_fig2_curve` and :func:`_fig3_curve`.
    """
    x, y = _fig2_curve() if series == "fig2" else _fig3_curve()
    best = derive(
        x, y, FitOptions(max_segments=max_segments, segments=segments, profile=profile), log_x=series == "fig2"
    ).best
    return {
        "segments": len(best.segments),
        "families": tuple(segment.template.name for segment in best.segments),
        "breakpoints": tuple(float(v) for v in best.breakpoint_x),
        "error_percent": 100 * best.error,
    }


def _fig2_curve() -> tuple[FloatArray, FloatArray]:
    """Figure 2 from its text, over the 65 numbers of entries of the published sweep.

    A line of slope 0.072 up to 1000 entries, a logarithm up to 10^5, a line that about doubles the cycles up to 10^6,
    and a constant from there. The base of 300 cycles is ours; the text names none.
    """
    x = np.array([digit * 10.0**k for k in range(7) for digit in range(1, 10)] + [1e7, 2e7])
    first = 300 + FIG_2_SLOPE * x
    second = first[x == 900][0] + 12 * np.log(x / 900)
    level = second[x == 9e4][0]
    third = level * (1 + (x - 9e4) / (1e6 - 9e4))
    return x, np.select([x < 1e3, x < 1e5, x < 1e6], [first, second, third], 2 * level)


def _fig3_curve() -> tuple[FloatArray, FloatArray]:
    """Figure 3 from its text: all is received up to 5.7 Gbit/s, and 4.9 Gbit/s beyond; 46 loads from 1 to 10 Gbit/s."""
    x = np.round(np.linspace(1.0, 10.0, 46), 6)
    return x, np.where(x <= FIG_3_KNEE_GBPS, x, FIG_3_SATURATED_GBPS)


def passes_on_the_line(gbps: float, passes: int, frame_bytes: int) -> dict[str, Quantity]:
    """What a card has to process if each packet passes it several times [Gbit/s].

    Rates are those on the wire (:data:`FIG_3_KNEE_GBPS`). Both passes count alike; under ``without_framing_gbps`` the
    frames alone do.
    """
    frames = gbps * frame_bytes / (frame_bytes + OVERHEAD_BYTES)
    return {"gbps": gbps * passes, "without_framing_gbps": frames * passes}


def lossless_frame_bytes(
    frame_bytes: int, onset_gbps: float, saturated_gbps: float, line_gbps: float
) -> dict[str, Quantity]:
    """From which frame size on a card that is limited in packets per second forwards a full line without loss [bytes].

    The limit lies between the packet rate at which frames of one size saturate (``highest_bytes``) and that at which
    they begin to be lost (``lowest_bytes``).
    """
    occupied = frame_bytes + OVERHEAD_BYTES
    sizes = [line_gbps / gbps * occupied - OVERHEAD_BYTES for gbps in (onset_gbps, saturated_gbps)]
    return {"lowest_bytes": sizes[0], "highest_bytes": sizes[1]}


def overfitting(points: int, relative_noise: float, degree: int, kappa: float) -> dict[str, Quantity]:
    """Errors of a line and of a polynomial of high degree on a noisy line, and which of both Eq. 3 chooses."""
    x = np.linspace(1.0, 100.0, points)
    y = (100 + 2 * x) * (1 + relative_noise * np.random.default_rng(1).standard_normal(points))
    names = ("poly1", f"poly{degree}")
    found = [derive(x, y, FitOptions(max_segments=1, templates=(find_template(name),))).best for name in names]
    errors, ranks = tuple(each.error for each in found), tuple(SCHOLZ2021_RANKS[name] for name in names)
    higher = found[1].segments[0].parameters[2:]
    chosen = simpler_within_margin((errors[1], errors[0]), (ranks[1], ranks[0]), kappa)["printed"]
    return {
        "prefers_high_degree": errors[1] < errors[0],
        "largest_high_factor": max(abs(p) for p in higher[1:]),
        "chosen": names[0] if chosen == 2 else names[1],
    }


def outlier_sensitivity(points: int, factors: tuple[float, ...]) -> dict[str, Quantity]:
    """MAPE over sMAPE of exact samples but one, which was measured as a multiple of its value; both in per cent."""
    truth, errors = np.full(points, 100.0), {}
    outlying = np.arange(points) == points // 2
    for name in ("mape", "smape"):
        metric = error_metric(name)
        errors[name] = tuple(100 * metric(np.where(outlying, factor * truth, truth), truth) for factor in factors)
    ratio = tuple(mape / smape for mape, smape in zip(errors["mape"], errors["smape"], strict=True))
    return {"mape_percent": errors["mape"], "smape_percent": errors["smape"], "ratio": ratio}


def aic_and_margin(points: tuple[int, ...], noises: tuple[float, ...], series: int) -> dict[str, Quantity]:
    """AIC and Eq. 3 choose among the same fittings of noisy curves of one function each.

    ``aic_simpler`` and ``aic_less_simple`` count the curves where the function of lowest AIC has a lower or a higher
    rank than that of Eq. 3, ``aic_below_truth`` and ``margin_below_truth`` those where it has a lower one than the
    function that the curve is made of.
    """
    found = {"curves": 0, "aic_simpler": 0, "aic_less_simple": 0, "aic_below_truth": 0, "margin_below_truth": 0}
    for family, n, noise, seed in itertools.product(FAMILIES, points, noises, range(series)):
        drawn = piecewise_series(seed, n, 1, noise=noise, families=[family])
        aic, margin = _chosen_ranks(drawn)
        found["curves"] += 1
        found["aic_simpler"] += aic < margin
        found["aic_less_simple"] += aic > margin
        found["aic_below_truth"] += aic < SCHOLZ2021_RANKS[family]
        found["margin_below_truth"] += margin < SCHOLZ2021_RANKS[family]
    differing = found["aic_simpler"] + found["aic_less_simple"]
    return {**found, "simpler_share": found["aic_simpler"] / differing if differing else math.nan}


def _chosen_ranks(drawn: SyntheticSeries) -> tuple[float, float]:
    """Ranks of the functions of section 2.2 that AIC and Eq. 3 choose for a curve."""
    fits = []
    for template in scholz2021_templates():
        found = derive(
            drawn.x, drawn.y, FitOptions(max_segments=1, templates=(template,), profile="scholz2021", threads=1)
        )
        fits.append((SCHOLZ2021_RANKS[template.name], found.best.error, found.criteria[0].aic))
    ranks, errors, aic = (np.array(column) for column in zip(*fits, strict=True))
    margin = PairwiseRule().choose(errors[None, :], ranks, np.array([len(drawn.x)]))[0]
    return float(ranks[int(np.argmin(aic))]), float(ranks[margin])


def heuristic_breakpoints(neighbours: int, noise: float, series: int) -> dict[str, Quantity]:
    """Breakpoints of curves of three segments that the heuristic of section 2.2 proposes, and its candidates.

    ``first_share`` is the share that the extrema alone propose, ``share`` that with some neighbours of each, and
    ``gain`` the difference.
    """
    counts = []
    for seed in range(series):
        drawn = piecewise_series(seed, 60, 3, noise=noise, x_scale="log")
        finders = [SecondDerivative(neighbours=j) for j in (0, neighbours)]
        alone, wide = (set(finder.strongest_bends(drawn.x, drawn.y, True).tolist()) for finder in finders)
        known = set(drawn.breakpoints)
        counts.append((len(known), len(alone & known), len(wide & known), len(alone), len(wide)))
    breakpoints, first_hits, hits, first_candidates, candidates = map(sum, zip(*counts, strict=True))
    return {
        "first_share": first_hits / breakpoints,
        "share": hits / breakpoints,
        "gain": (hits - first_hits) / breakpoints,
        "candidates_ratio": candidates / first_candidates,
    }


def heuristic_on_figure_2(neighbours: int) -> dict[str, Quantity]:
    """The breakpoints of :func:`_fig2_curve` that the heuristic proposes, and its fittings against brute force."""
    x, y = _fig2_curve()
    bends = SecondDerivative(neighbours=neighbours).strongest_bends(x, y, True).tolist()
    ends = [int(np.flatnonzero(x == last)[0]) for last in (900, 9e4, 9e5)]
    return {
        "breakpoints": sum(end in bends for end in ends),
        "fittings_share": math.comb(len(bends), 3) / math.comb(x.size - 1, 3),
    }


def drops_over_loss(first_gbps: float, last_gbps: float) -> dict[str, Quantity]:
    """Percentage of dropped packets over the lost rate at two loads beyond the knee of figure 3, and their quotient."""
    first, last = (100 / load for load in (first_gbps, last_gbps))
    lost = [100 * (load - FIG_3_SATURATED_GBPS) / load for load in (first_gbps, last_gbps)]
    return {"quotient": last / first, "dropped_percent": (lost[0], lost[1])}
