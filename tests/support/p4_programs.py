"""Programs that use every construct of the description, one at a time, and the components at small points."""

from dataclasses import replace

from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.ir import (
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Clone,
    Compare,
    Const,
    Counter,
    CountPacket,
    Drop,
    EntrySet,
    Field,
    FieldRef,
    Hash,
    Header,
    HeaderChecksum,
    If,
    IsValid,
    Key,
    Meter,
    MeterPacket,
    Multicast,
    ParameterRef,
    ParserState,
    PassNumber,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    Register,
    RemoveHeader,
    Resubmit,
    SelectCase,
    SetEgress,
    Table,
    Workload,
    WriteRegister,
)
from p4perf.programs.workload import build_workload

ETHERNET = Header("ethernet", (Field("dst", 48), Field("src", 48), Field("kind", 16)))
NARROW = Header("narrow", (Field("a", 8), Field("b", 16), Field("c", 32), Field("sum", 16), Field("index", 32)))
EXTRA = Header("extra", (Field("x", 16), Field("y", 32)))
A, B, C, INDEX = (FieldRef("narrow", n) for n in ("a", "b", "c", "index"))
WORD = FieldRef(METADATA, "word")


def program(*body, entries=None, control=None, **changes):
    """A program that runs ``body`` in one action and sends by port 1."""
    base = Program(
        "test",
        (ETHERNET, NARROW, EXTRA),
        (Field("word", 32),),
        (
            ParserState("start", ("ethernet",), FieldRef("ethernet", "kind"), (SelectCase(0x88B5, "more"),)),
            ParserState("more", ("narrow",)),
        ),
        (
            Action("forward", body=(SetEgress(Const(1)),)),
            Action("work", body=body),
            Action("discard", body=(Drop(),)),
            Action(
                "hit",
                (Field("port", 32), Field("data", 32)),
                (SetEgress(ParameterRef("port")), Assign(C, ParameterRef("data"))),
            ),
        ),
        (),
        (CallAction("forward"), CallAction("work")) if control is None else control,
        ("ethernet", "narrow", "extra"),
    )
    return replace(base, **changes)


def table(kind="exact", count=10, keys=(C,), name="lookup", free_bits=0):
    kinds = ["exact" if kind == "lpm" else kind] * (len(keys) - 1) + [kind]
    matches = tuple(Key(k, m) for k, m in zip(keys, kinds, strict=True))
    return Table(name, matches, ("hit", "discard"), "discard", EntrySet(count, "hit", 1, free_bits))


def with_table(kind="exact", count=10, **options):
    return program(tables=(table(kind, count, **options),), control=(ApplyTable("lookup"),))


def agains(statement):
    act = Action("again", body=(statement,))
    count = Action("count", body=(Assign(C, BinaryOp("+", C, PassNumber())),))
    base = program()
    control = (
        CallAction("forward"),
        CallAction("count"),
        If(Compare("<", PassNumber(), Const(3)), (CallAction("again"),)),
    )
    return replace(base, actions=(*base.actions, act, count), control=control)


EVEN = Header("narrow", (*NARROW.fields, Field("pad", 8)))
SUM = (HeaderChecksum("narrow", "sum"),)
SEEN = (Counter("seen", 64),)
CELLS = (Register("cells", 64, 32),)

