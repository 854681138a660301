"""Run directories made of other people's results: whole or not there, honest, and usable."""

import hashlib
import json

import pytest
from support.imports import make_pos, trex_bench

from p4perf.errors import DataError, P4PerfError, StorageError, UsageError
from p4perf.evaluation.imports import ImportOptions, Named
from p4perf.experiment import resume_run
from p4perf.experiment.compare import spec_differences
from p4perf.experiment.evaluate import evaluate_run, point_rows
from p4perf.experiment.imports import ImportOrder, read_import, write_import
from p4perf.experiment.planning import point_workload
from p4perf.results import Run, RunDirectory
from p4perf.specs import load_experiment

RUNS = [({"pkt_sz": 64, "entries": n}, 20 - n / 10) for n in (1, 2, 4, 8, 16, 32, 64)]
X = ImportOptions(variables=(Named("entries"),))


def imported(folder, path, options=X, **order):
    return write_import(read_import([path], options, ImportOrder(**order)), folder / "runs")[0]


@pytest.fixture
def run(tmp_path):
    """An imported run over entries."""
    return imported(tmp_path, make_pos(tmp_path, RUNS, sent=2), name="mat/their-entries", target="t4p4s")


def test_the_manifest_says_that_nothing_was_measured_here(run, tmp_path):
    manifest = run.manifest()
    assert (manifest["target"], manifest["testbed"], manifest["experiment"]) == ("t4p4s", "pos", "mat/their-entries")
    assert (manifest["node"], manifest["hugepages"], manifest["versions"]) == ({}, None, {})
    about = manifest["imported"]
    assert (about["importer"], about["constants"]) == ("pos", {"pkt_sz": 64})
    assert about["sources"] == [str(tmp_path / "2020-10-07_23-22-39_868017")]
    assert {"reason": "belongs to no run of the loop", "count": 2} in [
        {k: item[k] for k in ("reason", "count")} for item in about["left_out"]
    ]
    assert "secret" not in json.dumps(manifest)


def test_the_same_results_are_imported_once_into_a_folder(run, tmp_path):
    source = tmp_path / "2020-10-07_23-22-39_868017"
    again = imported(tmp_path, source, name="mat/their-entries", target="t4p4s")
    assert again.path == run.path
    assert imported(tmp_path, source, name="mat/their-entries", target="bmv2").path != run.path
    changed = next(path for path in sorted(source.rglob("*")) if path.is_file() and b"64" in path.read_bytes())
    changed.write_bytes(changed.read_bytes() + b"\n")
    assert imported(tmp_path, source, name="mat/their-entries", target="t4p4s").path != run.path
    assert len([path for path in run.path.parent.iterdir() if not path.name.startswith(".")]) == 3


