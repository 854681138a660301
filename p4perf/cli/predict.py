"""The command that says what a program will cost on a target: predict."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from p4perf.cli.app import app
from p4perf.cli.output import Format, FormatOption, emit, say
from p4perf.errors import SpecError, UsageError

if TYPE_CHECKING:
    from p4perf.evaluation.answer.answers import Answers
    from p4perf.evaluation.answer.prediction import Conditions, TargetModel
    from p4perf.evaluation.answer.subjects import Pair, Subject
    from p4perf.experiment.prediction import Packets

DEFAULT_LOAD = 0.7


class PathChoice(StrEnum):
    """Whose bill is printed."""

    EXPECTED = "expected"
    BEST = "best"
    WORST = "worst"


@app.command()
def predict(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROG", help="An experiment (name or file), the JSON of p4c-bm2-ss, a .spec of SWX, or a .p4 file."
        ),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="Cost model: a file, or TARGET@MACHINE. May be repeated; default: all."),
    ] = None,
    targets: Annotated[
        list[str] | None, typer.Option("--target", "-t", help="Only models of this target. May be repeated.")
    ] = None,
    frame_size: Annotated[
        int | None,
        typer.Option("--frame-size", help="Frame size in bytes, with FCS; default: that of the program, or 64."),
    ] = None,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores that run the program.")] = 1,
    line_rate: Annotated[str, typer.Option("--line-rate", help="Rate of the line.")] = "10Gbit/s",
    frequency: Annotated[
        str | None, typer.Option("--frequency", help="Clock of the cores, such as 3GHz; default: that of the model.")
    ] = None,
    load: Annotated[
        float | None, typer.Option("--load", help="For latency and loss: share of the possible rate; default: 0.7.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="For latency and loss: packets that come, such as 1Mpps.")
    ] = None,
    probabilities: Annotated[
        str | None,
        typer.Option("--probabilities", help="YAML file: which share of the packets goes which way; or uniform."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="A .pcap: the ways of its packets through the program are counted.")
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(
            "--arch", help="Of a .p4 file: v1model (p4c-bm2-ss), psa or pna (p4c-dpdk); default: its include."
        ),
    ] = None,
    defines: Annotated[
        list[str] | None, typer.Option("--define", "-D", help="Of a .p4 file: NAME or NAME=VALUE. May be repeated.")
    ] = None,
    entries: Annotated[
        list[str] | None, typer.Option("--entries", help="Entries of a table: TABLE=N. May be repeated.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", help="What fills the tables: commands of bmv2, or entries of SWX.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="What if: TABLE.entries=1e6, TABLE.match_kind=lpm, TABLE.hit=0.5; of an experiment as everywhere.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="What if this table or step were not there. May be repeated.")
    ] = None,
    points: Annotated[
        int | None, typer.Option("--points", min=1, help="Of an experiment: so many values of every swept variable.")
    ] = None,
    path: Annotated[PathChoice, typer.Option("--path", help="Whose bill is printed.")] = PathChoice.EXPECTED,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure it as well (experiments, .spec), and show both.")
    ] = False,
    testbed: Annotated[str, typer.Option("--testbed", help="With --measure: where the target runs.")] = "local",
    frame: Annotated[
        str | None, typer.Option("--frame", help="With --measure of a .spec: the packet, hexadecimal or a .pcap.")
    ] = None,
    vary: Annotated[
        str | None, typer.Option("--vary", help="With --measure of a .spec: OFFSET:LENGTH:KEYS, bytes that change.")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="With --measure: folder that gets the records.")] = Path("runs"),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for prediction.json and plots.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but the data and warnings.")] = False,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Predict what a program costs on a target: cycles, packet rate, latency and loss, with the bill."""
    from p4perf.cli.predict_output import print_answers
    from p4perf.evaluation.answer.answers import answer
    from p4perf.evaluation.answer.files import body, rows, write_predictions
    from p4perf.evaluation.answer.library import open_models
    from p4perf.evaluation.answer.subjects import Wanted, open_subjects
    from p4perf.evaluation.reading import ReadOptions

    read = ReadOptions(commands=rules, arch=arch, defines=tuple(defines or ()))
    wanted = Wanted(
        program, tuple(sets or ()), tuple(without or ()), _entries(entries or ()), probabilities, trace, points, read
    )
    if not measure and (frame or vary):
        raise UsageError("--frame and --vary are for --measure")
    packets = _packets(frame, vary, rules) if measure else None
    conditions = _conditions(frame_size, cores, line_rate, frequency, load, rate)
    chosen = open_models(models or [], targets or [])
    pairs = open_subjects(wanted)
    found = answer(pairs, chosen, conditions, path=path.value, check=_check_capability)
    if packets is not None:
        found = _measured(found, pairs, chosen, testbed, runs, packets, quiet=quiet)
    plots: tuple[Path, ...] = ()
    if output is not None:
        from datetime import UTC, datetime

        output, plots = write_predictions(found, path.value, output, datetime.now(UTC))
    if fmt is Format.TABLE:
        print_answers(found, path.value, quiet=quiet)
    else:
        emit(fmt, "predict", rows(found), **body(found, path.value), plots=[str(p) for p in plots])
    if output is not None and not quiet:
        say(f"written: {output}")


