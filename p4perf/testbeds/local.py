"""Testbeds local and netns: this machine, without or with network namespaces."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Self

from typing_extensions import override

from p4perf.errors import BuildError, StorageError, TestbedError
from p4perf.results.files import held, sync_directory, write_atomically, write_text_atomically
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem, placed
from p4perf.testbeds.base import SUM, Builder, Conversation, Testbed
from p4perf.testbeds.processes import LocalConversation, run_command


def cache_folder() -> Path:
    """Where built programs are kept: ``$XDG_CACHE_HOME/p4perf``, by default ``~/.cache/p4perf``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "p4perf"


def state_folder() -> Path:
    """What p4perf notes of this machine: ``$XDG_STATE_HOME/p4perf``, by default ``~/.local/state/p4perf``."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "p4perf"


def probe_text() -> str:
    return (files("p4perf.testbeds") / "probe.sh").read_text(encoding="utf-8")


def facts_of(output: str) -> NodeFacts:
    pairs = (line.partition("=") for line in output.splitlines())
    return NodeFacts({key: value for key, equals, value in pairs if equals})


class LocalTestbed(Testbed):
    """Runs everything on this machine, below one cache folder and the run directory."""

    name = "local"
    summary = "this machine"

    def __init__(self, cache: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._cache = cache or cache_folder()
        self._prefix = ("env", *(f"{name}={value}" for name, value in environment.items())) if environment else ()
        self._facts: dict[str, str] = {}
        self._builder = _LocalBuilder(self._cache, self._prefix, lambda text: self.note(text))

    def with_environment(self, environment: Mapping[str, str]) -> Self:
        """The same testbed with variables of the environment for all its commands, and builds of its own."""
        name = hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:16]
        return type(self)(self._cache / "environments" / name, environment)

    @override
    def problems(self) -> tuple[Problem, ...]:
        found = []
        for program, what, package in (("sh", "POSIX shell (sh)", "one"), ("setpriv", "setpriv", "util-linux")):
            if shutil.which(program) is None:
                found.append(Problem(f"no {what} on the PATH", f"install {package}"))
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            found.append(Problem(f"cannot create {self._cache}: {error.strerror}", "set XDG_CACHE_HOME"))
        return tuple(found)

    @override
    def facts(self) -> NodeFacts:
        # Which tools there are, and their versions, is asked once: that takes most of the time.
        asked = ("now",) if self._facts else ()
        result = run_command((*self._prefix, "sh", "-s", *asked), 30.0, Path("/"), stdin=probe_text())
        if result.returncode != 0 or result.timed_out:
            why = "it hangs" if result.timed_out else result.stderr.strip() or "no output"
            raise TestbedError(f"the probe of this machine failed: {why}")
        self._facts = {**self._facts, **facts_of(result.stdout).values}
        return NodeFacts(self._facts)

    @override
    def build(self, plan: BuildPlan) -> Path:
        return self._builder.build(plan)

    @override
    def run(self, job: Job, folder: Path) -> JobResult:
        return run_command(self._prepared(job, folder), job.timeout_s, folder)

    @override
    def converse(self, job: Job, folder: Path) -> contextlib.AbstractContextManager[Conversation]:
        return LocalConversation(self._prepared(job, folder), folder)

    def _prepared(self, job: Job, folder: Path) -> tuple[str, ...]:
        """Build what the job needs and write its files; the command."""
        places = {"folder": str(folder)}
        if job.build is not None:
            places["build"] = str(self.build(job.build))
        write_files(job, folder)
        return (*self._prefix, *placed(job.argv, places))


def write_files(job: Job, folder: Path) -> None:
    """Put the files of a job into a folder of this machine, those that are not there already."""
    for name, data in job.files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, (data,))


class _LocalBuilder(Builder):
    def __init__(self, cache: Path, prefix: tuple[str, ...], note: Callable[[str], object]) -> None:
        self._cache, self._builds, self._prefix, self._note = cache, cache / "builds", prefix, note
        self._held: dict[Path, int] = {}
        self._known: dict[str, tuple[int, int, int]] = {}

    @override
    def finished(self, plan: BuildPlan) -> Path | None:
        final = self._builds / plan.key
        try:
            status = (final / plan.product).stat()
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._known.get(plan.key) != seen:
                if (final / SUM).read_text(encoding="ascii").strip() != _checksum(final / plan.product):
                    return None
                self._known[plan.key] = seen
        except (OSError, ValueError):
            return None
        return final

    @override
    def begin(self, plan: BuildPlan) -> Path:
        work = self._builds / f".{plan.key}{_UNFINISHED}"
        with _building(self._builds):
            self._builds.mkdir(parents=True, exist_ok=True)
            _remove_stale(self._builds)
            self._held[work] = self._hold(work)
        try:
            with _building(work):
                _empty(work)
                for name, text in plan.files.items():
                    (work / name).write_text(text, encoding="utf-8")
        except BaseException:
            self.discard(work)
            raise
        return work

    def _hold(self, work: Path) -> int:
        """The locked handle of a folder to build in, after the end of whoever builds the same there."""
        while True:
            with contextlib.suppress(FileExistsError):
                work.mkdir()
            with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as failed:
                handle = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                failed.callback(os.close, handle)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self._note(f"another process builds the same program in {work}: waiting for it")
                    fcntl.flock(handle, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(handle), work.stat()):  # else it was finished or dropped meanwhile
                    failed.pop_all()
                    return handle

    @override
    def step(self, command: tuple[str, ...], work: Path, limit_s: float) -> JobResult:
        return run_command((*self._prefix, *command), limit_s, work, variables={"TMPDIR": str(work)})

    @override
    def finish(self, plan: BuildPlan, work: Path, log: str) -> Path:
        final = self._builds / plan.key
        with _building(work):
            (work / "build.log").write_text(log, encoding="utf-8")
            if not (work / plan.product).exists():
                raise BuildError(f"the build made no {plan.product}")
            write_text_atomically(work / SUM, f"{_checksum(work / plan.product)}\n")
            try:
                work.rename(final)
            except OSError:
                # Another process may have finished the same build meanwhile; then ours is not needed.
                if self.finished(plan) is None:
                    shutil.rmtree(final)  # it is damaged
                    work.rename(final)
            sync_directory(self._builds)
        return final

    @override
    def keep(self, work: Path, log: str) -> Path:
        kept = self._cache / "failed-build"
        with _building(work):
            (work / "build.log").write_text(log, encoding="utf-8")
            shutil.rmtree(kept, ignore_errors=True)
            try:
                work.rename(kept)
            except OSError as error:
                # Another build may have failed meanwhile; then that is the last one.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        return kept

    @override
    def discard(self, work: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)
        os.close(self._held.pop(work))


def _checksum(product: Path) -> str:
    """The checksum of a product, which is on the disk then."""
    with product.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _building(work: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot build in {work}: {error.strerror}", hint="set XDG_CACHE_HOME") from error


_UNFINISHED = ".unfinished"
"""End of the names of folders in which something is built."""


def _remove_stale(builds: Path) -> None:
    """Remove the folders of builds that were killed: those that nobody holds."""
    for left in builds.glob(f".*{_UNFINISHED}"):
        with contextlib.suppress(OSError), held(left):
            shutil.rmtree(left, ignore_errors=True)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


LINK = "af-packet"
"""The link of load generators: sockets of the kernel at both ends of a veth pair, each in a namespace of its own."""

_UNSHARE = ("unshare", "--net", "--")


class NetnsTestbed(LocalTestbed):
    """Every job has a network namespace of its own, in which nothing of this machine's network is seen.

    Where a load generator is needed, it and the device are in two namespaces with a veth pair between them, unless the
    spec names another link.
    """

    name = "netns"
    summary = "this machine, every job in a network namespace of its own; load goes through a veth pair"

    @override
    def problems(self) -> tuple[Problem, ...]:
        found = list(super().problems())
        for tool, package in (("unshare", "util-linux"), ("ip", "iproute2")):
            if shutil.which(tool) is None:
                found.append(Problem(f"no {tool} on the PATH", f"install the package {package}"))
        if not found and run_command((*_UNSHARE, "true"), 10.0, Path("/")).returncode != 0:
            found.append(Problem("no right to make network namespaces", "run as root or grant CAP_SYS_ADMIN"))
        return tuple(found)

    @override
    def facts(self) -> NodeFacts:
        return NodeFacts({**super().facts().values, "link": LINK})

    @override
    def _prepared(self, job: Job, folder: Path) -> tuple[str, ...]:
        command = super()._prepared(job, folder)
        if shutil.which(command[0]) is None:  # unshare would be there, and fail
            raise TestbedError(f"cannot start {command[0]}: No such file or directory")
        return (*_UNSHARE, *command)
