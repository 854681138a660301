"""eBPF programs for XDP: golden text, where headers are kept, and what is refused."""

import dataclasses

import pytest
from support.parser_states import extracting

from p4perf.errors import CapabilityError
from p4perf.generators.c.xdp import MAX_VARYING, XDP_CAPABILITIES, Xdp
from p4perf.generators.c.xdp_layout import (
    copied_pieces,
    data_bytes,
    data_parts,
    field_pieces,
    free_key_bits,
    header_layout,
    joined_pieces,
    key_bytes,
    key_parts,
    table_map,
    written_pieces,
)
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload

A = ir.Header("a", (ir.Field("x", 8), ir.Field("kind", 8)))
B = ir.Header("b", (ir.Field("y", 24),))
C = ir.Header("c", (ir.Field("z", 8),))
D = ir.Header("d", (ir.Field("w", 96),))
BASE = ir.Program(
    name="base",
    headers=(A, B, C, D),
    metadata=(),
    parser=(
        extracting("start", ("a",), ir.FieldRef("a", "kind"), (ir.SelectCase.of_value(1, "more"),)),
        extracting("more", ("b", "c")),
    ),
    actions=(ir.Action("act", body=(ir.SetEgress(ir.Const(1)),)),),
    tables=(),
    control=(ir.CallAction("act"),),
    emit=("a", "b", "c", "d"),
)


def program(*body, **changes):
    return dataclasses.replace(BASE, actions=(ir.Action("act", body=body),), **changes)


def text(components, name="program.bpf.c", frame_size=128):
    workload = build_workload(components, frame_size_bytes=frame_size)
    files = {f.path: f.text() for f in Xdp().generate(workload, TrafficPlan(frame_size))}
    assert set(files) == {"program.bpf.c", "baseline.bpf.c", "layout.c"}
    return files[name]


@pytest.mark.parametrize(
    ("name", "components", "file"),
    [
        ("l2fwd.bpf.c", [], "program.bpf.c"),
        ("exact.bpf.c", [("match_action_table", {"entries": 10, "action_data_bytes": 8})], "program.bpf.c"),
        ("exact-layout.c", [("match_action_table", {"entries": 10, "action_data_bytes": 8})], "layout.c"),
        ("ternary.bpf.c", [("match_action_table", {"match_kind": "ternary", "entries": 10})], "program.bpf.c"),
        ("added.bpf.c", [("added_headers", {"headers": 1, "header_bytes": 5})], "program.bpf.c"),
        ("added-baseline.bpf.c", [("added_headers", {"headers": 1, "header_bytes": 5})], "baseline.bpf.c"),
        ("recirculate.bpf.c", [("recirculate", {"times": 2})], "program.bpf.c"),
        ("meter.bpf.c", [("meter", {"executions": 1})], "program.bpf.c"),
        ("large-checksum.bpf.c", [("hash", {"algorithm": "checksum16", "size_bytes": 532})], "program.bpf.c"),
        ("long-key.bpf.c", [("match_action_table", {"entries": 9, "keys": 33, "key_bits": 64})], "program.bpf.c"),
    ],
    ids=str,
)
def test_golden(golden, name, components, file):
    golden(f"xdp/{name}", text(components, file, 1024 if name.startswith(("large", "long")) else 128))


def test_the_same_input_gives_the_same_bytes():
    components = [("hash", {"size_bytes": 12}), ("counter", {"updates": 2})]
    assert text(components) == text(components)


def test_the_number_of_entries_is_not_in_the_text():
    """One build serves all sizes of a table."""
    components = [[("match_action_table", {"entries": n})] for n in (10, 1000)]
    for name in ("program.bpf.c", "baseline.bpf.c", "layout.c"):
        assert text(components[0], name) == text(components[1], name)


def large(components):
    return text(components, frame_size=1518)


def test_every_field_that_varies_has_a_number_of_its_own():
    tables = [("match_action_table", {"entries": n}) for n in (10, 10, 1000)]
    workload = build_workload(tables, frame_size_bytes=128)
    for name in ("program.bpf.c", "baseline.bpf.c"):
        lines = text(tables, name).splitlines()
        drawn = [n for n, line in enumerate(lines) if "key = draw_key(" in line]
        assert [lines[n].strip() for n in drawn] == [f"key = draw_key({n});" for n in range(3)]
        stores = [lines[n + 1] for n in drawn]
        assert len({line.split(",")[0] for line in stores}) == 3, "each is written somewhere else"
    assert len(workload.packets.varying) == 3


def test_the_number_of_fields_that_vary_has_a_limit():
    """The configuration of the measured program has room for so many; tables without maps do not count."""
    tables = [("match_action_table", {"entries": 10, "key_bits": 8, "action_data_bytes": 4})] * (MAX_VARYING + 1)
    with pytest.raises(CapabilityError, match=f"{MAX_VARYING + 1} varying fields"):
        XDP_CAPABILITIES.check(dataclasses.replace(BASE), build_workload(tables, frame_size_bytes=1518).packets)


