"""The verification file: its layout, and that it says what the interpreter says."""

import struct
import sys
from dataclasses import dataclass

import pytest

from p4perf.generators.interpreter import Interpreter
from p4perf.generators.packets import frame, headers_size_bytes
from p4perf.generators.workload import build_workload
from p4perf.targets.oracle import PACKETS, verification_file

PREFIX = "<" if sys.byteorder == "little" else ">"


@dataclass(frozen=True)
class Packet:
    data: bytes
    expected: bytes
    port: int


def read(content):
    """Packets and table hits of a verification file; fails if a byte is left over or missing."""
    assert content[:8] == b"P4PVRFY1"
    packets, tables = struct.unpack_from(PREFIX + "II", content, 8)
    at, found = 16, []
    for _ in range(packets):
        length_in, length_out, port = struct.unpack_from(PREFIX + "HHi", content, at)
        at += 8
        found.append(Packet(content[at : at + length_in], content[at + length_in : at + length_in + length_out], port))
        at += length_in + length_out
    hits = struct.unpack_from(PREFIX + f"{tables}Q", content, at)
    assert at + 8 * tables == len(content)
    return found, hits


WORKLOADS = {
    "baseline": ([("l2fwd", {})], 64),
    "table": ([("match_action_table", {"entries": 100})], 64),
    "one entry": ([("match_action_table", {"entries": 1, "key_bits": 512})], 128),
    "full byte": ([("match_action_table", {"entries": 256, "key_bits": 8})], 64),
    "half misses": ([("match_action_table", {"entries": 128, "key_bits": 8, "hit_ratio": 0.5})], 64),
    "headers": ([("parser_headers", {"headers": 8})], 64),
    "writes": ([("header_field_writes", {"writes": 10})], 128),
}


@pytest.fixture(params=WORKLOADS)
def workload(request):
    components, size = WORKLOADS[request.param]
    return build_workload(components, frame_size_bytes=size)


def test_every_outcome_is_that_of_the_interpreter(workload):
    packets, hits = read(verification_file(workload))
    assert len(packets) == PACKETS
    interpreter = Interpreter(workload.program)
    counted = dict.fromkeys((t.name for t in workload.program.tables), 0)
    for packet in packets:
        outcome = interpreter.run(packet.data)
        assert packet.expected == outcome.data
        assert packet.port == (-1 if outcome.port is None else outcome.port)
        for name in outcome.hits:
            counted[name] += 1
    assert hits == tuple(counted.values())


def test_some_packets_are_cut_short_and_dropped(workload):
    packets, _ = read(verification_file(workload))
    whole = len(frame(workload.program, workload.packets))
    short = [p for p in packets if len(p.data) < whole]
    assert len(short) > PACKETS // 20
    needed = headers_size_bytes(workload.program, workload.packets)
    assert any(len(p.data) < needed for p in short)
    assert all(p.port == -1 for p in short if len(p.data) < needed)


def test_both_ends_of_the_table_are_hit_and_what_is_beyond_misses():
    workload = build_workload([("match_action_table", {"entries": 1000})], frame_size_bytes=64)
    packets, (hits,) = read(verification_file(workload))
    whole = [p for p in packets if len(p.data) >= 14 + 16 + 4]
    foreign = [p for p in whole if p.data[12:14] == b"\x08\x00"]
    keys = [int.from_bytes(p.data[14:30], "big") for p in whole if p.data[12:14] == b"\x88\xb5"]
    assert len(keys) + len(foreign) == len(whole)
    assert len(foreign) > 50
    assert keys[:3] == [0, 999, 1000]
    assert [p.port for p in packets[:3]] == [1, 1, -1]
    missed = sum(k >= 1000 for k in keys)
    assert len(keys) * 0.4 < missed < len(keys) * 0.6
    # The key of a header that was not extracted reads as zero, which is entry 0.
    assert hits == len(keys) - missed + len(foreign)


def test_a_full_key_space_has_no_misses():
    workload = build_workload([("match_action_table", {"entries": 256, "key_bits": 8})], frame_size_bytes=64)
    packets, (hits,) = read(verification_file(workload))
    assert hits == sum(len(p.data) >= 14 + 1 + 4 for p in packets)


def test_the_file_is_the_same_every_time_and_another_for_another_seed(workload):
    first = verification_file(workload)
    verification_file.cache_clear()
    assert verification_file(workload) == first
    assert verification_file(workload, seed=2) != first


def test_a_table_of_ten_million_entries_takes_no_time():
    workload = build_workload([("match_action_table", {"entries": 10**7})], frame_size_bytes=64)
    assert len(verification_file(workload, packets=64)) < 20_000
