"""Restricted C for XDP: the program as an eBPF programmer would write it, for ``clang -target bpf`` and libbpf.

Tables are maps of the kernel: hash maps (exact), tries (lpm), an array that ``bpf_loop`` walks (ternary). Counters are
per-CPU arrays, registers arrays, meters token buckets under a ``bpf_spin_lock``. Packets are worked on in place behind
bounds checks; added and removed headers cost a ``bpf_xdp_adjust_head``. A packet that goes through again stays in one
``bpf_loop``. The verdict is ``XDP_TX``, with the port left in a global variable, or ``XDP_DROP``.

A program that was read has all of its headers and metadata in a per-CPU map, as p4c-ebpf has them: the parser copies
headers there, and the deparser writes them back. The entries of its tables are one by one in ``layout.c``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import OFFERED, GeneratedFile, Generator, render
from p4perf.generators.c import xdp_layout
from p4perf.generators.c.writer import WORD_BITS, cells, check_passes, mask, number
from p4perf.generators.c.xdp_text import XdpWriter, hashed_bytes, store_sub
from p4perf.programs import analysis, ir
from p4perf.programs.capabilities import Capabilities, Limit, constructs, standing_at
from p4perf.programs.component import TrafficPlan
from p4perf.programs.dataflow import read_early
from p4perf.programs.entries import check_entries
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import CRC_POLYNOMIALS, crc_table
from p4perf.programs.packets import FCS_BYTES, field_offset_bits, frame, headers_size_bytes
from p4perf.version import __version__

MAX_FRAME_BYTES = 4096 - 256 - 320 + FCS_BYTES
"""One page without the headroom and the room for ``struct skb_shared_info``; the frame size counts the FCS."""

HEADROOM_BYTES = 256 - 40
"""Room in front of a packet that ``bpf_xdp_adjust_head`` gives: ``XDP_PACKET_HEADROOM`` less ``struct xdp_frame``."""

MAX_MAPS = 64
MIN_SENT_BYTES = 14
"""The kernel makes no frame shorter than an Ethernet header."""
MAX_VARYING = 64
MAX_KEY_BITS = 125 * WORD_BITS
MAX_CRC_BYTES = 75_000
MAX_READ_FIELDS = 512
"""Fields in one statement of a program that was read: with 1,024 of them, clang compiles for more than a minute."""
MAX_EXACT_ENTRIES = 100_000_000

XDP_CAPABILITIES = Capabilities(
    "xdp",
    missing={
        "clone": "a program returns one verdict for one packet, and no helper of XDP copies a frame "
        "(bpf_clone_redirect is one of tc)",
        "multicast": "the copies of a redirect with BPF_F_BROADCAST are made by the driver, after the program; "
        "BPF_PROG_TEST_RUN runs the program only",
    },
    offers=OFFERED,
    limits={
        "varying fields": Limit(MAX_VARYING, "configuration of the measured program, which draws their numbers itself"),
        "frame bytes": Limit(MAX_FRAME_BYTES, "BPF_PROG_TEST_RUN has one page for packet, headroom and tailroom"),
        "bytes of added headers": Limit(HEADROOM_BYTES, "XDP_PACKET_HEADROOM less struct xdp_frame"),
        "register bits": Limit(WORD_BITS, "registers of eBPF"),
        "filled tables": Limit(MAX_MAPS - 2, "MAX_USED_MAPS of the kernel: 64 maps, two of them of the harness"),
        "exact key bits": Limit(
            MAX_KEY_BITS, "clang clears with up to 128 stores; more is a call of memset, which eBPF lacks"
        ),
        "lpm key bits": Limit(2048, "LPM_DATA_SIZE_MAX of kernel/bpf/lpm_trie.c is 256 B"),
        "ternary key bits": Limit(MAX_KEY_BITS, "as for exact keys"),
        "exact entries": Limit(MAX_EXACT_ENTRIES, "a hash map has at most 2**27 buckets, kernel/bpf/hashtab.c"),
        "lpm entries": Limit(MAX_EXACT_ENTRIES, "as for exact entries; a trie allocates every node"),
        "ternary entries": Limit(1 << 23, "BPF_MAX_LOOPS of bpf_loop"),
    },
)
"""What XDP can do. The verifier has limits of its own (a million instructions walked, 512 B of stack), which say no at
loading; what they refuse depends on the compiler, so that no number can be given for it here. What the table has no
quantity for is in :func:`_check_sums`: all maps of a program, and the bytes of all of its CRCs."""

MAX_STACK_KEY_BYTES = 256
"""A longer key is put together in a per-CPU map; the stack has 512 B, for everything."""

MAX_INLINE_LOOKUPS = 512
"""Lookups in one function. The kernel writes some 32 instructions for one, and a jump reaches over 32,767."""

LOOKUPS_OF_A_PART = 256
"""Lookups in each function where there are too many for one."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """How the measured program makes the next packet of the one before."""

    moves: bool
    length: int
    touched: int
    restore: tuple[tuple[int, int, int], ...]
    """Offset, size and value of the numbers that are written anew."""
    varying: tuple[tuple[str, ...], ...]
    """Statements that write the number ``key`` into each field that varies."""
    frames: tuple[bytes, ...] = ()
    """The packets one after another, where no rule says what they are."""


class Xdp(Generator):
    """Renders ``program.bpf.c`` and ``baseline.bpf.c``, and ``layout.c``, by which a loader fills the maps."""

    name = "xdp"
    summary = "restricted C for XDP (eBPF): maps of the kernel, clang -target bpf"

    @override
    def generate(self, workload: ir.Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        XDP_CAPABILITIES.check(workload.program, workload.packets)
        check_passes(workload.program, self.name)
        stream = frames_stream(workload) if workload.frames else _stream(workload.program, workload.packets)
        return (
            GeneratedFile("program.bpf.c", (_render("xdp/program.bpf.c.j2", workload.program, stream),)),
            GeneratedFile("baseline.bpf.c", (_render("xdp/program.bpf.c.j2", workload.baseline, stream),)),
            GeneratedFile("layout.c", (_render("xdp/layout.c.j2", workload.program, stream),)),
        )


def _render(template: str, program: ir.Program, stream: _Stream) -> str:
    layout = xdp_layout.header_layout(program)
    writer = XdpWriter(program, layout)
    applied = {table.name for table in analysis.applied_tables(program)}
    tables = [table for table in program.tables if table.name in applied]
    maps = {table.name: xdp_layout.table_map(program, table) for table in tables}
    for table in tables:
        if not maps[table.name].listed:
            check_entries(program, table)
    for field in program.metadata:
        if not layout.whole and field.width_bits > WORD_BITS:
            raise CapabilityError(f"xdp keeps metadata in registers of {WORD_BITS} bit; {field.name} is wider")
    unneeded = analysis.unused_metadata(program) if layout.whole else ()
    present = {*layout.offsets, *layout.in_place}
    hashes = {s.algorithm for s in analysis.statements(program) if isinstance(s, ir.Hash)}
    crc_tables = {name: crc_table(polynomial) for name, polynomial in CRC_POLYNOMIALS.items() if name in hashes}
    longest = max(
        (n for table in tables if (n := xdp_layout.key_bytes(program, table)) > MAX_STACK_KEY_BYTES), default=0
    )
    mapped = [table for table in tables if maps[table.name].kind != "none"]
    _check_sums(program, len(mapped), (layout.scratch_bytes, longest, crc_tables))
    if layout.whole:
        _check_expressions(program)
    return render(
        template,
        version=__version__,
        program=program,
        early=read_early(program),
        metadata=[f for f in program.metadata if ir.FieldRef(ir.METADATA, f.name) not in unneeded],
        layout=layout,
        stream=stream,
        tables=tables,
        maps=maps,
        mapped=mapped,
        flow=writer,
        cells=cells,
        actions=[program.action(name) for name in analysis.used_actions(program)],
        used=constructs(program),
        verified=[c for c in program.verified if c.header in present],
        updated=[c for c in program.updated if c.header in present],
        checksums=_checksums(program, present),
        crc_tables=crc_tables,
        parts=[] if layout.whole else _parts(program.control),
        key_area_words=(longest + 7) // 8,
        max_stack_key_bytes=MAX_STACK_KEY_BYTES,
        sizes=xdp_layout,
        number=number,
        mask=mask,
    )


def _check_expressions(program: ir.Program) -> None:
    """Refuse statements with more fields than clang compiles in reasonable time."""
    for place, statement in chain.from_iterable(a.placed for a in program.actions):
        read = sum(
            isinstance(e, ir.FieldRef) for whole in analysis.operands(statement) for e in analysis.subexpressions(whole)
        )
        if read > MAX_READ_FIELDS:
            with standing_at(place):
                raise CapabilityError(
                    f"a statement of {read:,} fields is more than the {MAX_READ_FIELDS} that xdp takes "
                    "(each asks whether its header is valid: clang takes minutes for the branches)"
                )


def _check_sums(program: ir.Program, tables: int, areas: tuple[object, ...]) -> None:
    """Count the maps (two of the harness, one for each table, state and area that is not empty) and bytes of CRCs."""
    if (amount := hashed_bytes(program, CRC_POLYNOMIALS)) > MAX_CRC_BYTES:
        raise CapabilityError(
            f"CRCs of {amount:,} bytes in one packet are more than the {MAX_CRC_BYTES:,} that xdp takes "
            "(the verifier walks 12 instructions a byte, and a million in all)"
        )
    states = len(program.counters) + len(program.registers) + len(program.meters)
    maps = 2 + tables + states + sum(map(bool, areas))
    if maps > MAX_MAPS:
        raise CapabilityError(
            f"{maps} maps are more than the {MAX_MAPS} that xdp takes (MAX_USED_MAPS of the kernel): {tables} tables, "
            f"{states} counters, registers and meters, {maps - tables - states} for variables, constants and scratch"
        )


def _parts(control: tuple[ir.ControlNode, ...]) -> list[tuple[ir.ControlNode, ...]]:
    """The control flow cut between its nodes, for functions of their own; nothing if one function holds it."""
    lookups = [sum(isinstance(inner, ir.ApplyTable) for inner in analysis.control_nodes((node,))) for node in control]
    if sum(lookups) <= MAX_INLINE_LOOKUPS:
        return []
    parts: list[list[ir.ControlNode]] = [[]]
    size = 0
    for node, amount in zip(control, lookups, strict=True):
        if parts[-1] and size + amount > LOOKUPS_OF_A_PART:
            parts.append([])
            size = 0
        parts[-1].append(node)
        size += amount
    return [tuple(part) for part in parts]


def _checksums(program: ir.Program, present: set[str]) -> list[ir.FieldRef]:
    wanted = dict.fromkeys(c for c in (*program.verified, *program.updated) if c.header in present)
    for checksum in wanted:
        width = program.header(checksum.header).field(checksum.field).width_bits
        if width != 16 or program.header(checksum.header).offset_bits(checksum.field) % 16:
            raise CapabilityError(
                f"xdp: checksum {checksum.header}.{checksum.field} is not a 16-bit word of its header"
            )
    return list(wanted)


def frames_stream(workload: ir.Workload) -> _Stream:
    """The frames of a workload, all of one size: the kernel runs the program on one buffer.

    Those that would be sent shorter than the kernel can are left out.
    """
    run = Interpreter(workload.program).run
    frames = tuple(f for f in workload.frames if all(len(sent.data) >= MIN_SENT_BYTES for sent in run(f).sent))
    if not frames:
        raise CapabilityError(f"xdp sends no frame of less than {MIN_SENT_BYTES} B, as this program makes all packets")
    if any(len(frame) != len(frames[0]) for frame in frames):
        raise CapabilityError("xdp measures with frames of one size")
    return _Stream(moves=True, length=len(frames[0]), touched=0, restore=(), varying=(), frames=frames)


def _stream(program: ir.Program, packets: ir.PacketSpec) -> _Stream:
    """What has to be written before every packet: nothing but the keys, if the program leaves the packet usable."""
    data = frame(program, packets)
    restored = headers_size_bytes(program, packets) if analysis.needs_restore(program) else 0
    cut = xdp_layout.accesses(0, restored)
    restore = [(at, size, int.from_bytes(data[at : at + size], "big")) for at, size in cut]
    varying: list[tuple[str, ...]] = []
    touched = restored
    for field in packets.varying:
        width = program.width_bits(field.field)
        offset = field_offset_bits(program, packets, field.field)
        bits = min(WORD_BITS, width - field.free_bits)
        varying.append(tuple(store_sub("data", offset + width - field.free_bits - bits, bits, "key")))
        touched = max(touched, (offset + width + 7) // 8)
    return _Stream(analysis.changes_layout(program), len(data), touched, tuple(restore), tuple(varying))
