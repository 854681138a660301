"""Child processes: conversations with them, and that none of them is ever left."""

import os
import signal
import sys
import textwrap
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from p4perf.errors import MeasurementError, TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds import processes
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.processes import LocalConversation, run_command

LONG_S = 20.0
ECHO = 'while read -r line; do printf \'{"said": "%s"}\\n\' "$line"; done'


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


@pytest.fixture
def talk(tmp_path):
    """A conversation with a shell script."""

    def talk(script, *arguments):
        return LocalConversation(("sh", "-c", script, "sh", *arguments), tmp_path)

    return talk


@pytest.fixture
def python(tmp_path):
    """A conversation with a Python script."""

    def python(script):
        return LocalConversation((sys.executable, "-S", "-c", textwrap.dedent(script)), tmp_path)

    return python


class TestAnswers:
    def test_a_line_for_a_line(self, talk):
        with talk(ECHO) as conversation:
            assert conversation.ask("one", LONG_S) == '{"said": "one"}'
            assert conversation.ask("two words", LONG_S) == '{"said": "two words"}'

    def test_several_answers_at_once_are_kept_apart(self, talk):
        with talk("printf '{1}\\n{2}\\n{3}\\n'; cat") as conversation:
            assert [conversation.answer(LONG_S) for _ in range(3)] == ["{1}", "{2}", "{3}"]

    def test_lines_without_a_brace_are_skipped(self, talk):
        with talk("printf 'EAL: hello\\n\\n {no}\\n{yes}\\n'; cat") as conversation:
            assert conversation.answer(LONG_S) == "{yes}"

    def test_a_line_that_comes_in_pieces(self, talk):
        with talk("printf '{\"a\":'; sleep 0.1; printf ' 1'; sleep 0.1; printf '}\\n'; cat") as conversation:
            assert conversation.answer(LONG_S) == '{"a": 1}'

    def test_a_line_that_is_longer_than_a_pipe(self, talk):
        with talk("printf '{'; head -c 1000000 /dev/zero | tr '\\0' x; printf '}\\n'; cat") as conversation:
            line = conversation.answer(LONG_S)
        assert (len(line), line[:2], line[-2:]) == (1_000_002, "{x", "x}")

    def test_bytes_that_are_no_text(self, talk):
        with talk("printf '{\\377}\\n'; cat") as conversation:
            assert conversation.answer(LONG_S) == "{�}"

    def test_a_child_that_talks_on_stderr_is_not_held_up(self, talk):
        with talk("head -c 1000000 /dev/zero >&2; echo '{done}'; cat") as conversation:
            assert conversation.answer(LONG_S) == "{done}"

    def test_it_runs_where_it_should(self, talk, tmp_path):
        with talk("printf '{%s}\\n' \"$(pwd)\"; cat") as conversation:
            assert conversation.answer(LONG_S) == f"{{{tmp_path.resolve()}}}"


class TestSilence:
    def test_it_is_an_error_and_the_child_is_dead(self, talk):
        with talk("echo {$$}; sleep 1000") as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            with pytest.raises(MeasurementError, match="did not answer within"):
                conversation.ask("anything", 0.1)
            wait_until(lambda: not alive(pid))

    def test_talk_without_an_answer_is_silence(self, talk):
        """The time limit is for an answer, not for some sign of life."""
        with talk("while :; do echo busy; sleep 0.02; done") as conversation:
            begun = time.monotonic()
            with pytest.raises(MeasurementError, match="did not answer within"):
                conversation.answer(0.3)
            assert time.monotonic() - begun < LONG_S

    def test_a_child_that_does_not_read(self, talk):
        with talk("echo {ready}; sleep 1000") as conversation:
            conversation.answer(LONG_S)
            with pytest.raises(MeasurementError, match="did not answer within"):
                conversation.ask("x" * 1000, 0.1)

    def test_children_of_the_child_die_with_it(self, talk):
        with talk("sleep 1000 & echo {$!}; wait") as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            with pytest.raises(MeasurementError):
                conversation.answer(0.1)
            wait_until(lambda: not alive(pid))


