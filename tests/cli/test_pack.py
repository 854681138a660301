"""``pack``: results as one file, one clear message for every mistake."""

import json
import zipfile

import pytest
from support.command import p4perf
from support.runs import make_run

from p4perf.errors import ExitCode

SMALL = (("entries", "[1, 10, 100]"),)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), lambda x: 20 + x, overrides=SMALL)


def test_the_zip_is_named_after_the_run(run, tmp_path):
    done = p4perf("pack", run, "--format", "json", cwd=tmp_path)
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["rows"]
    assert row["archive"] == f"{run.name}.zip"
    assert row["files"] == len([p for p in run.rglob("*") if p.is_file()])
    assert (tmp_path / row["archive"]).stat().st_size == row["packed_bytes"]
    assert "--licence" in done.err


def test_source_date_epoch_is_the_time(run, tmp_path):
    arguments = ("--licence", "CC-BY-4.0", "--author", "Jane Doe <0000-0002-1825-0097>")
    done = p4perf("pack", run, "-o", "a.zip", *arguments, cwd=tmp_path, SOURCE_DATE_EPOCH="1893456000")
    assert (done.code, done.err) == (0, "")
    with zipfile.ZipFile(tmp_path / "a.zip") as bundle:
        assert {info.date_time for info in bundle.infolist()} == {(2030, 1, 1, 0, 0, 0)}
        root = next(e for e in json.loads(bundle.read("ro-crate-metadata.json"))["@graph"] if e["@id"] == "./")
    assert root["datePublished"] == "2030-01-01"
    assert root["author"] == [{"@id": "https://orcid.org/0000-0002-1825-0097"}]


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--author", "<>"), {}, "not the name of an author"),
        (("--author", "A <0000-0000-0000-0000>"), {}, "not an ORCID"),
        (("-o", "a.tgz"), {}, "not called .zip"),
        ((), {"SOURCE_DATE_EPOCH": "yesterday"}, "SOURCE_DATE_EPOCH"),
    ],
)
def test_mistakes_are_told(run, tmp_path, arguments, environment, message):
    done = p4perf("pack", run, *arguments, cwd=tmp_path, **environment)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert message in done.err
    assert done.err.count("error: ") == 1
    assert list(tmp_path.iterdir()) == []
