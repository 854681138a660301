"""Programs that use every construct of the description, one at a time, and the components at small points."""

from dataclasses import replace

from support.parser_states import extracting

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import build_workload

ETHERNET = ir.Header("ethernet", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("kind", 16)))
NARROW = ir.Header(
    "narrow", (ir.Field("a", 8), ir.Field("b", 16), ir.Field("c", 32), ir.Field("sum", 16), ir.Field("index", 32))
)
EXTRA = ir.Header("extra", (ir.Field("x", 16), ir.Field("y", 32)))
A, B, C, INDEX = (ir.FieldRef("narrow", n) for n in ("a", "b", "c", "index"))
WORD = ir.FieldRef(ir.METADATA, "word")


def program(*body, entries=None, control=None, **changes):
    """A program that runs ``body`` in one action and sends by port 1."""
    base = ir.Program(
        "test",
        (ETHERNET, NARROW, EXTRA),
        (ir.Field("word", 32),),
        (
            extracting(
                "start", ("ethernet",), ir.FieldRef("ethernet", "kind"), (ir.SelectCase.of_value(0x88B5, "more"),)
            ),
            extracting("more", ("narrow",)),
        ),
        (
            ir.Action("forward", body=(ir.SetEgress(ir.Const(1)),)),
            ir.Action("work", body=body),
            ir.Action("discard", body=(ir.Drop(),)),
            ir.Action(
                "hit",
                (ir.Field("port", 32), ir.Field("data", 32)),
                (ir.SetEgress(ir.ParameterRef("port")), ir.Assign(C, ir.ParameterRef("data"))),
            ),
        ),
        (),
        (ir.CallAction("forward"), ir.CallAction("work")) if control is None else control,
        ("ethernet", "narrow", "extra"),
    )
    return replace(base, **changes)


def table(kind="exact", count=10, keys=(C,), name="lookup", free_bits=0):
    kinds = ["exact" if kind == "lpm" else kind] * (len(keys) - 1) + [kind]
    matches = tuple(ir.Key(k, m) for k, m in zip(keys, kinds, strict=True))
    return ir.Table(name, matches, ("hit", "discard"), "discard", ir.EntrySet(count, "hit", 1, free_bits))


def with_table(kind="exact", count=10, **options):
    return program(tables=(table(kind, count, **options),), control=(ir.ApplyTable("lookup"),))


def agains(statement):
    act = ir.Action("again", body=(statement,))
    count = ir.Action("count", body=(ir.Assign(C, ir.BinaryOp("+", C, ir.PassNumber())),))
    base = program()
    control = (
        ir.CallAction("forward"),
        ir.CallAction("count"),
        ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(3)), (ir.CallAction("again"),)),
    )
    return replace(base, actions=(*base.actions, act, count), control=control)


EVEN = ir.Header("narrow", (*NARROW.fields, ir.Field("pad", 8)))
SUM = (ir.FieldRef("narrow", "sum"),)
SEEN = (ir.Counter("seen", 64),)
CELLS = (ir.Register("cells", 64, 32),)

CONSTRUCTS = {
    "exact": with_table(),
    "exact, two keys": with_table(keys=(B, C)),
    "exact, at run time": with_table(count=2000),
    "lpm": with_table("lpm", free_bits=8),
    "lpm, at run time": with_table("lpm", 2000, free_bits=8),
    "ternary": with_table("ternary", free_bits=8),
    "ternary, two keys": with_table("ternary", free_bits=4, keys=(B, C)),
    "ternary, at run time": with_table("ternary", 2000, free_bits=4),
    "two tables": program(
        tables=(table(), table(name="second")), control=(ir.ApplyTable("lookup"), ir.ApplyTable("second"))
    ),
    "repeated table": program(tables=(table(),), control=(ir.ApplyTable("lookup"), ir.ApplyTable("lookup"))),
    "conditional": program(
        ir.Assign(C, ir.Const(7)),
        control=(
            ir.If(ir.Compare("<", C, ir.Const(5)), (ir.CallAction("forward"),), (ir.CallAction("work"),)),
            ir.If(
                ir.IsValid("narrow"),
                (ir.If(ir.Compare("==", ir.Const(3), A), (ir.CallAction("forward"),)),),
                (ir.CallAction("discard"),),
            ),
            ir.If(ir.Compare(">=", C, B), (ir.CallAction("forward"),)),
        ),
    ),
    "arithmetic": program(
        ir.Assign(C, ir.BinaryOp("-", ir.BinaryOp("+", C, ir.Const(9)), ir.BinaryOp("^", INDEX, ir.Const(0xFFFFFFFF)))),
        ir.Assign(WORD, ir.BinaryOp("&", C, ir.BinaryOp("|", INDEX, ir.Const(1)))),
        ir.Assign(C, WORD),
    ),
    "added header": program(ir.AddHeader("extra", (("x", ir.Const(5)), ("y", ir.BinaryOp("+", C, ir.Const(1)))))),
    "removed header": program(ir.RemoveHeader("narrow")),
    "hash crc16": program(ir.Hash(B, "crc16", (C, INDEX))),
    "hash crc32": program(ir.Hash(C, "crc32", (C, INDEX))),
    "hash crc32, narrow": program(ir.Hash(B, "crc32", (A, C))),
    "hash checksum16": program(ir.Hash(B, "checksum16", (C, INDEX))),
    "checksum verify": program(verified=SUM, headers=(ETHERNET, EVEN, EXTRA)),
    "checksum update": program(updated=SUM, headers=(ETHERNET, EVEN, EXTRA)),
    "counter": program(
        ir.CountPacket("seen", INDEX), ir.CountPacket("seen", A), ir.CountPacket("seen", ir.Const(3)), counters=SEEN
    ),
    "meter": program(ir.MeterPacket(C, "rate", INDEX), meters=(ir.Meter("rate", 64),)),
    "register read": program(ir.ReadRegister(C, "cells", INDEX), registers=CELLS),
    "register read, narrow": program(ir.ReadRegister(B, "cells", INDEX), registers=CELLS),
    "register write": program(ir.WriteRegister("cells", INDEX, ir.BinaryOp("+", C, ir.Const(1))), registers=CELLS),
    "random": program(ir.Random(B)),
    "recirculate": agains(ir.Recirculate()),
    "resubmit": agains(ir.Resubmit()),
    "clone": program(ir.Clone(2)),
    "clones": program(ir.Clone(2), ir.Assign(C, ir.Const(1)), ir.Clone(3), ir.Clone(2)),
    "multicast": program(ir.Multicast((1, 2, 3))),
    "late port": program(control=(ir.CallAction("discard"), ir.CallAction("forward"))),
    "no port": program(control=()),
    "drop and count": program(
        ir.CountPacket("seen", INDEX),
        counters=SEEN,
        control=(ir.CallAction("forward"), ir.CallAction("discard"), ir.CallAction("work")),
    ),
    "drop and again": program(ir.Recirculate(), control=(ir.CallAction("work"), ir.CallAction("discard"))),
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
    return ir.Workload(program, plain.baseline, builder.packets(128))
