"""The verification file: its layout, and that it says what the interpreter says."""

import struct
import sys
from dataclasses import dataclass

import pytest

from p4perf.errors import CapabilityError
from p4perf.programs.component import build_workload
from p4perf.programs.interpreter import Interpreter, Sent, unknown
from p4perf.programs.operators import STANDARD_HASHES, crc32c_raw
from p4perf.programs.packets import frame, headers_size_bytes
from p4perf.targets.oracle import PACKETS, state_sum, verification_file

PREFIX = "<" if sys.byteorder == "little" else ">"


@dataclass(frozen=True)
class Packet:
    data: bytes
    outputs: tuple[Sent, ...]

    @property
    def port(self):
        """The port, -1 if the packet was dropped."""
        assert len(self.outputs) < 2
        return self.outputs[0].port if self.outputs else -1


class Reader:
    """Takes a file apart; at the end nothing may be left over or missing."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def bytes(self, size):
        piece = self.content[self.at : self.at + size]
        assert len(piece) == size
        self.at += size
        return piece

    def numbers(self, layout):
        return struct.unpack(PREFIX + layout, self.bytes(struct.calcsize(PREFIX + layout)))

    def output(self, masks):
        port, length = self.numbers("HH")
        data = self.bytes(length)
        mask = self.bytes(length) if masks else b"\xff" * length
        return Sent(port, data, None if mask == b"\xff" * length else mask)


def read(content):
    """Packets, table hits and states of a verification file."""
    reader = Reader(content)
    assert reader.bytes(8) == b"P4PVRFY2"
    packets, tables, states, masks = reader.numbers("IIII")
    assert masks in (0, 1)
    found = []
    for _ in range(packets):
        length, outputs = reader.numbers("HH")
        data = reader.bytes(length)
        found.append(Packet(data, tuple(reader.output(masks) for _ in range(outputs))))
    assert bool(masks) == any(s.known is not None for p in found for s in p.outputs)
    hits, sums = reader.numbers(f"{tables}Q"), reader.numbers(f"{states}Q")
    assert reader.at == len(content)
    return found, hits, sums


WORKLOADS = {
    "baseline": ([("l2fwd", {})], 64),
    "table": ([("match_action_table", {"entries": 100})], 64),
    "one entry": ([("match_action_table", {"entries": 1, "key_bits": 512})], 128),
    "full byte": ([("match_action_table", {"entries": 256, "key_bits": 8})], 64),
    "half misses": ([("match_action_table", {"entries": 128, "key_bits": 8, "hit_ratio": 0.5})], 64),
    "lpm": ([("match_action_table", {"entries": 50, "key_bits": 32, "match_kind": "lpm"})], 64),
    "two ternary tables": ([("match_action_table", {"entries": 9, "match_kind": "ternary", "tables": 2})], 64),
    "headers": ([("parser_headers", {"headers": 8})], 64),
    "branches": ([("parser_branches", {"branches": 5})], 64),
    "added": ([("added_headers", {"headers": 5, "header_bytes": 9})], 64),
    "removed": ([("removed_headers", {"removed": 5})], 64),
    "writes": ([("header_field_writes", {"writes": 10})], 128),
    "hash": ([("hash", {"size_bytes": 16})], 64),
    "checksum": ([("checksum", {"size_bytes": 16})], 64),
    "counter": ([("counter", {"updates": 2, "size": 64})], 64),
    "register": ([("register", {"accesses": 2, "size": 64, "operation": "read_write"})], 64),
    "random": ([("random", {"numbers": 3})], 128),
    "recirculate": ([("recirculate", {"times": 3})], 64),
    "clone": ([("clone", {"copies": 2})], 64),
    "multicast": ([("multicast", {"ports": 3})], 64),
}


@pytest.fixture(params=WORKLOADS)
def workload(request):
    components, size = WORKLOADS[request.param]
    return build_workload(components, frame_size_bytes=size)


def test_every_outcome_is_that_of_the_interpreter(workload):
    packets, hits, sums = read(verification_file(workload))
    assert len(packets) == PACKETS
    interpreter = Interpreter(workload.program, given=unknown)
    counted = dict.fromkeys((t.name for t in workload.program.tables), 0)
    for packet in packets:
        outcome = interpreter.run(packet.data)
        assert packet.outputs == outcome.sent
        assert [s.port for s in packet.outputs] == sorted(s.port for s in packet.outputs)
        for name in outcome.hits:
            counted[name] += 1
    assert hits == tuple(counted.values())
    assert sums == tuple(state_sum(interpreter.state(name)) for name in workload.program.states)


def test_some_packets_are_cut_short_and_dropped(workload):
    packets, _, _ = read(verification_file(workload))
    whole = len(frame(workload.program, workload.packets))
    short = [p for p in packets if len(p.data) < whole]
    assert len(short) > PACKETS // 20
    needed = headers_size_bytes(workload.program, workload.packets)
    cut = [p for p in short if len(p.data) < needed]
    assert cut
    # A field that announces no header lets a packet end earlier.
    assert all(not p.outputs for p in cut) or len(workload.program.parser) > len(workload.packets.headers)


def test_both_ends_of_the_table_are_hit_and_what_is_beyond_misses():
    workload = build_workload([("match_action_table", {"entries": 1000})], frame_size_bytes=64)
    packets, (hits,), _ = read(verification_file(workload))
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


def test_free_bits_stay_as_they_are():
    parameters = {"entries": 10, "key_bits": 32, "match_kind": "lpm", "free_bits": 16}
    workload = build_workload([("match_action_table", parameters)], frame_size_bytes=64)
    packets, _, _ = read(verification_file(workload))
    assert {p.data[16:18] for p in packets if len(p.data) == 60} == {b"\xff\xff"}


def test_a_full_key_space_has_no_misses():
    workload = build_workload([("match_action_table", {"entries": 256, "key_bits": 8})], frame_size_bytes=64)
    packets, (hits,), _ = read(verification_file(workload))
    assert hits == sum(len(p.data) >= 14 + 1 + 4 for p in packets)


def test_wrong_checksums_are_among_the_packets():
    workload = build_workload([("checksum", {"size_bytes": 16})], frame_size_bytes=64)
    whole = [p for p in read(verification_file(workload))[0] if len(p.data) == 60]
    dropped = sum(not p.outputs for p in whole)
    assert len(whole) * 0.35 < dropped < len(whole) * 0.6


def test_all_branches_are_taken():
    workload = build_workload([("parser_branches", {"branches": 20})], frame_size_bytes=64)
    whole = [p for p in read(verification_file(workload))[0] if len(p.data) == 60]
    assert {int.from_bytes(p.data[14:16], "big") for p in whole} == set(range(40))


def test_a_target_with_other_hashes_is_held_against_these():
    workload = build_workload([("hash", {"size_bytes": 16})], frame_size_bytes=64)
    own = tuple((dict(STANDARD_HASHES) | {"crc32": crc32c_raw}).items())
    packets, _, _ = read(verification_file(workload, hashes=own))
    (out,) = packets[0].outputs
    assert out.data[14:18] == crc32c_raw(packets[0].data[14:30]).to_bytes(4, "big")
    assert verification_file(workload, hashes=own) != verification_file(workload)


def test_the_sum_of_a_state_depends_on_place_and_value():
    assert state_sum({}) == state_sum({3: 0}) == 0
    assert state_sum({0: 5}) == 5
    assert state_sum({2: 5, 0: 1}) == 16
    assert state_sum({0: 2**64 - 1, 1: 1}) == 1


def test_the_file_is_the_same_every_time_and_another_for_another_seed(workload):
    first = verification_file(workload)
    verification_file.cache_clear()
    assert verification_file(workload) == first
    assert verification_file(workload, seed=2) != first


def test_a_table_of_ten_million_entries_takes_no_time():
    workload = build_workload([("match_action_table", {"entries": 10**7})], frame_size_bytes=64)
    assert len(verification_file(workload, packets=64)) < 20_000


def test_packets_that_come_back_without_end_are_refused(monkeypatch):
    monkeypatch.setattr("p4perf.programs.interpreter.MAX_PASSES", 2)
    with pytest.raises(CapabilityError, match=r"what becomes of a packet is not known: .* more than 2 times"):
        verification_file(build_workload([("recirculate", {"times": 5})], frame_size_bytes=68))