CONSTRUCTS = {
    "exact": with_table(),
    "exact, two keys": with_table(keys=(B, C)),
    "exact, at run time": with_table(count=2000),
    "lpm": with_table("lpm", free_bits=8),
    "lpm, at run time": with_table("lpm", 2000, free_bits=8),
    "ternary": with_table("ternary", free_bits=8),
    "ternary, two keys": with_table("ternary", free_bits=4, keys=(B, C)),
    "ternary, at run time": with_table("ternary", 2000, free_bits=4),
    "two tables": program(tables=(table(), table(name="second")), control=(ApplyTable("lookup"), ApplyTable("second"))),
    "repeated table": program(tables=(table(),), control=(ApplyTable("lookup"), ApplyTable("lookup"))),
    "conditional": program(
        Assign(C, Const(7)),
        control=(
            If(Compare("<", C, Const(5)), (CallAction("forward"),), (CallAction("work"),)),
            If(
                IsValid("narrow"), (If(Compare("==", Const(3), A), (CallAction("forward"),)),), (CallAction("discard"),)
            ),
            If(Compare(">=", C, B), (CallAction("forward"),)),
        ),
    ),
    "arithmetic": program(
        Assign(C, BinaryOp("-", BinaryOp("+", C, Const(9)), BinaryOp("^", INDEX, Const(0xFFFFFFFF)))),
        Assign(WORD, BinaryOp("&", C, BinaryOp("|", INDEX, Const(1)))),
        Assign(C, WORD),
    ),
    "added header": program(AddHeader("extra", (("x", Const(5)), ("y", BinaryOp("+", C, Const(1)))))),
    "removed header": program(RemoveHeader("narrow")),
    "hash crc16": program(Hash(B, "crc16", (C, INDEX))),
    "hash crc32": program(Hash(C, "crc32", (C, INDEX))),
    "hash crc32, narrow": program(Hash(B, "crc32", (A, C))),
    "hash checksum16": program(Hash(B, "checksum16", (C, INDEX))),
    "checksum verify": program(verified=SUM, headers=(ETHERNET, EVEN, EXTRA)),
    "checksum update": program(updated=SUM, headers=(ETHERNET, EVEN, EXTRA)),
    "counter": program(
        CountPacket("seen", INDEX), CountPacket("seen", A), CountPacket("seen", Const(3)), counters=SEEN
    ),
    "meter": program(MeterPacket(C, "rate", INDEX), meters=(Meter("rate", 64),)),
    "register read": program(ReadRegister(C, "cells", INDEX), registers=CELLS),
    "register read, narrow": program(ReadRegister(B, "cells", INDEX), registers=CELLS),
    "register write": program(WriteRegister("cells", INDEX, BinaryOp("+", C, Const(1))), registers=CELLS),
    "random": program(Random(B)),
    "recirculate": agains(Recirculate()),
    "resubmit": agains(Resubmit()),
    "clone": program(Clone(2)),
    "clones": program(Clone(2), Assign(C, Const(1)), Clone(3), Clone(2)),
    "multicast": program(Multicast((1, 2, 3))),
    "late port": program(control=(CallAction("discard"), CallAction("forward"))),
    "no port": program(control=()),
    "drop and count": program(
        CountPacket("seen", INDEX),
        counters=SEEN,
        control=(CallAction("forward"), CallAction("discard"), CallAction("work")),
    ),
    "drop and again": program(Recirculate(), control=(CallAction("work"), CallAction("discard"))),
}
"""A program for each construct, and for what follows from it."""

COMPONENTS = {
    "l2fwd": [],
    "parser_headers": [("parser_headers", {"headers": 3})],
    "parsed_fields": [("parsed_fields", {"fields": 5})],
    "parser_branches": [("parser_branches", {"branches": 3, "depth": 2})],
    "match_action_table": [("match_action_table", {"entries": 5, "tables": 2, "action_data_bytes": 8})],
    "match_action_table, lpm": [("match_action_table", {"match_kind": "lpm", "entries": 5, "key_bits": 32})],
    "match_action_table, ternary": [("match_action_table", {"match_kind": "ternary", "entries": 5, "keys": 2})],
    "match_action_table, applied again": [("match_action_table", {"entries": 5, "applications": 2})],
    "header_field_writes": [("header_field_writes", {"writes": 2, "fields": 3, "field_bits": 16})],
    "metadata_writes": [("metadata_writes", {"writes": 4})],
    "arithmetic": [("arithmetic", {"operations": 3})],
    "conditionals": [("conditionals", {"conditionals": 3})],
    "conditionals, nested": [("conditionals", {"conditionals": 3, "nested": True})],
    "added_headers": [("added_headers", {"headers": 2, "header_bytes": 4})],
    "removed_headers": [("removed_headers", {"removed": 2, "kept": 1, "header_bytes": 4})],
    "hash, crc16": [("hash", {"algorithm": "crc16", "size_bytes": 16})],
    "hash, crc32": [("hash", {"algorithm": "crc32", "size_bytes": 16, "repetitions": 2})],
    "hash, checksum16": [("hash", {"algorithm": "checksum16", "size_bytes": 16})],
    "checksum, verify": [("checksum", {"operation": "verify", "size_bytes": 20})],
    "checksum, update": [("checksum", {"operation": "update", "size_bytes": 20})],
    "counter": [("counter", {"updates": 2})],
    "meter": [("meter", {"executions": 2})],
    "register": [("register", {"accesses": 2, "operation": "read_write"})],
    "random": [("random", {"numbers": 2, "width_bits": 16})],
    "recirculate": [("recirculate", {"times": 2})],
    "resubmit": [("resubmit", {"times": 2})],
    "clone": [("clone", {"copies": 2})],
    "multicast": [("multicast", {"ports": 3})],
}
"""A point of every component."""


def workload(program):
    """A workload around a program of this module."""
    builder = ProgramBuilder("packets")
    builder.add_header(ETHERNET)
    plain = build_workload([], frame_size_bytes=128)
    return Workload(program, plain.baseline, builder.packets(128))
