"""Entries of tables of bmv2: those in the JSON of a program, and those that runtime commands add.

Commands are those of bmv2's own simple_switch_CLI (docs/runtime_CLI.md): ``table_add TABLE ACTION KEY... => DATA...
[PRIORITY]`` and ``table_set_default TABLE ACTION DATA...``. Others change no table and are left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.programs.reading.tree import Tree, match_name, read_text

_MAC = re.compile(r"[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{1,2}){5}")


@dataclass(frozen=True, slots=True)
class Match:
    """One key field of an entry: values ``v`` with ``low <= v & mask <= high`` match; ``prefix`` is of an lpm key."""

    mask: int
    low: int
    high: int
    prefix: int = 0

    def fits(self, value: int) -> bool:
        return self.low <= value & self.mask <= self.high


@dataclass(frozen=True, slots=True)
class AddedEntry:
    """One entry of a table: all its key fields, the name of its action, its data; a low priority is looked at first."""

    keys: tuple[Match, ...]
    action: str
    data: tuple[int, ...]
    priority: int = 0

    def fits(self, values: Sequence[int]) -> bool:
        """Whether the values of the key fields match."""
        return all(key.fits(value) for key, value in zip(self.keys, values, strict=True))

    @property
    def prefix(self) -> int:
        return max((key.prefix for key in self.keys), default=0)


@dataclass(frozen=True)
class Commands:
    """What runtime commands make of the tables of a program."""

    entries: dict[str, list[AddedEntry]] = field(default_factory=dict)
    defaults: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Names of the commands that were left out."""


def read_commands(path: Path, root: Tree) -> Commands:
    """Read runtime commands for a program.

    Raises:
        DataError: the file cannot be read, or a command does not belong to the program; with the line.
    """
    tables = {t.text("name"): t for p in root.each("pipelines") for t in p.each("tables")}
    actions: Mapping[str, Tree] = {a.text("name"): a for a in root.each("actions")}
    found = Commands()
    left_out: dict[str, None] = {}
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        words = raw.split("#")[0].split()
        if not words:
            continue
        where = Location(str(path), number)
        if words[0] not in ("table_add", "table_set_default"):
            left_out[words[0]] = None
            continue
        if len(words) < 3:
            raise DataError(f"{words[0]} needs a table and an action", location=where)
        table = match_name(words[1], tables, "table", where)
        action = match_name(words[2], [a.text() for a in tables[table].each("actions")], "action", where)
        sizes = [p.whole("bitwidth") for p in actions[action].each("runtime_data")] if action in actions else []
        if words[0] == "table_set_default":
            found.defaults[table] = (action, _data(words[3:], sizes, where))
            continue
        if "=>" not in words:
            raise DataError("table_add needs => between key and action data", location=where)
        at = words.index("=>")
        entry = _entry(tables[table], words[3:at], action, words[at + 1 :], sizes, root, where)
        found.entries.setdefault(table, []).append(entry)
    return Commands(found.entries, found.defaults, tuple(left_out))


def _entry(
    table: Tree, keys: list[str], action: str, data: list[str], sizes: list[int], root: Tree, where: Location
) -> AddedEntry:
    fields = list(table.each("key"))
    if len(keys) != len(fields):
        raise DataError(f"table {table.text('name')} has {len(fields)} key fields, not {len(keys)}", location=where)
    widths = widths_of(root)
    matches = []
    for key, word in zip(fields, keys, strict=True):
        kind = key.text("match_type")
        bits = 1 if kind == "valid" else width(widths, key.at("target"))
        matches.append(_match(kind, word, bits, where))
    ranked = table.optional("match_type") in ("ternary", "range", "optional")
    priority = 0
    if ranked and len(data) == len(sizes) + 1:
        priority, data = number_of(data[-1], 32, where), data[:-1]
    return AddedEntry(tuple(matches), action, _data(data, sizes, where), priority)


