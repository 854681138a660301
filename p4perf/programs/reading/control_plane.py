"""What configures a program when it runs, from a file in any format that is known.

* **Commands** of simple_switch_CLI, see :mod:`p4perf.programs.reading.commands`, and those for multicast groups and
  sessions of clones. Others change nothing that a packet meets, and are left out.
* **Entries of DPDK's pipeline application**: ``match KEY... [priority N] action NAME [ARGUMENT VALUE]...`` after a line
  ``table NAME``; a key is a value, or ``VALUE/MASK``. Names may have the parts in front that p4c-dpdk leaves out.
* **JSON** as the p4lang tutorials have it: ``table_entries`` with ``table``, ``match``, ``action_name``,
  ``action_params``, ``priority`` and ``default_action``, ``multicast_group_entries`` and ``clone_session_entries``; or
  a list of table entries.
* **Text of P4Runtime**: a ``WriteRequest``, a ``ReadResponse`` or a ``TableEntry``. Numbers of tables, actions, keys
  and parameters are those of the P4Info; without one, a name stands where the number of a table or action does, and
  keys and parameters count from 1.
* **CSV**: a line with the columns ``table``, the keys, ``action``, the parameters and, if there is an order,
  ``priority``; then the entries. Another such line begins another table. A cell that is empty takes every value, or
  belongs to another action; the word ``default`` for the first key makes it the default action.

In all but the commands, of two entries with priorities the one with the greater number is looked at first.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.formats.swx_spec import Specification, SpecLine, words_of
from p4perf.programs.ir import Match
from p4perf.programs.reading.commands import (
    COMMANDS,
    PRIORITISED,
    SIGNS,
    ControlPlane,
    RuntimeEntry,
    match_of,
    number_of,
)
from p4perf.programs.reading.textproto import Message, parse_text_proto
from p4perf.programs.reading.tree import Tree, match_name, parse_json, read_text
from p4perf.programs.reading.values import VALID, Names, declared, distinct

REPLICATION = {"mirroring_add": 2, "mc_mgrp_create": 1, "mc_node_create": 1, "mc_node_associate": 2}
"""Commands for copies of packets, and how many numbers they need."""

_TEXT_PROTO = re.compile(r"(?:\s*#[^\n]*\n)*\s*[A-Za-z_]\w*\s*[:{<]")
_CSV = re.compile(r"(?:\s*#[^\n]*\n)*\s*\"?table\"?\s*,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KeyField:
    """A key of a table as the program declares it; ``kind`` is the kind of match."""

    name: str
    kind: str
    bits: int

    @property
    def anything(self) -> str:
        """The word that takes every value; empty if the kind of match has none."""
        return {"lpm": "0/0", "range": f"0->{(1 << self.bits) - 1}"}.get(
            self.kind, "0&&&0" if self.kind in ("ternary", "optional") else ""
        )


@dataclass
class PlaneBuilder:
    """Makes a :class:`ControlPlane` for a program, whose tables, keys and actions are called by name."""

    keys: Mapping[str, tuple[KeyField, ...]]
    actions: Mapping[str, Sequence[str]]
    """Keys and actions, by the names of their tables."""
    widths: Mapping[str, dict[str, int]]
    """Widths of parameters by their names, by the names of their actions."""
    plane: ControlPlane = field(default_factory=ControlPlane)
    _places: dict[tuple[str, tuple[Match, ...]], Location] = field(default_factory=dict)
    """Where the entries of tables without priorities stand."""

    @classmethod
    def of(cls, program: Tree | Specification) -> PlaneBuilder:
        """That for a program for bmv2, or for a specification of SWX."""
        if isinstance(program, Specification):
            return cls(
                {name: tuple(_spec_keys(program, table)) for name, table in program.tables.items()},
                {name: _spec_actions(table) for name, table in program.tables.items()},
                {name: dict(program.structs.get(program.arguments(name), ())) for name in program.actions},
            )
        names = declared(program)
        tables = {t.text("name"): t for p in program.each("pipelines") for t in p.each("tables")}
        return cls(
            {name: _key_fields(t, names) for name, t in tables.items()},
            {name: [a.text() for a in t.each("actions")] for name, t in tables.items()},
            {
                a.text("name"): {p.text("name"): p.whole("bitwidth") for p in a.each("runtime_data")}
                for a in program.each("actions")
            },
        )

    def table(self, wanted: str, where: Location) -> str:
        return match_name(_joined(wanted, self.keys), self.keys, "table", where)

    def action(self, wanted: str, table: str, where: Location) -> str:
        return match_name(_joined(wanted, self.actions[table]), self.actions[table], f"action of {table}", where)

    def key(self, wanted: str, table: str, where: Location) -> str:
        return match_name(wanted, [key.name for key in self.keys[table]], f"key of {table}", where)

    def parameters(self, action: str) -> dict[str, int]:
        """Names of the parameters of an action, and their widths."""
        return self.widths.get(action, {})

    def add(
        self,
        table: str,
        keys: Mapping[str, str],
        action: str,
        given: Mapping[str, str],
        where: Location,
        priority: int = 0,
    ) -> None:
        """Add an entry whose keys and action data are given by name, as words that commands have for them.

        Args:
            priority: entries of a low one are looked at first.

        Raises:
            DataError: a name or value does not belong to the table; with the table and key.
        """
        data, words = self.data(action, given, where), {}
        for wanted, word in keys.items():
            name = self.key(wanted, table, where)
            if name in words:
                raise DataError(f"table {table} gets its key {name} twice", location=where)
            words[name] = word
        for key in self.keys[table]:
            words[key.name] = words.get(key.name) or key.anything
            if not words[key.name]:
                raise DataError(f"an entry of {table} needs its key {key.name}", location=where)
        matches = self.matches(table, [words[key.name] for key in self.keys[table]], where)
        self.append(table, RuntimeEntry(matches, action, data, priority), where)

    def append(self, table: str, entry: RuntimeEntry, where: Location) -> None:
        """Add an entry.

        Raises:
            DataError: the table has one with the same key, and no priority decides between them.
        """
        if not any(key.kind in PRIORITISED for key in self.keys[table]):
            first = self._places.setdefault((table, entry.keys), where)
            if first is not where:
                other = f"line {first.line}" if first.line else "an earlier entry"
                raise DataError(f"duplicate entry of {table}: {other} has the same key", location=where)
        self.plane.tables.setdefault(table, []).append(entry)

    def matches(self, table: str, words: Sequence[str], where: Location) -> tuple[Match, ...]:
        """What the keys of a table match, a word each.

        Raises:
            DataError: one does not fit; with the table and key.
        """
        found = []
        for key, word in zip(self.keys[table], words, strict=True):
            with blamed(f"{table}: {key.name}"):
                found.append(match_of(key.kind, word, key.bits, where))
        return tuple(found)

    def data(self, action: str, given: Sequence[str] | Mapping[str, str], where: Location) -> tuple[int, ...]:
        """The values of an action's parameters, given in order or by name.

        Raises:
            DataError: one is missing, unknown or does not fit.
        """
        parameters = self.parameters(action)
        if isinstance(given, Mapping):
            found = {match_name(n, parameters, f"parameter of {action}", where): word for n, word in given.items()}
            if missing := ", ".join(name for name in parameters if name not in found):
                raise DataError(f"action {action} needs {missing}", location=where)
            given = [found[name] for name in parameters]
        elif len(given) != len(parameters):
            raise DataError(f"action {action} takes {len(parameters)} values, not {len(given)}", location=where)
        values = []
        for word, (name, bits) in zip(given, parameters.items(), strict=True):
            with blamed(f"{action}: {name}"):
                values.append(number_of(word, bits, where))
        return tuple(values)


def _joined(wanted: str, known: Collection[str]) -> str:
    """The name as p4c-dpdk writes it, which leaves leading parts out and joins the others with an underscore."""
    parts = wanted.split(".")
    shorter = ("_".join(parts[first:]) for first in range(len(parts)))
    return wanted if wanted in known else next((name for name in shorter if name in known), wanted)


def _inside(table: SpecLine, keyword: str) -> tuple[SpecLine, ...]:
    inner = table.inner(keyword)
    return () if inner is None else inner.lines


def _spec_actions(table: SpecLine) -> list[str]:
    default = table.inner("default_action")
    named = [line.word(0) for line in _inside(table, "actions")]
    return named if default is None else list(dict.fromkeys([*named, default.word(1)]))


def _spec_keys(spec: Specification, table: SpecLine) -> Iterator[KeyField]:
    for line in _inside(table, "key"):
        kind = line.words[1] if len(line.words) > 1 else "exact"
        yield KeyField(line.word(0), "ternary" if kind == "wildcard" else kind, spec.bits(line.word(0), line))


def _key_fields(table: Tree, names: Names) -> tuple[KeyField, ...]:
    found: dict[str, KeyField] = {}
    for n, key in enumerate(table.each("key")):
        name = distinct(key.optional("name") or f"key {n + 1}", found)
        found[name] = KeyField(name, key.text("match_type"), _key_bits(key, names))
    return tuple(found.values())


def _key_bits(key: Tree, names: Names) -> int:
    target = key.at("target")
    if key.text("match_type") == "valid" or not isinstance(target.value, list) or target.item(1).value == VALID:
        return 1
    return names.width_bits(names.ref(target.item(0).text(), target.item(1).text(), target))


@contextmanager
def blamed(key: str) -> Iterator[None]:
    """Let errors name the key, parameter or place that they are about."""
    try:
        yield
    except DataError as error:
        error.key = error.key or key
        raise


def read_control_plane(path: Path, root: Tree | Specification, p4info: Path | None = None) -> ControlPlane:
    """Read what configures a program.

    Raises:
        DataError: a file cannot be read, or something in it does not belong to the program; with the place.
    """
    names = None if p4info is None else (read_text(p4info), str(p4info))
    return parse_control_plane(read_text(path), str(path), root, names)


def parse_control_plane(
    text: str, source: str, root: Tree | Specification, p4info: tuple[str, str] | None = None
) -> ControlPlane:
    """The same of a text; ``source`` is what messages call it. ``p4info`` is a text and what messages call that."""
    builder = PlaneBuilder.of(root)
    if text.lstrip().startswith(("{", "[")):
        _of_json(parse_json(text, source), builder)
    elif _CSV.match(text):
        _of_csv(text, source, builder)
    elif _TEXT_PROTO.match(text):
        names = _Numbers.of(parse_text_proto(*p4info)) if p4info else None
        _of_p4runtime(parse_text_proto(text, source), builder, names)
    else:
        _of_commands(text, source, builder)
    return builder.plane


# Commands


def _of_commands(text: str, source: str, builder: PlaneBuilder) -> None:
    nodes: list[tuple[tuple[int, int], ...]] = []
    table = ""
    for number, raw in enumerate(text.splitlines(), 1):
        words, where = list(words_of(raw)), Location(source, number)
        if not words:
            continue
        if words[0] == "table" and len(words) == 2:
            table = builder.table(words[1], where)
        elif words[0] == "match":
            _of_dpdk(table, words, builder, where)
        elif words[0] in COMMANDS:
            _command(words, builder, where)
        elif words[0] in REPLICATION:
            _replicate(words[0], [number_of(w, 32, where) for w in words[1:]], builder.plane, nodes, where)
        elif "_" in words[0]:
            builder.plane.left_out[words[0]] = None
        else:
            raise DataError(f"{words[0]!r} begins neither an entry nor a command", location=where)


def _command(words: list[str], builder: PlaneBuilder, where: Location) -> None:
    """Carry out one of :data:`COMMANDS`."""
    if len(words) < 3:
        raise DataError(f"{words[0]} needs a table and an action", location=where)
    table = builder.table(words[1], where)
    action = builder.action(words[2], table, where)
    if words[0] == "table_set_default":
        builder.plane.defaults[table] = action, builder.data(action, words[3:], where)
        return
    if "=>" not in words:
        raise DataError("table_add needs => between key and action data", location=where)
    at = words.index("=>")
    given, data, keys = words[3:at], words[at + 1 :], builder.keys[table]
    if len(given) != len(keys):
        raise DataError(f"table {table} has {len(keys)} key fields, not {len(given)}", location=where)
    matches, priority = builder.matches(table, given, where), 0
    if len(data) == len(builder.parameters(action)) + 1 and any(key.kind in PRIORITISED for key in keys):
        priority, data = number_of(data[-1], 32, where), data[:-1]
    builder.append(table, RuntimeEntry(matches, action, builder.data(action, data, where), priority), where)


def _of_dpdk(table: str, words: list[str], builder: PlaneBuilder, where: Location) -> None:
    """An entry as DPDK's pipeline application has it."""
    if not table:
        raise DataError("stands before the first line 'table NAME'", location=where)
    keys = builder.keys[table]
    matched, rest = words[1 : len(keys) + 1], words[len(keys) + 1 :]
    priority = 0
    if len(rest) > 1 and rest[0] == "priority":
        priority, rest = number_of(rest[1], 32, where), rest[2:]
    if len(matched) < len(keys) or len(rest) < 2 or rest[0] != "action" or len(rest) % 2:
        raise DataError(f"an entry of table {table} has {len(keys)} key fields and an action", location=where)
    action = builder.action(rest[1], table, where)
    given = {
        name: word.removeprefix("N(").removeprefix("H(").removesuffix(")")
        for name, word in zip(rest[2::2], rest[3::2], strict=True)
    }
    matches = []
    for word, key in zip(matched, keys, strict=True):
        value, slash, mask = word.partition("/")
        kept = number_of(mask, key.bits, where) if slash else (1 << key.bits) - 1
        matches.append(Match.masked(number_of(value, key.bits, where), kept))
    builder.append(table, RuntimeEntry(tuple(matches), action, builder.data(action, given, where), priority), where)


