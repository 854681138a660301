"""Your own P4 program as what an experiment measures: the program, entries of its tables, and packets that hit them."""

from __future__ import annotations

import base64
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from pydantic import Field as Bounds

from p4perf.errors import CapabilityError, DataError, Location, UsageError
from p4perf.formats.swx_spec import Specification
from p4perf.programs import ir
from p4perf.programs.component_parameters import ComponentParameters
from p4perf.programs.decisions import Branches
from p4perf.programs.exercise import traffic
from p4perf.programs.fill import Fill, filled, named_table, parse_fill
from p4perf.programs.interpreter import Interpreter, PacketOutcome
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.flow import oversized_tables
from p4perf.programs.reading.shares import Shares, parse_shares
from p4perf.programs.reading.text import parse_program, read_program
from p4perf.programs.reading.tree import MAX_BYTES
from p4perf.specs.units import ratio

MAX_TEXT_BYTES = 900_000

INLINE_BYTES = 200_000
"""Longer texts are compressed."""

_PACKED = "xz:"


def compressed(text: str) -> str:
    """A text as a parameter, as XZ in base 85."""
    return _PACKED + base64.b85encode(lzma.compress(text.encode(), preset=1)).decode()


def packed(text: str, file: str) -> str:
    """A text as a parameter: long ones as XZ in base 85, so that 100,000 entries or a large program fit into a spec.

    Raises:
        DataError: it is too long all the same.
    """
    if len(text) <= INLINE_BYTES:
        return text
    found = compressed(text)
    if len(found) > MAX_TEXT_BYTES:
        raise DataError(f"is too long: {len(found)} bytes, compressed, of {MAX_TEXT_BYTES}", location=Location(file))
    return found


def unpacked(text: str) -> str:
    """The text of a parameter.

    Raises:
        DataError: it was not made by :func:`packed`.
    """
    if not text.startswith(_PACKED):
        return text
    stream = lzma.LZMADecompressor()
    try:
        found = stream.decompress(base64.b85decode(text.removeprefix(_PACKED)), MAX_BYTES).decode()
    except (ValueError, lzma.LZMAError) as error:
        raise DataError(f"a text of the spec is damaged: {error}") from error
    if not stream.eof:
        raise DataError(f"a text of the spec is damaged, or longer than {MAX_BYTES >> 20} MiB")
    return found


class OwnParameters(ComponentParameters):
    """What a spec says of a program of its own."""

    program: str = Bounds(max_length=MAX_TEXT_BYTES, description="JSON of p4c-bm2-ss, or a .spec")
    p4: str = Bounds("", max_length=MAX_TEXT_BYTES, description="P4_16 that it was compiled of")
    entries: str = Bounds("", max_length=MAX_TEXT_BYTES, description="entries of its tables")
    p4info: str = Bounds("", max_length=MAX_TEXT_BYTES, description="P4Info of the program, as text")
    fill: str = Bounds(
        "", max_length=10_000, description="entries of tables: TABLE=N or TABLE=N:DISTRIBUTION, joined by commas"
    )
    default_fill: int = Bounds(64, ge=0, le=100_000, description="entries of tables that have none")
    miss: str = Bounds(
        "", max_length=10_000, description="shares of packets that miss tables: SHARE or TABLE=SHARE, joined"
    )
    zipf: float = Bounds(0.0, ge=0, le=10, description="exponent of the popularity of entries; 0: all alike")
    shares: str = Bounds("", max_length=MAX_TEXT_BYTES, description="traffic shares and branch probabilities, as YAML")
    packets: int = Bounds(256, ge=1, le=65_536, description="different packets that are sent in random order")
    port: int = Bounds(0, ge=0, le=510, description="by which all packets come in")
    seed: int = Bounds(1, ge=0, le=2**31, description="of entries and packets")


