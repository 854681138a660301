from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from p4perf.errors import StorageError, UsageError
from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.fitting.derivation import Derivation, FitOptions, derive
from p4perf.evaluation.fitting.working_set import CacheMark
from p4perf.evaluation.plots import (
    PlotInfo,
    model_figure,
    residual_figure,
    segment_figures,
    segments_overview,
)
from p4perf.evaluation.plots.model import LABEL_LENGTH, range_text, segment_label
from p4perf.evaluation.plots.style import LEFT, RIGHT, new_figure, pretty, save_figure
from p4perf.models import ComponentModel, Fitting, PiecewiseFitting, Quantity
from p4perf.models.templates import find_template
from p4perf.results.table import Samples


@pytest.fixture(scope="module")
def samples() -> Samples:
    rng = np.random.default_rng(1)
    x = np.repeat([m * 10.0**k for k in range(6) for m in range(1, 10)], 5)
    y = np.where(x < 1000, 150.0, 60 + 40 * np.log10(x)) * (1 + 0.01 * rng.standard_normal(len(x)))
    return Samples.from_arrays(x, y, x_name="entries", y_name="cycles_per_packet", y_unit="cycles")


@pytest.fixture(scope="module")
def model(samples: Samples) -> ComponentModel:
    return derive_model(
        samples, name="mat/exact-entries", target="dpdk-c", x_scale="log", options=FitOptions(segments=2)
    ).model


MARKS = (CacheMark("L1", 32768, 200.0), CacheMark("L2", 2**20, 300.0), CacheMark("L3", 2**25, 1e12))


def draw(model: ComponentModel, samples: Samples, path: Path) -> bytes:
    info = PlotInfo(title="Exact match table", machine="Some CPU", date="2026-11-21")
    save_figure(model_figure(model, samples, marks=MARKS, baseline=95.0, info=info), path)
    return path.read_bytes()


def test_svg(model: ComponentModel, samples: Samples, tmp_path: Path) -> None:
    data = draw(model, samples, tmp_path / "a.svg")
    root = ET.fromstring(data)  # noqa: S314 - our own file
    text = "\n".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    expected = [
        "Exact match table",
        "entries",
        "cycles per packet [cycles]",
        "L1",
        "32 KiB",
        "L2 1 MiB",
        "breakpoint at",
    ]
    expected += ["baseline: 95", "median of 5 trials", "target dpdk-c", "Some CPU", "2026-11-21", "sMAPE"]
    expected += [pretty(formula.removeprefix("cycles_per_packet = ")) for formula in model.formulas()]
    expected += [f"{range_text(segment)}:" for segment in model.fitting.segments]
    for label in expected:
        assert label in text, label
    assert "32 MiB" not in text  # outside of the axis
    assert b"dc:date" not in data


