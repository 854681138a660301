from __future__ import annotations

from pathlib import Path

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.datafiles import data_format, read_series

TEXT = "PARAMETER entries\nPOINTS 1 2\nMETRIC cycles\nREGION main\nDATA 3 4\nDATA 5\nREGION leaf\nDATA 1\nDATA 2\n"
JSON = '{"parameters": ["entries"], "measurements": {"main": {"cycles": [{"point": [1], "values": [3, 4]}]}}}'
LINES = "".join(f'{{"params": {{"entries": 1}}, "metric": "cycles", "value": {value}}}\n' for value in (3, 4))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TEXT, "extrap-text"),
        ("\n# DATA\n\nPARAMETER\tp\n", "extrap-text"),
        ("POINTS (1)\n", "extrap-text"),
        (JSON, "extrap-json"),
        ("\n " + LINES, "extrap-json"),
        ("entries,cycles\n1,2\n", "csv"),
        ("DATA,PARAMETER\n1,2\n", "csv"),
        ("DATA\tPARAMETER\n1\t2\n", "csv"),
        ("PARAMETER;DATA\n1;2\n", "csv"),
        ("", "csv"),
    ],
)
def test_formats_are_told_by_content(text: str, kind: str) -> None:
    assert data_format(text) == kind


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "measured.dat"
    path.write_text("\ufeff" + text)
    return path


@pytest.mark.parametrize("text", ["entries,cycles\n1,3\n1,4\n", JSON, LINES])
@pytest.mark.parametrize("names", [{}, {"x": "entries", "y": "cycles"}])
def test_one_door(tmp_path: Path, text: str, names: dict) -> None:
    path = write(tmp_path, text)
    if text.startswith("entries") and not names:
        with pytest.raises(UsageError, match=r"measured\.dat is a CSV file: name the columns"):
            read_series(path)
        return
    samples = read_series(path, **names)
    assert (samples.x, samples.values) == ((1.0,), ((3.0, 4.0),))
    assert (samples.x_name, samples.y_name) == ("entries", "cycles")


def test_regions(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert read_series(path, region="leaf").values == ((1.0,), (2.0,))
    with pytest.raises(UsageError, match="there are 2 series: name region"):
        read_series(path)
    with pytest.raises(UsageError, match="is a CSV file and has no regions"):
        read_series(write(tmp_path, "x,y\n1,2\n"), "x", "y", region="main")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_series(tmp_path / "missing", "x", "y")
    (tmp_path / "zip").write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(DataError, match="zip:1: is not text in UTF-8"):
        read_series(tmp_path / "zip", "x", "y")
