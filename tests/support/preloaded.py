"""Imported once by the process that is forked for every command, so that the command line is built here only."""

import typer.main

from p4perf.cli.app import app

COMMAND = typer.main.get_command(app)
typer.main.get_command = lambda _app: COMMAND  # type: ignore[assignment]
