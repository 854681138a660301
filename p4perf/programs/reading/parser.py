"""The parser of a program in the JSON of bmv2 as states of a :class:`~p4perf.programs.ir.Program`.

It is unrolled as far as header stacks go: a state that extracts the next element is there once for each number of
elements before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from p4perf.programs import ir
from p4perf.programs.reading.actions import ActionReader
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.values import (
    FALSE,
    ValueReader,
    check_unique,
    distinct,
    identifier,
    place,
    unwrapped,
)

_Named = Callable[[str | None, Mapping[str, int]], str]

MAX_STATES = 10_000
"""Most parser states, each with its stacks filled so and so far, of a program."""


@dataclass
class UnrolledParser:
    """The parser of a program."""

    root: Tree
    convert: ActionReader

    def states(self) -> Iterator[ir.ParserState]:
        parser = next(self.root.each("parsers"), None)
        if parser is None:
            raise self.root.error("has no parser")
        trees = check_unique(parser.each("parse_states"))
        first = parser.text("init_state")
        names: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {(first, ()): "start"}
        todo = [(first, dict[str, int]())]

        def named(name: str | None, filled: Mapping[str, int]) -> str:
            """The state of that name in the JSON, with stacks filled so far; None is the end."""
            if not name or name == ir.ACCEPT:
                return ir.ACCEPT
            key = name, tuple(sorted(filled.items()))
            if key not in names:
                stem = f"own_{name}" if name == "start" else identifier(name)
                names[key] = distinct(stem + "".join(f"_{n}" for _, n in key[1]), names.values())
                todo.append((name, dict(filled)))
            return names[key]

        while todo:
            name, filled = todo.pop()
            if name not in trees:
                raise parser.error(f"there is no parser state {name!r}")
            numbers = ",".join(str(n) for _, n in sorted(filled.items()))
            label = f"{parser.text('name')}.{name}" + (f"[{numbers}]" if numbers else "")
            here = named(name, filled)
            yield replace(self._state(here, trees[name], filled, named), label=label)
            if len(names) > MAX_STATES:
                raise parser.error(f"has more than {MAX_STATES} states, with its header stacks")

    def _state(self, name: str, tree: Tree, filled: dict[str, int], named: _Named) -> ir.ParserState:
        """A state, whose stacks are filled so far; it fills them further."""
        body: list[ir.ParserStatement] = []
        names = self.convert.names
        for op in tree.each("parser_ops"):
            values = ValueReader(names, filled=filled)
            kind, given = op.text("op"), list(op.each("parameters"))
            if len(given) < (2 if kind in ("extract_VL", "set", "verify") else 1):
                raise op.error("has too few parameters")
            if kind in ("extract", "extract_VL"):
                varying = values.value(given[1]) if kind == "extract_VL" else None
                header = self._extracted(given[0], filled)
                if header is None:
                    body.append(ir.Verify(FALSE, ir.STACK_OUT_OF_BOUNDS))
                else:
                    body.append(ir.Extract(header, varying))
            elif kind == "set":
                body += self._plain(self.convert.assign(given[0], given[1], values), op)
            elif kind == "primitive":
                body += self._plain(self.convert.statements(given[0], values), op)
            elif kind == "verify":
                error = values.value(given[1])
                if not isinstance(error, ir.Const):
                    raise op.error("an error that is not constant is not supported")
                body.append(ir.Verify(values.condition(given[0]), error.value - names.first_error))
            elif kind == "advance":
                body.append(ir.Advance(values.value(given[0])))
            elif kind == "shift":
                body.append(ir.Advance(ir.Const(8 * given[0].whole())))
            else:
                raise op.error(f"the parser operation {kind} is not supported")
        selected, cases, default = self._transitions(tree, ValueReader(names, filled=filled), named)
        return ir.ParserState(name, tuple(body), selected, cases, default, place=place(tree))

    def _plain(self, found: Iterator[ir.Statement], op: Tree) -> Iterator[ir.ParserStatement]:
        for statement in found:
            if isinstance(statement, ir.Assign | ir.AddHeader | ir.RemoveHeader | ir.Branch):
                yield statement
            else:
                raise op.error("this statement is not supported in a parser")

    def _extracted(self, target: Tree, filled: dict[str, int]) -> str | None:
        """The header that is extracted, None if its stack is full."""
        kind, value = unwrapped(target)
        names = self.convert.names
        if kind == "stack":
            stack, elements = value.text(), names.elements(value)
        elif kind == "union_stack":
            stack, member = value.item(0).text(), value.item(1).text()
            elements = tuple(names.member(u, member, value) for u in names.union_stacks.get(stack, ()))
        else:
            header = names.header(value)
            if header in names.metadata:
                raise value.error("is metadata, and nothing that can be extracted")
            return header
        number = filled.get(stack, 0)
        if number >= len(elements):
            return None
        filled[stack] = number + 1
        return elements[number]

    def _transitions(
        self, tree: Tree, values: ValueReader, named: _Named
    ) -> tuple[tuple[ir.Expression, ...], tuple[ir.SelectCase, ...], str]:
        selected = tuple(values.value(key) for key in tree.each("transition_key"))
        widths = [self._bits(e) for e in selected]
        cases: list[ir.SelectCase] = []
        for transition in tree.each("transitions"):
            kind, mask = transition.optional("type"), -1
            if kind == "default" or transition.value.get("value") in (None, "default"):
                default = named(transition.optional("next_state"), values.filled)
                return selected if cases else (), tuple(cases), default
            if kind == "parse_vset":
                # Nothing sets values of value sets.
                matches = [(ir.Match.never(),) * len(widths)] if self.convert.unknown else []
            else:
                mask = transition.at("mask").number() if transition.has("mask") else mask
                matches = [_split(transition.at("value").number(), mask, widths)]
            next_state = transition.optional("next_state")
            cases += [ir.SelectCase(each, named(next_state, values.filled)) for each in matches]
        return selected, tuple(cases), ir.ACCEPT

    def _bits(self, expression: ir.Expression) -> int:
        match expression:
            case ir.FieldRef():
                return self.convert.names.width_bits(expression)
            case ir.Lookahead(_, width_bits) | ir.Cast(_, width_bits):
                return width_bits
        raise self.root.error("a parser that selects on an expression is not supported")


def _split(value: int, mask: int, widths: Sequence[int]) -> tuple[ir.Match, ...]:
    """The value of a transition for each of its keys, every one of which takes whole bytes."""
    found = []
    for width in reversed(widths):
        ones, room = (1 << width) - 1, 8 * -(-width // 8)
        found.append(ir.Match.masked(value & ones, mask & ones))
        value, mask = value >> room, mask >> room
    return tuple(reversed(found))
