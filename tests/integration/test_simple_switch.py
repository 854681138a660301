"""The reference interpreter does what simple_switch of the behavioral-model does with the same entries and packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from support import simple_switch, stf
from typing_extensions import override

from p4perf.errors import DataError
from p4perf.programs import ir
from p4perf.programs.exercise import frames
from p4perf.programs.fill import Fill, filled
from p4perf.programs.interpreter import Interpreter, PacketOutcome, Sent
from p4perf.programs.packet_state import PacketState
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import ControlPlane, read_v1model

SAMPLES = Path(__file__).parents[3] / "shared/data/p4c_samples"
EXAMPLES = Path(__file__).parents[2] / "examples/programs"
PACKETS = 50
PORTS = 8
ENTRIES = 4

DIES = {
    "control-hs-index-test1": "an index beyond a header stack",
    "control-hs-index-test4": "an index beyond a header stack",
    "control-hs-index-test5": "does not take the JSON",
    "issue2726-bmv2": "a negative index",
    "issue3374": "does not take the JSON",
    "runtime-index-2-bmv2": "an index beyond a header stack",
}
"""Samples with which simple_switch ends, and why."""

pytestmark = pytest.mark.skipif(bool(simple_switch.MISSING), reason=simple_switch.MISSING)


class _Defined(Interpreter):
    """Notices what P4 leaves undefined: indices beyond an array, and fields of headers that are not valid, but in keys.

    simple_switch dies of the former, or reads what earlier packets left; keys it reads as zeros, as the interpreter.
    """

    _undefined = _in_keys = False

    @override
    def _cell(self, index: ir.Expression, size: int, arguments: Mapping[str, int], packet: PacketState) -> int:
        self._undefined |= packet.evaluate(index, arguments)[0] >= size
        return super()._cell(index, size, arguments, packet)

    @override
    def _execute(self, statement: ir.Statement, arguments: Mapping[str, int], packet: PacketState) -> None:
        if isinstance(statement, ir.MeterPacket):
            self._cell(statement.index, self._program.meter(statement.meter).size, arguments, packet)
        super()._execute(statement, arguments, packet)

    @override
    def _apply(self, node: ir.ApplyTable, table: ir.Table, packet: PacketState) -> None:
        self._in_keys = True
        super()._apply(node, table, packet)

    @override
    def _looked_up(
        self, table: ir.Table, values: list[int], packet: PacketState
    ) -> tuple[ir.Action, Mapping[str, int], bool]:
        self._in_keys = False
        return super()._looked_up(table, values, packet)

    def defined(self, frame: bytes) -> PacketOutcome | None:
        """The outcome of a packet; None, and nothing has happened, if it is undefined."""
        before, read = self.snapshot(), PacketState.read

        def noticed(packet: PacketState, ref: ir.FieldRef) -> int:
            self._undefined |= ref.header not in (ir.METADATA, *packet.valid) and not self._in_keys
            return read(packet, ref)

        self._undefined = False
        with patch.object(PacketState, "read", noticed):
            outcome = self.run(frame, 0)
        if self._undefined:
            self.restore(before)
            return None
        return outcome


def agreement(path: Path, folder: Path, packets: int = PACKETS) -> tuple[int, list[str]]:
    """How many packets were compared, and what simple_switch does otherwise than the interpreter.

    Raises:
        DataError: the program is not read.
        ValueError: it decides by what is not known.
        RecursionError: a packet never leaves it.
    """
    root, test = parse_json(path.read_text(), str(path)), path.with_suffix(".stf")
    found = stf.read(test, root) if test.exists() else stf.PacketTest()
    compiled, plane = read_v1model(root), found.plane
    program = read_v1model(root, plane)
    small = {t.name: Fill(t.size) for t in program.tables if len(t.listing) < t.size < ENTRIES and t.keys}
    program = filled(program, small, default=ENTRIES)
    given = [data for port, data in found.packets if port == 0] + list(frames(program, packets))
    interpreter = _Defined(program)
    outcomes = [(frame, outcome) for frame in given if (outcome := interpreter.defined(frame)) is not None]
    commands = list(simple_switch.commands(root, program, plane, compiled))
    return len(outcomes), differences(path, folder, commands, outcomes)


def differences(
    path: Path, folder: Path, commands: list[str], outcomes: Sequence[tuple[bytes, PacketOutcome]]
) -> list[str]:
    ports = sorted({*range(PORTS), *(s.port for _, outcome in outcomes for s in outcome.sent)})
    found = []
    folder.mkdir(parents=True)
    with simple_switch.SimpleSwitch(path, folder, ports, commands) as switch:
        for n, (frame, outcome) in enumerate(outcomes):
            left, wanted = sorted(switch.send(frame)), sorted(outcome.sent, key=lambda s: (s.port, s.data))
            if len(left) != len(wanted) or not all(map(_same, left, wanted)):
                shown = [(port, data.hex()) for port, data in left], [(s.port, s.data.hex()) for s in wanted]
                found.append(f"packet {n} {frame.hex()}: {shown[0]} instead of {shown[1]}")
    return found


def _same(left: tuple[int, bytes], wanted: Sent) -> bool:
    port, data = left
    known = wanted.known or b"\xff" * len(wanted.data)
    return (port, len(data)) == (wanted.port, len(wanted.data)) and all(
        a & mask == b & mask for a, b, mask in zip(data, wanted.data, known, strict=True)
    )


def compared(paths: Sequence[Path], folder: Path) -> tuple[int, dict[str, list[str]]]:
    """How many packets of some programs were compared, and what the programs do otherwise."""
    total, found = 0, {}
    for path in paths:
        try:
            packets, wrong = agreement(path, folder / path.stem)
        except (DataError, ValueError, RecursionError):
            continue  # what is not read or not decided is counted by other tests
        total += packets
        found |= {path.stem: wrong} if wrong else {}
    return total, found


@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/data/p4c_samples is not here")
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_samples_of_p4c(first, tmp_path):
    """Every sixteenth of them in the short test, the others in the thorough one."""
    read = [p for p in sorted(SAMPLES.glob("*.json")) if p.stem not in DIES]
    paths = [p for n, p in enumerate(read) if (n % 16 == 0) == (first == 0)]
    packets, found = compared(paths, tmp_path)
    assert found == {}
    assert packets >= 0.9 * PACKETS * len(paths)


def test_the_examples(tmp_path):
    packets, found = compared(sorted(EXAMPLES.glob("*/*.json")), tmp_path)
    assert found == {}
    assert packets >= 9 * PACKETS


def test_another_program_is_noticed(tmp_path):
    path = EXAMPLES / "l2_switch/l2_switch.json"
    program = filled(read_v1model(parse_json(path.read_text(), str(path))), {}, default=ENTRIES)
    outcomes = [(frame, Interpreter(program).run(frame, 0)) for frame in frames(program, 20)]
    spoilt = [(frame, PacketOutcome(tuple(Sent(s.port, s.data + b"!") for s in o.sent))) for frame, o in outcomes]
    root = parse_json(path.read_text(), str(path))
    commands = list(simple_switch.commands(root, program, ControlPlane(), read_v1model(root)))
    sent = sum(bool(o.sent) for _, o in outcomes)
    assert len(differences(path, tmp_path / "spoilt", commands, spoilt)) == sent > 0
