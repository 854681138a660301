"""The server of OpenSSH for the tests comes unpacked into a folder: nothing of the system is changed for it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
SCRIPT = TOOLS / "fetch-sshd.sh"


@pytest.fixture
def fetch(tmp_path):
    """Runs the script with stand-ins for the tools of Debian."""

    def fetch(apt="for name; do :; done; touch server.deb", sshd="/nonexistent/sshd"):
        tools = tmp_path / "bin"
        tools.mkdir(exist_ok=True)
        unpack = 'mkdir -p "$3/usr/sbin" && touch "$3/usr/sbin/sshd" && chmod 755 "$3/usr/sbin/sshd"'
        for name, script in {"apt-get": f'echo "$@" >>"{tmp_path}/asked"; {apt}', "dpkg-deb": unpack}.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        path = f"{tools}:{os.environ['PATH']}"
        words = ["sh", str(SCRIPT), str(tmp_path / "deep" / "sshd")]
        return subprocess.run(
            words, env={**os.environ, "PATH": path, "SSHD": sshd}, capture_output=True, text=True, check=False
        )

    return fetch


def test_it_is_unpacked_once_into_the_folder(fetch, tmp_path):
    for _ in range(2):
        done = fetch()
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "deep" / "sshd" / "usr" / "sbin" / "sshd").exists()
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 1
    assert " download openssh-server " in asked[0]


def test_a_system_that_has_one_needs_no_other(fetch, tmp_path):
    assert fetch(sshd="/bin/sh").returncode == 0
    assert not (tmp_path / "asked").exists()


def test_without_it_the_tests_are_skipped(fetch, tmp_path):
    done = fetch(apt="echo E: no network; exit 100")
    assert done.returncode == 0
    assert "E: no network" in done.stderr
    assert not (tmp_path / "deep").exists()


def test_no_tool_tells_the_system_what_it_may_start():
    assert shutil.which("sh")
    assert [path.name for path in TOOLS.iterdir() if path.is_file() and "policy-rc" in path.read_text()] == []
