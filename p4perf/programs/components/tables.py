"""Match-action tables: kind of match, entries, tables, keys, action data, hit ratio."""

from __future__ import annotations

from typing import Literal

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_header
from p4perf.programs.distributions import Distribution, Shape, rows

WORD_BITS = 32
"""Width of one action data parameter and of the checksum field that consumes them."""

WORDS_AT_ONCE = 16

MAX_LISTED = 100_000
"""Entries of a distribution: they are written into the generated program one by one."""

FIVE_TUPLE = {"src": 32, "dst": 32, "src_port": 16, "dst_port": 16, "protocol": 8}
"""Names and widths of the keys of a filter set."""

MAX_LOOKUPS = 4096


class MatchActionTable(Component):
    """``tables`` tables of ``entries`` entries each, applied ``applications`` times; the packets enumerate the entries.

    Scaled: entries, tables, lookups in one table, keys and their width, action data. Held: one header with the keys and
    a 32-bit field. All tables have the same keys, entries and actions. The action takes the output port and further
    32-bit words as data; it writes the exclusive or of the words into the packet, so that every byte of an entry is
    read and a wrong entry shows in the packet. Where there are several lookups it adds one as well, so that none can
    be left out. A miss drops the packet.

    Of ``keys`` keys, ``key_bits`` wide each, the last one distinguishes the entries; the others are zero. An lpm table
    has one lpm key, the last; its other keys are exact. ``free_bits`` bits of lpm and ternary keys match anything: the
    prefixes have ``key_bits - free_bits`` bits, the packets carry ones below.

    Another ``distribution`` than ``uniform`` has its entries from :mod:`~p4perf.programs.distributions`: ``bgp`` those
    of a routing table for the last key, ``classbench`` filters for the keys of a 5-tuple (:data:`FIVE_TUPLE`).
    """

    name = "match_action_table"
    summary = "match-action tables: kind of match, entries, tables, keys, action data"

    class Parameters(ComponentParameters):
        match_kind: Literal["exact", "lpm", "ternary"] = Bounds("exact", description="kind of match of the last key")
        entries: int = Bounds(ge=1, le=10**9, description="entries of each table")
        tables: int = Bounds(1, ge=1, le=1024, description="tables, applied in sequence")
        applications: int = Bounds(1, ge=1, le=1024, description="times that each table is applied")
        keys: int = Bounds(1, ge=1, le=1024, description="match keys of a table")
        key_bits: int = Bounds(128, ge=8, le=512, multiple_of=8, description="width of each key, in bits")
        free_bits: int = Bounds(
            8, ge=0, le=504, multiple_of=8, description="lowest bits, which lpm and ternary keys do not match"
        )
        distribution: Distribution = Bounds(
            "uniform", description="entries: uniform, prefixes as in a routing table, or filter sets"
        )
        action_data_bytes: int = Bounds(
            64, ge=4, le=4096, multiple_of=4, description="action data of one entry, in bytes"
        )
        hit_ratio: float = Bounds(
            1.0, ge=0, le=1, description="share of packets that find an entry; others are dropped"
        )

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        uniform = parameters.distribution == "uniform"
        free_bits = _free_bits(parameters) if uniform else 0
        _check(parameters, free_bits)
        names = [f"key_{n}" for n in range(parameters.keys)] if parameters.keys > 1 else ["key"]
        widths = dict.fromkeys(names, parameters.key_bits)
        if parameters.distribution == "classbench":
            widths, names = FIVE_TUPLE, list(FIVE_TUPLE)
        fields = (*(ir.Field(n, bits) for n, bits in widths.items()), ir.Field("result", WORD_BITS))
        open_bits = {names[-1]: (1 << free_bits) - 1} if free_bits else None
        header = append_header(builder, "bench", fields, open_bits).name
        keys = [ir.FieldRef(header, n) for n in names]
        kind = parameters.match_kind
        others: Literal["exact", "ternary"] = "ternary" if kind == "ternary" else "exact"
        matches = (*(ir.Key(k, others) for k in keys[:-1]), ir.Key(keys[-1], kind))
        action, miss = builder.unique("set_data"), builder.unique("miss")
        lookups = parameters.tables * parameters.applications
        builder.actions.append(_hit(action, ir.FieldRef(header, "result"), parameters.action_data_bytes, lookups))
        builder.actions.append(ir.Action(miss, body=(ir.Drop(),)))
        entries: ir.EntrySet | ir.EntryList = ir.EntrySet(parameters.entries, action, free_bits=free_bits)
        if not uniform:
            shapes = [Shape(key.field.field, key.match_kind, widths[key.field.field]) for key in matches]
            entries = _listed(parameters, shapes, action)
        tables = []
        for _ in range(parameters.tables):
            tables.append(builder.unique(f"table_{kind}"))
            builder.tables.append(ir.Table(tables[-1], matches, (action, miss), miss, entries))
        for table in tables * parameters.applications:
            builder.control.append(ir.ApplyTable(table))
        if uniform:
            builder.vary(keys[-1], parameters.entries, free_bits)


