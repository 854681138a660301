"""THE DOOR: the ``p4perf`` command. stdout is data, stderr is diagnostics."""

import os
import sys
from importlib import import_module
from typing import NoReturn

import typer

from p4perf.cli import app

# The matrices of p4perf are small: threads of BLAS take more time to wait for one another than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def loaded(command: str = "") -> typer.Typer:
    """The command line with the modules of one command, or of all if there is none of that name."""
    known = {name: modules for group in app.COMMANDS.values() for name, modules in group.items()}
    for module in known.get(command, " ".join(known.values())).split():
        import_module(f"{__name__}.{module}")
    return app.app


def main() -> NoReturn:
    """Run the command line and exit. See :class:`~p4perf.errors.ExitCode` for the exit codes."""
    loaded(*sys.argv[1:2])
    sys.exit(app.run())
