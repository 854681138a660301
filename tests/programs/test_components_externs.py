"""Components of externs and packet paths, against sums, counts and copies worked out here."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.component_runs import ETHERNET, OTHER, generated, program_of, sent, through, workload_of

from p4perf.errors import CapabilityError
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import frame

few = settings(max_examples=40)

SIZES = st.integers(1, 40).map(lambda n: 4 * n)


def checksum(data: bytes) -> int:
    """The internet checksum, by adding 16-bit words with the carry around at each step."""
    total = 0
    for at in range(0, len(data), 2):
        total += data[at] * 256 + data[at + 1]
        if total > 0xFFFF:
            total -= 0xFFFF
    return 0xFFFF - total


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit: the polynomial 0x8005 with the bits of every byte and of the result turned round."""
    register = 0
    for byte in data:
        for bit in range(8):
            out = (register >> 15) ^ (byte >> bit & 1)
            register = (register << 1 & 0xFFFF) ^ (0x8005 if out else 0)
    return int(f"{register:016b}"[::-1], 2)


ALGORITHMS: dict[str, Any] = {"crc16": (crc16, 2), "crc32": (zlib.crc32, 4), "checksum16": (checksum, 2)}


@few
@given(st.sampled_from(list(ALGORITHMS)), SIZES, st.integers(0, 4), st.binary(min_size=160, max_size=165))
def test_hashes_go_into_the_first_field(algorithm: str, size: int, repetitions: int, data: bytes) -> None:
    function, width = ALGORITHMS[algorithm]
    hashed = data[:size]
    for n in range(repetitions):
        if n:
            mixed = int.from_bytes(hashed[:width], "big") ^ 0x5A3C
            hashed = mixed.to_bytes(width, "big") + hashed[width:]
        hashed = function(hashed).to_bytes(width, "big") + hashed[width:]
    outcome = through("hash", data, algorithm=algorithm, size_bytes=size, repetitions=repetitions)
    assert sent(outcome) == [(1, hashed + data[size:])]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_hash_shows(algorithm: str) -> None:
    seen = set()
    for repetitions in range(8):
        workload = workload_of("hash", algorithm=algorithm, size_bytes=20, repetitions=repetitions)
        seen.add(Interpreter(workload.program).run(frame(workload.program, workload.packets)).data)
    assert len(seen) == 8


@few
@given(SIZES, st.data())
def test_only_right_checksums_pass(size: int, draw: st.DataObject) -> None:
    data = draw.draw(st.binary(min_size=size - 2, max_size=size - 2))
    right = checksum(data)
    value = draw.draw(st.sampled_from([right, right ^ 1, right ^ 0x8000, 0, 0xFFFF]))
    packet = value.to_bytes(2, "big") + data + b"rest"
    outcome = through("checksum", packet, operation="verify", size_bytes=size)
    assert sent(outcome) == ([(1, packet)] if value == right else [])


@few
@given(SIZES)
def test_the_packets_that_are_sent_have_right_checksums_and_those_that_miss_wrong_ones(size: int) -> None:
    workload = workload_of("checksum", operation="verify", size_bytes=size)
    right, wrong = (generated(workload, drawn)[:size] for drawn in (0, 1))
    # A right checksum makes the sum of the whole header zero, which is 0xFFFF before the complement.
    assert (checksum(right), checksum(wrong) == 0) == (0, False)
    assert right[:-2] == wrong[:-2]
    interpreter = Interpreter(workload.program)
    assert interpreter.run(ETHERNET + right).sent
    assert not interpreter.run(ETHERNET + wrong).sent


@few
@given(SIZES, st.binary(min_size=160, max_size=165))
def test_checksums_are_updated(size: int, data: bytes) -> None:
    expected = checksum(data[2:size]).to_bytes(2, "big") + data[2:]
    assert sent(through("checksum", data, operation="update", size_bytes=size)) == [(1, expected)]
    workload = workload_of("checksum", operation="update", size_bytes=size)
    before = generated(workload)
    assert Interpreter(workload.program).run(ETHERNET + before).data[14:16] != before[:2]


def test_an_update_has_no_hits() -> None:
    with pytest.raises(CapabilityError, match="whether the checksum was right") as refused:
        program_of("checksum", operation="update", size_bytes=8, hit_ratio=0.5)
    assert refused.value.key == "program.parameters.hit_ratio"
    assert refused.value.hint


indices = st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 9), max_size=12)


@few
@given(st.integers(0, 5), st.sampled_from([1, 2, 8, 64]), indices)
def test_counters_count(updates: int, size: int, chosen: list[int]) -> None:
    program = program_of("counter", updates=updates, size=size)
    interpreter = Interpreter(program)
    for index in chosen:
        packet = index.to_bytes(4, "big") + b"rest"
        assert sent(interpreter.run(ETHERNET + packet)) == [(1, packet)]
    assert len(program.counters) == updates
    for counter in program.counters:
        assert interpreter.state(counter.name) == Counter(index % size for index in chosen)


@few
@given(st.integers(0, 6), st.binary(min_size=28, max_size=30))
def test_meters_write_green(executions: int, data: bytes) -> None:
    expected = data[:4] + bytes(4 * executions) + data[4 + 4 * executions :]
    assert sent(through("meter", data, executions=executions, size=8)) == [(1, expected)]
    before = generated(workload_of("meter", executions=executions, size=8))
    assert all(any(before[4 + 4 * n : 8 + 4 * n]) for n in range(executions))


