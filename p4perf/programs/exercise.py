"""Packets that take a program along its paths: what a program that was read is verified and measured with.

A packet is made by walking the parser: every header that is extracted gets random bits, and a select gets what one of
its cases takes. Then fields that are keys of a table get what one of its entries takes; a key in metadata is traced
back to the fields that are copied there.

For the verification (:func:`frames`) anything goes: packets miss tables as well, and some are cut short. What is
measured (:func:`traffic`) hits or misses as was asked for: the interpreter says what a packet meets, and the packet is
changed until that is so, or the attempts are used up. Where traffic shares are stated, every packet gets the decisions
of which there are too few among those before it; packets that miss them are made again.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from p4perf.errors import UsageError
from p4perf.programs import ir
from p4perf.programs.analysis import NEGATED, statements
from p4perf.programs.decisions import Branches, Decision, Decisions, state_label, state_name
from p4perf.programs.entries import EntryIndex
from p4perf.programs.operators import STANDARD_HASHES
from p4perf.programs.packets import frame

MAX_STATES = 64
"""Longest walk through the parser; the rest of the packet is random then."""

CUT_SHARE = 12
"""One packet in so many is cut short."""

_WALKS = 8
"""Paths through the parser that are tried for a packet that is measured."""

_MORE_WALKS = 48
"""The same where shares are stated."""

_AVOIDANCE = 0.05
"""Weight of how often packets come to places, beside that of what they decide there."""

_PATIENCE = 24
"""Packets for which a decision was wished without one that makes it, beyond which it counts as impossible."""

_REMADE = 2
"""Packets that are made anew so that shares hold, for each one that is asked for."""

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


def frames(program: ir.Program, count: int, seed: int = 1) -> tuple[bytes, ...]:
    """That many frames without FCS, some of them cut short."""
    rng = random.Random(seed)  # noqa: S311
    found = []
    for n in range(count):
        packet = _Packet(program, rng)
        packet.walk({})
        for _ in range(min(len(program.tables), 4)):
            table = rng.choice(program.tables)
            if table.listing:
                packet.hit(table, rng.choice(table.listing))
        data = packet.frame(None) + rng.randbytes(rng.choice((0, 1, 16, 46)))
        if n % CUT_SHARE == CUT_SHARE - 1:
            data = data[: rng.randrange(len(data) + 1)]
        found.append(data or b"\0")
    return tuple(found)


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
    places, at = {}, 0
    for carried in packets.headers:
        for f in program.header(carried.header).fields:
            places[ir.FieldRef(carried.header, f.name)] = at, f.width_bits
            at += f.width_bits
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
    shares: Mapping[str, Mapping[str, float]] | None = None,
    exact: bool = True,
) -> tuple[bytes, ...]:
    """That many frames without FCS, that hit the tables which they come to; every table is aimed at as often.

    Args:
        misses: shares of the packets that come to a table and miss it, by the names of tables; 0 for others.
        zipf: exponent of the popularity of the entries of a table, of which any may be the most popular; 0: all are
            hit as often.
        shares: of the packets that come to a place, by its name and the labels of its decisions
            (:mod:`~p4perf.programs.decisions`). They hold as numbers of packets, rounded.
        exact: whether shares have to hold; else they do as far as packets are found.

    Raises:
        RecursionError, ValueError: as of :meth:`Interpreter.run`.
        UsageError: shares that cannot be made; the message names one.
    """
    maker = _Traffic(program, random.Random(seed), size_bytes, misses or {}, zipf, shares or {}, exact)  # noqa: S311
    found = [maker.packet() for _ in range(count)]
    for _ in range(_REMADE * count):
        if (worst := maker.tally.worst(found)) is None:
            break
        maker.tally.count(found.pop(worst).made, -1)
        found.append(maker.packet())
    if exact:
        maker.check(found)
    return tuple(each.frame for each in found)


@dataclass(frozen=True, slots=True)
class _Made:
    """A packet, and its decisions to which shares belong."""

    frame: bytes
    made: tuple[Decision, ...] = ()


class _Tally:
    """How many packets decide what, at the places to which shares belong."""

    def __init__(self, shares: Mapping[str, Mapping[str, float]]) -> None:
        self.shares = shares
        self._met: Counter[str] = Counter()
        self._counts: Counter[Decision] = Counter()
        self._packets = 0
        self.seen: set[Decision] = set()
        """Decisions of all packets that were tried."""
        self._tried = 0
        self._came: Counter[str] = Counter()
        """Packets of these that came to a place."""

    def look(self, made: Sequence[Decision]) -> None:
        """Take note of a packet that is tried."""
        self.seen.update(made)
        self._tried += 1
        self._came.update({name for name, _ in made})

    def count(self, made: Sequence[Decision], packets: int = 1) -> None:
        """Count a packet; -1 takes one away again."""
        self._packets += packets
        for name, label in made:
            self._met[name] += packets
            self._counts[name, label] += packets

    def wishes(self) -> dict[str, str]:
        """At each place the decision of which most are missing; empty: one to which no share belongs."""
        found = {}
        for name, given in self.shares.items():
            lacking = {
                label: share * (self._met[name] + 1) - self._counts[name, label] for label, share in given.items()
            }
            rest = self._met[name] + 1 - sum(self._counts[name, label] for label in given)
            lacking[""] = (1 - sum(given.values())) * (self._met[name] + 1) - rest + 1
            found[name] = max(lacking, key=lambda label: lacking[label])
        return found

    def off(self, name: str) -> dict[str, float]:
        """How many packets too many, or too few, decide what at a place."""
        return {
            label: self._counts[name, label] - share * self._met[name] for label, share in self.shares[name].items()
        }

    def strain(self, made: Sequence[Decision] = (), sign: int = 1) -> float:
        """The sum of the squares of these numbers, with one packet more or less, at the places that it comes to."""
        met, counts = Counter(name for name, _ in made), Counter(made)
        return sum(
            (off + sign * (counts[name, label] - self.shares[name][label] * met[name])) ** 2 - off**2
            for name in met
            for label, off in self.off(name).items()
        )

    def avoidance(self, made: Sequence[Decision]) -> float:
        """How much less often packets would come to the places than those that were tried, weighted."""
        met, found = {name for name, _ in made}, 0.0
        for name in self.shares:
            usual = self._came[name] / max(self._tried, 1)
            more = self._met[name] - usual * self._packets
            found += (more + (name in met) - usual) ** 2 - more**2
        return _AVOIDANCE * found

    def worst(self, packets: Sequence[_Made]) -> int | None:
        """The packet without which the shares hold best; None if they hold."""
        if all(abs(off) <= 1 + TOLERANCE for name in self.shares for off in self.off(name).values()):
            return None
        return min(range(len(packets)), key=lambda n: self.strain(packets[n].made, -1))

    def check(self, places: Mapping[str, str]) -> None:
        """Check that the shares hold, and that there are packets of which they are; ``places`` are for people.

        Raises:
            UsageError: they do not.
        """
        for name, given in self.shares.items():
            where = places[name]
            if not self._met[name]:
                raise UsageError(f"{where}: no packet comes there", hint=_HINT)
            for label, share in given.items():
                if share * self._met[name] >= 0.5:
                    self.require(where, (name, label))
            label, off = max(self.off(name).items(), key=lambda item: abs(item[1]))
            if abs(off) > 1 + TOLERANCE:
                count, met = self._counts[name, label], self._met[name]
                raise UsageError(
                    f"{where}: {count} of {met} packets take {label}, not {given[label]:.4g} of them", hint=_HINT
                )

    def require(self, where: str, decision: Decision) -> None:
        """Check that a packet was found that makes a decision."""
        if decision not in self.seen:
            raise UsageError(f"{where}: no packet was found that takes {decision[1]}", hint=_HINT)


TOLERANCE = 1e-6

_HINT = "the shares of other places, the entries or the parser may exclude it"


class _Traffic:
    """Makes packets one by one."""

    def __init__(
        self,
        program: ir.Program,
        rng: random.Random,
        size_bytes: int | None,
        misses: Mapping[str, float],
        zipf: float,
        shares: Mapping[str, Mapping[str, float]],
        exact: bool,
    ) -> None:
        self._exact = exact
        self._program, self._rng, self._size_bytes, self._misses = program, rng, size_bytes, misses
        self._tables = [table for table in program.tables if table.listing]
        self._drawers = {table.name: _Popular(table.listing, zipf, rng) for table in self._tables}
        self._decisions = Decisions(program)
        self._branches = Branches(program)
        self.tally = _Tally(shares)
        nodes = self._branches.graph().nodes
        self._places = {name: nodes[name].where for name in shares}
        self._rest = {n: {e.label for e in nodes[n].edges} - set(given) for n, given in shares.items()}
        """Decisions to which no share belongs."""
        self._wished: Counter[Decision] = Counter()
        self._known = {(name, edge.label) for name in shares for edge in nodes[name].edges}

    def packet(self) -> _Made:
        wishes, tables = self.tally.wishes(), self._branches.tables
        missed = {t.name for t in self._tables if self._rng.random() < self._misses.get(t.name, 0.0)}
        for name, wish in wishes.items():
            if wish in ("hit", "miss") and name in tables:
                missed = missed - {tables[name]} if wish == "hit" else missed | {tables[name]}
        best, least = _Made(b""), (math.inf, 0, 0, 0, 0)
        aims = [table.name for table in self._tables] + list(wishes)
        aim = self._rng.choice(aims) if aims else ""
        walks = _MORE_WALKS if wishes else _WALKS
        interpreter = self._decisions.interpreter
        self._before = interpreter.snapshot()
        for walk in range(walks):
            packet = _Packet(self._program, self._rng, plain=walk < walks // 2)
            packet.walk({name: (wish,) if wish else self._rest[name] for name, wish in wishes.items()})
            wrong = self._steer(packet, missed, wishes)
            made = self._stated()
            self.tally.look(made)
            right = len(self._decisions.met) - wrong
            unwished = bool(self._unwished(made, wishes))
            strain = self.tally.avoidance(made) + (max(self.tally.strain(made), _AVOIDANCE) if unwished else 0)
            met = aim in self._decisions.met or any(name == aim for name, _ in made)
            score = strain, int(bool(self._tables) and not right), wrong, int(not met), -right
            if score < least:
                best, least = _Made(packet.frame(self._size_bytes) or b"\0", made), score
            if (not unwished and score[1:4] == (0, 0, int(not aims))) or (walk >= _WALKS and least[0] <= _AVOIDANCE):
                break
        self.tally.count(best.made)
        if interpreter.stateful and wishes:
            interpreter.restore(self._before)
            interpreter.run(best.frame)
        self._wished.update((name, wish) for name, wish in wishes.items() if wish)
        for (name, wish), times in self._wished.items():
            if times >= _PATIENCE and self._exact:
                self.tally.require(self._places[name], (name, wish))
        return best

    def check(self, packets: Sequence[_Made]) -> None:
        """Check that the shares hold for packets one after another."""
        if self.tally.shares:
            seen, self.tally = self.tally.seen, _Tally(self.tally.shares)
            self.tally.seen, self._decisions = seen, Decisions(self._program)
            for each in packets:
                self._decisions.run(each.frame)
                self.tally.count(self._stated())
            self.tally.check(self._places)

    def _stated(self) -> tuple[Decision, ...]:
        """The decisions of the first pass to which shares belong; the default action of a table is none."""
        passes = self._decisions.passes
        return tuple(each for each in (passes[0] if passes else ()) if each in self._known)

    def _unwished(self, made: Sequence[Decision], wishes: Mapping[str, str]) -> list[Decision]:
        """Decisions that are others than those wished for."""
        return [
            (name, label)
            for name, label in made
            if (label in self.tally.shares[name] if not wishes[name] else label != wishes[name])
        ]

    def _steer(self, packet: _Packet, missed: set[str], wishes: Mapping[str, str]) -> int:
        """Change a packet until it hits and misses as is wanted; returns how many tables it still does not."""
        fixed: list[tuple[int, int]] = []
        changed: set[str] = set()
        conditions = self._branches.conditions
        while True:
            packet.correct_checksums()
            if wishes:
                self._decisions.interpreter.restore(self._before)
            self._decisions.run(packet.frame(self._size_bytes))
            met, drawers = self._decisions.met, self._drawers
            unwished = [name for name, _ in self._unwished(self._stated(), wishes) if name not in changed]
            condition = next((name for name in unwished if name in conditions and wishes[name]), None)
            if condition is not None and len(changed) < _CHANGES:
                changed.add(condition)
                packet.decide(conditions[condition], wishes[condition] == "true")
                continue
            wrong = [name for name, hit in met.items() if name in drawers and hit == (name in missed)]
            todo = next((name for name in wrong if name not in changed), None)
            # The first look-up of each table draws its entry by popularity, even if it hits one by chance.
            todo = todo or next((n for n in met if n in drawers and n not in changed | missed), None)
            if todo is None or len(changed) >= _CHANGES:
                return len(wrong)
            changed.add(todo)
            table = self._program.table(todo)
            if todo in missed:
                _miss(packet, table, fixed)
            else:
                entry = drawers[todo].draw(packet, table, fixed, self._action(todo, wishes))
                fixed += packet.hit(table, entry, fixed)

    def _action(self, table: str, wishes: Mapping[str, str]) -> str:
        """The action that an entry of a table has to have; empty: any."""
        places = (name for name, of in self._branches.tables.items() if of == table and name.endswith(" hit"))
        label = next((wishes[name] for name in places if wishes.get(name)), "")
        return next((a for a in self._program.table(table).actions if label == self._program.action(a).label), "")


def _miss(packet: _Packet, table: ir.Table, fixed: Sequence[tuple[int, int]]) -> None:
    """Give the keys of a table that no other one needs random values."""
    for key in table.keys:
        place = packet.place(key.field, fixed)
        if place is not None and place not in fixed:
            packet.put(*place, ir.Match(-1, 0, (1 << place[1]) - 1))


class _Popular:
    """Draws entries of a table by their popularity."""

    def __init__(self, entries: Sequence[ir.Entry], zipf: float, rng: random.Random) -> None:
        self._zipf, self._rng = zipf, rng
        self._ranked = {"": rng.sample(entries, len(entries))}
        self._weights: dict[str, list[float]] = {}

    def draw(self, packet: _Packet, table: ir.Table, fixed: Sequence[tuple[int, int]], action: str = "") -> ir.Entry:
        """An entry that takes the values of a packet at places that are fixed, if one is found.

        Args:
            action: that it has, if any entry has it; empty: any action.
        """
        if action not in self._ranked:
            self._ranked[action] = [e for e in self._ranked[""] if e.action == action] or self._ranked[""]
        entries = self._ranked[action]
        if action not in self._weights:
            self._weights[action] = list(accumulate(rank**-self._zipf for rank in range(1, len(entries) + 1)))
        drawn = self._rng.choices(entries, cum_weights=self._weights[action], k=_CHOICES if fixed else 1)
        places = [packet.place(key.field, fixed) for key in table.keys]
        given = [packet.read(place) if place in fixed and place else None for place in places]
        for entry in drawn:
            if all(value is None or m.fits(value) for m, value in zip(entry.matches, given, strict=True)):
                return entry
        return drawn[0]
