"""Declarations and expressions of a program in the JSON of bmv2.

The format is that of behavioral-model's docs/JSON_format.md, version 2.23, as p4c-bm2-ss and p4c-bm2-psa write it.

An expression is a tree of ``op``, ``left`` and ``right`` (JSON_format.md, "The type value object"). p4c wraps results
into what keeps their width: a mask of ones as wide as the result, ``two_comp_mod``, ``b2d``, ``d2b``. Targets have that
for nothing, so it is not counted.

What is not as the format requires is a ``DataError`` with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from p4perf.errors import DataError
from p4perf.models.program.graph import Construct, construct
from p4perf.programs.reading.flow import Fact
from p4perf.programs.reading.tree import MAX_DEPTH, Tree

VALID = "$valid$"
"""Name of the hidden field that holds the validity of a header."""

FIELD_BITS = 32
"""Width of a field that a program does not declare."""


@dataclass(frozen=True, slots=True)
class HeaderType:
    """Fields of a header or a structure of metadata; a field of varying length has its greatest one."""

    fields: tuple[tuple[str, int], ...]
    varying: str = ""
    """Name of its field of varying length, if it has one."""

    @property
    def bits(self) -> int:
        """Greatest width."""
        return sum(bits for _, bits in self.fields)


@dataclass(frozen=True)
class Declarations:
    """Everything that a program declares by name."""

    headers: dict[str, HeaderType]
    metadata: frozenset[str]
    stacks: dict[str, tuple[str, ...]]
    unions: dict[str, tuple[str, ...]]
    union_stacks: dict[str, tuple[str, ...]]
    registers: dict[str, tuple[int, int]]
    """Cells, and bits of one."""
    counters: dict[str, int]
    meters: dict[str, int]
    calculations: dict[str, Tree]
    undeclared: dict[str, None] = field(default_factory=dict)
    """Fields that were asked for and are not declared."""

    def field_bits(self, reference: Tree) -> int:
        """Width of a field that a pair of names refers to, 1 of a validity bit."""
        member = reference.item(1).text()
        if member == VALID:
            return 1
        if not isinstance(reference.item(0).value, str):
            return FIELD_BITS  # of an element of a stack that is only known at run time
        header = reference.item(0).text()
        found = self.headers.get(header)
        for name, bits in found.fields if found is not None else ():
            if name == member:
                return bits
        # p4c-bm2-psa (1.2.3.7) writes such references; bmv2 refuses them.
        self.undeclared[f"{header}.{member}"] = None
        return FIELD_BITS

    def header(self, reference: Tree) -> HeaderType:
        name = reference.text()
        if name not in self.headers:
            raise reference.error(f"there is no header {name!r}")
        return self.headers[name]

    def members(self, name: str) -> tuple[str, ...]:
        """The headers that a header, a stack or a union of that name stands for."""
        for group in (self.stacks, self.unions):
            if name in group:
                return group[name]
        if name in self.union_stacks:
            return tuple(h for union in self.union_stacks[name] for h in self.unions.get(union, ()))
        return (name,)

    def others(self, header: str) -> list[str]:
        """The headers that are not valid when one is: the other members of its unions."""
        return [other for union in self.unions.values() if header in union for other in union if other != header]

    def bits(self, name: str) -> int:
        """Greatest width of what a header, a stack or a union of that name stands for."""
        found = [self.headers[h].bits for h in self.members(name) if h in self.headers]
        return max(found, default=0) if name in self.unions else sum(found)


def declarations(root: Tree) -> Declarations:
    types = {t.text("name"): _type(t) for t in root.each("header_types")}
    headers, metadata, by_id = {}, set(), {}
    for h in root.each("headers"):
        name, type_name = h.text("name"), h.text("header_type")
        if type_name not in types:
            raise h.at("header_type").error(f"there is no header type {type_name!r}")
        headers[name] = types[type_name]
        by_id[h.whole("id")] = name
        if h.flag("metadata"):
            metadata.add(name)
    unions, union_ids = {}, {}
    for u in root.each("header_unions"):
        unions[u.text("name")] = tuple(_named(by_id, i) for i in u.each("header_ids"))
        union_ids[u.whole("id")] = u.text("name")
    return Declarations(
        headers=headers,
        metadata=frozenset(metadata),
        stacks={
            s.text("name"): tuple(_named(by_id, i) for i in s.each("header_ids")) for s in root.each("header_stacks")
        },
        unions=unions,
        union_stacks={
            s.text("name"): tuple(_named(union_ids, i) for i in s.each("header_union_ids"))
            for s in root.each("header_union_stacks")
        },
        registers={r.text("name"): (r.whole("size"), r.whole("bitwidth")) for r in root.each("register_arrays")},
        counters={c.text("name"): c.whole("size") if c.has("size") else 1 for c in root.each("counter_arrays")},
        meters={m.text("name"): m.whole("size") if m.has("size") else 1 for m in root.each("meter_arrays")},
        calculations={c.text("name"): c for c in root.each("calculations")},
    )


def _named(by_id: dict[int, str], number: Tree) -> str:
    if number.whole() not in by_id:
        raise number.error("there is nothing of this id")
    return by_id[number.whole()]


def _type(tree: Tree) -> HeaderType:
    fields: list[tuple[str, int]] = []
    varying, at = "", None
    for pair in tree.each("fields"):
        name, width = pair.item(0).text(), pair.item(1)
        if width.value == "*":
            varying, at = name, len(fields)
            bits = pair.item(2).whole() if len(pair.value) > 2 and type(pair.value[2]) is int else 0
            fields.append((name, bits))
        else:
            fields.append((name, width.whole()))
    if at is not None and tree.has("max_length"):
        rest = tree.whole("max_length") * 8 - sum(bits for n, (_, bits) in enumerate(fields) if n != at)
        fields[at] = (varying, max(rest, 0))
    return HeaderType(tuple(fields), varying)


def calculation_bytes(known: Declarations, calculation: Tree) -> int:
    """How many bytes a calculation goes over, headers with their greatest length, without payload."""
    bits = 0
    for part in calculation.each("input"):
        kind = part.text("type")
        if kind == "field":
            bits += known.field_bits(part.at("value"))
        elif kind == "header":
            bits += known.bits(part.text("value"))
        elif kind == "hexstr":
            bits += part.whole("bitwidth") if part.has("bitwidth") else 8 * (len(part.text("value")) // 2)
    return -(-bits // 8)


def takes_payload(calculation: Tree) -> bool:
    """Whether a calculation goes over the payload, too."""
    return any(part.text("type") == "payload" for part in calculation.each("input"))


def place(tree: Tree) -> str:
    """Place in the P4 program, ``router.p4:53``; empty if the JSON does not have it."""
    source = _source(tree)
    file, line = source.get("filename"), source.get("line")
    if not isinstance(file, str) or not file or not isinstance(line, int):
        return ""
    return f"{file.rsplit('/', 1)[-1]}:{line}"


def fragment(tree: Tree) -> str:
    """The P4 text of something, empty if the JSON does not have it."""
    found = _source(tree).get("source_fragment")
    return " ".join(found.split()) if isinstance(found, str) else ""


def _source(tree: Tree) -> dict[str, object]:
    found = tree.at("source_info").value if tree.has("source_info") else None
    return found if isinstance(found, dict) else {}


def located(text: str, tree: Tree) -> str:
    """What something is, with its place in the P4 program behind it if that is known."""
    return ", ".join(part for part in (text, place(tree)) if part)


def following(table: Tree, action: str, *, hit: bool) -> tuple[Tree, str]:
    """The object, and its key, that names what a packet meets after a table and its action."""
    after, marker = table.at("next_tables"), "__HIT__" if hit else "__MISS__"
    key = marker if after.names(marker) else action
    return (after, key) if after.names(key) else (table, "base_default_next")


def check_unique(trees: Iterator[Tree]) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for tree in trees:
        name = tree.text("name")
        if name in found:
            raise DataError(f"two things are called {name!r}", location=tree.error("").location, key=tree.pointer)
        found[name] = tree
    return found


COMPARISONS = ("==", "!=", ">", ">=", "<", "<=")
LOGIC = ("and", "or", "not")
FREE = ("b2d", "d2b", "two_comp_mod", "dereference_header_stack", "dereference_union_stack", "access_field")
COMPUTED = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~", "?", "sat_cast", "usat_cast")
ACCESS = ("access_union_header", "last_stack_index", "size_stack", "valid", "valid_union")


@dataclass(frozen=True)
class Expressions:
    """Expressions of one place; ``runtime_bits``: widths of the parameters of the action in which they stand."""

    known: Declarations
    runtime_bits: tuple[int, ...] = ()

    def bits(self, tree: Tree, depth: int = 0) -> int:
        """Width of a value; 0 of a constant, which takes the width of what it is used with."""
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

    def key_bits(self, key: Tree) -> int:
        """Width of a key field of a table."""
        target = key.at("target")
        if key.optional("match_type") == "valid":
            return 1
        return self.bits(target) if isinstance(target.value, dict) else self.known.field_bits(target)

    def operations(self, tree: Tree, bits: int, where: str, depth: int = 0) -> list[Construct]:
        """What has to be computed for a value of a width."""
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
        """What has to be tested, and computed before, to decide by a value."""
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

    def fact(self, tree: Tree, depth: int = 0) -> tuple[Fact | None, bool]:
        """The fact that a condition asks for, None if it asks for something else, and whether it must not hold."""
        kind, value = unwrapped(tree, depth)
        if kind == "field":
            return _field_fact(value, 1)
        op = value.text("op") if kind == "expression" else ""
        if op in ("not", "d2b"):
            inner, inverted = self.fact(value.at("right"), depth + 1)
            return inner, inner is not None and inverted != (op == "not")
        if op == "valid":
            return value.at("right").text("value"), False
        if op not in ("==", "!="):
            return None, False
        (left_kind, left), (right_kind, right) = (unwrapped(value.at(side), depth) for side in ("left", "right"))
        if left_kind == "hexstr":
            (left_kind, left), (right_kind, right) = (right_kind, right), (left_kind, left)
        if left_kind != "field" or right_kind != "hexstr":
            return None, False
        found, inverted = _field_fact(left, right.number())
        return found, found is not None and inverted != (op == "!=")

    def constant(self, tree: Tree, bits: int) -> int | None:
        """The value of a constant, cut to a width; None if it is none."""
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


def _field_fact(reference: Tree, value: int) -> tuple[Fact | None, bool]:
    if not isinstance(reference.item(0).value, str):
        return None, False  # an element of a stack that is only known at run time
    header, field = reference.item(0).text(), reference.item(1).text()
    if field == VALID:
        return header, value == 0
    return (f"{header}.{field}", value), False


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
