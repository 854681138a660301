"""Names, expressions, statements and control flow of a program as P4 text; dialects override what differs.

:class:`FlowFacts` holds what the control flow can do on any of its paths: only what a program needs is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, identifier
from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, MIRRORED, expressions, read_fields, statements
from p4perf.programs.capabilities import unsupported
from p4perf.programs.dataflow import PathState, follow

_LASTING = (ir.CountPacket, ir.MeterPacket, ir.WriteRegister, ir.Clone)
"""Statements that leave something behind even if the packet is dropped."""


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What can happen on the paths of a program."""

    may_lack_port: bool
    """A packet can pass without any egress port set and without a drop."""
    revived: bool
    """Something after a drop can set the port."""
    drops: bool
    lasting_after_drop: bool
    """Something after a drop can leave something behind: a count, a register, a clone."""
    recirculates: bool
    resubmits: bool
    """A packet can go through the program again."""
    drop_after_again: bool
    """A packet that is to go through again can be dropped after that was said."""
    cloning_actions: int
    """The most actions with clones that one packet can meet."""
    counts_passes: bool

    @property
    def again(self) -> bool:
        """Whether a packet can go through the program again."""
        return self.recirculates or self.resubmits


def analyse(program: ir.Program) -> FlowFacts:
    """Derive what the P4 text has to provide for from the dataflow of a program.

    Raises:
        CapabilityError: a field is read of a header that may have been removed; no P4 dialect says what that gives.
    """
    found = follow(program)
    for read in found.reads:
        if read.field.header in read.state.removed:
            raise CapabilityError(
                f"field {read.field.field} of header {read.field.header} is read after the header was removed, "
                "which P4_16 leaves undefined"
            )
    end = found.end or PathState()
    after_drop = [step.what for step in found.steps if step.state.droppers]
    kinds = {type(s) for s in statements(program)}
    return FlowFacts(
        may_lack_port=not end.decided,
        revived=any(isinstance(s, ir.SetEgress) or (isinstance(s, ir.Multicast) and s.ports) for s in after_drop),
        drops=bool(end.droppers),
        lasting_after_drop=any(isinstance(s, _LASTING) for s in after_drop),
        recirculates=ir.Recirculate in kinds,
        resubmits=ir.Resubmit in kinds,
        drop_after_again=any(isinstance(step.what, ir.Drop) and step.state.passes_again for step in found.steps),
        cloning_actions=end.clones,
        counts_passes=any(isinstance(e, ir.PassNumber) for e in expressions(program)),
    )


def possibly_absent(program: ir.Program) -> frozenset[str]:
    """Headers that some packets come without, although the program asks for their fields without a test.

    P4_16 leaves undefined what their fields read as; a Program says zero.
    """
    extracted = {name for state in program.parser for name in state.extracts}
    reads = (r for r in follow(program).reads if r.field.header not in r.state.valid)
    return frozenset(r.field.header for r in reads if r.field.header in extracted)


_RESERVED = """
    abstract action actions apply bit bool const control default else entries enum error exit extern false for hdr
    header header_union if in inout int isValid key lastIndex last list main mark_to_drop match_kind meta next NoAction
    out package packet packet_in packet_out parser pop_front priority push_front reject return select setInvalid
    setValid standard_metadata state string struct switch table this transition true tuple type typedef value_set
    varbit verify void
    exact lpm ternary range optional selector size default_action implementation counters meters
    assert assume clone clone3 counter digest direct_counter direct_meter hash log_msg meter random recirculate register
    resubmit truncate update_checksum verify_checksum CloneType CounterType HashAlgorithm MeterType
    drop_packet ingress_drop istd mirror_packet ostd send_to_port Checksum Counter Digest DirectCounter DirectMeter Hash
    InternetChecksum Meter PortId_t PortIdUint_t PassNumber_t PassNumberUint_t Random Register checksum_unit
    nfp_port_t"""

RESERVED = frozenset(_RESERVED.split())
"""Names with a meaning in P4_16, on a header stack, in an architecture, or in the generated program."""


@cache
def p4_name(name: str) -> str:
    """A name that means nothing else in P4: reserved words get an underscore, and so do names that then look alike."""
    return f"{name}_" if identifier(name).rstrip("_") in RESERVED else name


def free_name(stem: str, taken: Iterable[str]) -> str:
    """``stem``, with as many underscores as it takes to be none of ``taken``."""
    names = set(taken)
    while stem in names:
        stem += "_"
    return stem


