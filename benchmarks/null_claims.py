"""How often do the bounds on shapes pass without the effect that a claim is about, and how often with it?

Every claim that is measured again (``p4perf reproduce``) is checked on series that are drawn at random: of kinds that
do not have the effect, and with it. Series have the points and the repetitions of the experiment of the claim, and the
noise that was measured on the local data planes: 1 to 3 % of the cost, and one trial of fifty that is 10 to 50 %
slower. A bound is good if at most 5 % pass without the effect, of every kind, and at least 80 % with it. Exits with 1
if one is not.

Bounds on rank correlations of published data are tested alike: the data are put into another order, drawn at random,
for each server, and orders on different servers are as similar as those of the data.

    python benchmarks/null_claims.py [--draws 200] [--write] [CLAIM]...

``--write`` puts the rows on docs/reproducing.md, beside those of other claims that are there. Each has a digest of the
code of the checks, so that a test finds rows that are older. After a change of how models are derived, measure those
of :data:`FITTED` anew.
"""

from __future__ import annotations

import argparse
import ast
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from p4perf.errors import NoVerdictError
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.papers import CHECKS, SHAPES, Claim, chosen_claims
from p4perf.evaluation.papers.claims import compare
from p4perf.evaluation.papers.shapes import OPERATOR, PACKET_SIZE, MeasuredRun
from p4perf.evaluation.papers.takeya2024 import eivu
from p4perf.evaluation.papers.takeya2024.factors import Factorial, FactorialCell
from p4perf.experiment.evaluate import fit_options
from p4perf.programs.component import component_parameters
from p4perf.specs import load_experiment

MOST_WITHOUT, LEAST_WITH = 0.05, 0.80
FOLDER = Path(__file__).resolve().parents[1]
PAGE = FOLDER / "docs" / "reproducing.md"
PAPERS = FOLDER / "p4perf" / "evaluation" / "papers"
SHAPE_CHECKS, RANK_CHECKS = PAPERS / "shapes.py", PAPERS / "takeya2024" / "eivu.py"
RANKED = "rank-correlations"
"""The check of rank correlations in published data."""
FITTED = ("curve-segments", "breaks-at-caches")
"""Checks that derive a model."""
BEGIN, END = "<!-- bounds -->\n", "<!-- end of bounds -->"

Random = np.random.Generator
Array = np.ndarray
Curve = Callable[[Random, Array], Array]
"""Costs over the abscissae of an experiment, without noise; base 1."""
Costs = Mapping[object, float]
"""Costs or rates by cell of a factorial design, or by operator and packet size."""
Table = Callable[[Random], Costs]
Ranks = Callable[[Random, int], Array]
"""Rank correlations in several series of published data."""

CACHES = (CacheMark("L1", 48e3, 315.0), CacheMark("L2", 2e6, 13_150.0), CacheMark("L3", 48e6, 315_000.0))
"""Where a table of 152 B an entry fills the caches of a processor of today."""
SIZES = (64, 128, 256)
OPERATORS = ("rte_net_crc", "checksum", "hash_lookup", "htons", "printf_file", "rte_log_suppressed")
DECELERATING = ("hash_lookup", "printf_file", "rte_log_suppressed")


# --- curves


def _shape(name: str, growth: tuple[float, float], low: float | None = None, high: float | None = None) -> Curve:
    """A shape that changes by a factor drawn between two, from one abscissa to another (or over all)."""

    def curve(random: Random, x: Array) -> Array:
        first, last = x[0] if low is None else low, x[-1] if high is None else high
        shifted = 0.0 if first > 0 else 1.0
        at = np.clip(x, first, last)
        line = (at - first) / (last - first)
        logarithm = np.log((at + shifted) / (first + shifted)) / np.log((last + shifted) / (first + shifted))
        place = random.uniform()
        rise = {
            "constant": np.zeros_like(x),
            "line": line,
            "logarithm": logarithm,
            "square": line**2,
            "step": (logarithm > place).astype(float) if last / max(first, 1) > 20 else (line > place).astype(float),
        }[name]
        return 1 + (random.uniform(*growth) - 1) * rise

    return curve