class TestDeath:
    def test_of_a_signal_with_its_name_and_the_last_words(self, talk):
        with (
            talk("echo first >&2; echo second >&2; echo third >&2; echo fourth >&2; kill -SEGV $$") as conversation,
            pytest.raises(MeasurementError) as caught,
        ):
            conversation.answer(LONG_S)
        assert caught.value.message == "the program died of signal 11 (SIGSEGV): second / third / fourth"

    def test_of_a_signal_without_a_name(self, python):
        number = signal.SIGRTMIN + 3
        with (
            python(f"import os; os.kill(os.getpid(), {number})") as conversation,
            pytest.raises(MeasurementError, match=f"died of signal {number}$"),
        ):
            conversation.answer(LONG_S)

    def test_with_a_status(self, talk):
        with talk("echo no hugepages >&2; exit 3") as conversation, pytest.raises(MeasurementError) as caught:
            conversation.answer(LONG_S)
        assert caught.value.message == "the program ended with status 3: no hugepages"

    def test_without_words(self, talk):
        with talk("exit 0") as conversation, pytest.raises(MeasurementError) as caught:
            conversation.answer(LONG_S)
        assert caught.value.message == "the program ended with status 0"

    def test_in_the_middle_of_a_line(self, talk):
        with (
            talk("printf '{\"a\": '; exit 1") as conversation,
            pytest.raises(MeasurementError, match="ended with status 1"),
        ):
            conversation.answer(LONG_S)

    def test_an_answer_before_it_counts(self, talk):
        with talk("read -r line; echo {last}; exit 1") as conversation:
            assert conversation.ask("go", LONG_S) == "{last}"
            with pytest.raises(MeasurementError, match="ended with status 1"):
                conversation.ask("again", LONG_S)
            with pytest.raises(MeasurementError, match="ended with status 1"):
                conversation.ask("and again", LONG_S)

    def test_from_outside_while_it_is_waited_for(self, talk):
        with talk("echo {$$}; exec sleep 1000") as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
            killer.start()
            with pytest.raises(MeasurementError, match=r"died of signal 9 \(SIGKILL\)"):
                conversation.answer(LONG_S)
            killer.join()

    def test_a_closed_output_of_a_living_child(self, talk):
        with (
            talk("exec 1>&-; sleep 1000") as conversation,
            pytest.raises(MeasurementError, match="the program closed its output"),
        ):
            conversation.answer(LONG_S)


class TestEnd:
    def test_the_child_ends_with_the_body(self, talk):
        with talk(f"echo {{$$}}; {ECHO}") as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            assert alive(pid)
        assert not alive(pid)

    def test_it_may_end_by_itself_when_nobody_talks_any_more(self, talk, tmp_path):
        with talk("echo {ready}; cat; echo goodbye > farewell") as conversation:
            conversation.answer(LONG_S)
        assert (tmp_path / "farewell").read_text() == "goodbye\n"

    def test_a_child_that_does_not_listen_is_killed(self, talk):
        with talk("trap '' TERM HUP; echo {$$}; sleep 1000; sleep 1000") as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
        assert not alive(pid)

    @pytest.mark.parametrize("failure", [ValueError("body"), KeyboardInterrupt(), SystemExit(1)])
    def test_it_ends_with_a_failure_of_the_body_at_once(self, talk, tmp_path, failure):
        def body():
            with talk("echo {$$}; cat; sleep 0.3; echo late > farewell") as conversation:
                pids.append(int(conversation.answer(LONG_S).strip("{}")))
                raise failure

        pids = []
        with pytest.raises(type(failure)):
            body()
        assert not alive(pids[0])
        time.sleep(0.4)
        assert not (tmp_path / "farewell").exists()

    def test_no_descriptor_is_left(self, talk):
        def descriptors():
            return list(Path("/proc/self/fd").iterdir())

        before = descriptors()
        for _ in range(3):
            with talk(ECHO) as conversation:
                conversation.ask("one", LONG_S)
        assert len(descriptors()) == len(before)

    def test_it_dies_with_a_parent_that_is_killed(self, tmp_path):
        script = f"""
            import os, signal
            from pathlib import Path
            from p4perf.testbeds.processes import LocalConversation
            with LocalConversation(("sh", "-c", "echo {{$$}}; exec sleep 1000"), Path("/")) as conversation:
                Path({str(tmp_path / "pid")!r}).write_text(conversation.answer({LONG_S}).strip("{{}}"))
                os.kill(os.getpid(), signal.SIGKILL)
        """
        result = run_command((sys.executable, "-c", textwrap.dedent(script)), 60.0, tmp_path)
        assert result.returncode == -signal.SIGKILL, result.stderr
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not alive(pid))


