"""Reproductions on the stand-in targets: what is measured, kept, gone on with, and refused."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.claims import COMPUTED, GROWS, PAPER, RISES
from support.command import p4perf

from p4perf.evaluation.papers import chosen_claims
from p4perf.experiment.reproduction import Reproduction, ReproductionFolder


@pytest.fixture
def claims(tmp_path):
    def write(target="fake", **changes):
        text = PAPER + GROWS.replace("target: fake", f"target: {target}") + RISES + COMPUTED
        for old, new in changes.values():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "mine.yaml").write_text(text)
        return ("reproduce", "mine.yaml", "-o", "out")

    return write


def reproduced(arguments, folder, code=0):
    done = p4perf(*arguments, "--format", "json", cwd=folder)
    assert done.code == code, done.err
    return json.loads(done.out), done.err


@pytest.mark.thorough
def test_one_run_for_all_claims_about_it(tmp_path, claims):
    answer, said = reproduced(claims(), tmp_path)
    assert [row["verdict"] for row in answer["rows"]] == ["shape reproduced", "shape reproduced", "reproduced"]
    assert answer["rows"][0]["quantities"]["ratio"] == pytest.approx(2.2, abs=0.05)
    assert said.count("measuring mat/exact-entries on fake") == 1
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert answer["rows"][0]["run"] == answer["rows"][1]["run"] == f"runs/{run.name}"
    assert (run / "model.json").exists()
    page, text = ((tmp_path / "out" / f"reproduction.{kind}").read_text() for kind in ("html", "md"))
    for name in ("grows", "rises", "computed"):
        assert name in page
        assert f"| `{name}` |" in text
    assert f'href="runs/{run.name}"' in page


@pytest.mark.thorough
def test_finished_claims_are_not_checked_again(tmp_path, claims):
    reproduced(claims(), tmp_path)
    before = sorted((tmp_path / "out" / "runs").iterdir())
    answer, said = reproduced(claims(), tmp_path)
    assert "3 known from before" in said
    assert "measuring" not in said
    assert sorted((tmp_path / "out" / "runs").iterdir()) == before
    assert answer["unexpected"] == []
    # Another expectation is judged by what was measured; another run is measured.
    stricter = claims(ratio=("ratio: {at_least: 2}", "ratio: {at_least: 9}"))
    answer, said = reproduced(stricter, tmp_path, code=1)
    assert answer["unexpected"] == ["mine2026:grows"]
    assert "measuring" not in said
    _, said = reproduced(claims(sweep=("100000, 1000000]", "100000, 2000000]")), tmp_path)
    assert said.count("measuring") == 1


@pytest.mark.thorough
def test_few_points(tmp_path, claims):
    answer, _ = reproduced((*claims(), "--quick"), tmp_path)
    assert [row["quick"] for row in answer["rows"]] == [True, True, False]
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert len(json.loads((run / "manifest.json").read_text())["planned_points"]) == 3
    answer, said = reproduced(claims(), tmp_path)
    assert said.count("measuring") == 1
    assert not any(row["quick"] for row in answer["rows"])
    # What was measured with all points is good enough for a quick look.
    answer, said = reproduced((*claims(), "--quick"), tmp_path)
    assert "3 known from before" in said


def test_what_does_not_fit_into_the_budget_is_not_run_and_said_to_be_so(tmp_path, claims):
    answer, said = reproduced((*claims(), "--budget", "1s"), tmp_path)
    assert [row["verdict"] for row in answer["rows"]] == ["not run", "not run", "reproduced"]
    assert "its run takes about" in answer["rows"][0]["reason"]
    assert answer["verdicts"] == {"not run": 2, "reproduced": 1}
    assert answer["unexpected"] == []
    assert "3 claims: 1 to compute, 2 to measure in 1 run; about " in said
    assert "; 1 s at most" in said
    assert "2 claims not run: a larger --budget or --quick, and the same --output, continues" in said
    assert "not run: its run takes" in (tmp_path / "out" / "reproduction.md").read_text()
    assert not list((tmp_path / "out" / "runs").iterdir())
    answer, said = reproduced((*claims(), "--budget", "10m"), tmp_path)
    assert "1 known from before" in said
    assert answer["verdicts"] == {"reproduced": 1, "shape reproduced": 2}


@pytest.mark.parametrize("arguments", [("eivu", "--budget", "1m"), ("--list", "--budget", "1m"), ("--budget", "soon")])
def test_budgets_that_make_no_sense(tmp_path, arguments):
    assert p4perf("reproduce", *arguments, cwd=tmp_path).code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
def test_a_run_that_was_stopped_is_gone_on_with(tmp_path, claims):
    reproduced(claims(), tmp_path)
    (run,) = (tmp_path / "out" / "runs").iterdir()
    for point in list((run / "points").iterdir())[:2]:
        for file in ("finished.json", "raw.jsonl"):
            (point / file).unlink()
    report = tmp_path / "out" / "reproduction.json"
    content = json.loads(report.read_text())
    del content["claims"]["mine2026:grows"]
    report.write_text(json.dumps(content))
    answer, said = reproduced(claims(), tmp_path)
    assert "4 of them finished before" in said
    assert answer["rows"][0]["verdict"] == "shape reproduced"
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == [run.name]


def test_what_a_kill_left_out_behind_the_last_trial_is_made(tmp_path, claims):
    reproduced(claims(), tmp_path)
    (run,) = (tmp_path / "out" / "runs").iterdir()
    report = tmp_path / "out" / "reproduction.json"
    content = json.loads(report.read_text())
    assert content["open"] == []
    report.write_text(json.dumps({**content, "claims": {}, "open": list(content["runs"])}))
    made = [run / "measurements.parquet", run / "model.json", *run.glob("plots/*")]
    for path in made:
        path.unlink()
    answer, _ = reproduced(claims(), tmp_path)
    assert [row["verdict"] for row in answer["rows"][:2]] == ["shape reproduced"] * 2
    assert [path for path in made if not path.exists()] == []
    assert json.loads(report.read_text())["open"] == []
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == [run.name]


@pytest.mark.parametrize(("key", "value"), [("quantities", ["x"]), ("duration_s", "x"), ("run", {})])
def test_a_damaged_finding_is_made_again(tmp_path, claims, key, value):
    text = claims() and (tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text[: text.index("  - id: grows")] + text[text.index("  - id: computed") :])
    reproduced(claims_only := ("reproduce", "mine.yaml", "-o", "out"), tmp_path)
    report = tmp_path / "out" / "reproduction.json"
    content = json.loads(report.read_text())
    content["claims"]["mine2026:computed"][key] = value
    report.write_text(json.dumps(content))
    answer, _ = reproduced(claims_only, tmp_path)
    assert answer["rows"][0]["verdict"] == "reproduced"
    assert json.loads(report.read_text())["claims"]["mine2026:computed"]["quantities"] == {"bytes": 152128}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("target", "code", "reason"),
    [
        ("fake-absent", 3, "no flux capacitor"),
        ("fake-noisy", 6, "accepted"),
        ("fake-wrong", 4, "packet 7 differs"),
        ("fake-unbuildable", 3, "the build failed"),
    ],
)
def test_what_cannot_be_measured_is_told(tmp_path, claims, target, code, reason):
    answer, said = reproduced(claims(target), tmp_path, code=code)
    assert [row["verdict"] for row in answer["rows"]] == ["not possible here", "not possible here", "reproduced"]
    assert reason in answer["rows"][0]["reason"]
    assert "not possible here: mine2026:grows" in said
    assert answer["exit_code"] == code
    # It is tried again.
    _, said = reproduced(claims(target), tmp_path, code=code)
    assert "1 known from before" in said


def test_a_wrong_verdict_counts_more_than_one_that_is_missing(tmp_path, claims):
    arguments = claims("fake-absent", bytes=("value: 152128", "value: 152129"))
    answer, said = reproduced(arguments, tmp_path, code=1)
    assert "mine2026:computed" in answer["unexpected"]
    assert "bytes is 152128 B, not 152129 B" in said


def test_what_was_found_before_an_interruption_is_kept(tmp_path):
    class Impatient:
        """Stops after the first claim."""

        def told(self, text):
            if "reproduced" in text:
                raise KeyboardInterrupt

        def reached(self, what, left_s):
            assert left_s > 0

    claims = chosen_claims(["ren2025:eq3-cost-from-two-rates", "ren2025:table-ii-as-printed"])
    folder = ReproductionFolder.at(tmp_path / "out", datetime.now(UTC))
    with pytest.raises(KeyboardInterrupt):
        Reproduction(folder, Impatient()).check(claims)
    again = ReproductionFolder.at(tmp_path / "out", datetime.now(UTC))
    known = [again.finding(paper.key, claim, quick=False) for paper, claim in claims]
    assert known[0].verdict == "reproduced"
    assert known[1] is None


@pytest.mark.thorough
def test_other_folders_are_left_alone(tmp_path, claims):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("mine")
    done = p4perf(*claims(), cwd=tmp_path)
    assert done.code == 2
    assert "has something else in it" in done.err
    (tmp_path / "out" / "reproduction.json").write_text("{}")
    done = p4perf(*claims(), cwd=tmp_path)
    assert done.code == 2
    assert "is no reproduction that this p4perf can read" in done.err
    (tmp_path / "file").touch()
    assert p4perf("reproduce", "mine.yaml", "-o", "file", cwd=tmp_path).code == 2


def test_a_peer_reads_the_crate(tmp_path):
    peer = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed")
    assert p4perf("reproduce", "scholz2021:eq5", "--only", "analytic", "-o", "out", cwd=tmp_path).code == 0
    crate = peer.ROCrate(tmp_path / "out")
    assert "Claims of published papers" in crate.name
    assert {"reproduction.json", "reproduction.md", "reproduction.html"} <= {e.id for e in crate.data_entities}


def test_the_command(tmp_path):
    done = p4perf("reproduce", "--list", "--format", "json", cwd=tmp_path)
    rows = json.loads(done.out)["rows"]
    assert {row["paper"] for row in rows} == {"baldi2018", "gebert2016", "ren2025", "scholz2021", "takeya2024"}
    table = p4perf("reproduce", "--list", cwd=tmp_path).out.splitlines()
    assert {f"{row['paper']}:{row['claim']}" for row in rows} <= {line.split()[0] for line in table}
    assert any("(The slides give no numbers" in line for line in table)
    done = p4perf("reproduce", "takeya2024:a-miss-is-a-copy", "-o", "impossible", cwd=tmp_path)
    assert "not possible here: The slides give no numbers" in done.out
    assert "1/1 takeya2024:a-miss-is-a-copy: not possible here: The slides give no numbers" in done.err
    done = p4perf("reproduce", "scholz2021:fig2-entries-that-fill-l3", cwd=tmp_path)
    assert done.code == 0
    assert "131578" in done.out
    done = p4perf("reproduce", "baldi2018:increase-1", "scholz2021:fig3-onset", "-o", "two", cwd=tmp_path)
    assert [line.split()[0] for line in done.out.splitlines()] == [
        "claim",
        "baldi2018:increase-1",
        "scholz2021:fig3-onset",
    ]
    assert "1 of them rests in part on our reading" in done.err
    for name in ("reproduction.md", "reproduction.html"):
        assert (tmp_path / "two" / name).read_text().count("Our reading: ") == 1
    assert len(list((tmp_path / "reproductions").iterdir())) == 1
    for arguments, message in (
        (["reproduce", "scholz2020"], "did you mean scholz2021?"),
        (["reproduce", "scholz2021:fig7"], "there is no claim 'fig7' of scholz2021"),
        (["reproduce", "nothing.yaml"], "there is no such file of claims"),
        (["reproduce", "--list", "--quick"], "--list checks nothing"),
    ):
        wrong = p4perf(*arguments, cwd=tmp_path)
        assert (wrong.code, "Traceback" in wrong.err) == (2, False)
        assert message in wrong.err
    assert not Path(tmp_path / "reproduction.json").exists()
