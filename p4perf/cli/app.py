"""The door: the application, what its commands share of options and output, and how failures end.

stdout is data, stderr is diagnostics.
"""

from __future__ import annotations

import difflib
import errno
import json
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option
from typer.core import TyperGroup
from typing_extensions import override

from p4perf.errors import ExitCode, P4PerfError, UsageError
from p4perf.formats.plain import shown
from p4perf.results import Manifest, RunIdentity, find_run
from p4perf.results.files import columns_of, csv_text
from p4perf.version import __version__

if TYPE_CHECKING:
    from p4perf.experiment.recorder import SweepOutcome
    from p4perf.records import Document


COMMANDS = {
    "Measure": {"run": "measure", "measure": "own", "resume": "measure", "learn": "predict"},
    "Model": {"fit": "derive", "predict": "predict", "compare": "compare", "gate": "gate"},
    "Look": {"list": "inspect", "show": "inspect", "open": "exchange", "report": "exchange", "status": "inspect"},
    "Share": {"import": "exchange", "export": "exchange", "pack": "exchange", "reproduce": "compare"},
    "Papers": {"estimate": "eo queue vio", "analyse": "opq vio"},
    "Setup": {"doctor": "inspect", "check": "inspect", "generate": "generate"},
}
"""The commands in the order of the help, by heading, with their modules."""


class _Groups(TyperGroup):
    """Prints commands below headings."""

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        formatter.write_paragraph()
        for heading, names in COMMANDS.items():
            formatter.write_heading(heading)
            with formatter.indentation():
                texts = [self.commands[name].get_short_help_str(formatter.width) for name in names]
                formatter.write_dl([(f"{name:{width}}", text) for name, text in zip(names, texts, strict=True)])


_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    name="p4perf",
    cls=_Groups,
    help="What will this data-plane program cost on that target?",
    pretty_exceptions_enable=False,
    **_SETTINGS,
)
estimate_app = typer.Typer(help="Estimate costs, latency and placement from published models.", **_SETTINGS)
analyse_app = typer.Typer(help="Analyse operators and combined variants as in publications.", **_SETTINGS)
app.add_typer(estimate_app, name="estimate")
app.add_typer(analyse_app, name="analyse")


def _version(show: bool) -> None:
    if show:
        sys.stdout.write(f"p4perf {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


_CommandLineError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)
"""What the parser of the command line raises; where it lives differs between versions of typer."""


def run() -> int:
    """Run the command line: the exit code."""
    try:
        result = int(app(sys.argv[1:], prog_name="p4perf", standalone_mode=False) or 0)
        sys.stdout.flush()
        return result
    except P4PerfError as error:
        return _fail(error.text(), error.exit_code)
    except _CommandLineError as error:
        return _misuse(error)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except MemoryError:
        return _fail(
            "out of memory\nhint: make room, or raise the limit (ulimit -v), and run again", ExitCode.UNAVAILABLE
        )
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _fail(f"the path is too long: {shown(Path(str(error.filename)))}", ExitCode.USAGE)
        if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
            if error.filename is None and error.errno == errno.ENOSPC:
                _closed_pipe()
                return _fail(f"cannot print: {error.strerror}", ExitCode.UNAVAILABLE)
            return _fail(str(error), ExitCode.UNAVAILABLE)
        if os.environ.get("P4PERF_TRACEBACK"):
            raise
        text = f"{type(error).__name__}: {error}"
        return _fail(f"this is a defect of p4perf: {text}\nhint: P4PERF_TRACEBACK=1 shows where", ExitCode.INTERNAL)


