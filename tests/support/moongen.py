"""MoonGen as tests have it: the test double under LuaJIT, behind a command that is called as the real one."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

DOUBLE = Path(__file__).parent / "moongen_fake" / "main.lua"


def why_not() -> str | None:
    """Why it cannot be run here; None if it can."""
    return None if shutil.which("luajit") else "luajit is not installed"


def moongen(path: Path, capacity: Path | None = None, **options: object) -> Path:
    """An executable that is called as MoonGen is.

    Args:
        path: where it goes.
        capacity: a file with the packets per second that a device between the links forwards.
        options: of the double, see its README; ``link_mbit=1`` becomes ``--fake-link-mbit=1``.
    """
    words = [f"--fake-{key.replace('_', '-')}{'' if value is True else f'={value}'}" for key, value in options.items()]
    lines = ["#!/bin/sh", f'set -- {shlex.join(words)} "$@"']
    if capacity is not None:
        lines.append(f'set -- --fake-capacity-pps="$(cat {shlex.quote(str(capacity))})" "$@"')
    lines.append(f'exec luajit {shlex.quote(str(DOUBLE))} "$@"')
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path
