"""``opq``: operators of runs and of published platforms, their files and plots, and one clear message for mistakes."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.command import p4perf
from support.operators import CPU, CURVES, make_operator_run, power
from support.runs import make_run

from p4perf.errors import ExitCode

PAIRED = {**CURVES, "checksum+hash_lookup": lambda s: CURVES["checksum"](s) + 50.0}


def analysed(*arguments, code=0, cwd=None):
    done = p4perf("analyse", "opq", *arguments, "--format", "json", cwd=cwd, P4PERF_TEST_FIGURES="1")
    assert done.code == code, done.err
    return json.loads(done.out), done.err


def refused(*arguments, code=ExitCode.USAGE, cwd=None):
    """The one message of a mistake, which leaves nothing behind."""
    done = p4perf("analyse", "opq", *arguments, cwd=cwd)
    assert (done.code, done.out) == (code, ""), done.err
    assert "Traceback" not in done.err
    assert done.err.count("error: ") == 1
    assert not (cwd / "operators").exists() if cwd else True
    return done.err


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_operator_run(tmp_path_factory.mktemp("runs"), PAIRED)


@pytest.fixture(scope="module")
def found(run, tmp_path_factory):
    return analysed(run, "--with", "ren2025", "-o", tmp_path_factory.mktemp("out") / "made")[0]


class TestNumbers:
    def row(self, found, operator, platform=CPU):
        (row,) = [r for r in found["rows"] if (r["platform"], r["operator"]) == (platform, operator)]
        return row

    @pytest.mark.thorough
    def test_rows_are_all_operators_of_all_platforms(self, found):
        assert [p["name"] for p in found["platforms"]] == ["Arm", "x86", CPU]
        assert [p["published"] for p in found["platforms"]] == [True, True, False]
        assert len(found["rows"]) == 6 + 6 + 7

    def test_a_known_law_is_recovered(self, found):
        row = self.row(found, "rte_hash_crc")
        assert row["exponent"] == pytest.approx(1.11, abs=0.003)
        assert row["exponent_low"] < row["exponent"] < row["exponent_high"] < row["exponent_low"] + 0.01
        assert row["base_cycles"] == pytest.approx(0.15 * 64**1.11, rel=0.02)
        assert (row["quadrant"], row["better"]) == ("emergent bottleneck", "power")
        assert row["p_emergent"] == 1.0
        assert (row["base_below_cycles"], row["interval_from"]) == (None, "repetitions")

    def test_what_is_below_the_resolution_is_told_so(self, found):
        row = self.row(found, "htons")
        assert (row["base_cycles"], row["exponent"], row["quadrant"]) == (None, None, None)
        assert row["base_below_cycles"] == 1.0

    def test_the_published_rows(self, found):
        row = self.row(found, "CRC", "Arm")
        assert (row["base_cycles"], row["exponent"], row["quadrant"]) == (823, 1.37, "latent trap")
        assert (row["published"], row["p_latent_trap"], row["better"]) == (True, None, "")

    def test_shifts_lead_from_the_paper_to_the_run(self, found):
        arrows = {(s["from_platform"], s["from_operator"]): s for s in found["shifts"]}
        assert arrows["x86", "rte_log"]["to_operator"] == "rte_log_suppressed"
        assert arrows["x86", "CRC"]["to_operator"] == "rte_net_crc"
        assert arrows["x86", "CRC"]["changed"] is True
        assert arrows["x86", "CRC"]["probability"] == 1.0
        assert arrows["x86", "htons"]["to_quadrant"] is None

    def test_contrasts_and_pairs(self, found):
        ratios = {c["platform"]: c for c in found["contrasts"]}
        assert (round(ratios["Arm"]["ratio"], 1), round(ratios["x86"]["ratio"], 1)) == (111.2, 594.5)
        assert ratios[CPU]["ratio_low"] < 9000 / 26 < ratios[CPU]["ratio_high"]
        pairs = found["interactions"]
        assert {(p["first"], p["second"]) for p in pairs} == {("checksum", "hash_lookup")}
        assert len(pairs) == 6
        assert all(p["interaction_cycles"] == pytest.approx(-32, abs=3) and not p["additive"] for p in pairs)
        assert (found["agreed"], found["agreements"]) == (None, [])

    def test_the_files_are_the_same_data(self, found):
        folder = Path(found["output"])
        stored = json.loads((folder / "opq.json").read_text())
        assert stored == {key: value for key, value in found.items() if key not in ("output", "plots")}
        rows = list(csv.DictReader(io.StringIO((folder / "opq.csv").read_text())))
        assert [row["operator"] for row in rows] == [row["operator"] for row in found["rows"]]
        names = [f"{name}.{kind}" for name in ("quadrants", "costs", "contrasts") for kind in ("svg", "png")]
        assert [Path(plot).name for plot in found["plots"]] == names
        for plot in found["plots"]:
            if plot.endswith(".svg"):
                assert Path(plot).stat().st_size > 5000
                ET.parse(plot)  # noqa: S314 - our own file

    @pytest.mark.thorough
    def test_rules(self, tmp_path):
        options = ("--threshold", "lower-median", "--median-of", "x86", "--median-without", "printf", "--ties", "low")
        found, _ = analysed("--with", "ren2025", *options, "-o", tmp_path / "out")
        assert {row["threshold_cycles"] for row in found["rows"]} == {27}
        assert [r["quadrant"] for r in found["rows"] if r["operator"] == "Checksum"] == [
            "high startup cost",
            "ideal operator",
        ]
        assert (found["threshold"], found["ties"]) == ("lower median of all rows of x86 without printf", "low")

    @pytest.mark.thorough
    def test_cycles_of_the_time_stamp_counter(self, run, tmp_path):
        core, tsc = (analysed(run, "--clock", clock, "-o", tmp_path / clock)[0]["rows"] for clock in ("core", "tsc"))
        assert tsc[3]["operator"] == "hash_lookup"
        assert tsc[3]["base_cycles"] / core[3]["base_cycles"] == pytest.approx(0.8)
        assert tsc[4]["base_below_cycles"] == pytest.approx(0.8, abs=0.01)


class TestRuns:
    def test_the_published_platform_alone(self, tmp_path):
        done = p4perf("analyse", "opq", "--with", "ren2025", cwd=tmp_path)
        assert done.code == 0, done.err
        for text in ("823 (s / 64)^1.37", "quadrants: k at 1, base cost at 57 cycles", "111.2", "594.5", "latent trap"):
            assert text in done.out
        assert "Arm (published): Marvell CN96XX, 1.8 GHz" in done.err
        (folder,) = (tmp_path / "operators").iterdir()
        assert folder.name.startswith("Arm--x86--")

    def test_tables_of_a_run(self, run, tmp_path):
        done = p4perf("analyse", "opq", run, cwd=tmp_path)
        assert done.code == 0, done.err
        for text in ("below 1", "none: below the resolution", "overlap", "both alike", "two operators together"):
            assert text in done.out, text
        assert f"note: rte_hash_crc on {CPU}, rte_net_crc on {CPU}: super-linear" in done.err

    def test_out_of_order_execution_is_named(self, tmp_path):
        path = make_operator_run(tmp_path, {"crc": lambda s: 0.375 * s - 9})
        done = p4perf("analyse", "opq", path, cwd=tmp_path)
        assert f"note: crc on {CPU}: super-linear at small sizes only" in done.err
        assert "out-of-order execution hides the first ones" in done.err

    @pytest.mark.thorough
    def test_several_runs_are_several_platforms(self, run, tmp_path):
        other = make_operator_run(tmp_path, CURVES, cpu="AMD EPYC 7763 64-Core Processor", seed=4)
        found, _ = analysed(run, other, "--threshold", "50", "-o", tmp_path / "out")
        assert [p["name"] for p in found["platforms"]] == [CPU, "AMD EPYC 7763"]
        assert len([s for s in found["shifts"] if s["changed"] is False]) == 6

    @pytest.mark.thorough
    def test_runs_that_agree(self, run, tmp_path):
        again = make_operator_run(tmp_path, PAIRED, seed=7)
        found, _ = analysed(run, again, "--agree", "-o", tmp_path / "out")
        assert found["agreed"] is True
        assert [p["name"] for p in found["platforms"]] == [f"{CPU} #1", f"{CPU} #2"]
        assert len(found["agreements"]) == 8 * 6
        assert not [a for a in found["agreements"] if a["operator"] == "htons" and a["compared"]]

    def test_runs_that_do_not_agree(self, run, tmp_path):
        again = make_operator_run(tmp_path, {**PAIRED, "hash_lookup": lambda s: 95.0}, seed=7)
        done = p4perf("analyse", "opq", run, again, "--agree", "-o", tmp_path / "out")
        assert done.code == ExitCode.VERDICT_FAILED
        assert "36 of 42 costs above 5 cycles agree" in done.err
        assert "costs that differ by more than 10 % and 2 cycles" in done.out

    @pytest.mark.thorough
    def test_a_platform_file(self, run, tmp_path):
        file = tmp_path / "ours.yaml"
        file.write_text(
            "source: us\nplatforms: {Switch: {operators: {CRC: {cycles: {64: [20, 21], 256: [80, 82]}}}}}\n"
        )
        found, _ = analysed(run, "--with", file, "--with", "ren2025", "-o", tmp_path / "out")
        assert [p["name"] for p in found["platforms"]] == ["Switch", "Arm", "x86", CPU]
        (row,) = [r for r in found["rows"] if r["platform"] == "Switch"]
        assert row["exponent"] == pytest.approx(0.99, abs=0.02)

    def test_other_variables_tell_operators_apart(self, tmp_path):
        path = make_operator_run(tmp_path, {"chain": power(3, 0)}, further={"steps": [10, 20]})
        found, _ = analysed(path, "-o", tmp_path / "out")
        assert [r["operator"] for r in found["rows"]] == ["chain (steps 10)", "chain (steps 20)"]
        assert [round(r["base_cycles"]) for r in found["rows"]] == [30, 60]

    @pytest.mark.thorough
    def test_points_without_accepted_starts_are_left_out(self, tmp_path):
        path = make_operator_run(tmp_path, rejected=[("checksum", 64), ("rte_net_crc", 1500)])
        found, _ = analysed(path, "-o", tmp_path / "out")
        sizes = {law["operator"]: [s["packet_size_bytes"] for s in law["sizes"]] for law in found["laws"]}
        assert sizes["checksum"] == [128, 256, 512, 1024, 1500]
        assert sizes["rte_net_crc"][-1] == 1024
        assert {r["operator"]: r["base_measured"] for r in found["rows"]}["checksum"] is False

    def test_a_run_without_resolutions_takes_the_range_of_its_starts(self, tmp_path):
        path = make_operator_run(tmp_path, {"a": lambda s: 3.0, "b": lambda s: 90.0}, resolution=None, noise=2.0)
        found, _ = analysed(path, "-o", tmp_path / "out")
        assert any(size["below_cycles"] for law in found["laws"] for size in law["sizes"])


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "no run and no platform given\nhint: --with ren2025"),
            (("--with", "ren2024"), "did you mean ren2025?"),
            (("--with", "ren2025", "--threshold", "median"), "unknown rule for a threshold 'median'"),
            (("--with", "ren2025", "--threshold", "-4"), "a positive number of cycles"),
            (("--with", "ren2025", "--ties", "middle"), "'middle' is not one of 'high', 'low'"),
            (("--with", "ren2025", "--clock", "wall"), "'wall' is not one of 'core', 'tsc'"),
            (("--with", "ren2025", "--contrast", "printf"), "expected two operators"),
            (("--with", "ren2025", "--contrast", "printf,nothing"), "no platform has both printf and nothing"),
            (("--with", "ren2025", "--median-of", "Risc"), "there are Arm, x86"),
            (("--with", "ren2025", "--median-without", "nothing"), "no operator nothing to leave out"),
            (("--with", "ren2025", "--with", "ren2025"), "two platforms are called Arm"),
            (("--with", "ren2025", "--agree"), "--agree compares two runs"),
            (("nowhere",), "there is no such run directory"),
        ],
    )
    def test_of_options(self, arguments, said, tmp_path):
        assert said in refused(*arguments, cwd=tmp_path)

    def test_a_run_of_something_else(self, tmp_path):
        path = make_run(tmp_path / "runs", lambda x: x)
        assert "does not sweep operator and packet_size" in refused(path, cwd=tmp_path)

    def test_sizes_that_are_no_numbers(self, tmp_path):
        path = make_operator_run(tmp_path / "runs", {"a": lambda s: 9.0}, sizes=("small",))
        assert "the packet_size 'small' is no number of bytes" in refused(path, cwd=tmp_path)

    def test_a_run_that_is_given_twice(self, run, tmp_path):
        assert "is given twice" in refused(run, run, cwd=tmp_path)

    def test_a_run_without_accepted_costs(self, tmp_path):
        path = make_operator_run(tmp_path / "runs", {"a": power(9, 1)}, sizes=(64,), rejected=[("a", 64)])
        assert "was accepted" in refused(path, cwd=tmp_path, code=ExitCode.NO_VERDICT)

    def test_a_damaged_platform_file(self, tmp_path):
        file = tmp_path / "ours.yaml"
        file.write_text("source: us\nplatforms: {Switch: {operators: {CRC: {base: 1}}}}\n")
        text = refused("--with", file, cwd=tmp_path)
        assert f"{file.name}:2:" in text
        assert "platforms.Switch.operators.CRC.base" in text

    def test_the_folder_is_a_file(self, tmp_path):
        (tmp_path / "out").touch()
        assert "is a file, not a folder" in refused("--with", "ren2025", "-o", tmp_path / "out", cwd=tmp_path)