_OF_THE_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What is short or broken on a machine, wherever it shows; no defect of p4perf."""

_FORMER_COMMANDS = {
    **dict.fromkeys(("eo", "place", "queue", "cesim"), "estimate {}"),
    **dict.fromkeys(("opq", "factors"), "analyse {}"),
    "fit-many": "fit --by",
    "operator": "measure FILE.c",
    "schema": "check --schema",
    "calibrate": "learn --operations",
    "eivu": "list eivu, list eivu-cells and reproduce eivu",
}
_FORMER_CHOICES = {"best": "lowest-cost", "worst": "highest-cost"}
_NUMBERS = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number without a unit",
    "Input should be a valid number, unable to parse string as a number": "expected a number without a unit",
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
}
_CHOICE = re.compile(r"'([^']*)' is not one of ('.*')")


def _misuse(error: Any) -> int:
    """The command line is wrong; without any arguments, the help is the answer."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return ExitCode.USAGE
    path = error.ctx.command_path if getattr(error, "ctx", None) else "p4perf"
    message = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    for words, plain in _NUMBERS.items():
        message = re.sub(words, plain, message)
    hint = f"{path} --help lists the options"
    if "'DATA...'" in message:
        hint = f"name files or runs; {path} - reads columns from standard input"
    if unknown := re.match(r"No such (command|option):? '?([^' ]+)", message):
        kind, word = unknown.groups()
        message, now = f"unknown {kind} {word}", _FORMER_COMMANDS.get(word)
        known = [*getattr(error.ctx.command, "commands", ())]
        if kind == "option":
            known = [name for each in error.ctx.command.params for name in each.opts]
        if kind == "command" and now:
            hint = f"use p4perf {now.format(word)}"
        elif found := difflib.get_close_matches(word, known, n=1):
            hint = f"did you mean {found[0]}?"
        else:
            hint = f"{path} --help lists the {kind}s"
    elif choice := _CHOICE.search(message):
        word, choices = choice[1], re.findall(r"'([^']*)'", choice[2])
        if near := _FORMER_CHOICES.get(word):
            hint = f"{word} is now {near}"
        elif found := difflib.get_close_matches(word, choices, n=1):
            hint = f"did you mean {found[0]}?"
    return _fail(f"{message[:1].lower()}{message[1:]}\nhint: {hint}", ExitCode.USAGE)


def _closed_pipe() -> int:
    """The reader of stdout closed it; keep the interpreter from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK


def _fail(text: str, code: ExitCode) -> int:
    say(f"error: {text}")
    return code


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, Option("--format", "-f", help="Output format.")]

Row = Mapping[str, Any]


def emit(
    fmt: Format,
    document: Document,
    *,
    title: str = "",
    rows: Sequence[Row] | None = None,
    tables: Callable[[], None] | None = None,
) -> None:
    """Print a document.

    Args:
        rows: in CSV and tables, they stand instead of those of the document.
        tables: prints what people see, if that is more than one table.
    """
    if fmt is Format.TABLE and tables is not None:
        tables()
        return
    content = document.as_dict()
    if fmt is Format.JSON:
        sys.stdout.write(json.dumps(content, indent=2, allow_nan=False, default=str) + "\n")
    elif fmt is Format.CSV:
        shown = content["rows"] if rows is None else rows
        sys.stdout.write(csv_text([{name: _cell(value) for name, value in row.items()} for row in shown]))
    else:
        print_table(content["rows"] if rows is None else rows, title)


def print_table(rows: Sequence[Row], title: str = "") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        sys.stdout.write("nothing to show\n")
        return
    terminal = sys.stdout.isatty()
    # A pipe gets no line breaks inside cells: 200 columns and paths hold every table of p4perf.
    room = shutil.get_terminal_size().columns if terminal else 200
    cells = {column: [_shown(row.get(column)) for row in rows] for column in columns_of(rows)}
    widths = _widths(cells, room, apart=terminal)
    # With a height, the width counts on every kind of terminal.
    console = Console(file=sys.stdout, width=sum(widths.values()) + 2 * len(widths), height=25, highlight=False)
    paths = [column for column in cells if column not in widths]
    if title:
        sys.stdout.write(f"{_harmless(near(title))}\n")
    with console.capture() as printed:
        for first, last in pairwise(range(len(rows) + 1)) if paths else [(0, len(rows))]:
            table = Table(header_style="bold", show_header=not first, box=None, pad_edge=False)
            for column, width in widths.items():
                numeric = all(isinstance(row.get(column), int | float) for row in rows)
                side: Literal["left", "right"] = "right" if numeric else "left"
                name = _harmless(column.replace("_", " ") if column.isidentifier() else column)
                table.add_column(name, justify=side, overflow="fold", width=width)
            for number in range(first, last):
                table.add_row(*(Text(cells[column][number]) for column in widths))
            console.print(table)
            for column in paths:
                console.print(Text(f"  {_harmless(column)}: {cells[column][first]}"), soft_wrap=True)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in printed.get().splitlines()))


SHORT = 12
"""Narrowest width to which a column is folded."""


def _widths(cells: Mapping[str, Sequence[str]], room: int, *, apart: bool) -> dict[str, int]:
    """Widths of the columns of a table for the room there is, without those that need lines of their own.

    A folded path cannot be pasted: with ``apart``, a column of paths that leaves too little room for the others gets
    such lines, and only in sentences are paths folded. Where even that is not enough, the table exceeds the room.
    Without it, columns of paths do not count.
    """
    from rich.cells import cell_len

    widths = {column: max(map(cell_len, (column, *"\n".join(each).split("\n")))) for column, each in cells.items()}
    words = {column: [word for cell in each for word in cell.split() if "/" in word] for column, each in cells.items()}
    least = {column: min(widths[column], max(SHORT, *map(cell_len, words[column]), 0)) for column in cells}
    paths = [column for column, each in cells.items() if any(each) and words[column] == [cell for cell in each if cell]]

    room += 0 if apart else sum(widths[column] for column in paths)

    def exceeds(wanted: Mapping[str, int]) -> bool:
        return sum(wanted.values()) + 2 * (len(wanted) - 1) > room

    while apart and exceeds(least) and paths and len(least) > 1:
        widest = max(paths, key=least.__getitem__)
        paths.remove(widest)
        del least[widest], widths[widest]
    if apart and exceeds(least) and len(least) > 1:
        least = {column: min(width, SHORT) for column, width in widths.items()}
    while exceeds(widths) and (wide := [column for column, width in widths.items() if width > least[column]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _shown(value: Any) -> str:
    return _harmless(near(_cell(value)))


def near(text: str) -> str:
    """A text with the paths in it relative to the current directory, as they are pasted, where they are below it."""
    here = re.escape(f"{Path.cwd()}{os.sep}")
    return re.sub(rf"(?<![\w./:-]){here}(?=[\w.])", "", text) if len(here) > 1 else text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(v) for v in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_cell(v)}" for k, v in value.items())
    return str(value)


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Such as ``12.3 (12.1 .. 12.6)``; the value alone if an end is unknown, and nothing without a value."""
    from p4perf.models.estimate import Estimate

    if value is None or not math.isfinite(value):
        return ""
    return Estimate(value, -math.inf if low is None else low, math.inf if high is None else high).rounded()


