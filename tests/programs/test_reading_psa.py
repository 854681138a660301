"""Programs for PSA, as JSON of p4c-bm2-psa; ``tests/data/psa_parts.json`` is made of the P4 text beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p4perf.errors import DataError
from p4perf.programs import ir
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import STANDARD_HASHES
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.text import parse_program, read_program

PARTS = Path(__file__).parents[1] / "data/psa_parts.json"

ENTRIES = """
mirroring_add 8 9
mc_mgrp_create 3
mc_node_create 7 1 2
mc_node_associate 3 0
table_add hosts forward 00:00:00:00:00:01 => 4
table_add hosts flood 00:00:00:00:00:02 =>
table_add hosts again 00:00:00:00:00:03 =>
table_add hosts copy 00:00:00:00:00:04 => 4
table_add hosts round 00:00:00:00:00:05 =>
table_add hosts sum 00:00:00:00:00:06 => 4
table_add hosts forward 00:00:00:00:00:07 => 600
"""


def parts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PARTS.read_text())
    return found


def program(root: dict[str, Any] | None = None) -> ir.Program:
    parsed = parse_program(json.dumps(root or parts()), "psa.json")
    return read_program(parsed, parse_control_plane(ENTRIES, "entries", parsed) if root is None else ControlPlane())


def frame(destination: int, note: str = "00000000 0000 0000") -> bytes:
    return bytes.fromhex(f"{destination:012x} 000000000009 1234 {note} abcd")


@pytest.mark.parametrize(
    ("destination", "wanted"),
    [
        (0, {}),  # nothing says where to: dropped
        (1, {4: "00000000 0000 0000"}),
        (2, {1: "00000000 0007 0000", 2: "00000000 0007 0000"}),
        (3, {5: "00000000 0005 0000"}),
        (4, {4: "00000000 0000 0000", 9: "00000000 0003 0000"}),
        (5, {6: "fffffffa 0000 0000"}),
        (6, {4: f"00000000 0000 {STANDARD_HASHES['crc16'](frame(6)[:12]):04x}"}),
        (7, {}),  # there is no such port
    ],
)
def test_what_becomes_of_packets(destination: int, wanted: dict[int, str]) -> None:
    sent = Interpreter(program()).run(frame(destination)).sent
    assert {s.port: s.data for s in sent} == {port: frame(destination, note) for port, note in wanted.items()}


def test_counters_and_registers() -> None:
    interpreter = Interpreter(program())
    for _ in range(2):
        last = interpreter.run(frame(1)).data
    assert last == frame(1, "00000000 0000 1234")
    assert [dict(interpreter.state(name)) for name in interpreter._program.states] == [{1: 2}, {0: 0x1234}]


def without_egress(root: dict[str, Any]) -> None:
    root["pipelines"][1] |= {"init_table": None, "conditionals": [], "tables": []}


@pytest.mark.parametrize(
    ("kept", "refused"), [(("ethernet", "note"), False), ((), False), (("note",), False), (("note", "ethernet"), True)]
)
def test_an_egress_that_only_parses(kept: tuple[str, ...], refused: bool) -> None:
    """It may be left out if its deparser puts together what it takes apart."""
    root = parts()
    without_egress(root)
    ops = root["parsers"][1]["parse_states"][0]["parser_ops"]
    named = {op["parameters"][0]["value"]: op for op in ops}
    root["parsers"][1]["parse_states"][0]["parser_ops"] = [named[name] for name in kept]
    if refused:
        with pytest.raises(DataError, match="egress with a parser of its own"):
            program(root)
    else:
        assert program(root).egress == ()


def test_an_egress_that_parses_otherwise_is_refused() -> None:
    root = parts()
    root["parsers"][1]["parse_states"][0]["parser_ops"].pop()
    with pytest.raises(DataError, match="egress with a parser of its own") as caught:
        program(root)
    assert caught.value.key == "/parsers/1"
