"""p4perf import, and the other commands on what it made."""

import json
import math

import pytest
from support.command import p4perf
from support.imports import LOG, counter_csv, csit_test, make_pos, trex_stats

POINTS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def table(path, slope):
    lines = ["rules,cycles,run"]
    lines += [f"{n},{50 + slope * n + 0.01 * r},{r}" for n in POINTS for r in range(3)]
    path.write_text("\n".join(lines) + "\n")
    return path


def made(folder, source, *arguments, code=0):
    done = p4perf("import", source, *arguments, "-o", folder / "runs", "--format", "json")
    assert done.code == code, done.err
    return json.loads(done.out), done


CSV = ("--x", "entries=rules", "--metric", "cycles_per_packet=cycles", "--repetition", "run")


def test_import_fit_compare_export(tmp_path):
    runs = []
    for target, slope in (("theirs", 0.5), ("others", 0.25)):
        found, done = made(
            tmp_path, table(tmp_path / f"{target}.csv", slope), *CSV, "--target", target, "--experiment", "mat/rules"
        )
        assert "written: " in done.err
        assert (found["importer"], found["points"], found["trials"]) == ("csv", 9, 27)
        runs.append(found["run"])
    done = p4perf("fit", runs[0], "--format", "json")
    assert done.code == 0, done.err
    model = json.loads(done.out)
    assert (model["x"]["name"], model["y"]["name"], model["target"]) == ("entries", "cycles_per_packet", "theirs")
    assert model["segments"][0]["template"]
    assert "note: imported by csv from" in done.err
    done = p4perf("compare", *runs, "-o", tmp_path / "comparison", "--format", "json")
    assert done.code == 0, done.err
    ratio = [row for row in json.loads(done.out)["rows"] if row]
    assert ratio
    assert "not measured by p4perf" in done.err
    assert "the machine" not in done.out
    exported = p4perf("export", runs[0])
    assert "not measured by p4perf" in exported.out
    names: dict = {}
    exec(exported.out, names)  # noqa: S102
    assert math.isclose(names["mat_rules_cycles_per_packet"](64), 82, rel_tol=0.01)
    many = p4perf("fit", *runs, "-o", tmp_path / "models.jsonl")
    assert many.code == 0, many.err
    assert "imported by csv" in (tmp_path / "models.jsonl").read_text()


@pytest.mark.thorough
def test_the_other_commands(tmp_path):
    found, _ = made(tmp_path, table(tmp_path / "a.csv", 1), *CSV)
    run = found["run"]
    shown = p4perf("show", run)
    assert "imported" in shown.out
    assert "not measured by p4perf" in shown.err
    status = json.loads(p4perf("status", run, "--format", "json").out)["rows"][0]
    assert (status["complete"], status["imported"], status["trials"], status["wanted"]) == (True, "csv", 27, None)
    listed = json.loads(p4perf("list", "runs", "--in", tmp_path / "runs", "--format", "json").out)["rows"]
    assert [row["imported"] for row in listed] == ["csv"]
    for arguments in (("resume", run), ("run", f"{run}/spec.yaml"), ("check", f"{run}/spec.yaml")):
        done = p4perf(*arguments)
        assert (done.code, done.out) == (2, ""), done.err
        assert "imported" in done.err


def test_a_dry_run_shows_every_value_and_writes_nothing(tmp_path):
    found, _ = made(tmp_path, table(tmp_path / "a.csv", 1), *CSV, "--dry-run")
    assert found["kind"] == "import.plan"
    assert found["run"] is None
    assert len(found["rows"]) == 27
    first = found["rows"][0]
    assert (first["entries"], first["value"], first["name"]) == (1, 51, "cycles")
    assert first["place"].endswith("a.csv:2: cycles")
    assert not (tmp_path / "runs").exists()


