"""Testbed local: facts, builds that are never half there, jobs that never outlive us."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from p4perf.errors import BuildError, StorageError, TestbedError
from p4perf.experiment import open_target
from p4perf.results.files import held
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds import processes
from p4perf.testbeds.local import LocalTestbed, cache_folder

ROOT = os.geteuid() == 0


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def testbed(cache):
    return LocalTestbed(cache)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return path


def shell(script, **files):
    """A build that runs a shell script; the product is ``made``."""
    return BuildPlan({"script.sh": script, **files}, (("sh", "script.sh"),), "made")


def counting(counter, text="x"):
    """A build that notes every time it runs."""
    return shell(f"echo run >> {counter}; echo '{text}' > made")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def number_in(path):
    wait_until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


class TestFacts:
    def test_the_main_facts_are_there(self, testbed):
        facts = testbed.facts()
        for key in ("machine", "kernel", "cpus", "cpus_allowed", "measuring_cpu", "user", "realtime", "load_average"):
            assert facts.text(key), key
        for key in ("memory_total_bytes", "memory_available_bytes", "total_ticks", "cpus"):
            assert facts.number(key) > 0, key
        assert facts.number("memory_available_bytes") <= facts.number("memory_total_bytes")
        assert facts.text("realtime") in ("yes", "no")
        assert facts.number("measuring_cpu") in os.sched_getaffinity(0)
        assert facts.text("user") == str(os.geteuid())

    def test_facts_are_as_they_are_now(self, testbed):
        before = testbed.facts()
        time.sleep(0.1)
        assert before.number("total_ticks") < testbed.facts().number("total_ticks")

    def test_tools_are_looked_for_once(self, testbed, tmp_path, monkeypatch):
        before = testbed.facts()
        monkeypatch.setenv("CC", str(tmp_path / "none"))
        assert testbed.facts().text("cc_version") == before.text("cc_version") != ""
        assert LocalTestbed(tmp_path / "cache").facts().text("cc_version") == ""

    def test_a_probe_that_cannot_run_is_told(self, testbed, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(TestbedError, match="cannot start sh"):
            testbed.facts()
        assert any("shell" in p.what for p in testbed.problems())

    @pytest.mark.parametrize("script", ["kill -SEGV $$", "exit 0"])
    def test_a_compiler_that_crashes_is_not_one_that_is_missing(self, testbed, monkeypatch, tmp_path, script):
        (tmp_path / "cc").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "cc").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CC", raising=False)
        (problem,) = [p for p in open_target("dpdk-c").problems(testbed.facts()) if "compiler" in p.what]
        assert "does not run" in problem.what
        assert problem.fatal

    def test_nothing_stands_in_the_way_here(self, testbed):
        assert testbed.problems() == ()

    def test_a_cache_folder_that_cannot_be_made_is_a_problem(self, tmp_path):
        (tmp_path / "file").write_text("")
        (problem,) = LocalTestbed(tmp_path / "file" / "cache").problems()
        assert problem.fatal
        assert "XDG_CACHE_HOME" in problem.hint

    def test_where_the_cache_is(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_folder() == tmp_path / "p4perf"
        for unfit in ("", "relative/path"):
            monkeypatch.setenv("XDG_CACHE_HOME", unfit)
            monkeypatch.setenv("HOME", "/home/somebody")
            assert cache_folder() == Path("/home/somebody/.cache/p4perf")


class TestBuilds:
    def test_an_equal_plan_is_built_once(self, testbed, tmp_path):
        counter = tmp_path / "counter"
        first, second = testbed.build(counting(counter)), testbed.build(counting(counter))
        assert first == second
        assert (first / "made").read_text() == "x\n"
        assert counter.read_text().splitlines() == ["run"]

    def test_another_testbed_with_the_same_cache_builds_nothing(self, testbed, cache, tmp_path):
        counter = tmp_path / "counter"
        testbed.build(counting(counter))
        LocalTestbed(cache).build(counting(counter))
        assert counter.read_text().splitlines() == ["run"]

    def test_another_plan_is_another_build(self, testbed, tmp_path):
        counter = tmp_path / "counter"
        assert testbed.build(counting(counter, "a")) != testbed.build(counting(counter, "b"))

    def test_the_log_of_a_build_is_kept(self, testbed):
        folder = testbed.build(shell("echo hello; echo there >&2; touch made"))
        assert (folder / "build.log").read_text() == "$ sh script.sh\nhello\nthere\n"

    def test_concurrent_builds_of_a_plan_give_one_product(self, testbed, cache):
        plan = shell("sleep 0.2; echo x > made")
        found, errors = [], []

        def build():
            try:
                found.append(testbed.build(plan))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=build) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(found) == 6
        assert len(set(found)) == 1
        assert [p.name for p in (cache / "builds").iterdir()] == [plan.key]

    def test_a_failed_build_tells_the_first_error_and_keeps_the_log(self, testbed, cache):
        with pytest.raises(BuildError, match=r"a\.c:3: error: no such thing") as caught:
            testbed.build(shell("echo 'a.c: in function' >&2; echo 'a.c:3: error: no such thing' >&2; exit 1"))
        kept = cache / "failed-build"
        assert str(kept) in caught.value.hint
        assert "no such thing" in (kept / "build.log").read_text()
        assert (kept / "script.sh").exists()

    def test_builds_that_fail_at_once_all_tell_it_and_one_is_kept_whole(self, cache):
        sources, script = {f"{number}.c": "" for number in range(20)}, "echo no such thing >&2; exit 1"

        def failures(builder):
            testbed = LocalTestbed(cache)  # of another process
            for number in range(25):
                with pytest.raises(BuildError, match="no such thing"):
                    testbed.build(BuildPlan(sources, (("sh", "-c", f"{script} # {builder} {number}"),), "made"))

        with ThreadPoolExecutor() as pool:
            list(pool.map(failures, range(3)))
        assert sorted(path.name for path in (cache / "failed-build").iterdir()) == sorted([*sources, "build.log"])
        assert list((cache / "builds").iterdir()) == []

    def test_a_command_that_dies_without_a_word_is_told_so(self, testbed):
        with pytest.raises(BuildError, match=r"no message, but a command died of signal 9 \(SIGKILL\)"):
            testbed.build(BuildPlan({}, (("sh", "-c", "kill -KILL $$"),), "made"))

    def test_a_failed_build_leaves_nothing_in_the_cache(self, testbed, cache):
        with pytest.raises(BuildError):
            testbed.build(shell("touch made; exit 1"))
        assert list((cache / "builds").iterdir()) == []

    def test_a_build_without_its_product_fails(self, testbed, cache):
        with pytest.raises(BuildError, match="made no made"):
            testbed.build(shell("true"))
        assert list((cache / "builds").iterdir()) == []

    def test_a_compiler_that_is_not_there(self, testbed):
        with pytest.raises(BuildError, match=r"no-such-compiler.*not found"):
            testbed.build(shell("no-such-compiler a.c"))

    def test_a_command_that_is_not_there(self, testbed, cache):
        with pytest.raises(TestbedError, match="cannot start no-such-command"):
            testbed.build(BuildPlan({}, (("no-such-command",),), "made"))
        assert list((cache / "builds").iterdir()) == []

    def test_a_build_can_be_tried_again_after_a_failure(self, testbed, tmp_path):
        plan = shell(f"test -e {tmp_path}/now && touch made")
        with pytest.raises(BuildError):
            testbed.build(plan)
        (tmp_path / "now").touch()
        assert (testbed.build(plan) / "made").exists()

    def test_a_killed_build_leaves_no_product(self, cache, tmp_path):
        """The parent is killed in the middle of a build: the next one starts from the beginning."""
        started = tmp_path / "started"
        plan = shell(f"touch made; echo $$ > {started}; exec sleep 60")
        parent = in_process(f"LocalTestbed(Path({str(cache)!r})).build({plan!r})")
        child = number_in(started)
        parent.kill()
        parent.wait()
        wait_until(lambda: not alive(child))
        assert not (cache / "builds" / plan.key).exists()

    def test_what_a_killed_build_left_behind_is_removed_by_the_next(self, testbed, cache, tmp_path):
        left, busy = cache / "builds" / ".left.unfinished", cache / "builds" / ".busy.unfinished"
        for folder in (left, busy):
            folder.mkdir(parents=True)
        (left / "half").touch()
        plan = counting(tmp_path / "n")
        own = cache / "builds" / f".{plan.key}.unfinished"
        own.mkdir()
        (own / "made").touch()
        with held(busy):
            built = testbed.build(plan)
        assert (built / "made").read_text() == "x\n"
        assert not left.exists()
        assert not own.exists()
        assert busy.exists()

    def test_temporary_files_of_compilers_go_with_the_folder(self, testbed):
        built = testbed.build(shell("printf %s $TMPDIR > made"))
        assert (built / "made").read_text() == str(built.with_name(f".{built.name}.unfinished"))

    def test_one_process_builds_and_the_others_say_that_they_wait(self, testbed, cache, tmp_path):
        """Also after the first one was killed: the next takes over."""
        started = tmp_path / "started"
        plan = shell(f"echo x > made; test -e {tmp_path}/now || {{ echo $$ > {started}; exec sleep 600; }}")
        parent = in_process(f"LocalTestbed(Path({str(cache)!r})).build({plan!r})")
        number_in(started)
        said = []
        testbed.note = said.append
        (tmp_path / "now").touch()
        with ThreadPoolExecutor() as pool:
            built = pool.submit(testbed.build, plan)
            wait_until(lambda: said)
            assert not built.done()
            parent.kill()
            parent.wait()
            assert (built.result(20) / "made").exists()
        folder = cache / "builds" / f".{plan.key}.unfinished"
        assert said == [f"another process builds the same program in {folder}: waiting for it"]

    @pytest.mark.parametrize("where", ["file in the way", "read-only"])
    def test_a_cache_that_cannot_be_written(self, tmp_path, where):
        cache = tmp_path / "cache"
        if where == "file in the way":
            cache.write_text("")
        else:
            if ROOT:
                pytest.skip("root may write everywhere")
            cache.mkdir(mode=0o500)
        with pytest.raises(StorageError, match="cannot build in") as caught:
            LocalTestbed(cache).build(shell("touch made"))
        assert "XDG_CACHE_HOME" in caught.value.hint


class TestJobs:
    def test_output_status_and_duration(self, testbed, folder):
        result = testbed.run(Job(("sh", "-c", "echo out; echo err >&2; exit 7"), 20.0), folder)
        assert (result.returncode, result.stdout, result.stderr) == (7, "out\n", "err\n")
        assert not result.timed_out
        assert 0 < result.duration_s < 20

    def test_placeholders_and_files(self, testbed, folder):
        plan = shell("echo '#!/bin/sh' > made; echo 'cat \"$1\"; pwd' >> made; chmod +x made")
        result = testbed.run(Job(("{build}/made", "{folder}/data.bin"), 20.0, plan, {"data.bin": b"hello "}), folder)
        assert result.stdout == f"hello {folder}\n"
        assert (folder / "data.bin").read_bytes() == b"hello "
        assert [p.name for p in folder.iterdir()] == ["data.bin"]

    def test_braces_that_are_no_placeholders_stay(self, testbed, folder):
        assert testbed.run(Job(("printf", "%s", '{"a": 1}'), 20.0), folder).stdout == '{"a": 1}'

    def test_a_file_that_is_there_already_is_not_written_again(self, testbed, folder):
        job = Job(("true",), 20.0, files={"data.bin": b"hello"})
        testbed.run(job, folder)
        before = (folder / "data.bin").stat().st_ino
        testbed.run(job, folder)
        assert (folder / "data.bin").stat().st_ino == before
        (folder / "data.bin").write_bytes(b"spoilt")
        testbed.run(job, folder)
        assert (folder / "data.bin").read_bytes() == b"hello"

    def test_output_that_is_not_text_does_no_harm(self, testbed, folder):
        assert "\ufffd" in testbed.run(Job(("printf", r"\377\376"), 20.0), folder).stdout

    def test_a_job_reads_no_terminal(self, testbed, folder):
        assert testbed.run(Job(("cat",), 20.0), folder).returncode == 0

    def test_death_by_signal(self, testbed, folder):
        assert testbed.run(Job(("sh", "-c", "kill -SEGV $$"), 20.0), folder).returncode == -signal.SIGSEGV

    def test_a_command_that_is_not_there(self, testbed, folder):
        with pytest.raises(TestbedError, match="cannot start no-such-command"):
            testbed.run(Job(("no-such-command",), 20.0), folder)

    def test_a_folder_that_cannot_be_written(self, testbed, folder):
        (folder / "missing").touch()
        with pytest.raises(StorageError, match="cannot write"):
            testbed.run(Job(("true",), 20.0, files={"missing/data.bin": b""}), folder)

    def test_too_long_a_job_is_killed_with_all_its_children(self, testbed, folder):
        script = f"sleep 600 & echo $! > {folder}/child; echo before; wait"
        begun = time.monotonic()
        result = testbed.run(Job(("sh", "-c", script), 1.0), folder)
        assert result.timed_out
        assert result.returncode == -signal.SIGKILL
        assert result.stdout == "before\n"
        assert time.monotonic() - begun < 30
        child = number_in(folder / "child")
        wait_until(lambda: not alive(child))

    def test_an_interrupt_kills_the_job(self, folder, cache):
        parent = in_process(
            f"LocalTestbed(Path({str(cache)!r})).run("
            f"Job(('sh', '-c', 'echo $$ > pid; sleep 600'), 600.0), Path({str(folder)!r}))"
        )
        child = number_in(folder / "pid")
        parent.send_signal(signal.SIGINT)
        assert parent.wait(timeout=30) != 0
        wait_until(lambda: not alive(child))

    def test_an_interrupt_while_a_job_starts_ends_it(self, folder, cache, monkeypatch):
        """Raised inside the start of a process, it would leave one that nothing knows of."""
        started = []

        class Interrupted(processes._Child):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                started.append(self)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

        monkeypatch.setattr(processes, "_Child", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            LocalTestbed(cache).run(Job(("sh", "-c", "sleep 600"), 600.0), folder)
        assert started[0].returncode == -signal.SIGKILL

    def test_the_job_dies_with_its_parent(self, folder, cache):
        parent = in_process(
            f"LocalTestbed(Path({str(cache)!r})).run("
            f"Job(('sh', '-c', 'echo $$ > pid; exec sleep 600'), 600.0), Path({str(folder)!r}))"
        )
        child = number_in(folder / "pid")
        assert alive(child)
        parent.kill()
        parent.wait()
        wait_until(lambda: not alive(child))


def in_process(expression):
    """Evaluates an expression with a testbed in a process of its own."""
    code = f"""
        from pathlib import Path
        from p4perf.targets.base import BuildPlan, Job
        from p4perf.testbeds.local import LocalTestbed
        {expression}
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL)
