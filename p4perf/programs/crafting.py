"""Packets made bit by bit for a program: by a walk through its parser, and by what its tables and conditions take.

A packet is made by walking the parser: every header that is extracted gets random bits, and a select gets what one of
its cases takes. Then fields that are keys of a table get what one of its entries takes; a key in metadata is traced
back to the fields that are copied there.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from p4perf.programs import ir
from p4perf.programs.analysis import NEGATED, statements
from p4perf.programs.decisions import state_label, state_name
from p4perf.programs.operators import STANDARD_HASHES

MAX_STATES = 64
"""Longest walk through the parser; the rest of the packet is random then."""

_COPIES = 3
"""Copies of copies of a field that are followed."""


@dataclass
class CraftedPacket:
    """A packet in the making: its bits, and which of them are which fields."""

    program: ir.Program
    rng: random.Random
    value: int = 0
    bits: int = 0
    plain: bool = False
    """Whether all values of fields are as likely; else small numbers and zeros are more frequent."""
    places: dict[ir.FieldRef, tuple[int, int]] = field(default_factory=dict)
    """Offset from the beginning, and width, of fields that hold bits of the packet, extracted or looked at."""
    ahead: list[tuple[int, int, ir.Match]] = field(default_factory=list)
    """Offset, width and match of bits that are looked at and not yet there."""

    def append(self, width_bits: int) -> None:
        found = self.rng.getrandbits
        if not self.plain:
            found = self.rng.choice((found, lambda n: 0, lambda n: self.rng.randrange(min(1 << n, 4))))
        self.value = self.value << width_bits | found(width_bits) if width_bits else self.value
        self.bits += width_bits
        waiting, self.ahead = self.ahead, []
        for wanted in waiting:
            self.put(*wanted)

    def put(self, offset_bits: int, width_bits: int, match: ir.Match) -> None:
        """Bits that a match takes, random where it takes all; as soon as they are there."""
        at = self.bits - offset_bits - width_bits
        if at < 0:
            self.ahead.append((offset_bits, width_bits, match))
            return
        ones = (1 << width_bits) - 1
        wanted = self.rng.randint(match.low, match.high) & match.mask & ones
        kept = (self.value >> at) & ones & ~match.mask
        self.value = self.value & ~(ones << at) | (wanted | kept) << at

    def walk(self, wishes: Mapping[str, Collection[str]]) -> None:
        """Take the packet through the parser, along a random path; ``wishes`` are decisions of states, one of each."""
        name = "start"
        for _ in range(MAX_STATES):
            if name == ir.ACCEPT:
                return
            state = self.program.state(name)
            for statement in state.body:
                if isinstance(statement, ir.Extract):
                    self._extract(self.program.header(statement.header))
                elif isinstance(statement, ir.Advance) and isinstance(statement.bits, ir.Const):
                    self.append(statement.bits.value)
                elif isinstance(statement, ir.Assign) and (place := self._place(statement.value)) is not None:
                    self.places[statement.destination] = place
            chosen = self._case(state, wishes.get(state_name(state), ()))
            name = state.default
            if chosen is not None:
                name = chosen.next_state
                for e, match in zip(state.selected, chosen.matches, strict=True):
                    if (place := self._place(e)) is not None:
                        self.put(*place, match)

    def _case(self, state: ir.ParserState, wishes: Collection[str]) -> ir.SelectCase | None:
        cases = (*state.cases, *state.cases, None)
        wanted = [case for case in cases if wishes and state_label(self.program, state, case) in wishes]
        return self.rng.choice(wanted or cases)

    def _extract(self, header: ir.Header) -> None:
        for f in header.fields:
            width = 8 * self.rng.randrange(f.width_bits // 8 + 1) if f.varying else f.width_bits
            self.places[ir.FieldRef(header.name, f.name)] = self.bits, width
            self.append(width)

    def _place(self, e: ir.Expression) -> tuple[int, int] | None:
        """Offset and width of the bits of the packet that an expression is; None if it is anything else."""
        copied = _copied(self.program, e)
        return None if copied is None else self._held(*copied)

    def _held(self, source: ir.FieldRef | ir.Lookahead, low: int, width: int) -> tuple[int, int] | None:
        """Offset and width of bits of a field, or of those ahead; None if the packet does not hold them."""
        if isinstance(source, ir.Lookahead):
            offset, whole = self.bits + source.offset_bits, source.width_bits
        elif source in self.places:
            offset, whole = self.places[source]
        else:
            return None
        width = min(width, whole - low)
        return (offset + whole - low - width, width) if width >= 0 else None

    def place(self, ref: ir.FieldRef, avoided: Collection[tuple[int, int]] = ()) -> tuple[int, int] | None:
        """Where a key comes from, None if not from a field of an extracted header."""
        sources = ((ref, 0, self.program.width_bits(ref)), *_sources(self.program).get(ref, ()))
        found = [place for source in sources if (place := self._held(*source)) is not None]
        return next((place for place in found if place not in avoided), next(iter(found), None))

    def read(self, place: tuple[int, int]) -> int:
        offset, width = place
        return self.value >> max(self.bits - offset - width, 0) & (1 << width) - 1

    def hit(self, table: ir.Table, entry: ir.Entry, fixed: Collection[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """Give the keys of a table what one of its entries takes; returns the places that the entry cares for."""
        found = []
        for key, match in zip(table.keys, entry.matches, strict=True):
            place = self.place(key.field, fixed)
            if place is not None and match.mask and not match.low <= self.read(place) & match.mask <= match.high:
                self.put(*place, match)
            found += [place] if place is not None and match.mask else []
        return found

    def miss(self, table: ir.Table, fixed: Collection[tuple[int, int]] = ()) -> None:
        """Give the keys of a table that are not at fixed places random values."""
        for key in table.keys:
            place = self.place(key.field, fixed)
            if place is not None and place not in fixed:
                self.put(*place, ir.Match(-1, 0, (1 << place[1]) - 1))

    def decide(self, condition: ir.Condition, holds: bool) -> None:
        """Give fields values for which a condition holds or not, as far as it compares them with constants."""
        match condition:
            case ir.Not(inner):
                self.decide(inner, not holds)
            case ir.And(left, right) | ir.Or(left, right):
                both = holds == isinstance(condition, ir.And)
                for part in (left, right) if both else (self.rng.choice((left, right)),):
                    self.decide(part, holds)
            case ir.Compare(comparator, ir.FieldRef() as ref, ir.Const(value)) if place := self.place(ref):
                ones = (1 << place[1]) - 1
                comparator = comparator if holds else NEGATED[comparator]
                low, high = {"==": (value, value), "<": (0, value - 1), "<=": (0, value), ">": (value + 1, ones)}.get(
                    comparator, (value, ones) if comparator == ">=" else (0, ones)
                )
                if 0 <= low <= high <= ones:
                    self.put(*place, ir.Match(ones, low, high))

    def correct_checksums(self) -> None:
        """Give fields what the program calculates and compares with them."""
        for hashed, ref in _checksums(self.program):
            places = [self.place(r) for r in hashed.fields]
            to = self.place(ref)
            if to is not None and not hashed.payload:
                value = bits = 0
                for place in filter(None, places):
                    value, bits = value << place[1] | self.read(place), bits + place[1]
                data = (value << -bits % 8).to_bytes(-(-bits // 8), "big")
                result = STANDARD_HASHES[hashed.algorithm](data)
                self.put(*to, ir.Match.masked(result, (1 << to[1]) - 1))

    def frame(self, size_bytes: int | None) -> bytes:
        self.append(-self.bits % 8)
        data = self.value.to_bytes(self.bits // 8, "big")
        return data if size_bytes is None else data[:size_bytes].ljust(size_bytes, b"\0")


@ir.once
def _checksums(program: ir.Program) -> Sequence[tuple[ir.Hash, ir.FieldRef]]:
    """Hashes, and the header fields that they are compared with."""
    body = list(statements(program))
    hashes = {s.destination: s for s in body if isinstance(s, ir.Hash)}
    compared = (s.condition for s in body if isinstance(s, ir.Branch))
    return [
        (hashes[c.left], c.right)
        for c in compared
        if isinstance(c, ir.Compare) and isinstance(c.right, ir.FieldRef) and c.left in hashes
    ]


_Source = tuple[ir.FieldRef | ir.Lookahead, int, int]
"""Bits that are copied: the field, or those ahead of which they are a part, their lowest bit and their number."""


@ir.once
def _sources(program: ir.Program) -> Mapping[ir.Expression, Sequence[_Source]]:
    """What is copied to each field, and where that was copied from."""
    sources: dict[ir.Expression, list[_Source]] = {}
    for s in (*statements(program), *(s for state in program.parser for s in state.body)):
        if isinstance(s, ir.Assign) and (copied := _copied(program, s.value)) and isinstance(copied[0], ir.FieldRef):
            sources.setdefault(s.destination, []).append(copied)
    for _ in range(_COPIES):
        for known in sources.values():
            for ref, low, width in tuple(known):
                further = ((r, at + low, min(width, w - low)) for r, at, w in sources.get(ref, ()) if w > low)
                known += [each for each in further if each not in known]
    return sources


def _copied(program: ir.Program, e: ir.Expression) -> _Source | None:
    """The bits that an expression copies, None if it is something else."""
    match e:
        case ir.FieldRef():
            return e, 0, program.width_bits(e)
        case ir.Lookahead():
            return e, 0, e.width_bits
        case ir.Cast(value, bits) if (inner := _copied(program, value)) is not None:
            ref, low, width = inner
            return ref, low, min(width, bits)
        case ir.BinaryOp(operator, value, ir.Const(n)) if (inner := _copied(program, value)) is not None:
            ref, low, width = inner
            if operator == ">>" and n < width:
                return ref, low + n, width - n
            if operator == "&" and n and not n & n + 1:
                return ref, low, min(width, n.bit_length())
    return None
