"""Child processes: run to their end, or conversed with; they die with this process, however it dies."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import IO, Self

from typing_extensions import override

from p4perf.errors import MeasurementError, P4PerfError, TestbedError
from p4perf.targets.base import JobResult, ending
from p4perf.testbeds.base import Conversation

_DYING_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""Before a command: it is killed when this process dies, however that dies. Set between fork and exec, this would copy
the page tables of this process for every command, which costs several times as much."""
_END_S = 2.0
"""Time for a command to end by itself after its input is closed."""

_LOOK_S = 1.0
"""How often it is looked how much a program that does not answer has printed, in seconds."""

_PIECE_BYTES = 1 << 16

MAX_OUTPUT_BYTES = 32 << 20
"""Of what a command prints on a stream, this much is kept, from the end."""

MAX_QUOTED_BYTES = 1 << 16
"""Of the diagnostics of a program that ended, this much is read, from the end."""

_MARK = "P4PERF_COMMAND"
"""In the environment of a command and of all that it starts: by its value they are found, whatever became of them."""

_ROUNDS = 50
"""How often what a command started is looked for, as it may start more meanwhile."""

_SIGNALS = frozenset(map(int, signal.Signals))


def exit_status(code: int) -> int:
    """The status of a command as a shell reports it: the negative number of the signal that it died of, if one."""
    return 128 - code if code - 128 in _SIGNALS else code


def printable(text: str) -> str:
    """At most 300 characters of a line, without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


def diagnosis(
    stderr: str, known: Mapping[str, tuple[str, str]], otherwise: str, *, quote: bool = False
) -> tuple[str, str | None]:
    """What is wrong with a command, and a hint.

    Args:
        known: what is wrong and the hint, by regular expressions of messages.
        otherwise: what is wrong if no message is known; the last line of ``stderr`` is added.
    """
    lines = [printable(line.strip()) for line in stderr.splitlines() if line.strip()]
    for pattern, (what, hint) in known.items():
        if re.search(pattern, stderr):
            quoted = next((line for line in lines if re.search(pattern, line)), "") if quote else ""
            return f"{what} ({quoted})" if quoted else what, hint
    return f"{otherwise}: {lines[-1]}" if lines else otherwise, None


def run_command(
    argv: tuple[str, ...],
    timeout_s: float,
    cwd: Path,
    stdin: str | None = None,
    *,
    held: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> JobResult:
    """Run a command in its own process group (an interrupt from the terminal does not reach it).

    Args:
        held: its input has nothing in it, but ends only when the command has ended or this process dies.
        variables: of its environment, beside those of this process.

    Raises:
        TestbedError: it cannot be started.
    """
    source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    with contextlib.ExitStack() as ended:
        if held:
            source, writing = os.pipe()
            ended.callback(os.close, source)
            ended.callback(os.close, writing)
        begun = time.monotonic()
        with _start(argv, cwd, source, subprocess.PIPE, variables) as process, _Talk(process, stdin) as talk:
            try:
                timed_out = not talk.ended(begun + timeout_s)
            except BaseException:
                _kill(process)
                raise
            if timed_out:
                _kill(process)
                talk.ended(time.monotonic() + _END_S)  # a process that escaped may hold the streams
    return JobResult(process.returncode, talk.said("stdout"), talk.said("stderr"), time.monotonic() - begun, timed_out)


class _Child(subprocess.Popen[str]):
    mark: str


class _Talk:
    """Feeds a process, and keeps the end of what it prints: the last :data:`MAX_OUTPUT_BYTES` of each stream."""

    def __init__(self, process: _Child, text: str | None) -> None:
        self._process, self._rest = process, (text or "").encode()
        self._pieces: dict[str, deque[bytes]] = {"stdout": deque(), "stderr": deque()}
        self._sizes = dict.fromkeys(self._pieces, 0)

    def __enter__(self) -> Self:
        self._selector = selectors.DefaultSelector()
        for name in self._pieces:
            self._selector.register(getattr(self._process, name), selectors.EVENT_READ, name)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._selector.register(self._process.stdin, selectors.EVENT_WRITE, "stdin")
        return self

    def __exit__(self, *error: object) -> None:
        self._selector.close()

    def ended(self, deadline: float) -> bool:
        """Carry on until the process has ended and nobody holds its streams; False if that is not so in time."""
        while self._selector.get_map():
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            for key, _ in ready:
                if not (self._feed() if key.data == "stdin" else self._hear(key)):
                    self._selector.unregister(key.fileobj)
                    if key.data == "stdin":
                        with contextlib.suppress(OSError):
                            key.fileobj.close()  # type: ignore[union-attr]
            if time.monotonic() > deadline or not ready:
                return False
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _feed(self) -> bool:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):
            if self._rest:
                self._rest = self._rest[os.write(self._process.stdin.fileno(), self._rest[:_PIECE_BYTES]) :]
            return bool(self._rest)
        return False

    def _hear(self, key: selectors.SelectorKey) -> bool:
        piece, name = os.read(key.fd, _PIECE_BYTES), key.data
        pieces = self._pieces[name]
        pieces.append(piece)
        self._sizes[name] += len(piece)
        while self._sizes[name] - len(pieces[0]) >= MAX_OUTPUT_BYTES:
            self._sizes[name] -= len(pieces.popleft())
        return bool(piece)

    def said(self, name: str) -> str:
        text = b"".join(self._pieces[name])[-MAX_OUTPUT_BYTES:].decode(errors="replace")
        return text.replace("\r\n", "\n").replace("\r", "\n")


def _start(
    argv: tuple[str, ...],
    cwd: Path,
    stdin: int,
    stderr: int | IO[bytes],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> _Child:
    process: _Child | None = None
    mark = secrets.token_hex(8)
    program = cwd / argv[0] if "/" in argv[0] else argv[0]
    try:
        if shutil.which(program) is None:
            reason = errno.EACCES if Path(program).is_file() else errno.ENOENT
            raise OSError(reason, os.strerror(reason))
        with interrupts_wait():
            process = _Child(
                (*_DYING_WITH_PARENT, *argv),
                cwd=cwd,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                errors="replace",
                process_group=0,
                env={**os.environ, **variables, _MARK: mark},
            )
            process.mark = mark
    except OSError as error:
        raise TestbedError(f"cannot start {argv[0]}: {error.strerror}") from error
    except KeyboardInterrupt:
        if process is not None:
            with process:  # waits, and closes its pipes
                _kill(process)
        raise
    return process


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """An interrupt is kept until the end of the body: raised while a process starts, it would leave one unknown."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    kept: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: kept.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if kept:
            handler(*kept[0])