class TestInterrupt:
    SCRIPT = """
        import os, sys
        from pathlib import Path
        from p4perf.testbeds.processes import LocalConversation
        with LocalConversation(("sh", "-c", "echo {$$}; exec sleep 1000"), Path("/")) as conversation:
            Path("pid.part").write_text(conversation.answer(20).strip("{}"))
            Path("pid.part").rename("pid")
            conversation.answer(60)
    """

    def test_inside_the_body_leaves_no_child(self, tmp_path):
        import subprocess

        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(self.SCRIPT)],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            wait_until(lambda: (tmp_path / "pid").exists() or process.poll() is not None)
            assert process.poll() is None, process.communicate()[1]
            pid = int((tmp_path / "pid").read_text())
            assert os.getpgid(pid) != os.getpgid(process.pid), "an interrupt from the terminal would reach it"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=LONG_S)
        finally:
            process.kill()
            process.wait()
        assert "KeyboardInterrupt" in err
        assert not alive(pid)

    def test_while_the_child_starts_leaves_no_child(self, tmp_path, monkeypatch):
        """The interrupt comes as early as it can: when the child was just forked."""

        started = []

        class Interrupted(processes._Child):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                started.append(self.pid)
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(processes, "_Child", Interrupted)
        with pytest.raises(KeyboardInterrupt), LocalConversation(("sleep", "1000"), tmp_path):
            pytest.fail("the body was entered")
        (pid,) = started
        assert not alive(pid)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class TestCommands:
    def test_output_and_status(self, tmp_path):
        result = run_command(("sh", "-c", "pwd; echo oh >&2; exit 3"), LONG_S, tmp_path)
        assert (result.returncode, result.stdout, result.stderr) == (3, f"{tmp_path.resolve()}\n", "oh\n")
        assert not result.timed_out

    def test_input(self, tmp_path):
        assert run_command(("cat",), LONG_S, tmp_path, stdin="hello").stdout == "hello"
        assert run_command(("cat",), LONG_S, tmp_path).stdout == ""

    def test_an_input_that_is_held_open(self, tmp_path):
        assert run_command(("cat",), 0.3, tmp_path, held=True).timed_out
        assert run_command(("echo", "x"), LONG_S, tmp_path, held=True).stdout == "x\n"

    def test_a_time_limit(self, tmp_path):
        result = run_command(("sh", "-c", "echo $$; sleep 1000"), 0.3, tmp_path)
        assert result.timed_out
        assert not alive(int(result.stdout))

    def test_a_command_that_does_not_exist(self, tmp_path):
        message = "cannot start nothing-of-this-name: No such file"
        with pytest.raises(TestbedError, match=message):
            run_command(("nothing-of-this-name",), LONG_S, tmp_path)
        with pytest.raises(TestbedError, match=message), LocalConversation(("nothing-of-this-name",), tmp_path):
            pytest.fail("the body was entered")

    def test_from_another_thread(self, tmp_path):
        results = []
        thread = threading.Thread(target=lambda: results.append(run_command(("echo", "x"), LONG_S, tmp_path)))
        thread.start()
        thread.join()
        assert results[0].stdout == "x\n"