def _check_capability(subject: Subject, target: str) -> None:
    """Refuse a point of an experiment that a target cannot do."""
    if subject.experiment is not None:
        from p4perf.experiment.prediction import check_capability

        check_capability(subject, target)


def _entries(texts: Sequence[str]) -> dict[str, int]:
    """Tables and how many entries they hold.

    Raises:
        UsageError: not of the form TABLE=N.
    """
    found = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            number = float(value.replace("_", ""))
        except ValueError:
            number = -1.0
        if not name.strip() or not 0 <= number < 1e12 or number != int(number):
            raise UsageError(f"--entries {text}: expected TABLE=N", hint="for example --entries ipv4_lpm=1000")
        found[name.strip()] = int(number)
    return found


def _conditions(
    frame_size: int | None, cores: int, line_rate: str, frequency: str | None, load: float | None, rate: str | None
) -> Conditions:
    from p4perf.evaluation.answer.latency import Offered
    from p4perf.evaluation.answer.prediction import Conditions

    if load is not None and rate is not None:
        raise UsageError("--load and --rate both say how much is offered", hint="give one of them")
    offered = Offered(DEFAULT_LOAD if load is None else load)
    if rate is not None:
        offered = Offered(None, _quantity(rate, "packet rate", "Mpps", "--rate"))
    clock_hz = None if frequency is None else _quantity(frequency, "frequency", "Hz", "--frequency")
    return Conditions(frame_size, cores, _quantity(line_rate, "data rate", "bit/s", "--line-rate"), offered, clock_hz)


def _quantity(text: str, dimension: Literal["data rate", "packet rate", "frequency"], unit: str, option: str) -> float:
    from p4perf.specs.units import parse_quantity

    try:
        value = float(parse_quantity(text, dimension, unit))
    except SpecError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error
    if value <= 0:
        raise UsageError(f"{option}: {text} is not more than zero")
    return value


def _packets(frame: str | None, vary: str | None, rules: Path | None) -> Packets:
    from p4perf.cli.program import varying_bytes
    from p4perf.experiment.prediction import Packets
    from p4perf.results.files import read_text
    from p4perf.targets.dpdk_swx_program import frame_from_hex, frame_from_pcap

    content = b""
    if frame is not None:
        content = frame_from_pcap(Path(frame)) if Path(frame).suffix == ".pcap" else frame_from_hex(frame)
    varying = None
    if vary is not None:
        given = varying_bytes(vary)
        varying = (given.offset, given.length, given.keys)
    return Packets(content, varying, read_text(rules) if rules is not None else "")


def _measured(
    found: Answers,
    pairs: Sequence[Pair],
    models: Sequence[TargetModel],
    testbed: str,
    runs: Path,
    packets: Packets,
    *,
    quiet: bool,
) -> Answers:
    """The same with what was measured."""
    from dataclasses import replace

    from p4perf.experiment.prediction import measure

    if len({m.target for m in models}) < len(models):
        raise UsageError("--measure needs one model for each target", hint="--model chooses one")
    beside = [
        (pair.subject, prediction)
        for pair in pairs
        for prediction in found.changed
        if prediction.graph is pair.subject.graph
    ]
    say_it = (lambda line: None) if quiet else say
    return replace(found, measured=measure(beside, testbed, runs, packets, say_it))
