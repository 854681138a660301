"""The published measurements of EIVU, and what they show of the statements of the study.

Source: the result pages and perf files of https://github.com/sdnnitech/EIVUv1 (1e75188, 2023) and
https://github.com/sdnnitech/EIVU (75f94fc, 2025), recomputed to counts per packet. One row is one process (rx, nf, tx)
of one item on one server. A row of v1 is one run of 10^8 packets; nothing was repeated. Hit ratios of rx and nf are too
high: perf also counted the loop in which they waited for the start (about 2 s for nf, none for tx). Misses, fills and
requests for ownership per packet are hardly touched by that.

Ten statements are those of the slides (Takeya 2024, "Understanding Roadblocks in Virtual Network I/O"), of the thesis
behind them, and of CESim. Numbers are computed from the table, and verdicts from the numbers by bounds of ours; the
checks of the claims in ``claims.yaml`` take both from here.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from p4perf.errors import DataError, Location
from p4perf.evaluation.papers.takeya2024.cesim import CacheModel
from p4perf.evaluation.papers.takeya2024.factors import FactorAnalysis, Factorial, FactorialCell, analyse
from p4perf.models.templates import FloatArray
from p4perf.records import Record, doc, listing

if TYPE_CHECKING:
    import pandas as pd


FILE = "eivu_results.csv"

SERVERS: Mapping[str, str] = MappingProxyType(
    {"S1": "S1 i9-11900K", "S2": "S2 i7-9800X", "S3": "S3 i9-13900K", "S4": "S4 TR-5965WX"}
)
"""Servers of the first campaign."""

COLUMNS = (
    *("campaign", "server", "item", "factors", "process", "type", "variant", "mpps", "mpps_noperf"),
    *("l1_hit_pct", "l2_hit_pct", "l3_hit_pct", "l1_miss_pp", "l1d_fill_pp", "rfo_pp", "llc_ref_pp"),
)
"""Columns that are used; ``_pp`` is per packet, ``_pct`` per cent. ``factors`` is empty for the base. ``mpps`` is of
the run in which that process was profiled, ``mpps_noperf``, of the second campaign only, of one without perf."""

FACTORS = tuple("abcdef")
BASE = "001"
ALL = "106"


@dataclass(frozen=True)
class Split:
    """The best two levels of log throughput (geometric means, in Mpps) over a quantity, and its values beside the step.

    ``r_squared`` is the share of the variance of log throughput that two levels explain.
    """

    low: float
    high: float
    below: float
    above: float
    r_squared: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Study:
    """The measurements: a table with one row per campaign, server, item and process, and at least :data:`COLUMNS`."""

    table: pd.DataFrame

    def items(self, server: str, process: str = "nf") -> pd.DataFrame:
        """The items of the first campaign on a server (S1 to S4), DPDK left out, by item."""
        rows = self._of("v1", SERVERS[server], process)
        return rows[rows["item"].str.fullmatch(r"\d{3}")].set_index("item")

    def dpdk(self, server: str) -> pd.DataFrame:
        """The process nf of DPDK with vhost-user on a server: dpdk_split and dpdk_packed."""
        rows = self._of("v1", SERVERS[server], "nf")
        return rows[rows["item"].str.startswith("dpdk")].set_index("item")

    def second(self, server: str) -> pd.DataFrame:
        """The process nf of the configurations of the second campaign on a server, by a part of its name."""
        rows = self.table[(self.table["campaign"] == "v2") & (self.table["process"] == "nf")]
        return rows[rows["server"].str.contains(server, regex=False)].set_index("item")

    def factorial(self, server: str, process: str = "nf") -> Factorial:
        """The 61 of 64 combinations of the factors a to f that were measured on a server, with misses per packet.

        Throughput is that of the run in which ``process`` was profiled; runs of one cell differ by a few per cent.
        """
        rows = self.items(server, process)
        used = rows[(rows.index == BASE) | rows["factors"].str.fullmatch(r"[a-f]+").fillna(False)]
        cells = {
            frozenset("" if item == BASE else str(used.at[item, "factors"])): FactorialCell(
                (number_at(used, item, "mpps"),), number_at(used, item, "l1_miss_pp")
            )
            for item in used.index
        }
        return Factorial(FACTORS, cells, "throughput", "Mpps", cache="L1 misses per packet")

    def _of(self, campaign: str, server: str, process: str) -> pd.DataFrame:
        t = self.table
        return t[(t["campaign"] == campaign) & (t["server"] == server) & (t["process"] == process)]


def read_study(folder: Path | None = None) -> Study:
    """The measurements that ship with p4perf, or those of ``eivu_results.csv`` in a folder.

    Raises:
        DataError: the file cannot be read or lacks columns or servers.
    """
    import pandas as pd

    kinds = {"item": str, "factors": str, "type": str, "variant": str}
    if folder is None:
        data = files("p4perf.evaluation.papers.takeya2024").joinpath(f"{FILE}.gz").read_bytes()
        table = pd.read_csv(io.BytesIO(data), compression="gzip", dtype=kinds)
    else:
        path = folder / FILE
        try:
            table = pd.read_csv(path, dtype=kinds)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}", location=Location(str(path))) from error
        missing = [name for name in COLUMNS if name not in table.columns]
        if missing:
            raise DataError(f"has no column {missing[0]!r}", location=Location(str(path)))
        absent = [name for name in SERVERS.values() if name not in set(table["server"])]
        if absent:
            raise DataError(f"has no rows of {absent[0]}", location=Location(str(path)))
    return Study(table[list(COLUMNS)])


def number_at(rows: pd.DataFrame, item: object, column: str) -> float:
    return float(cast("float", rows.at[cast("str", item), column]))


def spearman(rows: pd.DataFrame, x: str, y: str) -> float:
    """Spearman's rank correlation of two columns, of the rows that have both (ties get mean ranks)."""
    both = rows[[x, y]].dropna()
    return float(both[x].rank().corr(both[y].rank()))