def _listed(parameters: MatchActionTable.Parameters, shapes: list[Shape], action: str) -> ir.EntryList:
    """Entries one by one, with the data that they have by the rule."""
    found = rows(shapes, parameters.entries, parameters.distribution, seed=1, observed=[(0,) * len(shapes)])
    if len(found) < parameters.entries:
        raise parameters.refusal(
            "key_bits",
            f"a key of {parameters.key_bits} bit has {len(found)} different entries of this distribution, "
            f"but {parameters.entries} are needed",
        )
    words = range(1, parameters.action_data_bytes * 8 // WORD_BITS)
    return ir.EntryList(
        tuple(
            ir.Entry(matches, action, (1, *(ir.entry_data_word(n, word) for word in words)))
            for n, matches in enumerate(found)
        )
    )


def _free_bits(parameters: MatchActionTable.Parameters) -> int:
    if parameters.match_kind != "exact":
        return parameters.free_bits
    if "free_bits" in parameters.model_fields_set and parameters.free_bits:
        raise parameters.refusal(
            "free_bits", "an exact key has no free bits", "leave free_bits out, or use match_kind lpm or ternary"
        )
    return 0


def _check(parameters: MatchActionTable.Parameters, free_bits: int) -> None:
    """Refuse tables that cannot be, or that would be too much for every target."""
    wanted = {"bgp": "lpm", "classbench": "ternary"}.get(parameters.distribution, parameters.match_kind)
    if parameters.match_kind != wanted:
        raise parameters.refusal(
            "distribution", f"the distribution {parameters.distribution} is for match_kind {wanted}"
        )
    if parameters.distribution != "uniform" and parameters.entries > MAX_LISTED:
        raise parameters.refusal(
            "entries", f"the distribution {parameters.distribution} has at most {MAX_LISTED} entries"
        )
    bits = parameters.key_bits - free_bits
    if bits <= 0:
        raise parameters.refusal(
            "free_bits",
            f"{free_bits} free bits leave nothing of a key of {parameters.key_bits} bit",
            "use a wider key or fewer free bits",
        )
    needed = parameters.entries * (1 if parameters.hit_ratio == 1 else 2)
    if parameters.distribution == "uniform" and needed > 1 << bits:
        tail = f", {free_bits} of them free," if free_bits else ""
        raise parameters.refusal(
            "key_bits",
            f"a key of {parameters.key_bits} bit{tail} has {1 << bits} values, but {needed} are needed",
            "use a wider key or fewer entries (packets that miss need as many values again)",
        )
    lookups = parameters.tables * parameters.applications
    if lookups > MAX_LOOKUPS:
        raise parameters.refusal(
            "applications",
            f"{parameters.tables} tables applied {parameters.applications} times are {lookups} lookups, "
            f"more than {MAX_LOOKUPS}",
            "use fewer tables or applications",
        )


def _hit(name: str, result: ir.FieldRef, data_bytes: int, lookups: int) -> ir.Action:
    words = [f"data_{j}" for j in range(1, data_bytes * 8 // WORD_BITS)]
    body: list[ir.Statement] = [ir.SetEgress(ir.ParameterRef("port"))]
    for first in range(0, len(words), WORDS_AT_ONCE):
        value: ir.Expression = result
        for word in words[first : first + WORDS_AT_ONCE]:
            value = ir.BinaryOp("^", value, ir.ParameterRef(word))
        body.append(ir.Assign(result, value))
    if lookups > 1:
        body.append(ir.Assign(result, ir.BinaryOp("+", result, ir.Const(1))))
    return ir.Action(name, tuple(ir.Field(n, WORD_BITS) for n in ("port", *words)), tuple(body))