class TestWhatDoesNotFit:
    """Loops, per-CPU maps and functions of their own appear only where a program is too big without them."""

    @pytest.mark.parametrize("algorithm", ["crc16", "crc32", "checksum16"])
    def test_hashes_are_written_out_up_to_512_bytes(self, algorithm):
        assert "HIDE(i)" not in large([("hash", {"algorithm": algorithm, "size_bytes": 512})])
        loops = large([("hash", {"algorithm": algorithm, "size_bytes": 516})]).count("HIDE(i)")
        assert loops == (1 if algorithm == "checksum16" else 2), "a CRC has one for a header that is absent"
        assert "HIDE(i)" in large([("hash", {"algorithm": algorithm, "size_bytes": 300, "repetitions": 2})])

    def test_checksums_are_written_out_up_to_512_bytes(self):
        for operation in ("verify", "update"):
            sizes = [large([("checksum", {"operation": operation, "size_bytes": n})]) for n in (512, 516)]
            assert ["HIDE(i)" in one for one in sizes] == [False, True]

    @pytest.mark.parametrize("kind", ["exact", "ternary"])
    def test_keys_are_on_the_stack_up_to_256_bytes(self, kind):
        keys = [[("match_action_table", {"match_kind": kind, "entries": 9, "keys": n})] for n in (16, 17)]
        assert ["key_area" in large(components) for components in keys] == [False, True]

    def test_the_control_flow_is_one_function_up_to_512_lookups(self):
        counts = [large([("match_action_table", {"entries": 9, "applications": n})]) for n in (512, 513, 1024)]
        assert [one.count("noinline") for one in counts] == [0, 3, 4]


class TestWhereHeadersAreKept:
    def test_in_the_packet_if_nothing_moves(self):
        layout = header_layout(program(ir.Assign(ir.FieldRef("b", "y"), ir.Const(2))))
        assert (layout.in_place, layout.written_back, layout.scratch_bytes) == (("a", "b", "c"), (), 0)
        assert layout.always == {"a"}
        assert layout.optional == ("b",)

    def test_in_front_of_an_added_header_all_are_copied(self):
        layout = header_layout(program(ir.RemoveHeader("b")))
        assert (layout.written_back, layout.in_place) == (("a", "b"), ("c",))
        layout = header_layout(program(ir.AddHeader("d")))
        assert (layout.written_back, layout.in_place) == (("a", "b", "c", "d"), ())
        assert layout.scratch_bytes == 8 + 8 + 8 + 16

    def test_a_header_in_another_place_is_copied(self):
        layout = header_layout(program(emit=("b", "a", "c")))
        assert (layout.written_back, layout.in_place) == (("b", "a"), ("c",))

    def test_a_header_that_is_not_emitted_is_kept_for_reading(self):
        layout = header_layout(program(emit=("a", "c")))
        assert layout.written_back == ("a", "c")
        assert set(layout.offsets) == {"a", "b", "c", ""}

    def test_a_packet_that_comes_again_must_not_have_changed(self):
        layout = header_layout(program(ir.Assign(ir.FieldRef("a", "x"), ir.Const(2)), ir.Resubmit()))
        assert (layout.written_back, layout.in_place) == (("a",), ("b", "c"))


class TestLayoutOfEntries:
    TABLE = ir.Table(
        "table",
        (ir.Key(ir.FieldRef("a", "x")), ir.Key(ir.FieldRef("b", "y"), "lpm")),
        ("act",),
        "act",
        ir.EntrySet(5, "act", free_bits=9),
    )

    def test_keys_in_whole_bytes(self):
        narrow = dataclasses.replace(BASE, headers=(A, ir.Header("b", (ir.Field("pad", 3), ir.Field("y", 21))), C, D))
        parts = key_parts(narrow, self.TABLE)
        assert [(p.offset_bytes, p.size_bytes, p.width_bits) for p in parts] == [(0, 1, 8), (1, 3, 21)]
        assert key_bytes(narrow, self.TABLE) == 4
        assert free_key_bits(narrow, self.TABLE) == 9
        wide = dataclasses.replace(self.TABLE, entries=ir.EntrySet(5, "act", free_bits=23))
        assert free_key_bits(narrow, wide) == 24 + 2

    def test_action_data_as_c_lays_it_out(self):
        action = ir.Action("act", (ir.Field("a", 9), ir.Field("b", 8), ir.Field("c", 33), ir.Field("d", 1)))
        assert [(p.offset_bytes, p.size_bytes) for p in data_parts(action)] == [(0, 2), (2, 1), (8, 8), (16, 1)]
        assert data_bytes(action) == 24
        assert data_bytes(ir.Action("none")) == 4