def check_names(program: ir.Program) -> None:
    """Refuse names that P4 could not tell apart."""
    _check_group(h.name for h in program.headers)
    _check_group(f.name for f in program.metadata)
    _check_group(s.name for s in program.parser)
    objects = [*(a.name for a in program.actions), *(t.name for t in program.tables)]
    objects += [*(c.name for c in program.counters), *(m.name for m in program.meters)]
    _check_group([*objects, *(r.name for r in program.registers)])
    for header in program.headers:
        _check_group(f.name for f in header.fields)
    for action in program.actions:
        _check_group(p.name for p in action.parameters)
    if ir.METADATA in {h.name for h in program.headers}:
        raise CapabilityError(f"a header cannot be called {ir.METADATA}")
    if "start" not in {s.name for s in program.parser} or ir.ACCEPT in {s.name for s in program.parser}:
        raise CapabilityError("a parser begins with state start and has no state of the name accept")


def _check_group(group: Iterable[str]) -> None:
    names = [p4_name(name) for name in group]
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise CapabilityError(f"names are used twice: {', '.join(twice)}")


@dataclass(frozen=True, slots=True)
class Typed:
    """A piece of P4 text and its width in bits."""

    text: str
    width_bits: int


Scope = Mapping[ir.Expression, Typed]
"""Everything that an expression may name, as text: fields, the number of the pass, parameters of the action."""


def program_scope(program: ir.Program) -> dict[ir.Expression, Typed]:
    found: dict[ir.Expression, Typed] = {
        ir.FieldRef(header.name, f.name): Typed(f"hdr.{p4_name(header.name)}.{p4_name(f.name)}", f.width_bits)
        for header in program.headers
        for f in header.fields
    }
    for f in program.metadata:
        found[ir.FieldRef(ir.METADATA, f.name)] = Typed(f"meta.{p4_name(f.name)}", f.width_bits)
    return found


def parameter_scope(action: ir.Action) -> dict[ir.Expression, Typed]:
    return {ir.ParameterRef(p.name): Typed(p4_name(p.name), p.width_bits) for p in action.parameters}


def constant_text(value: int, width_bits: int) -> str:
    """A constant of type ``bit<width_bits>``, cut to it."""
    cut = value & ((1 << width_bits) - 1)
    return f"{width_bits}w{cut}" if cut < 10 else f"{width_bits}w{cut:#x}"


def expression_text(scope: Scope, expression: ir.Expression, width_bits: int) -> str:
    """An expression as P4 text of type ``bit<width_bits>``.

    Operands are cast to that width before they are combined. As all operators are congruent modulo a power of two,
    that gives the same as computing without limit and cutting the result, which is what a Program means.
    """
    if isinstance(expression, ir.Const):
        return constant_text(expression.value, width_bits)
    if not isinstance(expression, ir.BinaryOp):
        return cast(_leaf(scope, expression), width_bits)
    operands = []
    left: ir.Expression = expression
    while isinstance(left, ir.BinaryOp) and left.operator == expression.operator:
        operands.append(_operand(scope, left.right, width_bits))
        left = left.left
    operands.append(_operand(scope, left, width_bits))
    return f" {expression.operator} ".join(reversed(operands))


def _operand(scope: Scope, expression: ir.Expression, width_bits: int) -> str:
    text = expression_text(scope, expression, width_bits)
    return f"({text})" if isinstance(expression, ir.BinaryOp) else text


def _leaf(scope: Scope, expression: ir.Expression) -> Typed:
    if expression not in scope:
        raise CapabilityError("the number of the pass has no form in this dialect")
    return scope[expression]


def cast(typed: Typed, wanted_bits: int) -> str:
    return typed.text if typed.width_bits == wanted_bits else f"(bit<{wanted_bits}>){typed.text}"