def measured_text(value: float | None, low: float | None, high: float | None) -> str:
    """A measured quantity, none of which is negative: one whose interval crosses zero is not known."""
    if value is None or low is None or high is None or not low < 0 < high:
        return with_interval(value, low, high)
    return f"unknown, at most {high:.3g} (median {value:.3g})"


def say_origin(run: RunIdentity) -> None:
    if run.origin:
        say(f"note: {run.origin}")


def say_environment(run: Manifest) -> None:
    """Say how the controls of the environment stood when a run began."""
    for check in run.environment:
        advice = f" ({check['advice']})" if check["advice"] else ""
        say(f"environment: {check['check']}: {check['value']}{advice}")


def say(text: str) -> None:
    """Print a line for people on stderr; what a terminal would obey, in names from data, is left out."""
    sys.stderr.write(_harmless(near(text)) + "\n")


def resuming(path: object, scheduler: str | None = None, tls: Path | None = None) -> str:
    """The command that continues a run or a campaign."""
    of_cluster = {"--scheduler": scheduler, "--tls": tls}
    options = [word for name, value in of_cluster.items() if value for word in (name, str(value))]
    return shlex.join(["p4perf", "resume", str(path), *options])


def planned_text(planned: int, trials: int) -> str:
    """How many trials were planned of those that there are."""
    more = f", {trials - planned} more where starts disagree" if trials > planned else ""
    return f"{planned} planned{more}"


def say_stopped(path: object, scheduler: str | None = None, tls: Path | None = None) -> None:
    say(f"\nstopped; everything finished is on disk. Continue with: {resuming(path, scheduler, tls)}")


def told_by(*, quiet: bool) -> Callable[[str], None]:
    """What prints lines that --quiet leaves out."""
    return (lambda line: None) if quiet else say


