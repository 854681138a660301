"""A reader of the pages: types what is printed there into bash, in one folder, with our commands on the PATH.

``p4perf`` and ``dask`` are small clients there. The tests fork the real command line for each of their calls, as
:mod:`support.command` does; stand-ins (:mod:`support.stand_ins`) are registered in that process, if they are wanted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.command import _child, _context, environment

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
LIMIT_S = 240.0

CLIENT = """\
import json, os, socket, sys
asked = {"command": COMMAND, "arguments": sys.argv[1:], "where": os.getcwd(), "variables": dict(os.environ)}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["P4PERF_TEST_READER"])
    connection.sendall(json.dumps(asked).encode() + b"\\n")
    done = json.loads(connection.makefile().readline())
sys.stdout.write(done["out"])
sys.stderr.write(done["err"])
sys.exit(done["code"])
"""


@dataclass(frozen=True)
class Typed:
    """What became of a script."""

    code: int
    said: str


@dataclass
class Reader:
    """Types scripts.

    Args:
        folder: where; commands and sockets are beside it.
        variables: of the environment, besides those of the tests.
        dask: what Dask starts with besides what is typed: so many words for ``scheduler`` and ``worker``.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    dask: dict[str, list[str]] = field(default_factory=dict)
    typed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tools = self.folder.parent / f"{self.folder.name}-tools"
        self.tools.mkdir()
        self._background: dict[str, Any] = {}
        for name in ("p4perf", "dask"):
            self.tool(name, f"#!{sys.executable} -IS\n" + CLIENT.replace("COMMAND", repr(name)))
        self.tool("python3", f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} "$@"\n')

    def tool(self, name: str, text: str) -> Path:
        """Put a command on the PATH of the reader."""
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def type(self, script: str, stand_ins: str = "", **variables: str) -> Typed:
        """Let bash run a script until something in it fails; what it printed, stderr included.

        Args:
            script: what is typed.
            stand_ins: targets whose stand-ins are measured, with blanks between.
            variables: of the environment.
        """
        self.typed.append(script)
        path = os.pathsep.join([str(self.tools), os.environ["PATH"]])
        more = {"P4PERF_TEST_STAND_INS": stand_ins, "P4PERF_TEST_READER": str(self._socket), "PATH": path}
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env=environment(**{**self.variables, **more, **variables}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
        return Typed(done.returncode, done.stdout)

    @property
    def _socket(self) -> Path:
        return self.tools / "socket"

    @contextlib.contextmanager
    def listening(self) -> Iterator[Reader]:
        """Serve the commands on the PATH, for the body."""
        reader = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                done = reader._answer(json.loads(self.rfile.readline()))
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(json.dumps(done).encode() + b"\n")

        with socketserver.ThreadingUnixStreamServer(str(self._socket), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.25,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                for name in list(self._background):
                    self._end(name)
                server.shutdown()
                thread.join()

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["command"] == "dask":
            return self._dask(asked)
        process, files = self._start(asked, asked["arguments"], "p4perf.cli")
        process.join(LIMIT_S)
        if process.exitcode is None:
            process.kill()
            process.join()
        return _ended(process, files)

    def _start(self, asked: dict[str, Any], arguments: list[str], program: str) -> tuple[Any, tuple[Path, Path]]:
        number = len(list(self.tools.glob("*.out")))
        files = (self.tools / f"{number}.out", self.tools / f"{number}.err")
        for file in files:
            file.touch()
        given = (arguments, asked["where"], asked["variables"], files, program)
        process = _context().Process(target=_child, args=given)
        process.start()
        return process, files

    def _dask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Start a scheduler or a worker that goes on in the background, as in a terminal of its own."""
        kind, *arguments = asked["arguments"]
        words = dict(itertools.pairwise(arguments))
        name = words["--name"].partition("=")[0] if kind == "worker" else kind
        self._end(name)  # a reader ends the worker of that name before another one
        process, files = self._start(asked, [*arguments, *self.dask.get(kind, [])], f"distributed.cli.dask_{kind}")
        self._background[name] = process
        sign = "Scheduler at" if kind == "scheduler" else "Registered to"
        deadline = time.monotonic() + 60
        while sign not in files[1].read_text() and process.exitcode is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if sign not in files[1].read_text():
            return {"code": 1, "out": "", "err": f"dask {kind} does not start:\n{files[1].read_text()}"}
        return {"code": 0, "out": "", "err": ""}

    def _end(self, name: str) -> None:
        process = self._background.pop(name, None)
        if process is not None:
            process.kill()
            process.join()

    @staticmethod
    def completed(script: str) -> str:
        """The script with the names of runs in it completed as a reader does it: the newest one of that name.

        ``runs/NAME--...`` is completed, and ``runs/NAME--20261121T101500``, whose date is another one here.
        """
        return re.sub(r"\b(runs/[\w-]+)--(?:\.\.\.|\d{8}T\d{6})", r'"$(ls -dt \1--* | head -n 1)"', script)


def _ended(process: Any, files: tuple[Path, Path]) -> dict[str, Any]:
    out, err = (f.read_bytes().decode(errors="replace") if f.exists() else "" for f in files)
    return {"code": process.exitcode if process.exitcode >= 0 else 1, "out": out, "err": err}


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
