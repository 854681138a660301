"""Where an XDP program keeps its headers, keys and action data: decided before any text is written.

Headers that the program neither adds, removes nor moves stay in the packet and are worked on there. Those in front of
the last one that it does change are copied to a scratch area when they are extracted, and written back in front of the
rest of the packet at the end, after ``bpf_xdp_adjust_head``. Of a program that was read, all headers are kept there,
and its metadata, too: the verifier then has little to remember of each path.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p4perf.errors import CapabilityError
from p4perf.generators.c.writer import WORD_BITS
from p4perf.programs import analysis, ir
from p4perf.programs.analysis import control_nodes, destination, expressions, statements
from p4perf.programs.capabilities import OF_OWN_PROGRAMS, constructs, standing_at
from p4perf.programs.dataflow import follow, successors
from p4perf.programs.entries import Row, rows_of
from p4perf.programs.reading.values import FALSE

MAX_MAYBE_VALID = 10
"""Headers that a deparser writes at places that the verifier knows; the paths it walks double with each of them."""


@dataclass(frozen=True, slots=True)
class HeaderLayout:
    """Where the headers of a program are.

    Attributes:
        written_back: headers in the scratch area that are written in front of the packet, in that order.
        offsets: offset in the scratch area of every header that is kept there, in bytes.
        in_place: headers that are worked on in the packet.
        always: headers that are valid wherever the control flow reads them.
        optional: headers in the packet that the control flow uses and that may be absent.
    """

    written_back: tuple[str, ...]
    offsets: Mapping[str, int]
    in_place: tuple[str, ...]
    always: frozenset[str]
    optional: tuple[str, ...]
    whole: bool = False
    """Whether all of the program is in the scratch area, metadata and what headers are valid included."""

    @property
    def many(self) -> bool:
        """Whether the verifier cannot walk the deparser once for each set of headers that may be valid."""
        return self.whole and len(self.written_back) > MAX_MAYBE_VALID

    @property
    def scratch_bytes(self) -> int:
        """Size of the scratch area, in bytes; 0 if nothing is kept there."""
        return self.offsets[""]

    def valid(self, header: str) -> str:
        """The variable that says whether a header of the scratch area is valid."""
        return f"p->s->v_{header}" if self.whole else f"p->v_{header}"

    def metadata(self, field: str) -> str:
        """The variable of a metadata field."""
        return f"p->s->m_{field}" if self.whole else f"p->m_{field}"


@dataclass(frozen=True, slots=True)
class EntryPart:
    """A key of a table, or a parameter, in the bytes of its entries: ``width_bits`` in ``size_bytes`` whole bytes."""

    offset_bytes: int
    size_bytes: int
    width_bits: int


def header_layout(program: ir.Program) -> HeaderLayout:
    if not set(OF_OWN_PROGRAMS).isdisjoint(constructs(program)):  # what no program of components has
        return _whole_layout(program)
    pairs = _in_order(program)
    body = list(statements(program))
    changed = {s.header for s in body if isinstance(s, ir.AddHeader | ir.RemoveHeader)}
    if any(isinstance(s, ir.Resubmit) for s in body):
        changed |= {ref.header for s in body if (ref := destination(s)) is not None and ref.header != ir.METADATA}
        changed |= {checksum.header for checksum in program.updated}
    extracted = {name for state in program.parser for name in state.extracts}
    used = extracted | changed
    emit = [name for name in program.emit if name in used]
    lost = [name for name in (h.name for h in program.headers) if name in used and name not in emit]
    for n, later in enumerate(emit):
        if any((later, earlier) in pairs for earlier in emit[:n]):
            changed.add(later)
    last = max((n for n, name in enumerate(emit) if name in changed), default=-1)
    if lost:
        last = len(emit) - 1
    written_back = tuple(emit[: last + 1])
    offsets, at = {}, 0
    for name in (*written_back, *lost):
        offsets[name] = at
        at += -(-program.header(name).size_bytes // 8) * 8
    offsets[""] = at
    removed = {s.header for s in body if isinstance(s, ir.RemoveHeader)}
    in_place, always = tuple(emit[last + 1 :]), follow(program).parsed.valid - removed
    used_later = _control_headers(program)
    optional = tuple(name for name in in_place if name not in always and name in used_later)
    return HeaderLayout(written_back, offsets, in_place, always, optional)


def _whole_layout(program: ir.Program) -> HeaderLayout:
    _behind(program)  # refuses loops
    offsets, at = {}, 0
    for header in program.headers:
        offsets[header.name] = at
        at += -(-header.size_bytes // 8) * 8
    offsets[""] = at + 8
    moving = (*analysis.parser_statements(program), *statements(program))
    changed = {s.header for s in moving if isinstance(s, ir.AddHeader | ir.RemoveHeader)}
    always = follow(program).parsed.valid - changed
    return HeaderLayout(program.emit, offsets, (), always, (), whole=True)


def _behind(program: ir.Program) -> dict[str, frozenset[str]]:
    """Of every parser state that can be reached, the headers that some path extracts in it or later.

    Raises:
        CapabilityError: the parser may take a state twice.
    """

    def following(name: str) -> Iterable[str]:
        state = program.state(name)
        # Nothing follows an element more than a header stack has.
        ends = any(isinstance(s, ir.Verify) and s.condition == FALSE for s in state.body)
        return () if ends else successors(state)

    def comes_back(name: str) -> None:
        raise CapabilityError(
            f"xdp: the parser of {program.name} comes back to state {name}; the verifier of the kernel takes "
            "no parser whose number of steps depends on the packet"
        )

    found: dict[str, frozenset[str]] = {ir.ACCEPT: frozenset()}
    for name in analysis.post_order(following, comes_back):
        found[name] = frozenset(program.state(name).extracts).union(*(found[after] for after in following(name)))
    return found


def _in_order(program: ir.Program) -> set[tuple[str, str]]:
    """Pairs of headers of which some path of the parser extracts the first before the second.

    Raises:
        CapabilityError: the parser may take a state twice, or extract a header twice.
    """
    behind, pairs = _behind(program), set[tuple[str, str]]()
    for state in (s for s in program.parser if s.name in behind):
        later = frozenset().union(*(behind[following] for following in successors(state)))
        for n, header in enumerate(state.extracts):
            others = later.union(state.extracts[n + 1 :])
            if header in others:
                raise CapabilityError(f"xdp: the parser of {program.name} extracts a header twice")
            pairs |= {(header, other) for other in others}
    return pairs


def _control_headers(program: ir.Program) -> set[str]:
    """Headers that anything after the parser reads, writes or asks for."""
    used = {checksum.header for checksum in (*program.verified, *program.updated)}
    used |= {ref.header for s in statements(program) if (ref := destination(s)) is not None}
    for node in control_nodes(program.control):
        if isinstance(node, ir.If) and isinstance(node.condition, ir.IsValid):
            used.add(node.condition.header)
    return used | {e.header for e in expressions(program) if isinstance(e, ir.FieldRef)}


Piece = tuple[int, int]
"""Bytes of a header that are copied or loaded at once: the first one, and 1, 2, 4 or 8 of them."""


def field_pieces(header: ir.Header, fields: Container[str] | None = None) -> Iterator[Piece]:
    """The accesses that read or write fields (None: all) of a header one by one, as ``load_be`` has them."""
    for field in header.fields:
        if fields is None or field.name in fields:
            first = header.offset_bits(field.name)
            at, end = first // 8, -(-(first + field.width_bits) // 8)
            lead = (end - at) % 8 if end - at > 8 else 0  # words of wide fields are counted from their end
            for size in (lead, *(8,) * ((end - at - lead) // 8)) if end - at >= 8 else (end - at,):
                yield from accesses(at, size)
                at += size


def copied_pieces(header: ir.Header) -> list[Piece]:
    """A header in pieces of up to 8 bytes that cut no access to one of its fields in two.

    A load of bytes that two stores have just written waits until both are in the cache.
    """
    inside = {at for first, size in field_pieces(header) for at in range(first + 1, first + size)}
    found, at = list[Piece](), 0
    while at < header.size_bytes:
        sizes = [n for n in (8, 4, 2, 1) if at + n <= header.size_bytes]
        found.append((at, next((n for n in sizes if at + n not in inside), sizes[0])))
        at += found[-1][1]
    return found


def written_pieces(header: ir.Header, written: Container[str]) -> list[Piece]:
    """The same for a header that is copied after some of its fields were written: these are pieces of their own."""
    touched = [*copied_pieces(header), *field_pieces(header, written)]
    edges = sorted({edge for first, size in touched for edge in (first, first + size)})
    return [piece for first, end in pairwise(edges) for piece in accesses(first, end - first)]


def joined_pieces(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Neighbours as one wherever ``copy_bytes`` cuts that into the same pieces."""
    first, size = 0, 0
    for at, more in pieces:
        if [n for _, n in accesses(0, size + more)] == [*(n for _, n in accesses(0, size)), more]:
            size += more
        else:
            yield first, size
            first, size = at, more
    if size:
        yield first, size


