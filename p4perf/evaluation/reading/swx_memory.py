"""Where instructions of SWX wait for memory: a field is read before an earlier write to its neighbour has arrived.

Every instruction of DPDK 22.11 that reads a field loads eight bytes where the field begins, and one that writes it
loads and stores eight bytes (rte_swx_pipeline_internal.h: ``MOV``, ``ALU``, ``JMP_CMP``, ``METADATA_WRITE``). A
processor hands a stored value on to a load as long as the store is on its way to the cache, but only if that store
holds all bytes of the load. Otherwise the load waits until the store is done, and so does all that follows from it.
Fields of fewer than eight bytes that are written one after another do so from field to field.

A wait for a store that was issued before the last wait ended costs nothing more: stores are done in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from p4perf.evaluation.reading.swx_instructions import COMPARE, COMPUTE, JUMPS
from p4perf.evaluation.reading.swx_text import Line, Specification, number

ACCESS_BYTES = 8

RECENT = 16
"""Stores of so many instructions are taken to be on their way still."""

LONGEST_KEY_BYTES = 64

YIELDS = ("rx", "table", "tx", "drop", "extern")
"""Instructions at which other packets take their turn: what was written before has arrived afterwards."""

Span = tuple[str, int, int]
"""A structure, and the bytes of it from the first one up to the one behind the last."""


@dataclass(frozen=True, slots=True)
class _Store:
    span: Span
    at: int


@dataclass(frozen=True, slots=True)
class Pending:
    """What is on its way: stores, the latest first, and the instruction that waited last."""

    stores: tuple[_Store, ...] = ()
    waited: int = -1


@dataclass
class Waits:
    """Counts the waits of the instructions of a list, in the order in which they stand.

    Where ways meet, packets are taken to come from the instruction before, or else from the first jump that leads
    there.

    Args:
        spec: what is declared.
        arguments: structure of the data of the action in which they stand.
    """

    spec: Specification
    arguments: str = ""
    _offsets: dict[tuple[str, str], int] = field(default_factory=dict)

    def of(self, lines: Sequence[Line], labels: dict[str, int]) -> list[int]:
        """How often each instruction waits.

        Args:
            lines: instructions without their labels.
            labels: numbers of the instructions that have one.
        """
        found, arrives = [], dict[int, Pending]()
        now: Pending | None = Pending()
        for n, line in enumerate(lines):
            now = now or arrives.get(n) or Pending()
            waits, now = self._step(n, line, now)
            found.append(waits)
            op = line.word(0)
            if op in JUMPS and (target := labels.get(line.words[1])) is not None:
                arrives.setdefault(target, now)
            if op in ("jmp", "return", "tx", "drop"):
                now = None
        return found

    def _step(self, n: int, line: Line, now: Pending) -> tuple[int, Pending]:
        waits, after = 0, now
        for span in self._loads(line):
            store = self._blocking(span, now, n)
            if store is not None and store.at >= after.waited:
                waits, after = 1, replace(after, waited=n)
        if line.word(0) in YIELDS:
            return waits, Pending()
        stores = tuple(_Store(span, n) for span in self._stores(line))
        return waits, replace(after, stores=(*stores, *after.stores)[:RECENT])

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

    def _loads(self, line: Line) -> Iterator[Span]:
        op, words = line.word(0), line.words
        if op in COMPARE:
            yield from self._fields(words[2:4], line)
        elif op == "mov" or op in COMPUTE:
            yield from self._fields(words[1:3], line)
        elif op in ("regrd", "regwr", "regadd", "meter", "recircid", "entryid", "rx", "tx", "mirror"):
            yield from self._fields([w for w in words[1:] if "." in w], line)
        elif op == "hash":
            yield from self._run(words[3], words[-1], line)
            yield from self._fields(words[2:3], line)
        elif op in ("ckadd", "cksub"):
            yield from self._sum(words[1], words[2], line)
        elif op == "table":
            yield from self._key(line)

    def _stores(self, line: Line) -> Iterator[Span]:
        op, words = line.word(0), line.words
        if op == "mov" or op in COMPUTE or op in ("regrd", "recircid", "entryid"):
            yield from self._fields(words[1:2], line)
        elif op == "hash":
            yield from self._fields(words[2:3], line)
        elif op == "meter":
            yield from self._fields(words[-1:], line)
        elif op in ("ckadd", "cksub"):
            yield from ((name, first, first + 2) for name, first, _ in self._fields(words[1:2], line))

    def _fields(self, operands: Sequence[str], line: Line) -> Iterator[Span]:
        """Eight bytes from where each field begins; constants, action data and whole headers are left out."""
        for operand in operands:
            name, _, last = operand.rpartition(".")
            if number(operand) is not None or name in ("", "h", "t", "e", "f"):
                continue
            at = self._offset(name, last)
            width = max(ACCESS_BYTES, self.spec.bits(operand, line, self.arguments) // 8)
            yield name, at, at + width

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

    def _run(self, first: str, last: str, line: Line) -> Iterator[Span]:
        """Words from one field to another one."""
        name = first.rpartition(".")[0]
        begin = self._offset(name, first.rpartition(".")[2])
        end = self._offset(name, last.rpartition(".")[2]) + self.spec.bits(last, line, self.arguments) // 8
        for at in range(begin, max(end, begin + 1), ACCESS_BYTES):
            yield name, at, min(at + ACCESS_BYTES, end)

    def _sum(self, target: str, source: str, line: Line) -> Iterator[Span]:
        for name, first, _ in self._fields([target], line):
            yield name, first, first + 2
        if source.count(".") == 1 and source.startswith("h."):
            size = self.spec.header_bits(source, line) // 8
            yield from ((source, at, at + 4) for at in range(0, size - 3, 4))
        else:
            yield from self._fields([source], line)

    def _key(self, line: Line) -> Iterator[Span]:
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
