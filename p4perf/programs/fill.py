"""Entries for the tables of a program that was read: so many, and such that packets hit them.

Tables are filled in the order in which packets come to them. The keys of the first entries are those with which packets
of :mod:`~p4perf.programs.exercise` come to the table, so that tables whose keys are computed are hit as well; further
keys, and all of another distribution, are those of :mod:`~p4perf.programs.distributions`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.programs import analysis, ir
from p4perf.programs.distributions import DISTRIBUTIONS, MAX_ENTRIES, Distribution, Shape, rows
from p4perf.programs.exercise import frames
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packet_state import PacketState
from p4perf.programs.reading.flow import too_many
from p4perf.programs.reading.tree import match_name

PACKETS = 512
"""Packets with which the keys of a table are found."""

PORTS = 4
"""Parameters that may be ports are from 1 to this."""

CHOICES = 4
"""Actions of every other entry of a table with an action selector."""

NEXT_HOPS = 16
"""Different next hops of a router, and values of action data that the keys of further tables come from."""

_PORT_BITS = 9

GROUPS = frozenset(
    ir.FieldRef(ir.METADATA, name)
    for name in ("standard_metadata__mcast_grp", "psa_ingress_output_metadata__multicast_group")
)
"""Fields of v1model and PSA that name a multicast group."""


class _Observer(Interpreter):
    """Keeps the keys with which packets come to some tables, and which of these look up random numbers."""

    def __init__(self, program: ir.Program, tables: Collection[str]) -> None:
        super().__init__(program)
        self.keys: dict[str, dict[tuple[int, ...], None]] = {name: {} for name in tables}
        self.random: set[str] = set()

    @override
    def _looked_up(
        self, table: ir.Table, values: list[int], packet: PacketState
    ) -> tuple[ir.Action, Mapping[str, int], bool]:
        if len(values) < len(table.keys):
            self.random.add(table.name)
        elif table.name in self.keys:
            self.keys[table.name][tuple(values)] = None
        return super()._looked_up(table, values, packet)


@dataclass(frozen=True, slots=True)
class Fill:
    """How many entries a table gets, those that it has already among them, and how their keys are distributed."""

    count: int
    distribution: Distribution = "uniform"


def parse_fill(text: str) -> dict[str, Fill]:
    """``TABLE=N`` or ``TABLE=N:DISTRIBUTION``, joined by commas, by the tables.

    Raises:
        UsageError: the text is something else.
    """
    found = {}
    for part in filter(None, text.split(",")):
        name, _, rest = part.partition("=")
        number, colon, wanted = rest.partition(":")
        distribution = next((d for d in DISTRIBUTIONS if d == (wanted if colon else "uniform")), None)
        try:
            count = float(number.replace("_", ""))
        except ValueError:
            count = math.nan
        if name.strip() and count < 0:
            raise UsageError(f"--fill {part}: entries must be at least 0, got {number}")
        if not name.strip() or not 0 <= count < math.inf or count != int(count):
            raise UsageError(f"--fill {part}: expected TABLE=N or TABLE=N:DISTRIBUTION", hint="such as routes=1000:bgp")
        if distribution is None:
            raise UsageError(f"--fill {part}: unknown distribution", hint=f"known: {', '.join(DISTRIBUTIONS)}")
        if count > MAX_ENTRIES:
            raise UsageError(f"--fill {part}: at most {MAX_ENTRIES} entries")
        if name.strip() in found:
            raise UsageError(f"--fill {name.strip()}: given more than once", hint="give each table one number")
        found[name.strip()] = Fill(int(count), distribution)
    return found


def named_table(program: ir.Program, name: str) -> ir.Table:
    """The table that is called so: as in P4, by the last part of that, or as in generated text.

    Raises:
        DataError: there is no such table with a key, or there are several; the message names the nearest.
    """
    keyed = [table for table in program.tables if table.keys]
    known = {table.label or table.name: table for table in keyed}
    generated = {table.name: table for table in keyed}
    return generated[name] if name in generated else known[match_name(name, known, "table", None)]


def filled(
    program: ir.Program,
    fills: Mapping[str, Fill],
    *,
    default: int = 0,
    seed: int = 1,
    actions: Mapping[str, Collection[str]] | None = None,
) -> ir.Program:
    """The program with entries in its tables.

    Args:
        fills: what tables get, by their names.
        default: entries of tables that are not named, and have none of their own.
        actions: actions that entries have whatever they do, by the names of tables.

    Raises:
        DataError: there is no such table.
        UsageError: a table has no key that a distribution is made for, or a key of fewer values than ``fills`` say.
    """
    asked = {named_table(program, name).name: fill for name, fill in fills.items()}
    rng = random.Random(seed)  # noqa: S311
    waiting = {}
    for table in analysis.applied_tables(program):
        fill = asked.get(table.name, Fill(0 if table.listing else default))
        if table.keys and fill.count > len(table.listing):
            waiting[table.name] = fill
    while waiting:
        now = _independent(program, list(waiting))
        observer = _Observer(program, now)
        for frame in frames(program, PACKETS, seed=rng.randrange(1 << 30)):
            observer.run(frame)
        new = {}
        for name in now:
            if name in observer.random:  # a time stamp: whatever the table holds, nothing of it is found
                waiting.pop(name)
                continue
            listed = _actions(program, program.table(name), (actions or {}).get(name, ()))
            table, fill = program.table(name), waiting.pop(name)
            new[name] = _with_entries(program, table, fill, observer.keys[name], listed, rng)
            if name in asked and (most := new[name].entries.count) < fill.count:
                raise too_many(table.label or name, fill.count, program.key_bits(table), most)
        size = {t.counter: t.entries.count for t in new.values() if t.counter}
        counters = tuple(replace(c, size=size.get(c.name, c.size)) for c in program.counters)
        program = replace(program, tables=tuple(new.get(t.name, t) for t in program.tables), counters=counters)
    return program


def _independent(program: ir.Program, waiting: Sequence[str]) -> list[str]:
    """The first of the tables, and those whose keys the entries of none before them change."""
    found: list[str] = []
    written: set[ir.FieldRef] = set()
    moved: set[str] = set()
    for name in waiting:
        table = program.table(name)
        keys = {key.field for key in table.keys}
        if not keys & written and not {ref.header for ref in keys} & moved:
            found.append(name)
        for s in (s for action in table.actions for s in analysis.flattened(program.action(action).body)):
            if (ref := analysis.destination(s)) is not None:
                written.add(ref)
            elif isinstance(s, ir.AddHeader | ir.RemoveHeader):
                moved.add(s.header)
    return found


def _with_entries(
    program: ir.Program,
    table: ir.Table,
    fill: Fill,
    keys: Iterable[tuple[int, ...]],
    actions: Sequence[ir.Action],
    rng: random.Random,
) -> ir.Table:
    shapes = [Shape(key.field.field, key.match_kind, program.width_bits(key.field)) for key in table.keys]
    taken = [entry.matches for entry in table.listing]
    made = rows(shapes, fill.count - len(taken), fill.distribution, rng.randrange(1 << 30), keys, taken)
    values = _values(program)
    # A router has few next hops, which many of its routes share.
    few = [[values.data(a, rng) for _ in range(NEXT_HOPS)] for a in actions] if fill.distribution == "bgp" else []
    entries = list(table.listing)
    for n, matches in enumerate(made):
        numbers = [(n + choice) % len(actions) for choice in range(CHOICES if table.selector and n % 2 else 1)]
        (name, data), *choices = (
            (actions[at].name, few[at][int(NEXT_HOPS * rng.random() ** 2)] if few else values.data(actions[at], rng))
            for at in numbers
        )
        entries.append(ir.Entry(matches, name, data, tuple(choices)))
    if any(key.match_kind == "lpm" for key in table.keys):
        entries.sort(key=lambda entry: -sum(match.mask.bit_count() for match in entry.matches))
    return replace(table, entries=ir.EntryList(tuple(entries)))


def _actions(program: ir.Program, table: ir.Table, wanted: Collection[str]) -> list[ir.Action]:
    """The actions that entries take in turn: those wanted, and that do something after which packets are sent."""
    listed = [a for a in map(program.action, table.actions) if a.body or a.label or a.name != table.default_action]
    groups = _configured(program)
    useful = [a for a in listed if a.body and not any(_loses(s, groups) for s in analysis.flattened(a.body))]
    return [a for a in listed if a in useful or a.name in wanted] if useful or wanted else listed


def _configured(program: ir.Program) -> tuple[int, ...]:
    """The multicast groups that are configured."""
    asked = (n.condition for n in analysis.control_nodes(program.control) if isinstance(n, ir.If))
    equal = (c for c in asked if isinstance(c, ir.Compare) and c.comparator == "==" and c.left in GROUPS)
    return tuple(c.right.value for c in equal if isinstance(c.right, ir.Const))


def _loses(statement: ir.Statement, groups: Collection[int]) -> bool:
    """Whether packets are dropped, or sent to a multicast group that is not configured."""
    match statement:
        case ir.Drop() | ir.Assign(ir.FieldRef(ir.METADATA, "standard_metadata__egress_spec"), ir.Const(511)):
            return True
        case ir.Assign(ref, ir.Const(group)) if ref in GROUPS:
            return group != 0 and group not in groups
        case ir.Assign(ref) if ref in GROUPS:
            return not groups
    return False


class _Values:
    """Action data of made-up entries.

    What may be a port is from 1 to :data:`PORTS`, a group is a configured one, the index of an array is within it, and
    what a table looks up is from 1 to :data:`NEXT_HOPS`, so that packets hit it however many entries lead there.
    """

    def __init__(self, program: ir.Program) -> None:
        self._sizes = {a.name: a.size for group in (program.counters, program.meters, program.registers) for a in group}
        self._ports = _parameters(program, set(), ir.SetEgress)
        self._grouped, self._groups = _parameters(program, set(GROUPS)), _configured(program)
        self._keys = _parameters(program, {key.field for table in program.tables for key in table.keys})

    def data(self, action: ir.Action, rng: random.Random) -> tuple[int, ...]:
        cells = dict(self._cells(action))
        return tuple(self._value(action, p, rng) % cells.get(p.name, 1 << p.width_bits) for p in action.parameters)

    def _cells(self, action: ir.Action) -> Iterator[tuple[str, int]]:
        """The parameters that are indices, with the sizes of their arrays."""
        for statement in analysis.flattened(action.body):
            match statement:
                case (
                    ir.CountPacket(name, ir.ParameterRef(index))
                    | ir.MeterPacket(_, name, ir.ParameterRef(index))
                    | ir.ReadRegister(_, name, ir.ParameterRef(index))
                    | ir.WriteRegister(name, ir.ParameterRef(index), _)
                ):
                    yield index, self._sizes[name]

    def _value(self, action: ir.Action, parameter: ir.Field, rng: random.Random) -> int:
        named = action.name, parameter.name
        if named in self._grouped and self._groups:
            return rng.choice(self._groups)
        if parameter.width_bits == _PORT_BITS or named in self._ports:
            return rng.randint(1, PORTS)
        if named in self._keys:
            return rng.randint(1, NEXT_HOPS)
        return rng.getrandbits(parameter.width_bits)


_values = ir.once(_Values)


def _parameters(program: ir.Program, fields: set[ir.FieldRef], *kinds: type[ir.Statement]) -> set[tuple[str, str]]:
    """The actions and their parameters from which some fields come, or the operands of some kinds of statements."""
    everywhere = [(a.name, s) for a in program.actions for s in analysis.flattened(a.body)]
    found: set[tuple[str, str]] = set()
    size = -1
    while size != len(fields) + len(found):
        size = len(fields) + len(found)
        for name, s in everywhere:
            if isinstance(s, kinds) or (isinstance(s, ir.Assign) and s.destination in fields):
                inside = [e for whole in analysis.operands(s) for e in analysis.subexpressions(whole)]
                fields |= {e for e in inside if isinstance(e, ir.FieldRef)}
                found |= {(name, e.name) for e in inside if isinstance(e, ir.ParameterRef)}
    return found
