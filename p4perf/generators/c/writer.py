"""What the C text of a program has in common on DPDK and in XDP: words of 64 bit, statements, parser, control flow.

How fields, headers and state are reached is up to the target: the verifier of eBPF has a say in that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.programs import analysis, ir
from p4perf.programs.capabilities import standing_at
from p4perf.programs.decisions import was_read
from p4perf.programs.interpreter import RECIRCULATED, RESUBMITTED
from p4perf.programs.ranges import Range, signed, unsigned, value_range

WORD_BITS = 64
"""Widest number that is computed with."""

_WORD, _SIGNED_WORD = unsigned(WORD_BITS), signed(WORD_BITS)


@ir.once
def _parameter_bits(program: ir.Program) -> dict[str, int]:
    """Widths of the parameters of all actions; of those with one name the widest."""
    found: dict[str, int] = {}
    for action in program.actions:
        for p in action.parameters:
            found[p.name] = max(p.width_bits, found.get(p.name, 0))
    return found


def number(value: int) -> str:
    """A C constant of 64 bit, unsigned."""
    cut = value & _WORD.high
    return f"0x{cut:x}ull" if cut > 9 else f"{cut}ull"


def mask(width_bits: int) -> str:
    """A C constant with the lowest ``width_bits`` bits set."""
    return number((1 << width_bits) - 1)


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines one level deeper; empty ones stay empty."""
    return (f"\t{line}" if line else line for line in lines)


def cells(size: int) -> int:
    """The cells of an array, of which the index is taken modulo a power of two."""
    return 1 << max(size - 1, 0).bit_length()


def check_passes(program: ir.Program, owner: str) -> None:
    """Refuse programs that ask how a packet came back where that may have happened in two ways."""
    passing = {type(s) for s in analysis.statements(program) if isinstance(s, ir.Recirculate | ir.Resubmit)}
    if len(passing) > 1 and ir.Intrinsic("instance_type") in set(analysis.expressions(program)):
        raise CapabilityError(f"{owner} does not tell recirculated from resubmitted packets")


