from __future__ import annotations

from pathlib import Path

import pytest

from p4perf.errors import DataError
from p4perf.evaluation.fitting.component import derive_model
from p4perf.evaluation.fitting.datafiles import read_csv


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    return path


def test_rows_of_the_same_x_are_repetitions(tmp_path: Path) -> None:
    samples = read_csv(write(tmp_path, "entries,note,cycles\n10,a,5\n1,,3.5\n\n10,b,7e0\n"), "entries", "cycles")
    assert samples.x == (1.0, 10.0)
    assert samples.values == ((3.5,), (5.0, 7.0))
    assert (samples.x_name, samples.y_name) == ("entries", "cycles")


@pytest.mark.parametrize("text", ["x;y\r\n1;2\r\n", "\ufeffx\ty\n1\t2\n", '\n"x","y"\n1,"2"'])
def test_dialects(tmp_path: Path, text: str) -> None:
    assert read_csv(write(tmp_path, text), "x", "y").values == ((2.0,),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv: the file is empty"),
        ("\n \n", "data.csv: the file is empty"),
        ('""', "data.csv: the file is empty"),
        ("x,y\n", "data.csv: has a header but no rows"),
        ("x,z,why\n1,2,3\n", "data.csv:1: there is no column 'y'"),
        ("x,y,y\n1,2,3\n", "data.csv:1: there are 2 columns 'y'"),
        ("x,y\n1,2\n\n3,four\n", "data.csv:4: column 'y': 'four' is not a finite number"),
        (
            "x;y\n1;2\n2;3,5\n",
            "data.csv:3: column 'y': '3,5' is not a finite number\nhint: write decimals with a point",
        ),
        ("x,y\n1,nan\n", "data.csv:2: column 'y': 'nan' is not a finite number"),
        ("x,y\ninf,1\n", "data.csv:2: column 'x': 'inf' is not a finite number"),
        ("x,y\n1\n", "data.csv:2: column 'y' is empty"),
        ('x,y\n1,"2\n', r"data.csv:2: is not CSV"),
        (
            "x,y\n1,2,\n2,3,5\n",
            "data.csv:3: has 3 cells, but the header names 2 columns\nhint: write decimals with a point",
        ),
    ],
)
def test_mistakes_are_told_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_csv(write(tmp_path, text), "x", "y")


def test_nearest_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean cycles"):
        read_csv(write(tmp_path, "entries,cycles\n1,2\n"), "entries", "cycels")


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path / "missing.csv", "x", "y")
    path = tmp_path / "latin.csv"
    path.write_bytes(b"x,y\n1,\xff\n")
    with pytest.raises(DataError, match=r"latin\.csv:2: is not text in UTF-8"):
        read_csv(path, "x", "y")


def test_from_file_to_model(tmp_path: Path) -> None:
    lines = "".join(f"{x},{3 + 2 * x}\n" for x in range(1, 21))
    model = derive_model(read_csv(write(tmp_path, "x,y\n" + lines), "x", "y")).model
    assert model.formulas() == ("y = 3 + 2 x",)