def rank_correlations(study: Study, x: str, y: str, process: str = "nf") -> dict[str, float]:
    """Spearman's rank correlation of two columns over the items, by server; without servers that did not count both."""
    tables = {server: study.items(server, process)[[x, y]].dropna() for server in SERVERS}
    return {server: spearman(table, x, y) for server, table in tables.items() if len(table)}


def best_split(x: Iterable[float], throughput_mpps: Iterable[float]) -> Split:
    """Where two levels explain most of the variance of log throughput over x; equal x are never torn apart."""
    xs: FloatArray = np.asarray(list(x), dtype=float)
    order = np.argsort(xs, kind="stable")
    xs, logs = xs[order], np.log(np.asarray(list(throughput_mpps), dtype=float))[order]
    total = float(np.sum((logs - logs.mean()) ** 2))
    best: tuple[float, int] | None = None
    for at in range(1, len(xs)):
        if xs[at] == xs[at - 1]:
            continue
        left, right = logs[:at], logs[at:]
        rest = float(np.sum((left - left.mean()) ** 2) + np.sum((right - right.mean()) ** 2))
        if best is None or rest < best[0]:
            best = rest, at
    if best is None:
        raise DataError("there is nothing to split: all values are the same")
    rest, at = best
    below, above = (float(np.exp(part.mean())) for part in (logs[:at], logs[at:]))
    return Split(float(xs[at - 1]), float(xs[at]), below, above, 1 - rest / total)


Verdict = Literal["supported", "partly supported", "not supported"]

TARGET_MPPS = 100.0
NEEDED_HIT_PCT = 99.99
STEEP_HIT_PCT = 99.9
WEAK = 0.2
"""Rank correlations up to this are little influence."""
STRONG_RFO = 0.5
"""Requests for ownership per packet that are many."""
INTEL = ("S1", "S2", "S3")


class StudyFinding(Record):
    """What the measurements show of a statement of the study (from 1); lists of numbers follow the servers S1 to S4."""

    number: int = doc("number of the claim")
    claim: str = doc("the claim")
    verdict: str = doc("`supported`, `partly supported` or `not supported`")
    finding: str = doc("the numbers that decide")
    numbers: dict[str, Any] = doc("all numbers that were computed")


EivuClaimsDocument = listing("reproduce.eivu", StudyFinding, "`p4perf reproduce eivu`: the claims of the study.")


def study_findings(study: Study) -> tuple[StudyFinding, ...]:
    analyses = {name: analyse(study.factorial(name)) for name in SERVERS}
    found = (
        *(check(study) for check in (_possible, _hit_ratio_necessary, _tipping_point, _l1_matters, _l2_l3_do_not)),
        *(_invalidations(study), _buffer_header(study, analyses), _zero_copy(study, analyses["S1"].factorial)),
        *(_base_is_dpdk(study), _model_tips()),
    )
    return tuple(
        StudyFinding(number=number, claim=claim, verdict=verdict, finding=finding, numbers=dict(numbers))
        for number, (claim, verdict, finding, numbers) in enumerate(found, start=1)
    )


