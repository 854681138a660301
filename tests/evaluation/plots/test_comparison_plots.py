"""Figures of comparisons: everything that is said is in them, in odd cases too, and the same bytes every time."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.text import Text
from support.models import line_model

from p4perf.evaluation.comparison import ComparedSamples, compare_subjects
from p4perf.evaluation.plots.comparison import comparison_figure, overview_figure
from p4perf.evaluation.plots.style import COLOURS, LINES, MARKERS, PlotInfo, save_figure
from p4perf.models.component import Quantity
from p4perf.results.table import Samples


def subject(label, intercept, slope, *, starts=3, points=20, seed=0, model=True):
    generator = np.random.default_rng(seed)
    x = np.repeat(np.arange(1.0, points + 1), starts)
    y = (intercept + slope * x) * np.exp(generator.normal(0, 0.01, x.size))
    samples = Samples.from_arrays(x, y, x_name="entries", y_name="cycles_per_packet", y_unit="cycles/packet")
    return ComparedSamples(label, samples, line_model((intercept, slope, 1, points), band=0.02) if model else None)


def experiment(*subjects, name="my/experiment", title="", scale="linear"):
    x = Quantity("entries", "", scale)
    return compare_subjects(name, subjects, reference=subjects[0].label, x=x, title=title)


@pytest.fixture(scope="module")
def three():
    return experiment(
        subject("base", 20, 1), subject("steep", 10, 2, seed=1), subject("dear", 60, 1, seed=2), title="A title"
    )


def drawn(comparison, **info):
    return comparison_figure(comparison, margin=0.05, info=PlotInfo(**info))


def said(figure):
    figure.canvas.draw()
    return [text.get_text() for text in figure.findobj(Text)]


def test_everything_is_in_it(three):
    figure = drawn(three, machine="Some CPU", date="2026-11-21")
    words = said(figure)
    assert {"A title", "base", "steep", "dear", "entries", "cycles per packet [cycles/packet]"} <= set(words)
    assert {"ratio to base", "counts as the same: 1 ± 0.05", "crossing at 10"} <= set(words)
    assert "my/experiment · Some CPU · 2026-11-21" in words
    top, below = figure.axes
    medians = [line for line in top.lines if line.get_marker() in MARKERS and len(line.get_xdata()) == 20]
    assert len(medians) == 3
    ratios = [line for line in below.lines if line.get_marker() in MARKERS and len(line.get_xdata()) == 20]
    assert [line.get_ydata().tolist() for line in ratios] == [
        [p.ratio.value for p in pair.measured.points] for pair in three.pairs
    ]


def test_runs_are_told_apart_without_colour(three):
    assert len(set(MARKERS)) >= 8
    assert len(set(LINES)) == len(LINES) >= 6
    assert len(COLOURS) >= 8
    top = drawn(three).axes[0]
    points = [line.get_marker() for line in top.lines if line.get_marker() in MARKERS and len(line.get_xdata()) == 20]
    assert len(set(points)) == 3
    (legend,) = drawn(three).legends
    handles = legend.get_lines()
    assert len({(h.get_marker(), str(h.get_ls()), str(h._dash_pattern)) for h in handles}) >= 3


def test_labels_stay_within_the_figure(three):
    long = experiment(*(subject(f"a-target-with-a-very-long-name-{n} on Some Processor", 20 + n, 1) for n in range(8)))
    for figure in (drawn(three), drawn(long), overview_figure([three, long], margin=0.05)):
        figure.canvas.draw()
        edge = figure.get_figwidth() * figure.dpi
        ticks = {tick for axes in figure.axes for tick in axes.get_xticklabels()}
        texts = [text for text in figure.findobj(Text) if text.get_text() and text not in ticks]
        assert all(t.get_window_extent().x0 > -1 and t.get_window_extent().x1 < edge + 1 for t in texts)


def test_the_overview(three):
    other = experiment(subject("base", 20, 1), subject("steep", 20, 1, seed=5), name="my/other")
    figure = overview_figure([three, other], margin=0.05, info=PlotInfo(machine="Some CPU"))
    words = said(figure)
    assert {"my/experiment", "my/other", "steep", "dear", "Some CPU"} <= set(words)
    assert sum(w.endswith(("slower", "faster", "same", "no verdict")) for w in words) == 3
    single = overview_figure([other], margin=0.05)
    assert any(w.startswith("ratio of steep to base: geometric mean") for w in said(single))


def test_the_same_bytes_again(three, tmp_path):
    for attempt in ("one", "two"):
        save_figure(drawn(three), tmp_path / f"{attempt}.svg")
        save_figure(overview_figure([three], margin=0.05), tmp_path / f"overview-{attempt}.svg")
    for kind in ("", "overview-"):
        data = (tmp_path / f"{kind}one.svg").read_bytes()
        assert data == (tmp_path / f"{kind}two.svg").read_bytes()
        ET.fromstring(data)  # noqa: S314 - our own file


def nothing(label):
    return ComparedSamples(label, Samples((), (), "entries", "cycles_per_packet", "cycles/packet"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "subjects",
    [
        (subject("a", 20, 1), nothing("b")),
        (nothing("a"), nothing("b")),
        (subject("a", 20, 1, points=1, model=False), subject("b", 40, 1, points=1, model=False)),
        (subject("a", 20, 1, starts=1), subject("b", 40, 1, starts=1)),
        (subject("a", 20, 1, model=False), subject("b", 40, 1)),
        (subject("a", 0, 0, model=False), subject("b", 40, 1)),
        (subject("a", 1e-3, 0), subject("b", 1e6, 1)),
    ],
)
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_odd_data(subjects, scale, tmp_path):
    comparison = experiment(*subjects, scale=scale)
    save_figure(drawn(comparison), tmp_path / "a.png")
    save_figure(overview_figure([comparison, comparison], margin=0.05), tmp_path / "b.svg")


def test_runs_that_are_far_apart_are_on_a_logarithmic_axis(three):
    near, far = drawn(three), drawn(experiment(subject("a", 100, 1), subject("b", 40_000, 1)))
    assert [figure.axes[0].get_yscale() for figure in (near, far)] == ["linear", "log"]