@lru_cache(maxsize=32)
def own_workload(
    parameters: OwnParameters, baseline: ir.Program, frame_size_bytes: int, captured: tuple[bytes, ...] = ()
) -> ir.Workload:
    """The program with its entries and packets, compared with a baseline; the last ones are kept, as they take seconds.

    Args:
        captured: frames that are its packets, cut or filled with zeros to the frame size; none: they are made.

    Raises:
        DataError: the text is no program, or an entry does not belong to it; with the place.
        UsageError: a table to be filled does not exist, or packets with these shares.
        CapabilityError: the outcome of a packet is not decided by the program alone.
    """
    program, source = read_own(
        unpacked(parameters.program),
        "the program",
        (unpacked(parameters.entries), "the entries"),
        (unpacked(parameters.p4info), "the P4Info"),
    )
    program = replace(program, port=parameters.port)
    branches, shares = Branches(program), Shares({})
    if parameters.shares:
        shares = parse_shares(unpacked(parameters.shares).encode(), "the shares", branches.graph())
    fills = {branches.tables[name]: Fill(count) for name, count in shares.entries.items()}
    fills |= parse_fill(parameters.fill)
    actions = taken_actions(program, branches, shares)
    size_bytes = frame_size_bytes - FCS_BYTES
    outcomes = []
    try:
        program = filled(program, fills, default=parameters.default_fill, seed=parameters.seed, actions=actions)
        misses = _misses(parameters.miss, program)
        drawn = tuple(frame[:size_bytes].ljust(size_bytes, b"\0") for frame in captured[: parameters.packets])
        drawn = drawn or traffic(
            program, parameters.packets, parameters.seed, size_bytes, misses, parameters.zipf, shares.edges
        )
        interpreter = Interpreter(program)
        outcomes = [interpreter.run(frame) for frame in drawn]
    except (ValueError, RecursionError) as error:
        raise CapabilityError(f"what becomes of a packet is not known: {error}") from error
    notes = (table_notes(program, outcomes), *(f"warning: {text}" for text in oversized_tables(program)))
    source = replace(source, p4=unpacked(parameters.p4))
    return ir.Workload(program, baseline, ir.PacketSpec((), (), frame_size_bytes), notes, drawn, source)


def read_own(
    text: str, name: str, entries: tuple[str, str] = ("", ""), p4info: tuple[str, str] = ("", "")
) -> tuple[ir.Program, ir.ProgramText]:
    """A program with its entries: of JSON of p4c-bm2-ss, or of a specification of SWX.

    Args:
        name: what messages call the text; ``entries`` and ``p4info`` are texts with what messages call them.
    """
    parsed = parse_program(text, name)
    plane = parse_control_plane(*entries, parsed, p4info if p4info[0] else None)
    language: Literal["swx", "bmv2"] = "swx" if isinstance(parsed, Specification) else "bmv2"
    return read_program(parsed, plane), ir.ProgramText(language, text, tuple(plane.commands()))


def taken_actions(program: ir.Program, branches: Branches, shares: Shares) -> dict[str, set[str]]:
    """Actions that packets take by stated shares, by the names of tables."""
    found: dict[str, set[str]] = {}
    for place, given in shares.edges.items():
        if place in branches.tables:
            table = branches.tables[place]
            names = (a for a in program.table(table).actions if given.get(program.action(a).label, 0) > 0)
            found.setdefault(table, set()).update(names)
    return found


def _misses(text: str, program: ir.Program) -> dict[str, float]:
    """Shares of packets that miss, by the names of tables; the share of a table wins over that of all."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, share = part.rpartition("=")
        try:
            value = ratio(share)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise UsageError(f"--miss {part}: expected SHARE or TABLE=SHARE, from 0 to 1", hint="such as routes=0.02")
        key = named_table(program, name.strip()).name if name else ""
        if key in found:
            raise UsageError(f"--miss {name or 'SHARE'}: given more than once", hint="give each table one share")
        found[key] = value
    of_all = found.pop("", 0.0)
    return {table.name: found.get(table.name, of_all) for table in program.tables}


def table_notes(program: ir.Program, outcomes: Sequence[PacketOutcome]) -> str:
    """What packets meet in the tables with keys: ``tables: MainControl.routes 1000 entries, 98 % hits``."""
    hits, misses = (Counter(name for o in outcomes for name in getattr(o, which)) for which in ("hits", "misses"))
    found = []
    for table in program.tables:
        if table.keys:
            met = hits[table.name] + misses[table.name]
            share = f"{100 * hits[table.name] / met:.3g} % hits" if met else "no packet comes here"
            found.append(f"{table.label or table.name} {table.entries.count} entries, {share}")
    sent = sum(bool(o.sent) for o in outcomes)
    return f"tables: {'; '.join(found) or 'none'}; {100 * sent / max(len(outcomes), 1):.3g} % of the packets are sent"
