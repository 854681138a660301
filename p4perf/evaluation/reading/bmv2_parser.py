"""Parsers of bmv2 as steps. States that fill header stacks are unrolled; other loops have no end that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from p4perf.evaluation.reading.bmv2_expressions import Expressions, unwrapped
from p4perf.evaluation.reading.bmv2_primitives import Primitives
from p4perf.evaluation.reading.bmv2_types import FIELD_BITS, check_unique, located, place
from p4perf.evaluation.reading.flow import Assigned, Effect, Step, Valid
from p4perf.evaluation.reading.tree import Tree
from p4perf.models.program.constructs import Construct, construct
from p4perf.models.program.graph import Edge

PARSER_ERROR = "standard_metadata.parser_error"

Filled = tuple[tuple[str, int], ...]
"""How many elements of stacks are filled."""


@dataclass(frozen=True)
class ParserReader:
    """Reads one parser.

    Args:
        tree: the parser.
        primitives: of its operations, without a place.
        accept: name of the step after it.
        remark: is told what a reader should know.
    """

    tree: Tree
    primitives: Primitives
    accept: str
    remark: Callable[[str], None]
    states: dict[str, Tree] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", check_unique(self.tree.each("parse_states")))

    def steps(self) -> list[Step]:
        """Its steps, the first one first.

        Raises:
            DataError: the parser is not what it should be.
        """
        first = (self.tree.text("init_state"), ())
        found: dict[str, Step] = {}
        todo: list[tuple[str, Filled, Tree]] = [(*first, self.tree.at("init_state"))]
        while todo:
            name, filled, asked = todo.pop()
            if self._name(name, filled) in found:
                continue
            if name not in self.states:
                raise asked.error(f"there is no parser state {name!r}")
            step, after = self._step(self.states[name], filled)
            found[step.name] = step
            todo += after
        return list(found.values())

    def _name(self, state: str, filled: Filled) -> str:
        numbers = ",".join(str(n) for _, n in filled)
        return f"{self.tree.text('name')}.{state}" + (f"[{numbers}]" if numbers else "")

    def _step(self, state: Tree, filled: Filled) -> tuple[Step, list[tuple[str, Filled, Tree]]]:
        name = self._name(state.text("name"), filled)
        where = located(f"parser state {state.text('name')}", place(state))
        constructs: list[Construct] = []
        effects: list[Effect] = []
        counts = dict(filled)
        for op in state.each("parser_ops"):
            kind = op.text("op")
            if kind in ("extract", "extract_VL"):
                header = self._extracted(op.at("parameters").item(0), counts)
                if header is None:
                    full = (Edge("stack full", self.accept),)
                    effects.append(Assigned(PARSER_ERROR, None))
                    return Step(name, "parser state", tuple(constructs), full, where, tuple(effects)), []
                constructs += self._extract(op, header, where)
                others = [u for u in self.primitives.known.unions.values() if header in u]
                effects += [Valid(other, False) for union in others for other in union if other != header]
                effects.append(Valid(header, True))
                continue
            more, settled = self._operation(kind, op, where)
            constructs += more
            effects += settled
        edges, after, select = self._transitions(state, tuple(sorted(counts.items())), where)
        step = Step(name, "parser state", (*constructs, *select), tuple(edges), where, tuple(effects))
        return step, after

    def _extracted(self, target: Tree, counts: dict[str, int]) -> str | None:
        """The header that an extraction fills; None if the stack has no more elements."""
        kind, value = target.text("type"), target.at("value")
        if kind == "regular" and isinstance(value.value, dict):
            return self._computed(value)
        if kind == "regular":
            self.primitives.known.header(value)
            return value.text()
        stack = value.text() if kind == "stack" else value.item(0).text()
        known = self.primitives.known
        if kind == "stack":
            members: tuple[str, ...] = known.stacks.get(stack, ())
        elif kind == "union_stack":
            members = known.union_stacks.get(stack, ())
        else:
            raise target.error(f"extracts to {kind!r}, which is not known")
        if not members:
            raise value.error(f"there is no header stack {stack!r}")
        at = counts.get(stack, 0)
        if at >= len(members):
            return None
        counts[stack] = at + 1
        if kind == "stack":
            return members[at]
        union, member = members[at], value.item(1).text()
        wanted = [h for h in known.unions.get(union, ()) if h.rpartition(".")[2] == member]
        if not wanted:
            raise value.error(f"there is no member {member!r} in {union!r}")
        return wanted[0]

    def _computed(self, value: Tree) -> str:
        """The first element of a stack of which one is extracted that is only known at run time."""
        _, inner = unwrapped(value)
        if inner.has("left"):
            _, stack = unwrapped(inner.at("left"))
            members = self.primitives.known.stacks.get(stack.text(), ()) if isinstance(stack.value, str) else ()
            if members:
                self.remark(
                    f"which element of {stack.text()} is extracted is only known at run time: the first is counted"
                )
                return members[0]
        raise value.error("extracts to something that is not known")

    def _extract(self, op: Tree, header: str, where: str) -> list[Construct]:
        found: list[Construct] = []
        kind = self.primitives.known.headers[header]
        if op.text("op") == "extract_VL":
            length = op.at("parameters").item(1)
            found += self.primitives.values.operations(length, FIELD_BITS, where)
        if kind.varying:
            self.remark(f"header {header} has a varying length and is counted with its greatest, {kind.bits // 8} B")
        return [*found, construct("extract", where, bytes=-(-kind.bits // 8))]

    def _operation(self, kind: str, op: Tree, where: str) -> tuple[list[Construct], list[Effect]]:
        if kind == "set":
            return self.primitives.translate(op, where)
        if kind == "primitive":
            return self.primitives.translate(op.at("parameters").item(0), where)
        if kind == "verify":
            self.remark("packets that fail a verify of the parser are counted as if they passed")
            return self.primitives.values.conditions(op.at("parameters").item(0), where), []
        if kind in ("advance", "shift"):
            more = []
            if kind == "advance":
                more = self.primitives.values.operations(op.at("parameters").item(0), FIELD_BITS, where)
            return [*more, construct("unknown", where, name=kind)], []
        self.remark(f"parser operation {kind} is not known and counted as unknown")
        return [construct("unknown", where, name=kind)], []

    def _transitions(
        self, state: Tree, filled: Filled, where: str
    ) -> tuple[list[Edge], list[tuple[str, Filled, Tree]], list[Construct]]:
        values: Expressions = self.primitives.values
        widths = [values.bits(part) for part in state.each("transition_key")]
        edges: dict[str, Edge] = {}
        after: list[tuple[str, Filled, Tree]] = []
        ended = False
        for transition in state.each("transitions"):
            kind = transition.optional("type") or "default"
            if kind == "default" or transition.value.get("value") == "default":
                label = "default"
                ended = True
            elif kind == "parse_vset":
                label = transition.text("value")
            else:
                label = label_of(transition, widths)
            to = self.accept
            if transition.has("next_state"):
                to = self._name(transition.text("next_state"), filled)
                after.append((transition.text("next_state"), filled, transition.at("next_state")))
            edges.setdefault(label, Edge(label, to))
            if ended:
                break
        if not ended:
            # No case fits: error.NoMatch ends the parser.
            edges["default"] = Edge("default", self.accept)
        select = []
        if widths:
            select = [construct("select", where, cases=max(len(edges) - 1, 0), key_bits=sum(widths))]
        elif len(edges) == 1:
            edges = {"": Edge("", next(iter(edges.values())).to)}
        return list(edges.values()), after, select


def label_of(transition: Tree, widths: list[int]) -> str:
    """A value of a select as P4 writes it; values of several fields with commas, masks behind ``&&&``."""
    value = transition.at("value").number()
    mask = transition.at("mask").number() if transition.has("mask") else None
    sizes = [8 * -(-bits // 8) for bits in widths]
    parts, left = [], sum(sizes)
    for size, bits in zip(sizes, widths, strict=True):
        left -= size
        ones = (1 << size) - 1
        kept = ones if mask is None else mask >> left & ones
        part = f"0x{value >> left & ones:x}"
        if kept == 0:
            part = "_"
        elif kept & (full := (1 << bits) - 1) != full:
            part += f"&&&0x{kept:x}"
        parts.append(part)
    return ",".join(parts) or f"0x{value:x}"
