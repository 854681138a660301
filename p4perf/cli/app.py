"""The application object and the door: every failure becomes one clear message and the documented exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from p4perf.errors import ExitCode, P4PerfError
from p4perf.version import __version__

app = typer.Typer(
    name="p4perf",
    help="What will this data-plane program cost on that target? Generate, measure, model.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        sys.stdout.write(f"p4perf {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line and exit. See :class:`~p4perf.errors.ExitCode` for the exit codes."""
    sys.exit(_run())


_CommandLineError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)
"""What the parser of the command line raises; where it lives differs between versions of typer."""


def _run() -> int:
    try:
        result = int(app(_current(sys.argv[1:]), prog_name="p4perf", standalone_mode=False) or 0)
        sys.stdout.flush()
    except P4PerfError as error:
        return _fail(str(error), error.exit_code)
    except _CommandLineError as error:
        return _misuse(error)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        return _closed_pipe()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except Exception as error:
        if os.environ.get("P4PERF_TRACEBACK"):
            raise
        text = f"{type(error).__name__}: {error}"
        return _fail(f"this is a defect of p4perf: {text}\nhint: P4PERF_TRACEBACK=1 shows where", ExitCode.INTERNAL)
    if result == ExitCode.INTERRUPTED:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    return result


_FORMER_OPTIONS = {"--parts": "--segments", "--max-parts": "--max-segments"}


def _current(arguments: list[str]) -> list[str]:
    """Arguments with the former options of fit and fit-many renamed; says so on stderr."""
    found = list(arguments)
    if found[:1] in (["fit"], ["fit-many"]):
        for at, argument in enumerate(found):
            name, equals, value = argument.partition("=")
            if name in _FORMER_OPTIONS:
                found[at] = f"{_FORMER_OPTIONS[name]}{equals}{value}"
                sys.stderr.write(f"{name} is deprecated: use {_FORMER_OPTIONS[name]}\n")
    return found


def _misuse(error: Any) -> int:
    """The command line is wrong; without any arguments, the help is the answer."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return ExitCode.USAGE
    path = error.ctx.command_path if getattr(error, "ctx", None) else "p4perf"
    message = " ".join(error.format_message().split()).rstrip(".")
    return _fail(f"{message[:1].lower()}{message[1:]}\nhint: {path} --help lists what there is", ExitCode.USAGE)


def _closed_pipe() -> int:
    """The reader of stdout closed it; keep the interpreter from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK


def _fail(text: str, code: ExitCode) -> int:
    sys.stderr.write(f"error: {text}\n")
    return code
