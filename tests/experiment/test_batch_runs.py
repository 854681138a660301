"""Runs on testbeds that work in batches: rounds, results that are brought back, losses, unknown machines."""

import json
import shutil
import signal
import subprocess

import pytest
from support.command import command, environment, p4perf
from support.pos import FakePos
from support.sshd import wait_until

SPEC = ["mat/exact-entries", "--set", "entries=[1, 1000]", "--target", "fake"]
FEW = [*SPEC, "--set", "trials.repetitions=2"]
"""Two points, two trials each."""


@pytest.fixture
def pos(tmp_path):
    return FakePos(tmp_path / "pos")


def only(folder):
    (run,) = [p for p in folder.glob("[!.]*") if (p / "manifest.json").exists()]
    return run


def manifest(run):
    return json.loads((run / "manifest.json").read_text())


def journal(run):
    """Records, failures and numbers of trials by point; without what depends on time."""
    found = {}
    for path in sorted(run.glob("points/*/raw.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.parent.name] = [(line["trial"], line.get("record"), line.get("failure")) for line in lines]
    return found


def measure(folder, code=0):
    done = subprocess.run(["sh", "run.sh"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done


class TestManual:
    def test_a_folder_goes_and_comes_back(self, tmp_path):
        """Everything that is needed is in the folder; the run is the one of testbed local."""
        folder = tmp_path / "folder"
        begun = p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        assert begun.code == 7, begun.err
        run = only(tmp_path / "runs")
        assert f"waiting: 4 of 4 trials have no result yet: run {folder}/run.sh" in begun.err
        assert f"p4perf resume {run}" in begun.err
        assert "run.sh" in (folder / "README.md").read_text()
        assert p4perf("resume", run).code == 7
        assert p4perf("fit", run).code == 6, "there is nothing to fit"
        assert p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs").code == 3

        away = tmp_path / "away"
        shutil.copytree(folder, away)
        shutil.rmtree(away / "loadgen")
        measure(away)
        shutil.move(away / "results", folder / "results")
        done = p4perf("import", folder, "--format", "json")
        assert done.code == 0, done.err
        assert p4perf("run", *FEW, "-o", tmp_path / "local").code == 0
        local = only(tmp_path / "local")
        assert journal(run) == journal(local)
        assert (run / "spec.yaml").read_bytes() == (local / "spec.yaml").read_bytes()
        assert manifest(run)["place"] == {"address": f"manual:{folder}", "folder": str(folder)}
        compared = p4perf("compare", run, local, "--format", "json", "--output", tmp_path / "compared")
        assert compared.code == 0, compared.err
        again = p4perf("resume", run, "--format", "json")
        assert (again.code, journal(run)) == (0, journal(local))

    @pytest.mark.thorough
    def test_results_may_come_in_parts(self, tmp_path):
        folder = tmp_path / "folder"
        p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        run = only(tmp_path / "runs")
        measure(folder)
        (tmp_path / "kept").mkdir()
        for name in ("p000-a0", "p001-a1"):
            shutil.move(folder / "results" / name, tmp_path / "kept" / name)
        half = p4perf("resume", run)
        assert half.code == 7, half.err
        assert "2 of 4 trials have no result yet" in half.err
        assert sum(map(len, journal(run).values())) == 2
        (tmp_path / "kept" / "p000-a0" / "trial.stdout").write_text("cut")
        for name in ("p000-a0", "p001-a1"):
            shutil.move(tmp_path / "kept" / name, folder / "results" / name)
        assert "1 of 4 trials" in p4perf("resume", run).err
        shutil.rmtree(folder / "results" / "p000-a0")
        measured = measure(folder)
        assert measured.stdout.count("trial ") == 1
        assert p4perf("resume", run).code == 0
        assert {len(trials) for trials in journal(run).values()} == {2}

    @pytest.mark.thorough
    def test_another_round(self, tmp_path):
        """What was disturbed is measured again in the same folder, with new names, until attempts are exhausted."""
        folder = tmp_path / "folder"
        noisy = ["mat/exact-entries", "--set", "entries=[1]", "--set", "trials.repetitions=1", "--target", "fake-noisy"]
        p4perf(
            "run", *noisy, "--set", "trials.max_attempts=2", "--testbed", f"manual:{folder}", "-o", tmp_path / "runs"
        )
        run = only(tmp_path / "runs")
        measure(folder)
        second = p4perf("resume", run)
        assert second.code == 7, second.err
        assert (folder / "dut" / "trials.txt").read_text().split()[0] == "p000-a1"
        assert [p.name for p in (folder / "dut" / "trials").iterdir()] == ["p000-a1.sh"]
        measure(folder)
        last = p4perf("resume", run)
        assert last.code == 4, last.err
        assert [trial["attempt"] for trials in journal(run).values() for trial, _, _ in trials] == [0, 1]

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("fake-wrong", "no point could be measured on manual; the first, entries=1: verify: packet 7 differs"),
            ("fake-unbuildable", "the build on manual failed: a.c:"),
            ("fake-dying", "no point could be measured on manual; the first, entries=1: the program ended with status"),
        ],
    )
    def test_programs_that_fail(self, tmp_path, target, message):
        folder = tmp_path / "folder"
        words = ["mat/exact-entries", "--set", "entries=[1]", "--target", target]
        p4perf("run", *words, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        run = only(tmp_path / "runs")
        measure(folder)
        done = p4perf("resume", run)
        assert done.code in (3, 4), done.err
        assert message in done.err

    @pytest.mark.thorough
    def test_a_machine_that_nobody_saw(self, tmp_path):
        """The run is of the machine that measured; results of yet another one are refused."""
        folder = tmp_path / "folder"
        p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        run = only(tmp_path / "runs")
        assert manifest(run)["provisional"] is True
        measure(folder)
        (folder / "results" / "p001-a1").rename(tmp_path / "kept")
        facts = folder / "results" / "facts.txt"
        facts.write_text(facts.read_text().replace("cpu_model=", "cpu_model=Other "))
        assert p4perf("resume", run).code == 7
        noted = manifest(run)
        assert noted["node"]["cpu_model"].startswith("Other ")
        assert noted["provisional"] is False
        assert not noted["planned_for"]["cpu_model"].startswith("Other ")
        assert "memory_total_bytes" in noted["node"]
        assert "memory_total_bytes" not in noted["planned_for"]
        assert "another machine" in measure(folder, code=1).stderr
        facts.write_text(facts.read_text().replace("cpu_model=Other ", "cpu_model=Third "))
        (tmp_path / "kept").rename(folder / "results" / "p001-a1")
        refused = p4perf("resume", run)
        assert refused.code == 2
        assert "was begun on another machine or with other tools: cpu_model was 'Other " in refused.err

    def test_facts_that_were_brought_before(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "facts.txt").write_text("machine=x86_64\ncpu_model=Theirs\n")
        p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        run = only(tmp_path / "runs")
        assert manifest(run)["node"] == {"machine": "x86_64", "cpu_model": "Theirs"}
        measure(folder)
        refused = p4perf("import", folder)
        assert refused.code == 2
        assert "cpu_model was 'Theirs'" in refused.err

    @pytest.mark.thorough
    def test_results_that_say_nothing_of_their_machine(self, tmp_path):
        folder = tmp_path / "folder"
        p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        measure(folder)
        (folder / "results" / "facts.txt").unlink()
        refused = p4perf("import", folder)
        assert (refused.code, "do not name their machine" in refused.err) == (2, True), refused.err

    def test_a_folder_with_something_else_in_it(self, tmp_path):
        (tmp_path / "mine.txt").write_text("mine")
        refused = p4perf("run", *FEW, "--testbed", f"manual:{tmp_path}", "-o", tmp_path / "runs")
        assert refused.code == 3
        assert "has something else in it" in refused.err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]

    @pytest.mark.thorough
    def test_by_hand_on_a_site_with_pos(self, tmp_path, pos):
        """The folder is an experiment of pos as well, whose result folder is brought back."""
        folder = tmp_path / "folder"
        p4perf("run", *FEW, "--testbed", f"manual:{folder}", "-o", tmp_path / "runs")
        script = folder / "experiment.sh"
        script.write_text(script.read_text().replace("/root/p4perf", f"{tmp_path}/disk/p4perf"))
        variables = folder / "dut" / "variables.yml"
        variables.write_text(variables.read_text().replace("/root/p4perf", f"{tmp_path}/disk/p4perf"))
        path = environment()["PATH"]
        done = subprocess.run(
            ["sh", "experiment.sh", "cesis"],
            cwd=folder,
            env=environment(PATH=f"{pos.shim()}:{path}"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert pos.freed
        (folder / "results").mkdir()
        shutil.copytree(pos.trees[0], folder / "results" / "tree")
        done = p4perf("import", folder)
        assert done.code == 0, done.err


class TestPos:
    def test_a_sweep_is_the_one_of_this_machine(self, pos, tmp_path):
        address = f"pos:{pos.site(result_folder='mine')}"
        there = p4perf("run", *FEW, "--testbed", address, "-o", tmp_path / "there")
        assert there.code == 0, there.err
        here = p4perf("run", *FEW, "-o", tmp_path / "here")
        run, local = only(tmp_path / "there"), only(tmp_path / "here")
        assert journal(run) == journal(local)
        assert there.out == here.out, "the models are the same"
        assert (run / "spec.yaml").read_bytes() == (local / "spec.yaml").read_bytes()
        assert manifest(run)["place"] == {"address": f"{address}:cesis", "node": "cesis", "image": "debian-bookworm"}
        assert pos.freed
        assert [tree.parent.name for tree in pos.trees] == ["mine"] * 2, "one for the facts, one for the trials"
        for path in run.rglob("*"):
            assert not path.is_file() or b"s3cr3t" not in path.read_bytes(), path

    @pytest.mark.thorough
    def test_lost_runs_are_measured_again(self, pos, tmp_path):
        pos.configure(lost_runs=[1], silent_runs=[2])
        done = p4perf("run", *FEW, "--testbed", f"pos:{pos.known_site()}", "-o", tmp_path)
        assert done.code == 0, done.err
        text = " ".join(done.err.split())
        assert "2 of 4 trials have no result; the first" in text
        run = only(tmp_path)
        assert {len(trials) for trials in journal(run).values()} == {2}
        assert len(list(run.glob("batches/*"))) == 2
        assert len(pos.trees) == 2

    @pytest.mark.thorough
    def test_a_batch_of_which_nothing_comes_back(self, pos, tmp_path):
        pos.configure(silent_runs=[0, 1, 2, 3])
        failed = p4perf("run", *FEW, "--testbed", f"pos:{pos.known_site()}", "-o", tmp_path)
        assert failed.code == 3
        assert "node cesis, measuring, run" in failed.err
        assert "it has no status: the command did not end" in failed.err
        assert pos.freed
        assert p4perf("resume", only(tmp_path)).code == 0

    def test_killed_and_resumed(self, pos, tmp_path):
        """The batch goes on without p4perf, and is awaited and read by the next."""
        words = command("run", *FEW, "--testbed", f"pos:{pos.known_site()}", "-o", tmp_path / "runs")
        with subprocess.Popen(words, env=environment(P4PERF_FAKE_SLEEP_S="0.7"), stderr=subprocess.PIPE) as process:
            try:
                wait_until(lambda: list(pos.folder.glob("results/**/*_measurement_run0.status")), 60)
            finally:
                process.send_signal(signal.SIGKILL)
        run = only(tmp_path / "runs")
        assert journal(run) == {}
        assert not pos.freed or pos.state["allocations"], "nobody could free it"
        done = p4perf("resume", run)
        assert done.code == 0, done.err
        assert "continuing command" in done.err
        assert pos.freed
        assert {len(trials) for trials in journal(run).values()} == {2}
        assert len(pos.trees) == 1
        assert len(list(run.glob("batches/*"))) == 1

    @pytest.mark.thorough
    def test_killed_before_it_measured(self, pos, tmp_path):
        hangs_once = f"test -e {tmp_path}/hung || {{ touch {tmp_path}/hung; sleep 600; }}"
        site = pos.site(node={"setup": [["sh", "-c", hangs_once]]}, facts="facts.txt")
        (pos.folder / "facts.txt").write_text("machine=x86_64\n")
        words = command("run", *FEW, "--testbed", f"pos:{site}", "-o", tmp_path / "runs")
        with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE) as process:
            try:
                wait_until(lambda: any("await" in line for line in pos.log), 60)
            finally:
                process.send_signal(signal.SIGKILL)
        run = only(tmp_path / "runs")
        # What it is planned for was made up: the node is another one.
        refused = p4perf("resume", run)
        assert (refused.code, "was begun on another machine" in refused.err) == (2, True), refused.err
        assert pos.freed
        assert len(pos.trees) == 2

    @pytest.mark.thorough
    def test_interrupted_and_resumed(self, pos, tmp_path):
        words = command("run", *FEW, "--testbed", f"pos:{pos.known_site()}", "-o", tmp_path / "runs")
        with subprocess.Popen(words, env=environment(P4PERF_FAKE_SLEEP_S="0.7"), stderr=subprocess.PIPE) as process:
            wait_until(lambda: list(pos.folder.glob("results/**/*_measurement_run0.status")), 60)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert pos.freed
        run = only(tmp_path / "runs")
        done = p4perf("resume", run)
        assert done.code == 0, done.err
        assert {len(trials) for trials in journal(run).values()} == {2}
        assert len(pos.trees) == 2

    @pytest.mark.thorough
    def test_the_node_is_another_machine_now(self, pos, tmp_path):
        (pos.folder / "facts.txt").write_text("machine=x86_64\ncpu_model=Old\n")
        site = pos.site(facts="facts.txt")
        refused = p4perf("run", *FEW, "--testbed", f"pos:{site}", "-o", tmp_path / "runs")
        assert refused.code == 2
        assert "cpu_model was 'Old'" in refused.err
        assert pos.freed


class TestRefused:
    """What needs somebody who answers between trials."""

    @pytest.fixture
    def address(self, tmp_path):
        return f"manual:{tmp_path / 'folder'}"

    def test_a_load_generator(self, address, tmp_path):
        refused = p4perf("run", "load/rate", "--target", "dpdk-c", "--testbed", address, "-o", tmp_path / "runs")
        assert refused.code == 2, refused.err
        assert "measures the device alone" in refused.err
        assert not (tmp_path / "folder").exists()
        assert not (tmp_path / "runs").exists()

    def test_a_campaign(self, address, tmp_path):
        refused = p4perf("run", *SPEC, "--budget", "1m", "--testbed", address, "-o", tmp_path / "runs")
        assert (refused.code, "works in batches" in refused.err) == (2, True), refused.err

    def test_a_program_of_your_own(self, address, tmp_path):
        (tmp_path / "a.spec").write_text("mov m.a 1\n")
        refused = p4perf("measure", tmp_path / "a.spec", "--testbed", address, "-o", tmp_path / "runs")
        assert refused.code in (2, 3), refused.err
        assert "Traceback" not in refused.err
        assert "defect" not in refused.err

    def test_options_of_import(self, address, tmp_path):
        p4perf("run", *FEW, "--testbed", address, "-o", tmp_path / "runs")
        refused = p4perf("import", tmp_path / "folder", "--x", "entries")
        assert (refused.code, "is of a run of p4perf" in refused.err) == (2, True), refused.err

    def test_doctor_asks_no_node(self, pos):
        told = p4perf("doctor", "--testbed", f"pos:{pos.site()}")
        assert (told.code, "works in batches" in told.out) == (0, True), told
        assert pos.log == []
