"""What every testbed does alike: this machine, namespaces of it, and a node that is reached by ssh."""

import os
import shutil
import signal
import threading
import time

import pytest
from support.sshd import alive, wait_until

from p4perf.errors import BuildError, MeasurementError, TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds.local import LocalTestbed, NetnsTestbed
from p4perf.testbeds.ssh.testbed import SshTestbed

LONG_S = 30.0
ECHO = 'while read -r line; do printf \'{"said": "%s"}\\n\' "$line"; done'


@pytest.fixture(scope="module", params=["local", "netns", "ssh"])
def testbed(request, tmp_path_factory):
    if request.param == "local":
        yield LocalTestbed(tmp_path_factory.mktemp("cache"))
        return
    if request.param == "netns":
        opened = NetnsTestbed(tmp_path_factory.mktemp("cache"))
        if problems := opened.problems():
            pytest.skip(problems[0].what)
        yield opened
        return
    node = request.getfixturevalue("node")
    opened = SshTestbed.at(str(node.node_file()))
    yield opened
    opened.close()


@pytest.fixture
def reopened(testbed, request):
    """The testbed as another process has it."""
    if not isinstance(testbed, SshTestbed):
        yield type(testbed)(testbed._cache)
        return
    opened = SshTestbed.at(str(request.getfixturevalue("node").node_file()))
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return path


def shell(script, **files):
    """A build that runs a shell script; the product is ``made``."""
    return BuildPlan({"script.sh": script, **files}, (("sh", "script.sh"),), "made")


def sh(script, *arguments, limit_s=LONG_S, **more):
    return Job(("sh", "-c", script, "sh", *arguments), limit_s, **more)


def test_nothing_is_missing(testbed):
    assert testbed.problems() == ()


def test_facts(testbed):
    facts = testbed.facts()
    for key in ("machine", "kernel", "cpus", "cpus_allowed", "measuring_cpu", "user", "realtime", "load_average"):
        assert facts.text(key), key
    assert facts.number("memory_available_bytes") <= facts.number("memory_total_bytes")
    assert facts.text("user") == str(os.geteuid())
    assert facts.number("measuring_cpu") in os.sched_getaffinity(0)
    assert facts.number("total_ticks") <= testbed.facts().number("total_ticks")