def _harmless(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def _share(text: str) -> float:
    from p4perf.specs.units import ratio

    try:
        return ratio(text)
    except ValueError:
        raise ValueError("expected a share such as 0.7 or 70%") from None


def share_option(*names: str, **more: Any) -> Any:
    """An option that takes a share, such as 0.7 or 70%."""
    return Option(*names, parser=_share, metavar="SHARE", **more)


SetOption = Annotated[
    list[str] | None, Option("--set", help="Change the spec: entries=1000, trials.repetitions=5. Repeatable.")
]
WhereOption = Annotated[
    list[str] | None,
    Option("--where", help="For a run over several variables: fix one of them, as in frame=64. Repeatable."),
]
SkipOption = Annotated[bool, Option("--skip-impossible", help="Leave out impossible points, and list them.")]
PointsOption = Annotated[
    int | None, Option("--points", min=1, help="Keep at most N values of every swept variable, evenly spaced.")
]


def say_lacking(*outcomes: SweepOutcome) -> None:
    """Name the points that failed, and those that have no accepted trial, once each."""
    for label, reason in dict.fromkeys(failed for outcome in outcomes for failed in outcome.failed):
        say(f"warning: {label} failed: {reason}")
    starved = (each for o in outcomes for each in zip(o.starved, o.starved_flags, strict=True))
    for label, flags in dict(starved).items():
        said = f"its trials have the flags {', '.join(flags)}" if flags else "it was not reached"
        say(f"warning: {label} has no accepted trial: {said} (p4perf doctor reports how quiet the machine is)")


def once(given: Sequence[str] | None) -> list[str]:
    """What was given, each once, and a note of what was given twice."""
    found = list(dict.fromkeys(given or ()))
    if twice := [text for text in found if (given or ()).count(text) > 1]:
        say(f"note: {', '.join(twice)} is given twice, and counts once")
    return found


def refuse(options: Mapping[str, object], reason: str) -> None:
    """Refuse those of these options that were given."""
    if wrong := [name for name, value in options.items() if value is not None and value is not False and value != []]:
        raise UsageError(f"{', '.join(wrong)}: {reason}")


Scale = Literal["linear", "log"]
"""Of an axis."""
RunArgument = Annotated[
    Path, Argument(metavar="RUN", parser=find_run, help="A run directory, or the folder of a campaign.")
]
EntriesOption = Annotated[Path | None, Option(help="Entries: simple_switch_CLI commands, P4Runtime text, JSON, CSV.")]
P4infoOption = Annotated[Path | None, Option(help="P4Info as text, for entries with numeric ids.")]
IncludesOption = Annotated[
    list[Path] | None, Option("--include", "-I", help="For a .p4: folder of include files. Repeatable.")
]
DefinesOption = Annotated[
    list[str] | None, Option("--define", "-D", help="For a .p4: define NAME or NAME=VALUE. Repeatable.")
]
StdOption = Annotated[str | None, Option(help="For a .p4: p4-14 or p4-16; default: p4-16.")]
DefaultFillOption = Annotated[
    int | None, Option(min=0, max=100_000, show_default="64", help="Entries to generate in each table that has none.")
]
MissOption = Annotated[list[str] | None, Option(help="Share of packets that miss, or TABLE=SHARE. Repeatable.")]
ZipfOption = Annotated[
    float | None,
    Option(min=0, max=10, show_default="0", help="Zipf exponent of the popularity of entries; 0: uniform."),
]
PacketsOption = Annotated[
    int | None,
    Option(min=1, max=65536, show_default="256", help="Number of different packets, sent in random order."),
]
PortOption = Annotated[int | None, Option(min=0, max=510, show_default="0", help="Ingress port of all packets.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Do not show progress on stderr.")]

TlsOption = Annotated[
    Path | None, Option("--tls", help="With --scheduler tls://...: folder of ca.pem, cert.pem and key.pem.")
]


def check_cluster(scheduler: str | None, tls: Path | None, workers: str | None = None) -> None:
    """Refuse options that only a cluster understands; warn of one that everybody may use who reaches it."""
    from p4perf.evaluation.fitting.cluster import is_encrypted, require_distributed

    if scheduler is not None:
        require_distributed()
        if not is_encrypted(scheduler):
            say(f"warning: whoever reaches {scheduler} runs code as its users; --tls and tls:// keep others out")
    elif workers is not None or tls is not None:
        option = "--workers chooses workers" if tls is None else "--tls has the certificates"
        raise UsageError(f"{option} of a cluster", hint="name it with --scheduler")
