"""One connection to a node, shared by everything that runs there.

The first session of the connection is a shell on the node that waits for signs of life (``watch.sh``). When they fail
to come, because this process was killed or the network is cut, all jobs on the node end and what was half done there is
removed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import shlex
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from typing_extensions import override

from p4perf.errors import MeasurementError, P4PerfError, TestbedError
from p4perf.testbeds.nodes import NodeSpec, RemoteNode
from p4perf.testbeds.processes import LocalConversation, diagnosis, exit_status, printable, run_command

RESUME = "p4perf resume continues a run once the node can be reached"

_KNOWN = {
    "No space left on device|Disk quota exceeded": ("its disk is full", "make room in work_folder"),
    "taskset: ": ("it cannot be held on its cores", "see to cores in the node file, and to taskset on the node"),
    "Session open refused|session request failed": (
        "it accepts no more sessions in a connection",
        "set MaxSessions in its sshd_config to 10 or more",
    ),
    "REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed": (
        "its host key is not the one in known_hosts",
        "if it was installed anew, replace the key (ssh-keygen -R); if not, someone may be intercepting the connection",
    ),
    "host key is known for|Host key verification failed": (
        "its host key is not known",
        "get it with ssh-keyscan, compare its fingerprint with the node's own, and put it into known_hosts",
    ),
    "UNPROTECTED PRIVATE KEY FILE": (
        "ssh does not take the identity, because others may read it",
        "chmod 600 the file",
    ),
    "invalid format|error in libcrypto|incorrect passphrase": (
        "ssh cannot use the identity",
        "name a private key; one with a passphrase must be in ssh-agent",
    ),
    r"Permission denied \(|Too many authentication failures": (
        "it does not let this user in with this key",
        "check user and identity in the node file and to authorized_keys on the node; nothing is asked for",
    ),
    "Could not resolve hostname": ("there is no such host", "see to host in the node file"),
    "Connection refused": ("nothing listens on that port", "see to port in the node file; does sshd run there?"),
    "No route to host|Network is unreachable": ("host unreachable", "see to host, and to routes"),
    "[Tt]imed out|Timeout, server .* not responding": (
        "it does not answer",
        "is it up? see to host and port in the node file",
    ),
    "kex_exchange_identification|banner|Connection closed by|Connection reset|Broken pipe|read from master failed": (
        "the connection was closed",
        RESUME,
    ),
}


CALL_S = 60.0
"""How long a short command on the node may take, the way there and back included, in seconds."""

ALIVE_S = 10.0
"""How long a node may take to say that it is there, in seconds."""

BEAT_S = 10.0
"""Seconds between two signs of life."""

SILENCE_S = 60
"""Seconds without a sign of life after which everything on the node ends."""

LOSS_S = 1.0
"""How long a lost connection may still look open, in seconds."""

SESSIONS = 6
"""Commands at once; sshd takes ten sessions in one connection unless its MaxSessions says otherwise."""

WATCH = "watch.sh"
"""The script of the first session."""

_MAX_COMMAND = 120_000
"""Longest command in characters; Linux takes 128 KiB in one argument."""

_WORK = re.compile(r'\{"work": "(/[^"\\]*)"\}')

# Beginning of every script: it prints a mark before its output, and its exit status at the end.
_PROLOGUE = """leave() { :; }
trap 'status=$?; leave; printf "\\n%s exit %s\\n" "$0" "$status" >&2' EXIT
printf '%s\\n' "$0"
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """How a command on the node ended: its exit code (negative: the signal it died of) and output.

    ``report`` holds further lines of its script, words by name.
    """

    code: int
    stdout: str
    stderr: str
    duration_s: float
    report: dict[str, list[list[str]]] = field(default_factory=dict)