def accesses(at: int, size: int) -> Iterator[Piece]:
    """Bytes cut into accesses of 8, 4, 2 and 1 of them, at any address."""
    while size:
        step = next(n for n in (8, 4, 2, 1) if n <= size)
        yield at, step
        at, size = at + step, size - step


def key_parts(program: ir.Program, table: ir.Table) -> tuple[EntryPart, ...]:
    """The keys of a table, one after another, each in whole bytes."""
    parts, at = [], 0
    for key in table.keys:
        width = program.width_bits(key.field)
        parts.append(EntryPart(at, (width + 7) // 8, width))
        at += parts[-1].size_bytes
    return tuple(parts)


def key_bytes(program: ir.Program, table: ir.Table) -> int:
    return sum(part.size_bytes for part in key_parts(program, table))


def free_key_bits(program: ir.Program, table: ir.Table) -> int:
    """Lowest bits of the key's bytes that match anything: the free bits of the entries and the padding among them."""
    left, bits = table.rule.free_bits, 0
    for part in reversed(key_parts(program, table)):
        if left < part.width_bits:
            return bits + left
        left -= part.width_bits
        bits += 8 * part.size_bytes
    return bits


def data_parts(action: ir.Action) -> tuple[EntryPart, ...]:
    """The parameters of an action as C lays them out."""
    parts, at = [], 0
    for parameter in action.parameters:
        size = number_bytes(parameter.width_bits)
        at = -(-at // size) * size
        parts.append(EntryPart(at, size, parameter.width_bits))
        at += size
    return tuple(parts)


def data_bytes(action: ir.Action) -> int:
    """Size of the action data of one entry as a C struct: at least one 32-bit word."""
    parts = data_parts(action)
    if not parts:
        return 4
    largest = max(part.size_bytes for part in parts)
    return -(-(parts[-1].offset_bytes + parts[-1].size_bytes) // largest) * largest


def number_bytes(width_bits: int) -> int:
    """Size of the unsigned C type that holds a number of that width, in bytes; wide ones are kept in 64 bit."""
    return next((size for size in (1, 2, 4) if width_bits <= 8 * size), 8)


@dataclass(frozen=True, slots=True)
class MapText:
    """A table as a map: its kind (none: no map), and its entries where they are one by one."""

    kind: str
    rows: tuple[Row, ...] | None = None

    @property
    def listed(self) -> bool:
        return self.rows is not None


def table_map(program: ir.Program, table: ir.Table) -> MapText:
    """The map of a table; of entries with the same key the first."""
    if not isinstance(table.entries, ir.EntryList):
        return MapText(program.match_kind(table))
    for action in map(program.action, table.taken):
        for p in action.parameters:
            if p.width_bits > WORD_BITS:
                with standing_at(action.place or table.place):
                    raise CapabilityError(
                        f"xdp keeps action data of {WORD_BITS} bit; {action.name}.{p.name} has {p.width_bits}"
                    )
    first: dict[tuple[bytes, bytes], Row] = {}
    for row in rows_of(program, table, 8):
        first.setdefault((row.key, row.mask), row)
    rows = tuple(first.values())
    kind = program.match_kind(table)
    if kind == "lpm" and table.keys[-1].match_kind != "lpm":
        kind = "ternary"
    return MapText(kind if rows and table.keys else "none", rows)
