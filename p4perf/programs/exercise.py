"""Packets that take a program along its paths: what a program that was read is verified and measured with.

A packet is made by walking the parser: every header that is extracted gets random bits, and a select gets what one of
its cases takes. Then fields that are keys of a table get what one of its entries takes; a key in metadata is traced
back to the fields that are copied there.

For the verification (:func:`frames`) anything goes: packets miss tables as well, and some are cut short. What is
measured (:func:`traffic`) hits or misses as was asked for: the interpreter says what a packet meets, and the packet is
changed until that is so, or the attempts are used up.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.analysis import statements
from p4perf.programs.entries import EntryIndex
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import STANDARD_HASHES
from p4perf.programs.packet_state import PacketState
from p4perf.programs.packets import field_offset_bits, frame

MAX_STATES = 64
"""Longest walk through the parser; the rest of the packet is random then."""

CUT_SHARE = 12
"""One packet in so many is cut short."""

_WALKS = 8
"""Paths through the parser that are tried for a packet that is measured."""

_CHANGES = 16
"""Tables whose keys are changed in turn on one of these paths."""

SPREAD = 4096
"""Frames of a program of components, where these do not follow a rule."""

_COPIES = 3
"""Copies of copies of a field that are followed."""

_CHOICES = 24
"""Entries that are tried for one that goes together with the entries of other tables."""


@dataclass
class _Packet:
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

    def place(self, ref: ir.FieldRef, avoided: Collection[tuple[int, int]] = ()) -> tuple[int, int] | None:
        """Where a key comes from, None if not from a field of an extracted header."""
        found = []
        for source, low, width in ((ref, 0, self.program.width_bits(ref)), *_sources(self.program).get(ref, ())):
            if source in self.places:
                offset, whole = self.places[source]
                width = min(width, whole - low)
                found.append((offset + whole - low - width, width))
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


def _checksums(program: ir.Program) -> Sequence[tuple[ir.Hash, ir.FieldRef]]:
    """Hashes, and the header fields that they are compared with."""

    def found() -> list[tuple[ir.Hash, ir.FieldRef]]:
        body = list(statements(program))
        hashes = {s.destination: s for s in body if isinstance(s, ir.Hash)}
        compared = (s.condition for s in body if isinstance(s, ir.Branch))
        return [
            (hashes[c.left], c.right)
            for c in compared
            if isinstance(c, ir.Compare) and isinstance(c.right, ir.FieldRef) and c.left in hashes
        ]

    return program.once("compared checksums", found)


_Source = tuple[ir.FieldRef, int, int]
"""Bits of a field that are copied: the field, their lowest bit and their number."""


def _sources(program: ir.Program) -> Mapping[ir.FieldRef, Sequence[_Source]]:
    """What is copied to each field, and where that was copied from."""

    def found() -> dict[ir.FieldRef, list[_Source]]:
        sources: dict[ir.FieldRef, list[_Source]] = {}
        for s in (*statements(program), *(s for state in program.parser for s in state.body)):
            if isinstance(s, ir.Assign) and (copied := _copied(program, s.value)) is not None:
                sources.setdefault(s.destination, []).append(copied)
        for _ in range(_COPIES):
            for known in sources.values():
                for ref, low, width in tuple(known):
                    further = ((r, at + low, min(width, w - low)) for r, at, w in sources.get(ref, ()) if w > low)
                    known += [each for each in further if each not in known]
        return sources

    return program.once("sources", found)


def _copied(program: ir.Program, e: ir.Expression) -> _Source | None:
    """The bits of a field that an expression is, None if it is something else."""
    match e:
        case ir.FieldRef():
            return e, 0, program.width_bits(e)
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
            table = rng.choice(program.tables)
            if table.listing:
                packet.hit(table, rng.choice(table.listing))
        data = packet.frame(None) + rng.randbytes(rng.choice((0, 1, 16, 46)))
        if size_bytes is not None:
            data = data[:size_bytes].ljust(size_bytes, b"\0")
        elif n % CUT_SHARE == CUT_SHARE - 1:
            data = data[: rng.randrange(len(data) + 1)]
        found.append(data or b"\0")
    return tuple(found)


class _Lookups(Interpreter):
    """Keeps which tables with keys a packet met, and whether it hit them."""

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program)
        self.met: dict[str, bool] = {}

    @override
    def _looked_up(
        self, table: ir.Table, values: list[int], packet: PacketState
    ) -> tuple[ir.Action, Mapping[str, int], bool]:
        found = super()._looked_up(table, values, packet)
        if table.keys:
            self.met.setdefault(table.name, found[2])
        return found


def spread(
    program: ir.Program, packets: ir.PacketSpec, hit_ratio: float, zipf: float, seed: int = 1
) -> tuple[bytes, ...]:
    """Frames of a program of components that differ in the keys of its tables whose entries are one by one.

    Args:
        hit_ratio: share of the frames that find an entry.
        zipf: as of :func:`traffic`.
    """
    rng = random.Random(seed)  # noqa: S311
    base = frame(program, packets)
    places = {
        ir.FieldRef(h.header, f.name): (
            field_offset_bits(program, packets, ir.FieldRef(h.header, f.name)),
            f.width_bits,
        )
        for h in packets.headers
        for f in program.header(h.header).fields
    }
    tables = {table.keys: table for table in program.tables if table.listing}.values()
    drawn = [(t, _Popular(t.listing, zipf, rng), EntryIndex(t.listing)) for t in tables]
    found = []
    for _ in range(SPREAD):
        packet = _Packet(program, rng, int.from_bytes(base, "big"), 8 * len(base), True, places)
        missed = rng.random() >= hit_ratio
        for table, entries, index in drawn:
            packet.hit(table, entries.draw(packet, table, ()))
            for _ in range(_CHOICES if missed else 0):
                if index.find([packet.read(places[key.field]) for key in table.keys]) is None:
                    break
                _miss(packet, table, ())
        found.append(packet.frame(None))
    return tuple(found)


def traffic(
    program: ir.Program,
    count: int,
    seed: int = 1,
    size_bytes: int | None = None,
    misses: Mapping[str, float] | None = None,
    zipf: float = 0.0,
) -> tuple[bytes, ...]:
    """That many frames without FCS, that hit the tables which they come to; every table is aimed at as often.

    Args:
        misses: shares of the packets that come to a table and miss it, by the names of tables; 0 for others.
        zipf: exponent of the popularity of the entries of a table, of which any may be the most popular; 0: all are
            hit as often.

    Raises:
        RecursionError, ValueError: as of :meth:`Interpreter.run`.
    """
    rng = random.Random(seed)  # noqa: S311
    tables = [table for table in program.tables if table.listing]
    drawers = {table.name: _Popular(table.listing, zipf, rng) for table in tables}
    lookups = _Lookups(program)
    found = []
    for _ in range(count):
        missed = {t.name for t in tables if rng.random() < (misses or {}).get(t.name, 0.0)}
        best, least = b"", (2, 0, 0, 0)
        aim = rng.choice(tables).name if tables else ""
        for walk in range(_WALKS):
            packet = _Packet(program, rng, plain=walk < _WALKS // 2)
            packet.walk()
            wrong = _steer(packet, lookups, drawers, missed, size_bytes)
            right = len(lookups.met) - wrong
            score = int(bool(tables) and not right), wrong, int(aim not in lookups.met), -right
            if score < least:
                best, least = packet.frame(size_bytes), score
            if score[:3] == (0, 0, int(not tables)):
                break
        found.append(best or b"\0")
    return tuple(found)


def _steer(
    packet: _Packet,
    lookups: _Lookups,
    drawers: Mapping[str, _Popular],
    missed: set[str],
    size_bytes: int | None,
) -> int:
    """Change a packet until it hits and misses as is wanted; returns how many tables it still does not."""
    fixed: list[tuple[int, int]] = []
    changed: set[str] = set()
    while True:
        lookups.met = {}
        packet.correct_checksums()
        lookups.run(packet.frame(size_bytes))
        wrong = [name for name, hit in lookups.met.items() if name in drawers and hit == (name in missed)]
        todo = next((name for name in wrong if name not in changed), None)
        # The first look-up of each table draws its entry by popularity, even if it hits one by chance.
        todo = todo or next((n for n in lookups.met if n in drawers and n not in changed | missed), None)
        if todo is None or len(changed) >= _CHANGES:
            return len(wrong)
        changed.add(todo)
        table = packet.program.table(todo)
        if todo in missed:
            _miss(packet, table, fixed)
        else:
            fixed += packet.hit(table, drawers[todo].draw(packet, table, fixed), fixed)


def _miss(packet: _Packet, table: ir.Table, fixed: Sequence[tuple[int, int]]) -> None:
    """Give the keys of a table that no other one needs random values."""
    for key in table.keys:
        place = packet.place(key.field, fixed)
        if place is not None and place not in fixed:
            packet.put(*place, ir.Match(-1, 0, (1 << place[1]) - 1))


class _Popular:
    """Draws entries of a table by their popularity."""

    def __init__(self, entries: Sequence[ir.Entry], zipf: float, rng: random.Random) -> None:
        self._entries, self._rng = rng.sample(entries, len(entries)), rng
        self._weights = list(accumulate(rank**-zipf for rank in range(1, len(entries) + 1)))

    def draw(self, packet: _Packet, table: ir.Table, fixed: Sequence[tuple[int, int]]) -> ir.Entry:
        """An entry that takes the values of a packet at places that are fixed, if one is found."""
        drawn = self._rng.choices(self._entries, cum_weights=self._weights, k=_CHOICES if fixed else 1)
        places = [packet.place(key.field, fixed) for key in table.keys]
        given = [packet.read(place) if place in fixed and place else None for place in places]
        for entry in drawn:
            if all(value is None or m.fits(value) for m, value in zip(entry.matches, given, strict=True)):
                return entry
        return drawn[0]