def condition_text(scope: Scope, condition: ir.Condition) -> str | bool:
    """A condition as P4 text, or what it always is.

    Both sides get the width of the wider one; a constant stands on the right, where all compilers take it, and one
    that the other side can never reach decides the comparison here.
    """
    if not isinstance(condition, ir.Compare | ir.IsValid):
        raise unsupported("P4", condition)
    if isinstance(condition, ir.IsValid):
        return f"hdr.{p4_name(condition.header)}.isValid()"
    left, right, comparator = condition.left, condition.right, condition.comparator
    if isinstance(left, ir.Const):
        left, right, comparator = right, left, MIRRORED[comparator]
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return COMPARE[comparator](left.value, right.value)
    if isinstance(left, ir.BinaryOp) or isinstance(right, ir.BinaryOp):
        raise CapabilityError("a condition compares fields, constants and the number of the pass only")
    first = _leaf(scope, left)
    if isinstance(right, ir.Const):
        if right.value >> first.width_bits:
            return COMPARE[comparator](0, right.value)
        return f"{first.text} {comparator} {constant_text(right.value, first.width_bits)}"
    second = _leaf(scope, right)
    width = max(first.width_bits, second.width_bits)
    return f"{cast(first, width)} {comparator} {cast(second, width)}"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of text that are made anew whenever somebody iterates over them."""

    make: Callable[[], Iterator[str]]

    def __iter__(self) -> Iterator[str]:
        return self.make()


INDENT = "    "
MAX_INDENT = 16
"""Conditionals that are nested deeper than this are not indented further."""


class Writer:
    """The text of one program in one dialect, for its template."""

    masks_indices: ClassVar[bool] = True
    """Whether an index has to be taken modulo the size of its array in the text."""
    drop_now: ClassVar[str]
    """The statement that drops a packet at once."""

    def __init__(self, program: ir.Program, flow: FlowFacts) -> None:
        self.program = program
        self.flow = flow
        passes = self.pass_number()
        self.scope: Scope = program_scope(program) | ({ir.PassNumber(): passes} if passes else {})
        self.drop_flag = self.flag("dropped") if self.keeps_drops() else None

    # What templates ask for -------------------------------------------------------------------------------------------

    def field(self, ref: ir.FieldRef) -> str:
        return self.scope[ref].text

    def constant(self, value: int, ref: ir.FieldRef) -> str:
        return constant_text(value, self.scope[ref].width_bits)

    def metadata_name(self, stem: str) -> str:
        """A name for a metadata field that the program does not have."""
        return free_name(stem, (p4_name(f.name) for f in self.program.metadata))

    def flag(self, stem: str) -> str:
        return f"meta.{self.metadata_name(stem)}"

    def keeps_drops(self) -> bool:
        """Whether drops are kept in a flag, which is tested at the end of the control."""
        return False

    def flags(self) -> Iterator[str]:
        """Metadata fields that hold what the control flow decided, until its end."""
        if self.drop_flag:
            yield self.drop_flag

    def zeroed(self) -> Iterator[str]:
        """Metadata fields that have to be set to zero, because something may read them before they are written."""
        read = read_fields(self.program)
        refs = (ir.FieldRef(ir.METADATA, f.name) for f in self.program.metadata)
        yield from (self.field(ref) for ref in refs if ref in read)
        yield from self.flags()

    def extra_metadata(self) -> Iterator[str]:
        """Metadata fields that only the dialect needs, as they are declared: the flags, and others."""
        yield from (f"bit<8> {reference.removeprefix('meta.')}" for reference in self.flags())

    def is_const(self, table: ir.Table) -> bool:
        """Whether the entries of a table stand in the text."""
        return False

    def size(self, table: ir.Table) -> int | None:
        """The size that is declared for a table; None: none is."""
        return max(1, table.entries.count)

    def companions(self, stem: str) -> tuple[GeneratedFile, ...]:
        """Files that a program needs at run time."""
        return ()

    def parameters(self, action: ir.Action) -> str:
        ports = self.typed_ports(action)
        types = (ports[p.name][0] if p.name in ports else f"bit<{p.width_bits}>" for p in action.parameters)
        return ", ".join(f"{t} {p4_name(p.name)}" for t, p in zip(types, action.parameters, strict=True))

    def typed_ports(self, action: ir.Action) -> Mapping[str, tuple[str, Typed]]:
        """Parameters that are ports of a type of their own: that type, and their value as a number."""
        return {}

    def action_lines(self, action: ir.Action) -> list[str]:
        ports: Scope = {ir.ParameterRef(name): typed for name, (_, typed) in self.typed_ports(action).items()}
        scope = {**self.scope, **parameter_scope(action), **ports} if action.parameters else self.scope
        lines: list[str] = []
        for position, statement in enumerate(action.body):
            lines += self.statement(statement, position, action, scope)
        return lines

    def control_lines(self, nodes: tuple[ir.ControlNode, ...] | None = None, depth: int = 0) -> Iterator[str]:
        space = INDENT * min(depth, MAX_INDENT)
        for node in self.program.control if nodes is None else nodes:
            if isinstance(node, ir.ApplyTable):
                yield f"{space}{p4_name(node.table)}.apply();"
            elif isinstance(node, ir.CallAction):
                yield f"{space}{p4_name(node.action)}();"
            elif isinstance(node, ir.Block):
                raise unsupported("P4", node)
            else:
                yield from self._conditional(node, depth)

    def _conditional(self, node: ir.If, depth: int) -> Iterator[str]:
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

    def statement(self, statement: ir.Statement, position: int, action: ir.Action, scope: Scope) -> Iterator[str]:
        """The text of one statement; ``position`` is its number in the action."""
        match statement:
            case ir.Assign(ref, value):
                yield self.assign(ref, expression_text(scope, value, scope[ref].width_bits))
            case ir.Drop():
                yield self.drop()
            case ir.AddHeader():
                yield from self.add_header(statement, scope)
            case ir.RemoveHeader(name):
                yield f"hdr.{p4_name(name)}.setInvalid();"
            case ir.CountPacket(name, index):
                size = self.program.counter(name).size
                yield f"{p4_name(name)}.count({self.index(scope, index, size)});"
            case ir.WriteRegister(name, index, value):
                register = self.program.register(name)
                at = self.index(scope, index, register.size)
                yield f"{p4_name(name)}.write({at}, {expression_text(scope, value, register.width_bits)});"
            case _:
                yield from self.effect(statement, position, action, scope)

    def assign(self, ref: ir.FieldRef, text: str) -> str:
        return f"{self.field(ref)} = {text};"

    def index(self, scope: Scope, index: ir.Expression, size: int) -> str:
        """An index of an array as ``bit<32>``, modulo its size, a power of two; masked unless the target does it."""
        if isinstance(index, ir.Const):
            return constant_text(index.value % size, 32)
        text = _operand(scope, index, 32)
        fits = not isinstance(index, ir.BinaryOp) and _leaf(scope, index).width_bits < size.bit_length()
        return text if fits or not self.masks_indices else f"{text} & {constant_text(size - 1, 32)}"

    def add_header(self, statement: ir.AddHeader, scope: Scope) -> Iterator[str]:
        """A header becomes valid, with values for all of its fields."""
        yield f"hdr.{p4_name(statement.header)}.setValid();"
        values = dict(statement.values)
        for f in self.program.header(statement.header).fields:
            ref = ir.FieldRef(statement.header, f.name)
            text = expression_text(scope, values[f.name], f.width_bits) if f.name in values else f"{f.width_bits}w0"
            yield self.assign(ref, text)

    def by_variable(
        self, ref: ir.FieldRef, bits: int, position: int, action: ir.Action, call: Callable[[str], str]
    ) -> Iterator[str]:
        """What an extern gives, of ``bits``, goes to a field by way of a variable of statement ``position``."""
        variable = free_name(f"value_{position}", (p4_name(p.name) for p in action.parameters))
        yield f"bit<{bits}> {variable};"
        yield call(variable)
        yield self.assign(ref, cast(Typed(variable, bits), self.scope[ref].width_bits))

    # What dialects say in their own words -----------------------------------------------------------------------------

    def pass_number(self) -> Typed | None:
        """How the number of the pass is named; None where there is none."""
        return None

    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: Scope) -> Iterator[str]:
        """The text of a statement that differs between dialects, or that some refuse: see :meth:`statement`."""
        what = f"hash {statement.algorithm}" if isinstance(statement, ir.Hash) else type(statement).__name__.lower()
        raise CapabilityError(f"{what} has no form in this dialect")

    def drop(self) -> str:
        return f"{self.drop_flag} = 1;" if self.drop_flag else self.drop_now


def alternatives(branches: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """A chain of conditionals: conditions, and what is done where the first of them holds."""
    for position, (condition, lines) in enumerate(branches):
        yield f"{'} else ' if position else ''}if ({condition}) {{"
        yield from (f"    {line}" for line in lines)
    if branches:
        yield "}"


def port_parameters(action: ir.Action) -> list[str]:
    ports = (s.port for s in action.body if isinstance(s, ir.SetEgress))
    return [p.name for p in ports if isinstance(p, ir.ParameterRef)]
