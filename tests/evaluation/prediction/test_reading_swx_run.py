"""Packets through specifications of SWX: which way they take, what comes out, and where instructions wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.captures import capture, ethernet, ipv4, udp

from p4perf.errors import DataError
from p4perf.evaluation.prediction.learning.constructs import swx_path
from p4perf.evaluation.prediction.reading import ReadOptions, read_program, shares_of_trace
from p4perf.evaluation.prediction.reading.swx import swx_flow
from p4perf.formats.swx_spec import read_specification
from p4perf.models.program.paths import analyse
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.operators import crc32c_raw
from p4perf.programs.reading.flow import Flow

ROUTER = """
struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> type
}

struct ipv4_t {
	bit<64> before_ttl
	bit<8> ttl
	bit<8> protocol
	bit<16> checksum
	bit<32> src
	bit<32> dst
}

header ethernet instanceof ethernet_t
header ipv4 instanceof ipv4_t

struct metadata_t {
	bit<32> port
	bit<32> key_a
	bit<32> key_b
	bit<32> bucket
	bit<32> seen
}

metadata instanceof metadata_t

struct send_args_t {
	bit<32> port
	bit<48> dst
}

regarray count size 16 initval 0

action send args instanceof send_args_t {
	mov m.port t.port
	mov h.ethernet.dst t.dst
	sub h.ipv4.ttl 0x1
	return
}

action deny args none {
	drop
	return
}

action pass args none {
	return
}

table acl {
	key {
		h.ipv4.src wildcard
		h.ipv4.protocol wildcard
	}
	actions {
		pass
		deny
	}
	default_action pass args none
	size 64
}

table routes {
	key {
		h.ipv4.dst lpm
	}
	actions {
		send
		deny
	}
	default_action deny args none
	size 64
}

