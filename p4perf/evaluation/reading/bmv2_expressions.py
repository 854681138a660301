"""Expressions of bmv2: what they compute, how wide it is, and which fact a condition asks for.

An expression is a tree of ``op``, ``left`` and ``right`` (JSON_format.md, "The type value object"). p4c wraps results
into what keeps their width: a mask of ones as wide as the result, ``two_comp_mod``, ``b2d``, ``d2b``. Targets have that
for nothing, so it is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4perf.evaluation.reading.bmv2_types import FIELD_BITS, VALID, Declarations
from p4perf.evaluation.reading.flow import Fact
from p4perf.evaluation.reading.tree import MAX_DEPTH, Tree
from p4perf.models.program.constructs import Construct, construct

COMPARISONS = ("==", "!=", ">", ">=", "<", "<=")
LOGIC = ("and", "or", "not")
FREE = ("b2d", "d2b", "two_comp_mod", "dereference_header_stack", "dereference_union_stack", "access_field")
COMPUTED = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~", "?", "sat_cast", "usat_cast")
ACCESS = ("access_union_header", "last_stack_index", "size_stack", "valid", "valid_union")


@dataclass(frozen=True)
class Expressions:
    """Expressions of one place.

    Args:
        known: what the program declares.
        runtime_bits: widths of the parameters of the action in which they stand.
    """

    known: Declarations
    runtime_bits: tuple[int, ...] = ()

    def bits(self, tree: Tree, depth: int = 0) -> int:
        """Width of a value; 0 of a constant, which takes the width of what it is used with.

        Raises:
            DataError: it is no expression.
        """
        kind, value = unwrapped(tree, depth)
        if kind == "field":
            return self.known.field_bits(value)
        if kind in ("stack_field", "union_stack_field"):
            return self._stack_field_bits(value)
        if kind == "lookahead":
            return value.item(1).whole()
        if kind in ("runtime_data", "local"):
            number = value.whole()
            if number >= len(self.runtime_bits):
                raise value.error(f"the action has no parameter {number}")
            return self.runtime_bits[number]
        if kind == "register":
            return self.known.registers.get(value.item(0).text(), (1, FIELD_BITS))[1]
        if kind == "bool":
            return 1
        if kind == "header":
            return self.known.bits(value.text())
        if kind != "expression":
            return 0
        op = value.text("op")
        if op in COMPARISONS or op in LOGIC or op in ("valid", "valid_union", "d2b"):
            return 1
        if op == "access_field":
            return self._member_bits(value)
        if op in ("last_stack_index", "size_stack"):
            return FIELD_BITS
        sides = (value.at(side) for side in ("left", "right") if value.has(side))
        return max((self.bits(side, depth + 1) for side in sides), default=0)

    def operations(self, tree: Tree, bits: int, where: str, depth: int = 0) -> list[Construct]:
        """What has to be computed for a value of so many bits.

        Raises:
            DataError: it is no expression.
        """
        kind, value = unwrapped(tree, depth)
        if kind == "register":
            cells, width = self.known.registers.get(value.item(0).text(), (1, FIELD_BITS))
            found = self.operations(value.item(1), FIELD_BITS, where, depth + 1)
            return [*found, construct("register read", where, cells=cells, bits=width)]
        if kind != "expression":
            return []
        op = value.text("op")
        found = []
        inner = bits
        if op in COMPARISONS:
            inner = max((self.bits(value.at(side), depth) for side in ("left", "right")), default=0) or bits
        for side in ("cond", "left", "right"):
            if value.has(side) and isinstance(value.at(side).value, dict):
                found += self.operations(value.at(side), inner, where, depth + 1)
        if op in COMPUTED or op in COMPARISONS or op in LOGIC:
            if not self._keeps_width(op, value, bits):
                found.append(construct("compute", where, operator=op, bits=inner))
        elif op not in FREE and op not in ACCESS:
            found.append(construct("unknown", where, name=op))
        return found

    def conditions(self, tree: Tree, where: str, depth: int = 0) -> list[Construct]:
        """What has to be tested, and computed before, to decide by a value.

        Raises:
            DataError: it is no expression.
        """
        kind, value = unwrapped(tree, depth)
        if kind != "expression":
            return [construct("condition", where, bits=max(self.bits(tree, depth), 1))] if kind != "bool" else []
        op = value.text("op")
        if op in LOGIC:
            sides = [value.at(side) for side in ("left", "right") if value.has(side)]
            return [c for side in sides for c in self.conditions(side, where, depth + 1)]
        if op in COMPARISONS:
            sides = [value.at(side) for side in ("left", "right")]
            bits = max((self.bits(side, depth + 1) for side in sides), default=0) or FIELD_BITS
            found = [c for side in sides for c in self.operations(side, bits, where, depth + 1)]
            return [*found, construct("condition", where, bits=bits)]
        if op in ("d2b", "valid", "valid_union"):
            side = value.at("right")
            bits = 1 if op != "d2b" else max(self.bits(side, depth + 1), 1)
            found = self.operations(side, bits, where, depth + 1)
            return [*found, construct("condition", where, bits=bits)]
        return [*self.operations(tree, 1, where, depth + 1), construct("condition", where, bits=1)]

    def fact(self, tree: Tree, depth: int = 0) -> tuple[Fact, bool] | None:
        """The fact that a condition asks for, and whether it has to hold; None if it asks for something else.

        Raises:
            DataError: it is no expression.
        """
        kind, value = unwrapped(tree, depth)
        if kind == "field":
            return _field_fact(value, 1)
        if kind != "expression":
            return None
        op = value.text("op")
        if op == "not":
            inner = self.fact(value.at("right"), depth + 1)
            return None if inner is None else (inner[0], not inner[1])
        if op == "valid":
            return value.at("right").text("value"), True
        if op == "d2b":
            return self.fact(value.at("right"), depth + 1)
        if op not in ("==", "!="):
            return None
        (left_kind, left), (right_kind, right) = (unwrapped(value.at(side), depth) for side in ("left", "right"))
        if left_kind == "hexstr":
            (left_kind, left), (right_kind, right) = (right_kind, right), (left_kind, left)
        if left_kind != "field" or right_kind != "hexstr":
            return None
        found = _field_fact(left, right.number())
        return None if found is None else (found[0], found[1] == (op == "=="))

    def constant(self, tree: Tree, bits: int) -> int | None:
        """The value of a constant, cut to a width; None if it is none.

        Raises:
            DataError: it is no expression.
        """
        kind, value = unwrapped(tree, 0)
        if kind == "hexstr":
            return value.number() & ((1 << bits) - 1)
        if kind == "bool":
            return int(bool(value.value))
        if kind == "expression" and value.text("op") in ("b2d", "d2b"):
            return self.constant(value.at("right"), bits)
        if kind == "expression" and value.text("op") == "&" and self._keeps_width("&", value, bits):
            return self.constant(value.at("left"), bits)
        return None

    def _keeps_width(self, op: str, value: Tree, bits: int) -> bool:
        """Whether an operation is the mask of ones by which p4c cuts a result to its width."""
        if op != "&" or not bits:
            return False
        kind, right = unwrapped(value.at("right"))
        return kind == "hexstr" and right.number() == (1 << bits) - 1

    def _stack_field_bits(self, reference: Tree) -> int:
        names: Sequence[str] = self.known.members(reference.item(0).text())
        field = reference.item(len(reference.value) - 1).text()
        for name in names:
            for found, bits in self.known.headers[name].fields if name in self.known.headers else ():
                if found == field:
                    return bits
        raise reference.error("there is no such field in a stack")

    def _member_bits(self, value: Tree) -> int:
        """Width of a field that is named by its number in an element of a stack."""
        kind, left = unwrapped(value.at("left"), 0)
        if kind == "expression" and left.has("left"):
            kind, left = unwrapped(left.at("left"), 0)
        number = value.at("right").whole()
        if kind in ("header_stack", "header", "header_union", "header_union_stack"):
            for name in self.known.members(left.text()):
                fields = self.known.headers[name].fields if name in self.known.headers else ()
                if number < len(fields):
                    return fields[number][1]
        return FIELD_BITS


def _field_fact(reference: Tree, value: int) -> tuple[Fact, bool] | None:
    if not isinstance(reference.item(0).value, str):
        return None  # an element of a stack that is only known at run time
    header, field = reference.item(0).text(), reference.item(1).text()
    if field == VALID:
        return header, value != 0
    return (f"{header}.{field}", value), True


def unwrapped(tree: Tree, depth: int = 0) -> tuple[str, Tree]:
    """The type and the value of a "type value object", without expressions that only hold another one."""
    for _ in range(MAX_DEPTH - depth):
        if isinstance(tree.value, dict) and "op" in tree.value:
            return "expression", tree
        kind, value = tree.text("type"), tree.at("value")
        if kind != "expression":
            return kind, value
        tree = value
    raise tree.error(f"is nested more than {MAX_DEPTH} times")
