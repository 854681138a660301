"""Entries of tables of a specification of SWX, from either of two formats.

* That of DPDK's pipeline application: ``match KEY... [priority N] action NAME [ARGUMENT VALUE]...`` after a line
  ``table NAME``; a key is a value, or ``VALUE/MASK``.
* Commands of bmv2 (:mod:`p4perf.programs.reading.commands`): ``table_add`` and ``table_set_default``. Names may have
  the parts in front that p4c-dpdk leaves out (``MainControl.routes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.formats.swx_spec import Specification, number
from p4perf.programs.reading.commands import Match, number_of
from p4perf.programs.reading.tree import match_name, read_text

COMMANDS = ("table_add", "table_set_default")


@dataclass(frozen=True, slots=True)
class SwxEntry:
    """An entry: its key fields, action and data by name; of those that match the one of the lowest priority counts."""

    keys: tuple[Match, ...]
    action: str
    data: Mapping[str, int | None]
    priority: int = 0

    def fits(self, values: Sequence[int]) -> bool:
        return all(key.fits(value) for key, value in zip(self.keys, values, strict=True))

    @property
    def prefix(self) -> int:
        return sum(key.mask.bit_count() for key in self.keys)


@dataclass(frozen=True)
class SwxEntries:
    """Entries and default actions by the names of tables."""

    tables: dict[str, list[SwxEntry]] = field(default_factory=dict)
    defaults: dict[str, SwxEntry] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Commands that were left out."""
    _exact: dict[str, dict[tuple[int, ...], SwxEntry] | None] = field(default_factory=dict)
    """Tables all of whose keys are whole values, by these."""

    @property
    def used(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(entry.action for entry in entries) for name, entries in self.tables.items()}

    def find(self, table: str, values: Sequence[int]) -> SwxEntry | None:
        """The entry that a packet finds: that of the lowest priority, then of the longest prefix."""
        entries = self.tables.get(table, [])
        if table not in self._exact:
            whole = all(key.low == key.high and (key.mask + 1).bit_count() == 1 for e in entries for key in e.keys)
            plain = whole and len({tuple(key.mask for key in e.keys) for e in entries}) == 1
            self._exact[table] = {tuple(key.low for key in e.keys): e for e in entries} if plain else None
        exact = self._exact[table]
        if exact is not None:
            return exact.get(tuple(values))
        fitting = [entry for entry in entries if entry.fits(values)]
        return min(fitting, key=lambda entry: (entry.priority, -entry.prefix), default=None)


def read_swx_entries(path: Path, spec: Specification) -> SwxEntries:
    found, left_out, table = SwxEntries(), dict[str, None](), ""
    for line, raw in enumerate(read_text(path).splitlines(), 1):
        words = _uncommented(raw)
        if not words:
            continue
        where = Location(str(path), line)
        if words[0] == "table" and len(words) == 2:
            table = _name(words[1], spec.tables, "table", where)
        elif words[0] == "match":
            if not table:
                raise DataError("stands before the first line 'table NAME'", location=where)
            found.tables.setdefault(table, []).append(_entry(table, words, spec, where))
        elif words[0] in COMMANDS:
            _command(words, spec, found, where)
        elif words[0].startswith("table_") or "_" in words[0]:
            left_out[words[0]] = None
        else:
            raise DataError(f"{words[0]!r} begins neither an entry of SWX nor a command of bmv2", location=where)
    return SwxEntries(found.tables, found.defaults, tuple(left_out))


def _uncommented(raw: str) -> list[str]:
    words = []
    for word in raw.split():
        if word[0] in ";#" or word.startswith("//"):
            break
        words.append(word)
    return words


def _name(wanted: str, known: Iterable[str], noun: str, where: Location) -> str:
    """The name that is meant; p4c-dpdk leaves leading parts out, and joins those that it keeps with an underscore."""
    names = list(known)
    parts = wanted.split(".")
    for first in range(len(parts)):
        if (short := "_".join(parts[first:])) in names:
            return short
    return match_name(wanted, names, noun, where)


