"""The command cesim: what it prints, and what it refuses."""

import csv
import io
import json

import pytest
from support.command import p4perf


def rows(*arguments, cwd):
    done = p4perf("estimate", "cesim", *arguments, "--format", "json", cwd=cwd)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_all_variants_at_some_hit_ratios(tmp_path):
    answer = rows(cwd=tmp_path)
    assert {row["variant"] for row in answer["rows"]} == {"simple", "beta1", "parallelised"}
    assert len(answer["rows"]) == 18
    assert all(row["mpps"] == pytest.approx(172) for row in answer["rows"] if row["hit_ratio"] == 1)
    assert answer["parameters"]["l1_cycles"] == 4
    assert answer["fits"] == []


@pytest.mark.parametrize("rate", ["100mpps", "100 Mpps", "100", "100000kpps", "0.1Gpps", "100000000pps"])
def test_rates_as_people_write_them(tmp_path, rate):
    (row,) = rows("--inverse", rate, "--variant", "parallelised", cwd=tmp_path)["rows"]
    assert row["hit_ratio"] == pytest.approx(0.999642, abs=1e-6)
    assert row["mpps"] == pytest.approx(100)


def test_questions_and_parameters_together(tmp_path):
    options = ["--alpha", "0.1", "--revision", "pre-fix", "-r", "0.9", "-r", "0.99", "--inverse", "86"]
    answer = rows(*options, "--variant", "parallelised", cwd=tmp_path)
    assert [row["asked"] for row in answer["rows"]] == ["throughput", "throughput", "hit ratio"]
    assert {row["revision"] for row in answer["rows"]} == {"pre-fix"}
    (point,) = answer["tipping_points"]
    assert point["half_miss_ratio"] == pytest.approx(1 - answer["rows"][2]["hit_ratio"])


def test_a_fit_of_a_file_with_repetitions(tmp_path):
    curve = rows("--alpha", "0.3", "-r", "0.9", "-r", "0.99", "-r", "0.999", "-r", "0.9999", "-r", "1",
                 "--variant", "parallelised", cwd=tmp_path)["rows"]  # fmt: skip
    lines = [f"{row['hit_ratio']},{row['mpps']}" for row in curve for _ in range(2)]
    (tmp_path / "data.csv").write_text("r,t\n" + "\n".join(lines) + "\n")
    options = ["--fit", "data.csv", "--x", "r", "--y", "t", "--variant", "parallelised"]
    (fit,) = rows(*options, cwd=tmp_path)["fits"]
    assert fit["alpha"] == pytest.approx(0.3, abs=0.01)
    assert fit["accesses_per_packet"] == pytest.approx(163, rel=0.02)
    assert fit["n"] == 10


def test_csv_has_the_rows(tmp_path):
    done = p4perf("estimate", "cesim", "-r", "0.999", "--format", "csv", cwd=tmp_path)
    assert [row["variant"] for row in csv.DictReader(io.StringIO(done.out))] == ["simple", "beta1", "parallelised"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "1"], "alpha: must be 0 to below 1"),
        (["--alpha", "nan"], "alpha: must be 0 to below 1"),
        (["-r", "99.9"], "99.9 % is 0.999"),
        (["--inverse", "200mpps"], "200 Mpps are not within 0 and the 172 Mpps"),
        (["--inverse", "0"], "0 Mpps is not more than zero"),
        (["--inverse", "many"], "expected a packet rate such as 0.5 Mpps"),
        (["--inverse", "nanmpps"], "expected a packet rate such as 0.5 Mpps"),
        (["--best", "1e400"], "expected a packet rate such as 0.5 Mpps"),
        (["--accesses", "1"], "beta = 0.393 < 1"),
        (["--l2-cycles", "3"], "latencies must rise"),
        (["--clock-ghz", "0"], "clock_ghz: must be above 0"),
        (["--variant", "other"], "variant"),
        (["--fit", "nothing.csv"], "nothing.csv"),
    ],
)
def test_what_is_refused(tmp_path, arguments, message):
    done = p4perf("estimate", "cesim", *arguments, cwd=tmp_path)
    assert done.code in (2, 3)
    assert message in done.err
    assert done.out == ""
    assert "Traceback" not in done.err
