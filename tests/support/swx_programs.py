"""Random programs, changed so that SWX could run them: what it lacks is left out or replaced."""

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from support import random_programs

from p4perf.formats.swx_spec import read_specification
from p4perf.programs import ir
from p4perf.programs.component import build_workload
from p4perf.programs.own import OwnParameters, own_workload
from p4perf.programs.packets import FCS_BYTES

WHOLE_BYTES = (8, 8, 8, 16, 16, 16, 24, 32, 32, 32, 40, 48, 48, 64, 64, 72, 128)
ANY_BITS = (3, 4, 4, 4, 8, 12, 13, 16, 20, 32, 48, 64)


def _replaced(statement):
    if isinstance(statement, ir.Resubmit):
        return ir.Recirculate()
    return statement


def _kept(statement, clones):
    """Without random numbers; with clones without all that changes headers, else without clones."""
    if isinstance(statement, ir.Random) or (isinstance(statement, ir.Clone) and not clones):
        return False
    destination = getattr(statement, "destination", None)
    changes = isinstance(statement, ir.AddHeader | ir.RemoveHeader) or (
        destination and destination.header != ir.METADATA
    )
    return not (clones and changes)


def swx_workload(rng, number):
    """A random workload; ``number`` decides the kind of widths and of packet paths."""
    clones = number % 5 == 0
    with patch.object(random_programs, "WIDTHS", ANY_BITS if number % 3 == 0 else WHOLE_BYTES):
        workload = random_programs.random_workload(rng, ("copies", "again", "copies", "again", "random")[number % 5])
    actions = tuple(
        replace(a, body=tuple(_replaced(s) for s in a.body if _kept(s, clones))) for a in workload.program.actions
    )
    updated = () if clones else workload.program.updated
    program = replace(workload.program, actions=actions, updated=updated)
    return replace(workload, program=program)


def entries_by_rule(text: str, table: str, action: str, count: int, *, port: int = 1) -> str:
    """Entries of a table of a specification, by the rule of :class:`~p4perf.programs.ir.EntrySet`.

    Entry ``i`` matches ``i`` in all match fields together, the first one most significant; the first argument of the
    action is the port, the others are numbers that follow from ``i``.
    """
    specification = read_specification(text, "program.spec")
    key = specification.tables[table].inner("key")
    assert key is not None
    widths = [specification.bits(line.word(0), line) for line in key.lines]
    data = specification.structs.get(specification.arguments(action), ())
    lines = [f"table {table}"]
    for i in range(count):
        shift, matched = sum(widths), []
        for width in widths:
            shift -= width
            matched.append(f"0x{i >> shift & ((1 << width) - 1):x}")
        words = (port if j == 0 else ir.entry_data_word(i, j) for j in range(len(data)))
        given = [f"{name} 0x{w & ((1 << bits) - 1):x}" for (name, bits), w in zip(data, words, strict=True)]
        lines.append(" ".join(["match", *matched, "action", action, *given]))
    return "\n".join(lines) + "\n"


def own_specification(
    text: str, entries: str = "", *, frames: Sequence[bytes] = (), fill: int = 0, packets: int = 64
) -> ir.Workload:
    """A specification of a user, which runs as it is."""
    given = OwnParameters(program=text, entries=entries, default_fill=fill, packets=packets)
    size = len(frames[0]) + FCS_BYTES if frames else 64
    workload = own_workload(given, build_workload([], frame_size_bytes=size).program, size)
    return replace(workload, frames=tuple(frames) or workload.frames)