@dataclass(frozen=True)
class CWriter(ABC):
    """One program as C text; ``p`` is the packet, ``d`` the action data."""

    program: ir.Program

    owner: ClassVar[str]
    """The generator, for messages."""
    word_type: ClassVar[str]
    signed_type: ClassVar[str]
    zero: ClassVar[str]
    limit: ClassVar[str]
    """What is said of a wider computation."""
    cursor: ClassVar[str]
    """The place of the parser in the packet."""
    intrinsics: ClassVar[Mapping[str, str]]
    """What :class:`~p4perf.programs.ir.Intrinsic` names; ``{port}`` is the port by which packets come in."""
    rejected: ClassVar[str]
    """The statement that drops a packet in the parser."""
    accepted: ClassVar[str]
    """The statement that ends the parser."""

    @abstractmethod
    def load(self, ref: ir.FieldRef, low: int = 0) -> str:
        """The value of a field, or of up to 64 bits of it from bit ``low`` (counted from the lowest) on."""

    @abstractmethod
    def is_valid(self, header: str) -> str:
        """Whether a packet has a header."""

    @abstractmethod
    def store_words(self, ref: ir.FieldRef, values: Sequence[str], room: str = "") -> Iterator[str]:
        """Statements that write words of 64 bit, the lowest first, to a field; those that lack are zero.

        Args:
            room: where the header is put together; empty: the field is where it is.
        """

    @abstractmethod
    def room(self, header: str) -> tuple[str, str, str]:
        """Where a header is put together that is added, and the statements that clear it and make it valid there."""

    @abstractmethod
    def hash_fields(self, statement: ir.Hash) -> Iterator[str]:
        """Statements that write the hash of fields to a field."""

    @abstractmethod
    def random_word(self, width: int) -> str:
        """Random bits, up to 64 of them."""

    @abstractmethod
    def colour(self, meter: str, index: ir.Expression) -> str:
        """The colour that a meter gives the packet."""

    @abstractmethod
    def register(self, name: str, index: ir.Expression) -> str:
        """The value of a cell of a register."""

    @abstractmethod
    def effect(self, statement: ir.Statement) -> Iterator[str]:
        """Statements for what writes no field."""

    @abstractmethod
    def bits_at(self, base: str, offset: int, width: int) -> str:
        """Up to 64 bits that begin ``offset`` bits behind an address."""

    @abstractmethod
    def beyond(self, size: str) -> str:
        """The condition that the packet ends before this number of bytes behind the cursor of the parser."""

    @abstractmethod
    def taken(self, size: str) -> Iterator[str]:
        """Statements that move the place of the parser on."""

    @abstractmethod
    def extracted(self, header: str) -> Iterator[str]:
        """Statements that make a header valid at the place of the parser."""

    @abstractmethod
    def lookup(self, table: str, found: str) -> str:
        """The application of a table, with what was found before; empty: it is looked up there."""

    def expression(self, e: ir.Expression, low: int = 0) -> str:
        """The value of an expression, modulo two to the 64, shifted to the right by ``low`` (a multiple of 64) bits.

        Raises:
            CapabilityError: it would have to be computed in more than one word.
        """
        if low:
            whole = self.range(e)
            if whole.low >= 0 and not whole.high >> low:
                return self.zero
            if whole.within(_SIGNED_WORD):
                return f"({self.word_type})(({self.signed_type}){self.expression(e)} >> {WORD_BITS - 1})"
        match e:
            case ir.Const(value):
                return number(value >> low)
            case ir.FieldRef():
                declared = self.program.declared(e)
                if not declared.signed or declared.width_bits >= WORD_BITS:
                    return self.load(e, low)
                rest = WORD_BITS - declared.width_bits
                return f"({self.word_type})(({self.signed_type})({self.load(e)} << {rest}) >> {rest})"
            case ir.ParameterRef(name):
                return self.data_above(name, low) if low else f"({self.word_type})d->{name}"
            case ir.BinaryOp():
                return self._operation(e, low)
            case ir.PassNumber():
                return f"({self.word_type})p->pass"
            case ir.Cast():
                return self._cast(e, low)
            case ir.Conditional(condition, then, otherwise):
                return (
                    f"({self.condition(condition)} ? {self.expression(then, low)} : {self.expression(otherwise, low)})"
                )
            case ir.Truth(condition):
                return f"({self.word_type})({self.condition(condition)})"
            case ir.Lookahead():
                return self.lookahead(e, low)
            case ir.Intrinsic(name):
                return self.intrinsic(name)

    def range(self, e: ir.Expression) -> Range:
        return value_range(self.program, e, _parameter_bits(self.program))

    def _exact(self, *sides: ir.Expression) -> bool:
        """Whether words hold the values of all sides as signed numbers, not as unsigned ones.

        Raises:
            CapabilityError: they hold them neither so nor so.
        """
        ranges = [self.range(side) for side in sides]
        for whole in (_WORD, _SIGNED_WORD):
            if all(r.within(whole) for r in ranges):
                return whole is _SIGNED_WORD
        raise CapabilityError(self.limit)

    def _operation(self, e: ir.BinaryOp, low: int) -> str:
        operator, first, second = e.operator, e.left, e.right
        whole = self.range(first)
        if operator in ("<<", ">>") and isinstance(second, ir.Const) and whole.low >= 0 and (low or whole.high >> 64):
            return self._moved(first, low + (second.value if operator == ">>" else -second.value))
        if low and operator not in ("&", "|", "^"):
            raise CapabilityError(self.limit)
        left, right = self.expression(first, low), self.expression(second, low)
        if operator in ("<<", ">>"):
            return self._shift(e, left, right)
        if operator in ("/", "%") and self._exact(first, second):
            raise CapabilityError(f"{self.owner} divides unsigned numbers only")
        if operator in ("/", "%") and self.range(second).low < 1:
            right = f"({right} != 0 ? {right} : 1)"
        return f"({left} {operator} {right})"

    def _moved(self, e: ir.Expression, first: int) -> str:
        """64 bits of a number that is not negative, from any bit on; those below the lowest are zero."""
        if first <= -WORD_BITS or not self.range(e).high >> max(first, 0):
            return self.zero
        if first < 0:
            return f"({self.expression(e)} << {-first})"
        if isinstance(e, ir.FieldRef):
            return self.load(e, first)
        low, rest = first - first % WORD_BITS, first % WORD_BITS
        found = self.expression(e, low)
        if not rest:
            return found
        above = low + WORD_BITS
        if not self.range(e).high >> above:
            return f"({found} >> {rest})"
        return f"({found} >> {rest} | {self.expression(e, above)} << {WORD_BITS - rest})"

    def _shift(self, e: ir.BinaryOp, left: str, right: str) -> str:
        by = self.range(e.right)
        if by.low < 0:
            raise CapabilityError(f"{self.owner} shifts by unsigned numbers only")
        far = by.high >= WORD_BITS
        if e.operator == ">>" and self._exact(e.left):
            amount = f"({right} < {WORD_BITS} ? {right} : {WORD_BITS - 1})" if far else right
            return f"({self.word_type})(({self.signed_type}){left} >> {amount})"
        shifted = f"({left} {e.operator} {right})"
        return f"({right} < {WORD_BITS} ? {shifted} : {self.zero})" if far else shifted

    def _cast(self, e: ir.Cast, low: int) -> str:
        inner, width = self.range(e.value), e.width_bits
        value = self.expression(e.value, low)
        whole = signed(width) if e.signed else unsigned(width)
        if inner.within(whole):
            return value
        if e.saturating:
            return self._saturated(e, value, whole)
        if width - low >= WORD_BITS and not (e.signed and width > WORD_BITS):
            return value
        if e.signed and width < WORD_BITS:
            rest = WORD_BITS - width
            return f"({self.word_type})(({self.signed_type})({value} << {rest}) >> {rest})"
        if e.signed and width > WORD_BITS:
            raise CapabilityError(self.limit)
        return f"({value} & {number((1 << max(width - low, 0)) - 1)})"

    def _saturated(self, e: ir.Cast, value: str, whole: Range) -> str:
        if not whole.within(_WORD if not e.signed else _SIGNED_WORD):
            raise CapabilityError(self.limit)
        as_type = self.signed_type if self._exact(e.value) else self.word_type
        found = f"({as_type}){value}"
        text = f"{found} > ({as_type}){number(whole.high)} ? {number(whole.high)} : {value}"
        if as_type == self.signed_type:
            text = f"{found} < ({as_type}){number(whole.low)} ? {number(whole.low)} : {text}"
        return f"({text})"

    def condition(self, condition: ir.Condition) -> str:
        match condition:
            case ir.Compare():
                return self._comparison(condition)
            case ir.IsValid(header):
                return self.is_valid(header)
            case ir.Not(inner):
                return f"!({self.condition(inner)})"
            case ir.And(left, right):
                return f"(({self.condition(left)}) && ({self.condition(right)}))"
            case ir.Or(left, right):
                return f"(({self.condition(left)}) || ({self.condition(right)}))"

    def _comparison(self, c: ir.Compare) -> str:
        ranges = [self.range(side) for side in (c.left, c.right)]
        if (
            c.comparator in ("==", "!=")
            and any(r.high > _WORD.high for r in ranges)
            and min(r.low for r in ranges) >= 0
        ):
            lows = range(0, max(r.high for r in ranges).bit_length(), WORD_BITS)
            pairs = [f"{self.expression(c.left, low)} {c.comparator} {self.expression(c.right, low)}" for low in lows]
            return "(" + (" && " if c.comparator == "==" else " || ").join(pairs) + ")"
        left, right = self.expression(c.left), self.expression(c.right)
        if self._exact(c.left, c.right):
            return f"({self.signed_type}){left} {c.comparator} ({self.signed_type}){right}"
        return f"{left} {c.comparator} {right}"

    def data_above(self, name: str, low: int) -> str:
        """Action data from bit ``low``, which is 64 or more, on; those that follow a rule are zero there."""
        return self.zero

    def lookahead(self, e: ir.Lookahead, low: int) -> str:
        """Bits of the packet behind the place of the parser."""
        taken = min(WORD_BITS, e.width_bits - low)
        return self.bits_at(self.cursor, e.offset_bits + e.width_bits - low - taken, taken) if taken > 0 else self.zero

    def intrinsic(self, name: str) -> str:
        """What :class:`~p4perf.programs.ir.Intrinsic` names."""
        if name == "instance_type":
            recirculates = any(isinstance(s, ir.Recirculate) for s in analysis.statements(self.program))
            return f"(p->pass == 0 ? 0ull : {RECIRCULATED if recirculates else RESUBMITTED}ull)"
        return self.intrinsics.get(name, self.zero).format(port=self.program.port)

    def _words(self, ref: ir.FieldRef) -> Sequence[int]:
        """The lowest bit of each word of a field."""
        return range(0, self.program.width_bits(ref), WORD_BITS)

    def store(self, ref: ir.FieldRef, value: str) -> Iterator[str]:
        """Statements that write a number to a field."""
        return self.store_words(ref, (value,))

    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> Iterator[str]:
        """Statements that write the value of an expression to a field, of any width."""
        words = [self.expression(value, low) for low in self._words(ref)]
        if len(words) == 1 or ref not in set(analysis.subexpressions(value)):
            yield from self.store_words(ref, words)
            return
        # A word may depend on another one, as in shifts: all are known before one is written.
        yield "{"
        yield from (f"\tconst {self.word_type} word_{n} = {word};" for n, word in enumerate(words))
        yield ""
        yield from indented(self.store_words(ref, [f"word_{n}" for n in range(len(words))]))
        yield "}"

    def action(self, action: ir.Action) -> Iterator[str]:
        """The body of an action."""
        for place, statement in action.placed:
            with standing_at(place):
                yield from self.statement(statement)

    def is_left_out(self, statement: ir.Statement) -> bool:
        """Whether nothing depends on a statement of a program that was read; compilers keep what goes to memory."""
        clock = isinstance(statement, ir.Assign) and statement.value == ir.Intrinsic("unknown")
        idle = clock or (isinstance(statement, analysis.IDLE) and was_read(self.program))
        return idle and analysis.destination(statement) in analysis.unused_metadata(self.program)

    def statement(self, statement: ir.Statement) -> Iterator[str]:
        if self.is_left_out(statement):
            return
        match statement:
            case ir.Assign(ref, value):
                yield from self.assign(ref, value)
            case ir.AddHeader(header, values):
                yield from self._add_header(header, values)
            case ir.Hash():
                yield from self.hash_fields(statement)
            case ir.Random(ref):
                widths = [min(WORD_BITS, self.program.width_bits(ref) - low) for low in self._words(ref)]
                yield from self.store_words(ref, [self.random_word(width) for width in widths])
            case ir.MeterPacket(ref, meter, index):
                yield from self.store(ref, self.colour(meter, index))
            case ir.ReadRegister(ref, register, index):
                yield from self.store(ref, self.register(register, index))
            case ir.Branch(condition, then, otherwise):
                yield f"if ({self.condition(condition)}) {{"
                yield from indented(line for s in then for line in self.statement(s))
                if otherwise:
                    yield "} else {"
                    yield from indented(line for s in otherwise for line in self.statement(s))
                yield "}"
            case ir.Exit():
                yield "p->exited = 1;"
                yield "return;"
            case ir.Digest():
                pass
            case _:
                yield from self.effect(statement)

    def _add_header(self, name: str, values: Iterable[tuple[str, ir.Expression]]) -> Iterator[str]:
        """Statements that add a header. Its values come first, since they may be of the header itself."""
        room, clear, place = self.room(name)
        words = {field: self._words(ir.FieldRef(name, field)) for field, _ in values}
        yield "{"
        for field, value in values:
            for n, low in enumerate(words[field]):
                yield f"\tconst {self.word_type} v_{field}_{n} = {self.expression(value, low)};"
        if words:
            yield ""
        yield f"\t{clear}"
        for field, lows in words.items():
            texts = [f"v_{field}_{n}" for n in range(len(lows))]
            yield from indented(self.store_words(ir.FieldRef(name, field), texts, room))
        yield f"\t{place}"
        yield "}"

    # The parser

    def _guarded(self, condition: str, error: int) -> Iterator[str]:
        """A parser error where a condition holds."""
        if (noted := self.program.parser_error) is None:
            yield f"if ({condition})"
            yield f"\t{self.rejected}"
            return
        yield f"if ({condition}) {{"
        if not self.is_left_out(ir.Assign(noted, ir.Const(error))):
            yield from indented(self.store(noted, number(error)))
        yield f"\t{self.accepted}"
        yield "}"

    def parsing(self, state: ir.ParserState) -> Iterator[str]:
        """The statements of a parser state."""
        with standing_at(state.place):
            for statement in state.body:
                yield from self._parsed(statement)
            yield from self._seen(state.selected)

    def _parsed(self, statement: ir.ParserStatement) -> Iterator[str]:
        match statement:
            case ir.Extract(name):
                size = self.program.header(name).size_bytes
                yield from self._guarded(self.beyond(str(size)), ir.PACKET_TOO_SHORT)
                yield from self.extracted(name)
                yield from self.taken(str(size))
            case ir.Advance(bits):
                yield from self._seen((bits,))
                yield "{"
                yield f"\tconst {self.word_type} bits = {self.expression(bits)};"
                yield ""
                yield from indented(self._guarded("bits % 8 != 0", ir.PARSER_INVALID_ARGUMENT))
                yield from indented(self._guarded(self.beyond("bits / 8"), ir.PACKET_TOO_SHORT))
                yield from indented(self.taken("bits / 8"))
                yield "}"
            case ir.Verify(condition, error):
                yield from self._seen(analysis.condition_operands(condition))
                yield from self._guarded(f"!({self.condition(condition)})", error)
            case _:
                yield from self._seen(analysis.operands(statement))
                yield from self.statement(statement)

    def _seen(self, looked_at: Iterable[ir.Expression]) -> Iterator[str]:
        """A parser error where something looks further ahead than the packet goes."""
        inside = (e for whole in looked_at for e in analysis.subexpressions(whole))
        ends = [e.offset_bits + e.width_bits for e in inside if isinstance(e, ir.Lookahead)]
        if ends:
            yield from self._guarded(self.beyond(str(-(-max(ends) // 8))), ir.PACKET_TOO_SHORT)

    def case(self, state: ir.ParserState, case: ir.SelectCase) -> str:
        """The condition of a case of a select; reads are in words of 64 bit."""
        parts = []
        for e, match in zip(state.selected, case.matches, strict=True):
            wide = isinstance(e, ir.FieldRef | ir.Lookahead)
            bits = max(self.range(e).high.bit_length(), 1) if wide else WORD_BITS
            for low in range(0, bits, WORD_BITS):
                ones = match.mask >> low & ((1 << min(bits - low, WORD_BITS)) - 1)
                value = f"({self.expression(e, low)} & {number(ones)})"
                if match.low == match.high and ones:
                    parts.append(f"{value} == {number(match.low >> low & ones)}")
                elif match.low != match.high:
                    parts.append(f"{value} >= {number(match.low)} && {value} <= {number(match.high)}")
        return " && ".join(parts) or "1"

    # Control flow

    @cached_property
    def exits(self) -> frozenset[str]:
        """Actions that may end a block of the control flow."""
        actions = self.program.actions
        return frozenset(a.name for a in actions if any(isinstance(s, ir.Exit) for s in analysis.flattened(a.body)))

    def control(self, nodes: Iterable[ir.ControlNode], end: str = "end", found: str = "") -> Iterator[str]:
        """The control flow.

        Args:
            end: the label that stands behind the block, for exits.
            found: what was found in the first table already; empty: nothing.
        """
        for n, node in enumerate(nodes):
            match node:
                case ir.ApplyTable():
                    yield from self._applied(node, end, found)
                    found = ""
                case ir.CallAction(action):
                    yield f"action_{action}(p);"
                    yield from self._leaving((action,), end)
                case ir.If(condition, then, otherwise):
                    with standing_at(node.place):
                        yield f"if ({self.condition(condition)}) {{"
                    yield from indented(self.control(then, end))
                    if otherwise:
                        yield "} else {"
                        yield from indented(self.control(otherwise, end))
                    yield "}"
                case ir.Block(body):
                    yield from self.control(body, f"{end}_{n}")
                    yield f"{end}_{n}: __attribute__((unused));"
                    yield "p->exited = 0;"

    def _applied(self, node: ir.ApplyTable, end: str, found: str) -> Iterator[str]:
        """A table, and the control flow that depends on what was found: number of the action, and if it was a hit."""
        table, lookup = self.program.table(node.table), self.lookup(node.table, found)
        if not any(node.branches):
            yield f"{lookup};"
            yield from self._leaving(table.taken, end)
            return
        yield "{"
        yield f"\tconst unsigned int found __attribute__((unused)) = {lookup};"
        yield ""
        yield from indented(self._leaving(table.taken, end))
        cases = [(f"found >> 1 == {table.taken.index(a)}", nodes) for a, nodes in node.cases if a in table.taken]
        for condition, nodes in (*cases, ("found & 1", node.hit), ("!(found & 1)", node.miss)):
            if nodes:
                yield f"\tif ({condition}) {{"
                yield from indented(indented(self.control(nodes, end)))
                yield "\t}"
        yield "}"

    def _leaving(self, actions: Iterable[str], end: str) -> Iterator[str]:
        """Out of the block, where one of these actions said so."""
        if self.exits.intersection(actions):
            yield "if (p->exited)"
            yield f"\tgoto {end};"

    # Entries that are one by one

    def entries(self, table: ir.Table, first: int = 0) -> Iterator[str]:
        """Initial values of the structures that hold the action of each entry, and its data.

        Args:
            first: place of the first of the further actions of entries among :meth:`choices`.
        """
        numbers = _numbers(table)
        for n, entry in enumerate(table.listing):
            more = f", .number = {n}" if table.counter else ""
            more += f", .choices = {len(entry.choices)}, .first = {first}" if entry.choices else ""
            yield self.entry(numbers, entry.action, entry.data, more)
            first += len(entry.choices)

    def choices(self, table: ir.Table) -> list[str]:
        """The same of further actions of entries."""
        numbers = _numbers(table)
        return [self.entry(numbers, *choice) for entry in table.listing for choice in entry.choices]

    def default_entry(self, table: ir.Table) -> str:
        """The same of the default action."""
        return self.entry(_numbers(table), table.default_action, table.default_data)

    def entry(self, numbers: Mapping[str, int], name: str, data: tuple[int, ...], more: str = "") -> str:
        """The same of one action; ``numbers`` are those of actions in their table, ``more`` further members."""
        parts = [f".action = {numbers[name]}{more}"]
        for p, value in zip(self.program.action(name).parameters, data, strict=True):
            for n, low in enumerate(range(0, p.width_bits, WORD_BITS)):
                word = number(value >> low & ((1 << min(p.width_bits - low, WORD_BITS)) - 1))
                parts.append(f".data.{name}.{p.name}{f'_above[{n - 1}]' if n else ''} = {word}")
        return "{" + ", ".join(parts) + "}"


def _numbers(table: ir.Table) -> dict[str, int]:
    return {name: n for n, name in enumerate(table.taken)}
