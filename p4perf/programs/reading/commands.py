"""Entries of tables: those in the JSON of a program for bmv2, and the words with which runtime commands add others.

Commands are those of bmv2's own simple_switch_CLI (docs/runtime_CLI.md): ``table_add TABLE ACTION KEY... => DATA...
[PRIORITY]`` and ``table_set_default TABLE ACTION DATA...``.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from p4perf.errors import DataError, Location
from p4perf.programs import ir
from p4perf.programs.ir import Match as Match
from p4perf.programs.reading.tree import Tree

COMMANDS = ("table_add", "table_set_default")

PRIORITISED = ("ternary", "range", "optional")
"""Kinds of match with which the entries of a table need an order."""

_MAC = re.compile(r"[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{1,2}){5}")

SIGNS = {"range": "->", "ternary": "&&&", "lpm": "/"}
"""What stands between the two numbers of a key field of a kind of match."""


@dataclass(frozen=True, slots=True)
class RuntimeEntry:
    """One entry of a table: all its key fields, the name of its action, its data; a low priority is looked at first."""

    keys: tuple[Match, ...]
    action: str
    data: tuple[int, ...]
    priority: int = 0

    @property
    def prefix(self) -> int:
        """Bits that its key fields compare; those of one table differ in it by the lengths of their prefixes."""
        return sum(key.mask.bit_count() for key in self.keys)


@dataclass
class ControlPlane:
    """What is configured when the program runs; entries and default actions are by the names of tables."""

    tables: dict[str, list[RuntimeEntry]] = field(default_factory=dict)
    defaults: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    """Names of the commands that were left out."""
    sessions: dict[int, int] = field(default_factory=dict)
    """Ports of the sessions of clones."""
    groups: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Port and replication id of each copy of a multicast group."""
    unknown: bool = False
    """Other groups, and value sets, may be configured as well: a group has one port, a set values that are not known.
    Primitives that are not supported are read as well, as :class:`~p4perf.programs.ir.RunOperator`."""

    def commands(self) -> Iterator[str]:
        """What makes its multicast groups and sessions of clones."""
        for session, port in self.sessions.items():
            yield f"mirroring_add {session} {port}"
        handle = 0
        for group, copies in self.groups.items():
            yield f"mc_mgrp_create {group}"
            for port, replication_id in copies:
                yield f"mc_node_create {replication_id} {port}"
                yield f"mc_node_associate {group} {handle}"
                handle += 1


def constant_entries(table: Tree, bits: Sequence[int], actions: Mapping[int, str]) -> list[RuntimeEntry]:
    """The entries of a table in the JSON; ``bits`` are the widths of its key fields."""
    found = []
    for entry in table.each("entries"):
        keys = list(entry.each("match_key"))
        if len(keys) != len(bits):
            raise entry.error(f"has {len(keys)} key fields, the table {len(bits)}")
        matches = tuple(_constant(key, key.text("match_type"), width) for key, width in zip(keys, bits, strict=True))
        act = entry.at("action_entry")
        number = act.whole("action_id")
        if number not in actions:
            raise act.error("there is no action of this id")
        data = tuple(d.number() for d in act.each("action_data"))
        priority = entry.whole("priority") if entry.has("priority") else 0
        found.append(RuntimeEntry(matches, actions[number], data, priority))
    return found


def _constant(key: Tree, kind: str, bits: int) -> Match:
    ones = (1 << bits) - 1
    if kind == "valid":
        return Match.masked(int(key.flag("key")), 1)
    if kind == "range":
        return Match(ones, key.at("start").number(), key.at("end").number())
    value = key.at("key").number()
    if kind == "lpm":
        return Match.prefix(value, key.whole("prefix_length"), bits)
    return Match.masked(value, key.at("mask").number() if kind in ("ternary", "optional") and key.has("mask") else ones)


