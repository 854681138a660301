"""Many series from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.fitting.many.sources import LongTable, extrap_series, open_series
from p4perf.results.table import Samples

CSV = """\
target,metric,n,value
a,cycles,1,10
b,cycles,1,20
a,cycles,2,11
a,"misses, L2",1,5

a,cycles,1,12
b,cycles,2,oops
b,cycles,3,21
"""
EXTRAP = """\
PARAMETER n
POINTS 1 2
REGION main
METRIC cycles
DATA 3 4
DATA 5
METRIC time
DATA 1
DATA 2
REGION leaf
METRIC time
DATA 7
DATA 8
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "data.txt"
    path.write_text(text, encoding="utf-8")
    return path


class TestLongTable:
    @pytest.mark.parametrize("separator", [",", ";", "\t"])
    def test_a_series_for_every_combination(self, tmp_path: Path, separator: str) -> None:
        text = CSV if separator == "," else CSV.replace('"misses, L2"', "misses").replace(",", separator)
        table = LongTable(write(tmp_path, "\ufeff\n" + text), "n", "value", ["target", "metric"])
        a, b, misses = table
        assert len(table) == 3
        assert a.labels == {"file": str(tmp_path / "data.txt"), "target": "a", "metric": "cycles"}
        assert a.model_name == "a / cycles"
        assert a.samples == Samples((1.0, 2.0), ((10.0, 12.0), (11.0,)), "n", "value")
        assert misses.labels["metric"] == ("misses, L2" if separator == "," else "misses")
        assert isinstance(b.samples, DataError)
        assert str(b.samples) == f"{tmp_path}/data.txt:9: column 'value': 'oops' is not a finite number"

    def test_a_file_is_one_series(self, tmp_path: Path) -> None:
        (series,) = LongTable(write(tmp_path, "n,value\n1,2\n2,3\n"), "n", "value", x_scale="log")
        assert series.labels == {"file": str(tmp_path / "data.txt")}
        assert (series.model_name, series.x_scale) == ("data", "log")

    def test_a_column_that_is_named_like_the_file(self, tmp_path: Path) -> None:
        (series,) = LongTable(write(tmp_path, "file,n,value\nq,1,2\n"), "n", "value", ["file"])
        assert series.labels == {"file_2": str(tmp_path / "data.txt"), "file": "q"}

    @pytest.mark.parametrize("cell", ["", "nan", "inf", "1e999", "x"])
    @pytest.mark.parametrize("column", ["n", "value"])
    def test_a_bad_cell(self, tmp_path: Path, cell: str, column: str) -> None:
        row = f"{cell},1" if column == "n" else f"1,{cell}"
        (series,) = LongTable(write(tmp_path, f"n,value\n{row}\n"), "n", "value")
        assert isinstance(series.samples, DataError)
        assert f":2: column '{column}'" in str(series.samples)

    @pytest.mark.parametrize(
        ("text", "by", "kind", "message"),
        [
            (CSV, ["traget"], UsageError, r":1: there is no column 'traget' \(--by\)\nhint: did you mean target\?"),
            (CSV, ["n"], UsageError, "the column 'n' holds numbers of the series"),
            ("n,value,n\n1,2,3\n", [], UsageError, r":1: there are 2 columns 'n' \(--x\)"),
            ("n,val\n1,2\n", [], UsageError, r"there is no column 'value' \(--y\)"),
            ("", [], DataError, "is empty"),
            ("n,value\n", [], DataError, "has no rows"),
            ("n,value,by\n1,2\n", ["by"], DataError, ":2: has fewer cells than the header"),
            ('n,value\n1,"2\n', [], DataError, "is not CSV"),
            (CSV, ["metric"], UsageError, "there are more than 1,000,000 series\nhint: do metric really"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, by: list[str], kind: type[Exception], message: str) -> None:
        most = 1 if by == ["metric"] else 9
        with pytest.raises(kind, match=message):
            LongTable(write(tmp_path, text), "n", "value", by, most=most)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "data.txt").write_bytes(b"n,value\n1,\xff\n")
        with pytest.raises(DataError, match=r"data\.txt: is not text in UTF-8"):
            LongTable(tmp_path / "data.txt", "n", "value")


class TestExtrapSeries:
    def test_regions_and_metrics(self, tmp_path: Path) -> None:
        series = list(extrap_series(write(tmp_path, EXTRAP)))
        assert [(s.labels["region"], s.labels["metric"]) for s in series] == [
            ("main", "cycles"), ("main", "time"), ("leaf", "time"),
        ]  # fmt: skip
        assert series[0].model_name == "main / cycles"
        assert len(extrap_series(tmp_path / "data.txt", metric="time")) == 2

    def test_an_unknown_metric(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="has no metric 'tim'\nhint: did you mean time"):
            extrap_series(write(tmp_path, EXTRAP), metric="tim")


class TestOpenSeries:
    def test_by_content(self, tmp_path: Path) -> None:
        assert isinstance(open_series(write(tmp_path, EXTRAP)), list)
        assert isinstance(open_series(write(tmp_path, CSV), "n", "value"), LongTable)

    def test_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"data\.txt is a CSV file: name the columns of x and y"):
            open_series(write(tmp_path, CSV), "n")
        path = write(tmp_path, EXTRAP)
        with pytest.raises(UsageError, match="leave out --by"):
            open_series(path, by=["target"])
        assert len(open_series(path, by=["region", "metric"])) == len(open_series(path))
        with pytest.raises(UsageError, match="more than 1,000,000 series"):
            open_series(path, most=2)
        with pytest.raises(DataError, match="cannot be read"):
            open_series(tmp_path / "nothing")
