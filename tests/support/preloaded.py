"""Imported once by the process that is forked for every command, so that the command line is built here only."""

import typer.main

from p4perf.cli import loaded

COMMAND = typer.main.get_command(loaded())
typer.main.get_command = lambda _app: COMMAND  # type: ignore[assignment]
