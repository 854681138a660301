"""Fields, expressions, actions and control flow of a program as C text.

:class:`DpdkLayout` holds what the text has to keep track of: headers that may be missing, changes of the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.c.writer import WORD_BITS, CWriter, indented, mask
from p4perf.programs import ir
from p4perf.programs.analysis import changes_layout, destination, flattened, parser_statements, statements
from p4perf.programs.dataflow import follow


@dataclass(frozen=True, slots=True)
class DpdkLayout:
    """Static properties of a program; each False lets the generator omit code."""

    always_valid: frozenset[str]
    """Headers that every packet has that gets as far as the control flow, at any time."""
    added: tuple[str, ...]
    deparses: bool
    """Whether packets may be sent with other headers, or in another order, than they came with."""
    keeps_original: bool
    """Whether the headers have to be kept as they came, since they are needed after fields were written in place."""


def layout(program: ir.Program) -> DpdkLayout:
    """Look at the actions that can run, at the parser, and at the order of emission."""
    body = list(statements(program))
    moving = [*body, *parser_statements(program)]
    removed = {s.header for s in moving if isinstance(s, ir.RemoveHeader)}
    added = {s.header for s in moving if isinstance(s, ir.AddHeader)}
    in_place = any((ref := destination(s)) is not None and ref.header != ir.METADATA for s in body)
    return DpdkLayout(
        always_valid=follow(program).parsed.valid - removed - added,
        added=tuple(h.name for h in program.headers if h.name in added),
        deparses=changes_layout(program) or not emits_as_extracted(program),
        keeps_original=in_place and any(isinstance(s, ir.Clone | ir.Resubmit) for s in body),
    )


def emits_as_extracted(program: ir.Program) -> bool:
    """Whether along every path of the parser the headers come in the order in which they are emitted, each once."""
    place = {name: n for n, name in enumerate(program.emit)}
    if len(place) < len(program.emit):
        return False
    # The headers of a path come in rising places, so a state is left with the place of the last header before it.
    reached: dict[str, int] = {}
    todo = [("start", -1)]
    while todo:
        name, last = todo.pop()
        if name == ir.ACCEPT or reached.get(name, -2) >= last:
            continue
        reached[name] = last
        state = program.state(name)
        if any(isinstance(s, ir.Advance | ir.AddHeader | ir.RemoveHeader | ir.Branch) for s in state.body):
            return False
        for header in state.extracts:
            if place.get(header, -1) <= last:
                return False
            last = place[header]
        todo += [(following, last) for following in (*(c.next_state for c in state.cases), state.default)]
    return True


def first_table(program: ir.Program) -> str | None:
    """The table that is applied to every packet before anything happens that its key depends on, if there is one."""
    written: set[ir.FieldRef] = set()
    for node in program.control:
        if isinstance(node, ir.ApplyTable):
            keys = {key.field for key in program.table(node.table).keys}
            return None if keys & written or not keys else node.table
        if not isinstance(node, ir.CallAction):
            return None
        body = program.action(node.action).body
        if any(isinstance(s, ir.AddHeader | ir.RemoveHeader | ir.Branch | ir.Exit) for s in body):
            return None
        written |= {ref for s in body if (ref := destination(s)) is not None}
    return None


def c_type(width_bits: int) -> str:
    """The unsigned C type that holds a value of that width, up to 64 bit."""
    return next(f"uint{size}_t" for size in (8, 16, 32, 64) if width_bits <= size)


@dataclass(frozen=True)
class DpdkCWriter(CWriter):
    """Fields, actions and control flow.

    Args:
        groups: ports of the multicast groups.
        written: headers that the action writes, and whose place was looked up at its beginning.
    """

    plan: DpdkLayout
    groups: tuple[tuple[int, ...], ...]
    written: frozenset[str] = frozenset()

    owner: ClassVar[str] = "dpdk-c"
    word_type: ClassVar[str] = "uint64_t"
    signed_type: ClassVar[str] = "int64_t"
    zero: ClassVar[str] = "0"
    limit: ClassVar[str] = f"dpdk-c computes with up to {WORD_BITS} bit"
    cursor: ClassVar[str] = "(p->data + p->parsed)"
    intrinsics: ClassVar[Mapping[str, str]] = {
        "packet_length": "(uint64_t)p->came",
        "egress_port": "(uint64_t)p->egress",
        "unknown": "time_now()",
        "ingress_port": "port_in()",
    }
    rejected: ClassVar[str] = "return false;"
    accepted: ClassVar[str] = "return true;"

    def in_memory(self, ref: ir.FieldRef) -> bool:
        """Whether a field is kept as bytes (all but metadata of up to 64 bit)."""
        return ref.header != ir.METADATA or self.program.width_bits(ref) > WORD_BITS

    def place(self, ref: ir.FieldRef) -> tuple[str, int]:
        """Pointer to the bytes in which a field lies, for reading, and the offset of its first bit there."""
        if ref.header == ir.METADATA:
            return f"p->m_{ref.field}", -self.program.width_bits(ref) % 8
        return f"p->h_{ref.header}", self.program.header(ref.header).offset_bits(ref.field)

    @override
    def load(self, ref: ir.FieldRef, low: int = 0) -> str:
        width = self.program.width_bits(ref)
        if low >= width:
            return "0"
        if not self.in_memory(ref):
            return f"p->m_{ref.field}"
        base, offset = self.place(ref)
        taken = min(WORD_BITS, width - low)
        return self.bits_at(base, offset + width - low - taken, taken)

    @override
    def is_valid(self, header: str) -> str:
        return "true" if header in self.plan.always_valid else f"p->h_{header} != absent"

    def _pointer(self, ref: ir.FieldRef) -> str:
        """To the bytes in which a field lies, for writing."""
        if ref.header in self.written:
            return f"to_{ref.header}"
        base, _ = self.place(ref)
        return base if ref.header == ir.METADATA or ref.header in self.plan.always_valid else f"writable({base})"

    @override
    def store_words(self, ref: ir.FieldRef, values: Sequence[str], room: str = "") -> Iterator[str]:
        width = self.program.width_bits(ref)
        if not self.in_memory(ref):
            yield f"p->m_{ref.field} = {values[0]} & {mask(width)};"
            return
        pointer, (_, offset) = room or self._pointer(ref), self.place(ref)
        for n, low in enumerate(range(0, width, WORD_BITS)):
            taken = min(WORD_BITS, width - low)
            yield _store(pointer, offset + width - low - taken, taken, values[n] if n < len(values) else "0")

    @override
    def room(self, header: str) -> tuple[str, str, str]:
        room = f"added_{header}"
        return room, f"memset({room}, 0, sizeof({room}));", f"p->h_{header} = {room};"

    @override
    def random_word(self, width: int) -> str:
        return "random_bits()"

    @override
    def bits_at(self, base: str, offset: int, width: int) -> str:
        if offset % 8 == width % 8 == 0:
            return f"load_bytes({_plus(base, offset // 8)}, {width // 8})"
        return f"load_bits({base}, {offset}, {width})"

    @override
    def beyond(self, size: str) -> str:
        return f"p->length - p->parsed < {size}"

    @override
    def taken(self, size: str) -> Iterator[str]:
        yield f"p->parsed += {size};"

    @override
    def extracted(self, header: str) -> Iterator[str]:
        yield f"p->h_{header} = p->data + p->parsed;"

    @override
    def lookup(self, table: str, found: str) -> str:
        return f"table_{table}(p, {found or f'find_{table}(p)'})"

    def cases(self, state: ir.ParserState) -> tuple[ir.SelectCase, ...] | None:
        """The cases of a state that selects one field by its values, of equal ones the first; None of another state."""
        if state.select is None or any(m.low != m.high or m.mask != -1 for c in state.cases for m in c.matches):
            return None
        return tuple({case.value: case for case in reversed(state.cases)}.values())[::-1]

    def bits(self, refs: Sequence[ir.FieldRef]) -> int:
        return sum(self.program.width_bits(ref) for ref in refs)

    def number(self, refs: Sequence[ir.FieldRef]) -> str:
        """Fields one after another as a number, the first the most significant: at most 64 bit together."""
        parts, below = [], self.bits(refs)
        for ref in refs:
            below -= self.program.width_bits(ref)
            parts.append(f"{self.load(ref)} << {below}" if below else self.load(ref))
        return " | ".join(f"({part})" if len(parts) > 1 and "<<" in part else part for part in parts)

    def gather(self, refs: Sequence[ir.FieldRef], into: str) -> Iterator[str]:
        """Statements that write fields one after another to bytes, which are zero before.

        Fields that do not fill whole bytes are put together in words first: bytes that several stores write a part of
        would be read back after each of them.
        """
        if any(self.program.width_bits(ref) % 8 for ref in refs):
            yield from self._in_words(refs, into)
            return
        at = 0
        for run in self._runs(refs):
            width = self.bits(run)
            base, offset = self.place(run[0]) if self.in_memory(run[0]) else ("", 0)
            if base and offset % 8 == 0:
                yield f"memcpy({into} + {at // 8}, {_plus(base, offset // 8)}, {width // 8});"
                at += width
                continue
            for ref in run:
                width = self.program.width_bits(ref)
                for low in range(0, width, WORD_BITS):
                    taken = min(WORD_BITS, width - low)
                    yield _store(into, at + width - low - taken, taken, self.load(ref, low))
                at += width

    def _in_words(self, refs: Sequence[ir.FieldRef], into: str) -> Iterator[str]:
        """The same for fields of any width."""
        ends: list[tuple[int, int]] = []  # of each part: its last bit, and how many it has
        end = 0
        yield "{"
        for ref in refs:
            width = self.program.width_bits(ref)
            for low in reversed(range(0, width, WORD_BITS)):
                taken = min(WORD_BITS, width - low)
                end += taken
                yield f"\tconst uint64_t part_{len(ends)} = {self.load(ref, low)} & LOW_BITS({taken});"
                ends.append((end, taken))
        yield ""
        for first in range(0, end, WORD_BITS):
            bits = min(-(-(end - first) // 8) * 8, WORD_BITS)
            shifts = {n: first + bits - last for n, (last, taken) in enumerate(ends) if last - taken < first + bits}
            met = {n: shift for n, shift in shifts.items() if ends[n][0] > first}
            word = " | ".join(
                f"part_{n} {'<<' if s >= 0 else '>>'} {abs(s)}" if s else f"part_{n}" for n, s in met.items()
            )
            yield f"\tstore_bytes({into} + {first // 8}, {bits // 8}, {word});"
        yield "}"

    def _runs(self, refs: Sequence[ir.FieldRef]) -> list[list[ir.FieldRef]]:
        """Fields, those together that stand one after another in a header."""
        runs: list[list[ir.FieldRef]] = []
        for ref in refs:
            if runs and runs[-1][0].header == ref.header and self.in_memory(ref) and self.in_memory(runs[-1][0]):
                base, first = self.place(runs[-1][0])
                if self.place(ref) == (base, first + self.bits(runs[-1])):
                    runs[-1].append(ref)
                    continue
            runs.append([ref])
        return runs

    def together(self, refs: Sequence[ir.FieldRef]) -> str | None:
        """Pointer to fields that already stand one after another in a header, on whole bytes; None if they do not."""
        if len(self._runs(refs)) != 1 or not self.in_memory(refs[0]):
            return None
        base, first = self.place(refs[0])
        return _plus(base, first // 8) if first % 8 == 0 else None

    def _words_of(self, refs: Sequence[ir.FieldRef]) -> list[tuple[str, int]] | None:
        """Pointers to runs of fields that are words of 16 bit, with their bytes; None if they are no such words."""
        found = []
        for run in self._runs(refs):
            pointer, width = self.together(run), self.bits(run)
            if pointer is None or width % 16:
                return None
            found.append((pointer, width // 8))
        return found

    @override
    def action(self, action: ir.Action) -> Iterator[str]:
        """The body of an action. Where the written headers are is decided once, unless it adds or removes them."""
        body = list(flattened(action.body))
        moved = {s.header for s in body if isinstance(s, ir.AddHeader | ir.RemoveHeader)}
        written = {ref.header for s in body if (ref := destination(s)) is not None}
        fixed = written - moved - {ir.METADATA} - self.plan.always_valid
        for header in self.program.headers:
            if header.name in fixed:
                yield f"uint8_t *const to_{header.name} = writable(p->h_{header.name});"
        if fixed:
            yield ""
        yield from super(DpdkCWriter, replace(self, written=frozenset(fixed))).action(action)

    def _index(self, index: ir.Expression, size: int) -> str:
        return f"{self.expression(index)} & {mask(max((size - 1).bit_length(), 1)) if size > 1 else 0}"

    @override
    def colour(self, meter: str, index: ir.Expression) -> str:
        return f"colour(&meter_{meter}[{self._index(index, self.program.meter(meter).size)}], p->length)"

    @override
    def register(self, name: str, index: ir.Expression) -> str:
        return f"register_{name}[{self._index(index, self.program.register(name).size)}]"

    @override
    def effect(self, statement: ir.Statement) -> Iterator[str]:
        value = self.expression
        match statement:
            case ir.SetEgress(port):
                yield f"p->egress = (int32_t){value(port)};"
            case ir.Drop():
                yield "p->dropped = true;"
            case ir.RemoveHeader(name):
                yield f"p->h_{name} = absent;"
            case ir.CountPacket(name, index):
                counter = self.program.counter(name)
                cell = f"counter_{name}[{self._index(index, counter.size)}]"
                yield f"{cell} += p->length;" if counter.of_bytes else f"{cell}++;"
            case ir.WriteRegister(name, index, expression):
                width = self.program.register(name).width_bits
                yield f"{self.register(name, index)} = ({c_type(width)})({value(expression)} & {mask(width)});"
            case ir.Recirculate():
                yield "p->recirculated = true;"
            case ir.Resubmit():
                yield "p->resubmitted = true;"
            case ir.Clone(port):
                yield f"send_clone(p, {port});"
            case ir.RunOperator(ref, operator):
                yield from self.store(ref, f"({self.load(ref)} ^ {_call(operator)})")
            case ir.Truncate(size):
                yield f"p->most = {value(size)};"
            case ir.Fence(None):
                yield "fence(p->data, p->length);"
            case ir.Fence(ir.FieldRef() as ref):
                yield from self.store(ref, f"fence_after({self.load(ref)}, p->data, p->length)")
            case ir.Multicast(ports):
                if self.groups:
                    yield f"p->group = {self.groups.index(ports) + 1 if ports else 0};"

    @override
    def hash_fields(self, statement: ir.Hash) -> Iterator[str]:
        size = self.bits(statement.fields) // 8
        if statement.payload:
            if statement.algorithm != "checksum16" or size % 2:
                raise CapabilityError("dpdk-c hashes a payload only for checksums, behind fields of whole words")
            yield "{"
            yield f"\tuint8_t bytes[{max(size, 1)}] = {{0}};"
            yield ""
            yield from indented(self.gather(statement.fields, "bytes"))
            total = f"__rte_raw_cksum(p->data + p->parsed, p->length - p->parsed, __rte_raw_cksum(bytes, {size}, 0))"
            yield from indented(self.store(statement.destination, f"checksum16_of({total})"))
            yield "}"
            return
        if pointer := self.together(statement.fields):
            yield from self.store(statement.destination, f"hash_{statement.algorithm}({pointer}, {size})")
            return
        if statement.algorithm == "checksum16" and (words := self._words_of(statement.fields)):
            total = "0"
            for pointer, count in words:
                total = f"__rte_raw_cksum({pointer}, {count}, {total})"
            yield from self.store(statement.destination, f"checksum16_of({total})")
            return
        yield "{"
        yield f"\tuint8_t bytes[{size}] = {{0}};"
        yield ""
        yield from indented(self.gather(statement.fields, "bytes"))
        yield from indented(self.store(statement.destination, f"hash_{statement.algorithm}(bytes, {size})"))
        yield "}"

    @override
    def data_above(self, name: str, low: int) -> str:
        listed = any(isinstance(table.entries, ir.EntryList) for table in self.program.tables)
        wide = low < self.range(ir.ParameterRef(name)).high.bit_length()
        return f"d->{name}_above[{low // WORD_BITS - 1}]" if listed and wide else self.zero


def _plus(base: str, count: int) -> str:
    return f"{base} + {count}" if count else base


def _store(base: str, offset: int, width: int, value: str) -> str:
    if offset % 8 == width % 8 == 0:
        return f"store_bytes({_plus(base, offset // 8)}, {width // 8}, {value});"
    return f"store_bits({base}, {offset}, {width}, {value});"


def _call(operator: ir.Operator) -> str:
    if operator.code:
        return "operate(p->data, p->length)"
    if operator.name == "multiply_chain":
        return f"operator_multiply_chain(p->length, {operator.multiplications})"
    return f"operator_{operator.name}(p->data, p->length)"