def _replicate(
    command: str, numbers: list[int], plane: ControlPlane, nodes: list[tuple[tuple[int, int], ...]], where: Location
) -> None:
    """Carry out one of :data:`REPLICATION`; ``nodes`` are those of multicast, by their handles."""
    if len(numbers) < REPLICATION[command]:
        raise DataError(f"{command} needs {REPLICATION[command]} numbers", location=where)
    if command == "mirroring_add":
        plane.sessions[numbers[0]] = numbers[1]
    elif command == "mc_mgrp_create":
        plane.groups[numbers[0]] = ()
    elif command == "mc_node_create":
        nodes.append(tuple((port, numbers[0]) for port in numbers[1:]))
    elif numbers[0] not in plane.groups or numbers[1] >= len(nodes):
        raise DataError("there is no such multicast group or node", location=where)
    else:
        plane.groups[numbers[0]] += nodes[numbers[1]]


# JSON


def _of_json(root: Tree, builder: PlaneBuilder) -> None:
    for tree in root.each(None if isinstance(root.value, list) else "table_entries"):
        with blamed(tree.pointer):
            _json_entry(tree, builder)
    if isinstance(root.value, list):
        return
    for tree in root.each("multicast_group_entries"):
        copies = ((r.whole("egress_port"), r.whole("instance") if r.has("instance") else 0) for r in _replicas(tree))
        builder.plane.groups[tree.whole("multicast_group_id")] = tuple(copies)
    for tree in root.each("clone_session_entries"):
        builder.plane.sessions[tree.whole("clone_session_id")] = _replicas(tree)[0].whole("egress_port")