class Connection:
    """A connection that is made when it is first used, and again after it was lost.

    Args:
        silence_s: seconds without one after which the node ends everything.
    """

    def __init__(self, node: RemoteNode, beat_s: float = BEAT_S, silence_s: int = SILENCE_S) -> None:
        self.node = node
        self._times = beat_s, silence_s
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(SESSIONS)
        self._open: _Opened | None = None

    def opened(self) -> _Opened:
        """The connection, made if there is none."""
        with self._lock:
            if self._open is None or not self._open.alive:
                self.close()
                self._open = _Opened(self, *self._times)
            return self._open

    @property
    def is_open(self) -> bool:
        return self._open is not None and self._open.alive

    def ends_within(self, seconds: float) -> bool:
        """Whether the connection is closed, or closes within that time."""
        deadline = time.monotonic() + seconds
        while self.is_open and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.is_open

    def close(self) -> None:
        """End the connection, and with it everything that runs on the node."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def call(
        self, step: str, script: str, *arguments: str, stdin: str = "", held: bool = False, timeout_s: float = CALL_S
    ) -> Reply:
        """Run a script of this package on the node.

        Args:
            held: its input ends only when it has ended itself, or the connection has.

        Raises:
            TestbedError: the node cannot be reached, or the connection is lost meanwhile.
        """
        opened = self.opened()
        mark = new_mark()
        argv = opened.argv(self.command(step, script, mark, *arguments))
        with self._slots:
            done = run_command(argv, timeout_s, Path("/"), None if held else stdin, held=held)
        if done.timed_out:
            raise self.node.error(step, f"no answer within {timeout_s:.0f} s")
        stderr, report = split_report(done.stderr, mark)
        code = exit_code(report)
        if code is None:
            self.ends_within(LOSS_S)  # the next call finds it ended, and connects again
            raise lost(self.node, step, done.stderr)
        return Reply(code, done.stdout.partition(f"{mark}\n")[2], stderr, done.duration_s, report)

    def command(self, step: str, script: str, mark: str, *arguments: str) -> str:
        """A script with its arguments as one command for the shell on the node, every word quoted."""
        # Signs of life do not disturb the cores that are measured on.
        pin = self.node.spec.cores and script != WATCH
        pinned = ["taskset", "-c", ",".join(map(str, self.node.spec.cores))] if pin else []
        words = ["exec", *pinned, "sh", "-c", _PROLOGUE + script_text(script), mark, *arguments]
        text = " ".join([words[0], *(shlex.quote(word) for word in words[1:])])
        if len(text) > _MAX_COMMAND:
            raise self.node.error(step, f"the command has {len(text)} characters, and {_MAX_COMMAND} are possible")
        return text


class _Opened:
    def __init__(self, connection: Connection, beat_s: float, silence_s: int) -> None:
        node = connection.node
        _remove_stale_sockets()
        folder = Path(tempfile.mkdtemp(prefix=f"p4perf-ssh-{os.getpid()}-"))
        self._socket = folder / "master"
        self._stop = threading.Event()
        session = new_mark()[:12]
        self._numbers = itertools.count(1)
        arguments = (node.spec.work_folder, session, str(silence_s))
        mark = new_mark()
        command = connection.command("connecting", WATCH, mark, *arguments)
        self._master = _Master(node, mark, (*_first_argv(node.spec, self._socket), command))
        with contextlib.ExitStack() as failed:
            failed.callback(shutil.rmtree, folder, ignore_errors=True)
            self._master.__enter__()
            failed.callback(self._master.__exit__, None, None, None)
            self.work = Path(self._hello(node, node.spec.connect_timeout_s + ALIVE_S))
            failed.pop_all()
        self.session = self.work / "sessions" / session
        self._beats = threading.Thread(target=_beat, args=(self._master, self._stop, beat_s), daemon=True)
        self._beats.start()
        self._closing = weakref.finalize(self, _close, os.getpid(), self._stop, self._beats, self._master, folder)

    def _hello(self, node: RemoteNode, timeout_s: float) -> str:
        try:
            line = self._master.answer(timeout_s)
        except MeasurementError as error:
            raise node.error("connecting", f"it does not answer within {timeout_s:.0f} s") from error
        found = _WORK.fullmatch(line)
        if found is None:
            raise node.error("connecting", f"its answer is not understood: {printable(line)}")
        return found[1]

    @property
    def alive(self) -> bool:
        return self._master.running

    def argv(self, command: str) -> tuple[str, ...]:
        """The command of this machine that runs a command on the node. It never connects by itself."""
        options = ("-F", os.devnull, "-S", str(self._socket), "-o", "ControlMaster=no", "-o", "ProxyCommand=false")
        return ("ssh", *options, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-T", "p4perf", command)

    def new_folder(self) -> Path:
        """A name for a folder on the node that goes when the connection ends."""
        return self.session / str(next(self._numbers))

    def close(self) -> None:
        self._closing()


class _Master(LocalConversation):
    """The first session: its end says why there is no connection."""

    def __init__(self, node: RemoteNode, mark: str, argv: tuple[str, ...]) -> None:
        super().__init__(argv, Path("/"))
        self._node, self._mark = node, mark

    @override
    def _ended(self, code: int | None, said: str) -> P4PerfError:
        text, _ = split_report(said, self._mark)
        what, hint = diagnosis(text, _KNOWN, "it cannot be used")
        return self._node.error("connecting", what, hint)


def _first_argv(node: NodeSpec, socket: Path) -> tuple[str, ...]:
    """Options of ssh: nothing is asked, no unknown host is trusted, nothing is forwarded."""
    options = {
        "ControlMaster": "yes",
        "ControlPath": str(socket),
        "ControlPersist": "no",
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "ConnectTimeout": str(node.connect_timeout_s),
        "ConnectionAttempts": "1",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "RemoteCommand": "none",
        "RequestTTY": "no",
        "LogLevel": "ERROR",
    }
    if node.known_hosts is not None:
        options |= {"UserKnownHostsFile": f'"{node.known_hosts}"', "GlobalKnownHostsFile": os.devnull}
    if node.identity is not None:
        options |= {"IdentityFile": f'"{node.identity}"', "IdentitiesOnly": "yes"}
    if node.user is not None:
        options["User"] = node.user
    if node.port is not None:
        options["Port"] = str(node.port)
    return ("ssh", *(word for key, value in options.items() for word in ("-o", f"{key}={value}")), "-T", node.host)


def lost(node: RemoteNode, step: str, said: str) -> TestbedError:
    """The failure of a command that did not report its end, from what ssh printed."""
    what, hint = diagnosis(said, _KNOWN, "the connection was lost")
    return node.error(step, what, hint or RESUME)


def script_text(name: str) -> str:
    """A script of this package; comments and empty lines are not sent."""
    folder = files("p4perf.testbeds") / ("" if name == "probe.sh" else "ssh")
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def new_mark() -> str:
    """A random word that nothing else prints."""
    return secrets.token_hex(16)


def split_report(stderr: str, mark: str) -> tuple[str, dict[str, list[list[str]]]]:
    """What a command said on stderr, and what its script reported behind that: words by the first one."""
    said, found, _ = stderr.partition(f"\n{mark} ")
    report: dict[str, list[list[str]]] = {}
    for line in stderr[len(said) :].splitlines() if found else ():
        first, *words = line.split(" ") if line else [""]
        if first == mark and words:
            report.setdefault(words[0], []).append(words[1:])
    return said, report


def exit_code(report: Mapping[str, list[list[str]]]) -> int | None:
    """The exit code that a script reported, negative for a signal (above 128 in a shell); None if it did not."""
    words = report.get("exit", [[]])[0]
    if len(words) != 1 or re.fullmatch("[0-9]{1,3}", words[0]) is None:
        return None
    return exit_status(int(words[0]))


def _beat(master: LocalConversation, stop: threading.Event, beat_s: float) -> None:
    while not stop.wait(beat_s):
        master.tell("alive")


def _close(owner: int, stop: threading.Event, beats: threading.Thread, master: LocalConversation, folder: Path) -> None:
    if os.getpid() != owner:
        return  # a fork of the process that opened it
    stop.set()
    if beats is not threading.current_thread():
        beats.join()
    master.__exit__(None, None, None)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_stale_sockets() -> None:
    for left in Path(tempfile.gettempdir()).glob("p4perf-ssh-*-*"):
        with contextlib.suppress(OSError, ValueError):
            if left.stat().st_uid == os.getuid() and not Path(f"/proc/{int(left.name.split('-')[2])}").exists():
                shutil.rmtree(left, ignore_errors=True)
