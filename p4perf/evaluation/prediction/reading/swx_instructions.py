"""Instructions of SWX one by one: constructs, facts that they settle, and where they wait for memory.

The set is that of DPDK 22.11 (rte_swx_pipeline.h, "Instruction set", and lib/pipeline/rte_swx_pipeline.c). What is not
in it becomes a construct ``unknown``.

Every instruction of DPDK 22.11 that reads a field loads eight bytes where the field begins, and one that writes it
loads and stores eight bytes (rte_swx_pipeline_internal.h: ``MOV``, ``ALU``, ``JMP_CMP``, ``METADATA_WRITE``). A
processor hands a stored value on to a load as long as the store is on its way to the cache, but only if that store
holds all bytes of the load. Otherwise the load waits until the store is done, and so does all that follows from it.
Fields of fewer than eight bytes that are written one after another do so from field to field.

Where instructions are compiled (rte_swx_pipeline_codegen), the compiler knows the widths of fields and stores and loads
less of some. So there are waits of interpreted and of compiled code.

A wait for a store that was issued before the last wait ended costs nothing more: stores are done in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from p4perf.formats.swx_spec import COMPARE, COMPUTE, JUMPS, Specification, SpecLine, labelled, number
from p4perf.models.program.graph import Construct, construct
from p4perf.programs.reading.flow import Assigned, Effect, Fact, Instruction, Valid

SENT, LOST = "sent", "dropped"

HIT, RAN = "$hit", "$ran"
"""Fields in which the outcome of the last table is remembered: whether it was hit, and the number of its action."""


@dataclass(frozen=True)
class Translator:
    """Translates instructions of one place: of the action of that name, or of the apply block, which has none."""

    spec: Specification
    where: str
    remark: Callable[[str], None]
    clone_bytes: int
    action: str = ""
    ports: frozenset[str] = frozenset()

    def bits(self, operand: str, line: SpecLine) -> int:
        return self.spec.bits(operand, line, self.spec.arguments(self.action))

    def plain(self, line: SpecLine) -> Instruction:
        """An instruction that is neither a jump nor a table."""
        op = line.word(0)
        where = f"{self.where}, line {line.number}"
        if op == "tx":
            return Instruction(jumps=(("", SENT),), falls=None, where=where)
        if op == "drop":
            return Instruction((construct("drop", where),), jumps=(("", LOST),), falls=None, where=where)
        if op == "emit":
            bits = self.spec.header_bits(line.word(1), line)
            what = construct("emit", where, bytes=bits // 8)
            return Instruction(present=((line.word(1).removeprefix("h."), what),), kind="deparser", where=where)
        met, effects = self._plain(op, line, where)
        return Instruction(tuple(met), tuple(effects), where=where)

    def jump(self, line: SpecLine, target: int | str, actions: Mapping[str, int]) -> Instruction:
        op = line.word(0)
        where = f"{self.where}, line {line.number}"
        if op == "jmp":
            return Instruction((construct("jump", where),), jumps=(("", target),), falls=None, where=where)
        test: Fact | None = None
        inverted = op in ("jmpnv", "jmpnh", "jmpna", "jmpneq")
        bits = 1
        if op in ("jmpv", "jmpnv"):
            self.spec.header_bits(line.word(2), line)
            test = line.word(2).removeprefix("h.")
        elif op in ("jmph", "jmpnh"):
            test = (HIT, 1)
        elif op in ("jmpa", "jmpna"):
            if line.word(2) not in actions:
                raise line.error(f"there is no action {line.word(2)!r}")
            test = (RAN, actions[line.word(2)])
        else:
            bits = self.bits(line.word(2), line)
            value = number(line.word(3))
            if value is None:
                self.bits(line.word(3), line)
            elif op in ("jmpeq", "jmpneq"):
                test = (line.word(2), value)
        what = construct("condition", where, bits=bits)
        return Instruction(
            (what,), (), (("true", target),), "false", test=test, inverted=inverted, kind="condition", where=where
        )

    def _plain(self, op: str, line: SpecLine, where: str) -> tuple[list[Construct], list[Effect]]:
        if op == "rx":
            return [], [Assigned(line.word(1), None)]
        if op in ("extract", "lookahead"):
            header = line.word(1)
            size = self.spec.header_bits(header, line) // 8
            if len(line.words) > 2:
                self.remark(f"header {header} has a varying length and is counted with its greatest, {size} B")
            return [construct("extract", where, bytes=size)], [Valid(header.removeprefix("h."), True)]
        if op in ("validate", "invalidate"):
            size = self.spec.header_bits(line.word(1), line) // 8
            what = construct("add header" if op == "validate" else "remove header", where, bytes=size)
            if line.word(1) not in self.spec.sent:
                what = construct("write", where, bits=1, to="metadata")  # a mark, and nothing moves
            return [what], [Valid(line.word(1).removeprefix("h."), op == "validate")]
        if op in ("mov", "movh", "dma"):
            return self._move(op, line, where)
        if op in COMPUTE:
            bits = self.bits(line.word(1), line)
            self.bits(line.word(2), line)
            return [construct("compute", where, operator=COMPUTE[op], bits=bits)], [Assigned(line.word(1), None)]
        if op in ("ckadd", "cksub"):
            size = -(-min(self.bits(line.word(2), line), 1 << 16) // 8)
            return [construct("checksum update", where, bytes=size)], [Assigned(line.word(1), None)]
        if op in ("hash", "rss"):
            size = -(-self.spec.span_bits(line.word(3), line.words[-1], line) // 8)
            algorithm = line.word(1) if op == "hash" else "toeplitz"
            return [construct("hash", where, algorithm=algorithm, bytes=size)], [Assigned(line.word(2), None)]
        return self._stateful(op, line, where)

    def _move(self, op: str, line: SpecLine, where: str) -> tuple[list[Construct], list[Effect]]:
        target = line.word(1)
        bits = self.bits(target, line)
        self.bits(line.word(2), line)
        if target in self.ports:
            return [construct("set egress", where)], []
        value = number(line.word(2)) if op == "mov" else None
        if value is not None:
            value &= (1 << bits) - 1
        effects: list[Effect] = [Assigned(target, value)]
        if op == "dma":
            effects = [Valid(target.removeprefix("h."), True)]
        to = "header" if target.startswith("h.") else "metadata"
        return [construct("write", where, bits=bits, to=to)], effects

    def _stateful(self, op: str, line: SpecLine, where: str) -> tuple[list[Construct], list[Effect]]:
        spec = self.spec
        if op == "regrd":
            cells, bits = _array(spec.registers, line, 2), self.bits(line.word(1), line)
            return [construct("register read", where, cells=cells, bits=bits)], [Assigned(line.word(1), None)]
        if op == "regwr":
            cells, bits = _array(spec.registers, line, 1), self.bits(line.word(3), line)
            return [construct("register write", where, cells=cells, bits=bits)], []
        if op == "regadd":
            return [construct("counter", where, cells=_array(spec.registers, line, 1))], []
        if op == "meter":
            return [construct("meter", where, cells=_array(spec.meters, line, 1))], [Assigned(line.words[-1], None)]
        if op == "mirror":
            self.remark(f"mirrored packets are counted with {self.clone_bytes} B")
            return [construct("clone", where, bytes=self.clone_bytes)], []
        if op == "recirculate":
            return [construct("recirculate", where)], []
        if op in ("recircid", "entryid"):
            bits = self.bits(line.word(1), line)
            return [construct("write", where, bits=bits, to="metadata")], [Assigned(line.word(1), None)]
        name = " ".join(line.words[:2]) if op == "extern" else op
        self.remark(f"{name} is not known and counted as unknown")
        return [construct("unknown", where, name=name)], []


def _array(found: Mapping[str, int], line: SpecLine, n: int) -> int:
    if line.word(n) not in found:
        raise line.error(f"there is no array {line.word(n)!r}")
    return found[line.word(n)]


ACCESS_BYTES = 8

RECENT = 16
"""Instructions after which a store is taken to have arrived."""

NARROW_BITS = (8, 16, 32)
"""Widths of fields that a processor stores and loads without their neighbours."""

MOST = 4
"""Waits in a row after which a further one costs what the one before did."""

LONGEST_KEY_BYTES = 64

YIELDS = ("rx", "table", "tx", "drop", "extern")
"""Instructions at which other packets take their turn: what was written before has arrived afterwards."""

ENDS = ("jmp", "return", "tx", "drop")
"""Instructions after which the next one is not the one behind them."""

Span = tuple[str, int, int]
"""A structure, or the packet (empty), and the bytes of it from the first one up to the one behind the last."""


def swaps(line: SpecLine) -> int:
    """Whether an instruction turns the bytes of a header field around to compute with it, and back: 1, or 0.

    What it stores waits so much longer for what it loads.
    """
    if line.word(0) not in COMPUTE or not line.word(1).startswith("h."):
        return 0
    return int(line.word(0) not in ("and", "or", "xor") or number(line.word(2)) is None)


@dataclass(frozen=True, slots=True)
class _Store:
    span: Span
    at: int


@dataclass(frozen=True, slots=True)
class Pending:
    """What is on its way: stores, the latest first, the instruction that waited last, and how many have waited."""

    stores: tuple[_Store, ...] = ()
    waited: int = -1
    waits: int = 0

    def moved(self, by: int) -> Pending:
        """The same, counted from another instruction."""
        stores = tuple(_Store(store.span, store.at + by) for store in self.stores)
        return Pending(stores, self.waited + by, self.waits)


@dataclass
class Waits:
    """Counts the waits of the instructions of a list, in the order in which they stand.

    Where paths meet, packets are taken to come from the instruction before, or else from the first jump that leads
    there. After a table they are taken to come from the action that ``after`` knows.

    Args:
        arguments: structure of the data of the action in which they stand.
        after: what is on its way after the action of a table, counted from the end of that.
        compiled: whether a compiler has seen the instructions: it leaves out what it can.
    """

    spec: Specification
    arguments: str = ""
    after: Mapping[str, Pending] = field(default_factory=dict)
    compiled: bool = False
    end: Pending | None = None
    """What is on its way when the instructions return, counted from there."""
    _offsets: dict[tuple[str, str], int] = field(default_factory=dict)

    def of(self, lines: Sequence[SpecLine], labels: dict[str, int]) -> list[int | None]:
        """How many have waited before each instruction that waits, up to :data:`MOST`; None of the others."""
        found: list[int | None] = []
        arrives: dict[int, Pending] = {}
        now: Pending | None = Pending()
        for n, line in enumerate(lines):
            now = now or arrives.get(n) or Pending()
            before = now.waits
            waits, now = self._step(n, line, now)
            found.append(min(before, MOST) if waits else None)
            op = line.word(0)
            if op in JUMPS and (target := labels.get(line.word(1))) is not None:
                arrives.setdefault(target, now)
            if op == "return" and self.end is None:
                self.end = now.moved(-n)
            if op in ENDS:
                now = None
        return found

    def _step(self, n: int, line: SpecLine, now: Pending) -> tuple[bool, Pending]:
        waits, after = False, now
        for span in map(self._placed, self._loads(line)):
            store = self._blocking(span, now, n)
            if store is not None and store.at >= after.waited:
                waits, after = True, replace(after, waited=n, waits=now.waits + 1)
        if line.word(0) == "table":
            return waits, self.after.get(line.word(1), Pending()).moved(n)
        if line.word(0) in YIELDS:
            return waits, Pending()
        stores = tuple(_Store(self._placed(span), n) for span in self._stores(line))
        return waits, replace(after, stores=(*stores, *after.stores)[:RECENT])

    def _placed(self, span: Span) -> Span:
        """The same, in the packet if the structure is a header that lies there: next to it begins the next header."""
        at = self._extracted.get(span[0])
        return span if at is None else ("", span[1] + at, span[2] + at)

    @cached_property
    def _extracted(self) -> Mapping[str, int]:
        """Where in the packet headers begin that are extracted, on the first path that leads there."""
        labels, lines = labelled(self.spec.apply.lines)
        found: dict[str, int] = {}
        arrives: dict[int, int] = {}
        at: int | None = 0
        for n, line in enumerate(lines):
            at = arrives.get(n, 0) if at is None else at
            if line.word(0) == "extract":
                found.setdefault(line.word(1), at)
                at += self.spec.header_bits(line.word(1), line) // 8
            if line.word(0) in JUMPS and (target := labels.get(line.word(1))) is not None:
                arrives.setdefault(target, at)
            if line.word(0) in ENDS:
                at = None
        return found

    @staticmethod
    def _blocking(span: Span, now: Pending, n: int) -> _Store | None:
        """The latest store to some of the bytes, if it has not all of them."""
        name, first, last = span
        for store in now.stores:
            if n - store.at > RECENT:
                return None
            of, begin, end = store.span
            if of == name and begin < last and first < end:
                return None if begin <= first and last <= end else store
        return None

    def _loads(self, line: SpecLine) -> Iterator[Span]:
        op, words = line.word(0), line.words
        if op in COMPARE:
            yield from self._fields(words[2:4], line)
        elif op == "mov" or op in COMPUTE:
            target, source = self._widths(line) if self.compiled else (ACCESS_BYTES, ACCESS_BYTES)
            yield from self._fields(words[1:2] if target == ACCESS_BYTES else (), line)
            yield from self._fields(words[2:3], line, source)
        elif op in ("regrd", "regwr", "regadd", "meter", "recircid", "entryid", "rx", "tx", "mirror"):
            yield from self._fields([w for w in words[1:] if "." in w], line)
        elif op == "hash":
            yield from self._run(words[3], words[-1], line)
            yield from self._fields(words[2:3], line)
        elif op in ("ckadd", "cksub"):
            yield from self._sum(words[1], words[2], line)
        elif op == "table":
            yield from self._key(line)

    def _stores(self, line: SpecLine) -> Iterator[Span]:
        op, words = line.word(0), line.words
        if op == "mov" or op in COMPUTE:
            target = self._widths(line)[0] if self.compiled else ACCESS_BYTES
            yield from self._fields(words[1:2], line, target or ACCESS_BYTES)
        elif op in ("regrd", "recircid", "entryid"):
            yield from self._fields(words[1:2], line)
        elif op == "hash":
            yield from self._fields(words[2:3], line)
        elif op == "meter":
            yield from self._fields(words[-1:], line)
        elif op in ("ckadd", "cksub"):
            yield from ((name, first, first + 2) for name, first, _ in self._fields(words[1:2], line))

    def _widths(self, line: SpecLine) -> tuple[int, int]:
        """Bytes that compiled code stores (0: all eight without reading them first), and that it loads of the source.

        What gcc 12 makes of the macros with ``-O3``: it stores just the field where all that is stored is known to be
        of it, and loads just the field where the order of bytes is that of the processor.
        """
        target, source = line.word(1), line.word(2)
        bits = self.spec.bits(target, line, self.arguments)
        constant = number(source)
        width = self.spec.bits(source, line, self.arguments) if constant is None else bits
        native = not source.startswith("h.")
        short = width // 8 if width in NARROW_BITS and native else ACCESS_BYTES
        if line.word(0) != "mov":
            return ACCESS_BYTES, short
        if bits == 8 * ACCESS_BYTES:
            return 0, short
        if bits not in NARROW_BITS or (constant == 0 and bits < max(NARROW_BITS)):
            return ACCESS_BYTES, short
        if constant is not None:
            return bits // 8, short
        if target.startswith("h."):
            return bits // 8, width // 8 if width in NARROW_BITS else ACCESS_BYTES
        return ACCESS_BYTES, short

    def _fields(self, operands: Sequence[str], line: SpecLine, width: int = ACCESS_BYTES) -> Iterator[Span]:
        """``width`` bytes from where each field begins; constants, action data and whole headers are left out."""
        for operand in operands:
            name, _, last = operand.rpartition(".")
            if number(operand) is not None or name in ("", "h", "t", "e", "f"):
                continue
            at = self._offset(name, last)
            wide = self.spec.bits(operand, line, self.arguments) // 8
            yield name, at, at + (wide if wide > ACCESS_BYTES else width)

    def _offset(self, name: str, wanted: str) -> int:
        if (name, wanted) not in self._offsets:
            at = 0
            for each, bits in self._structure(name):
                self._offsets[name, each] = at // 8
                at += bits
        return self._offsets.get((name, wanted), 0)

    def _structure(self, name: str) -> tuple[tuple[str, int], ...]:
        struct = self.spec.metadata if name == "m" else self.spec.headers.get(name.removeprefix("h."), "")
        return self.spec.structs.get(struct, ())

    def _run(self, first: str, last: str, line: SpecLine) -> Iterator[Span]:
        """Words from one field to another one."""
        name = first.rpartition(".")[0]
        begin = self._offset(name, first.rpartition(".")[2])
        end = self._offset(name, last.rpartition(".")[2]) + self.spec.bits(last, line, self.arguments) // 8
        for at in range(begin, max(end, begin + 1), ACCESS_BYTES):
            yield name, at, min(at + ACCESS_BYTES, end)

    def _sum(self, target: str, source: str, line: SpecLine) -> Iterator[Span]:
        for name, first, _ in self._fields([target], line):
            yield name, first, first + 2
        if source.count(".") == 1 and source.startswith("h."):
            size = self.spec.header_bits(source, line) // 8
            yield from ((source, at, at + 4) for at in range(0, size - 3, 4))
        else:
            yield from self._fields([source], line)

    def _key(self, line: SpecLine) -> Iterator[Span]:
        """The key of a table: of an exact one, its words one after another; of others each field."""
        table = self.spec.tables.get(line.word(1)) or self.spec.learners.get(line.word(1))
        keys = table.inner("key") if table is not None else None
        if keys is None or not keys.lines:
            return
        operands = [key.word(0) for key in keys.lines]
        if any(len(key.words) > 1 and key.words[1] != "exact" for key in keys.lines):
            for operand in operands:
                name, _, last = operand.rpartition(".")
                at = self._offset(name, last)
                yield name, at, at + max(1, self.spec.bits(operand, line, self.arguments) // 8)
            return
        ordered = sorted(operands, key=lambda o: self._offset(*o.rpartition(".")[::2]))
        yield from list(self._run(ordered[0], ordered[-1], line))[: LONGEST_KEY_BYTES // ACCESS_BYTES]