def test_pos(tmp_path):
    source = make_pos(tmp_path, [({"pkt_sz": s, "pkt_rate": r}, r * 1.0) for s in (64, 1500) for r in (1, 2, 3)])
    (source / "dut" / "2020-10-07_23-27-11_423961_unknown_run2.status").write_text("error")
    done = p4perf("import", source, "-o", tmp_path / "runs")
    assert done.code == 2
    assert "--x pkt_sz" in done.err
    done = p4perf("import", source, "--x", "pkt_rate", "--only", "pkt_sz=64", "-o", tmp_path / "runs")
    assert done.code == 0, done.err
    assert "ended as 'error'" in done.err
    assert "the same everywhere: pkt_sz=64" in done.err
    assert "2 points over pkt_rate" in done.out


@pytest.mark.sampled(2)
def test_single_files(tmp_path):
    for size in (64, 128, 256):
        (tmp_path / f"rx-{size}.csv").write_text(counter_csv([1.0, size / 10, size / 10]))
    files = sorted(tmp_path.glob("rx-*.csv"))
    found, _ = made(tmp_path, files[0], *files[1:], "--name", "rx-{frame_size}.csv", "--metric", "receive_rate=rate")
    assert found["variables"] == ["frame_size"]
    assert [row["metric"] for row in found["rows"]] == ["receive_rate"]
    (tmp_path / "throughput.log").write_text(LOG)
    found, _ = made(tmp_path, tmp_path / "throughput.log", "--set", "entries=10", "--dry-run")
    assert (found["importer"], found["constants"]) == ("moongen", {"entries": 10})
    (tmp_path / "stats.json").write_text(trex_stats())
    found, _ = made(tmp_path, tmp_path / "stats.json", "--set", "frame_size=64", "--x-scale", "log")
    assert found["importer"] == "trex"
    (tmp_path / "test.info.json").write_text(json.dumps(csit_test()))
    found, _ = made(tmp_path, tmp_path / "test.info.json", "--x", "frame_size")
    assert (found["target"], found["testbed"]) == ("vpp", "csit")
    assert p4perf("show", found["run"]).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--x", "rules"), "no column with the name of a metric"),
        (("--from", "cvs"), "did you mean csv?"),
        (("--set", "a"), "expected VARIABLE=VALUE"),
        (("--only", "a="), "expected VARIABLE=VALUE"),
        (("--set", "a=1", "--set", "a=2"), "given twice\nhint: give a one value\n"),
        (("--x-scale", "loud"), "'loud' is not one of 'linear', 'log'"),
        (("--metric", "cycles"), "unknown metric 'cycles'"),
        (("--name", "a"), "different fields in braces"),
        ((*CSV, "--experiment", "My Test"), "not a name of an experiment"),
    ],
)
def test_mistakes(tmp_path, arguments, said):
    done = p4perf("import", table(tmp_path / "a.csv", 1), *arguments, "-o", tmp_path / "runs")
    assert (done.code, done.out) == (2, ""), done.err
    assert said in done.err
    assert done.err.count("error:") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.sampled(6)
def test_bad_sources(tmp_path):
    for name, data, said in (
        ("binary", b"\0\1\2", "is binary"),
        ("empty", b"", "is empty"),
        ("archive.csv.gz", b"\x1f\x8b\x08\0", "unpack it first"),
        ("notes", b"hello\n", "of an unknown kind"),
    ):
        (tmp_path / name).write_bytes(data)
        done = p4perf("import", tmp_path / name, "-o", tmp_path / "runs")
        assert done.code == 2
        assert said in done.err
        assert name in done.err
    done = p4perf("import", tmp_path / "archive.csv.gz", "--from", "csv", "--x", "a")
    assert "unpack it first" in done.err
    assert p4perf("import", tmp_path / "absent").code == 2


def test_readers_are_listed(tmp_path):
    done = p4perf("list", "importers", "--format", "json")
    assert [row["name"] for row in json.loads(done.out)["rows"]] == ["csit", "csv", "moongen", "pos", "trex"]
