"""Parser and control flow of a program that was read, as C text for XDP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from p4perf.generators.c.writer import WORD_BITS
from p4perf.generators.c.xdp_text import XdpWriter, number
from p4perf.programs import ir
from p4perf.programs.analysis import condition_operands, flattened, operands, subexpressions
from p4perf.programs.capabilities import standing_at


class XdpFlow(XdpWriter):
    """Parser states and control flow; ``cursor`` is the place of the parser, ``end`` the end of the packet."""

    @cached_property
    def _exits(self) -> frozenset[str]:
        """Actions that may end a block."""
        actions = self.program.actions
        return frozenset(a.name for a in actions if any(isinstance(s, ir.Exit) for s in flattened(a.body)))

    def _failed(self, condition: str, error: int) -> Iterator[str]:
        """A parser error where a condition holds."""
        yield f"if ({condition}) {{"
        if self.program.parser_error is None:
            yield "\treturn XDP_DROP;"
        else:
            yield from (f"\t{line}" for line in self.store(self.program.parser_error, number(error)))
            yield "\tgoto state_accept;"
        yield "}"

    def parsing(self, state: ir.ParserState) -> Iterator[str]:
        """The statements of a parser state."""
        with standing_at(state.place):
            yield from self._parsing(state)

    def _parsing(self, state: ir.ParserState) -> Iterator[str]:
        for statement in state.body:
            match statement:
                case ir.Extract(name):
                    size = self.program.header(name).size_bytes
                    yield from self._failed(f"cursor + {size} > end", ir.PACKET_TOO_SHORT)
                    yield f"copy_bytes({self.base(name)}, cursor, {size});"
                    yield f"{self.layout.valid(name)} = 1;"
                    yield from self._taken(str(size))
                case ir.Advance(bits):
                    yield from self._seen((bits,))
                    yield from self._advance(bits)
                case ir.Verify(condition, error):
                    yield from self._seen(condition_operands(condition))
                    yield from self._failed(f"!({self.condition(condition)})", error)
                case _:
                    yield from self._seen(operands(statement))
                    yield from self.statement(statement)
        yield from self._seen(state.selected)

    def _advance(self, bits: ir.Expression) -> Iterator[str]:
        yield "{"
        yield f"\tconst __u64 bits = {self.expression(bits)};"
        yield ""
        for condition, error in (
            ("bits % 8 != 0", ir.PARSER_INVALID_ARGUMENT),
            ("bits / 8 > 0xffff || cursor + bits / 8 > end", ir.PACKET_TOO_SHORT),
        ):
            yield from (f"\t{line}" for line in self._failed(condition, error))
        yield from (f"\t{line}" for line in self._taken("bits / 8"))
        yield "}"

    @staticmethod
    def _taken(size: str) -> Iterator[str]:
        yield f"p->taken += {size};"
        yield f"cursor += {size};"

    def _seen(self, expressions: Iterable[ir.Expression]) -> Iterator[str]:
        """A parser error where something looks further ahead than the packet goes."""
        inside = (e for whole in expressions for e in subexpressions(whole))
        ends = [e.offset_bits + e.width_bits for e in inside if isinstance(e, ir.Lookahead)]
        if ends:
            yield from self._failed(f"cursor + {-(-max(ends) // 8)} > end", ir.PACKET_TOO_SHORT)

    def case(self, state: ir.ParserState, case: ir.SelectCase) -> str:
        """The condition of a case of a select; reads are in words of 64 bit."""
        parts = []
        for e, match in zip(state.selected, case.matches, strict=True):
            wide = isinstance(e, ir.FieldRef | ir.Lookahead)
            bits = max(self.range(e).high.bit_length(), 1) if wide else WORD_BITS
            for low in range(0, bits, WORD_BITS):
                ones = match.mask >> low & ((1 << min(bits - low, WORD_BITS)) - 1)
                if match.low == match.high and ones:
                    parts.append(f"({self.expression(e, low)} & {number(ones)}) == {number(match.low >> low & ones)}")
                elif match.low != match.high:
                    value = f"({self.expression(e, low)} & {number(ones)})"
                    parts.append(f"{value} >= {number(match.low)} && {value} <= {number(match.high)}")
        return " && ".join(parts) or "1"

    def flow(self, nodes: tuple[ir.ControlNode, ...], end: str) -> Iterator[str]:
        """The control flow; ``end`` is the label that stands behind the block, for exits."""
        for n, node in enumerate(nodes):
            match node:
                case ir.ApplyTable(table):
                    yield from self._applied(node, self.program.table(table), end)
                case ir.CallAction(action):
                    yield f"action_{action}(p);"
                    yield from self._leaving((action,), end)
                case ir.If(condition, then, otherwise):
                    with standing_at(node.place):
                        yield f"if ({self.condition(condition)}) {{"
                    yield from (f"\t{line}" for line in self.flow(then, end))
                    if otherwise:
                        yield "} else {"
                        yield from (f"\t{line}" for line in self.flow(otherwise, end))
                    yield "}"
                case ir.Block(body):
                    yield from self.flow(body, f"{end}_{n}")
                    yield f"{end}_{n}: __attribute__((unused));"
                    yield "p->exited = 0;"

    def _applied(self, node: ir.ApplyTable, table: ir.Table, end: str) -> Iterator[str]:
        """A table, and the control flow that depends on what was found."""
        if not any(node.branches):
            yield f"table_{table.name}(p);"
            yield from self._leaving(table.taken, end)
            return
        yield "{"
        yield f"\tconst __u32 found = table_{table.name}(p);"
        yield ""
        yield from (f"\t{line}" for line in self._leaving(table.taken, end))
        cases = [(f"found >> 1 == {table.taken.index(a)}", nodes) for a, nodes in node.cases if a in table.taken]
        for condition, nodes in (*cases, ("found & 1", node.hit), ("!(found & 1)", node.miss)):
            if nodes:
                yield f"\tif ({condition}) {{"
                yield from (f"\t\t{line}" for line in self.flow(nodes, end))
                yield "\t}"
        yield "}"

    def _leaving(self, actions: Iterable[str], end: str) -> Iterator[str]:
        """Out of the block, where one of these actions said so."""
        if self._exits.intersection(actions):
            yield "if (p->exited)"
            yield f"\tgoto {end};"

    def default(self, table: ir.Table) -> Iterator[str]:
        """The default action, with its data."""
        action = self.program.action(table.default_action)
        if action.parameters:
            values = ", ".join(
                number(v & (1 << p.width_bits) - 1) for p, v in zip(action.parameters, table.default_data, strict=True)
            )
            yield f"const struct data_{action.name} data = {{{values}}};"
            yield ""
            yield f"action_{action.name}(p, &data);"
        else:
            yield f"action_{action.name}(p);"

    def entries(self, table: ir.Table) -> Iterator[str]:
        """The data of each entry as initial values of ``struct found_TABLE``."""
        first, numbers = 0, {name: n for n, name in enumerate(table.taken)}
        for n, entry in enumerate(table.listing):
            more = f", .number = {n}" if table.counter else ""
            more += f", .choices = {len(entry.choices)}, .first = {first}" if entry.choices else ""
            yield self._found(numbers, entry.action, entry.data, more)
            first += len(entry.choices)

    def choices(self, table: ir.Table) -> list[str]:
        """The same of further actions of entries."""
        numbers = {name: n for n, name in enumerate(table.taken)}
        return [self._found(numbers, *choice) for entry in table.listing for choice in entry.choices]

    def _found(self, numbers: Mapping[str, int], name: str, data: tuple[int, ...], more: str = "") -> str:
        values = (
            number(v & (1 << p.width_bits) - 1) for p, v in zip(self.program.action(name).parameters, data, strict=True)
        )
        text = f".data.{name} = {{{', '.join(values)}}}" if data else ""
        return f"{{.action = {numbers[name]}{more}{', ' if text else ''}{text}}}"
