"""Declarations and expressions of the JSON of bmv2 as those of a :class:`~p4perf.programs.ir.Program`.

The format is that of behavioral-model's docs/JSON_format.md, version 2.23, as p4c-bm2-ss and p4c-bm2-psa write it.

Elements of header stacks and members of header unions are headers of their own. An element that is only known at run
time becomes a choice among all of them. The mask of ones by which p4c cuts a result to its width becomes a cast.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from hashlib import sha256
from itertools import count

from p4perf.programs import ir
from p4perf.programs.reading.tree import MAX_DEPTH, Tree

VALID = "$valid$"
"""Name of the hidden field that holds the validity of a header."""

TRUE = ir.Compare("==", ir.Const(0), ir.Const(0))
FALSE = ir.Not(TRUE)

_COMPARISONS: tuple[ir.Comparator, ...] = ("==", "!=", ">", ">=", "<", "<=")
_CONDITIONS = ("and", "or", "not", "d2b", "valid", "valid_union")


_STANDARD: Mapping[str, int] = {
    **dict.fromkeys(("ingress_port", "egress_spec", "egress_port"), 9),
    **dict.fromkeys(("instance_type", "packet_length", "parser_error", "enq_timestamp", "deq_timedelta"), 32),
    **dict.fromkeys(("ingress_global_timestamp", "egress_global_timestamp"), 48),
    **dict.fromkeys(("mcast_grp", "egress_rid"), 16),
    **dict.fromkeys(("enq_qdepth", "deq_qdepth"), 19),
    "checksum_error": 1,
}
"""Widths of the standard metadata of v1model."""

MAX_BITS = 1 << 16
"""Widest field that is read."""

_OF_P4_14 = ("intrinsic_metadata", "queueing_metadata")
"""What P4_14 calls parts of the standard metadata."""

_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_]+")

_RESERVED = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register"
    "|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
    "|exact|lpm6?|fib6?|acl|list(32|64)?|names|layouts?"
)
"""Words of C, and what the harness has behind ``table_``."""


MAX_NAME = 48
"""Longest identifier: DPDK has names of up to 63 characters, and some get a word before or behind them."""


def identifier(name: str) -> str:
    """A name as an identifier of C and P4: ``hdr.stack[0]`` becomes ``hdr_stack_0``, other letters their numbers.

    The end of a long one is a digest.
    """
    plain = "".join(f"u{ord(c):x}" if c.isalnum() and not c.isascii() else c for c in name)
    plain = _NOT_OF_A_NAME.sub("_", plain).strip("_") or "x"
    if len(plain) > MAX_NAME:
        plain = f"{plain[: MAX_NAME - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
    return f"_{plain}" if plain[0].isdigit() or _RESERVED.fullmatch(plain) else plain


def distinct(name: str, taken: Collection[str]) -> str:
    """A name, with a number behind it where it is taken."""
    return name if name not in taken else next(f"{name}_{n}" for n in count(2) if f"{name}_{n}" not in taken)


def either(conditions: Sequence[ir.Condition]) -> ir.Condition:
    """At least one of the conditions."""
    return reduce(ir.Or, conditions) if conditions else FALSE


@dataclass(frozen=True)
class Names:
    """What a program declares: headers and metadata with their fields, stacks and unions."""

    headers: Mapping[str, tuple[ir.Field, ...]]
    called: Mapping[str, str]
    """What the JSON calls them."""
    metadata: frozenset[str]
    stacks: Mapping[str, tuple[str, ...]]
    unions: Mapping[str, tuple[str, ...]]
    members: Mapping[str, Mapping[str, str]]
    """The headers of each union, by the names of its members."""
    union_stacks: Mapping[str, tuple[str, ...]]
    first_error: int = 0
    """The number of NoError, which older compilers number from 1."""
    own: dict[str, ir.Field] = field(default_factory=dict)
    """Metadata fields that the program does not declare, and the text of its statements needs."""

    def header(self, tree: Tree) -> str:
        """The header that the JSON calls so."""
        if tree.text() not in self._by_call:
            raise tree.error(f"there is no header {tree.text()!r}")
        return self._by_call[tree.text()]

    def ref(self, header: str, name: str, at: Tree) -> ir.FieldRef:
        """A field, of a header that the JSON calls so."""
        if header in _OF_P4_14 and self._by_call.get(header) in self.metadata and name in _STANDARD:
            header = "standard_metadata"
        found, wanted = self._by_call.get(header, ""), identifier(name)
        if wanted in self._widths.get(found, ()):
            return self.own_ref(found, wanted)
        raise at.error(f"there is no field {header}.{name}")

    def field(self, pair: Tree) -> ir.FieldRef:
        """A field that the JSON names by a pair, ``[header, field]``."""
        return self.ref(pair.item(0).text(), pair.item(1).text(), pair)

    @cached_property
    def _by_call(self) -> dict[str, str]:
        return {call: name for name, call in self.called.items()}

    def own_ref(self, header: str, name: str) -> ir.FieldRef:
        """A field that is known to be declared."""
        return ir.FieldRef(ir.METADATA, f"{header}__{name}") if header in self.metadata else ir.FieldRef(header, name)

    def refs(self, header: str) -> tuple[ir.FieldRef, ...]:
        return tuple(self.own_ref(header, f.name) for f in self.headers[header])

    @cached_property
    def _widths(self) -> dict[str, dict[str, int]]:
        return {header: {f.name: f.width_bits for f in fields} for header, fields in self.headers.items()}

    def width_bits(self, ref: ir.FieldRef) -> int:
        if ref.header != ir.METADATA:
            return self._widths[ref.header][ref.field]
        if ref.field in self.own:
            return self.own[ref.field].width_bits
        header, _, name = ref.field.partition("__")
        return self._widths[header][name]

    def scratch(self, name: str, width_bits: int) -> ir.FieldRef:
        """A metadata field of this name, as wide as the widest that was asked for."""
        name = f"own_{name}"
        width_bits = max(width_bits, self.own[name].width_bits if name in self.own else 1)
        self.own[name] = ir.Field(name, width_bits)
        return ir.FieldRef(ir.METADATA, name)

    def others(self, header: str) -> tuple[str, ...]:
        """The headers that are not valid when one is: the other members of its union."""
        return tuple(o for union in self.unions.values() if header in union for o in union if o != header)

    def member(self, union: str, name: str, at: Tree) -> str:
        """The header that is a member of a union."""
        if name not in self.members[union]:
            raise at.error(f"the header union {union} has no member {name!r}")
        return self.members[union][name]

    def elements(self, stack: Tree) -> tuple[str, ...]:
        """The headers of a stack that the JSON calls so."""
        if stack.text() not in self.stacks:
            raise stack.error(f"there is no header stack {stack.text()!r}")
        return self.stacks[stack.text()]


def declared(root: Tree) -> Names:
    """Everything that a program declares by name.

    Raises:
        DataError: something refers to what is not declared.
    """
    types = {t.text("name"): tuple(_fields(t)) for t in root.each("header_types")}
    standard = {h.text("header_type") for h in root.each("headers") if h.text("name") == "standard_metadata"}
    for kind in standard & types.keys():
        missing = _STANDARD.keys() - {f.name for f in types[kind]}
        types[kind] += tuple(ir.Field(name, _STANDARD[name]) for name in sorted(missing))
    headers: dict[str, tuple[ir.Field, ...]] = {}
    called, metadata, by_id, unions, union_ids, members = {}, set(), {}, {}, {}, {}
    for h in root.each("headers"):
        name, kind = distinct(identifier(h.text("name")), headers), h.text("header_type")
        if kind not in types:
            raise h.at("header_type").error(f"there is no header type {kind!r}")
        headers[name], called[name] = types[kind], h.text("name")
        by_id[h.whole("id")] = name
        if h.flag("metadata") or name == "scalars":
            metadata.add(name)
        elif sum(f.width_bits for f in headers[name]) % 8:
            raise h.error("is not a whole number of bytes")
    kinds = {t.text("name"): [m.item(0).text() for m in t.each("headers")] for t in root.each("header_union_types")}
    for u in root.each("header_unions"):
        unions[u.text("name")] = tuple(_of_id(by_id, i) for i in u.each("header_ids"))
        union_ids[u.whole("id")] = u.text("name")
        members[u.text("name")] = dict(zip(kinds.get(u.text("union_type"), ()), unions[u.text("name")], strict=False))
    stacks = {s.text("name"): tuple(_of_id(by_id, i) for i in s.each("header_ids")) for s in root.each("header_stacks")}
    union_stacks = {
        s.text("name"): tuple(_of_id(union_ids, i) for i in s.each("header_union_ids"))
        for s in root.each("header_union_stacks")
    }
    errors = {e.item(0).text(): e.item(1).whole() for e in root.each("errors")}
    return Names(headers, called, frozenset(metadata), stacks, unions, members, union_stacks, errors.get("NoError", 0))


def _of_id(by_id: Mapping[int, str], number: Tree) -> str:
    if number.whole() not in by_id:
        raise number.error("there is nothing of this id")
    return by_id[number.whole()]


def _fields(tree: Tree) -> Iterator[ir.Field]:
    fixed = [pair.item(1).whole() for pair in tree.each("fields") if pair.item(1).value != "*"]
    for pair in tree.each("fields"):
        name, width = identifier(pair.item(0).text()), pair.item(1)
        signed = len(pair.value) > 2 and pair.value[2] is True
        varying = width.value == "*"
        if not varying:
            bits = width.whole()
        elif tree.has("max_length"):
            bits = max(8 * tree.whole("max_length") - sum(fixed), 0)
        else:
            bits = pair.item(2).whole()
        if bits > MAX_BITS:
            raise pair.error(f"is wider than {MAX_BITS} bit")
        yield ir.Field(name, bits, signed and not varying, varying)


@dataclass(frozen=True)
class ValueReader:
    """Expressions of one place.

    Args:
        parameters: those of the action in which they stand.
        filled: how many elements of each stack the parser has extracted there.
    """

    names: Names
    parameters: tuple[ir.Field, ...] = ()
    filled: Mapping[str, int] = field(default_factory=dict)

    def value(self, tree: Tree, depth: int = 0) -> ir.Expression:
        kind, value = unwrapped(tree, depth)
        match kind:
            case "field":
                return self._field(value)
            case "hexstr":
                return ir.Const(value.number())
            case "bool":
                return ir.Const(int(bool(value.value)))
            case "runtime_data" | "local":
                return ir.ParameterRef(self._parameter(value).name)
            case "lookahead":
                return ir.Lookahead(value.item(0).whole(), value.item(1).whole())
            case "stack_field":
                return self._last_field(value)
            case "union_stack_field":
                return self._union_field(value)
            case "expression":
                return self._operation(value, depth)
        raise tree.error(f"a value of type {kind} is not supported")

    def condition(self, tree: Tree, depth: int = 0) -> ir.Condition:
        kind, value = unwrapped(tree, depth)
        if kind == "bool":
            return TRUE if value.value else FALSE
        op = value.text("op") if kind == "expression" else ""
        match op:
            case "and" | "or":
                left, right = (self.condition(value.at(side), depth + 1) for side in ("left", "right"))
                return ir.And(left, right) if op == "and" else ir.Or(left, right)
            case "not":
                return ir.Not(self.condition(value.at("right"), depth + 1))
            case "d2b":
                return truth(self.value(value.at("right"), depth + 1))
            case "valid":
                return self._valid(value.at("right"), depth)
            case "valid_union":
                return either([ir.IsValid(h) for h in self.union(value.at("right"), depth)])
            case "==" | "!=" | ">" | ">=" | "<" | "<=":
                return self._comparison(op, value, depth)
        return truth(self.value(tree, depth))

    def header(self, tree: Tree, depth: int = 0) -> str:
        """The name of a header that is known without running the program."""
        found = self.headers(tree, depth)
        if len(found) != 1:
            raise tree.error("an element of a header stack that is only known at run time is not supported here")
        return found[0][0]

    def headers(self, tree: Tree, depth: int = 0) -> tuple[tuple[str, ir.Condition], ...]:
        """The headers that may be meant, and the condition for each."""
        kind, value = unwrapped(tree, depth)
        if kind == "header":
            return ((self.names.header(value), TRUE),)
        if kind == "stack":
            return ((self._last(value), TRUE),)
        if kind == "expression" and value.text("op") == "dereference_header_stack":
            stack = unwrapped(value.at("left"), depth)[1]
            index = self.value(value.at("right"), depth + 1)
            elements = self.names.elements(stack)
            if isinstance(index, ir.Const):
                return ((elements[min(index.value, len(elements) - 1)], TRUE),)
            return tuple((e, ir.Compare("==", index, ir.Const(n))) for n, e in enumerate(elements))
        if kind == "expression" and value.text("op") == "?":
            condition = self.condition(value.at("cond"), depth + 1)
            sides = (self.headers(value.at(side), depth + 1) for side in ("left", "right"))
            chosen = zip((condition, ir.Not(condition)), sides, strict=True)
            return tuple((name, c if here == TRUE else ir.And(c, here)) for c, found in chosen for name, here in found)
        if kind == "expression" and value.text("op") == "access_union_header":
            union = self.union(value.at("left"), depth)
            return ((union[value.at("right").whole()], TRUE),)
        raise tree.error(f"a header of type {kind} is not supported")

    def union(self, tree: Tree, depth: int = 0) -> tuple[str, ...]:
        """The headers of a union."""
        kind, value = unwrapped(tree, depth)
        name = ""
        if kind == "header_union":
            name = value.text()
        elif kind == "expression" and value.text("op") == "dereference_union_stack":
            stack, index = unwrapped(value.at("left"), depth)[1].text(), self.value(value.at("right"), depth + 1)
            unions = self.names.union_stacks.get(stack, ())
            name = unions[index.value] if isinstance(index, ir.Const) and index.value < len(unions) else ""
        if name not in self.names.unions:
            raise tree.error("this header union is not supported")
        return self.names.unions[name]

    def places(self, tree: Tree) -> tuple[tuple[ir.FieldRef | str, ir.Condition], ...]:
        """The fields that an assignment may write, and the condition for each; a name is a header's validity."""
        kind, value = unwrapped(tree)
        if kind == "field":
            valid = value.item(1).text() == VALID
            return ((self.names.header(value.item(0)) if valid else self.names.field(value), TRUE),)
        if kind == "expression" and value.text("op") == "access_field":
            number = value.at("right").whole()
            return tuple((self._numbered(h, number, value), c) for h, c in self.headers(value.at("left")))
        if kind == "stack_field":
            return ((self._last_field(value), TRUE),)
        raise tree.error(f"writing to {kind} is not supported")

    def _parameter(self, number: Tree) -> ir.Field:
        if number.whole() >= len(self.parameters):
            raise number.error(f"the action has no parameter {number.whole()}")
        return self.parameters[number.whole()]

    def _field(self, value: Tree) -> ir.Expression:
        name = value.item(1).text()
        if name == VALID:
            return ir.Truth(ir.IsValid(self.names.header(value.item(0))))
        ref = self.names.field(value)
        if self.names.first_error and name == "parser_error":
            return ir.BinaryOp("+", ref, ir.Const(self.names.first_error))
        return ref

    def _last_field(self, value: Tree) -> ir.FieldRef:
        """A field of the last element of a stack: ``[stack, field]``."""
        return self.names.ref(self.names.called[self._last(value.item(0))], value.item(1).text(), value)

    def _last(self, stack: Tree) -> str:
        return self._newest(self.names.elements(stack), stack)

    def _union_field(self, value: Tree) -> ir.Expression:
        """A field of the last union of a stack: ``[stack, member, field]``."""
        stack = value.item(0)
        union = self._newest(self.names.union_stacks.get(stack.text(), ()), stack)
        header = self.names.member(union, value.item(1).text(), value)
        return self.names.ref(self.names.called[header], value.item(2).text(), value)

    def _newest(self, elements: Sequence[str], stack: Tree) -> str:
        """The element of a stack that was extracted last."""
        number = self.filled.get(stack.text(), 0)
        if not 0 < number <= len(elements):
            raise stack.error("the last element of an empty header stack is not supported")
        return elements[number - 1]

    def _numbered(self, header: str, number: int, at: Tree) -> ir.FieldRef:
        fields = self.names.headers[header]
        if number >= len(fields):
            raise at.error(f"header {header} has no field {number}")
        return self.names.own_ref(header, fields[number].name)

    def _valid(self, tree: Tree, depth: int) -> ir.Condition:
        parts = [ir.IsValid(h) if c == TRUE else ir.And(c, ir.IsValid(h)) for h, c in self.headers(tree, depth)]
        return either(parts)

    def _comparison(self, op: ir.Comparator, value: Tree, depth: int) -> ir.Condition:
        kinds = [unwrapped(value.at(side), depth)[0] for side in ("left", "right")]
        if kinds == ["header", "header"]:
            same = self._same(*(self.header(value.at(side), depth) for side in ("left", "right")))
            return same if op == "==" else ir.Not(same)
        left, right = (self.value(value.at(side), depth + 1) for side in ("left", "right"))
        return ir.Compare(op, left, right)

    def _same(self, left: str, right: str) -> ir.Condition:
        """That two headers are equal: both are not valid, or both are, with the same fields."""
        pairs = zip(self.names.refs(left), self.names.refs(right), strict=True)
        equal = reduce(ir.And, [ir.Compare("==", a, b) for a, b in pairs], ir.And(ir.IsValid(left), ir.IsValid(right)))
        return ir.Or(ir.Not(ir.Or(ir.IsValid(left), ir.IsValid(right))), equal)

    def _operation(self, value: Tree, depth: int) -> ir.Expression:
        op = value.text("op")
        if op in _COMPARISONS or op in _CONDITIONS:
            return ir.Truth(self.condition(value, depth))
        if op == "b2d":
            return _number(self.condition(value.at("right"), depth + 1))
        if op == "access_field":
            number = value.at("right").whole()
            found = self.headers(value.at("left"), depth + 1)
            refs = [(self._numbered(h, number, value), c) for h, c in found]
            chosen: ir.Expression = refs[-1][0]
            for ref, condition in refs[:-1]:
                chosen = ir.Conditional(condition, ref, chosen)
            return chosen
        if op == "last_stack_index":
            return ir.Const(self.filled.get(unwrapped(value.at("right"), depth)[1].text(), 0) - 1)
        if op == "size_stack":
            return ir.Const(len(self.names.elements(unwrapped(value.at("right"), depth)[1])))
        if op == "?":
            sides = (self.value(value.at(side), depth + 1) for side in ("left", "right"))
            return ir.Conditional(self.condition(value.at("cond"), depth + 1), *sides)
        right = self.value(value.at("right"), depth + 1)
        if op == "~":
            return ir.BinaryOp("^", right, ir.Const(-1))
        left = self.value(value.at("left"), depth + 1) if value.has("left") else ir.Const(0)
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            if not isinstance(right, ir.Const):
                raise value.error("a cast to a width that is not constant")
            return ir.Cast(left, right.value, signed=op != "usat_cast", saturating=op != "two_comp_mod")
        if op == "&" and isinstance(right, ir.Const) and right.value > 0 and (right.value + 1).bit_count() == 1:
            return ir.Cast(left, right.value.bit_length())
        match op:
            case "+" | "-" | "*" | "/" | "%" | "<<" | ">>" | "&" | "|" | "^":
                return ir.BinaryOp(op, left, right)
        raise value.error(f"the operation {op} is not supported")