def _shapes(names: str, growth: tuple[float, float], low: float | None = None, high: float | None = None):
    return {name: _shape(name, growth, low, high) for name in names.split()}


def _caches(random: Random, x: Array) -> Array:
    """Figure 2 of Scholz 2021: almost constant, a logarithm from the full L2 on, a steep rise from the full L3 on."""
    full = {mark.level: mark.x * random.uniform(0.77, 1.0) for mark in CACHES}
    low, middle, high = random.uniform(1.02, 1.2), random.uniform(1.25, 1.6), random.uniform(1.8, 3.0)
    rises = ((1.0, full["L2"], low), (full["L2"], full["L3"], middle), (full["L3"], 10 * full["L3"], high))
    y = np.ones_like(x)
    for begin, end, factor in rises:
        y = y * factor ** np.clip(np.log(np.maximum(x, 1e-9) / begin) / np.log(end / begin), 0, 1)
    return y


def _full_l1(random: Random, x: Array) -> Array:
    return _caches(random, x) * np.where(x > CACHES[0].x * random.uniform(0.77, 1.0), random.uniform(1.3, 3.0), 1.0)


def _falling(name: str) -> Curve:
    return _shape(name, (0.3, 0.9))


def _stepping(random: Random, x: Array) -> Array:
    return _shape("step", (0.3, 3.0))(random, x)


def _tables(constant: float, each: float, off: float = 0.0) -> Curve:
    """The cost of some tables, with a part that does not depend on their number."""
    return lambda random, x: constant * random.uniform(1, 5) + each * x * (1 + off * random.uniform(-1, 1) * x / x[-1])


def _waiting(random: Random, x: Array) -> Array:
    return 1 / (1 - random.uniform(0.75, 0.95) * x)


# --- tables


def _cells(whole: tuple[float, float], without: Mapping[str, tuple[float, float]], single=(1.0, 1.3)) -> Table:
    """Rates of the base, of factors alone, of all, and of all but one: gains drawn between two of each."""

    def table(random: Random) -> Costs:
        full = random.uniform(*whole)
        rates: dict[object, float] = {frozenset(): 1.0, frozenset("abcdef"): full}
        for factor in "abcdef":
            rates[frozenset(factor)] = random.uniform(*without.get(f"alone_{factor}", single))
            rates[frozenset("abcdef") - {factor}] = full / random.uniform(*without.get(factor, (1.0, 1.3)))
        return rates

    return table


def _multiplied(beyond: tuple[float, float]) -> Table:
    """The gain of all factors is the product of their gains alone, times some."""

    def table(random: Random) -> Costs:
        singles = {frozenset(factor): random.uniform(0.8, 1.7) for factor in "abcdef"}
        full = float(np.prod(list(singles.values()))) * random.uniform(*beyond)
        return {frozenset(): 1.0, **singles, frozenset("abcdef"): full}

    return table


def _operators(exponents: Callable[[Random, str], float], base: Callable[[Random, str], float] | None = None) -> Table:
    def table(random: Random) -> Costs:
        found: dict[object, float] = {}
        for name in OPERATORS:
            cost = base(random, name) if base else random.uniform(10, 1000)
            exponent = exponents(random, name)
            found |= {(name, size): cost * (size / SIZES[0]) ** exponent for size in SIZES}
        return found

    return table


def _crc(name: str) -> Table:
    """CRC over packet sizes in a shape that grows by a factor of up to four, as the size does."""
    shape = _shape(name, (1.2, 3.9))

    def table(random: Random) -> Costs:
        costs = 300 * shape(random, np.array(SIZES, dtype=float))
        return {("rte_net_crc", size): float(cost) for size, cost in zip(SIZES, costs, strict=True)}

    return table