def _entry(table: str, words: list[str], spec: Specification, where: Location) -> SwxEntry:
    keys = _keys(table, spec)
    matched, rest = words[1 : len(keys) + 1], words[len(keys) + 1 :]
    priority = 0
    if len(rest) > 1 and rest[0] == "priority":
        priority, rest = number_of(rest[1], 32, where), rest[2:]
    if len(matched) < len(keys) or len(rest) < 2 or rest[0] != "action":
        raise DataError(f"an entry of table {table} has {len(keys)} key fields and an action", location=where)
    action = _name(rest[1], spec.actions, "action", where)
    data: dict[str, int | None] = {}
    for name, word in zip(rest[2::2], rest[3::2], strict=False):
        value = number(word.removeprefix("N(").removeprefix("H(").removesuffix(")"))
        if value is None:
            raise DataError(f"{word!r} is no number", location=where)
        data[name] = value
    return SwxEntry(
        tuple(_masked(word, bits, where) for word, bits in zip(matched, keys, strict=True)), action, data, priority
    )


def _command(words: list[str], spec: Specification, found: SwxEntries, where: Location) -> None:
    if len(words) < 3:
        raise DataError(f"{words[0]} needs a table and an action", location=where)
    table = _name(words[1], spec.tables, "table", where)
    action = _name(words[2], spec.actions, "action", where)
    fields = spec.structs.get(spec.arguments(action), ())
    if words[0] == "table_set_default":
        found.defaults[table] = SwxEntry((), action, _data(words[3:], fields, where))
        return
    if "=>" not in words:
        raise DataError("table_add needs => between key and action data", location=where)
    at = words.index("=>")
    keys, given = _keys(table, spec), words[at + 1 :]
    if len(words[3:at]) != len(keys):
        raise DataError(f"table {table} has {len(keys)} key fields, not {len(words[3:at])}", location=where)
    priority = 0
    if len(given) == len(fields) + 1:
        priority, given = number_of(given[-1], 32, where), given[:-1]
    matches = [_match(word, bits, where) for word, bits in zip(words[3:at], keys, strict=True)]
    found.tables.setdefault(table, []).append(SwxEntry(tuple(matches), action, _data(given, fields, where), priority))


def _keys(table: str, spec: Specification) -> list[int]:
    keys = spec.tables[table].inner("key")
    return [spec.bits(line.word(0), line) for line in keys.lines] if keys is not None else []


def _data(words: list[str], fields: Sequence[tuple[str, int]], where: Location) -> dict[str, int | None]:
    if len(words) != len(fields):
        raise DataError(f"the action takes {len(fields)} values, not {len(words)}", location=where)
    return {name: number_of(word, bits, where) for word, (name, bits) in zip(words, fields, strict=True)}


def _masked(word: str, bits: int, where: Location) -> Match:
    value, slash, mask = word.partition("/")
    kept = number_of(mask, bits, where) if slash else (1 << bits) - 1
    wanted = number_of(value, bits, where) & kept
    return Match(kept, wanted, wanted)


def _match(word: str, bits: int, where: Location) -> Match:
    """A key field as a command of bmv2 has it: a value, a prefix, a value with mask, or a range."""
    if "->" in word:
        low, _, high = word.partition("->")
        return Match((1 << bits) - 1, number_of(low, bits, where), number_of(high, bits, where))
    value, both, mask = word.partition("&&&")
    if both:
        kept = number_of(mask, bits, where)
        return Match(kept, (wanted := number_of(value, bits, where) & kept), wanted)
    value, slash, length = word.partition("/")
    if slash and (not length.isdecimal() or int(length) > bits):
        raise DataError(f"{word!r} is no prefix of at most {bits} bit", location=where)
    kept = ((1 << bits) - 1) & ~((1 << bits - int(length)) - 1) if slash else (1 << bits) - 1
    wanted = number_of(value, bits, where) & kept
    return Match(kept, wanted, wanted)
