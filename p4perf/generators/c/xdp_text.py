"""C text of an XDP program: expressions, statements, keys, entries and hashes. The frame around them is a template.

Numbers up to 64 bit are computed with; wider fields are copied in pieces of 64 bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.c.writer import WORD_BITS, CWriter, indented, mask, number
from p4perf.generators.c.xdp_layout import HeaderLayout, copied_pieces, joined_pieces, key_parts, written_pieces
from p4perf.programs import ir
from p4perf.programs.analysis import destination, statements


def load_sub(base: str, offset: int, width: int) -> str:
    """Up to 64 bit, ``offset`` bits behind an address."""
    first, last = offset // 8, (offset + width - 1) // 8
    if last - first >= 8:
        low = width // 2
        return f"({load_sub(base, offset, width - low)} << {low} | {load_sub(base, offset + width - low, low)})"
    shift = (last + 1) * 8 - (offset + width)
    text = f"load_be({base} + {first}, {last - first + 1})"
    if shift:
        text = f"({text} >> {shift})"
    return text if offset % 8 == 0 else f"({text} & {mask(width)})"


def store_sub(base: str, offset: int, width: int, value: str) -> Iterator[str]:
    """Store the lowest ``width`` (up to 64) bits of a value, ``offset`` bits behind an address."""
    first, last = offset // 8, (offset + width - 1) // 8
    if last - first >= 8:
        low = width // 2
        yield from store_sub(base, offset, width - low, f"(({value}) >> {low})")
        yield from store_sub(base, offset + width - low, low, value)
        return
    size, shift = last - first + 1, (last + 1) * 8 - (offset + width)
    if offset % 8 == 0 and shift == 0:
        yield f"store_be({base} + {first}, {size}, {value});"
        return
    keep = ((1 << 8 * size) - 1) & ~(((1 << width) - 1) << shift)
    yield (
        f"store_be({base} + {first}, {size}, (load_be({base} + {first}, {size}) & {number(keep)})"
        f" | (({value}) & {mask(width)}) << {shift});"
    )


@dataclass(frozen=True, slots=True)
class BitRun:
    """Bits of one source, most significant first: a header field, a number in a C variable, or zeros."""

    width: int
    base: str = ""
    offset: int = 0
    valid: str = ""
    variable: str = ""

    def bits(self, start: int, width: int) -> str:
        if self.variable:
            shift = self.width - start - width
            text = f"({self.variable} >> {shift})" if shift else self.variable
            return text if start == 0 else f"({text} & {mask(width)})"
        if not self.base:
            return "0ull"
        text = load_sub(self.base, self.offset + start, width)
        return f"({self.valid} ? {text} : 0)" if self.valid else text


MAX_WRITTEN_OUT_BYTES = 512
"""Bytes that a program hashes word after word. Of much more than that clang loads all words first, and keeps them on
the stack of 512 B; and it takes half a minute for a CRC."""

CHECKSUM = "checksum16"
_ENDS = {
    "crc16": ("__u32 hash = 0;", ()),
    "crc32": ("__u32 hash = ~0u;", ("hash = ~hash;",)),
    CHECKSUM: ("__u64 hash = 0;", ("hash = sum16_end(hash);",)),
}
"""How each hash begins, and how it ends."""

BLOCK_WORDS = {"crc16": 1, "crc32": 1, CHECKSUM: 16}
"""Words in the body of a loop over what is hashed. One at a time a checksum costs a quarter more; a CRC does not."""


def _words(runs: list[BitRun]) -> Iterator[tuple[str, int]]:
    """Runs of bits one after another, cut into words of 64 bit: C text and width of each."""
    total = sum(run.width for run in runs)
    for start in range(0, total, WORD_BITS):
        width = min(WORD_BITS, total - start)
        parts, at = [], 0
        for run in runs:
            low, high = max(start, at), min(start + width, at + run.width)
            if low < high and (run.base or run.variable):
                text, shift = run.bits(low - at, high - low), start + width - high
                parts.append(f"{text} << {shift}" if shift else text)
            at += run.width
        yield " | ".join(parts) or "0ull", width


def hash_lines(algorithm: str, runs: list[BitRun], *, loops: bool) -> Iterator[str]:
    """Lines that leave the hash of runs of bits in ``hash``; ``loops``: many words of a header in a loop."""
    begin, end = _ENDS[algorithm]
    yield begin
    yield ""
    words, n = list(_words(runs)), 0
    while n < len(words):
        run, start = _at(runs, n * WORD_BITS)
        rounds = (run.width - start) // (WORD_BITS * BLOCK_WORDS[algorithm])
        if loops and rounds > 1:
            yield from _loop(algorithm, run, start, rounds)
            n += rounds * BLOCK_WORDS[algorithm]
        else:
            yield _fold(algorithm, *words[n])
            n += 1
    yield from end


def hashed_bytes(program: ir.Program, algorithms: Container[str] = BLOCK_WORDS) -> int:
    """Bytes that a program hashes or adds up in one pass, if all of its actions run."""
    hashes = (s for s in statements(program) if isinstance(s, ir.Hash) and s.algorithm in algorithms)
    bits = [program.width_bits(ref) for s in hashes for ref in s.fields]
    if CHECKSUM in algorithms:
        bits += [program.header(checksum.header).width_bits for checksum in (*program.verified, *program.updated)]
    return sum(bits) // 8


def _at(runs: list[BitRun], bit: int) -> tuple[BitRun, int]:
    """The run that a bit of all runs is in, and where in it."""
    for run in runs:
        if bit < run.width:
            return run, bit
        bit -= run.width
    raise IndexError(bit)


def _fold(algorithm: str, text: str, width: int) -> str:
    """Statement that takes a word into ``hash``."""
    if algorithm == CHECKSUM:
        return f"hash = sum16(hash, ({text}){' << 8' if width % 16 else ''});"
    return f"hash = {algorithm}_word(hash, {text}, {width // 8});"


def _loop(algorithm: str, run: BitRun, start: int, rounds: int) -> Iterator[str]:
    """A loop over words of one run.

    The verifier walks it round by round, and has to see an index for that: it cannot tell two pointers into a packet
    apart. What comes behind tests anew whether the header is there, as clang would keep the answer but not the pointer.
    """
    offsets = [run.offset + start + n * WORD_BITS for n in range(BLOCK_WORDS[algorithm])]
    words = [load_sub(f"{run.base} + i", offset, WORD_BITS) for offset in offsets] if run.base else []
    if not run.valid:
        yield from _rounds(algorithm, rounds, words)
        return
    yield f"if ({run.valid}) {{"
    yield from indented(_rounds(algorithm, rounds, words))
    if algorithm != CHECKSUM:
        yield "} else {"
        yield from indented(_rounds(algorithm, rounds, []))
    yield "}"
    if "NULL" in run.valid:
        yield f"HIDE({run.base});"


def _rounds(algorithm: str, rounds: int, words: list[str]) -> Iterator[str]:
    """The loop itself, over zeros if there are no words; a sum of zeros is left out."""
    if algorithm == CHECKSUM and not words:
        return
    step = BLOCK_WORDS[algorithm] * WORD_BITS // 8
    yield "#pragma clang loop unroll(disable)"
    yield f"for (__u64 i = 0; i < {rounds * step}; i += {step}) {{"
    yield "\tHIDE(i);"
    yield from (f"\t{_fold(algorithm, word, WORD_BITS)}" for word in words or ["0ull"] * BLOCK_WORDS[algorithm])
    yield "}"


@dataclass(frozen=True)
class XdpWriter(CWriter):
    """Expressions, statements, keys and checksums."""

    layout: HeaderLayout

    owner: ClassVar[str] = "xdp"
    word_type: ClassVar[str] = "__u64"
    signed_type: ClassVar[str] = "__s64"
    zero: ClassVar[str] = "0ull"
    limit: ClassVar[str] = f"xdp computes with up to {WORD_BITS} bit (registers of eBPF)"
    cursor: ClassVar[str] = "cursor"
    intrinsics: ClassVar[Mapping[str, str]] = {
        "packet_length": "(__u64)p->length",
        "egress_port": "(__u64)p->port",
        "unknown": "time_now()",
        "ingress_port": "hidden({port})",
    }
    rejected: ClassVar[str] = "return XDP_DROP;"
    accepted: ClassVar[str] = "goto state_accept;"

    @cached_property
    def _loops(self) -> bool:
        return hashed_bytes(self.program) > MAX_WRITTEN_OUT_BYTES

    def base(self, header: str) -> str:
        return f"p->s->h_{header}" if header in self.layout.offsets else f"p->h_{header}"

    @override
    def is_valid(self, header: str) -> str:
        if header in self.layout.offsets:
            return self.layout.valid(header)
        return f"(p->h_{header} != NULL)" if header in self.layout.in_place else "0"

    def _guard(self, header: str) -> str:
        return "" if header in self.layout.always else self.is_valid(header)

    def _present(self, header: str) -> bool:
        return header in self.layout.offsets or header in self.layout.in_place

    def _place(self, ref: ir.FieldRef) -> tuple[int, int]:
        if ref.header == ir.METADATA:
            width = self.program.width_bits(ref)
            return -width % 8, width
        return self.program.header(ref.header).offset_bits(ref.field), self.program.width_bits(ref)

    def _in_variable(self, ref: ir.FieldRef) -> bool:
        """Whether a field is a number; others are bytes."""
        return ref.header == ir.METADATA and self.program.width_bits(ref) <= WORD_BITS

    def _run(self, ref: ir.FieldRef) -> BitRun:
        offset, width = self._place(ref)
        if ref.header == ir.METADATA:
            variable = self.layout.metadata(ref.field)
            return BitRun(width, variable=variable) if self._in_variable(ref) else BitRun(width, variable, offset)
        if not self._present(ref.header):
            return BitRun(width)
        return BitRun(width, self.base(ref.header), offset, self._guard(ref.header))

    @override
    def load(self, ref: ir.FieldRef, low: int = 0) -> str:
        run = self._run(ref)
        have = min(WORD_BITS, run.width - low)
        return run.bits(run.width - low - have, have) if have > 0 else self.zero

    @override
    def random_word(self, width: int) -> str:
        return "random_64_bits()" if width > 32 else "random_32_bits()"

    @override
    def bits_at(self, base: str, offset: int, width: int) -> str:
        return load_sub(base, offset, width)

    @override
    def beyond(self, size: str) -> str:
        near = "" if size.isdigit() else f"{size} > 0xffff || "
        return f"{near}{self.cursor} + {size} > end"

    @override
    def taken(self, size: str) -> Iterator[str]:
        yield f"p->taken += {size};"
        yield f"cursor += {size};"

    @override
    def extracted(self, header: str) -> Iterator[str]:
        yield from self.copied(header, self.base(header), self.cursor)
        yield f"{self.layout.valid(header)} = 1;"

    @override
    def lookup(self, table: str, found: str) -> str:
        return f"table_{table}(p)"

    @override
    def colour(self, meter: str, index: ir.Expression) -> str:
        return f"meter_{meter}(p, (__u32){self.expression(index)})"

    @override
    def register(self, name: str, index: ir.Expression) -> str:
        return f"read_{name}((__u32){self.expression(index)})"

    @override
    def hash_fields(self, statement: ir.Hash) -> Iterator[str]:
        ref, runs = statement.destination, self._joined(statement.fields)
        yield "{"
        yield from indented(hash_lines(statement.algorithm, runs, loops=self._loops))
        result = "(__u64)hash" if self.program.width_bits(ref) > 32 else "hash"
        yield from indented(self.store(ref, result))
        yield "}"

    @override
    def effect(self, statement: ir.Statement) -> Iterator[str]:
        match statement:
            case ir.Drop():
                yield "p->dropped = 1;"
            case ir.SetEgress(port):
                yield f"p->egress = (__s64)({self.expression(port)});"
            case ir.RemoveHeader(name):
                yield f"{self.layout.valid(name)} = 0;"
            case ir.Recirculate():
                yield "p->again |= AGAIN_RECIRCULATE;"
            case ir.Resubmit():
                yield "p->again |= AGAIN_RESUBMIT;"
            case ir.CountPacket(counter, index):
                amount = ", p->length" if self.program.counter(counter).of_bytes else ""
                yield f"count_{counter}((__u32){self.expression(index)}{amount});"
            case ir.WriteRegister(register, index, value):
                yield f"write_{register}((__u32){self.expression(index)}, {self.expression(value)});"
            case ir.Truncate(size):
                yield f"p->most = (__u32){self.expression(size)};"
            case _:
                raise CapabilityError(f"xdp has no {type(statement).__name__}")

    @override
    def store_words(self, ref: ir.FieldRef, values: Sequence[str], room: str = "") -> Iterator[str]:
        offset, width = self._place(ref)
        if self._in_variable(ref):
            cut = f" & {mask(width)}" if width < WORD_BITS else ""
            yield f"{self.layout.metadata(ref.field)} = {values[0]}{cut};"
            return
        for n, low in enumerate(range(0, width, WORD_BITS)):
            part, value = min(WORD_BITS, width - low), values[n] if n < len(values) else self.zero
            yield from self._store_at(ref, offset + width - low - part, part, value)

    def _store_at(self, ref: ir.FieldRef, offset: int, width: int, value: str) -> Iterator[str]:
        """What is written to a header in the packet that is not valid is lost; the scratch area may keep it."""
        header = ref.header
        if header == ir.METADATA:
            yield from store_sub(self.layout.metadata(ref.field), offset, width, value)
            return
        if not self._present(header):
            yield f"(void)({value});"
            return
        lines = store_sub(self.base(header), offset, width, value)
        if header in self.layout.in_place and (guard := self._guard(header)):
            yield f"if ({guard}) {{"
            yield from indented(lines)
            yield "}"
        else:
            yield from lines

    @override
    def room(self, header: str) -> tuple[str, str, str]:
        room, size = self.base(header), self.program.header(header).size_bytes
        return room, f"clear_bytes({room}, {size});", f"{self.layout.valid(header)} = 1;"

    @cached_property
    def _written(self) -> Mapping[str, set[str]]:
        """Of every header the fields that some statement writes."""
        found = defaultdict[str, set[str]](set)
        for ref in (*filter(None, map(destination, statements(self.program))), *self.program.updated):
            found[ref.header].add(ref.field)
        return found

    def copied(self, header: str, to: str, source: str, *, back: bool = False) -> Iterator[str]:
        """Statements that copy a header, in the pieces in which its fields are accessed; ``back``: to the packet."""
        whole = self.program.header(header)
        pieces = written_pieces(whole, self._written[header]) if back else copied_pieces(whole)
        for at, size in joined_pieces(pieces):
            plus = f" + {at}" if at else ""
            yield f"copy_bytes({to}{plus}, {source}{plus}, {size});"

    def _joined(self, fields: tuple[ir.FieldRef, ...]) -> list[BitRun]:
        """Fields as runs of bits; neighbours in a header are one run."""
        runs: list[BitRun] = []
        for ref in fields:
            run = self._run(ref)
            before = runs[-1] if runs else None
            if before and run.base and before.base == run.base and before.offset + before.width == run.offset:
                runs[-1] = BitRun(before.width + run.width, run.base, before.offset, run.valid)
            else:
                runs.append(run)
        return runs

    def checksum(self, checksum: ir.FieldRef) -> list[str]:
        """Lines that leave the checksum of a valid header in ``hash``: over all of its fields but itself."""
        header = self.program.header(checksum.header)
        at, width = header.offset_bits(checksum.field), header.field(checksum.field).width_bits
        base = self.base(header.name)
        runs = [BitRun(at, base), BitRun(width), BitRun(header.width_bits - at - width, base, at + width)]
        return list(hash_lines(CHECKSUM, [run for run in runs if run.width], loops=self._loops))

    def checksum_load(self, checksum: ir.FieldRef) -> str:
        offset, width = self._place(checksum)
        return load_sub(self.base(checksum.header), offset, width)

    def checksum_store(self, checksum: ir.FieldRef) -> list[str]:
        offset, width = self._place(checksum)
        return list(store_sub(self.base(checksum.header), offset, width, "hash"))

    def key_lines(self, table: ir.Table) -> Iterator[str]:
        """Statements that write the key of a packet to the bytes at ``key``, which is aligned to 8 bytes."""
        for key, part in zip(table.keys, key_parts(self.program, table), strict=True):
            run = self._run(key.field)
            for at, size in _aligned(part.offset_bytes, part.size_bytes):
                # Bits of the key's bytes, of which the first few may be padding.
                end = run.width - 8 * (part.size_bytes - (at - part.offset_bytes) - size)
                start = max(end - 8 * size, 0)
                yield f"store_be(key + {at}, {size}, {run.bits(start, end - start)});"

    # The entries of programs that were read

    def default(self, table: ir.Table) -> Iterator[str]:
        """The default action, with its data."""
        action = self.program.action(table.default_action)
        if action.parameters:
            values = ", ".join(
                number(v & (1 << p.width_bits) - 1) for p, v in zip(action.parameters, table.default_data, strict=True)
            )
            yield f"const struct data_{action.name} data = {{{values}}};"
            yield ""
            yield f"action_{action.name}(p, &data);"
        else:
            yield f"action_{action.name}(p);"


def _aligned(offset: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut bytes into accesses of 8, 4, 2 and 1 bytes that are aligned, as the verifier wants them on the stack."""
    while size:
        step = next(n for n in (8, 4, 2, 1) if offset % n == 0 and n <= size)
        yield offset, step
        offset, size = offset + step, size - step