def test_same_data_same_bytes(model: ComponentModel, samples: Samples, tmp_path: Path) -> None:
    for name in ("a.svg", "a.png"):
        assert draw(model, samples, tmp_path / name) == draw(model, samples, tmp_path / f"again-{name}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "a.svg", "again-a.png", "again-a.svg"]


def test_png(model: ComponentModel, samples: Samples, tmp_path: Path) -> None:
    assert draw(model, samples, tmp_path / "a.png").startswith(b"\x89PNG")


def test_nothing_global_changes(model: ComponentModel, samples: Samples) -> None:
    before = dict(mpl.rcParams)
    model_figure(model, samples)
    assert dict(mpl.rcParams) == before


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def said(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def test_labels_of_breakpoints_keep_clear_of_points_and_each_other() -> None:
    # Points at the top left of the first breakpoint and at the top right of both.
    y = np.concatenate([np.full(10, 10.0), np.full(4, 9.9), np.full(10, 2.0)])
    segments = tuple(
        Fitting(find_template("const"), (level,), start, end, 0.0, points)
        for level, start, end, points in ((10.0, 0, 9, 10), (9.9, 10, 13, 4), (2.0, 14, 23, 10))
    )
    model = ComponentModel("m", "", Quantity("x"), Quantity("y"), PiecewiseFitting.join(segments))
    figure = model_figure(model, Samples.from_arrays(np.arange(24.0), y))
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in texts(figure) if text.get_text().startswith("breakpoint at")]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    points = axes.transData.transform(np.column_stack([np.arange(24.0), y]))
    for box in boxes:
        assert not ((points >= box.min) & (points <= box.max)).all(axis=1).any()


def test_long_formulas_stay_within_the_figure() -> None:
    fitting = Fitting(find_template("inv_poly5"), tuple(-1.234567e-5 * 3**k for k in range(6)), 1.0, 9.0, 0.0, 9)
    line = Fitting(find_template("poly1"), (1.0, 2.0), 10.0, 19.0, 0.0, 9)
    name = "number_of_entries_of_the_table"
    model = ComponentModel("m", "", Quantity(name), Quantity("y"), PiecewiseFitting.join((fitting, line)))
    labels = [segment_label(model, index) for index in range(2)]
    assert all(len(row) <= LABEL_LENGTH for label in labels for row in label.split("\n"))
    assert labels[1] == "10 to 19:  1 + 2 x"
    figure = model_figure(model)
    edge = figure.get_figwidth() * figure.dpi
    assert all(text.get_window_extent().x1 < edge for text in texts(figure))


def test_formulas_are_set_as_people_write_them() -> None:
    assert pretty("-254 + 35.8 x - 0.68 x^2 + 1e-5 x^10") == "−254 + 35.8 x − 0.68 x² + 1e-5 x¹⁰"
    assert pretty("20 + 1.8 exp(-0.07 (x - 3))") == "20 + 1.8 exp(−0.07 (x − 3))"
    assert pretty("3 x^-0.5") == "3 x^-0.5"
    assert pretty("3 x^0.5") == "3 x^0.5"
    assert pretty("a-b") == "a-b"


def test_short_logarithmic_axes_have_labels_enough() -> None:
    figure = model_figure(derive_model(Samples.from_arrays(np.arange(2.0, 40.0), np.arange(38.0)), x_scale="log").model)
    figure.canvas.draw()
    assert {"2", "5", "10", "20"} <= set(said(figure))


def test_a_long_title_makes_way_for_the_note(model: ComponentModel) -> None:
    figure = model_figure(model, info=PlotInfo(title="A rather long title of an experiment " * 3, note="and a note"))
    title = next(text for text in texts(figure) if text.get_text().startswith("A rather"))
    note = next(text for text in texts(figure) if text.get_text().endswith("and a note"))
    assert not title.get_window_extent().overlaps(note.get_window_extent())
    assert LEFT < RIGHT


# --- residuals


def test_residuals(model: ComponentModel, samples: Samples) -> None:
    figure = residual_figure(model, samples, info=PlotInfo(title="Exact match table", date="2026-11-21"))
    words = said(figure)
    assert "Exact match table: residuals" in words
    assert "residual [% of the curve]" in words
    assert "typical 95 % interval, median of 5 trials" in words
    assert [w for w in words if w.startswith(range_text(model.fitting.segments[1]) + ":  sMAPE")]
    (axes,) = figure.axes
    drawn = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == "o"])
    curve = model.evaluate(samples.x)
    assert sorted(drawn) == pytest.approx(sorted(100 * (samples.medians() - curve) / curve))
    low, high = axes.get_ylim()
    assert low == -high
    bands = [c for c in axes.collections if isinstance(c, PolyCollection)]
    assert len(bands) == len(model.fitting.segments)


def constant(level: float, n: int) -> ComponentModel:
    segment = Fitting(find_template("const"), (level,), 0.0, n - 1.0, 0.0, n)
    return ComponentModel("m", "", Quantity("x"), Quantity("y"), PiecewiseFitting.join((segment,)))


def test_outliers_stand_at_the_edge() -> None:
    y = 100 + np.sin(np.arange(30.0))
    y[[4, 9]] = 300.0, 20.0
    figure = residual_figure(constant(100.0, 30), Samples.from_arrays(np.arange(30.0), y))
    assert {"200 %", "−80 %"} <= set(said(figure))
    assert figure.axes[0].get_ylim()[1] < 2
    y[::3] = np.linspace(200, 300, 10)  # a third of all: no outliers
    assert figure_limit(y) > 100
    y = np.where(np.arange(200) % 12 == 5, 300.0, 100 + np.sin(np.arange(200.0)))
    assert "beyond the axis: 17" in "".join(said(residual_figure(constant(100.0, 200), as_samples(y))))


def as_samples(y: np.ndarray) -> Samples:
    return Samples.from_arrays(np.arange(float(len(y))), y)


def figure_limit(y: np.ndarray) -> float:
    return residual_figure(constant(100.0, len(y)), as_samples(y)).axes[0].get_ylim()[1]


def test_a_curve_of_zero_has_no_residuals() -> None:
    assert "left out where the curve is zero: 5" in "".join(
        said(residual_figure(constant(0.0, 5), as_samples(np.ones(5))))
    )
    samples = as_samples(np.zeros(7))
    assert "left out where the curve is zero: 7" in "".join(said(residual_figure(derive_model(samples).model, samples)))


def test_perfect_curves_show_no_rounding() -> None:
    assert figure_limit(np.full(9, 100 * (1 + 1e-14))) >= 1e-3


# --- every number of segments


@pytest.fixture(scope="module")
def derivation(samples: Samples) -> Derivation:
    return derive(samples.x, samples.medians(), FitOptions(max_segments=3, segments=2))


