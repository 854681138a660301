"""Entries for the tables of a program that was read: so many, and such that packets hit them.

Tables are filled in the order in which packets come to them. The keys of the first entries are those with which packets
of :mod:`~p4perf.programs.exercise` come to the table, so that tables whose keys are computed are hit as well; further
keys are random.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes, destination, flattened, operands, subexpressions
from p4perf.programs.exercise import frames
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packet_state import PacketState

PACKETS = 512
"""Packets with which the keys of a table are found."""

PORTS = 4
"""Parameters that may be ports are from 1 to this."""

CHOICES = 4
"""Actions of every other entry of a table with an action selector."""

_PORT_BITS = 9
_ATTEMPTS = 20


class _Observer(Interpreter):
    """Keeps the keys with which packets come to some tables."""

    def __init__(self, program: ir.Program, tables: Collection[str]) -> None:
        super().__init__(program)
        self.keys: dict[str, dict[tuple[int, ...], None]] = {name: {} for name in tables}

    @override
    def _looked_up(
        self, table: ir.Table, values: list[int], packet: PacketState
    ) -> tuple[ir.Action, Mapping[str, int], bool]:
        if table.name in self.keys:
            self.keys[table.name][tuple(values)] = None
        return super()._looked_up(table, values, packet)


def filled(program: ir.Program, counts: Mapping[str, int], *, default: int = 0, seed: int = 1) -> ir.Program:
    """The program with entries in its tables.

    Args:
        counts: entries of each table, by its name; those that it has already are among them.
        default: entries of tables that are not named, and have none of their own.

    Raises:
        UsageError: there is no such table, or it has no key.
    """
    nodes = control_nodes(program.control + program.egress)
    applied = list(dict.fromkeys(node.table for node in nodes if isinstance(node, ir.ApplyTable)))
    for name in counts:
        if name not in applied or not program.table(name).keys:
            raise UsageError(f"there is no table {name} with a key", hint=f"tables: {', '.join(applied) or 'none'}")
    rng = random.Random(seed)  # noqa: S311
    waiting = {}
    for name in applied:
        table = program.table(name)
        wanted = counts.get(name, 0 if table.listing else default)
        if table.keys and wanted > len(table.listing):
            waiting[name] = wanted - len(table.listing)
    while waiting:
        now = _independent(program, list(waiting))
        observer = _Observer(program, now)
        for frame in frames(program, PACKETS, seed=rng.randrange(1 << 30)):
            observer.run(frame)
        new = {name: _with_entries(program, name, waiting.pop(name), observer.keys[name], rng) for name in now}
        program = replace(program, tables=tuple(new.get(t.name, t) for t in program.tables))
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
        for s in (s for action in table.actions for s in flattened(program.action(action).body)):
            if (ref := destination(s)) is not None:
                written.add(ref)
            elif isinstance(s, ir.AddHeader | ir.RemoveHeader):
                moved.add(s.header)
    return found


def _with_entries(
    program: ir.Program, name: str, count: int, keys: Iterable[tuple[int, ...]], rng: random.Random
) -> ir.Table:
    table = program.table(name)
    entries = [*table.listing, *_entries(program, table, count, keys, rng)]
    if any(key.match_kind == "lpm" for key in table.keys):
        entries.sort(key=lambda entry: -sum(match.mask.bit_count() for match in entry.matches))
    return replace(table, entries=ir.EntryList(tuple(entries)))


def _entries(
    program: ir.Program, table: ir.Table, count: int, observed: Iterable[tuple[int, ...]], rng: random.Random
) -> Iterator[ir.Entry]:
    seen = {entry.matches for entry in table.listing}
    keys = _keys(program, table, observed, rng)
    actions, ports = _actions(program, table), program.once("ports of entries", lambda: _ports(program))
    made = attempts = 0
    while made < count and attempts < _ATTEMPTS * count:
        attempts += 1
        values = next(keys)
        matches = tuple(
            _match(key.match_kind, value, program.width_bits(key.field), rng)
            for key, value in zip(table.keys, values, strict=True)
        )
        if matches in seen:
            continue
        seen.add(matches)
        taken = [actions[(made + n) % len(actions)] for n in range(CHOICES if table.selector and made % 2 else 1)]
        made += 1
        (name, data), *choices = ((a.name, tuple(_data(a, ports, rng))) for a in taken)
        yield ir.Entry(matches, name, data, tuple(choices))


def _keys(
    program: ir.Program, table: ir.Table, observed: Iterable[tuple[int, ...]], rng: random.Random
) -> Iterator[tuple[int, ...]]:
    """Keys of packets, then random ones, without end."""
    yield from observed
    widths = [program.width_bits(key.field) for key in table.keys]
    while True:
        yield tuple(rng.getrandbits(width) for width in widths)


def _match(kind: ir.MatchKind, value: int, width_bits: int, rng: random.Random) -> ir.Match:
    ones = (1 << width_bits) - 1
    value &= ones
    if kind == "lpm":
        rest = width_bits - rng.randint(-(-width_bits // 2), width_bits)
        return ir.Match.masked(value, ones >> rest << rest)
    if kind == "ternary":
        return ir.Match.masked(value, rng.choice((ones, ones, ones & ~0xFF, rng.getrandbits(width_bits))))
    if kind == "optional":
        return ir.Match.masked(value, rng.choice((ones, 0)))
    if kind == "range":
        return ir.Match(ones, rng.randint(0, value), rng.randint(value, ones))
    return ir.Match.masked(value, ones)


def _actions(program: ir.Program, table: ir.Table) -> list[ir.Action]:
    """The actions that entries take in turn: those that do something and do not drop, if there are any."""
    listed = [program.action(name) for name in table.actions]
    useful = [a for a in listed if a.body and not any(_drops(s) for s in flattened(a.body))]
    return useful or listed


def _drops(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Drop) or (
        isinstance(statement, ir.Assign)
        and statement.destination == ir.FieldRef(ir.METADATA, "standard_metadata__egress_spec")
        and statement.value == ir.Const(511)
    )


def _ports(program: ir.Program) -> set[tuple[str, str]]:
    """The actions and their parameters that say by which port a packet is sent."""
    everywhere = [(a.name, s) for a in program.actions for s in flattened(a.body)]
    fields: set[ir.FieldRef] = set()
    found: set[tuple[str, str]] = set()
    size = -1
    while size != len(fields) + len(found):
        size = len(fields) + len(found)
        for name, s in everywhere:
            if isinstance(s, ir.SetEgress) or (isinstance(s, ir.Assign) and s.destination in fields):
                inside = [e for whole in operands(s) for e in subexpressions(whole)]
                fields |= {e for e in inside if isinstance(e, ir.FieldRef)}
                found |= {(name, e.name) for e in inside if isinstance(e, ir.ParameterRef)}
    return found


def _data(action: ir.Action, ports: Collection[tuple[str, str]], rng: random.Random) -> Iterator[int]:
    for p in action.parameters:
        is_port = p.width_bits == _PORT_BITS or (action.name, p.name) in ports
        yield rng.randint(1, PORTS) if is_port else rng.getrandbits(p.width_bits)
