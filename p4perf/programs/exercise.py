"""Packets that take a program along its paths: what a program that was read is verified and measured with.

Packets are made as :mod:`~p4perf.programs.crafting` describes.

For the verification (:func:`frames`) anything goes: packets miss tables as well, and some are cut short. What is
measured (:func:`traffic`) hits or misses as was asked for: the interpreter says what a packet meets, and the packet is
changed until that is so, or the attempts are used up. Where traffic shares are stated, every packet gets the decisions
of which there are too few among those before it; packets that miss them are made again.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from p4perf.errors import CapabilityError, UsageError
from p4perf.programs import ir
from p4perf.programs.crafting import CraftedPacket
from p4perf.programs.decisions import Branches, Decision, Decisions
from p4perf.programs.entries import EntryIndex
from p4perf.programs.packets import frame

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

_CHOICES = 24
"""Entries that are tried for one that goes together with the entries of other tables."""


def frames(program: ir.Program, count: int, seed: int = 1) -> tuple[bytes, ...]:
    """That many frames without FCS, some of them cut short."""
    rng = random.Random(seed)  # noqa: S311
    found = []
    for n in range(count):
        packet = CraftedPacket(program, rng)
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
    program: ir.Program,
    packets: ir.PacketSpec,
    distribution: str = "uniform",
    zipf_s: float = 1.0,
    hit_ratio: float = 1.0,
    seed: int = 1,
) -> tuple[bytes, ...]:
    """Frames of a program of components that differ in the keys of its tables whose entries are one by one.

    There are no frames if it has no such table.

    Args:
        distribution: of the entries that they find, with its exponent ``zipf_s``.
        hit_ratio: share of the frames that find an entry.

    Raises:
        CapabilityError: there are no such frames of that distribution.
    """
    if not any(table.listing for table in program.tables):
        return ()
    if distribution not in ("uniform", "zipf"):
        raise CapabilityError(
            f"packets for entries of a distribution are uniform or zipf, not {distribution}",
            key="traffic.flows.distribution",
        )
    zipf = zipf_s if distribution == "zipf" else 0.0
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
        packet = CraftedPacket(program, rng, int.from_bytes(base, "big"), 8 * len(base), True, places)
        missed = rng.random() >= hit_ratio
        for table, entries, index in drawn:
            packet.hit(table, entries.draw(packet, table, ()))
            for _ in range(_CHOICES if missed else 0):
                if index.find([packet.read(places[key.field]) for key in table.keys]) is None:
                    break
                packet.miss(table)
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
            packet = CraftedPacket(self._program, self._rng, plain=walk < walks // 2)
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

    def _steer(self, packet: CraftedPacket, missed: set[str], wishes: Mapping[str, str]) -> int:
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
                packet.miss(table, fixed)
            else:
                entry = drawers[todo].draw(packet, table, fixed, self._action(todo, wishes))
                fixed += packet.hit(table, entry, fixed)

    def _action(self, table: str, wishes: Mapping[str, str]) -> str:
        """The action that an entry of a table has to have; empty: any."""
        places = (name for name, of in self._branches.tables.items() if of == table and name.endswith(" hit"))
        label = next((wishes[name] for name in places if wishes.get(name)), "")
        return next((a for a in self._program.table(table).actions if label == self._program.action(a).label), "")


class _Popular:
    """Draws entries of a table by their popularity."""

    def __init__(self, entries: Sequence[ir.Entry], zipf: float, rng: random.Random) -> None:
        self._zipf, self._rng = zipf, rng
        self._ranked = {"": rng.sample(entries, len(entries))}
        self._weights: dict[str, list[float]] = {}

    def draw(
        self, packet: CraftedPacket, table: ir.Table, fixed: Sequence[tuple[int, int]], action: str = ""
    ) -> ir.Entry:
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
