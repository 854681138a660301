"""Whether compilers of P4 take generated programs: each distinct text once, on all processors."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from p4perf.errors import TargetUnavailableError, UsageError

if TYPE_CHECKING:
    from p4perf.cli.generation import Outcome, Written

TIMEOUT_S = 600
"""Longest time that a compiler gets for one program."""

MAX_MEMORY_BYTES = 4 << 30
"""Most memory that a compiler gets."""

MESSAGE_LINES = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one tool says of one program: ``ok``, ``refused``, ``crashed`` or ``timeout``, and its message."""

    written: Written
    copies: int
    tool: str
    verdict: str
    message: str

    @property
    def accepted(self) -> bool:
        """Whether the tool took the program."""
        return self.verdict == "ok"


@dataclass(frozen=True, slots=True)
class Tools:
    """The commands that are there and those that are not, by generator."""

    found: Mapping[str, tuple[tuple[str, ...], ...]]
    missing: Mapping[str, tuple[str, ...]]


def find_tools(generators: Sequence[str]) -> Tools:
    """Look for the compilers of P4 dialects on the path.

    Raises:
        UsageError: none of the generators writes P4.
        TargetUnavailableError: none of their compilers is there.
    """
    from p4perf.plugins import load_plugin

    found, missing = {}, {}
    for name in generators:
        commands: tuple[tuple[str, ...], ...] = getattr(load_plugin("p4perf.generators", name), "compilers", ())
        if commands:
            found[name] = tuple(c for c in commands if shutil.which(c[0]))
            missing[name] = tuple(c[0] for c in commands if not shutil.which(c[0]))
    if not found:
        raise UsageError("--verify compiles P4 programs, and no generator of P4 was chosen")
    if not any(found.values()):
        names = ", ".join(dict.fromkeys(tool for tools in missing.values() for tool in tools))
        raise TargetUnavailableError(
            f"no compiler of P4 is here to verify with: {names} are not on the path", hint="install p4c, or set PATH"
        )
    return Tools(found, missing)


def verify(outcome: Outcome, tools: Tools, finished: Callable[[float], None]) -> Iterator[Verdict]:
    """Compile every distinct program with every tool that takes it, in the order in which they were written.

    ``finished`` is told which share is done, from 0 to 1.
    """
    jobs = [
        (written, outcome.copies[key], command)
        for key, written in outcome.texts.items()
        for command in tools.found.get(written.generator, ())
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done, verdict in enumerate(pool.map(lambda job: _compile(*job), jobs), start=1):
            finished(done / len(jobs))
            yield verdict


def _compile(written: Written, copies: int, command: tuple[str, ...]) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="p4perf-") as folder:
        source = Path(folder) / written.path.name
        shutil.copyfile(written.path, source)
        places = {"source": source.name, "output": source.stem}
        words = [word.format(**places) for word in command]
        process = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        _limit_memory(process.pid)
        try:
            message, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Verdict(written, copies, command[0], "timeout", f"not done after {TIMEOUT_S} s")
        except BaseException:
            process.kill()
            raise
    lines = [line for line in message.splitlines() if line.strip()][:MESSAGE_LINES]
    code = process.returncode
    verdict = "ok" if code == 0 else "refused" if code > 0 else "crashed"
    return Verdict(
        written, copies, command[0], verdict, "\n".join(lines) or (f"ended by signal {-code}" if code < 0 else "")
    )


def _limit_memory(pid: int) -> None:
    try:
        resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    except (OSError, ValueError):  # It has ended already, or its limit is lower.
        return
