"""The reference interpreter: executes a :class:`~p4perf.generators.program.Program` on bytes.

It is the oracle of every generated program: slow, literal, and free of any target's tricks. The fields of a header that
was not extracted, which P4 leaves undefined, read as zero here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from p4perf.generators.program import (
    ACCEPT,
    METADATA,
    Action,
    ApplyTable,
    Assign,
    BinaryOp,
    Const,
    Drop,
    Expression,
    FieldRef,
    Program,
    SetEgress,
    Table,
    entry_data_word,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one packet: the port it leaves by and its bytes, or ``port is None`` if it was dropped."""

    port: int | None
    data: bytes
    hits: tuple[str, ...] = ()
    """Names of the tables that were hit, in order."""
    misses: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    """One packet on its way through the program."""

    fields: dict[FieldRef, int] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    parsed_bytes: int = 0
    egress: int | None = None
    dropped: bool = False
    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


def entry_parameters(table: Table, action: Action, index: int) -> dict[str, int]:
    """Action data of entry ``index`` by parameter name (see :class:`~p4perf.generators.program.EntrySet`)."""
    words = (table.entries.port if j == 0 else entry_data_word(index, j) for j in range(len(action.parameters)))
    return {p.name: w & ((1 << p.width_bits) - 1) for p, w in zip(action.parameters, words, strict=True)}


class Interpreter:
    """Runs packets through one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, frame: bytes) -> Outcome:
        """Process one frame (without FCS) and say what becomes of it."""
        state = _State(fields={FieldRef(METADATA, f.name): 0 for f in self._program.metadata})
        if not self._parse(frame, state):
            return Outcome(None, frame)
        for node in self._program.control:
            if isinstance(node, ApplyTable):
                self._apply(self._program.table(node.table), state)
            else:
                self._call(self._program.action(node.action), {}, state)
        port = None if state.dropped else state.egress
        return Outcome(port, self._deparse(frame, state), tuple(state.hits), tuple(state.misses))

    def _parse(self, frame: bytes, state: _State) -> bool:
        name = "start"
        while name != ACCEPT:
            parser_state = self._program.state(name)
            for header_name in parser_state.extracts:
                header = self._program.header(header_name)
                chunk = frame[state.parsed_bytes : state.parsed_bytes + header.size_bytes]
                if len(chunk) < header.size_bytes:
                    return False
                value, left = int.from_bytes(chunk, "big"), header.width_bits
                for f in header.fields:
                    left -= f.width_bits
                    state.fields[FieldRef(header.name, f.name)] = (value >> left) & ((1 << f.width_bits) - 1)
                state.valid.add(header.name)
                state.parsed_bytes += header.size_bytes
            name = parser_state.default
            if parser_state.select is not None:
                selected = state.fields[parser_state.select]
                name = next((c.next_state for c in parser_state.cases if c.value == selected), name)
        return True

    def _apply(self, table: Table, state: _State) -> None:
        index = 0
        for key in table.keys:
            index = (index << self._program.width_bits(key.field)) | state.fields.get(key.field, 0)
        if index < table.entries.count:
            state.hits.append(table.name)
            action = self._program.action(table.entries.action)
            self._call(action, entry_parameters(table, action, index), state)
        else:
            state.misses.append(table.name)
            self._call(self._program.action(table.default_action), {}, state)

    def _call(self, action: Action, arguments: Mapping[str, int], state: _State) -> None:
        for statement in action.body:
            if isinstance(statement, Drop):
                state.dropped = True
            elif isinstance(statement, SetEgress):
                state.egress = self._evaluate(statement.port, arguments, state)
            else:
                self._assign(statement, arguments, state)

    def _assign(self, statement: Assign, arguments: Mapping[str, int], state: _State) -> None:
        width = self._program.width_bits(statement.destination)
        value = self._evaluate(statement.value, arguments, state)
        state.fields[statement.destination] = value & ((1 << width) - 1)

    def _evaluate(self, expression: Expression, arguments: Mapping[str, int], state: _State) -> int:
        if isinstance(expression, Const):
            return expression.value
        if isinstance(expression, FieldRef):
            return state.fields.get(expression, 0)
        if isinstance(expression, BinaryOp):
            left = self._evaluate(expression.left, arguments, state)
            right = self._evaluate(expression.right, arguments, state)
            return _OPERATORS[expression.operator](left, right)
        return arguments[expression.name]

    def _deparse(self, frame: bytes, state: _State) -> bytes:
        out = b""
        for name in self._program.emit:
            if name not in state.valid:
                continue
            header = self._program.header(name)
            value = 0
            for f in header.fields:
                value = (value << f.width_bits) | state.fields[FieldRef(name, f.name)]
            out += value.to_bytes(header.size_bytes, "big")
        return out + frame[state.parsed_bytes :]


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
