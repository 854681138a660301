"""Testbed local: this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from importlib.resources import files
from pathlib import Path

from p4perf.errors import BuildError, StorageError, TestbedError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem
from p4perf.testbeds.base import Conversation, Testbed
from p4perf.testbeds.frequency import fixed_frequency
from p4perf.testbeds.processes import LocalConversation, run_command

BUILD_TIMEOUT_S = 300.0


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
        result = run_command(("sh", "-s"), 30.0, Path("/"), stdin=probe)
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
        return run_command(self._prepared(job, folder), job.timeout_s, folder)

    def converse(self, job: Job, folder: Path) -> contextlib.AbstractContextManager[Conversation]:
        """A child process with pipes."""
        return LocalConversation(self._prepared(job, folder), folder)

    def _prepared(self, job: Job, folder: Path) -> tuple[str, ...]:
        """Build what the job needs and write its files; the command."""
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
        return tuple(argv)


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
    result = run_command(command, BUILD_TIMEOUT_S, work)
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
