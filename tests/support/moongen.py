"""MoonGen as tests have it: the test double under LuaJIT, behind a command that is called as the real one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.formats.moongen import COMPLETION_MARKER, without_colours
from p4perf.generators.base import render
from p4perf.generators.moongen import MoonGen
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload

DOUBLE = Path(__file__).parent / "moongen_fake" / "main.lua"
REAL_LUA = Path(__file__).parent / "libmoon" / "run.lua"
START_UP = re.compile(r"\[INFO\]  (Initializing DPDK|Found \d+ usable devices)|   Device \d+: ")
ETHER_TYPE_PTP = bytes.fromhex("88f7")


def why_not() -> str | None:
    """Why it cannot be run here; None if it can."""
    return None if shutil.which("luajit") else "luajit is not installed"


def libmoon() -> Path | None:
    """The checkout of libmoon that P4PERF_LIBMOON names, if it does."""
    named = os.environ.get("P4PERF_LIBMOON")
    return Path(named).resolve() if named else None


def why_no_libmoon() -> str | None:
    """Why scripts cannot be run with the real Lua modules of libmoon here; None if they can."""
    folder = libmoon()
    if folder is None:
        return "P4PERF_LIBMOON names no checkout of libmoon"
    if not (folder / "lua" / "libmoon.lua").is_file():
        return f"P4PERF_LIBMOON: there is no lua/libmoon.lua in {folder}"
    return why_not()


def moongen_lua() -> Path | None:
    """The checkout of MoonGen around that of libmoon, if there is one."""
    folder = libmoon()
    return folder.parent if folder and (folder.parent / "lua" / "moongen-main.lua").is_file() else None


def real_command() -> tuple[object, ...]:
    """What runs scripts with the real Lua modules; it takes the options of the double.

    Its configuration of DPDK is ``dpdk-conf.lua`` in the folder where it runs.
    """
    around = moongen_lua()
    return ("luajit", REAL_LUA, f"--fake-libmoon={libmoon()}", *([f"--fake-moongen={around}"] if around else []))


def moongen(path: Path, capacity: Path | None = None, **options: object) -> Path:
    """An executable that is called as MoonGen is.

    Args:
        path: where it goes.
        capacity: a file with the packets per second that a device between the links forwards.
        options: of the double, see its README; ``link_mbit=1`` becomes ``--fake-link-mbit=1``.
    """
    lines = ["#!/bin/sh", f'set -- {shlex.join(_words(options))} "$@"']
    if capacity is not None:
        lines.append(f'set -- --fake-capacity-pps="$(cat {shlex.quote(str(capacity))})" "$@"')
    lines.append(f'exec luajit {shlex.quote(str(DOUBLE))} "$@"')
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


@dataclass
class ScriptRun:
    """What one run of a script left behind. Frames are of device and queue, in the order in which they were sent."""

    exit_code: int
    stdout: str
    stderr: str
    frames: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the script came to its end, and nothing failed on the way."""
        said = self.stdout.splitlines()[-1:] == [COMPLETION_MARKER]
        return said and "FATAL" not in self.stdout and (self.exit_code, self.stderr) == (0, "")

    def load(self, queue: int | None = None) -> list[bytes]:
        """Frames that are no probes, of all queues or of one."""
        return [d for _, q, d in self.frames if d[12:14] != ETHER_TYPE_PTP and queue in (None, q)]

    def probes(self) -> list[bytes]:
        """Frames that are probes."""
        return [data for _, _, data in self.frames if data[12:14] == ETHER_TYPE_PTP]

    def said(self, what: str) -> dict[str, str]:
        """The values in the line ``P4PERF what key=value ...``."""
        found = re.search(rf"^P4PERF {what} (.*)$", self.stdout, re.M)
        assert found, self.stdout
        return dict(pair.split("=") for pair in found[1].split())


def scripts(workload: Workload, traffic: TrafficPlan) -> dict[str, str]:
    """The texts of both scripts, by file name."""
    return {f.path: f.text() for f in MoonGen().generate(workload, traffic)}


def run_script(
    text: str,
    words: Iterable[object],
    folder: Path,
    command: tuple[object, ...] = ("luajit", DOUBLE),
    **options: object,
) -> ScriptRun:
    """Run a script under the double, or under another command that takes its options.

    Args:
        text: the script.
        words: its arguments.
        folder: where it runs and leaves its files.
        command: the interpreter and what it runs.
        options: of the double, as for :func:`moongen`.
    """
    (folder / "script.lua").write_text(text)
    frames = folder / "frames"
    frames.unlink(missing_ok=True)
    argv = [*map(str, command), *_words(options | {"dump": "frames"}), "script.lua", *map(str, words)]
    done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=120, check=False)
    # A stack trace of MoonGen shows strings as they are, frames among them.
    result = ScriptRun(done.returncode, *(out.decode(errors="replace") for out in (done.stdout, done.stderr)))
    for line in frames.read_text().splitlines() if frames.exists() else []:
        device, queue, digits = line.split()
        result.frames.append((int(device), int(queue), bytes.fromhex(digits)))
    return result


class Both:
    """Runs a script with the real Lua modules and under the double, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("real", "double"):
            (folder / name).mkdir()
        text = render("lua/dpdk-conf.lua.j2", cores=range(17), interfaces=["0000:04:00.0", "0000:04:00.1"], version="1")
        (folder / "real" / "dpdk-conf.lua").write_text(text)

    def __call__(self, text: str, *words: object, **options: object) -> tuple[ScriptRun, ScriptRun]:
        """The runs: real, then double."""
        options = {"link_mbit": 1, **options}
        return (
            run_script(text, words, self.folder / "real", real_command(), **options),
            run_script(text, words, self.folder / "double", **options),
        )

    def texts(self, name: str) -> list[str]:
        """A file that both left: of the real run, then of the double's."""
        return [(self.folder / side / name).read_text() for side in ("real", "double")]


def said(run: ScriptRun) -> list[str]:
    """What a run printed, without colours and without what DPDK and its devices say before."""
    lines = [line for line in without_colours(run.stdout).splitlines() if not START_UP.match(line)]
    ups = sorted(line for line in lines if " is up: " in line)
    return [line for line in lines if line not in ups] + ups


def _words(options: dict[str, object]) -> list[str]:
    return [f"--fake-{key.replace('_', '-')}{'' if value is True else f'={value}'}" for key, value in options.items()]