def test_overview(model: ComponentModel, derivation: Derivation, samples: Samples) -> None:
    figure = segments_overview(model, derivation, samples, info=PlotInfo(title="Exact match table", machine="Some CPU"))
    words = said(figure)
    assert len(figure.axes) == len(derivation.fittings) + 1
    assert words.count("chosen") == 1
    for fitting, scores in zip(derivation.fittings, derivation.criteria, strict=True):
        count = len(fitting.segments)
        assert f"{count} segment{'s' if count > 1 else ''}" in words
        assert " | ".join(segment.template.name for segment in fitting.segments) in words
        assert any(w.endswith(f"L1-BIC −{abs(scores.l1_bic):.0f}") for w in words)
    assert {"Exact match table: every number of segments", "L1-BIC: lowest is best", "target dpdk-c · Some CPU"} <= set(
        words
    )


def test_one_candidate_needs_no_criterion(samples: Samples) -> None:
    only = derive(samples.x[:9], samples.medians()[:9], FitOptions(max_segments=1))
    model = derive_model(
        Samples.from_arrays(samples.x[:9], samples.medians()[:9]), options=FitOptions(max_segments=1)
    ).model
    assert len(segments_overview(model, only).axes) == 1


def test_a_figure_for_every_number_of_segments(model: ComponentModel, derivation: Derivation, samples: Samples) -> None:
    figures = segment_figures(model, derivation, samples, baseline=95.0, info=PlotInfo(title="T", note="N"))
    assert list(figures) == [len(f.segments) for f in derivation.fittings]
    assert "T: 1 segment" in said(figures[1])
    assert any(w.startswith("sMAPE") and w.endswith("· chosen") and "· N · L1-BIC" in w for w in said(figures[2]))
    assert not any("chosen" in w for w in said(figures[1]))
    assert "baseline: 95" in said(figures[1])


@pytest.mark.thorough
def test_all_figures_are_the_same_bytes_again(
    model: ComponentModel, derivation: Derivation, samples: Samples, tmp_path: Path
) -> None:
    for attempt in ("one", "two"):
        save_figure(residual_figure(model, samples), tmp_path / f"residuals-{attempt}.svg")
        save_figure(segments_overview(model, derivation, samples), tmp_path / f"segments-{attempt}.svg")
    for kind in ("residuals", "segments"):
        data = (tmp_path / f"{kind}-one.svg").read_bytes()
        assert data == (tmp_path / f"{kind}-two.svg").read_bytes()
        ET.fromstring(data)  # noqa: S314 - our own file


def test_style_does_not_leak() -> None:
    before = dict(mpl.rcParams)
    with new_figure(2, 1):
        assert dict(mpl.rcParams) != before
    assert dict(mpl.rcParams) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("y", [0.0, 1.0, -5.0])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_odd_data(n: int, y: float, scale, tmp_path: Path) -> None:
    first = 1.0 if n < 7 else 0.0
    samples = Samples.from_arrays(first + np.arange(float(n)), np.full(n, y))
    model = derive_model(samples, x_scale=scale).model
    save_figure(model_figure(model, samples, baseline=2.0), tmp_path / "a.png")
    save_figure(model_figure(model), tmp_path / "b.svg")
    save_figure(residual_figure(model, samples), tmp_path / "c.svg")
    derivation = derive(samples.x, samples.medians())
    save_figure(segments_overview(model, derivation, samples), tmp_path / "d.svg")


def test_log_axis_needs_positive_x() -> None:
    samples = Samples.from_arrays([-3.0, -2.0, -1.0], [1.0, 1.0, 1.0])
    with pytest.raises(UsageError, match="logarithmic axis"):
        model_figure(derive_model(samples, x_scale="log").model)


def test_bad_places(model: ComponentModel, tmp_path: Path) -> None:
    figure = model_figure(model)
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        save_figure(figure, tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        save_figure(figure, tmp_path / "file" / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_names_of_data_are_literal() -> None:
    names = (r"rate $\frac$", r"cost $x^{$", r"title $\undefined$ \\")
    x = np.repeat(np.arange(1.0, 12.0), 3)
    strange = Samples.from_arrays(x, 3 * x + np.tile([0.0, 1.0, 2.0], 11), x_name=names[0], y_name=names[1])
    model = derive_model(strange, name=names[2], options=FitOptions(segments=1, resamples=0)).model
    info = PlotInfo(title=names[2])
    for figure in (model_figure(model, strange, info=info), residual_figure(model, strange, info=info)):
        figure.canvas.draw()  # type: ignore[attr-defined]
        assert {names[0]} < {text.get_text() for text in figure.findobj(Text)}  # type: ignore[attr-defined]
