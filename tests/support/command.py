"""Runs the p4perf command as a user would: a process of its own, with the fake targets among the plug-ins."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FAKES = Path(__file__).parent / "fake_plugin"


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """The environment with the fake targets, colourless and with defects shown."""
    path = os.pathsep.join([str(FAKES), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "200", **more}


def command(*arguments: object) -> list[str]:
    """The argument vector of one call."""
    return [sys.executable, "-m", "p4perf", *map(str, arguments)]


def p4perf(*arguments: object, cwd: Path | None = None, timeout: float = 120, **env: str) -> Result:
    """Run the command and wait for its end."""
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
        env=environment(**env),
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)
