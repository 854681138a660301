"""The description of results: complete, valid, the same from the same files, and nothing in it is invented."""

import hashlib
import json
import shutil
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from support.runs import NOW, make_run

from p4perf.errors import DataError, UsageError
from p4perf.results.crate import FACTS, NO_LICENCE, Author, CrateOptions, crate_metadata, encoding_format

SMALL = (("entries", "[1, 10, 100]"),)
JANE = Author("Jane Doe", "0000-0002-1825-0097")


@pytest.fixture
def run(tmp_path):
    path = make_run(tmp_path / "runs", lambda x: 20 + x, overrides=SMALL, manifest={"sessions": [
        {"ended": "2026-11-21T10:20:00+00:00"}, {"ended": "2026-11-21T10:30:00+00:00"}]})  # fmt: skip
    (path / "points" / "p0").mkdir()
    (path / "points" / "p0" / "program of mine #1.c").write_text("int x;\n")
    (path / ".lock").write_text("process 1\n")
    (path / ".p4perf-1-0123abcd.tmp").write_text("half")
    return path


def entities(folder, options=None):
    graph = json.loads(crate_metadata(folder, options))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph), "an @id is there twice"
    return found


def of_type(found, kind):
    return [entity for entity in found.values() if entity["@type"] == kind]


def references(value):
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value["@id"]
        else:
            yield from (ref for inner in value.values() for ref in references(inner))
    elif isinstance(value, list):
        yield from (ref for inner in value for ref in references(inner))


def test_every_file_is_there_with_format_size_and_hash(run):
    found = entities(run)
    told = {unquote(e["@id"]): e for e in of_type(found, "File")}
    there = {p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file() and not p.name.startswith(".")}
    assert set(told) == there
    assert "points/p0/program of mine #1.c" in there
    for path, entity in told.items():
        data = (run / path).read_bytes()
        assert entity["sha256"] == hashlib.sha256(data).hexdigest()
        assert entity["contentSize"] == str(len(data))
        assert entity["encodingFormat"] == encoding_format(path)
    assert {r["@id"] for r in found["./"]["hasPart"]} == {e["@id"] for e in told.values()}


def test_formats_are_those_of_the_files():
    assert encoding_format("points/a/raw.jsonl") == "application/jsonl"
    assert encoding_format("measurements.parquet") == "application/vnd.apache.parquet"
    assert encoding_format("points/a/verify.bin") == "application/octet-stream"
    assert encoding_format("LICENSE") == "text/plain"


def test_a_run_is_the_result_of_an_action_of_p4perf(run):
    found = entities(run)
    (action,) = of_type(found, "CreateAction")
    (software,) = of_type(found, "SoftwareApplication")
    assert found["./"]["mentions"] == [{"@id": action["@id"]}]
    assert action["instrument"] == {"@id": software["@id"]}
    assert (software["name"], software["softwareVersion"]) == ("p4perf", "0.1.0")
    assert {"@id": "spec.yaml"} in action["object"]
    assert {"@id": "measurements.parquet"} in action["result"]
    assert (action["startTime"], action["endTime"]) == ("2026-11-21T10:15:00+00:00", "2026-11-21T10:30:00+00:00")
    facts = {e["name"]: e["value"] for e in of_type(found, "PropertyValue")}
    assert facts["cpu_model"] == "Some CPU"
    assert facts["target"] == "dpdk-c"
    assert set(facts) <= {*FACTS, "target", "testbed", "hugepages"}


def test_all_references_lead_somewhere(run):
    found = entities(run, CrateOptions(licence="CC-BY-4.0", authors=(JANE,)))
    assert {ref for entity in found.values() for ref in references(list(entity.values()))} <= set(found)


def test_what_nobody_said_is_not_there(run):
    found = entities(run)
    assert not of_type(found, "Person")
    assert "author" not in found["./"]
    assert not any("agent" in action for action in of_type(found, "CreateAction"))
    assert found["./"]["license"] == NO_LICENCE


def test_authors_licence_and_title_are_those_given(run):
    options = CrateOptions(name="Tables", licence="CC-BY-4.0", authors=(JANE, Author("John Roe")))
    found = entities(run, options)
    jane = {"@id": "https://orcid.org/0000-0002-1825-0097"}
    assert found["./"]["author"] == [jane, {"@id": "#author-John%20Roe"}]
    assert of_type(found, "CreateAction")[0]["agent"][0] == jane
    assert found["./"]["name"] == "Tables"
    assert found[found["./"]["license"]["@id"]]["name"] == "CC-BY-4.0"


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("https://example.org/licence", {"@id": "https://example.org/licence"}),
        ("free for teaching", "free for teaching"),
        ("Apache-2.0", {"@id": "https://spdx.org/licenses/Apache-2.0"}),
    ],
)
def test_a_licence_may_be_an_address_or_a_sentence(run, licence, said):
    assert entities(run, CrateOptions(licence=licence))["./"]["license"] == said


