"""JSON of p4c-bm2-ss of a user as target bmv2 runs it: as it is, with entries and configuration by commands.

The :class:`~p4perf.programs.ir.Program` that was read of it has the entries, and says what becomes of the packets that
the switch is verified with.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.interpreter import GivenBy, Interpreter, unknown
from p4perf.programs.operators import STANDARD_HASHES, HashFunctions
from p4perf.programs.packet_state import PacketState
from p4perf.programs.reading.commands import entry_commands
from p4perf.programs.reading.psa import is_psa
from p4perf.programs.reading.tree import Tree, parse_json
from p4perf.programs.reading.v1model import read_v1model
from p4perf.programs.reading.values import identifier
from p4perf.targets.dpdk_swx_program import settled_headers
from p4perf.targets.oracle import verification_file
from p4perf.targets.process import refuse_larger_tables

LANGUAGE = "bmv2"
"""That of the JSON."""

MIN_FRAME_BYTES = 14
"""Without FCS; a packet socket sends no shorter frame."""

READ_CELLS = 4096
"""Cells of the largest array of counters that is compared; simple_switch_CLI is asked for one at a time."""

READ_BITS = 63
"""Widest register that is compared; simple_switch_CLI shows signed numbers of 64 bit."""


class _BeyondError(ValueError):
    """An index is beyond an array."""


class OnBmv2(Interpreter):
    """The interpreter of a user's program, where simple_switch does what the interpreter says.

    A field of a header that is not valid holds there what was left in it, except in keys, and of an index beyond an
    array nothing is said. ``run`` raises a ValueError where the outcome depends on that.
    """

    def __init__(self, program: ir.Program, hashes: HashFunctions = STANDARD_HASHES, given: GivenBy = unknown) -> None:
        super().__init__(settled_headers(program), hashes, given=given)

    @override
    def _cell(self, index: ir.Expression, size: int, arguments: Mapping[str, int], packet: PacketState) -> int:
        at, _ = packet.evaluate(index, arguments)
        if at >= size:
            raise _BeyondError(
                f"a packet has the index {at} of an array of {size}, and simple_switch does not check it"
            )
        return super()._cell(index, size, arguments, packet)


def check_own(workload: ir.Workload) -> None:
    """Refuse a program that was read but that simple_switch does not run.

    Raises:
        CapabilityError: it is one.
    """
    text = workload.text(LANGUAGE)
    if text is None:
        raise CapabilityError(
            "bmv2 runs JSON of p4c-bm2-ss, and this program is a specification of SWX",
            hint="a program for v1model is measured on bmv2 and on the other targets",
        )
    if is_psa(_tree(text)):
        raise CapabilityError("bmv2 runs programs for v1model; JSON of p4c-bm2-psa is for psa_switch")
    interpreter = OnBmv2(workload.program)
    for packet in workload.frames:
        try:
            interpreter.run(packet)
        except _BeyondError as error:
            raise CapabilityError(str(error)) from error
        except ValueError:
            continue  # it is not one that the switch is verified with
    refuse_larger_tables("bmv2", workload.program)


def _tree(text: str) -> Tree:
    return parse_json(text, "the program")


def own_verification(workload: ir.Workload) -> bytes:
    """The verification file of a user's program."""
    return verification_file(workload, shortest=MIN_FRAME_BYTES, kind=OnBmv2)


def sending_ports(expected: bytes) -> set[int]:
    """The ports by which packets of a verification file leave."""
    packets, _, _, masks = struct.unpack_from("=IIII", expected, 8)
    found, at = set(), 24
    for _ in range(packets):
        length, outputs = struct.unpack_from("=HH", expected, at)
        at += 4 + length
        for _ in range(outputs):
            port, length = struct.unpack_from("=HH", expected, at)
            found.add(port)
            at += 4 + length * (1 + masks)
    return found


def own_commands(workload: ir.Workload) -> str:
    """What simple_switch_CLI has to be told before there are packets."""
    assert workload.source is not None  # noqa: S101 - its text was checked
    root = _tree(workload.source.text)
    commands = (*workload.source.configuration, *entry_commands(root, workload.program, read_v1model(root)))
    return "".join(f"{command}\n" for command in commands)


def own_states(workload: ir.Workload) -> Iterator[str]:
    """Options of the harness: how to ask for each counter and register, which has no cells if that is not possible."""
    program, root = workload.program, _tree(workload.text(LANGUAGE) or "")
    named = {identifier(n): n for key in ("counter_arrays", "register_arrays") for n in _names(root, key)}
    for counter in program.counters:
        asked = counter.size if counter.name in named and counter.size <= READ_CELLS else 0
        kind = "--byte-counter" if counter.of_bytes else "--counter"
        yield from (kind, f"{named.get(counter.name, counter.name)}={asked}")
    for register in program.registers:
        asked = register.size if register.width_bits <= READ_BITS else 0
        yield from ("--register", f"{named[register.name]}={asked}")


def _names(root: Tree, key: str) -> Iterator[str]:
    return (array.text("name") for array in root.each(key))
