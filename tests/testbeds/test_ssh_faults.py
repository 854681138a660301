"""What can go wrong between here and a node: each ends in one error that names node and step, and leaves nothing."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.sshd import LONG_S, alive, key, wait_until

from p4perf.errors import BuildError, ExitCode, MeasurementError, StorageError, TestbedError
from p4perf.targets.base import BuildPlan, Job
from p4perf.testbeds.nodes import read_node
from p4perf.testbeds.ssh.connection import Connection
from p4perf.testbeds.ssh.testbed import SshTestbed

ROOT = os.geteuid() == 0


@pytest.fixture
def opened():
    """Testbeds that are closed at the end."""
    made = []

    def opened(node, beats=None, **changes):
        file = node.node_file(**changes)
        connection = Connection(read_node(file, None), *beats) if beats else None
        made.append(SshTestbed(read_node(file, None), file, connection))
        return made[-1]

    yield opened
    for testbed in made:
        testbed.close()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return path


def sh(script, *arguments, limit_s=LONG_S, **more):
    return Job(("sh", "-c", script, "sh", *arguments), limit_s, **more)


def half_done(node):
    """What is left of jobs, copies and builds on a node."""
    return [p for p in (node.work / "sessions").glob("*/*") if p.name != "pid"]


def number_in(path):
    wait_until(lambda: path.exists() and path.read_text().strip(), what=str(path))
    return int(path.read_text())


def refusal(testbed, message):
    """The error of an attempt to use a testbed; its only problem says the same."""
    with pytest.raises(TestbedError, match=message) as caught:
        testbed.facts()
    assert caught.value.exit_code == ExitCode.UNAVAILABLE
    assert caught.value.message.startswith("node dut, connecting: ")
    assert "\n" not in caught.value.message
    (problem,) = testbed.problems()
    assert problem.fatal
    assert problem.what == caught.value.message
    assert caught.value.hint


class TestConnecting:
    def test_nothing_listens(self, new_node, opened):
        node = new_node()
        node.stop()
        refusal(opened(node), "nothing listens on that port")

    def test_a_host_that_is_silent(self, new_node, opened):
        node = new_node()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            begun = time.monotonic()
            refusal(opened(node, port=silent.getsockname()[1], connect_timeout_s=1), "it does not answer")
            assert time.monotonic() - begun < 10

    def test_a_port_of_something_else(self, node, opened):
        with socket.create_server(("127.0.0.1", 0)) as other:
            thread = threading.Thread(target=lambda: [other.accept()[0].close() for _ in range(2)])
            thread.start()
            refusal(opened(node, port=other.getsockname()[1]), "the connection was closed")
            thread.join()

    def test_a_host_that_does_not_exist(self, node, opened):
        refusal(opened(node, host="no-such-host.invalid"), "there is no such host")

    def test_a_host_key_that_is_not_known(self, node, opened, tmp_path):
        (tmp_path / "empty").write_text("")
        refusal(opened(node, known_hosts=tmp_path / "empty"), "its host key is not known")
        assert (tmp_path / "empty").read_text() == "", "nothing is trusted on first use"

    def test_a_host_key_that_has_changed(self, new_node, opened, tmp_path):
        node = new_node()
        node.know(key(tmp_path / "other_key"))
        refusal(opened(node), "its host key is not the one in known_hosts")

    def test_a_wrong_identity(self, node, opened, tmp_path):
        refusal(opened(node, identity=key(tmp_path / "other")), "it does not let this user in with this key")

    def test_an_identity_that_others_may_read(self, node, opened, tmp_path):
        shutil.copy(node.identity, tmp_path / "identity")
        (tmp_path / "identity").chmod(0o644)
        refusal(opened(node, identity=tmp_path / "identity"), "others may read it")

    def test_no_ssh_here(self, node, opened, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        (problem,) = opened(node).problems()
        assert "no ssh on the PATH" in problem.what


class TestTheNode:
    def test_tools_that_are_missing_are_named(self, new_node, opened, tmp_path):
        node = new_node("dut", f"SetEnv PATH={tmp_path / 'bin'}")
        (tmp_path / "bin").mkdir()
        for tool in ("sh", "cat", "mkdir", "rm"):
            (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
        with pytest.raises(TestbedError, match="node dut, connecting: it cannot be used: it lacks base64 cp head ln"):
            opened(node).facts()

    def test_no_compiler(self, new_node, opened, tmp_path):
        (tmp_path / "bin").mkdir()
        for tool in Path("/usr/bin").iterdir():
            if not tool.name.startswith(("cc", "c8", "c9", "gcc", "x86_64", "clang")):
                (tmp_path / "bin" / tool.name).symlink_to(tool)
        testbed = opened(new_node("dut", f"SetEnv PATH={tmp_path / 'bin'}"))
        assert testbed.facts().text("cc_version") == ""
        plan = BuildPlan({"a.c": "int main(void) { return 0; }"}, (("sh", "-c", "cc a.c -o a"),), "a")
        with pytest.raises(BuildError, match=r"the build on node dut failed: .*cc: not found") as caught:
            testbed.build(plan)
        assert caught.value.exit_code == ExitCode.UNAVAILABLE

    def test_a_work_folder_that_cannot_be_made(self, node, opened, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(TestbedError, match=r"node dut, connecting: .*Not a directory"):
            opened(node, work_folder=tmp_path / "file" / "work").facts()

    def test_cores_that_there_are_not(self, node, opened):
        with pytest.raises(TestbedError, match="node dut, reading its facts: it cannot be held on its cores"):
            opened(node, cores="[4095]").facts()

    def test_sessions_that_are_not_allowed(self, new_node, opened):
        with pytest.raises(TestbedError, match="node dut, reading its facts: it accepts no more sessions"):
            opened(new_node("dut", "MaxSessions 1")).facts()

    @pytest.mark.thorough  # minutes of compilers
    def test_more_builds_at_once_than_sessions(self, new_node, opened):
        testbed = opened(new_node())
        plans = [BuildPlan({"a.sh": f"sleep 0.1; echo {n} >made"}, (("sh", "a.sh"),), "made") for n in range(20)]
        with ThreadPoolExecutor(20) as pool:
            folders = list(pool.map(testbed.build, plans))
        assert [int((folder / "made").read_text()) for folder in folders] == list(range(20))

    def test_a_login_shell_that_talks(self, new_node, opened, folder):
        talks = 'echo welcome; echo "last login" >&2; eval "$SSH_ORIGINAL_COMMAND"'
        testbed = opened(new_node("dut", f"ForceCommand {talks}"))
        assert testbed.run(sh("echo out"), folder).stdout == "out\n"
        with testbed.converse(sh("echo {a}"), folder) as conversation:
            assert conversation.answer(LONG_S) == "{a}"

    def test_another_shell(self, new_node, opened, folder, tmp_path):
        """A sh that tells of killed children, which are not to be in the output of jobs."""
        bash = shutil.which("bash")
        if bash is None:
            pytest.skip("bash is not installed")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "sh").symlink_to(bash)
        testbed = opened(new_node("dut", f"SetEnv PATH={tmp_path / 'bin'}:/usr/bin:/bin"))
        result = testbed.run(sh("echo x; kill -SEGV $$"), folder)
        assert (result.returncode, result.stdout, result.stderr) == (-signal.SIGSEGV, "x\n", "")
        result = testbed.run(sh("sleep 600 & wait", limit_s=0.5), folder)
        assert (result.returncode, result.timed_out, result.stderr) == (-signal.SIGKILL, True, "")
        with testbed.converse(sh("read -r x; echo {$x}; cat"), folder) as conversation:
            assert conversation.ask("y", LONG_S) == "{y}"

    def test_cores_hold_everything(self, node, opened, folder):
        core = max(os.sched_getaffinity(0))
        testbed = opened(node, cores=f"[{core}]")
        assert testbed.facts().text("cpus_allowed") == str(core)
        found = testbed.run(sh("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"), folder)
        assert found.stdout == f"{core}\n"

    def test_interfaces_are_looked_for(self, node, opened):
        (problem,) = opened(node, interfaces="{left: ffff:ff:1f.7}").problems()
        assert not problem.fatal
        assert "no interface left at ffff:ff:1f.7" in problem.what

    def test_roles(self, node, opened, folder):
        (problem,) = opened(node, roles="[dut, loadgen]").problems() or (None,)
        assert problem is None
        with pytest.raises(TestbedError, match="node dut, sending load: no node has the role loadgen"):
            opened(node, roles="[dut]").node("loadgen")
        file = node.node_file(roles="[loadgen]")
        testbed = SshTestbed(read_node(file, "dut"), file)
        assert "has not the role dut" in testbed.problems()[0].what
        testbed.close()

    @pytest.mark.thorough
    def test_two_at_once(self, node, new_node, opened, folder):
        other = new_node("second")
        first, second = opened(node), SshTestbed.at(str(other.node_file()))
        with second.converse(sh("echo {ready}; cat"), folder) as conversation:
            assert conversation.answer(LONG_S) == "{ready}"
            assert first.run(sh("echo here"), folder).stdout == "here\n"
        assert second.label == "ssh:second"
        second.close()


class TestFiles:
    def test_what_a_job_leaves_is_fetched(self, node, opened, folder):
        data = os.urandom(100_000)
        (folder / "raw.jsonl").write_text("ours")
        script = (
            'cp "$1" out.bin; echo theirs >raw.jsonl; echo x >.hidden; ln -s /etc/passwd link; echo y >"a b"; mkdir d'
        )
        result = opened(node).run(sh(script, "{folder}/in.bin", files={"in.bin": data}), folder)
        assert result.returncode == 0, result.stderr
        assert sorted(p.name for p in (folder / "fetched").iterdir()) == ["out.bin", "raw.jsonl"]
        assert (folder / "fetched" / "out.bin").read_bytes() == data
        assert (folder / "raw.jsonl").read_text() == "ours"
        assert half_done(node) == []

    def test_equal_files_are_copied_once(self, node, opened, folder):
        testbed = opened(node)
        job = sh('cat "$1"; echo spoilt >"$1"', "{folder}/f", files={"f": b"as it was\n"})
        for _ in range(2):
            assert testbed.run(job, folder).stdout == "as it was\n"
        assert not (folder / "fetched").exists()

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden", "a b", "a\n"])
    def test_names_that_are_no_names(self, node, opened, name, folder, tmp_path):
        plan = BuildPlan({name: "x"}, (("true",),), "made")
        with pytest.raises(TestbedError, match=r"node dut, copying files: .* is no name for a file"):
            opened(node).build(plan)

    @pytest.mark.skipif(not ROOT, reason="mounting needs root")
    def test_a_full_disk(self, new_node, opened, folder):
        node = new_node()
        node.work.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(node.work)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        node.restart()  # in a namespace that has the mount
        try:
            testbed = opened(node)
            job = sh('wc -c <"$1"', "{folder}/data", files={"data": os.urandom(1 << 20)})
            with pytest.raises(StorageError, match="node dut, copying files: the disk is full") as caught:
                testbed.run(job, folder)
            assert caught.value.exit_code == ExitCode.UNAVAILABLE
            plan = BuildPlan({"a.sh": "head -c 1000000 /dev/zero >made"}, (("sh", "a.sh"),), "made")
            with pytest.raises(StorageError, match="the build on node dut failed: the disk is full"):
                testbed.build(plan)
            assert half_done(node) == []
            subprocess.run(["mount", "-o", "remount,size=8m", str(node.work)], check=True)
            assert testbed.run(job, folder).stdout.strip() == str(1 << 20)
            assert (testbed.build(plan) / "made").stat().st_size == 1_000_000
        finally:
            opened(node).close()
            node.stop()
            subprocess.run(["umount", "-l", str(node.work)], check=True)


@contextlib.contextmanager
def after(condition, action):
    """Does something in the background once a condition holds."""
    thread = threading.Thread(target=lambda: (wait_until(condition), action()))
    thread.start()
    yield
    thread.join()


def kill_master(testbed):
    os.kill(testbed._connection._open._master._process.pid, signal.SIGKILL)


class TestLosses:
    @pytest.mark.thorough
    def test_in_the_middle_of_a_copy(self, new_node, opened, folder, tmp_path):
        slow = tmp_path / "slow"
        slow.mkdir()
        (slow / "sha256sum").write_text('#!/bin/sh\nsleep 2\nexec /usr/bin/sha256sum "$@"\n')
        (slow / "sha256sum").chmod(0o755)
        node = new_node("dut", f"SetEnv PATH={slow}:/usr/bin:/bin:/usr/sbin:/sbin")
        testbed = opened(node)
        testbed.facts()
        job = sh('wc -c <"$1"', "{folder}/data", files={"data": os.urandom(8 << 20)})
        begun = lambda: any(p.stat().st_size for p in (node.work / "sessions").glob("*/*/.all"))  # noqa: E731
        with (
            after(begun, node.cut),
            pytest.raises(TestbedError, match="node dut, copying files: the connection was"),
        ):
            testbed.run(job, folder)
        wait_until(lambda: not half_done(node))
        assert list((node.work / "files").iterdir()) == []
        assert testbed.run(job, folder).stdout.strip() == str(8 << 20), "it connects again"

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("end", ["node", "here"])
    def test_during_a_job(self, new_node, opened, folder, tmp_path, end):
        node = new_node()
        testbed = opened(node)
        testbed.facts()
        pid = tmp_path / "pid"
        begun = time.monotonic()
        action = node.cut if end == "node" else lambda: kill_master(testbed)
        with (
            after(lambda: pid.exists() and pid.read_text(), action),
            pytest.raises(TestbedError, match="node dut, running: the connection was"),
        ):
            testbed.run(sh(f"echo $$ >{pid}; sleep 600", limit_s=600), folder)
        assert time.monotonic() - begun < LONG_S
        wait_until(lambda: not alive(number_in(pid)))
        wait_until(lambda: not half_done(node))
        assert testbed.run(sh("echo again"), folder).stdout == "again\n"

    def test_during_a_build(self, new_node, opened, tmp_path):
        node = new_node()
        testbed = opened(node)
        pid = tmp_path / "pid"
        plan = BuildPlan({"a.sh": f"touch made; echo $$ >{pid}; sleep 600"}, (("sh", "a.sh"),), "made")
        with (
            after(lambda: pid.exists() and pid.read_text(), node.cut),
            pytest.raises(TestbedError, match="node dut, building: the connection was"),
        ):
            testbed.build(plan)
        wait_until(lambda: not alive(number_in(pid)))
        wait_until(lambda: not half_done(node))
        assert list((node.work / "builds").iterdir()) == []

    @pytest.mark.parametrize("end", ["node", "here"])
    def test_during_a_conversation(self, new_node, opened, folder, end):
        node = new_node()
        testbed = opened(node)
        with testbed.converse(sh("trap '' HUP TERM; echo {$$}; sleep 600"), folder) as conversation:
            pid = int(conversation.answer(LONG_S).strip("{}"))
            node.cut() if end == "node" else kill_master(testbed)
            with pytest.raises(TestbedError, match="node dut, conversing: the connection was"):
                conversation.answer(LONG_S)
        wait_until(lambda: not alive(pid))

    def test_of_which_nobody_tells(self, new_node, opened, folder, tmp_path):
        """No packet comes through any more, and sshd does not know: no sign of life, so everything ends."""
        node = new_node()
        testbed = opened(node, beats=(1000.0, 1))
        pid = tmp_path / "pid"
        with pytest.raises(TestbedError, match="node dut, running: the connection was"):
            testbed.run(sh(f"echo $$ >{pid}; sleep 600", limit_s=600), folder)
        wait_until(lambda: not alive(number_in(pid)))
        wait_until(lambda: not half_done(node))

    def test_signs_of_life_keep_a_job_alive(self, node, opened, folder):
        assert opened(node, beats=(0.3, 2)).run(sh("sleep 4; echo done"), folder).stdout == "done\n"

    def test_a_silent_command_on_a_node_that_is_there(self, node, opened, folder):
        with opened(node).converse(sh("echo {a}; sleep 600"), folder) as conversation:
            conversation.answer(LONG_S)
            with pytest.raises(MeasurementError, match="did not answer within"):
                conversation.answer(0.2)

    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
    def test_of_this_process(self, new_node, opened, tmp_path, number):
        node = new_node()
        script = f"""
            from pathlib import Path
            from p4perf.targets.base import Job
            from p4perf.testbeds.ssh.testbed import SshTestbed
            job = Job(("sh", "-c", "sleep 600 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/pid; wait"), 600.0)
            SshTestbed.at({str(node.node_file())!r}).run(job, Path({str(tmp_path)!r}))
        """
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.DEVNULL)
        pids = [number_in(tmp_path / "child"), number_in(tmp_path / "pid")]
        process.send_signal(number)
        assert process.wait(LONG_S) != 0
        for pid in pids:
            wait_until(lambda pid=pid: not alive(pid))
        wait_until(lambda: not half_done(node))
        wait_until(lambda: not node.connections(), what="the end of the connection")
        testbed = opened(node)
        testbed.facts()
        assert not list(Path(tempfile.gettempdir()).glob(f"p4perf-ssh-{process.pid}-*")), "its socket is removed"

    def test_what_a_node_that_lost_its_power_kept_is_removed(self, new_node, opened):
        node = new_node()
        left = node.work / "sessions" / "old"
        left.mkdir(parents=True)
        gone = subprocess.Popen(["true"])
        gone.wait()
        (left / "pid").write_text(f"{gone.pid}\n")
        opened(node).facts()
        assert not left.exists()


def test_closing_leaves_nothing(new_node, folder):
    node = new_node()
    before = set(Path(tempfile.gettempdir()).glob(f"p4perf-ssh-{os.getpid()}-*"))
    testbed = SshTestbed.at(str(node.node_file()))
    testbed.run(sh("true"), folder)
    testbed.close()
    testbed.close()
    assert set(Path(tempfile.gettempdir()).glob(f"p4perf-ssh-{os.getpid()}-*")) == before
    wait_until(lambda: not list((node.work / "sessions").iterdir()))
    wait_until(lambda: not node.connections())
    assert testbed.run(sh("echo again"), folder).stdout == "again\n"
    del testbed
    wait_until(lambda: not node.connections(), what="the end of a testbed that nobody uses")


class TestFrequency:
    @pytest.fixture
    def cpus(self, tmp_path):
        for n in range(2):
            policy = tmp_path / "cpus" / f"cpu{n}" / "cpufreq"
            policy.mkdir(parents=True)
            (policy / "scaling_min_freq").write_text("800000\n")
            (policy / "scaling_max_freq").write_text("3000000\n")
        return tmp_path / "cpus"

    @staticmethod
    def bounds(cpus):
        return [int(p.read_text() or 0) for p in sorted(cpus.glob("*/cpufreq/scaling_*"))]

    def test_it_is_held_and_set_back(self, node, opened, cpus):
        with opened(node).at_frequency(1.2, cpus):
            assert self.bounds(cpus) == [1_200_000] * 4
        assert self.bounds(cpus) == [3_000_000, 800_000] * 2

    def test_it_is_set_back_when_the_connection_is_lost(self, new_node, opened, cpus):
        node = new_node()
        with opened(node).at_frequency(3.2, cpus):
            assert self.bounds(cpus) == [3_200_000] * 4
            node.cut()
            wait_until(lambda: self.bounds(cpus) == [3_000_000, 800_000] * 2)

    def test_a_node_without(self, node, opened, tmp_path):
        message = "ssh:dut, setting the frequency: it cannot be set: it has no cpufreq"
        with pytest.raises(TestbedError, match=message), opened(node).at_frequency(1.2, tmp_path):
            pytest.fail("the body was entered")
