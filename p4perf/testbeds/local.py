"""Testbed local: this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import FrameType

from p4perf.errors import BuildError, StorageError, TestbedError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.frequency import fixed_frequency

BUILD_TIMEOUT_S = 300.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def cache_folder() -> Path:
    """Where built programs are kept: ``$XDG_CACHE_HOME/p4perf``, by default ``~/.cache/p4perf``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "p4perf"


class LocalTestbed(Testbed):
    """Runs everything on this machine, below one cache folder and the run directory."""

    name = "local"
    summary = "this machine"

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache or cache_folder()

    def problems(self) -> tuple[Problem, ...]:
        """A shell and a writable cache folder are all it needs."""
        found = []
        if shutil.which("sh") is None:
            found.append(Problem("no POSIX shell (sh) on the PATH", "install one"))
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            found.append(Problem(f"cannot create {self._cache}: {error.strerror}", "set XDG_CACHE_HOME"))
        return tuple(found)

    def facts(self) -> NodeFacts:
        """What the probe script prints."""
        probe = (files("p4perf.testbeds") / "probe.sh").read_text(encoding="utf-8")
        result = _run(("sh", "-s"), 30.0, Path("/"), stdin=probe)
        if result.returncode != 0 or result.timed_out:
            raise TestbedError(f"the probe of this machine failed: {result.stderr.strip() or 'no output'}")
        pairs = (line.partition("=") for line in result.stdout.splitlines())
        return NodeFacts({key: value for key, equals, value in pairs if equals})

    def build(self, plan: BuildPlan) -> Path:
        """Build in a temporary folder beside the final one, then rename."""
        final = self._cache / "builds" / plan.key
        if (final / plan.product).exists():
            return final
        places = {name: str(self.build(part)) for name, part in plan.parts.items()}
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            _remove_stale(final.parent)
            work = Path(tempfile.mkdtemp(prefix=f".{plan.key}.", dir=final.parent))
        except OSError as error:
            raise StorageError(
                f"cannot write to {final.parent}: {error.strerror}", hint="set XDG_CACHE_HOME"
            ) from error
        try:
            for name, text in plan.files.items():
                (work / name).write_text(text, encoding="utf-8")
            log = "".join(_build_step(command, work, self._cache) for command in plan.commands_with(places))
            (work / "build.log").write_text(log, encoding="utf-8")
            if not (work / plan.product).exists():
                raise BuildError(f"the build made no {plan.product}")
            # Another process may have finished the same build meanwhile; then ours is not needed.
            with contextlib.suppress(FileExistsError):
                work.rename(final)
        except OSError as error:
            if not (final / plan.product).exists():
                raise StorageError(f"cannot build in {work}: {error.strerror}", hint="set XDG_CACHE_HOME") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return final

    def at_frequency(self, frequency_ghz: float) -> contextlib.AbstractContextManager[None]:
        """Through cpufreq, on all cores."""
        return fixed_frequency(frequency_ghz)

    def run(self, job: Job, folder: Path) -> JobResult:
        """Run the job with ``folder`` as its working directory."""
        places = {"{folder}": str(folder)}
        if job.build is not None:
            places["{build}"] = str(self.build(job.build))
        for name, data in job.files.items():
            path = folder / name
            if not path.exists() or path.read_bytes() != data:
                _write(path, data)
        argv = []
        for argument in job.argv:
            for placeholder, place in places.items():
                argument = argument.replace(placeholder, place)
            argv.append(argument)
        return _run(tuple(argv), job.timeout_s, folder)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _build_step(command: tuple[str, ...], work: Path, cache: Path) -> str:
    """Run one build command; its output. The sources and the log of a failed build are kept for the user to read."""
    result = _run(command, BUILD_TIMEOUT_S, work)
    log = f"$ {' '.join(command)}\n{result.stdout}{result.stderr}"
    if result.returncode == 0 and not result.timed_out:
        return log
    kept = cache / "failed-build"
    shutil.rmtree(kept, ignore_errors=True)
    (work / "build.log").write_text(log, encoding="utf-8")
    shutil.copytree(work, kept, dirs_exist_ok=True)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    first = next(
        (line for line in lines if "error" in line or "not found" in line), lines[0] if lines else "no message"
    )
    what = "took too long" if result.timed_out else "failed"
    raise BuildError(f"the build {what}: {first.strip()}", log=log, hint=f"sources and log are in {kept}")


def _remove_stale(builds: Path) -> None:
    """Remove the working folders of builds that were killed: those older than any build may take."""
    for left in builds.glob(".*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > 2 * BUILD_TIMEOUT_S:
                shutil.rmtree(left, ignore_errors=True)


def _die_with_parent() -> None:
    """In the child, before exec: be killed when the parent dies, however it dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _run(argv: tuple[str, ...], timeout_s: float, cwd: Path, stdin: str | None = None) -> JobResult:
    """Run a command in its own process group (an interrupt from the terminal does not reach it)."""
    begun = time.monotonic()
    process = _start(argv, cwd, subprocess.PIPE if stdin is not None else subprocess.DEVNULL)
    timed_out = False
    try:
        out, err = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        _kill(process)
        out, err = process.communicate()
    except BaseException:
        _kill(process)
        process.wait()
        raise
    return JobResult(process.returncode, out, err, time.monotonic() - begun, timed_out)


def _start(argv: tuple[str, ...], cwd: Path, stdin: int) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] | None = None
    try:
        with _interrupts_wait():
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                process_group=0,
                preexec_fn=_die_with_parent,
            )
    except OSError as error:
        raise TestbedError(f"cannot start {argv[0]}: {error.strerror}") from error
    except KeyboardInterrupt:
        if process is not None:
            _kill(process)
            process.wait()
        raise
    return process


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """An interrupt is kept until the end of the body: raised inside a fork, Python would print and forget it."""
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


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