def _replicas(tree: Tree) -> list[Tree]:
    found = list(tree.each("replicas"))
    if not found:
        raise tree.error("has no replicas")
    return found


def _json_entry(tree: Tree, builder: PlaneBuilder) -> None:
    where = Location(tree.file)
    table = builder.table(tree.text("table"), where)
    action = builder.action(tree.text("action_name"), table, where)
    given = {n: _json_word(v) for n, v in tree.members("action_params")}
    if tree.flag("default_action"):
        builder.plane.defaults[table] = action, builder.data(action, given, where)
        return
    kinds = {key.name: key.kind for key in builder.keys[table]}
    keys = {}
    for wanted, value in tree.members("match"):
        name = builder.key(wanted, table, where)
        keys[name] = _json_match(value, kinds[name])
    builder.add(table, keys, action, given, where, -tree.whole("priority") if tree.has("priority") else 0)


def _json_match(tree: Tree, kind: str) -> str:
    if not isinstance(tree.value, list):
        return _json_word(tree)
    words = [_json_word(item) for item in tree.each()]
    if len(words) == 1 and kind in ("exact", "optional"):
        return words[0]
    if len(words) != 2 or kind not in SIGNS:
        raise tree.error(f"has {len(words)} values, not those of a key that is {kind}")
    return SIGNS[kind].join(words)