@few
@given(
    st.sampled_from(["read", "write", "read_write"]),
    st.integers(0, 4),
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from([1, 4, 16]),
    st.lists(st.tuples(st.integers(0, 40), st.binary(min_size=32, max_size=32)), max_size=8),
)
def test_registers(operation: str, accesses: int, bits: int, size: int, packets: list[tuple[int, bytes]]) -> None:
    program = program_of("register", operation=operation, accesses=accesses, width_bits=bits, size=size)
    interpreter = Interpreter(program)
    width = bits // 8
    arrays = [[0] * size for _ in range(accesses)]
    for index, data in packets:
        fields = []
        for n, cells in enumerate(arrays):
            value = int.from_bytes(data[n * width : (n + 1) * width], "big")
            if operation == "read":
                value = cells[index % size]
            elif operation == "read_write":
                value = (cells[index % size] + 1) % 2**bits
            if operation != "read":
                cells[index % size] = value
            fields.append(value.to_bytes(width, "big"))
        head = index.to_bytes(4, "big")
        expected = head + b"".join(fields) + data[accesses * width :]
        assert sent(interpreter.run(ETHERNET + head + data)) == [(1, expected)]
    for register, cells in zip(program.registers, arrays, strict=True):
        assert interpreter.state(register.name) == {n: value for n, value in enumerate(cells) if value}


@pytest.mark.parametrize("name", ["counter", "meter", "register"])
def test_packets_run_over_all_cells_of_an_array_whose_size_is_a_power_of_two(name: str) -> None:
    first = {"counter": "updates", "meter": "executions", "register": "accesses"}[name]
    workload = workload_of(name, **{first: 1, "size": 16})
    (varying,) = workload.packets.varying
    assert varying.count == 16
    assert [generated(workload, n)[:4] for n in range(16)] == [n.to_bytes(4, "big") for n in range(16)]
    with pytest.raises(CapabilityError, match="array of 1000 cells") as refused:
        program_of(name, **{first: 1, "size": 1000})
    assert refused.value.key == "program.parameters.size"
    assert refused.value.hint == "use 512 or 1024"


@few
@given(st.integers(0, 6), st.integers(1, 6), st.sampled_from([8, 16, 32]), st.binary(min_size=24, max_size=30))
def test_random_numbers_hide_their_bytes_and_no_others(numbers: int, fields: int, bits: int, data: bytes) -> None:
    if numbers > fields:
        with pytest.raises(CapabilityError, match=f"{numbers} numbers"):
            program_of("random", numbers=numbers, fields=fields, width_bits=bits)
        return
    (out,) = through("random", data, numbers=numbers, fields=fields, width_bits=bits).sent
    hidden = numbers * bits // 8
    assert len(out.data) == 14 + len(data)
    assert out.data[14 + hidden :] == data[hidden:]
    assert out.known == (b"\xff" * 14 + bytes(hidden) + b"\xff" * (len(data) - hidden) if numbers else None)


@few
@given(st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_every_recirculation_is_counted_in_the_packet(times: int, before: int) -> None:
    after = (before + times + 1) % 2**32
    packet = before.to_bytes(4, "big") + b"rest"
    assert sent(through("recirculate", packet, times=times)) == [(1, after.to_bytes(4, "big") + b"rest")]


@few
@given(st.integers(0, 255), st.integers(0, 2**32 - 1))
def test_the_last_resubmission_leaves_its_number(times: int, before: int) -> None:
    after = (before + times) % 2**32
    packet = before.to_bytes(4, "big") + b"rest"
    assert sent(through("resubmit", packet, times=times)) == [(1, after.to_bytes(4, "big") + b"rest")]


@few
@given(st.integers(0, 32), st.integers(0, 2**32 - 1))
def test_clones_are_as_the_packet_came(copies: int, before: int) -> None:
    packet = before.to_bytes(4, "big") + b"rest"
    marked = ((before + 1) % 2**32).to_bytes(4, "big") + b"rest"
    expected = [(1, marked), *((2 + n, packet) for n in range(copies))]
    assert sent(through("clone", packet, copies=copies, marked=True)) == expected


@few
@given(st.integers(0, 32), st.integers(0, 2**32 - 1))
def test_multicast_copies_are_as_the_deparser_made_them(ports: int, before: int) -> None:
    marked = ((before + 1) % 2**32).to_bytes(4, "big") + b"rest"
    outcome = through("multicast", before.to_bytes(4, "big") + b"rest", ports=ports)
    assert sent(outcome) == [(port, marked) for port in range(1, max(ports, 1) + 1)]


@pytest.mark.parametrize(
    ("name", "parameters", "copies"),
    [
        ("hash", {"size_bytes": 8}, 1),
        ("checksum", {"size_bytes": 8}, 1),
        ("checksum", {"size_bytes": 8, "operation": "update"}, 1),
        ("counter", {"updates": 2}, 1),
        ("meter", {"executions": 2}, 1),
        ("register", {"accesses": 2, "operation": "read_write"}, 1),
        ("random", {"numbers": 2}, 1),
        ("recirculate", {"times": 2}, 1),
        ("resubmit", {"times": 2}, 1),
        ("clone", {"copies": 2}, 3),
        ("multicast", {"ports": 2}, 2),
    ],
)
def test_packets_without_the_header_pass_unchanged_and_short_ones_are_dropped(
    name: str, parameters: dict[str, Any], copies: int
) -> None:
    interpreter = Interpreter(program_of(name, **parameters))
    assert [s.data for s in interpreter.run(OTHER + b"rest").sent] == [OTHER + b"rest"] * copies
    assert interpreter.run(ETHERNET + b"r").sent == ()
