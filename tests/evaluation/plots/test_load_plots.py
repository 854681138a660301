"""Figures of loss, latency and throughput: true values, honest axes, everything said, the same bytes every time."""

import math
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.load import LatencyHistogram
from p4perf.evaluation.plots.load import (
    OfferedLoad,
    RateBound,
    ThroughputCurve,
    latency_distribution_figure,
    latency_over_load_figure,
    line_rate_mpps,
    loss_figure,
    throughput_figure,
)
from p4perf.evaluation.plots.style import COLOURS, MARKERS, PAPER, PlotInfo, plain, save_figure

INFO = PlotInfo(machine="Some CPU", date="2026-11-21")
LOADS = (0.1, 0.5, 0.9, 1.0)
NDR, PDR = RateBound("NDR", 0.9, 0.89, 0.91), RateBound("PDR", 0.93, 0.92, 0.95, 0.005)
SIZES = np.array([64.0, 128, 256, 512, 1024, 1280, 1518])


def exponential(mean_ns, count=2000, start_ns=5000):
    ranks = (np.arange(count) + 0.5) / count
    return LatencyHistogram.from_values(start_ns - mean_ns * np.log(1 - ranks))


def constant(value_us, samples=100):
    return LatencyHistogram.from_values([round(1000 * value_us)] * samples)


def curves():
    floor = exponential(100, start_ns=3000)
    return [OfferedLoad(x, 10 * x, (0.0,), 1000, False, (exponential(1000 / x),), floor) for x in (0.1, 0.9)]


def lines():
    """Of the third load there are too few samples for the 90th percentile, and no floor."""
    repeated = [[5, 6, 7], [6, 6, 6], [9, 10, 8], [30, 50, 40]]
    found = []
    for x, values, floor in zip(LOADS, repeated, (3.0, 3.0, None, 3.1), strict=True):
        latencies = tuple(constant(value, 50 if x == 0.9 else 100) for value in values)
        found.append(OfferedLoad(x, 10 * x, (0.0,), 1000, x == 1.0, latencies, floor and constant(floor)))
    return found


def losing(*ratios):
    return [OfferedLoad(x, 10 * x, each, 10_000_000, x == 0.5) for x, each in zip(LOADS, ratios, strict=True)]


def losses():
    return losing((0, 0, 0), (0, 0, 3e-6), (2e-5, 4e-5, 0), (0.2, 0.2, 0.1))


def throughputs():
    rate = np.minimum(13.0, [0.95 * line_rate_mpps(size, 25) for size in SIZES])
    flags = (True,) + (False,) * 6
    return [
        ThroughputCurve("NDR", SIZES, 0.9 * rate, 0.85 * rate, 0.92 * rate, flags),
        ThroughputCurve("PDR", SIZES, rate, 0.99 * rate, rate, (False,) * 7),
    ]


def every_figure():
    return {
        "cumulative": latency_distribution_figure(curves(), info=INFO),
        "tail": latency_distribution_figure(curves(), complementary=True, info=INFO),
        "over": latency_over_load_figure(lines(), info=INFO),
        "loss": loss_figure(losses(), bounds=[NDR, PDR], info=INFO),
        "throughput": throughput_figure(throughputs(), info=INFO),
    }


@pytest.fixture(scope="module")
def figures():
    return every_figure()


def said(figure):
    figure.canvas.draw()
    return {text.get_text() for text in figure.findobj(Text)}


def points(axes, colour=None):
    """What stands as markers in axes: x, y, and whether hollow."""
    found = []
    for line in axes.lines:
        known = line.get_marker() in MARKERS
        if known and line.get_linestyle() == "None" and (colour is None or line.get_markeredgecolor() == colour):
            hollow = to_hex(line.get_markerfacecolor()) == PAPER
            found += [(float(x), float(y), hollow) for x, y in zip(*line.get_data(), strict=True)]
    return sorted(found)


def test_line_rates_are_those_of_rfc_2544():
    # RFC 2544, appendix B: 14 880 frames of 64 bytes per second fill 10 Mbit/s, 812 of 1518.
    assert line_rate_mpps(64, 0.01) * 1e6 == pytest.approx(14_880, abs=1)
    assert line_rate_mpps(1518, 0.01) * 1e6 == pytest.approx(812, abs=1)
    assert line_rate_mpps(64, 10) == pytest.approx(14.880952)
    assert line_rate_mpps(64, 100) == pytest.approx(148.80952)


def test_cumulative_distributions(figures):
    (axes,) = figures["cumulative"].axes
    assert axes.get_xscale() == "log"
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0.0
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    whole = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert len(dashed) == len(whole) == 2
    assert [a.get_color() for a in dashed] == [b.get_color() for b in whole] == list(COLOURS[:2])
    x, y = whole[0].get_data()
    value_us, share = exponential(10_000).cumulative()
    assert y[0] == 0.0
    assert (x[1:] == value_us).all()
    assert (y[1:] == share).all()
    assert {"10 % (1 Mpps) (2000 samples)", "dashed: noise floor of the link, same load", "latency [µs]"} <= said(
        figures["cumulative"]
    )


