"""Factor analysis: effects that are known come out, and intervals hold them."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import p4perf

from p4perf.errors import DataError, NoVerdictError, UsageError
from p4perf.evaluation.papers.takeya2024.factors import (
    Factorial,
    FactorialCell,
    analyse,
    factorial_from_csv,
    factorial_from_table,
    fit_effects,
)
from p4perf.evaluation.plots.factors import cache_figure, ladder_figure

FACTORS = ("a", "b", "c")


def subsets(factors):
    for size in range(len(factors) + 1):
        yield from (frozenset(some) for some in itertools.combinations(factors, size))


def made(value, *, factors=FACTORS, repetitions=1, noise=0.0, seed=0, **more):
    """Cells whose value is a function of the factors that are there."""
    generator = np.random.default_rng(seed)
    cells = {}
    for present in subsets(factors):
        drawn = value(present) * np.exp(noise * generator.standard_normal(repetitions))
        cells[present] = FactorialCell(tuple(float(v) for v in drawn), 1 / (value(present) or 1))
    return Factorial(factors, cells, "packet_rate", "Mpps", **more)


def product_of(ratios, synergy=1.0):
    def value(present):
        together = synergy if present == set(ratios) else 1.0
        return 10 * math.prod(ratios[name] for name in present) * together

    return value


RATIOS = {"a": 2.0, "b": 0.8, "c": 3.0}


def test_independent_factors_have_their_ratios_and_nothing_else():
    found = analyse(made(product_of(RATIOS)))
    for name, ratio in RATIOS.items():
        assert found.main.of(name).ratio.value == pytest.approx(ratio)
        assert found.single[name].value == pytest.approx(ratio)
        assert found.last[name].value == pytest.approx(ratio)
    assert all(e.ratio.value == pytest.approx(1) for e in found.pairs.effects if len(e.factors) == 2)
    assert found.main.r_squared == pytest.approx(1)
    assert found.main.base == pytest.approx(10)
    assert found.full.value == pytest.approx(4.8)
    assert found.synergy.value == pytest.approx(1)
    assert [rung.factor for rung in found.ladder.rungs] == ["c", "a", "b"]
    assert [rung.value for rung in found.ladder.rungs] == pytest.approx([30, 60, 48])
    assert found.best_without("c") == pytest.approx(20)


@settings(max_examples=40)
@given(st.lists(st.floats(0.2, 5), min_size=2, max_size=4), st.floats(0.3, 4))
def test_two_factors_that_do_more_together_have_an_interaction(ratios, boost):
    factors = tuple("abcd"[: len(ratios)])

    def value(present):
        pair = boost if {"a", "b"} <= present else 1.0
        return pair * math.prod(r for f, r in zip(factors, ratios, strict=True) if f in present)

    found = analyse(made(value, factors=factors))
    assert found.pairs.of("a", "b").ratio.value == pytest.approx(boost)
    assert found.pairs.of("a").ratio.value == pytest.approx(ratios[0])
    assert found.pairs.r_squared == pytest.approx(1) or boost == pytest.approx(1)
    # On average over the other's presence, half of the interaction in the logarithm falls to each.
    assert found.main.of("a").ratio.value == pytest.approx(ratios[0] * math.sqrt(boost))
    assert found.synergy.value == pytest.approx(boost)


def test_less_can_be_better():
    higher = analyse(made(product_of(RATIOS)))
    lower = analyse(made(lambda p: 1 / product_of(RATIOS)(p), higher_is_better=False))
    assert [e.ratio.value for e in lower.main.effects] == pytest.approx([e.ratio.value for e in higher.main.effects])
    assert [r.factor for r in lower.ladder.rungs] == [r.factor for r in higher.ladder.rungs]
    assert lower.best_without("c") == pytest.approx(1 / 20)


def test_intervals_come_from_repetitions_and_hold_the_truth():
    held = 0
    for seed in range(20):
        found = analyse(made(product_of(RATIOS), repetitions=7, noise=0.05, seed=seed))
        effect = found.main.of("a")
        assert effect.ratio.low < effect.ratio.value < effect.ratio.high
        held += 2.0 in effect.ratio
    assert held >= 14
    assert not analyse(made(product_of(RATIOS))).main.of("a").ratio.bounded


def test_equal_seeds_give_equal_intervals():
    cells = made(product_of(RATIOS), repetitions=3, noise=0.1)
    assert analyse(cells, seed=4) == analyse(cells, seed=4)
    assert analyse(cells, seed=4) != analyse(cells, seed=5)


@pytest.mark.parametrize(
    ("synergy", "noise", "verdict"),
    [(2.0, 0.02, "super-additive"), (0.5, 0.02, "sub-additive"), (1.0, 0.1, "as if independent")],
)
def test_whether_factors_do_more_together(synergy, noise, verdict):
    cells = made(product_of(RATIOS, synergy), repetitions=5, noise=noise)
    assert analyse(cells).additivity == verdict


def test_cells_that_are_missing():
    whole = made(product_of(RATIOS))
    cells = {present: cell for present, cell in whole.cells.items() if present not in ({"a"}, {"b", "c"})}
    found = analyse(Factorial(FACTORS, cells))
    assert found.single["a"] is None
    assert found.last["a"] is None
    assert found.synergy is None
    assert found.additivity == "unknown"
    assert found.without_single == ("a",)
    assert found.main.of("a").ratio.value == pytest.approx(2)
    assert found.ladder.untried[0] == ("a",)
    assert [rung.factor for rung in found.ladder.rungs] == ["c", "a", "b"]


def test_without_the_base_there_is_no_ladder():
    whole = made(product_of(RATIOS))
    found = analyse(Factorial(FACTORS, {p: c for p, c in whole.cells.items() if p}))
    assert found.ladder is None
    with pytest.raises(DataError, match="there is no ladder"):
        ladder_figure(found)


def test_cells_that_do_not_tell_factors_apart():
    whole = made(product_of(RATIOS))
    together = {p: c for p, c in whole.cells.items() if ("a" in p) == ("b" in p)}
    with pytest.raises(DataError, match="do not tell 3 effects apart"):
        analyse(Factorial(FACTORS, together))
    assert len(fit_effects(whole, pairs=True).effects) == 6


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_values_that_have_no_logarithm(value):
    with pytest.raises(DataError, match="not above 0"):
        made(lambda p: value if p == {"a"} else 1.0)


# --- where cells come from


def table(values, **more):
    rows = []
    for present, repetitions in values.items():
        for repetition, value in enumerate(repetitions):
            columns = {name: int(name in present) for name in FACTORS}
            rows.append(
                {"point": str(sorted(present)), "repetition": repetition, "attempt": 0, **columns, **more}
                | {"metric": "packet_rate", "value": value, "unit": "Mpps", "accepted": value > 0, "flags": ""}
            )
    return pd.DataFrame(rows)


def test_cells_of_a_table_are_its_accepted_values():
    values = {present: [2.0 + len(present), 3.0 + len(present)] for present in subsets(FACTORS)}
    values[frozenset("a")] = [5.0, -1.0]
    values[frozenset("ab")] = [-1.0]
    cells = factorial_from_table(table(values), "packet_rate", FACTORS)
    assert cells.cells[frozenset("a")].values == (5.0,)
    assert cells.skipped == ("a + b",)
    assert cells.value("ab") is None
    assert len(cells.cells) == 7
    assert cells.repetitions == (1, 2)
    assert cells.unit == "Mpps"
    with pytest.raises(NoVerdictError):
        factorial_from_table(table({p: [-1.0] for p in values}), "packet_rate", FACTORS)


def test_other_variables_have_to_be_fixed():
    values = {present: [1.0] for present in subsets(FACTORS)}
    both = pd.concat([table(values, frame=64), table({p: [3.0] for p in values}, frame=128)])
    with pytest.raises(UsageError, match="frame varies besides the factors"):
        factorial_from_table(both, "packet_rate", FACTORS)
    cells = factorial_from_table(both, "packet_rate", FACTORS, where={"frame": "128"})
    assert cells.value(()) == 3.0
    with pytest.raises(UsageError, match="no measurements at frame = 1"):
        factorial_from_table(both, "packet_rate", FACTORS, where={"frame": "1"})
    with pytest.raises(UsageError, match="size is not a swept variable"):
        factorial_from_table(both, "packet_rate", FACTORS, where={"size": "1"})
    with pytest.raises(DataError, match="frame is not a factor"):
        factorial_from_table(both, "packet_rate", ("a", "frame"), where={"b": "0", "c": "0"})


def test_cells_of_a_file(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("name,a,b,rate,misses\nx,0,0,10,1\ny,1,0,20,0.5\nz,0,1,30,\nw,1,1,80,0.1\nw,1,1,60,0.1\nv,1,1,,\n")
    cells = factorial_from_csv(path, "rate", cache="misses")
    assert cells.factors == ("a", "b")
    assert cells.cells[frozenset("ab")].values == (80.0, 60.0)
    assert cells.cells[frozenset("b")].cache is None


@pytest.mark.parametrize(
    ("text", "factors", "message"),
    [
        ("", (), "is empty"),
        ("a,b,y\n", (), "has no rows"),
        ("a,b\n0,1\n", (), "there is no column 'y'"),
        ("a,b,y\n0,2,1\n1,3,1\n", ("a", "b"), "cells.csv:2: b is '2', not 0 or 1"),
        ("a,b,y\n0,0,x\n1,0,1\n", (), "cells.csv:2: column 'y': 'x' is not a finite number"),
        ("a,b,y\n2,3,1\n", (), "has no column that is 0 or 1"),
        ("a,b,y\n0,0,1\n", ("a", "c"), "there is no column 'c'"),
        ("a,y\n0,1\n1,2\n", (), "needs two factors"),
    ],
)
def test_files_that_have_no_cells(tmp_path, text, factors, message):
    path = tmp_path / "cells.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        factorial_from_csv(path, "y", factors)
    assert message in str(caught.value)


# --- figures and the command


def test_figures_show_every_cell_and_every_step():
    found = analyse(made(product_of(RATIOS), cache="misses per packet"))
    axes = cache_figure(found).axes[0]
    drawn = sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "o")
    assert drawn == 8
    assert axes.get_xlabel() == "misses per packet"
    assert {text.get_text() for text in axes.texts} == {"base", "a", "b", "c", "all"}
    steps = ladder_figure(found).axes[0]
    assert [label.get_text() for label in steps.get_yticklabels()] == ["base", "+ c", "+ a", "+ b"]
    assert [bar.get_width() for bar in steps.patches] == pytest.approx([10, 20, 30, -12])


def test_no_figure_over_a_cache_use_that_is_not_known():
    whole = made(product_of(RATIOS))
    cells = {p: FactorialCell(c.values) for p, c in whole.cells.items()}
    with pytest.raises(DataError, match="no cache use"):
        cache_figure(analyse(Factorial(FACTORS, cells)))


SPEC = """\
name: mine/factorial
program: {component: match_action_table, parameters: {entries: 1000, key_bits: 64, action_data_bytes: 4}}
variants:
  few: {title: fewer entries, set: {entries: 10}}
  many: {set: {program.parameters.entries: 100000}}
  wide: {set: {traffic.frame_size: 256}}