_Finding = tuple[str, Verdict, str, Mapping[str, object]]
"""Text, verdict, finding and numbers of a :class:`StudyFinding`."""


def _verdict(whole: bool, some: bool) -> Verdict:
    return "supported" if whole else "partly supported" if some else "not supported"


def _possible(study: Study) -> _Finding:
    fast = {s: sorted(_fast(study, s).index) for s in SERVERS}
    counts = [len(items) for items in fast.values()]
    text = ", ".join(f"{s} {len(items)}" for s, items in fast.items())
    return (
        "100 Mpps and more are possible",
        _verdict(all(counts), any(counts)),
        f"items with 100 Mpps or more: {text}",
        {"items": fast, "counts": counts},
    )


def _fast(study: Study, server: str) -> pd.DataFrame:
    rows = study.items(server)
    return rows[rows["mpps"] >= TARGET_MPPS]


def _hit_ratio_necessary(study: Study) -> _Finding:
    fast = {s: _fast(study, s) for s in SERVERS}
    lowest = [float(rows["l1_hit_pct"].min()) for rows in fast.values()]
    with_it = [int((rows["l1_hit_pct"] >= NEEDED_HIT_PCT).sum()) for rows in fast.values()]
    misses = [float(rows["l1_miss_pp"].max()) for rows in fast.values()]
    slow = study.items("S1")
    slow = slow[(slow["l1_hit_pct"] >= NEEDED_HIT_PCT) & (slow["mpps"] < TARGET_MPPS)]
    second = study.second("i9-11900K")
    second = second[second["variant"].isna() & (second["mpps_noperf"] >= TARGET_MPPS)]
    tx = study.items("S1", "tx").loc[[ALL, "101"], ["mpps", "l1_hit_pct"]]
    necessary = all(low >= NEEDED_HIT_PCT for low in lowest)
    few = ", ".join(f"{s} {n} of {len(rows)}" for (s, rows), n in zip(fast.items(), with_it, strict=True))
    return (
        "a hit ratio of L1 of 99.99 % or more is necessary for 100 Mpps",
        _verdict(necessary, False),
        f"items with 100 Mpps that reach 99.99 %: {few}; the lowest has {min(lowest):.2f} %. On S1 to S3 all "
        f"of them have at most {max(misses[:3]):.3f} L1 misses per packet",
        {
            "lowest_hit_pct": lowest,
            "with_99_99": with_it,
            "counts": [len(rows) for rows in fast.values()],
            "most_misses_pp": misses,
            "slow_in_spite_S1": {str(item): number_at(slow, item, "mpps") for item in slow.index},
            "tx_S1": {str(item): [number_at(tx, item, name) for name in tx.columns] for item in tx.index},
            "second_i9": [len(second), float(second["l1_hit_pct"].min()), float(second["l1_hit_pct"].max())],
        },
    )


def _tipping_point(study: Study) -> _Finding:
    by_hit = {s: best_split(study.items(s)["l1_hit_pct"], study.items(s)["mpps"]) for s in SERVERS}
    by_miss = {s: best_split(study.items(s)["l1_miss_pp"], study.items(s)["mpps"]) for s in SERVERS}
    near = [by_hit[s].middle >= STEEP_HIT_PCT for s in INTEL]
    rises = [by_hit[s].above > by_hit[s].below for s in INTEL]
    good = [one and other for one, other in zip(near, rises, strict=True)]
    text = ", ".join(f"{s} {by_hit[s].middle:.3f} %" for s in SERVERS)
    levels = ", ".join(f"{s} {split.below:.1f}/{split.above:.1f}" for s, split in by_miss.items())
    s1 = study.items("S1")
    edges = [0.0, 99.8, 99.9, 99.95, 99.97, 99.99, 100.1]
    bins = [
        float(s1.loc[(s1["l1_hit_pct"] >= low) & (s1["l1_hit_pct"] < high), "mpps"].max())
        for low, high in pairwise(edges)
    ]
    return (
        "throughput rises steeply above a hit ratio of 99.9 %",
        _verdict(all(good) and by_hit["S4"].middle >= STEEP_HIT_PCT, all(good)),
        f"best two levels split at {text} (S4 counts speculative loads, too); levels by misses per packet are (Mpps) "
        f"{levels}",
        {
            "hit_split": {s: [split.low, split.high] for s, split in by_hit.items()},
            "hit_split_middle": [split.middle for split in by_hit.values()],
            "miss_split": {s: [split.low, split.high] for s, split in by_miss.items()},
            "miss_levels": {s: [split.below, split.above] for s, split in by_miss.items()},
            "miss_r_squared": {s: split.r_squared for s, split in by_miss.items()},
            "most_by_hit_bin_S1": bins,
        },
    )