def test_the_source_is_kept_with_its_hash(run, tmp_path):
    files = run.manifest()["imported"]["files"]
    assert len(files) == len(RUNS) * 4
    for file in files:
        data = (run.path / file["file"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
        assert data == (tmp_path / file["file"].removeprefix("source/")).read_bytes()


def test_every_value_names_its_place(run):
    (record,) = run.trials(run.points()[0])
    assert record["trial"] == {"repetition": 0, "attempt": 0}
    for value in record["imported"]:
        assert (run.path / value["file"]).is_file()
        assert value["line"] == 6
    assert run.state().complete


def test_the_spec_says_only_what_is_known(run):
    text = run.spec()
    assert text.startswith("# imported, not measured by p4perf")
    for unknown in ("traffic", "frame_size", "trials", "baseline", "duration"):
        assert unknown not in text
    spec = Run(run).spec
    assert (spec.name, spec.model.x, spec.model.y) == ("mat/their-entries", "entries", "packet_rate")
    mine = load_experiment("mat/exact-entries").spec
    differences = {d.key: d.values for d in spec_differences({"a": mine, "b": spec})}
    assert differences["traffic.frame_size"] == {"a": "64", "b": "unknown"}
    assert all(d["b"] == "unknown" for k, d in differences.items() if k.startswith("trials."))


def test_the_table_is_tidy_and_flagged(run):
    table = run.read_measurements()
    assert list(table.columns) == [
        "point", "point_index", "repetition", "attempt", "entries", "metric", "value", "unit", "accepted", "flags",
    ]  # fmt: skip
    assert set(table["flags"]) == {"imported"}
    rows, metric, unit = point_rows(Run(run))
    assert (metric, unit) == ("packet_rate", "Mpps")
    assert [(r["entries"], pytest.approx(r["median"])) for r in rows] == [(loop["entries"], y) for loop, y in RUNS]


def test_its_model_says_so_too(run):
    found = evaluate_run(Run(run), plots=False)
    said = json.loads(found.model.to_json())["provenance"]["imported"]
    assert "imported by pos from" in said
    assert "not measured by p4perf" in said
    assert found.model.target == "t4p4s"


def test_it_cannot_be_resumed_or_measured(run):
    with pytest.raises(UsageError, match="nothing to resume"):
        resume_run(run.path)
    experiment = Run(run).experiment
    with pytest.raises(P4PerfError, match="was imported"):
        point_workload(experiment, experiment.points[0])


def test_what_is_not_told_is_unknown(tmp_path):
    path = tmp_path / "Results of Monday.csv"
    path.write_text("size,cycles_per_packet\n1,2\n2,3\n")
    run = imported(tmp_path, path, ImportOptions(variables=(Named("size"),)))
    manifest = run.manifest()
    assert (manifest["target"], manifest["testbed"]) == ("unknown", "unknown")
    assert manifest["experiment"] == "imported/results-of-monday"


def test_files_of_one_name_are_kept_apart(tmp_path):
    paths = [tmp_path / folder / "ndr.json" for folder in "ab"]
    for size, path in zip((64, 128), paths, strict=True):
        path.parent.mkdir()
        path.write_text(trex_bench(size=size, tx_pps=size * 1e4))
    options = ImportOptions(variables=(Named("frame_size", "packet_len"),))
    run, _ = write_import(read_import(paths, options, ImportOrder()), tmp_path / "runs")
    assert [f["file"] for f in run.manifest()["imported"]["files"]] == ["source/0/ndr.json", "source/1/ndr.json"]
    assert len(run.points()) == 2


def test_words_as_variable_have_no_model(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("kind,latency_p50,latency_p99\nlpm,2,3\nexact,1,2\n")
    run = imported(tmp_path, path, ImportOptions(variables=(Named("kind"),), units={"": "us"}))
    assert evaluate_run(Run(run)) is None
    assert point_rows(Run(run))[1] == "latency_p50"


def test_nothing_is_left_when_it_fails(tmp_path, monkeypatch):
    source = make_pos(tmp_path, RUNS)
    found = read_import([source], X, ImportOrder())

    def fail(*_):
        raise StorageError("the disk is full")

    monkeypatch.setattr(RunDirectory, "write_measurements", fail)
    with pytest.raises(StorageError):
        write_import(found, tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "order", "said"),
    [
        (ImportOptions(), {}, None),
        (X, {"name": "Not A Name"}, "not a name of an experiment"),
        (X, {"y": "cycles_per_packet"}, "--y cycles_per_packet: there are packet_rate"),
        (X, {"target": "a\nb"}, "--target"),
        (X, {"testbed": "x" * 101}, "--testbed"),
        (ImportOptions(settings={"cores": 0}, variables=()), {"x_scale": "log"}, None),
    ],
)
def test_orders_that_do_not_suit(tmp_path, options, order, said):
    source = make_pos(tmp_path, [*RUNS, ({"pkt_sz": 65, "entries": 0}, 1.0)])
    with pytest.raises(UsageError, match=said or "several variables differ in the source: pkt_sz, entries"):
        read_import([source], options, ImportOrder(**order))


def test_a_logarithmic_axis_has_no_zero(tmp_path):
    source = make_pos(tmp_path, [*RUNS, ({"pkt_sz": 64, "entries": 0}, 1.0)])
    with pytest.raises(UsageError, match="no entries = 0"):
        read_import([source], X, ImportOrder(x_scale="log"))


def test_a_source_that_vanishes_is_an_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("size,cycles_per_packet\n1,2\n2,3\n")
    found = read_import([path], ImportOptions(variables=(Named("size"),)), ImportOrder())
    path.unlink()
    with pytest.raises(DataError):
        write_import(found, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