def _power(low: float, high: float) -> Table:
    return _operators(lambda random, name: random.uniform(low, high))


def _one_in_proportion(random: Random, name: str) -> float:
    return random.uniform(1.0, 1.37) if name == "hash_lookup" else random.uniform(0.1, 0.3)


def _contrast(low: float, high: float) -> Table:
    return _operators(
        lambda random, name: 0.2, lambda random, name: 20 * (random.uniform(low, high) if name == "printf_file" else 1)
    )


def _dearest(low: float, high: float) -> Table:
    """Printf against the next one, which is CRC."""
    return _operators(
        lambda random, name: 0.2,
        lambda random, name: {"printf_file": 3000 * random.uniform(low, high), "rte_net_crc": 3000}.get(name, 50),
    )


# --- ranks


def _related(low: float, high: float, *, but_one: tuple[float, float] | None = None) -> Ranks:
    """Rank correlations drawn between two; ``but_one`` is for one of the series, with either sign."""

    def ranks(random: Random, series: int) -> Array:
        found = random.uniform(low, high, series)
        if but_one is not None:
            found[random.integers(series)] = random.uniform(*but_one) * random.choice((-1, 1))
        return found

    return ranks


# --- claims

Kind = Curve | Table | Ranks


@dataclass(frozen=True)
class Test:
    """Draws without the effect of a claim, by kind, and with it, and what the draws with it are."""

    without: Mapping[str, Kind]
    with_it: Kind
    effect: str


_SMOOTH = "constant line logarithm square"
_ALL = f"{_SMOOTH} step"
_BENT = "constant logarithm square step"
_LINE = Test(_shapes(_BENT, (1.5, 10)), _shape("line", (1.5, 10)), "a line that grows 1.5 to 10 times")
_IN_CACHES = "figure 2: L2 and L3 cost 1.25 to 1.6 and 1.8 to 3 times"

_ENTRIES = _shapes(_ALL, (1.2, 5))
_SMOOTH_ENTRIES = {name: _ENTRIES[name] for name in _SMOOTH.split()}

