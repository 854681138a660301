"""From the statements and the control flow of a program to P4 text, line by line; dialects override what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.p4.expressions import (
    Scope,
    Typed,
    condition_text,
    constant_text,
    expression_text,
    index_text,
    program_scope,
)
from p4perf.generators.p4.flow import Flow
from p4perf.generators.p4.names import free_name, local_name, p4_name
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
    FieldRef,
    Hash,
    If,
    MeterPacket,
    Multicast,
    ParameterRef,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    RemoveHeader,
    Resubmit,
    SetEgress,
    Statement,
    WriteRegister,
)

INDENT = "    "
MAX_INDENT = 16
"""Conditionals that are nested deeper than this are not indented further."""


class Writer:
    """The text of one program in one dialect, for its template.

    Args:
        program: the program.
        flow: what its control flow can do.
    """

    port_bits: ClassVar[int]
    """Width of a port."""
    masks_indices: ClassVar[bool] = True
    """Whether an index has to be taken modulo the size of its array in the text."""

    def __init__(self, program: Program, flow: Flow) -> None:
        self.program = program
        self.flow = flow
        self.scope: Scope = program_scope(program, self.pass_number())

    # What templates ask for -------------------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        """A name as it stands in P4."""
        return p4_name(name)

    def field(self, ref: FieldRef) -> str:
        """A reference to a field."""
        return self.scope.fields[ref].text

    def constant(self, value: int, ref: FieldRef) -> str:
        """A constant that goes with a field."""
        return constant_text(value, self.scope.fields[ref].width_bits)

    def metadata_name(self, stem: str) -> str:
        """A name for a metadata field that the program does not have."""
        return free_name(stem, (p4_name(f.name) for f in self.program.metadata))

    def zeroed(self) -> Iterator[str]:
        """Metadata fields that have to be set to zero, because something may read them before they are written."""
        for f in self.program.metadata:
            yield self.scope.fields[FieldRef(METADATA, f.name)].text

    def parameters(self, action: Action) -> str:
        """The parameters of an action as they are declared."""
        return ", ".join(f"{self.parameter_type(action, p.name)} {p4_name(p.name)}" for p in action.parameters)

    def parameter_type(self, action: Action, parameter: str) -> str:
        """The type of a parameter of an action."""
        return f"bit<{next(p.width_bits for p in action.parameters if p.name == parameter)}>"

    def action_lines(self, action: Action) -> list[str]:
        """The body of an action."""
        scope = self.action_scope(action)
        lines: list[str] = []
        for position, statement in enumerate(action.body):
            lines += self.statement(statement, position, action, scope)
        return lines

    def action_scope(self, action: Action) -> Scope:
        """What the expressions of an action may name."""
        return self.scope.of_action(action)

    def control_lines(self, nodes: tuple[ControlNode, ...] | None = None, depth: int = 0) -> Iterator[str]:
        """The control flow."""
        space = INDENT * min(depth, MAX_INDENT)
        for node in self.program.control if nodes is None else nodes:
            if isinstance(node, ApplyTable):
                yield f"{space}{p4_name(node.table)}.apply();"
            elif isinstance(node, CallAction):
                yield f"{space}{p4_name(node.action)}();"
            else:
                yield from self._conditional(node, depth)

    def _conditional(self, node: If, depth: int) -> Iterator[str]:
        text = condition_text(self.scope, node.condition)
        if isinstance(text, bool):
            yield from self.control_lines(node.then if text else node.otherwise, depth)
            return
        space = INDENT * min(depth, MAX_INDENT)
        yield f"{space}if ({text}) {{"
        yield from self.control_lines(node.then, depth + 1)
        if node.otherwise:
            yield f"{space}}} else {{"
            yield from self.control_lines(node.otherwise, depth + 1)
        yield f"{space}}}"

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, statement: Statement, position: int, action: Action, scope: Scope) -> Iterator[str]:
        """The text of one statement; ``position`` is its number in the action."""
        match statement:
            case Assign(ref, value):
                yield self.assign(ref, expression_text(scope, value, scope.fields[ref].width_bits))
            case SetEgress(port):
                yield self.set_egress(port, scope)
            case Drop():
                yield self.drop()
            case AddHeader():
                yield from self.add_header(statement, scope)
            case RemoveHeader(name):
                yield f"hdr.{p4_name(name)}.setInvalid();"
            case Hash():
                yield from self.hash(statement, position, action)
            case CountPacket(name, index):
                size = self.program.counter(name).size
                yield f"{p4_name(name)}.count({self.index(scope, index, size)});"
            case MeterPacket():
                yield from self.meter(statement, scope)
            case ReadRegister():
                yield from self.read_register(statement, position, action, scope)
            case WriteRegister(name, index, value):
                register = self.program.register(name)
                at = self.index(scope, index, register.size)
                yield f"{p4_name(name)}.write({at}, {expression_text(scope, value, register.width_bits)});"
            case Random():
                yield from self.random(statement, position, action)
            case Recirculate() | Resubmit():
                yield self.again(statement)
            case Clone():
                yield from self.clone(position, action)
            case Multicast():
                yield self.multicast(statement)

    def assign(self, ref: FieldRef, text: str) -> str:
        """An assignment to a field."""
        return f"{self.field(ref)} = {text};"

    def index(self, scope: Scope, index: Expression, size: int) -> str:
        """The index of an array."""
        return index_text(scope, index, size, masked=self.masks_indices)

    def add_header(self, statement: AddHeader, scope: Scope) -> Iterator[str]:
        """A header becomes valid, with values for all of its fields."""
        yield f"hdr.{p4_name(statement.header)}.setValid();"
        values = dict(statement.values)
        for f in self.program.header(statement.header).fields:
            ref = FieldRef(statement.header, f.name)
            text = expression_text(scope, values[f.name], f.width_bits) if f.name in values else f"{f.width_bits}w0"
            yield self.assign(ref, text)

    def resized(
        self, ref: FieldRef, width_bits: int, position: int, action: Action, *, always: bool = False
    ) -> tuple[list[str], str, list[str]]:
        """Where an extern that gives ``width_bits`` puts its result, if it is for a field that may have another width.

        Args:
            ref: the field.
            width_bits: of the result.
            position: of the statement in its action.
            action: that the statement is in.
            always: by way of a variable whatever the width.

        Returns:
            Lines before the call, the text of the destination, lines after it.
        """
        typed: Typed = self.scope.fields[ref]
        if typed.width_bits == width_bits and not always:
            return [], typed.text, []
        name = local_name(f"value_{position}", action)
        value = name if typed.width_bits == width_bits else f"(bit<{typed.width_bits}>){name}"
        return [f"bit<{width_bits}> {name};"], name, [f"{typed.text} = {value};"]

    # What dialects say in their own words -----------------------------------------------------------------------------

    def pass_number(self) -> Typed | None:
        """How the number of the pass is named; None where there is none."""
        return None

    def set_egress(self, port: Expression, scope: Scope) -> str:
        """The packet is sent by a port."""
        raise self.missing("an egress port")

    def drop(self) -> str:
        """The packet is dropped."""
        raise self.missing("a drop")

    def hash(self, statement: Hash, position: int, action: Action) -> Iterator[str]:
        """A hash over fields."""
        raise self.missing(f"hash {statement.algorithm}")

    def meter(self, statement: MeterPacket, scope: Scope) -> Iterator[str]:
        """A meter gives the packet a colour."""
        raise self.missing("meter")

    def read_register(self, statement: ReadRegister, position: int, action: Action, scope: Scope) -> Iterator[str]:
        """A register is read."""
        raise self.missing("register read")

    def random(self, statement: Random, position: int, action: Action) -> Iterator[str]:
        """A random number."""
        raise self.missing("random")

    def again(self, statement: Recirculate | Resubmit) -> str:
        """The packet goes through the program once more."""
        raise self.missing(type(statement).__name__.lower())

    def clone(self, position: int, action: Action) -> Iterator[str]:
        """A clone of the packet; ``position`` is that of the statement in the action."""
        raise self.missing("clone")

    def multicast(self, statement: Multicast) -> str:
        """The packet is sent by several ports."""
        raise self.missing("multicast")

    def missing(self, what: str) -> CapabilityError:
        """The refusal of something that the table of capabilities should have refused."""
        return CapabilityError(f"{what} has no form in this dialect")


def port_parameters(action: Action) -> list[str]:
    """Names of the parameters of an action that are output ports."""
    ports = (s.port for s in action.body if isinstance(s, SetEgress))
    return [p.name for p in ports if isinstance(p, ParameterRef)]
