"""Components of actions and control flow, against arithmetic done here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.component_runs import ETHERNET, OTHER, generated, program_of, sent, through, workload_of

from p4perf.errors import CapabilityError
from p4perf.programs.analysis import needs_restore, nesting_depth
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import Const

few = settings(max_examples=40)


def test_writes_write_the_fields_in_order() -> None:
    body = program_of("header_field_writes", writes=3, fields=5, operation="set").action("write_fields").body
    assert [(s.destination.field, s.value) for s in body] == [(f"f{n}", Const(255)) for n in range(3)]  # type: ignore[union-attr]
    with pytest.raises(CapabilityError, match="6 writes"):
        program_of("header_field_writes", writes=6, fields=5)


@few
@given(st.integers(0, 8), st.sampled_from([8, 16, 32]), st.binary(min_size=32, max_size=40))
def test_increments(writes: int, bits: int, data: bytes) -> None:
    size = bits // 8
    fields = [int.from_bytes(data[n * size : (n + 1) * size], "big") for n in range(8)]
    fields = [(f + 1) % 2**bits if n < writes else f for n, f in enumerate(fields)]
    expected = b"".join(f.to_bytes(size, "big") for f in fields) + data[8 * size :]
    assert sent(through("header_field_writes", data, writes=writes, fields=8, field_bits=bits)) == [(1, expected)]


@few
@given(st.integers(0, 60), st.sampled_from([8, 16, 32]), st.binary(min_size=8, max_size=12))
def test_a_chain_of_metadata_ends_in_the_packet(writes: int, bits: int, data: bytes) -> None:
    size, mask = bits // 8, 2**bits - 1
    value = int.from_bytes(data[:size], "big")
    for n in range(writes):
        value = value ^ (0x5A5A5A5A & mask) if n % 2 else (value + 0x9E3779B1) & mask
    expected = data[:size] + value.to_bytes(size, "big") + data[2 * size :]
    assert sent(through("metadata_writes", data, writes=writes, field_bits=bits)) == [(1, expected)]
    assert len(program_of("metadata_writes", writes=writes, field_bits=bits).metadata) == writes


def test_published_metadata_writes_are_constants_that_nobody_reads() -> None:
    program = program_of("metadata_writes", writes=5, operation="set")
    *writes, last = program.action("write_metadata").body
    assert [w.value for w in writes] == [Const(255)] * 5  # type: ignore[union-attr]
    assert sent(through("metadata_writes", bytes(range(8)), writes=5, operation="set")) == [
        (1, bytes((0, 1, 2, 3) * 2))
    ]
    assert last.value.field == "seed"  # type: ignore[union-attr]


@few
@given(
    st.integers(0, 60),
    st.sampled_from(["+", "-", "&", "|", "^"]),
    st.sampled_from([8, 16, 32, 48, 64]),
    st.binary(min_size=16, max_size=20),
)
def test_operations_follow_one_another(operations: int, operator: str, bits: int, data: bytes) -> None:
    size, modulus = bits // 8, 2**bits
    value, operand = (int.from_bytes(data[at : at + size], "big") for at in (0, size))
    mixed = int.from_bytes(bytes.fromhex("5a3c96b5e1872dfe")[-size:], "big")
    for _ in range(operations):
        if operator in "+-":
            value = ((value + operand if operator == "+" else value - operand) % modulus) ^ mixed
        else:
            value = {"&": value & operand, "|": value | operand, "^": value ^ operand}[operator]
            value = (value + mixed) % modulus
    expected = value.to_bytes(size, "big") + data[size:]
    outcome = through("arithmetic", data, operations=operations, operator=operator, width_bits=bits)
    assert sent(outcome) == [(1, expected)]


@pytest.mark.parametrize("operator", ["+", "-", "&", "|", "^"])
@pytest.mark.parametrize("width_bits", [8, 16, 32, 48, 64])
def test_every_operation_shows_in_the_packets_that_are_sent(operator: str, width_bits: int) -> None:
    seen = set()
    for operations in range(100):
        workload = workload_of("arithmetic", operations=operations, operator=operator, width_bits=width_bits)
        seen.add(Interpreter(workload.program).run(ETHERNET + generated(workload)).data)
    assert len(seen) == 100


def conditionals_of(count: int, nested: bool, taken: float) -> tuple[list[bool], int]:
    """Which conditionals the packets of a load generator meet, and the value that remains."""
    value, held = 0x12345678, []
    for n in range(count):
        holds = n < round(taken * count) if nested else int((n + 1) * taken) > int(n * taken)
        held.append(holds)
        value = (value + 0x9E3779B1) % 2**32 ^ 0x5A5A5A5A if holds else ((value ^ 0x5A5A5A5A) + 0x9E3779B1) % 2**32
        if nested and not holds:
            break
    return held, value


@few
@given(st.integers(0, 64), st.booleans(), st.floats(0, 1))
def test_packets_take_the_share_of_conditionals_that_was_asked_for(count: int, nested: bool, taken: float) -> None:
    workload = workload_of("conditionals", conditionals=count, nested=nested, taken=taken)
    held, value = conditionals_of(count, nested, taken)
    assert abs(sum(held) - taken * count) <= 1
    ((port, data),) = sent(Interpreter(workload.program).run(ETHERNET + generated(workload)))
    assert (port, data[:8].hex()) == (1, f"12345678{value:08x}")
    assert nesting_depth(workload.program.control) == (count if nested else min(count, 1))
    assert not needs_restore(workload.program)


@pytest.mark.parametrize("nested", [False, True])
def test_each_conditional_shows(nested: bool) -> None:
    seen = set()
    for count in range(20):
        workload = workload_of("conditionals", conditionals=count, nested=nested, taken=1.0)
        seen.add(Interpreter(workload.program).run(ETHERNET + generated(workload)).data)
    assert len(seen) == 20


def test_conditionals_compare_at_the_edge() -> None:
    """One more and the first conditional does not hold any more."""
    outcomes = [through("conditionals", given.to_bytes(4, "big") + bytes(4), conditionals=1, taken=1.0)
                for given in (0x12345677, 0x12345678, 0x12345679)]  # fmt: skip
    added = [((v + 0x9E3779B1) % 2**32) ^ 0x5A5A5A5A for v in (0x12345677, 0x12345678)]
    other = ((0x12345679 ^ 0x5A5A5A5A) + 0x9E3779B1) % 2**32
    assert [int.from_bytes(o.data[18:22], "big") for o in outcomes] == [*added, other]


def test_conditionals_are_nested_only_so_deep() -> None:
    program_of("conditionals", conditionals=1024)
    program_of("conditionals", conditionals=64, nested=True)
    with pytest.raises(CapabilityError, match="65 conditionals") as refused:
        program_of("conditionals", conditionals=65, nested=True)
    assert refused.value.key == "program.parameters.conditionals"
    assert refused.value.hint


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("header_field_writes", {"writes": 4}),
        ("metadata_writes", {"writes": 4}),
        ("arithmetic", {"operations": 4}),
        ("conditionals", {"conditionals": 4}),
    ],
)
def test_packets_without_the_header_pass_unchanged_and_short_ones_are_dropped(
    name: str, parameters: dict[str, int]
) -> None:
    interpreter = Interpreter(program_of(name, **parameters))
    assert interpreter.run(OTHER + b"rest").data == OTHER + b"rest"
    assert interpreter.run(ETHERNET + b"r").sent == ()
