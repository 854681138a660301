"""Values of bmv2's expressions, as far as they can be known: what depends on state, hashes or random numbers cannot.

Arithmetic is that of JSON_format.md: without limits, cut to the width of a field where it is written. A value that is
not known is None, and so is what is computed from it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

from p4perf.evaluation.reading.bmv2_expressions import unwrapped
from p4perf.evaluation.reading.bmv2_types import VALID, Declarations
from p4perf.evaluation.reading.tree import MAX_DEPTH, Tree

MAX_SHIFT = 4096
"""Shifts are not followed further than this."""

_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << min(b, MAX_SHIFT) if b >= 0 else 0,
    ">>": lambda a, b: a >> min(b, MAX_SHIFT) if b >= 0 else 0,
}


@dataclass
class State:
    """A packet on its way.

    Args:
        known: what the program declares.
        frame: its bytes.
        at: bits that the parser has taken.
        fields: values; those that are missing are zero, those that are None not known.
        valid: headers that are there.
        filled: elements of stacks that are filled.
        data: of the entry whose action runs.
    """

    known: Declarations
    frame: bytes
    at: int = 0
    fields: dict[tuple[str, str], int | None] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    filled: dict[str, int] = field(default_factory=dict)
    data: tuple[int, ...] = ()

    def bits(self, offset: int, width: int) -> int | None:
        """Bits of the packet ahead of the parser; None if it is too short."""
        begin = self.at + offset
        end = begin + width
        if begin < 0 or end > 8 * len(self.frame):
            return None
        chunk = int.from_bytes(self.frame[begin // 8 : -(-end // 8)], "big")
        return chunk >> (-end % 8) & ((1 << width) - 1)

    def read(self, header: str, name: str) -> int | None:
        """The value of a field."""
        if name == VALID:
            return int(header in self.valid)
        return self.fields.get((header, name), 0)

    def value(self, tree: Tree, depth: int = 0) -> int | None:
        """The value of an expression, None if it is not known.

        Raises:
            DataError: it is no expression.
        """
        kind, inner = unwrapped(tree, depth)
        if kind == "field":
            target = self.field_of(tree, depth)
            return None if target is None else self.read(*target)
        if kind == "hexstr":
            return inner.number()
        if kind == "bool":
            return int(bool(inner.value))
        if kind in ("runtime_data", "local"):
            number = inner.whole()
            return self.data[number] if number < len(self.data) else None
        if kind == "lookahead":
            return self.bits(inner.item(0).whole(), inner.item(1).whole())
        if kind == "stack_field":
            stack = inner.item(0).text()
            members = [m for m in self.known.members(stack) if m in self.valid]
            return self.read(members[-1], inner.item(1).text()) if members else None
        if kind == "header":
            return int(inner.text() in self.valid)
        if kind != "expression":
            return None
        return self._operation(inner, depth + 1)

    def _operation(self, tree: Tree, depth: int) -> int | None:
        if depth > MAX_DEPTH:
            raise tree.error(f"is nested more than {MAX_DEPTH} times")
        op = tree.text("op")
        if op == "access_field":
            target = self.field_of(tree, depth)
            return None if target is None else self.read(*target)
        if op == "last_stack_index" or op == "size_stack":
            stack = unwrapped(tree.at("right") if tree.has("right") else tree.at("left"))[1]
            names = self.known.members(stack.text())
            last = max((n for n, name in enumerate(names) if name in self.valid), default=-1)
            return last if op == "last_stack_index" else len(names)
        if op == "valid":
            header = self.header_of(tree.at("right"), depth)
            return None if header is None else int(header in self.valid)
        right = self.value(tree.at("right"), depth) if tree.has("right") else None
        if op in ("d2b", "b2d", "usat_cast", "sat_cast", "two_comp_mod"):
            source = self.value(tree.at("left"), depth) if tree.has("left") else right
            if op == "d2b":
                return None if source is None else int(source != 0)
            return source if op == "b2d" or tree.value.get("left") is None else self._cast(op, source, right)
        if op == "not":
            return None if right is None else int(not right)
        if op == "~":
            return None if right is None else ~right
        if op == "?":
            condition = self.value(tree.at("cond"), depth)
            return None if condition is None else self.value(tree.at("left" if condition else "right"), depth)
        left = self.value(tree.at("left"), depth) if tree.has("left") else 0
        if op in ("and", "or"):
            decided = 0 if op == "and" else 1
            if any(side is not None and int(side != 0) == decided for side in (left, right)):
                return decided
            return None if left is None or right is None else 1 - decided
        found = _BINARY.get(op)
        return None if found is None or left is None or right is None else int(found(left, right))

    @staticmethod
    def _cast(op: str, value: int | None, width: int | None) -> int | None:
        if value is None or width is None or not 0 < width <= MAX_SHIFT:
            return None
        if op == "usat_cast":
            return min(max(value, 0), (1 << width) - 1)
        half = 1 << width - 1
        return min(max(value, -half), half - 1) if op == "sat_cast" else (value + half) % (2 * half) - half

    def header_of(self, tree: Tree, depth: int = 0) -> str | None:
        """The header that is meant, None if that is not known."""
        kind, inner = unwrapped(tree, depth)
        if kind == "stack_field":  # the last element
            members = [m for m in self.known.members(inner.item(0).text()) if m in self.valid]
            return members[-1] if members else None
        if kind != "expression":
            return inner.value if isinstance(inner.value, str) else None
        if inner.text("op") != "dereference_header_stack":
            return None
        stack, number = unwrapped(inner.at("left"))[1], self.value(inner.at("right"), depth + 1)
        names = self.known.members(stack.text())
        return names[number] if number is not None and 0 <= number < len(names) else None

    def field_of(self, tree: Tree, depth: int = 0) -> tuple[str, str] | None:
        """The field that is meant, None if that is not known."""
        kind, inner = unwrapped(tree, depth)
        if kind == "field":
            first, name = inner.item(0), inner.item(1).text()
            header = first.value if isinstance(first.value, str) else self.header_of(first, depth + 1)
            return None if header is None else (header, name)
        if kind == "stack_field":
            header = self.header_of(tree, depth)
            return None if header is None else (header, inner.item(1).text())
        if kind == "expression" and inner.text("op") == "access_field":
            header = self.header_of(inner.at("left"), depth + 1)
            number = inner.at("right").whole()
            fields = self.known.headers[header].fields if header in self.known.headers else ()
            return (str(header), fields[number][0]) if number < len(fields) else None
        return None

    def write(self, tree: Tree, value: int | None) -> None:
        """Write a field, cut to its width. Of a field that is not known all may have changed: that is not followed."""
        target = self.field_of(tree)
        if target is None:
            return
        header = self.known.headers.get(target[0])
        width = next((bits for name, bits in header.fields if name == target[1]), 0) if header else 0
        self.fields[target] = None if value is None else value & ((1 << width) - 1)
