"""P4 programs, through the compilers of p4c: v1model becomes JSON of bmv2, PSA and PNA become a specification of SWX.

A packet filter for ebpf_model, which p4c-ebpf takes, becomes a program for v1model first.

p4c hands file names and definitions to a preprocessor by way of a shell. So it only gets to see names that are harmless
there: the program is copied, folders of include files are reached by links.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Literal

from p4perf.errors import BuildError, DataError, Location, TargetUnavailableError, UsageError
from p4perf.programs.reading.ebpf import as_v1model
from p4perf.programs.reading.tree import read_text
from p4perf.results.files import real, temporary_folder

TIMEOUT_S = 300
"""Longest time that a compiler gets."""

MESSAGE_LINES = 20

MAX_MEMORY_BYTES, MAX_FILE_BYTES = 4 << 30, 1 << 30
"""Most memory that a compiler gets, and the largest file that it may write."""

MAX_MESSAGE_BYTES = 1 << 16
"""Of what a compiler says, this much is read."""

WHERE_P4C = (
    "install p4c: the P4 consortium's package p4lang-p4c for Debian and Ubuntu, the container image p4lang/p4c, "
    "or a build of the repository p4lang/p4c"
)
"""Where to get the compilers."""

_COMPILERS = ("p4c-bm2-ss", "p4c-dpdk", "p4c-ebpf")
_ELSEWHERE = "or compile elsewhere, and give the .json of p4c-bm2-ss or the .spec of p4c-dpdk"

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](?:\w+/)*(v1model|psa|pna|ebpf_model)\.p4[>"]', re.MULTILINE)
_ARCHITECTURES = ("v1model", "psa", "pna", "ebpf_model")
_DEFINE = re.compile(r"[A-Za-z_]\w*(=[\w.+-]*)?")
_PLAIN_NAME = re.compile(r"\w[\w.-]*")


def compile_p4(
    path: Path, arch: str | None, defines: Sequence[str], includes: Sequence[Path], std: str | None = None
) -> tuple[Literal["bmv2", "swx"], str, str]:
    """Compile a P4 program: to the JSON of bmv2 or a specification of SWX, its text, and the P4 as p4c prints it.

    The latter is P4_16 without includes of the user; empty if the compiler did not write it.

    Args:
        arch: ``v1model``, ``psa``, ``pna`` or ``ebpf_model``; None: that of its ``#include``.
        includes: folders with include files, after that of the program.
        std: ``p4-14`` or ``p4-16``, the version of the language; None: the latter.

    Raises:
        DataError: the file cannot be read, or it does not say for which architecture it is.
        UsageError: a definition or a folder of include files is none; no compiler is for that architecture.
        TargetUnavailableError: the compiler is not installed.
        BuildError: the compiler does not take the program.
    """
    text = read_text(path)
    if std not in (None, "p4-14", "p4-16"):
        raise UsageError(f"there is no version {std!r} of P4", hint="p4-14 or p4-16")
    chosen = _arch(text, arch or ("v1model" if std == "p4-14" else None), path)
    for define in defines:
        if not _DEFINE.fullmatch(define):
            raise UsageError(f"{define!r} is no definition", hint="write NAME or NAME=VALUE, in letters and digits")
    for folder in includes:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder of include files")
    bmv2 = chosen == "v1model"
    tool, suffix, options = ("p4c-bm2-ss", "json", []) if bmv2 else ("p4c-dpdk", "spec", ["--arch", chosen])
    if chosen == "ebpf_model":
        tool, suffix, options = "p4c-ebpf", "c", ["--target", "kernel"]
    if std is not None:
        options = [*options, "--std", std]
    found = shutil.which(tool)
    if found is None:
        raise TargetUnavailableError(
            f"{path} is P4 for {chosen}, and {tool} is not installed", hint=f"{WHERE_P4C}; {_ELSEWHERE}"
        )
    with temporary_folder() as place:
        name = path.name if _PLAIN_NAME.fullmatch(path.name) else "program.p4"
        shutil.copyfile(path, place / name)
        words = [found]
        for n, source in enumerate((real(path).parent, *includes)):
            (place / f"include{n}").symlink_to(real(source))
            words += ["-I", f"include{n}"]
        out = place / f"out.{suffix}"
        printed = place / "printed.p4"
        words += [*(f"-D{define}" for define in defines), *options, "--pp", printed.name, "-o", out.name, name]
        _run(words, place, path, tool)
        if not out.is_file():
            raise BuildError(f"{tool} wrote nothing for {path}")
        text = read_text(printed) if printed.is_file() else ""
        if chosen == "ebpf_model":
            switch = place / "filter_as_v1model.p4"
            switch.write_text(as_v1model(text, str(path)))
            return (*compile_p4(switch, "v1model", (), ())[:2], text)
        return "bmv2" if bmv2 else "swx", read_text(out), text


def _arch(text: str, arch: str | None, path: Path) -> str:
    if arch is not None:
        if arch not in _ARCHITECTURES:
            raise UsageError(
                f"there is no compiler here for architecture {arch!r}", hint=f"there are {', '.join(_ARCHITECTURES)}"
            )
        return arch
    found = set(_INCLUDE.findall(text))
    if not found and not any(map(shutil.which, _COMPILERS)):
        raise TargetUnavailableError(f"{path} is P4, and p4c is not installed", hint=f"{WHERE_P4C}; {_ELSEWHERE}")
    if len(found) != 1:
        raise DataError(
            "does not state its architecture: it includes none of v1model.p4, psa.p4, pna.p4, ebpf_model.p4"
            if not found
            else f"includes several architectures: {', '.join(sorted(found))}",
            location=Location(str(path)),
            hint=f"--arch states it: {', '.join(_ARCHITECTURES)}",
        )
    return str(found.pop())


def _run(words: Sequence[str], folder: Path, path: Path, tool: str) -> None:
    with tempfile.TemporaryFile() as said:
        try:
            code = compiled(words, folder, said, TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{tool} is not done with {path} after {TIMEOUT_S} s") from error
        message = beginning(said)
    if code != 0:
        lines = [line for line in message.splitlines() if line.strip()]
        first = next((line for line in lines if "error" in line.lower()), f"it ended with {code}")
        raise BuildError(f"{tool} does not take {path}: {first}", log="\n".join(lines[:MESSAGE_LINES]))


def compiled(
    words: Sequence[str], folder: Path, said: IO[bytes], timeout_s: float, running: set[int] | None = None
) -> int:
    """The exit code of a compiler, which is ended with all that it has started if it takes too long.

    Args:
        said: gets what it says.
        running: holds its process group while it runs, for another thread to end it.

    Raises:
        subprocess.TimeoutExpired: it is not done in that time.
    """
    running = set() if running is None else running
    process = subprocess.Popen(
        limited(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
    )
    running.add(process.pid)
    try:
        return process.wait(timeout=timeout_s)
    except BaseException:
        end_group(process.pid)
        process.wait()
        raise
    finally:
        running.discard(process.pid)


def end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


_LIMITED = 'ulimit -v "$0" 2>/dev/null; ulimit -f "$1" 2>/dev/null; shift; exec "$@"'
"""A shell command that runs another one with limits on memory [KiB] and on the size of files [blocks of 512 bytes]."""


def limited(words: Sequence[str]) -> tuple[str, ...]:
    """The command of a compiler with limits: a program from elsewhere may let it take all that there is."""
    return ("sh", "-c", _LIMITED, str(MAX_MEMORY_BYTES >> 10), str(MAX_FILE_BYTES >> 9), *words)


def beginning(said: IO[bytes]) -> str:
    """The beginning of what a compiler wrote into a file."""
    said.seek(0)
    return said.read(MAX_MESSAGE_BYTES).decode(errors="replace")