def test_tails_are_those_of_the_distribution(figures):
    (axes,) = figures["tail"].axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    thick = [line for line in axes.lines if line.get_linewidth() > 1.5]
    x, y = thick[0].get_data()
    # The share above x of an exponential distribution beyond 5 µs: exp(-(x - 5) / mean). Just before x is y.
    assert y[0] == 1.0
    middle = slice(100, -5)
    assert y[middle] == pytest.approx(np.exp(-(x[middle] - 5) / 10), rel=0.05)
    assert y[-1] >= 10 / 2000 * (1 - 1e-9)
    thin = [line for line in axes.lines if line.get_linewidth() == 0.7]
    assert all((line.get_ydata()[1:] < 10 / 2000).all() for line in thin)
    assert min(line.get_ydata()[-1] for line in thin) == pytest.approx(1 / 2000)
    assert axes.get_ylim()[0] < 1 / 2000
    assert {"thin: fewer than 10 samples beyond", "p50", "p99", "share of samples above"} <= said(figures["tail"])
    assert "p99.99" not in said(figures["tail"])


def test_a_single_latency_and_zero_can_be_drawn():
    single = OfferedLoad(None, 1.0, (0.0,), 1, latencies=(LatencyHistogram.from_values([0]),))
    for complementary in (False, True):
        figure = latency_distribution_figure([single], complementary=complementary)
        figure.canvas.draw()
        low, high = figure.axes[0].get_xlim()
        assert low < 0.001 < high


def test_percentiles_over_load(figures):
    (axes,) = figures["over"].axes
    assert axes.get_yscale() == "log"
    assert axes.get_xlim()[0] == 0.0
    median = points(axes, COLOURS[0])
    assert [(x, hollow) for x, _, hollow in median] == [(0.1, False), (0.5, False), (0.9, False), (1.0, True)]
    assert [y for _, y, _ in median] == pytest.approx([6, 6, 9, 40], rel=1e-3)
    assert points(axes, COLOURS[1]) == [*median[:2], median[3]]
    assert points(axes, COLOURS[2]) == points(axes, COLOURS[3]) == []
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((5, 50), rel=1e-3)
    floors = [line for line in axes.lines if line.get_linestyle() == "--" and line.get_color() == COLOURS[0]]
    (floor,) = (line.get_xydata() for line in floors)
    assert floor == pytest.approx(np.array([[0.1, 3.0], [0.5, 3.0], [1.0, 3.1]]), rel=1e-3)
    assert {
        "p99.9: no supported value",
        "median and range of 3 repetitions",
        "hollow: has quality flags",
        "offered load [fraction of the maximum]",
        "latency [µs]",
        "Some CPU · 2026-11-21",
    } <= said(figures["over"])


def test_a_legend_says_only_what_is_drawn():
    words = said(latency_over_load_figure([OfferedLoad(x, 1.0, (0.0,), 1, latencies=(constant(5),)) for x in LOADS]))
    assert not [word for word in words if "hollow" in word or "dashed" in word or "repetitions" in word]
    assert "offered load [fraction of the maximum]" in words


def test_zero_loss_stands_in_its_own_band(figures):
    top, zero = figures["loss"].axes
    assert top.get_yscale() == "log"
    assert zero.get_yscale() == "linear"
    drawn = [point for point in points(top) if point[1] > 0]
    assert drawn == [(0.9, 2e-5, False), (1.0, 0.2, False)]
    assert points(zero, COLOURS[0]) == [(0.1, 0.0, False), (0.5, 0.0, True)]
    dots = {
        (float(x), float(y)) for a in (top, zero) for d in a.lines if d.get_marker() == "." for x, y in d.get_xydata()
    }
    assert dots == {
        (float(x), y) for x, values in zip(LOADS, (each.losses for each in losses()), strict=True) for y in values
    }
    low, high = top.get_ylim()
    assert low < 1e-6
    assert high > 1.0
    assert zero.get_xlim() == top.get_xlim()
    labels = [tick.get_text() for tick in zero.get_yticklabels()]
    assert labels == ["0"]
    lines = {float(line.get_xdata()[0]) for line in top.lines if len(set(line.get_xdata())) == 1}
    assert {0.9, 0.93} <= lines
    spans = [(p.get_x(), p.get_x() + p.get_width()) for p in top.patches]
    assert spans == [pytest.approx((0.89, 0.91)), pytest.approx((0.92, 0.95))]
    assert {
        "NDR",
        "PDR",
        "NDR: 0.9 (bounds 0.89 to 0.91)",
        "PDR (0.5 % loss): 0.93 (bounds 0.92 to 0.95)",
        "loss ratio",
        "tolerated loss: 0.005",
    } <= said(figures["loss"])
    assert "0: none of 10\u2009000\u2009000 frames or more" in said(figures["loss"])