def match_of(kind: str, word: str, bits: int, where: Location) -> Match:
    """A key field of a kind as commands have it: a value, a prefix, a value with mask, or a range."""
    ones = (1 << bits) - 1
    if kind == "lpm" or (kind == "ternary" and "/" in word):
        address, slash, length = word.partition("/")
        if not slash or not length.isdecimal() or len(length) > 9 or int(length) > bits:
            hint = "a value with a mask is VALUE&&&MASK" if kind == "ternary" else None
            raise DataError(f"{word!r} is no prefix of at most {bits} bit", location=where, hint=hint)
        return Match.prefix(number_of(address, bits, where), int(length), bits)
    if kind in ("ternary", "optional"):
        text, both, masked = word.partition("&&&")
        mask = number_of(masked, bits, where) if both else ones
        return Match.masked(number_of(text, bits, where), mask)
    if kind == "range":
        low, arrow, high = word.partition("->")
        if not arrow:
            raise DataError(f"{word!r} is no range LOW->HIGH", location=where)
        return Match(ones, number_of(low, bits, where), number_of(high, bits, where))
    truth = {"true": 1, "false": 0}.get(word.lower()) if kind == "valid" else None
    return Match.masked(number_of(word, bits, where) if truth is None else truth, ones)


def number_of(word: str, bits: int, where: Location) -> int:
    """A number as the CLI takes it: decimal, hexadecimal, an address of Ethernet, IPv4 or IPv6."""
    readers: tuple[Callable[[str], int], ...] = (
        lambda text: int(text, 0),
        lambda text: int(ipaddress.ip_address(text)),
        lambda text: int("".join(part.zfill(2) for part in text.split(":")), 16),
    )
    for reader in readers[2:] if _MAC.fullmatch(word) else readers[:2]:
        try:
            value = reader(word)
        except ValueError:
            continue
        if 0 <= value < 1 << bits:
            return value
        raise DataError(f"{word} does not fit into {bits} bit", location=where)
    raise DataError(f"{word!r} is no number or address", location=where)


def entry_commands(root: Tree, program: ir.Program, compiled: ir.Program) -> Iterator[str]:
    """The commands that give the tables of a program their entries and default actions.

    Args:
        root: the JSON of the program.
        compiled: the program as it is without them.
    """
    members: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for tree in (t for p in root.each("pipelines") for t in p.each("tables")):
        table = next((t for t in program.tables if t.label == tree.text("name")), None)
        if table is None:
            continue
        before = compiled.table(table.name)
        if (table.default_action, table.default_data) != (before.default_action, before.default_data):
            yield f"table_set_default {table.label} {_call(program, table.default_action, table.default_data)}"
        constant = Counter(before.listing)
        for priority, entry in enumerate(table.listing, 1):
            if constant[entry]:
                constant[entry] -= 1
            else:
                yield from _added(program, table, tree, entry, priority, members, groups)


def _added(
    program: ir.Program,
    table: ir.Table,
    tree: Tree,
    entry: ir.Entry,
    priority: int,
    members: Counter[str],
    groups: Counter[str],
) -> Iterator[str]:
    """The commands that add one entry; of an action profile, its choices as members before, in a group if several."""
    kinds = [key.text("match_type") for key in tree.each("key")]
    widths = [program.width_bits(key.field) for key in table.keys]
    keys = " ".join(_key_word(*each) for each in zip(entry.matches, kinds, widths, strict=True))
    order = f" {priority}" if {*PRIORITISED}.intersection(kinds) else ""
    taken = [_call(program, name, data) for name, data in ((entry.action, entry.data), *entry.choices)]
    profile = tree.optional("action_profile")
    if profile is None:
        action, _, data = taken[0].partition(" ")
        yield f"table_add {table.label} {action} {keys} => {data}{order}"
        return
    first = members[profile]
    members[profile] += len(taken)
    yield from (f"act_prof_create_member {profile} {action}" for action in taken)
    if len(taken) == 1:
        yield f"table_indirect_add {table.label} {keys} => {first}{order}"
        return
    yield f"act_prof_create_group {profile}"
    for member in range(first, members[profile]):
        yield f"act_prof_add_member_to_group {profile} {member} {groups[profile]}"
    yield f"table_indirect_add_with_group {table.label} {keys} => {groups[profile]}{order}"
    groups[profile] += 1


def _call(program: ir.Program, action: str, data: Sequence[int]) -> str:
    return " ".join([program.action(action).label or action, *(f"{value:#x}" for value in data)])


def _key_word(match: Match, kind: str, bits: int) -> str:
    """A key field of an entry as :func:`match_of` takes it."""
    if kind == "lpm":
        return f"{match.low:#x}/{match.mask.bit_count()}"
    if kind in ("ternary", "optional"):
        return f"{match.low:#x}&&&{match.mask & ((1 << bits) - 1):#x}"
    if kind == "range":
        return f"{match.low:#x}->{match.high:#x}"
    return str(int(bool(match.low))) if kind == "valid" else f"{match.low:#x}"