class TestBuilds:
    def test_an_equal_plan_is_built_once(self, testbed, tmp_path):
        counter = tmp_path / "counter"
        plan = shell(f"echo run >> {counter}; echo x > made")
        first, second = testbed.build(plan), testbed.build(plan)
        assert first == second
        assert (first / "made").read_text() == "x\n"
        assert counter.read_text().splitlines() == ["run"]

    def test_parts_are_built_before(self, testbed):
        part = shell("echo part > made")
        plan = BuildPlan({}, (("cp", "{lib}/made", "whole"),), "whole", parts={"lib": part})
        assert (testbed.build(plan) / "whole").read_text() == "part\n"

    def test_the_log_is_kept(self, testbed):
        folder = testbed.build(shell("echo hello; echo there >&2; touch made"))
        assert (folder / "build.log").read_text() == "$ sh script.sh\nhello\nthere\n"

    @pytest.mark.sampled(1)
    def test_concurrent_builds_of_a_plan_give_one_product(self, testbed):
        plan, found, errors = shell("sleep 0.2; echo concurrent > made"), [], []

        def build():
            try:
                found.append(testbed.build(plan))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=build) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(set(found)) == 1
        assert sorted(p.name for p in found[0].iterdir()) == ["build.log", "made", "product.sha256", "script.sh"]

    @pytest.mark.parametrize("damage", ["empty", "removed", "changed", "without its checksum", "no folder"])
    def test_a_damaged_build_is_made_anew(self, testbed, reopened, damage):
        plan = shell("echo hello > made")
        folder = testbed.build(plan)
        match damage:
            case "empty":
                (folder / "made").write_bytes(b"")
            case "removed":
                (folder / "made").unlink()
            case "changed":
                (folder / "made").write_text("hellp\n")
            case "without its checksum":
                (folder / "product.sha256").unlink()
            case _:
                shutil.rmtree(folder)
                folder.mkdir()
        assert (reopened.build(plan) / "made").read_text() == "hello\n"

    def test_a_failure_tells_the_first_error_and_keeps_the_log(self, testbed):
        with pytest.raises(BuildError, match=r"a\.c:3: error: no such thing") as caught:
            testbed.build(shell("echo 'a.c: in function' >&2; echo 'a.c:3: error: no such thing' >&2; exit 1"))
        assert "no such thing" in caught.value.log
        assert "failed-build" in caught.value.hint

    def test_without_its_product(self, testbed):
        plan = shell(": nothing")
        with pytest.raises(BuildError, match="made no made"):
            testbed.build(plan)
        with pytest.raises(BuildError, match="made no made"):
            testbed.build(plan)

    def test_a_compiler_that_is_not_there(self, testbed):
        with pytest.raises(BuildError, match=r"no-such-compiler.*not found"):
            testbed.build(shell("no-such-compiler a.c"))

    def test_a_command_that_is_not_there(self, testbed):
        with pytest.raises(TestbedError, match="cannot start no-such-command"):
            testbed.build(BuildPlan({}, (("no-such-command",),), "made"))

    def test_after_a_failure_it_can_be_tried_again(self, testbed, tmp_path):
        plan = shell(f"test -e {tmp_path}/now && touch made")
        with pytest.raises(BuildError):
            testbed.build(plan)
        (tmp_path / "now").touch()
        assert (testbed.build(plan) / "made").exists()


class TestJobs:
    def test_output_status_and_duration(self, testbed, folder):
        result = testbed.run(sh("echo out; echo err >&2; exit 7"), folder)
        assert (result.returncode, result.stdout, result.stderr) == (7, "out\n", "err\n")
        assert not result.timed_out
        assert 0 < result.duration_s < LONG_S

    def test_placeholders_and_files(self, testbed, folder):
        plan = shell("echo '#!/bin/sh' > made; echo 'cat \"$1\"' >> made; chmod +x made")
        data = bytes(range(256)) * 10
        job = Job(("{build}/made", "{folder}/data.bin"), LONG_S, plan, {"data.bin": b"hello\n", "more": data})
        assert testbed.run(job, folder).stdout == "hello\n"
        assert (folder / "data.bin").read_bytes() == b"hello\n"
        again = sh('wc -c <"$1"; cksum <"$1"', "{folder}/more", files={"more": data})
        assert testbed.run(again, folder).stdout.split()[0] == "2560"

    def test_its_folder_is_where_it_runs_and_it_may_write_there(self, testbed, folder):
        result = testbed.run(
            sh('[ "$(pwd -P)" = "$(cd "$1" && pwd -P)" ] && touch here && echo yes', "{folder}"), folder
        )
        assert result.stdout == "yes\n"

    @pytest.mark.sampled(15)
    @pytest.mark.parametrize(
        "word",
        ["$(echo no)", "`echo no`", "a'b", 'a"b', "a\\b", "; echo no", "a\nb", " ", "", "-n", "*", "é", '{"a": 1}'],
    )
    def test_words_arrive_as_they_are(self, testbed, folder, word):
        assert testbed.run(Job(("printf", "%s|", word, "end"), LONG_S), folder).stdout == f"{word}|end|"

    def test_output_that_is_not_text_does_no_harm(self, testbed, folder):
        assert "\ufffd" in testbed.run(Job(("printf", r"\377\376"), LONG_S), folder).stdout

    def test_much_output(self, testbed, folder):
        result = testbed.run(sh("head -c 3000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2"), folder)
        assert (len(result.stdout), len(result.stderr)) == (3_000_000, 300_000)

    def test_it_reads_nothing(self, testbed, folder):
        assert testbed.run(Job(("cat",), LONG_S), folder).returncode == 0

    def test_death_by_signal(self, testbed, folder):
        result = testbed.run(sh("echo x; kill -SEGV $$"), folder)
        assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGSEGV, "x\n", "")

    def test_a_command_that_is_not_there(self, testbed, folder):
        with pytest.raises(TestbedError, match="cannot start no-such-command"):
            testbed.run(Job(("no-such-command",), LONG_S), folder)

    def test_too_long_a_job_is_killed_with_its_children(self, testbed, folder, tmp_path):
        begun = time.monotonic()
        job = sh(f"sleep 600 & echo $! > {tmp_path}/child; echo before; trap '' TERM HUP; wait; sleep 600", limit_s=1.0)
        result = testbed.run(job, folder)
        assert result.timed_out
        assert (result.returncode, result.stdout) == (-signal.SIGKILL, "before\n")
        assert time.monotonic() - begun < LONG_S
        child = int((tmp_path / "child").read_text())
        wait_until(lambda: not alive(child))


