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
    """Offset from the beginning, and width, of the fields of extracted headers."""

    def append(self, width_bits: int) -> None:
        """More bits; small numbers and zeros are more frequent than by chance."""
        found = self.rng.choice((self.rng.getrandbits, lambda n: 0, lambda n: self.rng.randrange(min(1 << n, 4))))
        self.value = self.value << width_bits | found(width_bits) if width_bits else self.value
        self.bits += width_bits

    def put(self, offset_bits: int, width_bits: int, match: ir.Match) -> None:
        """Bits that a match takes, random where it takes all."""
        at = self.bits - offset_bits - width_bits
        if at < 0:
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
            chosen = self.rng.choice((*state.cases, *state.cases, None))
            name = state.default
            if chosen is not None:
                name = chosen.next_state
                for e, match in zip(state.selected, chosen.matches, strict=True):
                    self._select(e, match)

    def _extract(self, header: ir.Header) -> None:
        for f in header.fields:
            width = 8 * self.rng.randrange(f.width_bits // 8 + 1) if f.varying else f.width_bits
            self.places[ir.FieldRef(header.name, f.name)] = self.bits, width
            self.append(width)

    def _select(self, e: ir.Expression, match: ir.Match) -> None:
        if isinstance(e, ir.FieldRef) and e in self.places:
            self.put(*self.places[e], match)
        elif isinstance(e, ir.Lookahead):
            ahead = self.bits
            value, bits = self.value, self.bits
            self.append(e.offset_bits + e.width_bits)
            self.put(ahead + e.offset_bits, e.width_bits, match)
            # What is looked at is extracted afterwards: it is random then but for the first headers that fit.
            self.value, self.bits = value, bits

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
