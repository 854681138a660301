"""Your own P4 program as what an experiment measures: the program, entries of its tables, and packets that hit them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError, UsageError
from p4perf.programs import ir
from p4perf.programs.component_parameters import ComponentParameters
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.text import parse_program, read_program

MAX_TEXT_BYTES = 900_000


class OwnParameters(ComponentParameters):
    """What a spec says of a program of its own."""

    program: Annotated[str, Bounds(max_length=MAX_TEXT_BYTES, description="JSON of p4c-bm2-ss, or a .spec of SWX")]
    entries: Annotated[str, Bounds(max_length=MAX_TEXT_BYTES, description="entries of its tables")] = ""
    p4info: Annotated[str, Bounds(max_length=MAX_TEXT_BYTES, description="P4Info of the program, as text")] = ""
    fill: Annotated[str, Bounds(max_length=10_000, description="entries of tables, TABLE=N joined by commas")] = ""
    default_fill: Annotated[int, Bounds(ge=0, le=100_000, description="entries of tables that have none")] = 64
    packets: Annotated[int, Bounds(ge=1, le=65_536, description="different packets that are sent in turn")] = 256
    port: Annotated[int, Bounds(ge=0, le=510, description="by which all packets come in")] = 0
    seed: Annotated[int, Bounds(ge=0, le=2**31, description="of entries and packets")] = 1


def own_workload(parameters: OwnParameters, baseline: ir.Program, frame_size_bytes: int) -> ir.Workload:
    """The program with its entries and packets, compared with a baseline.

    Raises:
        DataError: the text is no program, or an entry does not belong to it; with the place.
        UsageError: a table to be filled does not exist.
        CapabilityError: the outcome of a packet is not decided by the program alone.
    """
    parsed = parse_program(parameters.program, "the program")
    p4info = (parameters.p4info, "the P4Info") if parameters.p4info else None
    program = read_program(parsed, parse_control_plane(parameters.entries, "the entries", parsed, p4info))
    program = replace(program, port=parameters.port)
    program = filled(program, _counts(parameters.fill), default=parameters.default_fill, seed=parameters.seed)
    size_bytes = frame_size_bytes - FCS_BYTES
    drawn = frames(program, parameters.packets, parameters.seed, size_bytes)
    interpreter = Interpreter(program)
    for frame in drawn:
        try:
            interpreter.run(frame)
        except (ValueError, RecursionError) as error:
            raise CapabilityError(f"what becomes of a packet is not known: {error}") from error
    return ir.Workload(program, baseline, ir.PacketSpec((), (), frame_size_bytes), frames=drawn)


def _counts(text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, text.split(",")):
        table, _, number = part.partition("=")
        if not number.isdecimal():
            raise UsageError(f"--fill {part}: expected TABLE=N", hint="for example routes=1000")
        found[table.strip()] = int(number)
    return found
