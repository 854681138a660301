"""Specifications of SWX as programs: what they mean, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.swx_programs import entries_by_rule

from p4perf.errors import DataError
from p4perf.formats.swx_spec import read_specification
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes
from p4perf.programs.component import build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import STANDARD_HASHES, crc16, crc32c_raw
from p4perf.programs.packets import frame
from p4perf.programs.reading.control_plane import parse_control_plane
from p4perf.programs.reading.swx import read_swx

SPECIFICATIONS = Path(__file__).parents[3] / "shared/data/p4c_specs"
HASHES = {**STANDARD_HASHES, "crc32": crc32c_raw}

HEAD = """
struct small_t {
	bit<16> a
	bit<8> b
	bit<8> c
	bit<32> d
}
struct tail_t {
	bit<16> e
	bit<16> f
}
header small instanceof small_t
header tail instanceof tail_t
struct metadata_t {
	bit<32> port
	bit<8> x
	bit<16> y
	bit<32> z
	bit<64> w
}
metadata instanceof metadata_t
regarray seen size 3 initval 0
struct set_args_t {
	bit<16> value
}
action set args instanceof set_args_t {
	mov m.y t.value
	return
}
action deny args none {
	jmpgt DENY h.small.d 0x10
	return
	DENY : drop
}
action none_ args none {
	return
}
table t {
	key {
		h.small.a exact
	}
	actions {
		set
		deny
		none_ @defaultonly
	}
	default_action none_ args none
	size 0x10
}
"""


def program(apply: str, entries: str = "") -> ir.Program:
    spec = read_specification(f"{HEAD}apply {{\n{apply}\n}}\n", "small.spec")
    return read_swx(spec, parse_control_plane(entries, "entries", spec))


def sent(code: str, frame: bytes, entries: str = "") -> bytes | None:
    """What leaves of a frame, None if it is dropped."""
    text = f"rx m.port\nextract h.small\n{code}\nemit h.small\nemit h.tail\ntx m.port"
    outcome = Interpreter(program(text, entries), HASHES).run(frame).sent
    return outcome[0].data if outcome else None


FRAME = bytes.fromhex("0102 03 04 05060708")


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("mov m.x h.small.a\nmov h.small.d m.x", "0102 03 04 00000002"),
        ("mov h.small.b h.small.a", "0102 02 04 05060708"),
        ("mov h.small.a h.small.b", "0003 03 04 05060708"),
        ("sub h.small.b 0x4", "0102 ff 04 05060708"),
        ("mov m.x 0x41\nshl h.small.d m.x", "0102 03 04 0a0c0e10"),
        ("jmpeq END h.small.b 0x103\nmov h.small.c 0x9\nEND : mov m.x 0x0", "0102 03 04 05060708"),
        ("mov m.x 0x3\njmpeq END m.x 0x103\nmov h.small.c 0x9\nEND : mov m.y 0x0", "0102 03 09 05060708"),
        ("ckadd h.small.a h.small.d", "f4f3 03 04 05060708"),
        ("ckadd h.small.a h.small.b", "fe01 03 04 05060708"),
        ("cksub h.small.a h.small.d", "0d10 03 04 05060708"),
        ("validate h.tail\nmov h.tail.e 0x7", "0102 03 04 05060708 0007 0000"),
        ("invalidate h.small\nvalidate h.tail", "0000 0000"),
    ],
)
def test_what_instructions_do(code: str, wanted: str) -> None:
    assert sent(code, FRAME) == bytes.fromhex(wanted)


def test_memory_is_hashed_as_it_lies_there() -> None:
    code = "mov m.y 0x102\nmov m.z 0x03040506\nhash crc32 m.w m.y m.z\nmov h.small.d m.w"
    assert sent(code, FRAME) == FRAME[:4] + crc32c_raw(bytes.fromhex("0201 06050403")).to_bytes(4, "big")
    for name, function in (("crc32", crc32c_raw), ("crc16", crc16)):
        code = f"hash {name} m.z h.small.a h.small.c\nmov h.small.d m.z"
        assert sent(code, FRAME) == FRAME[:4] + function(FRAME[:4]).to_bytes(4, "big")


@pytest.mark.parametrize("entry", ["table t\nmatch 0x102 action set value 0x5\n", "table_add t set 0x102 => 5\n"])
def test_results_of_tables(entry: str) -> None:
    for jump, hit, miss in (("jmph", b"\x01", b"\x02"), ("jmpa", b"\x01", b"\x02"), ("jmpna", b"\x02", b"\x01")):
        operands = "HIT" if jump == "jmph" else "HIT set"
        code = f"table t\n{jump} {operands}\nmov h.small.c 0x2\njmp END\nHIT : mov h.small.c 0x1\nEND : mov m.x 0x0"
        assert [sent(code, data, entry)[3:4] for data in (FRAME, bytes(8))] == [hit, miss]  # type: ignore[index]


def test_dropping_in_an_action_ends_everything() -> None:
    text = "rx m.port\nextract h.small\ntable t\nregadd seen 0x0 0x1\nemit h.small\ntx m.port"
    interpreter = Interpreter(program(text, "table t\nmatch 0x102 action deny\n"))
    assert interpreter.run(FRAME).sent == ()
    assert len(interpreter.run(FRAME[:4] + bytes(4)).sent) == 1
    assert interpreter.state("seen") == {0: 1}


def test_conditions_one_after_another_are_one() -> None:
    code = "jmpneq NO h.small.a 0x102\njmpneq NO h.small.b 0x3\nmov h.small.c 0x1\njmp END\nNO : mov h.small.c 0x2"
    read = program(f"rx m.port\nextract h.small\n{code}\nEND : emit h.small\ntx m.port")
    (chosen,) = [node for node in control_nodes(read.control) if isinstance(node, ir.If)]
    assert isinstance(chosen.condition, ir.Or | ir.And)
    assert sent(f"{code}\nEND : mov m.x 0x0", FRAME)[3] == 1  # type: ignore[index]
    assert sent(f"{code}\nEND : mov m.x 0x0", bytes(8))[3] == 2  # type: ignore[index]


def test_jumps_before_headers_are_extracted_are_states_of_the_parser() -> None:
    text = (
        "rx m.port\nextract h.small\njmpeq TAIL h.small.b 0x3\njmpeq TAIL h.small.b 0x4\nmov m.x 0x1\njmp END\n"
        "TAIL : extract h.tail\nEND : emit h.small\nemit h.tail\ntx m.port"
    )
    read = program(text)
    assert {state.name: len(state.cases) for state in read.parser}["start"] == 2
    for b, length in ((3, 12), (4, 12), (5, 12)):
        data = FRAME[:2] + bytes([b]) + FRAME[3:] + b"abcd"
        (outcome,) = Interpreter(read).run(data).sent
        assert outcome.data == data[:length]


@pytest.mark.parametrize(
    ("apply", "line", "message"),
    [
        ("rx m.port\nL : mov m.x 0x0\njmp L\ntx m.port", 3, "loops"),
        ("rx m.port\nlearn set m.x", 2, "learn is not supported"),
        ("rx m.port\nmirror m.x m.y\ntx m.port", 2, "mirror is not supported"),
        ("rx m.port\nhash jhash m.z m.x m.y\ntx m.port", 2, "hash function jhash"),
        ("rx m.port\ntable t\nextract h.small\ntx m.port", 2, "before headers are extracted"),
        ("rx m.port\njmph END\nEND : tx m.port", 2, "result of a table"),
        ("rx m.port\nmov m.nothing 0x0\ntx m.port", 2, "no field"),
        ("rx m.port\njmp NOWHERE\ntx m.port", 2, "no label"),
        ("rx m.port\nemit h.small\ninvalidate h.small\ntx m.port", 3, "being sent"),
        ("rx m.port\njmpv L h.tail\nemit h.small\nL : tx m.port", 4, "depends on jumps"),
        ("mov m.x 0x0\ntx m.port", 1, "not rx"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_line(apply: str, line: int, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        program(apply)
    assert caught.value.location is not None
    assert caught.value.location.line == HEAD.count("\n") + 1 + line


def test_jumps_into_branches_do_not_grow_without_end() -> None:
    code = "".join(f"jmpeq L{n} m.x {n}\nmov m.y {n}\njmpeq L{n + 1} m.x {n}\nL{n} : mov m.z {n}\n" for n in range(64))
    with pytest.raises(DataError, match="too many branches"):
        program(f"rx m.port\nextract h.small\n{code}L64 : tx m.port")


COMPONENTS: list[list[tuple[str, dict[str, Any]]]] = [
    [("match_action_table", {"entries": 50, "action_data_bytes": 16})],
    [("parser_headers", {"headers": 3}), ("match_action_table", {"entries": 5, "action_data_bytes": 4})],
    [("header_field_writes", {"writes": 6})],
    [("metadata_writes", {"writes": 3})],
    [("arithmetic", {"operations": 8})],
    [("conditionals", {"conditionals": 4})],
    [("checksum", {"size_bytes": 20})],
    [("checksum", {"size_bytes": 24, "operation": "verify"})],
    [("register", {"accesses": 2})],
    [("hash", {"algorithm": "checksum16", "size_bytes": 20})],
    [("hash", {"algorithm": "crc32", "size_bytes": 20})],
    [("hash", {"algorithm": "crc16", "size_bytes": 20})],
    [("added_headers", {"headers": 2})],
    [("removed_headers", {"removed": 2, "kept": 1})],
    [("recirculate", {"times": 2})],
]


@pytest.mark.parametrize("components", COMPONENTS, ids=lambda c: c[-1][0])
def test_what_is_generated_is_read_again(components: list[tuple[str, dict[str, Any]]]) -> None:
    workload = build_workload(components, frame_size_bytes=128)
    original = workload.program
    text = Pipeline(original, "program", 124).specification()
    spec = read_specification(text, "program.spec")
    rules = [entries_by_rule(text, t.name, t.rule.action, t.entries.count, port=t.rule.port) for t in original.tables]
    read = read_swx(spec, parse_control_plane("".join(rules), "rules", spec))
    for number in (0, 3, 51):
        data = frame(original, workload.packets, number)
        assert Interpreter(read, HASHES).run(data).sent == Interpreter(original, HASHES).run(data).sent


@pytest.mark.skipif(not SPECIFICATIONS.exists(), reason="../shared/data/p4c_specs is not here")
def test_most_specifications_of_p4c_are_read() -> None:
    refused = []
    for path in sorted(SPECIFICATIONS.glob("*.spec")):
        try:
            read_swx(read_specification(path.read_text(), path.name))
        except DataError as error:
            refused.append(error.location)
    assert len(refused) <= 28
    assert all(where is not None and where.line for where in refused)
