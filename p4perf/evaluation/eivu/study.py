"""The published measurements of EIVU as a table, and the statistics that the claims need.

Source: the result pages and perf files of https://github.com/sdnnitech/EIVUv1 (1e75188, 2023) and
https://github.com/sdnnitech/EIVU (75f94fc, 2025), recomputed to counts per packet. One row is one process (rx, nf, tx)
of one item on one server. A row of v1 is one run of 10^8 packets; nothing was repeated. Hit ratios of rx and nf are too
high: perf also counted the loop in which they waited for the start (about 2 s for nf, none for tx). Misses, fills and
requests for ownership per packet are hardly touched by that.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from p4perf.errors import DataError, Location
from p4perf.evaluation.factors import Cell, Factorial
from p4perf.models.bases import FloatArray

if TYPE_CHECKING:
    import pandas as pd

FILE = "eivu_results.csv"

SERVERS: Mapping[str, str] = MappingProxyType(
    {"S1": "S1 i9-11900K", "S2": "S2 i7-9800X", "S3": "S3 i9-13900K", "S4": "S4 TR-5965WX"}
)
"""Servers of the first campaign."""

COLUMNS = (
    *("campaign", "server", "item", "factors", "process", "type", "variant"),
    *(
        "mpps",
        "mpps_noperf",
        "l1_hit_pct",
        "l2_hit_pct",
        "l3_hit_pct",
        "l1_miss_pp",
        "l1d_fill_pp",
        "rfo_pp",
        "llc_ref_pp",
    ),
)
"""Columns that are used; ``_pp`` is per packet, ``_pct`` per cent. ``factors`` is empty for the base. ``mpps`` is of
the run in which that process was profiled, ``mpps_noperf``, of the second campaign only, of one without perf."""

FACTORS = tuple("abcdef")
BASE = "001"
ALL = "106"


@dataclass(frozen=True)
class Split:
    """The best two levels of log throughput over a quantity.

    Args:
        low: largest value of the quantity in the lower group.
        high: smallest one in the upper group.
        below: geometric mean of the throughput of the lower group, in Mpps.
        above: that of the upper group.
        r_squared: share of the variance of log throughput that two levels explain.
    """

    low: float
    high: float
    below: float
    above: float
    r_squared: float

    @property
    def middle(self) -> float:
        """Half way between the groups."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Study:
    """The measurements.

    Args:
        table: one row per campaign, server, item and process, with at least :data:`COLUMNS`.
    """

    table: pd.DataFrame

    def items(self, server: str, process: str = "nf") -> pd.DataFrame:
        """The items of the first campaign on a server (S1 to S4), DPDK left out, by item."""
        rows = self._of("v1", SERVERS[server], process)
        return rows[rows["item"].str.fullmatch(r"\d{3}")].set_index("item")

    def dpdk(self, server: str, process: str = "nf") -> pd.DataFrame:
        """DPDK with vhost-user on a server: dpdk_split and dpdk_packed."""
        rows = self._of("v1", SERVERS[server], process)
        return rows[rows["item"].str.startswith("dpdk")].set_index("item")

    def second(self, server: str, process: str = "nf") -> pd.DataFrame:
        """The configurations of the second campaign on a server, by a part of its name."""
        rows = self.table[self.table["campaign"] == "v2"]
        rows = rows[rows["server"].str.contains(server, regex=False) & (rows["process"] == process)]
        return rows.set_index("item")

    def factorial(self, server: str, process: str = "nf") -> Factorial:
        """The 61 of 64 combinations of the factors a to f that were measured on a server, with misses per packet.

        Throughput is that of the run in which ``process`` was profiled; runs of one cell differ by a few per cent.
        """
        rows = self.items(server, process)
        used = rows[(rows.index == BASE) | rows["factors"].str.fullmatch(r"[a-f]+").fillna(False)]
        cells = {}
        for item in used.index:
            factors = used.at[item, "factors"]
            present = frozenset(factors if isinstance(factors, str) else "")
            cells[present] = Cell(present, (number_at(used, item, "mpps"),), number_at(used, item, "l1_miss_pp"))
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
        data = files("p4perf.evaluation.eivu").joinpath(f"{FILE}.gz").read_bytes()
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
    """One cell."""
    return float(cast("float", rows.at[cast("str", item), column]))


def spearman(rows: pd.DataFrame, x: str, y: str) -> float:
    """Spearman's rank correlation of two columns, of the rows that have both (ties get mean ranks)."""
    both = rows[[x, y]].dropna()
    return float(both[x].rank().corr(both[y].rank()))


def best_split(x: Iterable[float], throughput_mpps: Iterable[float]) -> Split:
    """Where two levels explain most of the variance of log throughput over x; equal x are never torn apart.

    Raises:
        DataError: x has a single value.
    """
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
    return Split(
        float(xs[at - 1]),
        float(xs[at]),
        float(np.exp(logs[:at].mean())),
        float(np.exp(logs[at:].mean())),
        1 - rest / total,
    )