TESTS: Mapping[str, Test] = {
    "baldi2018:checksum-grows-with-bytes": _LINE,
    "baldi2018:lookup-depends-on-the-cache": Test(_shapes(_ALL, (1.0, 1.3)), _caches, _IN_CACHES),
    "baldi2018:forwarding-any-packet-size": Test(
        _shapes("line logarithm square step", (1.3, 3))
        | {f"falling {name}": _shape(name, (0.3, 0.77)) for name in ("line", "step")},
        _shape("constant", (1, 1)),
        "a constant",
    ),
    "gebert2016:fig8-latency-rises-with-load": Test(
        _shapes(_ALL, (1.0, 1.1)), _waiting, "waiting in front of a processor"
    ),
    "ren2025:crc-accelerates-here": Test(
        {name: _crc(name) for name in _ALL.split() if name != "square"} | {"in proportion": _power(1.0, 1.0)},
        _power(1.27, 1.37),
        "exponents of 1.27 to 1.37",
    ),
    "ren2025:other-operators-decelerate-here": Test(
        {"in proportion": _power(1.0, 1.0), "one of three in proportion": _operators(_one_in_proportion)},
        _power(0.06, 0.26),
        "exponents of 0.06 to 0.26",
    ),
    "ren2025:printf-costs-110-times-as-much-here": Test(
        {"up to 80 times the cost": _contrast(1, 80)}, _contrast(120, 600), "120 to 600 times the cost"
    ),
    "ren2025:printf-costs-most-here": Test(
        {"as costly": _dearest(1, 1), "all alike": _operators(lambda random, name: 0.2, lambda r, n: 100.0)},
        _dearest(2, 39),
        "2 to 39 times the next one",
    ),
    "scholz2021:fig2-cost-rises-in-parts": Test(_SMOOTH_ENTRIES, _caches, _IN_CACHES),
    "scholz2021:fig2-split-at-a-full-cache": Test(_ENTRIES, _caches, _IN_CACHES),
    "scholz2021:fig2-small-tables-are-alike": Test(
        _shapes("line logarithm square step", (1.35, 3), 10, 100), _caches, _IN_CACHES
    ),
    "scholz2021:fig2-cycles-double": Test(
        _shapes(_ALL, (1.0, 1.5), 1e3, 1e6), _shape("logarithm", (2.0, 4.0), 1e4, 1e6), "2 to 4 times the cycles"
    ),
    "scholz2021:fig2-cost-grows-with-entries": Test(
        {"constant": _shape("constant", (1, 1)), "step": _stepping}
        | {f"falling {name}": _falling(name) for name in ("line", "logarithm", "square")},
        _caches,
        _IN_CACHES,
    ),
    "scholz2021:fig2-l1-is-not-detected": Test(
        {**_SMOOTH_ENTRIES, "step at the full L1": _full_l1}, _caches, _IN_CACHES
    ),
    "scholz2021:fig2-l1-costs-less-than-l2": Test(_ENTRIES, _caches, _IN_CACHES),
    "scholz2021:fig3-cost-of-recirculation": _LINE,
    "scholz2021:header-writes-are-linear": _LINE,
    "scholz2021:parsed-headers-are-linear": _LINE,
    "scholz2021:tables-add-up": Test(
        {**_shapes(_BENT, (1.2, 5)), "line with a constant": _tables(1, 1)},
        _tables(0, 1, 0.1),
        "each table costs the same, 10 % more or less",
    ),
    "takeya2024:all-factors-here": Test({"up to twice": _cells((1, 2), {})}, _cells((3.5, 9), {}), "3.5 to 9 times"),
    "takeya2024:buffer-header-here": Test(
        {"worth up to half": _cells((6, 6), {"c": (1, 1.5)})}, _cells((6, 6), {"c": (2.3, 4)}), "worth 2.3 to 4 times"
    ),
    "takeya2024:batches-alone-here": Test(
        {"worth 1.6 to 3 times": _cells((6, 6), {"alone_f": (1.6, 3)})},
        _cells((6, 6), {"alone_f": (0.6, 1.25)}),
        "worth 0.6 to 1.25 times",
    ),
    "takeya2024:batches-together-here": Test(
        {"worth nothing": _cells((6, 6), {"f": (1, 1)})}, _cells((6, 6), {"f": (1.3, 3)}), "worth 1.3 to 3 times"
    ),
    "takeya2024:virtio-header-here": Test(
        {"worth nothing": _cells((6, 6), {"a": (1, 1)})}, _cells((6, 6), {"a": (1.3, 3)}), "worth 1.3 to 3 times"
    ),
    "takeya2024:zero-copy-here": Test(
        {"worth nothing": _cells((6, 6), {"e": (1, 1)})}, _cells((6, 6), {"e": (1.3, 3)}), "worth 1.3 to 3 times"
    ),
    "takeya2024:small-buffers-here": Test(
        {
            "worth 1.6 to 3 times": _cells((6, 6), {"d": (1.6, 3)}),
            "worth 0.6 to 0.8 times": _cells((6, 6), {"d": (0.6, 0.8)}),
        },
        _cells((6, 6), {"d": (0.9, 1.25)}),
        "worth 0.9 to 1.25 times",
    ),
    "takeya2024:zero-copy-alone-here": Test(
        {
            "worth 1.6 to 3 times": _cells((6, 6), {"alone_e": (1.6, 3)}),
            "worth 0.6 to 0.8 times": _cells((6, 6), {"alone_e": (0.6, 0.8)}),
        },
        _cells((6, 6), {"alone_e": (1.2, 1.4)}),
        "worth 1.2 to 1.4 times",
    ),
    "takeya2024:factors-together-here": Test(
        {"the product": _multiplied((1, 1))}, _multiplied((1.6, 5)), "1.6 to 5 times the product"
    ),
    "takeya2024:larger-headers-here": Test(
        _shapes(_ALL, (0.95, 1.05)), _shape("line", (0.24, 0.58)), "0.24 to 0.58 of the rate"
    ),
    "takeya2024:l1-decides": Test(
        {
            "unrelated": _related(0, 0),
            "unrelated on one server": _related(-0.9, -0.4, but_one=(0, 0)),
            "rank correlation of 0.4 to 0.9": _related(0.4, 0.9),
        },
        _related(-0.9, -0.4),
        "rank correlation of -0.9 to -0.4",
    ),
    "takeya2024:l2-and-l3-do-not": Test(
        {
            "rank correlation of 0.4 to 0.9": _related(0.4, 0.9),
            "of -0.9 to -0.4": _related(-0.9, -0.4),
            "of that size once": _related(0, 0, but_one=(0.4, 0.9)),
        },
        _related(0, 0),
        "unrelated",
    ),
}