def constant_entries(table: Tree, root: Tree, actions: Mapping[int, str]) -> list[AddedEntry]:
    """The entries of a table in the JSON."""
    widths = widths_of(root)
    fields = list(table.each("key"))
    found = []
    for entry in table.each("entries"):
        matches = []
        for n, key in enumerate(entry.each("match_key")):
            if n >= len(fields):
                raise key.error("the table has fewer key fields")
            kind = key.text("match_type")
            bits = 1 if fields[n].optional("match_type") == "valid" else width(widths, fields[n].at("target"))
            matches.append(_constant(key, kind, bits))
        if len(matches) != len(fields):
            raise entry.error(f"has {len(matches)} key fields, the table {len(fields)}")
        act = entry.at("action_entry")
        number = act.whole("action_id")
        if number not in actions:
            raise act.error("there is no action of this id")
        data = tuple(d.number() for d in act.each("action_data"))
        priority = entry.whole("priority") if entry.has("priority") else 0
        found.append(AddedEntry(tuple(matches), actions[number], data, priority))
    return found


def widths_of(root: Tree) -> dict[tuple[str, str], int]:
    types = {
        t.text("name"): {
            f.item(0).text(): f.item(1).value for f in t.each("fields") if isinstance(f.item(1).value, int)
        }
        for t in root.each("header_types")
    }
    return {
        (h.text("name"), name): bits
        for h in root.each("headers")
        for name, bits in types.get(h.text("header_type"), {}).items()
    }


def width(widths: Mapping[tuple[str, str], int], target: Tree) -> int:
    """Width of a field; 1 of a validity bit."""
    if isinstance(target.value, str):
        return 1
    return widths.get((target.item(0).text(), target.item(1).text()), 1)


def _constant(key: Tree, kind: str, bits: int) -> Match:
    ones = (1 << bits) - 1
    if kind == "valid":
        value = int(key.flag("key"))
        return Match(1, value, value)
    if kind == "range":
        return Match(ones, key.at("start").number(), key.at("end").number())
    value = key.at("key").number()
    if kind == "lpm":
        return _prefix(value, key.whole("prefix_length"), bits)
    mask = key.at("mask").number() if kind in ("ternary", "optional") and key.has("mask") else ones
    return Match(mask, value & mask, value & mask)


def _prefix(value: int, length: int, bits: int) -> Match:
    mask = ((1 << bits) - 1) >> max(bits - length, 0) << max(bits - length, 0)
    return Match(mask, value & mask, value & mask, length)


def _match(kind: str, word: str, bits: int, where: Location) -> Match:
    ones = (1 << bits) - 1
    if kind == "lpm":
        address, slash, length = word.partition("/")
        if not slash or not length.isdecimal() or int(length) > bits:
            raise DataError(f"{word!r} is no prefix of at most {bits} bit", location=where)
        return _prefix(number_of(address, bits, where), int(length), bits)
    if kind in ("ternary", "optional"):
        text, both, masked = word.partition("&&&")
        mask = number_of(masked, bits, where) if both else ones
        wanted = number_of(text, bits, where) & mask
        return Match(mask, wanted, wanted)
    if kind == "range":
        low, arrow, high = word.partition("->")
        if not arrow:
            raise DataError(f"{word!r} is no range LOW->HIGH", location=where)
        return Match(ones, number_of(low, bits, where), number_of(high, bits, where))
    truth = {"true": 1, "false": 0}.get(word.lower()) if kind == "valid" else None
    value = number_of(word, bits, where) if truth is None else truth
    return Match(ones, value, value)


def _data(words: list[str], sizes: list[int], where: Location) -> tuple[int, ...]:
    if len(words) != len(sizes):
        raise DataError(f"the action takes {len(sizes)} values, not {len(words)}", location=where)
    return tuple(number_of(word, bits, where) for word, bits in zip(words, sizes, strict=True))


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
