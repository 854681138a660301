"""Figures of operators: what is said is in them, told apart without colour, and the same bytes every time."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text
from support.operators import CURVES, made_costs, made_platform, power

from p4perf.errors import NoVerdictError
from p4perf.evaluation.papers.ren2025 import OpqOptions, Threshold, analyse, load_platforms
from p4perf.evaluation.plots.operators import contrast_figure, cost_figure, quadrant_figure
from p4perf.evaluation.plots.style import PAPER, PlotInfo, save_figure


def here():
    rows = [made_costs(name, curve, seed=n) for n, (name, curve) in enumerate(CURVES.items())]
    return made_platform(*rows)


@pytest.fixture(scope="module")
def three():
    return analyse([*load_platforms("ren2025"), here()])


def said(figure):
    figure.canvas.draw()
    return [text.get_text() for text in figure.findobj(Text)]


def points(axes):
    """Lines that are single markers of operators, by label."""
    return {line.get_label(): line for line in axes.lines if ": " in str(line.get_label())}


def test_the_chart_of_quadrants(three):
    figure = quadrant_figure(three, info=PlotInfo(machine="Some CPU", date="2026-11-21"))
    (axes,) = figure.axes
    found = points(axes)
    assert {"Arm: CRC", "x86: htons", "here: printf_file"} <= found.keys()
    assert "here: htons" not in found
    assert len(found) == 12 + 6
    assert (found["Arm: CRC"].get_xdata()[0], found["Arm: CRC"].get_ydata()[0]) == (1.37, 823)
    words = said(figure)
    for text in ("LATENT TRAP", "HIGH STARTUP COST", "IDEAL OPERATOR", "EMERGENT BOTTLENECK", "printf", "printf_file"):
        assert text in words
    assert any("not drawn: htons (below 1 cycles)" in word for word in words)
    assert any(word.startswith("split: median of all rows") for word in words)
    assert axes.get_yscale() == "log"


def test_arrows_are_the_shifts(three):
    (axes,) = quadrant_figure(three).axes
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    drawn = [s for s in three.shifts if s.end.profile.base is not None]
    assert len(arrows) == len(drawn) == 6 + 5
    assert sum(a.get_label() == "shift" for a in arrows) == sum(bool(s.changed) for s in drawn) > 0
    assert len({a.get_linestyle() for a in arrows}) == 2


def test_platforms_are_told_apart_without_colour(three):
    (axes,) = quadrant_figure(three).axes
    found = points(axes)
    kinds = {name.partition(":")[0]: (line.get_marker(), line.get_mfc()) for name, line in found.items()}
    assert len({marker for marker, _ in kinds.values()}) == 3
    assert kinds["Arm"][1] == kinds["x86"][1] == PAPER
    assert to_hex(kinds["here"][1]) != PAPER


def test_labels_do_not_hide_each_other(three):
    figure = quadrant_figure(three)
    figure.canvas.draw()
    (axes,) = figure.axes
    names = {p.profile.operator for p in three.placements}
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text() in names]
    assert len(boxes) == 18
    frame = axes.get_window_extent()
    clashes = sum(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])
    assert clashes <= 1
    assert all(frame.x0 - 2 < box.x0 and box.x1 < frame.x1 + 2 for box in boxes)


@pytest.mark.thorough
def test_each_platform_has_its_line_if_the_rule_says_so(three):
    found = analyse(three.platforms, OpqOptions(threshold=Threshold.parse("platform-median")))
    words = said(quadrant_figure(found))
    assert "86.5 cycles (Arm)" in words
    assert "38 cycles (x86)" in words


def test_nothing_to_draw():
    found = analyse([made_platform(made_costs(sizes=(64,)))])
    with pytest.raises(NoVerdictError, match="nothing to draw"):
        quadrant_figure(found)


def test_costs_over_size(three):
    figure = cost_figure(three)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["Arm (published)", "x86 (published)", "here"]
    assert all(axes.get_yscale() == "log" and axes.get_xlabel() == "packet size [B]" for axes in panels)
    crc = [line for line in panels[0].lines if line.get_label() == "CRC"]
    assert crc[0].get_ydata() == pytest.approx([823, 2127.2, 5498.2], abs=0.1)
    assert crc[0].get_mfc() == PAPER
    (below,) = [line for line in panels[2].lines if line.get_label() == "htons below"]
    assert (below.get_marker(), set(below.get_ydata())) == ("v", {1.0})
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert "CRC / rte_net_crc" in labels
    assert "below the resolution" in labels
    handles = legend.get_lines()
    assert len({(h.get_marker(), str(h._dash_pattern)) for h in handles}) == len(handles)


def test_many_platforms_have_several_rows():
    found = analyse([made_platform(made_costs(platform=name), name=name) for name in "abcd"])
    panels = [axes for axes in cost_figure(found).axes if axes.get_visible()]
    assert len({round(axes.get_position().y0, 3) for axes in panels}) == 2


def test_bars_side_by_side(three):
    figure = contrast_figure(three)
    (axes,) = figure.axes
    bars = [c for c in axes.containers if isinstance(c, BarContainer)]
    assert [bar.patches[0].get_height() for bar in bars[:4]] == [12006, 108, 29129, 49]
    assert len({bar.patches[0].get_hatch() for bar in bars}) == 2
    words = said(figure)
    assert "111 ×" in words
    assert "594 ×" in words
    assert axes.get_yscale() == "log"


def test_a_bar_below_the_resolution():
    rows = made_costs("dear", power(900, 0.1), noise=0), made_costs("cheap", lambda s: 0.3, resolution=2)
    found = analyse([made_platform(*rows)], OpqOptions(contrasts=(("dear", "cheap"),)))
    words = said(contrast_figure(found))
    assert "below 2" in words
    assert "more than 450 ×" in words
    with pytest.raises(NoVerdictError, match="two operators"):
        contrast_figure(analyse([made_platform(made_costs("dear"))]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("figure", [quadrant_figure, cost_figure, contrast_figure])
def test_the_same_bytes_every_time(three, figure, tmp_path):
    for name in ("a.svg", "b.svg", "a.png"):
        save_figure(figure(three), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").stat().st_size > 10_000
