"""``p4perf run --program``: a program that the user wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from p4perf.cli.output import Format, emit, say
from p4perf.errors import DataError, UsageError

if TYPE_CHECKING:
    from p4perf.targets.dpdk_swx_program import VaryingBytes

DEFAULT_FRAME_BYTES = 60


def varying_bytes(text: str) -> VaryingBytes:
    """What changes from packet to packet, from ``OFFSET:LENGTH:KEYS``.

    Raises:
        UsageError: it is not of that form.
    """
    from p4perf.targets.dpdk_swx_program import VaryingBytes

    parts = text.split(":")
    if len(parts) != 3 or not all(part.strip().isdigit() for part in parts):
        raise UsageError(f"--vary {text}: expected OFFSET:LENGTH:KEYS", hint="for example 26:4:1000, in bytes")
    return VaryingBytes(*(int(part) for part in parts))


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise DataError(f"cannot read {what} {path}: {reason}") from error


def _frame(frame: str | None) -> bytes:
    """The frame: hexadecimal digits, the first one of a capture, or a broadcast without content."""
    from p4perf.targets.dpdk_swx_program import frame_from_hex, frame_from_pcap

    if frame is None:
        return bytes.fromhex("ffffffffffff02000000000188b5").ljust(DEFAULT_FRAME_BYTES, b"\0")
    return frame_from_pcap(Path(frame)) if Path(frame).suffix == ".pcap" else frame_from_hex(frame)


def run_program(
    program: Path,
    target: str,
    testbed: str,
    *,
    entries: Path | None,
    frame: str | None,
    vary: str | None,
    expect: Path | None,
    repetitions: int,
    output: Path,
    quiet: bool,
    fmt: Format,
) -> int:
    """Measure the specification of a pipeline and print its numbers; the exit code."""
    from p4perf.experiment.program import ProgramInput, measure_program

    if program.suffix != ".spec":
        raise UsageError(
            f"{program} is no specification of an SWX pipeline",
            hint="--program takes a .spec; p4c-dpdk makes one of a P4 program",
        )
    try:
        expectation = expect.read_bytes() if expect is not None else None
    except OSError as error:
        raise DataError(f"cannot read {expect}: {error.strerror}") from error
    given = ProgramInput(
        program.stem,
        _text(program, "the specification"),
        _frame(frame),
        _text(entries, "the entries") if entries is not None else "",
        varying_bytes(vary) if vary is not None else None,
        expectation,
    )
    result = measure_program(
        given, target, testbed, output, repetitions=repetitions, told=lambda line: None if quiet else say(line)
    )
    if not quiet and expectation is None:
        say("note: what the program computes was not checked (--expect names a file of packets and outcomes)")
    emit(fmt, "program", list(result.rows), title=given.name, run=str(result.folder), flags=list(result.flags))
    if not quiet:
        say(f"{result.accepted} of {result.tried} starts accepted; flags: {', '.join(result.flags) or 'none'}")
        say(f"raw records: {result.folder}")
    return 0
