"""Packets through a specification of SWX: the path that they take, step by step.

Metadata lie in the order of the processor (little endian), headers in that of the network, as in DPDK 22.11
(rte_swx_pipeline_internal.h). What is not known is None, and so is what follows from it.

The steps are those of :func:`~p4perf.evaluation.prediction.reading.swx.swx_flow`, so that decisions have the names that
its graph has. Executed is what moves and computes, exact, lpm and wildcard tables, registers, checksums and CRC hashes.
Meters are taken to say green. Not known are other hashes, selectors, learners and externs; a decision that depends on
them ends the path of a packet here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.errors import DataError, Location
from p4perf.evaluation.prediction.reading.packets import Passed
from p4perf.evaluation.prediction.reading.swx_instructions import SENT
from p4perf.formats.swx_spec import COMPARE, COMPUTE, JUMPS, Specification, SpecLine, number, words_of
from p4perf.programs.analysis import COMPARE as ORDER
from p4perf.programs.analysis import OPERATE
from p4perf.programs.operators import crc32c_raw
from p4perf.programs.packets import bits_of
from p4perf.programs.reading.commands import COMMANDS, Data, Entries, Match, RuntimeEntry, number_of
from p4perf.programs.reading.flow import Flow, Step
from p4perf.programs.reading.tree import match_name, read_text

MAX_SHIFT = 4096
"""Shifts are not followed further than this."""

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    **{str(sign): function for sign, function in (*OPERATE.items(), *ORDER.items())},
    "*": operator.mul,
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << min(b, MAX_SHIFT) if b >= 0 else 0,
    ">>": lambda a, b: a >> min(b, MAX_SHIFT) if b >= 0 else 0,
}


class UnknownDecisionError(Exception):
    """The next step of a packet is unknown; the text names what it depends on."""


@dataclass
class Values:
    """Fields of a packet, of its metadata, and of the entry whose action runs."""

    spec: Specification
    frame: bytes
    at: int = 0
    fields: dict[str, int | None] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    data: Mapping[str, int | None] = field(default_factory=dict)
    hit: bool = False
    ran: str = ""
    again: bool = False
    emitted: list[str] = field(default_factory=list)
    port: int | None = None

    def read(self, operand: str) -> int | None:
        """The value of an operand; metadata that were never written are zero."""
        constant = number(operand)
        if constant is not None:
            return constant
        if operand.startswith("t."):
            return self.data.get(operand[2:])
        return self.fields.get(operand, 0)

    def write(self, operand: str, value: int | None, line: SpecLine) -> None:
        """Write a field, cut to its width; a whole header field by field."""
        parts = operand.split(".")
        if parts[0] == "h" and len(parts) == 2:
            for name, _ in self.header(parts[1]):
                self.fields[f"{operand}.{name}"] = None
            return
        bits = self.spec.bits(operand, line)
        self.fields[operand] = None if value is None else value & ((1 << bits) - 1)

    def header(self, name: str) -> tuple[tuple[str, int], ...]:
        return self.spec.structs[self.spec.headers[name]]

    def extract(self, header: str, *, keep: bool = False) -> None:
        """Take a header from the packet; with ``keep`` it is only looked at."""
        at = self.at
        for name, bits in self.header(header):
            found = bits_of(self.frame, at, bits)
            if found is None:
                raise UnknownDecisionError("packets that are too short for their headers")
            self.fields[f"h.{header}.{name}"] = found
            at += bits
        self.valid.add(header)
        if not keep:
            self.at = at

    def header_bytes(self, header: str) -> bytes | None:
        """A header as it lies in memory; None if something of it is not known."""
        value = bits_before = 0
        for name, bits in self.header(header):
            part = self.fields.get(f"h.{header}.{name}", 0)
            if part is None:
                return None
            value, bits_before = value << bits | part, bits_before + bits
        return value.to_bytes(-(-bits_before // 8), "big")

    def span(self, first: str, last: str) -> bytes | None:
        """All fields of a structure from one to another one, as they lie in memory; None if one is not known."""
        prefix = first.rpartition(".")[0]
        fields = self.spec.structs[self.spec.metadata] if prefix == "m" else self.header(prefix[2:])
        names = [name for name, _ in fields]
        begin, end = names.index(first.rpartition(".")[2]), names.index(last.rpartition(".")[2])
        found = b""
        for name, bits in fields[min(begin, end) : max(begin, end) + 1]:
            value = self.fields.get(f"{prefix}.{name}", 0)
            if value is None:
                return None
            found += value.to_bytes(-(-bits // 8), "little" if prefix == "m" else "big")
        return found

    def _stored(self, operand: str, line: SpecLine) -> int | None:
        """A field as a number of the processor that is loaded from memory."""
        value = self.read(operand)
        if value is None or not operand.startswith("h."):
            return value
        return int.from_bytes(value.to_bytes(-(-self.spec.bits(operand, line) // 8), "big"), "little")

    def checksum(self, target: str, source: str, line: SpecLine, *, subtract: bool) -> None:
        """Add something to an internet checksum, or take it away (RFC 1624)."""
        words: list[int | None]
        if source.startswith("h.") and source.count(".") == 1:
            data = self.header_bytes(source[2:])
            words = (
                [None] if data is None else [int.from_bytes(data[n : n + 2], "little") for n in range(0, len(data), 2)]
            )
        else:
            words = [self._stored(source, line)]
        old = self._stored(target, line)
        if old is None or None in words:
            self.write(target, None, line)
            return
        total = sum(word for word in words if word is not None)
        result = (old ^ 0xFFFF) + (-total % 0xFFFF if subtract else total)
        while result > 0xFFFF:
            result = (result & 0xFFFF) + (result >> 16)
        result = (result ^ 0xFFFF) or 0xFFFF
        stored = int.from_bytes(result.to_bytes(2, "little"), "big") if target.startswith("h.") else result
        self.write(target, stored, line)


MAX_PASSES = 64
"""A packet that comes back more often is given up."""

Found = tuple[str, Mapping[str, int | None]] | None
"""Action and data of the entry that a lookup finds."""

Lookup = Callable[[str, list[int | None]], Found]
"""Name of a table and the values of its key fields."""


def read_swx_entries(path: Path, spec: Specification) -> Entries:
    """Entries of tables, from either of two formats.

    * That of DPDK's pipeline application: ``match KEY... [priority N] action NAME [ARGUMENT VALUE]...`` after a line
      ``table NAME``; a key is a value, or ``VALUE/MASK``.
    * Commands of bmv2 (:mod:`p4perf.programs.reading.commands`). Names may have the parts in front that p4c-dpdk
      leaves out (``MainControl.routes``).
    """
    found, table = Entries(), ""
    for line, raw in enumerate(read_text(path).splitlines(), 1):
        words = list(words_of(raw))
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
            if len(words) < 3:
                raise DataError(f"{words[0]} needs a table and an action", location=where)
            named = _name(words[1], spec.tables, "table", where)
            action = _name(words[2], spec.actions, "action", where)
            keys = [("", bits) for bits in _keys(named, spec)]
            found.carry_out(words, named, action, keys, [bits for _, bits in _parameters(action, spec)], where)
        elif words[0].startswith("table_") or "_" in words[0]:
            found.left_out[words[0]] = None
        else:
            raise DataError(f"{words[0]!r} begins neither an entry of SWX nor a command of bmv2", location=where)
    return found


def _name(wanted: str, known: Iterable[str], noun: str, where: Location) -> str:
    """The name that is meant; p4c-dpdk leaves leading parts out, and joins those that it keeps with an underscore."""
    names = list(known)
    parts = wanted.split(".")
    for first in range(len(parts)):
        if (short := "_".join(parts[first:])) in names:
            return short
    return match_name(wanted, names, noun, where)


def _keys(table: str, spec: Specification) -> list[int]:
    """Widths of the key fields of a table."""
    keys = spec.tables[table].inner("key")
    return [spec.bits(line.word(0), line) for line in keys.lines] if keys is not None else []


def _parameters(action: str, spec: Specification) -> Sequence[tuple[str, int]]:
    return spec.structs.get(spec.arguments(action), ())


def _entry(table: str, words: list[str], spec: Specification, where: Location) -> RuntimeEntry:
    keys = _keys(table, spec)
    matched, rest = words[1 : len(keys) + 1], words[len(keys) + 1 :]
    priority = 0
    if len(rest) > 1 and rest[0] == "priority":
        priority, rest = number_of(rest[1], 32, where), rest[2:]
    if len(matched) < len(keys) or len(rest) < 2 or rest[0] != "action":
        raise DataError(f"an entry of table {table} has {len(keys)} key fields and an action", location=where)
    action = _name(rest[1], spec.actions, "action", where)
    data: dict[str, int] = {}
    for name, word in zip(rest[2::2], rest[3::2], strict=False):
        value = number(word.removeprefix("N(").removeprefix("H(").removesuffix(")"))
        if value is None:
            raise DataError(f"{word!r} is no number", location=where)
        data[name] = value
    matches = tuple(_masked(word, bits, where) for word, bits in zip(matched, keys, strict=True))
    return RuntimeEntry(matches, action, tuple(data.get(name) for name, _ in _parameters(action, spec)), priority)


def _masked(word: str, bits: int, where: Location) -> Match:
    value, slash, mask = word.partition("/")
    kept = number_of(mask, bits, where) if slash else (1 << bits) - 1
    return Match.masked(number_of(value, bits, where), kept)


@dataclass
class SwxMachine:
    """One specification with its entries, or with another ``lookup``. Registers keep what earlier packets wrote.

    Packets raise a DataError where the specification names something that is not there, and an UnknownDecisionError
    where their path, or what is sent, depends on something that is not known.
    """

    spec: Specification
    flow: Flow
    entries: Entries = field(default_factory=Entries)
    lookup: Lookup | None = None
    registers: dict[tuple[str, int], int | None] = field(default_factory=dict)

    def run(self, frame: bytes, port: int = 0) -> tuple[list[tuple[str, str]], str]:
        """The decisions of a packet, without FCS, in its first pass, and why they end; empty if its path has ended."""
        made: list[tuple[str, str]] = []
        values = Values(self.spec, frame)
        try:
            made.extend((passed.step.name, passed.label) for passed in self._walk(values, port, 0))
        except UnknownDecisionError as reason:
            return made, str(reason)
        return made, ""

    def walk(self, frame: bytes, port: int = 0) -> Iterator[Passed]:
        """The steps that a packet passes, one after another, in all of its passes."""
        for number_of_pass in range(MAX_PASSES):
            values = Values(self.spec, frame)
            end = None
            for end in self._walk(values, port, number_of_pass):
                yield end
            if end is None or not values.again or end.step.name != SENT:
                return
            frame = self._sent(values)
        raise UnknownDecisionError("packets that come back again and again")

    def send(self, frame: bytes, port: int = 0) -> tuple[int | None, bytes] | None:
        """Port and bytes of a packet as it leaves after its first pass; None if it is dropped."""
        values = Values(self.spec, frame)
        steps = [passed.step.name for passed in self._walk(values, port, 0)]
        return (values.port, self._sent(values)) if steps[-1] == SENT else None

    def _walk(self, values: Values, port: int, number_of_pass: int) -> Iterator[Passed]:
        values.fields["$pass"] = number_of_pass
        values.fields["$port"] = port
        name = self.flow.start
        while name:
            step = self.flow.steps[name]
            for line in step.code:
                if line.word(0) not in JUMPS and line.word(0) != "table":
                    self._execute(line, values)
            present = [(fact, what) for fact, what in step.present if isinstance(fact, str) and fact in values.valid]
            values.emitted += [fact for fact, _ in present]
            label = self._label(step, values)
            yield Passed(step, (*step.constructs, *(what for _, what in present)), label, len(step.edges) > 1)
            name = next((e.to for e in step.edges if e.label == label), "")

    def _label(self, step: Step, values: Values) -> str:
        line = step.code[-1] if step.code else None
        if line is not None and line.word(0) == "table":
            return self._table(step, line, values)
        labels = [edge.label for edge in step.edges]
        if len(labels) < 2:
            return labels[0] if labels else ""
        if line is None:
            return values.ran
        if "true" in labels:
            return "true" if self._jumps(line, values) else "false"
        value = values.read(line.word(2))
        if value is None:
            raise UnknownDecisionError(f"{line.word(2)} in line {line.number}")
        return found if (found := f"0x{value:x}") in labels else "default"

    def _jumps(self, line: SpecLine, values: Values) -> bool:
        op = line.word(0)
        if op in ("jmpv", "jmpnv"):
            return (line.word(2).removeprefix("h.") in values.valid) == (op == "jmpv")
        if op in ("jmph", "jmpnh"):
            return values.hit == (op == "jmph")
        if op in ("jmpa", "jmpna"):
            return (values.ran == line.word(2)) == (op == "jmpa")
        left, right = values.read(line.word(2)), values.read(line.word(3))
        if left is None or right is None:
            raise UnknownDecisionError(f"{line.word(2)} in line {line.number}")
        return bool(OPERATIONS[COMPARE[op]](left, right))

    # Tables

    def _table(self, step: Step, line: SpecLine, values: Values) -> str:
        name = line.word(1)
        if name in self.spec.selectors:
            member = self.spec.selectors[name].inner("member_id")
            if member is not None:
                values.write(member.word(1), None, member)
            return step.edges[0].label
        table = self.spec.tables.get(name)
        if table is None:
            raise UnknownDecisionError(f"what learner {name} has learnt")
        default = table.inner("default_action")
        if table.inner("key") is None:
            found = None
        else:
            keys = [values.read(key.word(0)) for key in table.inner("key").lines]  # type: ignore[union-attr]
            found = (self.lookup or self._found)(name, keys)
        values.hit = found is not None
        values.ran, values.data = found or self._default(name, default)
        labels = [edge.label for edge in step.edges]
        outcome = "hit" if values.hit else "miss"
        return outcome if outcome in labels else labels[0]

    def _default(self, table: str, default: SpecLine | None) -> tuple[str, Mapping[str, int | None]]:
        if table in self.entries.defaults:
            return self._named(*self.entries.defaults[table])
        if default is None:
            return "", {}
        words = default.words[default.words.index("args") + 1 :] if "args" in default.words else ()
        pairs = zip(words[::2], words[1::2], strict=False)
        return default.word(1), {name: value for name, word in pairs if (value := number(word)) is not None}

    def _found(self, table: str, keys: list[int | None]) -> Found:
        if not self.entries.tables.get(table):
            return None
        if None in keys:
            raise UnknownDecisionError(f"a key of table {table}")
        entry = self.entries.find(table, [key for key in keys if key is not None])
        return None if entry is None else self._named(entry.action, entry.data)

    def _named(self, action: str, data: Data) -> tuple[str, Mapping[str, int | None]]:
        return action, {name: value for (name, _), value in zip(_parameters(action, self.spec), data, strict=True)}

    # Instructions

    def _execute(self, line: SpecLine, values: Values) -> None:
        op = line.word(0)
        if op in COMPUTE:
            left, right = values.read(line.word(1)), values.read(line.word(2))
            result = None if left is None or right is None else OPERATIONS[COMPUTE[op]](left, right)
            values.write(line.word(1), result, line)
        elif op == "mov":
            self._move(line.word(1), line.word(2), values, line)
        elif op == "dma":
            header = line.word(1).removeprefix("h.")
            values.write(line.word(1), None, line)
            values.valid.add(header)
        elif op in ("extract", "lookahead"):
            values.extract(line.word(1).removeprefix("h."), keep=op == "lookahead")
        elif op in ("validate", "invalidate"):
            change = values.valid.add if op == "validate" else values.valid.discard
            change(line.word(1).removeprefix("h."))
        elif op in ("ckadd", "cksub"):
            values.checksum(line.word(1), line.word(2), line, subtract=op == "cksub")
        elif op == "hash":
            data = values.span(line.word(3), line.words[-1]) if line.word(1) == "crc32" else None
            values.write(line.word(2), None if data is None else crc32c_raw(data), line)
        elif op == "rx":
            values.write(line.word(1), values.fields["$port"], line)
        elif op == "tx":
            values.port = values.read(line.word(1))
        elif op == "recirculate":
            values.again = True
        elif op == "recircid":
            values.write(line.word(1), values.fields["$pass"], line)
        elif op in ("regrd", "regwr", "regadd"):
            self._register(op, line, values)
        elif op == "meter":
            values.write(line.words[-1], 0, line)
        elif op in ("movh", "rss", "entryid"):
            values.write(line.word(2 if op == "rss" else 1), None, line)

    def _move(self, target: str, source: str, values: Values, line: SpecLine) -> None:
        if target.startswith("h.") and target.count(".") == 1 and source.startswith("h.") and source.count(".") == 1:
            fields = zip(values.header(target[2:]), values.header(source[2:]), strict=False)
            for (to, _), (of, _) in fields:
                values.write(f"{target}.{to}", values.read(f"{source}.{of}"), line)
            return
        values.write(target, values.read(source), line)

    def _register(self, op: str, line: SpecLine, values: Values) -> None:
        array, index = (line.word(2), line.word(3)) if op == "regrd" else (line.word(1), line.word(2))
        at = values.read(index)
        size = self.spec.registers.get(array, 0)
        cell = None if at is None or not size else (array, at & (size - 1) if size & (size - 1) == 0 else at)
        if op == "regrd":
            values.write(line.word(1), None if cell is None else self.registers.get(cell, 0), line)
        elif cell is not None:
            given = values.read(line.word(3))
            old = self.registers.get(cell, 0)
            more = None if given is None or old is None else old + given
            self.registers[cell] = given if op == "regwr" else more

    def _sent(self, values: Values) -> bytes:
        parts = [values.header_bytes(name) for name in values.emitted]
        if None in parts:
            raise UnknownDecisionError("what a packet carries that comes back")
        return b"".join(part for part in parts if part is not None) + values.frame[values.at // 8 :]