def _l1_matters(study: Study) -> _Finding:
    misses, hits = (list(rank_correlations(study, "mpps", y).values()) for y in ("l1_miss_pp", "l1_hit_pct"))
    fills, rx = (rank_correlations(study, "mpps", "l1d_fill_pp", process) for process in ("nf", "rx"))
    return (
        "the use of L1 decides on throughput",
        _verdict(all(rho < -WEAK for rho in misses), any(rho < -WEAK for rho in misses)),
        f"rank correlation of throughput with L1 misses per packet {_signed(misses)} (S1 to S4), with the hit ratio "
        f"{_signed(hits)}",
        {
            "misses": misses,
            "hit_ratio": hits,
            "fills_S1_S2": [fills[s] for s in ("S1", "S2")],
            "rx_fills_S1_S2": [rx[s] for s in ("S1", "S2")],
        },
    )


def _l2_l3_do_not(study: Study) -> _Finding:
    l2, l3 = (rank_correlations(study, "mpps", column) for column in ("l2_hit_pct", "l3_hit_pct"))
    references = list(rank_correlations(study, "mpps", "llc_ref_pp").values())
    clocks = study.second("Xeon")
    memory = [number_at(clocks, f"fd-b512-a512-m16-clock-mem{mts}", "mpps_noperf") for mts in (3200, 5200)]
    weak = [abs(rho) <= WEAK for rho in (*l2.values(), *l3.values())]
    return (
        "the hit ratios of L2 and L3 hardly matter",
        _verdict(all(weak), sum(weak) > len(weak) / 2),
        f"rank correlation of throughput with the hit ratio of L2 {_signed(l2.values())} (S1, S2, S4), of L3 "
        f"{_signed(l3.values())} (S1 to S3); but with references to the last level {_signed(references)}",
        {"l2": l2, "l3": l3, "llc_references": references, "memory_3200_5200_mpps": memory},
    )


def _invalidations(study: Study) -> _Finding:
    both = ("S1", "S2")
    tables = {s: study.items(s) for s in both}
    misses, fills = (list(rank_correlations(study, "rfo_pp", y).values()) for y in ("l1_miss_pp", "l1d_fill_pp"))
    fast = [float(t.loc[t["mpps"] >= TARGET_MPPS, "rfo_pp"].max()) for t in tables.values()]
    many = [float(t.loc[t["rfo_pp"] >= STRONG_RFO, "mpps"].max()) for t in tables.values()]
    fall = [number_at(t, BASE, "rfo_pp") / number_at(t, ALL, "rfo_pp") for t in tables.values()]
    second = {name: study.second(name) for name in ("i9-11900K", "Xeon")}
    second = {name: t[t["variant"].isna() & (t["type"] == "fast")] for name, t in second.items()}
    again = spearman(second["i9-11900K"], "mpps", "rfo_pp")
    again_fills = [spearman(t, "mpps", "l1d_fill_pp") for t in second.values()]
    return (
        "invalidation is the major cause of L1 misses",
        _verdict(False, all(rho > 0.5 for rho in misses)),  # requests are no invalidations, and correlation no cause
        f"rank correlation of requests for ownership with L1 misses {_signed(misses)} (S1, S2); items with 100 Mpps "
        f"have at most {max(fast):.3f} requests per packet. Invalidations were not counted. In the second campaign "
        f"requests do not go with throughput ({again:+.2f}), fills of L1 do ({_signed(again_fills)})",
        {
            "misses": misses,
            "fills": fills,
            "most_rfo_of_fast": fast,
            "most_mpps_with_many_rfo": many,
            "rfo_fall": fall,
            "second_rfo_i9": again,
            "second_fills": again_fills,
        },
    )


