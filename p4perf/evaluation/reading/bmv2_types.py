"""What a program in the JSON of bmv2 declares: headers, stacks, fields and their widths, arrays, calculations.

The format is that of behavioral-model's docs/JSON_format.md, version 2.23, as p4c-bm2-ss and p4c-bm2-psa write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4perf.errors import DataError
from p4perf.evaluation.reading.tree import Tree

VALID = "$valid$"
"""Name of the hidden field that says whether a header is valid."""

FIELD_BITS = 32
"""Width of a field that a program does not declare."""


@dataclass(frozen=True, slots=True)
class HeaderType:
    """Fields of a header or a structure of metadata; a field of varying length has its greatest one."""

    name: str
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

    types: dict[str, HeaderType]
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
        """Width of a field that a pair of names refers to, 1 of a validity bit.

        Raises:
            DataError: it is no pair of names.
        """
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
        """The type of a header that is named.

        Raises:
            DataError: there is no such header.
        """
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

    def bits(self, name: str) -> int:
        """Greatest width of what a header, a stack or a union of that name stands for."""
        found = [self.headers[h].bits for h in self.members(name) if h in self.headers]
        return max(found, default=0) if name in self.unions else sum(found)


def declarations(root: Tree) -> Declarations:
    """Read what a program declares.

    Raises:
        DataError: the declarations are not what they should be.
    """
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
        types=types,
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
    return HeaderType(tree.text("name"), tuple(fields), varying)


def calculation_bytes(known: Declarations, calculation: Tree) -> int:
    """How many bytes a calculation goes over, headers with their greatest length, without payload.

    Raises:
        DataError: its input is not what it should be.
    """
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
    """Where the P4 program says something, ``router.p4:53``; empty if the JSON does not say."""
    if not tree.has("source_info"):
        return ""
    source = tree.value["source_info"]
    if not isinstance(source, dict):
        return ""
    file, line = source.get("filename"), source.get("line")
    if not isinstance(file, str) or not file or not isinstance(line, int):
        return ""
    return f"{file.rsplit('/', 1)[-1]}:{line}"


def fragment(tree: Tree) -> str:
    """The P4 text of something, empty if the JSON does not have it."""
    if not tree.has("source_info"):
        return ""
    source = tree.value["source_info"]
    found = source.get("source_fragment") if isinstance(source, dict) else None
    return " ".join(found.split()) if isinstance(found, str) else ""


def located(*parts: str) -> str:
    """Parts of a place that are not empty, with commas between."""
    return ", ".join(part for part in parts if part)


def check_unique(trees: Iterator[Tree]) -> dict[str, Tree]:
    """Objects by their names.

    Raises:
        DataError: two have the same.
    """
    found: dict[str, Tree] = {}
    for tree in trees:
        name = tree.text("name")
        if name in found:
            raise DataError(f"two things are called {name!r}", location=tree.error("").location, key=tree.pointer)
        found[name] = tree
    return found