sweep: {multiplex: [few, wide]}
"""


@pytest.mark.thorough
def test_a_run_of_combined_variants_is_taken_apart(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    assert p4perf("run", "spec.yaml", "--target", "fake", "-o", "runs", "--quiet", cwd=tmp_path).code == 0
    (run,) = (tmp_path / "runs").iterdir()
    shown = json.loads(p4perf("show", run, "--format", "json", cwd=tmp_path).out)
    assert [(row["few"], row["wide"]) for row in shown["rows"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    # It is complete, and stays so.
    resumed = p4perf("resume", run, cwd=tmp_path)
    assert resumed.code == 0
    assert "12 of them finished before" in resumed.err
    done = p4perf("analyse", "factors", run, "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["kind"] == "factors"
    assert answer["metric"] == "cycles_per_packet"
    assert answer["higher_is_better"] is False
    assert [row["factor"] for row in answer["rows"]] == ["few", "wide"]
    assert answer["rows"][0]["title"] == "fewer entries"
    # The stand-in knows nothing of frame sizes, and has one cost up to 1000 entries.
    assert answer["rows"][1]["effect"] == pytest.approx(1, abs=0.02)
    assert answer["rows"][1]["effect_low"] <= 1 <= answer["rows"][1]["effect_high"]
    assert any(plot.endswith("_ladder.svg") for plot in answer["plots"])
    table_ = p4perf("analyse", "factors", run, cwd=tmp_path)
    assert "4 of 4 combinations" in table_.err
    rate = json.loads(
        p4perf("analyse", "factors", run, "--metric", "packet_rate", "--format", "json", cwd=tmp_path).out
    )
    assert rate["higher_is_better"] is True
    wrong = p4perf("analyse", "factors", run, "--lower-is-better", cwd=tmp_path)
    assert wrong.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv", "--metric", "y"], "nothing.csv"),
        (["cells.csv"], "a file needs --metric"),
        (["cells.csv", "--metric", "y", "--where", "a=1"], "has no --where"),
        (["cells.csv", "--metric", "z"], "there is no column 'z'"),
    ],
)
def test_questions_that_are_wrong(tmp_path, arguments, message):
    (tmp_path / "cells.csv").write_text("a,b,y\n0,0,1\n1,0,2\n0,1,3\n1,1,6\n")
    done = p4perf("analyse", "factors", *arguments, cwd=tmp_path)
    assert done.code in (2, 3)
    assert message in done.err
    assert "Traceback" not in done.err


def test_figures_of_a_file(tmp_path):
    (tmp_path / "cells.csv").write_text("a,b,y,m\n0,0,1,4\n1,0,2,3\n0,1,3,2\n1,1,9,1\n")
    done = p4perf("analyse", "factors", "cells.csv", "--metric", "y", "--cache", "m", "-o", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "super-additive" in done.err
    found = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert found == [f"factors_y_{kind}.{suffix}" for kind in ("cache", "ladder") for suffix in ("png", "svg")]
