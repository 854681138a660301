"""Actions and control flow of a program as C text, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from p4perf.generators.analysis import destination
from p4perf.generators.dpdk_c_fields import WORD_BITS, FieldWriter, c_type, mask
from p4perf.generators.dpdk_c_layout import Layout
from p4perf.generators.program import (
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    CallAction,
    Clone,
    ControlNode,
    CountPacket,
    Drop,
    Expression,
    Fence,
    FieldRef,
    Hash,
    If,
    MeterPacket,
    Multicast,
    Operator,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    RunOperator,
    SetEgress,
    Statement,
    WriteRegister,
)

_DEEPEST_INDENT = 12
"""Conditionals that stand deeper than this are not indented any further."""


def _call(operator: Operator) -> str:
    """The call of an operator."""
    if operator.code:
        return "operate(p->data, p->length)"
    if operator.name == "multiply_chain":
        return f"operator_multiply_chain(p->length, {operator.multiplications})"
    return f"operator_{operator.name}(p->data, p->length)"


class StatementWriter:
    """Statements and control flow of one program; ``p`` is the packet, ``d`` the action data."""

    def __init__(self, program: Program, plan: Layout, groups: tuple[tuple[int, ...], ...]) -> None:
        self._program = program
        self._plan = plan
        self._groups = groups
        self.fields = FieldWriter(program, plan.always_valid)

    def action(self, action: Action) -> Iterator[str]:
        """The body of an action. Where the written headers are is decided once, unless it adds or removes them."""
        moved = {s.header for s in action.body if isinstance(s, AddHeader | RemoveHeader)}
        written = {ref.header for s in action.body if (ref := destination(s)) is not None}
        fixed = written - moved - {METADATA} - self._plan.always_valid
        for header in self._program.headers:
            if header.name in fixed:
                yield f"uint8_t *const to_{header.name} = writable(p->h_{header.name});"
        if fixed:
            yield ""
        for statement in action.body:
            yield from self._statement(statement, fixed)

    def _store(self, ref: FieldRef, value: str, fixed: set[str]) -> Iterator[str]:
        yield from self.fields.store(ref, (value,), self._pointer(ref, fixed))

    @staticmethod
    def _pointer(ref: FieldRef, fixed: set[str]) -> str | None:
        return f"to_{ref.header}" if ref.header in fixed else None

    def _index(self, index: Expression, size: int) -> str:
        return f"{self.fields.expression(index)} & {mask(max((size - 1).bit_length(), 1)) if size > 1 else 0}"

    def _statement(self, statement: Statement, fixed: set[str]) -> Iterator[str]:
        value = self.fields.expression
        match statement:
            case Assign(ref, expression):
                yield from self.fields.assign(ref, expression, self._pointer(ref, fixed))
            case SetEgress(port):
                yield f"p->egress = (int32_t){value(port)};"
            case Drop():
                yield "p->dropped = true;"
            case AddHeader():
                yield from self._add(statement)
            case RemoveHeader(name):
                yield f"p->h_{name} = absent;"
            case Hash():
                yield from self._hash(statement, fixed)
            case CountPacket(name, index):
                yield f"counter_{name}[{self._index(index, self._program.counter(name).size)}]++;"
            case MeterPacket(ref, name, index):
                cell = f"&meter_{name}[{self._index(index, self._program.meter(name).size)}]"
                yield from self._store(ref, f"colour({cell}, p->length)", fixed)
            case ReadRegister(ref, name, index):
                cell = f"register_{name}[{self._index(index, self._program.register(name).size)}]"
                yield from self._store(ref, cell, fixed)
            case WriteRegister(name, index, expression):
                register = self._program.register(name)
                cell = f"register_{name}[{self._index(index, register.size)}]"
                kind = c_type(register.width_bits)
                yield f"{cell} = ({kind})({value(expression)} & {mask(register.width_bits)});"
            case Random(ref):
                words = -(-self._program.width_bits(ref) // WORD_BITS)
                yield from self.fields.store(ref, ("rte_rand()",) * words, self._pointer(ref, fixed))
            case Recirculate():
                yield "p->recirculated = true;"
            case Resubmit():
                yield "p->resubmitted = true;"
            case Clone(port):
                yield f"send_clone(p, {port});"
            case RunOperator(ref, operator):
                yield from self._store(ref, f"({self.fields.load(ref)} ^ {_call(operator)})", fixed)
            case Fence(None):
                yield "fence(p->data, p->length);"
            case Fence(FieldRef() as ref):
                yield from self._store(ref, f"fence_after({self.fields.load(ref)}, p->data, p->length)", fixed)
            case Multicast(ports):
                if self._groups:
                    yield f"p->group = {self._groups.index(ports) + 1 if ports else 0};"

    def _add(self, statement: AddHeader) -> Iterator[str]:
        """Values first, since they may be of the header itself; then zeros, then the values."""
        name = statement.header
        yield "{"
        for n, (field, expression) in enumerate(statement.values):
            width = self._program.header(name).field(field).width_bits
            for k, low in enumerate(range(0, width, WORD_BITS)):
                yield f"\tconst uint64_t value_{n}_{k} = {self.fields.expression(expression, low)};"
        if statement.values:
            yield ""
        yield f"\tmemset(added_{name}, 0, sizeof(added_{name}));"
        for n, (field, _) in enumerate(statement.values):
            ref = FieldRef(name, field)
            words = -(-self._program.width_bits(ref) // WORD_BITS)
            values = [f"value_{n}_{k}" for k in range(words)]
            for line in self.fields.store(ref, values, f"added_{name}"):
                yield f"\t{line}"
        yield f"\tp->h_{name} = added_{name};"
        yield "}"

    def _hash(self, statement: Hash, fixed: set[str]) -> Iterator[str]:
        size = self.fields.bits(statement.fields) // 8
        if pointer := self.fields.together(statement.fields):
            yield from self._store(statement.destination, f"hash_{statement.algorithm}({pointer}, {size})", fixed)
            return
        yield "{"
        yield f"\tuint8_t bytes[{size}] = {{0}};"
        yield ""
        for line in self.fields.gather(statement.fields, "bytes"):
            yield f"\t{line}"
        for line in self._store(statement.destination, f"hash_{statement.algorithm}(bytes, {size})", fixed):
            yield f"\t{line}"
        yield "}"

    def control(self, nodes: tuple[ControlNode, ...], batched: str | None, depth: int = 0) -> Iterator[str]:
        """The control flow. ``batched`` is the table whose first application was looked up for the whole burst."""
        indent = "\t" * min(depth, _DEEPEST_INDENT)
        for node in nodes:
            match node:
                case ApplyTable(table):
                    found = f"find_{table}(p)" if batched is None else "p->found"
                    batched = None
                    yield f"{indent}table_{table}(p, {found});"
                case CallAction(action):
                    yield f"{indent}action_{action}(p);"
                case If(condition, then, otherwise):
                    yield f"{indent}if ({self.fields.condition(condition)}) {{"
                    yield from self.control(then, None, depth + 1)
                    if otherwise:
                        yield f"{indent}}} else {{"
                        yield from self.control(otherwise, None, depth + 1)
                    yield f"{indent}}}"
