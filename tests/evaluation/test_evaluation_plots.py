from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from p4perf.errors import StorageError, UsageError
from p4perf.evaluation import (
    CacheMark,
    PlotInfo,
    Samples,
    derive_model,
    model_figure,
    save_figure,
)
from p4perf.models import ComponentModel


@pytest.fixture(scope="module")
def samples() -> Samples:
    rng = np.random.default_rng(1)
    x = np.repeat([m * 10.0**k for k in range(6) for m in range(1, 10)], 5)
    y = np.where(x < 1000, 150.0, 60 + 40 * np.log10(x)) * (1 + 0.01 * rng.standard_normal(len(x)))
    return Samples.from_arrays(x, y, x_name="entries", y_name="cycles_per_packet", y_unit="cycles")


@pytest.fixture(scope="module")
def model(samples: Samples) -> ComponentModel:
    return derive_model(samples, name="mat/exact-entries", target="dpdk-c", x_scale="log", parts=2)


MARKS = (CacheMark("L1", 32768, 200.0), CacheMark("L2", 2**20, 300.0), CacheMark("L3", 2**25, 1e12))


def draw(model: ComponentModel, samples: Samples, path: Path) -> bytes:
    info = PlotInfo(title="Exact match table", machine="Some CPU", date="2026-11-21")
    save_figure(model_figure(model, samples, marks=MARKS, baseline=95.0, info=info), path)
    return path.read_bytes()


def test_svg(model: ComponentModel, samples: Samples, tmp_path: Path) -> None:
    data = draw(model, samples, tmp_path / "a.svg")
    root = ET.fromstring(data)  # noqa: S314 - our own file
    text = "\n".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    expected = ["Exact match table", "entries", "cycles per packet [cycles]", "L1", "32 KiB", "L2 1 MiB", "split at"]
    expected += ["baseline: 95", "median of 5 trials", "target dpdk-c", "Some CPU", "2026-11-21", "sMAPE"]
    expected += [formula.removeprefix("cycles_per_packet = ") for formula in model.formulas()]
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


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("y", [0.0, 1.0, -5.0])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_odd_data(n: int, y: float, scale, tmp_path: Path) -> None:
    first = 1.0 if n < 7 else 0.0
    samples = Samples.from_arrays(first + np.arange(float(n)), np.full(n, y))
    model = derive_model(samples, x_scale=scale)
    save_figure(model_figure(model, samples, baseline=2.0), tmp_path / "a.png")
    save_figure(model_figure(model), tmp_path / "b.svg")


def test_log_axis_needs_positive_x() -> None:
    samples = Samples.from_arrays([-3.0, -2.0, -1.0], [1.0, 1.0, 1.0])
    with pytest.raises(UsageError, match="logarithmic axis"):
        model_figure(derive_model(samples, x_scale="log"))


def test_bad_places(model: ComponentModel, tmp_path: Path) -> None:
    figure = model_figure(model)
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        save_figure(figure, tmp_path / "a.pdf")
    with pytest.raises(StorageError, match="cannot write"):
        save_figure(figure, tmp_path / "missing" / "a.svg")
    assert list(tmp_path.iterdir()) == []