# --- drawing and judging


def _noisy(random: Random, sigma: float, repetitions: int) -> Array:
    """Factors of the trials of a point."""
    outlying = random.uniform(size=repetitions) < 0.02
    return np.exp(sigma * random.standard_normal(repetitions)) * (1 + outlying * random.uniform(0.1, 0.5, repetitions))


@cache
def _claim(claim_key: str) -> Claim:
    ((_, claim),) = chosen_claims([claim_key])
    return claim


@cache
def _experiment(claim_key: str, quick: bool):
    """The swept values of the experiment of a claim, its repetitions, and its run without measurements."""
    claim = _claim(claim_key)
    assert claim.measure is not None
    pairs = [text.partition("=") for text in (*claim.measure.change, *(claim.measure.quick if quick else ()))]
    overrides = [(key.strip(), value.strip()) for key, _, value in pairs]
    experiment = load_experiment(claim.measure.experiment, overrides=overrides, parameters_of=component_parameters)
    spec = experiment.spec
    variables = list(experiment.points[0].values)
    run = MeasuredRun(
        table=pd.DataFrame(),
        variable=variables[0] if len(variables) == 1 else None,
        options=replace(fit_options(spec, None), threads=1),
        log_x=spec.model is not None and spec.model.x_scale == "log",
        marks=CACHES if variables == ["entries"] else (),
    )
    x = np.array([float(p.values[run.variable]) for p in experiment.points]) if run.variable else np.array([])
    return x, spec.trials.repetitions, run


def drawn(claim_key: str, made: Curve | Table, random: Random, *, quick: bool) -> MeasuredRun:
    """A run of the experiment of a claim in which a curve or a table was measured, with noise."""
    claim = _claim(claim_key)
    x, repetitions, run = _experiment(claim_key, quick)
    sigma = random.uniform(0.01, 0.03)
    if claim_key.startswith("takeya2024") and run.variable is None:
        costs = made(random)
        cells = {cell: FactorialCell(tuple(v / _noisy(random, sigma, repetitions))) for cell, v in costs.items()}
        return replace(run, factorial=Factorial(tuple("abcdef"), cells, "packet_rate", "Mpps"))
    if run.variable is None:
        costs = made(random)
        names, sizes = zip(*costs, strict=True)
        columns, values = {OPERATOR: names, PACKET_SIZE: sizes}, np.array(list(costs.values()))
    else:
        columns, values = {run.variable: x}, 100 * made(random, x)
    metric = _metric(claim)
    noise = np.concatenate([_noisy(random, sigma, repetitions) for _ in values])
    table = pd.DataFrame({name: np.repeat(np.array(column), repetitions) for name, column in columns.items()})
    table = table.assign(metric=metric, unit="", accepted=True, value=np.repeat(values, repetitions) * noise)
    return replace(run, table=table)