def _buffer_header(study: Study, analyses: Mapping[str, FactorAnalysis]) -> _Finding:
    last = {s: {f: gain.value for f, gain in a.last.items() if gain is not None} for s, a in analyses.items()}
    main = {s: {f: a.main.of(f).ratio.value for f in FACTORS} for s, a in analyses.items()}
    first = [max(last[s], key=lambda f: last[s][f]) == "c" == max(main[s], key=lambda f: main[s][f]) for s in SERVERS]
    without = [a.best_without("c") for a in analyses.values()]
    of_tx = {s: analyse(study.factorial(s, "tx")) for s in SERVERS}
    return (
        "the buffer header (c) is the most influential factor",
        _verdict(all(first), any(first)),
        "leave-one-out ratio of c "
        + ", ".join(f"{s} {last[s]['c']:.2f}" for s in SERVERS)
        + f"; first by both measures on {', '.join(s for s, is_it in zip(SERVERS, first, strict=True) if is_it)}; on "
        f"S3 a has {last['S3']['a']:.2f}",
        {
            "leave_one_out": last,
            "main_effects": main,
            "main_effects_tx": {s: {f: a.main.of(f).ratio.value for f in FACTORS} for s, a in of_tx.items()},
            "r_squared_tx": [a.main.r_squared for a in of_tx.values()],
            "r_squared_pairs_tx": [None if a.pairs is None else a.pairs.r_squared for a in of_tx.values()],
            "r_squared": [a.main.r_squared for a in analyses.values()],
            "best_without_c": without,
        },
    )


def _zero_copy(study: Study, cells: Factorial) -> _Finding:
    alone = {}
    for server in SERVERS:
        rows = study.items(server)["mpps"]
        alone[server] = [float(rows[item] / rows[BASE] - 1) for item in ("044", "045")]
    values = [value for pair in alone.values() for value in pair]
    with_c, c = cells.value("ce"), cells.value("c")
    return (
        "zero-copy alone gains little (20 to 40 % in other work)",
        _verdict(max(values) < 0.4, max(values) < 0.6),
        f"one copy less changes throughput by {min(values):+.0%} to {max(values):+.0%}; but with the buffer header "
        f"gone both copies less give {with_c:.1f} instead of {c:.1f} Mpps (S1)",
        {"alone": alone, "with_c_S1": [c, with_c]},
    )


def _base_is_dpdk(study: Study) -> _Finding:
    ratios, misses = [], []
    for server in SERVERS:
        base, dpdk = study.items(server), study.dpdk(server)
        ratios.append(number_at(base, BASE, "mpps") / number_at(dpdk, "dpdk_split", "mpps"))
        misses.append([number_at(base, BASE, "l1_miss_pp"), number_at(dpdk, "dpdk_split", "l1_miss_pp")])
    close = [0.8 <= ratio <= 1.25 for ratio in ratios]
    text = ", ".join(f"{s} {ratio:.2f}" for s, ratio in zip(SERVERS, ratios, strict=True))
    return (
        "the base of EIVU performs as DPDK does",
        _verdict(all(close), any(close)),
        f"throughput of the base over that of DPDK with split queues: {text}; L1 misses per packet on S1 "
        f"{misses[0][0]:.2f} and {misses[0][1]:.2f}",
        {"ratios": ratios, "misses_pp": misses},
    )


def _model_tips() -> _Finding:
    alphas = (0.1, 0.5, 0.9)
    models = [CacheModel(alpha) for alpha in alphas]
    simple = [model.with_variant("simple") for model in models]
    slopes = [m.tipping_point().slope_mpps / s.tipping_point().slope_mpps for m, s in zip(models, simple, strict=True)]
    half = [model.tipping_point().half_miss_ratio for model in models]
    at_99 = [float(model.throughput_mpps(0.99)) for model in simple]
    tips = all(slope > 10 for slope in slopes) and min(at_99) > 0.8 * models[0].best_mpps
    return (
        "only the parallelised model has a tipping point",
        _verdict(tips, False),
        f"its slope at a hit ratio of 1 is {', '.join(f'{slope:.0f}' for slope in slopes)} times that of the simple "
        f"one (alpha 0.1, 0.5, 0.9); the simple one still has {min(at_99):.0f} Mpps at 99 %",
        {"slope_ratios": slopes, "half_miss_ratios": half, "simple_at_99": at_99},
    )


def _signed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:+.2f}" for value in values)