class TestTestbeds:
    def test_local_builds_and_writes_what_the_job_needs(self, tmp_path):
        folder = tmp_path / "run"
        folder.mkdir()
        build = BuildPlan({"a.sh": f'read x; echo "{{$(cat $1)}}"; {ECHO}'}, (("cp", "a.sh", "made"),), "made")
        job = Job(("sh", "{build}/made", "{folder}/words"), LONG_S, build, {"words": b"of a file"})
        with LocalTestbed(tmp_path / "cache").converse(job, folder) as conversation:
            assert conversation.ask("go", LONG_S) == "{of a file}"
            assert conversation.ask("on", LONG_S) == '{"said": "on"}'

    def test_a_testbed_need_not_converse(self, tmp_path):
        class Mute(Testbed):
            name = "mute"
            problems = facts = build = run = None

        Mute.__abstractmethods__ = frozenset()
        with pytest.raises(TestbedError, match="testbed mute cannot converse with a program"):
            Mute().converse(Job(("true",), 1.0), tmp_path)


class TestEndlessOutput:
    """What commands print takes no more memory than a limit, and messages quote little of it."""

    @pytest.fixture(autouse=True)
    def limit(self, monkeypatch):
        monkeypatch.setattr(processes, "MAX_OUTPUT_BYTES", 1 << 20)

    @pytest.mark.parametrize("redirected", ["", " >&2"])
    def test_the_end_is_kept(self, tmp_path, redirected):
        script = f"(head -c 30000000 /dev/zero | tr '\\0' x; echo end){redirected}"
        result = run_command(("sh", "-c", script), LONG_S, tmp_path)
        text = result.stderr if redirected else result.stdout
        assert len(text) == 1 << 20
        assert text.endswith("xxxend\n")
        assert not result.timed_out

    def test_a_command_that_never_stops_printing(self, tmp_path):
        tracemalloc.start()
        result = run_command(("yes", "x" * 1000), 1.0, tmp_path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert result.timed_out
        assert result.returncode == -signal.SIGKILL
        assert most < 16 << 20

    def test_a_program_that_prints_but_does_not_answer(self, python):
        for stream in ("out", "err"):
            script = f"""
                import sys
                input()
                while True:
                    sys.std{stream}.write("x" * 65536)
            """
            with python(script) as conversation, pytest.raises(MeasurementError, match="printed more than 1 MiB"):
                conversation.ask("go", LONG_S)

    def test_messages_quote_little(self, tmp_path):
        result = run_command(("sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; exit 3"), LONG_S, tmp_path)
        assert len(result.tail) == 100000
        error = MeasurementError(f"the program failed: {result.tail}, so it did")
        assert 1900 < len(str(error)) < 2100
        assert error.message.startswith("the program failed: xxx")
        assert error.message.endswith("xxx, so it did")


class TestWhatHasEscaped:
    def test_a_process_in_a_session_of_its_own_is_ended_too(self, tmp_path):
        script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' & wait"
        assert run_command(("sh", "-c", script), 1.0, tmp_path).timed_out
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not alive(pid))

    @pytest.mark.parametrize("end", ["timeout", "interrupt"])
    def test_a_daemon_is_ended_too(self, tmp_path, end):
        script = f"(setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' </dev/null >/dev/null 2>&1 &); sleep 600"
        if end == "timeout":
            assert run_command(("sh", "-c", script), 1.0, tmp_path).timed_out
        else:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                run_command(("sh", "-c", script), LONG_S, tmp_path)
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not alive(pid))

    def test_one_that_cannot_be_found_keeps_nobody_waiting(self, tmp_path):
        script = f"(setsid env -i sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &) ; sleep 600"
        result = run_command(("sh", "-c", script), 1.0, tmp_path)
        assert result.timed_out
        assert result.duration_s < LONG_S
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    def test_input_that_is_larger_than_a_pipe(self, tmp_path):
        text = "0123456789" * 100_000
        assert run_command(("cat",), LONG_S, tmp_path, stdin=text).stdout == text
        assert run_command(("true",), LONG_S, tmp_path, stdin=text).returncode == 0