def _json_word(tree: Tree) -> str:
    return str(tree.whole()) if isinstance(tree.value, int) else tree.text()


# CSV


def _of_csv(text: str, source: str, builder: PlaneBuilder) -> None:
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    columns, header = list[str](), Location(source)
    checked: set[tuple[str, int | None]] = set()
    try:
        for row in rows:
            where = Location(source, rows.line_num)
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if cells[0].lower() == "table":
                columns, header = cells, where
                if columns.count("action") != 1:
                    raise DataError("needs a column 'action' between keys and parameters", location=where)
                continue
            if len(cells) != len(columns):
                raise DataError(f"has {len(cells)} cells for {len(columns)} columns", location=where)
            table = builder.table(cells[0], where)
            if (table, header.line) not in checked:
                _check_columns(columns, table, builder, header)
                checked.add((table, header.line))
            _csv_entry(columns, cells, table, builder, where)
    except csv.Error as error:
        raise DataError(f"is not CSV: {error}", location=Location(source, rows.line_num)) from error


def _check_columns(columns: list[str], table: str, builder: PlaneBuilder, where: Location) -> None:
    """Check the names of columns, whose cells may all be empty."""
    split = columns.index("action")
    for name in columns[1:split]:
        builder.key(name, table, where)
    known = [name for action in builder.actions[table] for name in builder.parameters(action)]
    for name in columns[split + 1 :]:
        if name != "priority":
            match_name(name, dict.fromkeys(known), f"parameter of actions of {table}", where)