class TestRefusals:
    def refused(self, match, whole, frame_size=128):
        values = ir.PacketSpec((ir.HeaderValues("a"),), (), frame_size)
        with pytest.raises(CapabilityError, match=match):
            Xdp().generate(ir.Workload(whole, BASE, values), TrafficPlan(frame_size))

    @pytest.mark.parametrize(
        ("component", "match"),
        [
            (("clone", {"copies": 1}), "xdp has no clone: a program returns one verdict"),
            (("multicast", {"ports": 2}), "xdp has no multicast: the copies .* are made by the driver"),
            (
                ("added_headers", {"headers": 14, "header_bytes": 16}),
                "224 bytes of added headers are more than the 216",
            ),
            (
                ("match_action_table", {"match_kind": "ternary", "entries": 10**7}),
                r"more than the 8,388,608 .*bpf_loop",
            ),
            (("match_action_table", {"entries": 10**9}), "more than the 100,000,000"),
            (
                ("match_action_table", {"entries": 9, "keys": 16, "key_bits": 504}),
                "8,064 exact key bits are more than the 8,000 .*memset",
            ),
            (("hash", {"size_bytes": 1480, "repetitions": 51}), "CRCs of 75,480 bytes .* verifier walks"),
        ],
        ids=lambda value: value[0] if isinstance(value, tuple) else "",
    )
    def test_what_the_kernel_does_not_have(self, component, match):
        workload = build_workload([component], frame_size_bytes=2048)
        with pytest.raises(CapabilityError, match=match):
            Xdp().generate(workload, TrafficPlan(2048))

    def test_more_maps_than_a_program_may_have(self):
        tables = ("match_action_table", {"entries": 1024, "tables": 60})  # as many as the counter has cells
        large([tables, ("counter", {"updates": 1}), ("register", {"accesses": 1})])
        for more in (("meter", {"executions": 1}), ("hash", {"size_bytes": 8}), ("added_headers", {"headers": 1})):
            with pytest.raises(CapabilityError, match=r"65 maps are more than the 64 .*: 60 tables"):
                large([tables, ("counter", {"updates": 1}), ("register", {"accesses": 1}), more])

    def test_frames_of_more_than_a_page(self):
        self.refused("3,524 .*BPF_PROG_TEST_RUN has one page", BASE, 3525)

    def test_parsers_with_loops(self):
        states = (extracting("start", ("a",), ir.FieldRef("a", "kind"), (ir.SelectCase.of_value(1, "start"),)),)
        self.refused("comes back to state start", dataclasses.replace(BASE, parser=states))

    def test_a_header_extracted_twice(self):
        states = (
            extracting("start", ("a", "b"), default="more"),
            extracting("more", ("b",)),
        )
        self.refused("extracts a header twice", dataclasses.replace(BASE, parser=states))

    def test_arithmetic_on_wide_fields(self):
        wide = ir.FieldRef("d", "w")
        self.refused("computes with up to 64 bit", program(ir.Assign(wide, ir.BinaryOp("+", wide, ir.Const(1)))))

    def test_wide_metadata(self):
        self.refused("metadata in registers of 64 bit", program(metadata=(ir.Field("m", 65),)))


def test_of_the_same_keys_the_first_counts_where_it_stands():
    """Entries are tried in order: one that is there again further down must not take the first one's place there."""
    workload = build_workload([("match_action_table", {"match_kind": "ternary", "entries": 3})], frame_size_bytes=64)
    (table,) = workload.program.tables
    data = (0,) * len(workload.program.action(table.actions[0]).parameters)
    first, second = (ir.Entry(tuple(ir.Match.masked(n, 3) for _ in table.keys), table.actions[0], data) for n in (1, 2))
    entries = ir.EntryList((first, second, first))
    program = dataclasses.replace(workload.program, tables=(dataclasses.replace(table, entries=entries),))
    assert [row.entry for row in table_map(program, program.tables[0]).rows] == [0, 1]


HEADERS = {
    "ethernet": (48, 48, 16),
    "ipv4": (4, 4, 8, 16, 16, 3, 13, 8, 8, 16, 32, 32),
    "arp": (16, 16, 8, 8, 16, 48, 32, 48, 32),
    "ipv6": (4, 8, 20, 16, 8, 8, 128, 128),
    "odd": (24, 24, 80, 8, 56, 9, 7),
}


@pytest.mark.parametrize("widths", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("written", [(), ("f0",), ("f1", "f4")], ids=str)
def test_no_access_to_a_field_is_cut_by_the_pieces_in_which_its_header_is_copied(widths, written):
    """A load that two stores have to answer waits for both of them."""
    header = ir.Header("h", tuple(ir.Field(f"f{n}", width) for n, width in enumerate(widths)))
    stored, back = copied_pieces(header), written_pieces(header, written)
    for pieces in (stored, back):
        assert [at for first, size in pieces for at in range(first, first + size)] == [*range(header.size_bytes)]
    for loads, stores in (
        (field_pieces(header), stored),
        (field_pieces(header, written), back),
        (back, [*stored, *field_pieces(header, written)]),
    ):
        for first, size in loads:
            assert sum(at < first + size and first < at + more for at, more in stores) == 1 or any(
                at <= first and first + size <= at + more for at, more in stores
            )


def test_pieces_that_are_copied_as_one_are_joined():
    assert list(joined_pieces([(0, 4), (4, 8), (12, 2)])) == [(0, 4), (4, 10)]
    assert list(joined_pieces([(0, 8), (8, 8), (16, 4)])) == [(0, 20)]
    assert not list(joined_pieces(copied_pieces(ir.Header("empty", ()))))