ALIKE = 0.8
"""Rank correlation of a column on one server with the same on another, as throughput and misses have it."""


def drawn_study(claim_key: str, made: Ranks, random: Random) -> eivu.Study:
    """The published data of a claim, each column in an order of its own that gives the rank correlations of a draw."""
    column, others = _ranked(claim_key)
    items = {server: read_study().items(server) for server in eivu.SERVERS}
    every = sorted(set().union(*(table.index for table in items.values())))

    def orders() -> Mapping[str, Array]:
        """A standard normal order of all items for each server, similar on all."""
        shared = random.standard_normal(len(every))
        return {s: ALIKE**0.5 * shared + (1 - ALIKE) ** 0.5 * random.standard_normal(len(every)) for s in items}

    base = orders()
    placed = {server: {column: base[server]} for server in items}
    series = [(s, o) for o in others for s, table in items.items() if len(table[[column, o]].dropna())]
    own = {other: orders() for other in others}
    for (server, other), rho in zip(series, made(random, len(series)), strict=True):
        normal = 2 * np.sin(np.pi * rho / 6)  # of the normal orders, for that rank correlation
        placed[server][other] = normal * base[server] + (1 - normal**2) ** 0.5 * own[other][server]
    tables = []
    for server, table in items.items():
        at = np.searchsorted(every, table.index)
        for name, order in placed[server].items():
            values = np.sort(table[name].to_numpy())  # what was not counted comes last
            table = table.assign(**{name: values[np.argsort(np.argsort(order[at]))]})
        tables.append(table.reset_index())
    return eivu.Study(pd.concat(tables))


read_study = cache(eivu.read_study)


def _ranked(claim_key: str) -> tuple[str, tuple[str, ...]]:
    check = _claim(claim_key).check
    assert check is not None
    return check.arguments["column"], tuple(check.arguments["others"])


def is_ranked(claim: Claim) -> bool:
    return claim.check is not None and claim.check.name == RANKED


def _metric(claim: Claim) -> str:
    assert claim.check is not None
    costs = claim.check.name.startswith("operator-") or claim.check.name == "cost-per-step"
    return str(claim.check.arguments.get("metric", "cost_cycles_per_packet" if costs else "cycles_per_packet"))


def passes(claim_key: str, run: MeasuredRun | eivu.Study) -> bool:
    claim = _claim(claim_key)
    assert claim.check is not None
    if is_ranked(claim):
        return not compare(claim.expect, CHECKS[RANKED](**claim.check.arguments, study=run))
    try:
        found = SHAPES[claim.check.name](run, **claim.check.arguments)
    except NoVerdictError:
        return False
    return not compare(claim.expect, found)


def shares(
    keys: Sequence[str], draws: int, quicks: Sequence[bool] = (False, True)
) -> dict[tuple[str, str, bool], float]:
    """The share of draws that pass, by claim, kind (``""`` is with the effect) and whether it is quick.

    Claims about the same experiment and the same kind share the draws.
    """
    alike: dict[tuple[str, Kind, bool], list[tuple[str, str]]] = {}
    for key in keys:
        for kind, made in (*TESTS[key].without.items(), ("", TESTS[key].with_it)):
            for quick in quicks:
                alike.setdefault((_series(key), made, quick), []).append((key, kind))
    passed: Counter[tuple[str, str, bool]] = Counter()
    for (series, made, quick), wanted in alike.items():
        seed = zlib.crc32(f"{series} {wanted[0]} {quick}".encode())
        for n in range(draws):
            random = np.random.default_rng((seed, n))
            if is_ranked(_claim(wanted[0][0])):
                run = drawn_study(wanted[0][0], made, random)
            else:
                run = drawn(wanted[0][0], made, random, quick=quick)
            for key, kind in wanted:
                passed[key, kind, quick] += passes(key, run)
    return {each: passed[each] / draws for quick in quicks for each in _each(keys, quick)}