def _csv_entry(columns: list[str], cells: list[str], table: str, builder: PlaneBuilder, where: Location) -> None:
    split = columns.index("action")
    action = builder.action(cells[split], table, where)
    pairs = list(zip(columns, cells, strict=True))
    rest = {name: word for name, word in pairs[split + 1 :] if word}
    priority = rest.pop("priority", "0") if "priority" not in builder.parameters(action) else "0"
    if not priority.isdecimal() or len(priority) > 9:
        raise DataError(f"the priority {priority!r} is not a whole number below 10**9", location=where)
    keys = {name: word for name, word in pairs[1:split] if word}
    if next(iter(keys.values()), "") == "default":
        builder.plane.defaults[table] = action, builder.data(action, rest, where)
    else:
        builder.add(table, keys, action, rest, where, -int(priority))


# P4Runtime


@dataclass
class _Numbers:
    """Names of tables, actions, their keys and parameters by their numbers in a P4Info."""

    names: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Names of keys of a table, or of parameters of an action, by its name."""

    @classmethod
    def of(cls, p4info: Message) -> _Numbers:
        found = cls()
        for group, inner in (("tables", "match_fields"), ("actions", "params")):
            for message in p4info.each(group):
                preamble = message.one("preamble") or message
                name, number = preamble.word("name"), preamble.word("id")
                if name is None or number is None:
                    raise DataError(f"one of {group} has no name or id", location=message.where)
                found.names[_plain(number)] = name
                found.parts[name] = {
                    _plain(part.word("id") or ""): part.word("name") or "" for part in message.each(inner)
                }
        if not found.names:
            raise DataError("is not P4Info: it has no tables", location=p4info.where)
        return found

    def name(self, word: str, where: Location) -> str:
        """The name of a table or action."""
        if not word[:1].isdigit():
            return word
        if _plain(word) not in self.names:
            hint = None if self.names else "give the P4Info of the program, or names in the place of numbers"
            raise DataError(f"nothing is known of number {word}", location=where, hint=hint)
        return self.names[_plain(word)]

    def part(self, owner: str, word: str, declared: list[str], where: Location) -> str:
        """The name of a key or parameter."""
        if not word[:1].isdigit():
            return word
        known = self.parts.get(owner) or {str(n): name for n, name in enumerate(declared, 1)}
        if _plain(word) not in known:
            raise DataError(f"{owner} has no key or parameter {word}", location=where)
        return known[_plain(word)]


def _plain(number: str) -> str:
    """The same number in decimal digits."""
    try:
        return str(int(number, 0))
    except ValueError:
        return number


def _of_p4runtime(root: Message, builder: PlaneBuilder, numbers: _Numbers | None) -> None:
    numbers = numbers or _Numbers()
    for message in _entities(root):
        for entry in message.each("table_entry"):
            _table_entry(entry, builder, numbers)
        for engine in message.each("packet_replication_engine_entry"):
            for group in engine.each("multicast_group_entry"):
                copies = ((r.whole("egress_port"), r.whole("instance")) for r in group.each("replicas"))
                builder.plane.groups[group.whole("multicast_group_id")] = tuple(copies)
            for session in engine.each("clone_session_entry"):
                for replica in session.each("replicas"):
                    builder.plane.sessions.setdefault(session.whole("session_id"), replica.whole("egress_port"))
    if root.word("table_id", "table_name") is not None:
        _table_entry(root, builder, numbers)


def _entities(root: Message) -> Iterator[Message]:
    yield root
    yield from root.each("entities")
    for update in root.each("updates"):
        if update.word("type") == "DELETE":
            raise DataError("entries are added here, not deleted", location=update.where)
        yield from update.each("entity")


def _table_entry(entry: Message, builder: PlaneBuilder, numbers: _Numbers) -> None:
    where = entry.where
    known = numbers.name(entry.word("table_id", "table_name") or "", where)
    table = builder.table(known, where)
    chosen = entry.one("action")
    act = chosen.one("action") if chosen else None
    if act is None:
        raise DataError(f"an entry of {table} has no action (those of action profiles are not read)", location=where)
    called = numbers.name(act.word("action_id", "action_name") or "", act.where)
    action = builder.action(called, table, act.where)
    names = list(builder.parameters(action))
    given = {
        numbers.part(called, p.word("param_id", "param_name") or "", names, p.where): f"0x{p.octets('value'):x}"
        for p in act.each("params")
    }
    if entry.word("is_default_action") == "true":
        builder.plane.defaults[table] = action, builder.data(action, given, act.where)
        return
    declared = [key.name for key in builder.keys[table]]
    keys = {
        numbers.part(known, m.word("field_id", "field_name") or "", declared, m.where): _field_match(m)
        for m in entry.each("match")
    }
    builder.add(table, keys, action, given, where, -entry.whole("priority"))


def _field_match(message: Message) -> str:
    for kind, first, second in _MATCHES:
        found = message.one(kind)
        if found is not None:
            words = [f"0x{found.octets(first):x}"]
            if second:
                words.append(str(found.whole(second)) if kind == "lpm" else f"0x{found.octets(second):x}")
            return SIGNS.get(kind, "").join(words)
    raise DataError(f"a key needs one of {', '.join(kind for kind, _, _ in _MATCHES)}", location=message.where)


_MATCHES = (
    ("exact", "value", ""),
    ("lpm", "value", "prefix_len"),
    ("ternary", "value", "mask"),
    ("range", "low", "high"),
    ("optional", "value", ""),
)
