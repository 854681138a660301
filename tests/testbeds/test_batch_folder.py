"""What a node gets in a batch: shell scripts that build once and run trials by name, whatever is in their words."""

import re
import signal
import subprocess

import pytest

from p4perf.errors import TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds.batch.base import BatchJob
from p4perf.testbeds.batch.folder import node_files, write_folder
from p4perf.testbeds.batch.outcomes import STEPS, Missing, read_trial

LONG_S = 30.0


def sh(script, *arguments, limit_s=LONG_S, **more):
    return Job(("sh", "-c", script, "sh", *arguments), limit_s, **more)


class Node:
    """A node that gets folders and runs their scripts."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, *jobs):
        write_folder(self.folder, node_files([BatchJob(f"t{n}", job) for n, job in enumerate(jobs)]))

    def sh(self, *words):
        return subprocess.run(["sh", *words], cwd=self.folder, capture_output=True, text=True, check=False)

    def trial(self, name="t0"):
        done = self.sh(f"trials/{name}.sh", f"out/{name}")
        assert done.returncode == 0, done
        return self.outcome(name)

    def outcome(self, name="t0"):
        return read_trial(name, "here", {path.name: path for path in (self.folder / "out" / name).iterdir()})

    def result(self, name="t0"):
        return self.trial(name).results["trial"]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path / "dut")


def test_output_status_and_duration(node):
    node.write(sh("echo out; echo err >&2; exit 7"))
    outcome = node.trial()
    result = outcome.results["trial"]
    assert (result.returncode, result.stdout, result.stderr, result.timed_out) == (7, "out\n", "err\n", False)
    assert 0 < result.duration_s <= outcome.duration_s < LONG_S
    assert outcome.started.endswith("+00:00")
    assert outcome.build_log is None


HOSTILE = [
    "$(echo no)",
    "`echo no`",
    "a'b",
    'a"b',
    "a\\b",
    "; echo no",
    "a\nb",
    " ",
    "",
    "-n",
    "*",
    "é",
    "{build",
    "$0",
]


def test_words_arrive_as_they_are(node):
    node.write(Job(("printf", "%s|", *HOSTILE), LONG_S))
    assert node.result().stdout == "".join(f"{word}|" for word in HOSTILE)


def test_what_people_read_of_a_trial_is_no_command(node):
    job = BatchJob("t0", sh("echo fine"), "x=1\ntouch harm; `touch harm` $(touch harm)")
    write_folder(node.folder, node_files([job]))
    assert node.result().stdout == "fine\n"
    assert not list(node.folder.rglob("harm"))


def test_places_and_files(node):
    plan = BuildPlan({"a.sh": 'cat "$1"'}, (("cp", "a.sh", "made it"),), "made it")
    data = bytes(range(256))
    job = Job(("sh", "{build}/made it", "{folder}/data.bin"), LONG_S, plan, {"data.bin": b"hello\n", "more": data})
    node.write(job, sh('cmp "$1" "$2" && pwd', "{folder}/more", "more", files={"more": data}))
    assert node.sh("build.sh").returncode == 0
    assert node.result().stdout == "hello\n"
    assert node.result("t1").stdout == f"{node.folder}/jobs/t1\n"
    assert list((node.folder / "jobs").iterdir()) == []


def test_equal_plans_are_built_once_and_parts_before(node, tmp_path):
    part = BuildPlan({}, (("sh", "-c", f"echo run >> {tmp_path}/count; echo part > made"),), "made")
    plans = [
        BuildPlan({"n": str(n)}, (("cp", "{a lib}/made", "whole"),), "whole", parts={"a lib": part}) for n in (1, 2)
    ]
    node.write(*(Job(("cat", "{build}/whole"), LONG_S, plan) for plan in (*plans, plans[0])))
    for _ in range(2):
        assert node.sh("build.sh").returncode == 0
    assert [node.result(f"t{n}").stdout for n in range(3)] == ["part\n"] * 3
    assert (tmp_path / "count").read_text() == "run\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("sh", "-c", "echo 'a.c:3: error: no' >&2; exit 1"), "a.c:3: error: no\n"),
        (("true",), "the build made no it's $x\n"),
        (("no-such-compiler", "a.c"), "no-such-compiler"),
    ],
)
def test_a_program_that_is_not_built(node, command, said):
    """It and what needs it are told from each other, and all others are built."""
    bad = BuildPlan({}, (command,), "it's $x")
    above = BuildPlan({}, (("touch", "whole"),), "whole", parts={"lib": bad})
    good = BuildPlan({}, (("touch", "ok"),), "ok")
    node.write(*(Job(("echo", "{build}"), LONG_S, plan) for plan in (bad, above, good)))
    assert node.sh("build.sh").returncode == 0
    assert said in node.trial().build_log
    log = node.trial("t1").build_log
    assert log.startswith("its part lib was not built:\n")
    assert said in log
    assert node.trial("t2").build_log is None


def test_death_by_signal(node):
    node.write(sh("echo x; kill -SEGV $$"))
    result = node.result()
    assert (result.returncode, result.stdout, result.timed_out) == (-signal.SIGSEGV, "x\n", False)


def test_too_long_a_trial_is_killed_with_its_children(node, tmp_path):
    node.write(
        sh(f"sleep 600 & echo $! > {tmp_path}/child; echo before; trap '' TERM HUP; wait; sleep 600", limit_s=1.0)
    )
    result = node.result()
    assert result.timed_out
    assert (result.returncode, result.stdout) == (-signal.SIGKILL, "before\n")
    child = (tmp_path / "child").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True, check=False).stdout
    assert state.strip()[:1] in ("", "Z")


def test_a_trial_that_killed_itself_was_not_too_long(node):
    node.write(sh("kill -KILL $$"))
    result = node.result()
    assert (result.returncode, result.timed_out) == (-signal.SIGKILL, False)


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "a/b", "-a", "a;b", "a" * 65, "a\n"])
def test_names_of_trials(name):
    with pytest.raises(TestbedError, match="is no name for a trial"):
        node_files([BatchJob(name, sh("true"))])


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "a b", "a\nb"])
def test_names_of_files(name):
    with pytest.raises(TestbedError, match="is no name for a file"):
        node_files([BatchJob("t0", sh("true", files={name: b""}))])
    with pytest.raises(TestbedError, match="is no name for a file"):
        node_files([BatchJob("t0", sh("true", build=BuildPlan({name: ""}, (), "x")))])


class TestReading:
    """What came back may be anything."""

    @pytest.fixture
    def whole(self, node):
        node.write(sh("echo out; echo err >&2"))
        node.trial()
        return node

    @pytest.mark.parametrize("part", ["trial.stdout", "trial.stderr", STEPS])
    def test_a_file_is_missing(self, whole, part):
        (whole.folder / "out" / "t0" / part).unlink()
        with pytest.raises(Missing, match=rf"it has no {re.escape(part)}"):
            whole.outcome()

    def test_an_output_is_cut_off(self, whole):
        (whole.folder / "out" / "t0" / "trial.stdout").write_text("ou")
        with pytest.raises(Missing, match=r"trial\.stdout is cut off"):
            whole.outcome()

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("trial t0", "trial t1", "is not of it"),
            ("step trial 0", "step trial zero", "is damaged"),
            ("step trial 0", "step trial 9999", "is damaged"),
            ("started 2", "started x", "is damaged"),
            (" no ", " no -", "is damaged"),
            (" 4 4", " 5 4", "is cut off"),
        ],
    )
    def test_an_outcome_is_damaged(self, whole, old, new, message):
        path = whole.folder / "out" / "t0" / STEPS
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        with pytest.raises(Missing, match=message):
            whole.outcome()

    def test_a_link_is_not_followed(self, whole, tmp_path):
        (tmp_path / "secret").write_text("out\n")
        path = whole.folder / "out" / "t0" / "trial.stdout"
        path.unlink()
        path.symlink_to(tmp_path / "secret")
        with pytest.raises(Missing, match="is a link"):
            whole.outcome()