@pytest.mark.parametrize("text", ["", "<0000-0002-1825-0097>", "Jane <0000-0002-1825-0098>", "Jane <x>", "a\nb"])
def test_what_is_no_author_is_refused(text):
    with pytest.raises(UsageError):
        Author.parse(text)


def test_an_author_may_have_an_orcid():
    assert Author.parse("Jane Doe <https://orcid.org/0000-0002-1825-0097>") == JANE
    assert Author.parse(" Jane Doe ") == Author("Jane Doe")
    assert Author.parse("J. X <0000-0002-9079-593X>").orcid == "0000-0002-9079-593X"


@pytest.mark.parametrize("licence", ["CC-BY-9.0", "free", "Apache"])
def test_an_unknown_licence_is_refused_by_name(run, licence):
    with pytest.raises(UsageError, match=f"unknown licence '{licence}'"):
        crate_metadata(run, CrateOptions(licence=licence))


def test_an_empty_licence_is_refused(run):
    with pytest.raises(UsageError, match="not a licence"):
        crate_metadata(run, CrateOptions(licence=" "))


def test_the_same_files_give_the_same_text_anywhere(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "elsewhere" / "copy")
    assert crate_metadata(copy) == crate_metadata(run)


def test_runs_below_a_folder_are_found(run, tmp_path):
    other = make_run(tmp_path / "runs", lambda x: x, overrides=SMALL, target="xdp")
    (tmp_path / "report.html").write_text("<p>fine</p>\n")
    found = entities(tmp_path)
    assert {e["name"] for e in of_type(found, "CreateAction")} == {
        "mat/exact-entries on dpdk-c (local)",
        "mat/exact-entries on xdp (local)",
    }
    inner = found[f"runs/{other.name}/"]
    assert inner["@type"] == "Dataset"
    assert {r["@id"] for r in found["./"]["hasPart"]} == {"report.html", f"runs/{run.name}/", f"runs/{other.name}/"}
    there = {p.relative_to(tmp_path).as_posix() for p in other.rglob("*") if p.is_file()}
    assert {unquote(r["@id"]) for r in inner["hasPart"]} == there
    assert of_type(found, "CreateAction")[1]["result"] == [{"@id": f"runs/{other.name}/"}]
    assert found["./"]["datePublished"] == "2026-11-21"


def test_a_folder_without_a_run_needs_a_date(tmp_path):
    (tmp_path / "claims.json").write_text("{}\n")
    with pytest.raises(UsageError, match="holds no run"):
        crate_metadata(tmp_path)
    found = entities(tmp_path, CrateOptions(published=datetime(2027, 1, 2, tzinfo=UTC)))
    assert found["./"]["datePublished"] == "2027-01-02"


def test_an_imported_run_does_not_pass_for_a_measured_one(tmp_path):
    path = make_run(
        tmp_path, lambda x: x, overrides=SMALL, manifest={"imported": {"importer": "trex", "sources": ["a.json"]}}
    )
    (action,) = of_type(entities(path), "CreateAction")
    assert "not measured by p4perf" in action["description"]


def test_a_damaged_run_is_refused(run):
    (run / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="not valid JSON"):
        crate_metadata(run)


def test_a_peer_reads_it(run, tmp_path):
    peer = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed")
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "ro-crate-metadata.json").write_text(crate_metadata(run, CrateOptions(licence="MIT", authors=(JANE,))))
    crate = peer.ROCrate(copy)
    assert crate.root_dataset["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"
    assert crate.root_dataset["author"][0]["name"] == "Jane Doe"
    assert crate.root_dataset["datePublished"].startswith(str(NOW.date()))
    (action,) = crate.root_dataset["mentions"]
    assert action["instrument"]["softwareVersion"] == "0.1.0"
    assert {e.type for e in action["object"]} == {"File", "PropertyValue"}
    assert len(crate.data_entities) == len(of_type(entities(run), "File"))


def test_a_peer_reads_a_folder_of_runs(run, tmp_path):
    peer = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed")
    text = crate_metadata(run.parent)
    (run.parent / "ro-crate-metadata.json").write_text(text)
    crate = peer.ROCrate(run.parent)
    kinds = [entity.type for entity in crate.data_entities]
    assert (kinds.count("Dataset"), kinds.count("File")) == (1, len(of_type(entities(run), "File")))