class TestConversations:
    def test_a_line_for_a_line(self, testbed, folder):
        with testbed.converse(sh(ECHO), folder) as conversation:
            assert conversation.ask("one", LONG_S) == '{"said": "one"}'
            assert conversation.ask("two  words", LONG_S) == '{"said": "two  words"}'

    def test_what_the_job_needs_is_there(self, testbed, folder):
        plan = BuildPlan({"a.sh": f'read x; echo "{{$(cat $1)}}"; {ECHO}'}, (("cp", "a.sh", "made"),), "made")
        job = Job(("sh", "{build}/made", "{folder}/words"), LONG_S, plan, {"words": b"of a file"})
        with testbed.converse(job, folder) as conversation:
            assert conversation.ask("go", LONG_S) == "{of a file}"

    def test_silence_ends_it(self, testbed, folder):
        with testbed.converse(sh("echo {$$}; sleep 600 & wait"), folder) as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            with pytest.raises(MeasurementError, match="did not answer within"):
                conversation.ask("anything", 0.2)
        wait_until(lambda: not alive(pid))

    @pytest.mark.parametrize(
        ("script", "message"),
        [
            ("echo 1 >&2; echo last words >&2; kill -SEGV $$", r"died of signal 11 \(SIGSEGV\): 1 / last words"),
            ("echo no hugepages >&2; exit 3", "ended with status 3: no hugepages"),
            ("exit 0", "ended with status 0"),
        ],
    )
    def test_death(self, testbed, folder, script, message):
        with (
            testbed.converse(sh(script), folder) as conversation,
            pytest.raises(MeasurementError, match=f"the program {message}$"),
        ):
            conversation.answer(LONG_S)

    def test_a_command_that_is_not_there(self, testbed, folder):
        with (
            pytest.raises(TestbedError, match="cannot start no-such-command"),
            testbed.converse(Job(("no-such-command",), LONG_S), folder) as conversation,
        ):
            conversation.answer(LONG_S)

    def test_it_may_end_by_itself_when_nobody_talks_any_more(self, testbed, folder, tmp_path):
        with testbed.converse(sh(f"echo {{ready}}; cat; echo goodbye > {tmp_path}/farewell"), folder) as conversation:
            conversation.answer(LONG_S)
        assert (tmp_path / "farewell").read_text() == "goodbye\n"

    @pytest.mark.parametrize("failure", [None, ValueError("body"), KeyboardInterrupt()])
    def test_it_ends_with_the_body(self, testbed, folder, failure):
        def body():
            with testbed.converse(sh("trap '' TERM HUP; echo {$$}; sleep 600; sleep 600"), folder) as conversation:
                pids.append(int(conversation.answer(LONG_S).strip("{}")))
                if failure is not None:
                    raise failure

        pids = []
        if failure is None:
            body()
        else:
            with pytest.raises(type(failure)):
                body()
        wait_until(lambda: not alive(pids[0]))