apply {
	rx m.port
	extract h.ethernet
	jmpeq IPV4 h.ethernet.type 0x800
	drop
	IPV4 :	extract h.ipv4
	mov m.key_a h.ipv4.src
	mov m.key_b h.ipv4.dst
	hash crc32 m.bucket m.key_a m.key_b
	and m.bucket 0xF
	regrd m.seen count m.bucket
	add m.seen 0x1
	regwr count m.bucket m.seen
	jmpgt MANY m.seen 0x2
	table acl
	table routes
	MANY :	emit h.ethernet
	emit h.ipv4
	tx m.port
}
"""

COMMANDS = """
# comments and other commands are passed over
set_queue_depth 1
table_add Main.acl Main.deny 10.0.0.0&&&0xff000000 0x11&&&0xff => 1
table_add Main.acl Main.pass 0&&&0 0&&&0 => 2
table_add Main.routes Main.send 10.1.0.0/16 => 3 02:00:00:00:00:01
table_add Main.routes Main.deny 10.1.2.0/24 =>
"""

ENTRIES = """
table acl
match 0x0a000000/0xff000000 0x11/0xff priority 1 action deny
match 0x0/0x0 0x0/0x0 priority 2 action pass
table routes
match 0x0a010000/0xffff0000 action send port 0x3 dst 0x20000000001
match 0x0a010200/0xffffff00 action deny
"""


def files(folder: Path, rules: str = COMMANDS, text: str = ROUTER) -> tuple[Path, ReadOptions]:
    (folder / "router.spec").write_text(text)
    (folder / "router.rules").write_text(rules)
    return folder / "router.spec", ReadOptions(commands=folder / "router.rules")


@pytest.mark.parametrize("rules", [COMMANDS, ENTRIES])
def test_packets_of_a_specification_are_counted(tmp_path: Path, rules: str) -> None:
    path, options = files(tmp_path, rules)
    frames = [
        *[ethernet(0x0800, ipv4(f"192.0.2.{n}", "10.1.0.1", rest=udp(80))) for n in range(1, 5)],  # sent
        ethernet(0x0800, ipv4("10.0.0.1", "10.1.0.1", rest=udp(53))),  # denied
        ethernet(0x0800, ipv4("10.0.0.1", "10.1.0.2", protocol=6)),  # other protocol: sent
        ethernet(0x0800, ipv4("192.0.2.1", "10.1.2.1")),  # the longer prefix: dropped
        ethernet(0x0800, ipv4("192.0.2.1", "172.16.0.1")),  # no route
        ethernet(0x86DD, bytes(40)),  # no IPv4
        ethernet(0x86DD, bytes(40)),
    ]
    shares, remarks = shares_of_trace(path, capture(tmp_path / "trace.pcap", frames), options)
    graph = shares.apply(read_program(path, options))
    found = analyse(graph, lambda _node, _edge: 0.0, taken_only=True)

    def visits(name: str) -> float:
        return sum(v for n, v in found.visits.items() if n == name or n.startswith(f"{name} #"))

    assert remarks == (() if rules is ENTRIES else ("commands set_queue_depth were left out",))
    assert visits("acl") == pytest.approx(0.8)
    assert visits("acl:deny") == pytest.approx(0.1)
    assert visits("routes") == pytest.approx(0.7)
    assert visits("routes:send") == pytest.approx(0.5)
    assert visits("routes:deny") == pytest.approx(0.2)
    assert visits("dropped") == pytest.approx(0.5)
    assert graph.nodes["routes"].constructs[0].number("entries") == 2


def test_registers_keep_what_earlier_packets_wrote(tmp_path: Path) -> None:
    path, options = files(tmp_path)
    same = ethernet(0x0800, ipv4("192.0.2.1", "10.1.0.1"))
    shares, _ = shares_of_trace(path, capture(tmp_path / "trace.pcap", [same] * 5), options)
    (many,) = [labels for labels in shares.edges.values() if set(labels) == {"true", "false"}]
    assert many == {"true": pytest.approx(0.6), "false": pytest.approx(0.4)}


def test_a_checksum_keeps_its_carries_beside_a_field_of_16_bits(tmp_path: Path) -> None:
    """The specifications that p4perf writes for programs with checksums have a field of this name."""
    code = "ckadd h.ipv4.checksum h.ipv4.src\n\tmov m.own_checksum h.ipv4.checksum\n\tjmpeq MANY m.own_checksum 0xFDFE"
    text = ROUTER.replace("bit<32> seen\n", "bit<32> seen\n\tbit<16> own_checksum\n")
    text = text.replace("jmpgt MANY m.seen 0x2", f"mov h.ipv4.checksum 0x0\n\t{code}")
    path, options = files(tmp_path, text=text)
    packet = ethernet(0x0800, ipv4("255.255.2.1", "10.1.0.1"))  # 0xFFFF + 0x0201 has a carry
    shares, _ = shares_of_trace(path, capture(tmp_path / "trace.pcap", [packet] * 5), options)
    assert {"true": pytest.approx(1.0)} in [{k: v for k, v in edges.items() if v} for edges in shares.edges.values()]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("match 0x1 action send\n", "before the first line"),
        ("table roads\n", "there is no table 'roads'"),
        ("table routes\nmatch 0x1 action sent\n", "there is no action of routes 'sent'"),
        ("table acl\nmatch 0x1 action pass\n", "has 2 key fields and an action"),
        ("table_add routes send 10.1.0.0/40 => 1 2\n", "no prefix of at most 32 bit"),
        ("table_add routes send 10.1.0.0/16 => 1\n", "takes 2 values, not 1"),
        ("nonsense\n", "begins neither an entry nor a command"),
    ],
)
def test_rules_that_do_not_belong_are_refused_with_their_line(tmp_path: Path, rules: str, message: str) -> None:
    path, options = files(tmp_path, rules)
    with pytest.raises(DataError, match=message) as caught:
        read_program(path, options)
    assert caught.value.location is not None
    assert caught.value.location.line is not None


def test_the_hash_is_crc32c() -> None:
    # The check value of CRC-32C begins with ones and ends inverted: ones in front are the first four bytes inverted.
    data = bytes(b ^ 0xFF for b in b"1234") + b"56789"
    assert crc32c_raw(data) ^ 0xFFFFFFFF == 0xE3069283


def waits_in(flow: Flow, code: str) -> list[float]:
    met = [what for step in flow.steps.values() for what in step.constructs if what.kind == "overlap"]
    return [what.number("earlier") for what in met if what.size("code") == code]


def overlaps(components: list[tuple[str, dict[str, Any]]]) -> float:
    workload = build_workload(components, frame_size_bytes=256)
    path = swx_path(workload.program, workload, TrafficPlan(frame_size_bytes=256))
    return sum(times for what, times in path if what.kind == "overlap" and what.size("code") == "interpreted")


def test_neighbouring_fields_of_four_bytes_wait_for_each_other() -> None:
    assert [overlaps([("header_field_writes", {"writes": n})]) for n in (1, 2, 5, 9)] == [0, 1, 4, 8]
    words = {"field_bits": 64, "fields": 16}
    assert [overlaps([("header_field_writes", {"writes": n, **words})]) for n in (1, 9)] == [0, 0]


def test_waits_in_a_row_are_counted_up_to_where_others_take_their_turn() -> None:
    head, _, _ = ROUTER.partition("\tmov m.key_a h.ipv4.src")
    row = "mov m.key_b 0x1\nmov m.bucket 0x1\nmov m.seen 0x1\n"
    text = f"{head}{row}table acl\n{row}emit h.ethernet\nemit h.ipv4\ntx m.port\n}}\n"
    flow = swx_flow(read_specification(text, "w.spec"), "w.spec", "w", {})
    assert waits_in(flow, "interpreted") == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mov m.port 0x1\nmov m.key_a 0x1", 2),  # the other wait is that of tx, which reads the port
        ("mov m.key_b 0x1\nmov m.bucket 0x1\nmov m.seen 0x1", 2),  # each reads the end of the one before
        ("mov m.key_b 0x1\nadd m.key_b 0x1\nadd m.key_b 0x1", 0),  # the same bytes again
        ("mov m.bucket 0x1\nmov m.key_b 0x1", 1),  # the read goes into the bytes that were written
        ("mov m.key_b 0x1\nmov m.seen m.bucket", 1),  # a read only
        ("mov m.key_b 0x1\ntable acl\nmov m.bucket 0x1", 0),  # others take their turn at a table
        ("table routes\nmov m.key_a 0x1", 2),  # its action has written the port; tx reads it
        ("mov h.ipv4.src 0x1\nmov m.key_b 0x1", 0),  # other structures
        ("add h.ethernet.type 0x1\nmov m.seen h.ipv4.before_ttl", 1),  # behind a header the next one lies in the packet
        ("mov m.key_b 0x1\n" + "mov h.ethernet.dst 0x1\n" * 20 + "mov m.bucket 0x1", 0),  # long ago
        ("mov m.key_b 0x1\nmov m.seen 0x1\nadd h.ipv4.src m.bucket\nadd h.ipv4.dst m.bucket", 2),
    ],
)
def test_reads_that_wait_for_earlier_writes(code: str, expected: int) -> None:
    head, _, _ = ROUTER.partition("\tmov m.key_a h.ipv4.src")
    text = f"{head}{code}\nemit h.ethernet\nemit h.ipv4\ntx m.port\n}}\n"
    flow = swx_flow(read_specification(text, "w.spec"), "w.spec", "w", {})
    assert len(waits_in(flow, "interpreted")) == expected


@pytest.mark.parametrize(
    ("code", "interpreted", "compiled"),
    [
        ("mov h.ipv4.src m.key_a\nmov h.ipv4.dst m.key_b", 1, 0),  # fields of four bytes are stored alone
        ("mov h.ipv4.ttl 0x40\nmov h.ipv4.protocol 0x6\nmov h.ipv4.src 0x1", 2, 0),
        ("mov h.ipv4.checksum 0x1\nmov h.ipv4.protocol 0x0", 1, 1),  # zero is stored with its neighbours
        ("mov m.key_b h.ipv4.src\nmov m.bucket h.ipv4.dst", 1, 1),  # so is what comes in another order of bytes
        ("add h.ipv4.src 0x1\nadd h.ipv4.dst 0x1", 1, 1),
    ],
)
def test_a_compiler_leaves_waits_out(code: str, interpreted: int, compiled: int) -> None:
    head, _, _ = ROUTER.partition("\tmov m.key_a h.ipv4.src")
    text = f"{head}{code}\nemit h.ethernet\nemit h.ipv4\ntx m.port\n}}\n"
    flow = swx_flow(read_specification(text, "w.spec"), "w.spec", "w", {})
    assert (len(waits_in(flow, "interpreted")), len(waits_in(flow, "compiled"))) == (interpreted, compiled)
