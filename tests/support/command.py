"""Runs the p4perf command as a user would: a process of its own, with the fake targets among the plug-ins.

A process that has imported everything and done nothing else is forked for every call: that takes a tenth of the time of
a start from scratch. :func:`command` and :func:`environment` are for tests that need such a start.
"""

import base64
import importlib
import multiprocessing
import os
import pkgutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from support.documents import check_document

import p4perf.cli as p4perf_cli

DRAWN = Figure.savefig
BLANK_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
BLANK_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)

FAKES = Path(__file__).parent / "fake_plugin"

PRELOADED = [
    *(f"p4perf.cli.{module.name}" for module in pkgutil.iter_modules(p4perf_cli.__path__)),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.figure"),
    *("pandas", "pyarrow.parquet", "scipy.optimize", "scipy.special", "scipy.stats", "rich.console", "rich.table"),
    *("p4perf.evaluation.fitting.component", "p4perf.evaluation.plots", "p4perf.evaluation.load.queueing"),
    *("p4perf.evaluation.prediction.library", "p4perf.evaluation.prediction.programs"),
    *("p4perf.experiment.compare", "p4perf.experiment.conductor", "p4perf.experiment.evaluate"),
    "support.command",
    "support.preloaded",
]


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
    """Run the command and wait for its end; what it prints with ``--format json`` has to fit the schema.

    Raises:
        TimeoutError: it took too long, and was killed.
    """
    with tempfile.TemporaryDirectory(prefix="p4perf-test-") as folder:
        files = (Path(folder, "out"), Path(folder, "err"))
        child = forked(arguments, cwd or Path.cwd(), files, **env)
        child.join(timeout)
        if child.exitcode is None:
            child.kill()
            child.join()
            raise TimeoutError(f"p4perf {arguments} took more than {timeout} s: {files[1].read_text()}")
        out, err = (file.read_bytes().decode(errors="replace") if file.exists() else "" for file in files)
        if out.startswith("{") and "json" in arguments:
            check_document(out)
        return Result(child.exitcode, out, err)


def forked(arguments: Sequence[object], cwd: Path, files: tuple[Path, Path], **env: str) -> BaseProcess:
    """A running command, forked from the process that has everything loaded; stdout and stderr go to the files."""
    words = list(map(str, arguments))
    child = _context().Process(target=_child, args=(words, str(cwd), environment(**env), files))
    child.start()
    return child


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    # The server does not search where this process does, and leaves out in silence what it cannot find.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


def _child(
    arguments: list[str],
    where: str,
    variables: dict[str, str],
    files: tuple[Path, Path],
    program: str = "p4perf.cli",
) -> None:
    """In the forked process: become ``python -m p4perf`` (or another program of that module), and end as it does."""
    from p4perf import plugins

    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[:0] = [where, *(path for path in variables["PYTHONPATH"].split(os.pathsep) if path)]
    importlib.invalidate_caches()
    plugins._found.cache_clear()
    os.chdir(where)
    for number, name in ((0, os.devnull), (1, files[0]), (2, files[1])):
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["p4perf", *arguments]
    Figure.savefig = save_blank  # type: ignore[method-assign]
    if names := variables.get("P4PERF_TEST_STAND_INS"):
        from support import stand_ins

        stand_ins.install(names.split())
    if seconds := variables.get("P4PERF_TEST_P4C_S"):
        from p4perf.programs.reading import p4c

        p4c.TIMEOUT_S = float(seconds)  # type: ignore[assignment]
    importlib.import_module(program).main()


def save_blank(figure: Figure, buffer: Any, **options: Any) -> None:
    """Figures are blank, as drawing takes most of the time of a command; tests that look at them set the variable."""
    if os.environ.get("P4PERF_TEST_FIGURES"):
        DRAWN(figure, buffer, **options)
    else:
        buffer.write(BLANK_PNG if options["format"] == "png" else BLANK_SVG)