def equal(ref: ir.FieldRef, number: int) -> ir.Condition:
    return ir.Compare("==", ref, ir.Const(number))


def truth(value: ir.Expression) -> ir.Condition:
    """The condition that a number is not zero."""
    return value.condition if isinstance(value, ir.Truth) else ir.Compare("!=", value, ir.Const(0))


def _number(condition: ir.Condition) -> ir.Expression:
    return ir.Const(int(condition == TRUE)) if condition in (TRUE, FALSE) else ir.Truth(condition)


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


def place(tree: Tree) -> str:
    """Place in the P4 program, ``router.p4:53``; empty if the JSON does not have it."""
    source = _source(tree)
    file, line = source.get("filename"), source.get("line")
    return f"{file.rsplit('/', 1)[-1]}:{line}" if isinstance(file, str) and file and isinstance(line, int) else ""


def fragment(tree: Tree) -> str:
    """The text of something in the P4 program, on one line; empty if the JSON does not have it."""
    found = _source(tree).get("source_fragment")
    return " ".join(found.split()) if isinstance(found, str) else ""


def _source(tree: Tree) -> dict[str, object]:
    found = tree.at("source_info").value if tree.has("source_info") else None
    return found if isinstance(found, dict) else {}


def check_unique(trees: Iterator[Tree]) -> dict[str, Tree]:
    """Trees by their names.

    Raises:
        DataError: two have the same.
    """
    found: dict[str, Tree] = {}
    for tree in trees:
        name = tree.text("name")
        if name in found:
            raise tree.error(f"two things are called {name!r}")
        found[name] = tree
    return found


def sent_by(port: ir.Expression) -> ir.Branch:
    """Send a packet by a port, or drop it if there is none."""
    exists = ir.Compare("<=", port, ir.Const(ir.MAX_PORT))
    return ir.Branch(exists, (ir.SetEgress(ir.Cast(port, ir.MAX_PORT.bit_length())),), (ir.Drop(),))