def test_names_of_close_bounds_do_not_hide_each_other():
    close = [RateBound(name, value, value, value) for name, value in (("A", 0.5), ("B", 0.501), ("C", 0.502))]
    figure = loss_figure(losses(), bounds=close)
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["A", "B"]
    assert {"A: 0.5 (bounds 0.5 to 0.5)", "C: 0.502 (bounds 0.502 to 0.502)"} <= said(figure)


def test_loss_everywhere_zero_and_everywhere_total():
    for value in (0.0, 1.0):
        figure = loss_figure(losing(*[(value,)] * 4))
        figure.canvas.draw()
        top, zero = figure.axes
        assert len(points(zero, COLOURS[0])) == (4 if value == 0 else 0)
        assert top.get_ylim()[0] <= 0.1 <= 1 <= top.get_ylim()[1]


def test_throughput_against_line_rates(figures):
    (axes,) = figures["throughput"].axes
    ndr = throughputs()[0]
    assert [(x, y) for x, y, _ in points(axes, COLOURS[0])] == list(zip(SIZES, ndr.rate_mpps, strict=True))
    assert [hollow for *_, hollow in points(axes, COLOURS[0])] == [True] + [False] * 6
    bars = axes.collections[0].get_segments()
    assert np.array(bars)[:, :, 1] == pytest.approx(np.column_stack([ndr.low_mpps, ndr.high_mpps]))
    rates = [line.get_xydata() for line in axes.lines if len(line.get_xdata()) == 100]
    assert [float(line[0][1]) for line in rates] == pytest.approx([14.880952, 37.202381, 59.523810, 148.80952])
    for line in rates:
        assert line[:, 1] * (line[:, 0] + 20) == pytest.approx(line[0][1] * 84)
    words = said(figures["throughput"])
    assert {
        "10 Gbit/s",
        "25 Gbit/s",
        "40 Gbit/s",
        "100 Gbit/s",
        "frame size with FCS [B]",
        "throughput [Mpps]",
    } <= words
    assert {"NDR with interval", "line rate of a link", "64", "1518"} <= words


def test_throughput_of_one_size():
    one = ThroughputCurve("NDR", *np.array([[64.0], [3.0], [2.9], [3.1]]), (False,))
    assert "64" in said(throughput_figure([one]))


@pytest.mark.parametrize("name", ["cumulative", "tail", "over", "loss", "throughput"])
def test_texts_are_inside_and_hide_no_other(figures, name):
    figure = figures[name]
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    boxes = {}
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            boxes[(text.get_text(), id(text))] = text.get_window_extent()
    limits = [axis.get_view_interval() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    assert limits
    ticks = {
        id(tick.label1)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    shown = {key: box for key, box in boxes.items() if key[1] not in ticks}
    for (word, _), box in shown.items():
        assert box.x0 >= 0, word
        assert box.y0 >= 0, word
        assert box.x1 <= width, word
        assert box.y1 <= height, word
    for (one, first), (other, second) in combinations(shown.items(), 2):
        assert not first.overlaps(second), (one, other)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_bytes_every_time(figures, tmp_path, suffix):
    again = every_figure()
    for name in ("tail", "loss"):
        for folder, figure in (("a", figures[name]), ("b", again[name])):
            save_figure(figure, tmp_path / folder / f"{name}.{suffix}")
        assert (tmp_path / "a" / f"{name}.{suffix}").read_bytes() == (tmp_path / "b" / f"{name}.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: latency_distribution_figure([]), "no latency distribution to draw"),
        (lambda: latency_over_load_figure([]), "no latency to draw"),
        (lambda: latency_over_load_figure(losing(*[(0.0,)] * 4)), "no load has an accepted value"),
        (lambda: loss_figure([]), "no loss ratio to draw"),
        (lambda: loss_figure(losing(*[()] * 4)), "no load has an accepted value"),
        (lambda: throughput_figure([]), "no throughput to draw"),
    ],
)
def test_nothing_to_draw_is_an_error(draw, said):
    with pytest.raises(UsageError, match=said):
        draw()


@pytest.mark.parametrize(
    "make",
    [
        lambda: OfferedLoad(0.5, 1.0, (1.1,), 1),
        lambda: OfferedLoad(0.5, 1.0, (-0.1,), 1),
        lambda: OfferedLoad(0.5, 1.0, (math.nan,), 1),
        lambda: ThroughputCurve("a", *np.array([[64.0], [0.0], [0.0], [1.0]]), (False,)),
        lambda: ThroughputCurve("a", *np.array([[64.0], [3.0], [1.0], [2.0]]), (False,)),
    ],
)
def test_data_that_cannot_be_are_refused(make):
    with pytest.raises(DataError):
        make()


def test_numbers_on_logarithmic_axes():
    assert [plain(v) for v in (1, 0.001, 2e-6, 1e-6, 50000, 1e6, 2.5e7)] == [
        "1", "0.001", "2·10⁻⁶", "10⁻⁶", "50000", "10⁶", "2.5·10⁷",
    ]  # fmt: skip