def _each(keys: Sequence[str], quick: bool) -> Iterator[tuple[str, str, bool]]:
    return ((key, kind, quick) for key in keys for kind in (*TESTS[key].without, ""))


def _series(claim_key: str) -> str:
    """What claims share that may share draws."""
    claim = _claim(claim_key)
    return f"{claim.check}" if is_ranked(claim) else f"{claim.measure} {_metric(claim)}"


@dataclass(frozen=True)
class Row:
    """Shares of a claim that pass, each at all points and, of measured ones, with ``--quick``."""

    claim_key: str
    without: Mapping[str, tuple[float, ...]]
    with_it: tuple[float, ...]

    @property
    def good(self) -> bool:
        return max(map(max, self.without.values())) <= MOST_WITHOUT and min(self.with_it) >= LEAST_WITH


def rows(draws: int, keys: Sequence[str] = tuple(TESTS)) -> Iterator[Row]:
    """Rows of claims, those that share draws together."""
    for series in dict.fromkeys(map(_series, keys)):
        together = [key for key in keys if _series(key) == series]
        quicks = (False,) if is_ranked(_claim(together[0])) else (False, True)
        found = shares(together, draws, quicks)
        for key in together:
            every = {kind: tuple(found[key, kind, q] for q in quicks) for kind in (*TESTS[key].without, "")}
            yield Row(key, {kind: each for kind, each in every.items() if kind}, every[""])


def written(row: Row, draws: int) -> str:
    """The row of the table of the page."""
    kinds = list(row.without)
    percents = ", ".join(_percents(row.without[kind]) for kind in kinds)
    bound, effect = _escaped(_claim(row.claim_key).paper_text()), TESTS[row.claim_key].effect
    with_it, code = _percents(row.with_it), f"<!-- {code_digest(code_of(row.claim_key))} -->"
    return f"| `{row.claim_key}` | {bound} | {', '.join(kinds)} | {percents} | {effect} | {with_it} | {draws} {code} |"


def code_of(claim_key: str) -> Path:
    """The file with the check of a claim."""
    return RANK_CHECKS if is_ranked(_claim(claim_key)) else SHAPE_CHECKS


@cache
def code_digest(file: Path) -> str:
    """Digest of code without its texts."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [n for n in body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    return f"{zlib.crc32(ast.dump(tree).encode()):08x}"


HEAD = """
The table shows the percentage that passes: the first number with all points, the second with `--quick`. The last rows
are rank correlations of published data, which have no `--quick`.

| claim | bound | without the effect | pass | with the effect | pass | draws |
|---|---|---|---|---|---|---|
"""


def put_on_page(found: Sequence[str]) -> None:
    """Put rows on the page, beside those of other claims that are there, in the order of the tests."""
    head, rest = PAGE.read_text().split(BEGIN)
    known, tail = rest.split(END)
    lines = [*(line for line in known.splitlines() if line.startswith("| `")), *found]
    by_key = {line.split("`")[1]: line for line in lines}
    table = "\n".join(by_key[key] for key in TESTS if key in by_key)
    PAGE.write_text(f"{head}{BEGIN}{HEAD}{table}\n\n{END}{tail}")


def _escaped(text: str) -> str:
    return text.replace(">", "\\>").replace("<", "\\<")


def _percents(shares: tuple[float, ...]) -> str:
    return " / ".join(f"{100 * share:.3g}" for share in shares)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the table on docs/reproducing.md")
    parser.add_argument("claims", nargs="*", default=list(TESTS))
    arguments = parser.parse_args()
    good = True
    for row in rows(arguments.draws, arguments.claims):
        print(f"{'good' if row.good else 'BAD '} {written(row, arguments.draws)}", flush=True)
        if arguments.write:
            put_on_page([written(row, arguments.draws)])
        good &= row.good
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