def _kill(process: _Child) -> None:
    """Kill a process, its group, and all that it started, also in sessions of their own and as daemons."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    mark = f"{_MARK}={process.mark}".encode()
    for _ in range(_ROUNDS):
        found = False
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if mark in (folder / "environ").read_bytes():
                    found = True
                    os.kill(int(folder.name), signal.SIGKILL)
        if not found:
            return
        time.sleep(0.01)


class LocalConversation(Conversation):
    """A child process that answers lines with lines. A context manager: the process ends with the body."""

    patience_s = 0.0
    """How long a process may take to end by itself after a body that failed, in seconds."""

    def __init__(self, argv: tuple[str, ...], cwd: Path) -> None:
        self._argv, self._cwd = argv, cwd
        self._waiting = b""

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile()
        try:
            self._process = _start(self._argv, self._cwd, subprocess.PIPE, self._errors)
        except BaseException:
            self._errors.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        process = self._process
        try:
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()
            wait_s = self.patience_s or (_END_S if kind is None else 0.0)
            if wait_s:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(wait_s)
        finally:
            _kill(process)
            process.wait()
            if process.stdout:
                process.stdout.close()
            self._errors.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @override
    def tell(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    @override
    def answer(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while True:
            line, found, rest = self._waiting.partition(b"\n")
            if found:
                self._waiting = rest
                if line.startswith(b"{"):
                    return line.decode(errors="replace")
                continue
            self._waiting += self._piece(deadline, timeout_s)

    def _piece(self, deadline: float, timeout_s: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not selector.select(min(_LOOK_S, max(0.0, deadline - time.monotonic()))):
                self._refuse_endless()
                if time.monotonic() >= deadline:
                    _kill(self._process)
                    raise self._silent(timeout_s)
        self._refuse_endless()
        piece = os.read(self._process.stdout.fileno(), _PIECE_BYTES)
        if not piece:
            try:
                code: int | None = self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                code = None
            self._errors.seek(-min(MAX_QUOTED_BYTES, os.fstat(self._errors.fileno()).st_size), os.SEEK_END)
            raise self._ended(code, self._errors.read().decode(errors="replace"))
        return piece

    def _refuse_endless(self) -> None:
        if max(len(self._waiting), os.fstat(self._errors.fileno()).st_size) > MAX_OUTPUT_BYTES:
            _kill(self._process)
            raise MeasurementError(f"the program printed more than {MAX_OUTPUT_BYTES >> 20} MiB without an answer")

    def _silent(self, timeout_s: float) -> P4PerfError:
        """The error of a process that did not answer in time, and was killed."""
        return MeasurementError(f"the program did not answer within {timeout_s:.0f} s")

    def _ended(self, code: int | None, said: str) -> P4PerfError:
        """The error of a process that ended, or closed its output (code None), with its stderr."""
        lines = said.strip().splitlines()[-3:]
        words = f": {' / '.join(lines)}" if lines else ""
        return MeasurementError(f"the program {'closed its output' if code is None else ending(code)}{words}")
