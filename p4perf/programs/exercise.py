"""Packets that take a program along its paths: what a program that was read is verified with.

A packet is made by walking the parser: every header that is extracted gets random bits, and a select gets what one of
its cases takes. Then fields that are keys of a table get what one of its entries takes. Some packets are cut short.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from p4perf.programs import ir

MAX_STATES = 64
"""Longest walk through the parser; the rest of the packet is random then."""

CUT_SHARE = 12
"""One packet in so many is cut short."""


@dataclass
class _Packet:
    program: ir.Program
    rng: random.Random
    value: int = 0
    bits: int = 0
    places: dict[ir.FieldRef, tuple[int, int]] = field(default_factory=dict)
    """Offset from the beginning, and width, of fields that hold bits of the packet, extracted or looked at."""
    ahead: list[tuple[int, int, ir.Match]] = field(default_factory=list)
    """Offset, width and match of bits that are looked at and not yet there."""

    def append(self, width_bits: int) -> None:
        """More bits; small numbers and zeros are more frequent than by chance."""
        found = self.rng.choice((self.rng.getrandbits, lambda n: 0, lambda n: self.rng.randrange(min(1 << n, 4))))
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

    def walk(self) -> None:
        """Take the packet through the parser, along a random path."""
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
            chosen = self.rng.choice((*state.cases, *state.cases, None))
            name = state.default
            if chosen is not None:
                name = chosen.next_state
                for e, match in zip(state.selected, chosen.matches, strict=True):
                    if (place := self._place(e)) is not None:
                        self.put(*place, match)

    def _extract(self, header: ir.Header) -> None:
        for f in header.fields:
            width = 8 * self.rng.randrange(f.width_bits // 8 + 1) if f.varying else f.width_bits
            self.places[ir.FieldRef(header.name, f.name)] = self.bits, width
            self.append(width)

    def _place(self, e: ir.Expression) -> tuple[int, int] | None:
        """Offset and width of the bits of the packet that an expression is; None if it is anything else."""
        match e:
            case ir.FieldRef():
                return self.places.get(e)
            case ir.Lookahead(offset_bits, width_bits):
                return self.bits + offset_bits, width_bits
            case ir.Cast(inner, width_bits) if (place := self._place(inner)) is not None:
                narrower = min(width_bits, place[1])
                return place[0] + place[1] - narrower, narrower
            case ir.BinaryOp(">>", inner, ir.Const(n)) if (place := self._place(inner)) is not None and n < place[1]:
                return place[0], place[1] - n
        return None

    def hit(self) -> None:
        """Give the keys of a table what one of its entries takes."""
        table = self.rng.choice(self.program.tables)
        if isinstance(table.entries, ir.EntryList) and table.entries.entries:
            entry = self.rng.choice(table.entries.entries)
            for key, match in zip(table.keys, entry.matches, strict=True):
                if key.field in self.places:
                    self.put(*self.places[key.field], match)


def frames(program: ir.Program, count: int, seed: int = 1, size_bytes: int | None = None) -> tuple[bytes, ...]:
    """That many frames without FCS.

    Args:
        size_bytes: size of all of them; longer ones are cut there, others filled with zeros. None: as they come, some
            of them cut short.
    """
    rng = random.Random(seed)  # noqa: S311
    found = []
    for n in range(count):
        packet = _Packet(program, rng)
        packet.walk()
        for _ in range(min(len(program.tables), 4)):
            packet.hit()
        packet.append(-packet.bits % 8)
        data = packet.value.to_bytes(packet.bits // 8, "big") + rng.randbytes(rng.choice((0, 1, 16, 46)))
        if size_bytes is not None:
            data = data[:size_bytes].ljust(size_bytes, b"\0")
        elif n % CUT_SHARE == CUT_SHARE - 1:
            data = data[: rng.randrange(len(data) + 1)]
        found.append(data or b"\0")
    return tuple(found)
