"""Memory of predicted programs: measured, scaled, by the layouts of targets, or not known."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.cost_models import TABLE, small_model
from support.pricing import lookup, router

from p4perf.evaluation.prediction.answer import Conditions, predict
from p4perf.evaluation.prediction.library import is_of_this_machine, open_models, parse_cost_model, reference_model
from p4perf.evaluation.prediction.memory import MemoryModel
from p4perf.evaluation.prediction.record import memory_records, record, summary
from p4perf.models.program import Edge, Node, ProgramGraph, construct
from p4perf.models.program.costs_storage import cost_model_json
from p4perf.models.program.memory import MeasuredTable
from p4perf.programs.component import build_workload
from p4perf.records import as_rows
from p4perf.targets.dpdk_c import program_bytes
from p4perf.targets.xdp import table_bytes


def graph_of(*components):
    names = [f"step{n}" for n in range(len(components))]
    nodes = {
        name: Node(name, "block", (construct("component", "", name=what, **sizes),), (Edge("", after),))
        for name, after, (what, sizes) in zip(names, [*names[1:], "sent"], components, strict=True)
    }
    return ProgramGraph("composed", {**nodes, "sent": Node("sent", "end")}, names[0], "p4perf")


def sized(target="dpdk-c"):
    """The small model, with tables of 1 kB an entry."""
    return small_model(target, memory_bytes=1e3)


TABLES = (("match_action_table", {"entries": 1000}), ("match_action_table", {"entries": 300}))


def test_measured_tables():
    found = MemoryModel(sized())(graph_of(*TABLES, ("parser_headers", {"headers": 4})))
    first, second = found.items
    assert (first.size_bytes, first.basis) == (1e6, "measured")
    assert second.basis == "interpolated"
    assert 250e3 < second.size_bytes < 350e3
    assert found.warnings == ()
    assert found.size_bytes == sum(item.size_bytes for item in found.items)


def test_what_was_not_measured_is_that_of_the_layout():
    components = (("match_action_table", {"entries": 50_000}), ("counter", {"updates": 1, "size": 1024}))
    program = build_workload(components, frame_size_bytes=512).program
    found = MemoryModel(small_model("dpdk-c"))(graph_of(*components))
    assert {item.basis for item in found.items} == {"formula"}
    assert 0.99 * program_bytes(program) < found.size_bytes < program_bytes(program), "more is set aside than used"
    assert "DPDK 22.11" in found.items[0].source


def test_every_target_has_its_own_layout():
    components = (("match_action_table", {"entries": 50_000}),)
    program = build_workload(components, frame_size_bytes=512).program
    sizes = {
        target: MemoryModel(small_model(target))(graph_of(*components)).size_bytes
        for target in ("dpdk-c", "dpdk-swx", "dpdk-swx:interpreter", "xdp", "t4p4s")
    }
    assert sizes["xdp"] == pytest.approx(table_bytes(program, program.tables[0]), rel=0.001)
    assert sizes["dpdk-swx"] == sizes["dpdk-swx:interpreter"]
    assert len(set(sizes.values())) == 4
    assert all(50_000 * 80 < size < 50_000 * 400 for name, size in sizes.items() if name != "t4p4s")


def test_of_a_target_without_layouts_nothing_is_known():
    found = MemoryModel(small_model("nowhere"))(graph_of(*TABLES))
    assert found.size_bytes is None
    assert any("table_exact" in warning for warning in found.warnings)


def test_counters_of_xdp_are_not_known():
    found = MemoryModel(small_model("xdp"))(graph_of(*TABLES, ("counter", {"updates": 1, "size": 1024})))
    assert [item.size_bytes is None for item in found.items] == [False, False, True]
    assert any("without array" in warning for warning in found.warnings)


def test_a_trie_of_xdp_is_more_than_what_the_kernel_accounts_for():
    entry = MeasuredTable({**TABLE, "entries": 1000, "match_kind": "lpm", "key_bits": 32}, 92e3)
    model = replace(sized("xdp"), tables=(entry,))
    item, *_ = MemoryModel(model)(
        graph_of(("match_action_table", {"entries": 1000, "match_kind": "lpm", "key_bits": 32}))
    ).items
    assert item.basis == "formula"
    assert item.size_bytes > 2 * 92e3


class TestOtherPrograms:
    def test_a_table_counts_once_however_often_it_is_met(self):
        twice = router()
        again = replace(twice.nodes["ingress.fib"], name="ingress.fib@2")
        whole = replace(twice, nodes={**twice.nodes, "ingress.fib@2": again})
        model = MemoryModel(small_model("dpdk-c"))
        assert model(whole).size_bytes == model(twice).size_bytes > 1000 * 64

    @pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
    def test_kinds_of_tables(self, kind):
        graph = router()
        node = replace(graph.nodes["ingress.fib"], constructs=(lookup(1000, match_kind=kind, action_data_bytes=0),))
        found = MemoryModel(small_model("dpdk-c"))(replace(graph, nodes={**graph.nodes, "ingress.fib": node}))
        (item,) = found.items
        assert item.what == "table fib"
        assert item.size_bytes > (4 << 24 if kind == "lpm" else 8000)

    def test_arrays(self):
        register = construct("register read", "action count", cells=1024, bits=32)
        node = Node("a", "block", (register, register), (Edge("", "sent"),))
        graph = ProgramGraph("r", {"a": node, "sent": Node("sent", "end")}, "a", "test")
        (item,) = MemoryModel(small_model("dpdk-c"))(graph).items
        assert (item.what, item.size_bytes) == ("action count: register of 1024", 8192)


def test_the_answer_has_it():
    model = parse_cost_model(cost_model_json(sized()), "file")
    found = predict(graph_of(*TABLES), model, Conditions(offered=None))
    total = found.memory.size_bytes
    assert summary(found).memory_bytes == record(found).memory_bytes == total
    rows = memory_records(found)
    assert [row.basis for row in rows] == ["measured", "interpolated"]
    assert sum(row.bytes for row in rows) == total
    assert as_rows(record(found).memory) == as_rows(rows)


def test_components_cost_what_they_are_made_of():
    model = parse_cost_model(cost_model_json(small_model("dpdk-c")), "file")
    sizes = {"entries": 1000, "match_kind": "lpm", "key_bits": 32, "action_data_bytes": 4}
    found = predict(graph_of(TABLES[0], ("match_action_table", sizes)), model, Conditions(offered=None))
    exact, lpm = (line.charge for line in found.expected.lines)
    assert exact.cycles.value == pytest.approx(1 + 2 + 4 + 60 + 18 + 1)
    # A header (1 + 2 + 4), the lookup (20), the port (1): an action with one word does nothing else.
    assert lpm.cycles.value == pytest.approx(28.0)
    assert lpm.basis == "measured"
    assert lpm.cycles.low < 28 < lpm.cycles.high
    assert "flat/lookup lpm" in lpm.source
    assert not found.open_above
    unknown = predict(graph_of(("random", {})), model, Conditions(offered=None))
    assert unknown.open_above, "it has no price, nor has what it is made of"


@pytest.mark.parametrize(
    ("ours", "called"),
    [
        (("test", "6-1-2", "1048576"), "test"),
        (("test", "6-1-2", "1572864"), "test"),
        (("test", "6-1-2", "700000"), "test"),
        (("test", "6-1-2", "1600000"), "test, family, model and stepping 6-1-2 with 1.53 MiB of L3 cache, not 1 MiB"),
        (("test", "6-1-2", "600000"), "test, family, model and stepping 6-1-2 with 0.572 MiB of L3 cache, not 1 MiB"),
        (("test", "6-207-2", "1048576"), "emerald-rapids"),
        (("test", "6-999-1", "1048576"), "test, family, model and stepping 6-999-1"),
        (("test", "6-207-2", "2097152"), "emerald-rapids with 2 MiB of L3 cache, not 1 MiB"),
        (("other", "", ""), "other"),
    ],
)
def test_another_machine_is_called_as_people_do(monkeypatch, ours, called):
    """The model is of a machine of its name, and says its processor and cache."""
    monkeypatch.setattr("p4perf.evaluation.prediction.library.this_machine", lambda: ours)
    model = small_model()
    known = {**model.machine, "cpu_id": "6-1-2", "cache_l3_bytes": "1048576"}
    found = parse_cost_model(cost_model_json(replace(model, machine=known)), "there.json")
    assert (found.machine, found.here, found.elsewhere) == ("test", called, called != "test")
    assert is_of_this_machine(replace(model, machine=known)) is not found.elsewhere


def test_a_model_of_this_machine_hides_none_that_ships_from_the_next_session(tmp_path, monkeypatch):
    """A learnt model is called as its processor is, and so is the one that ships for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("p4perf.evaluation.prediction.library.this_machine", lambda: ("epyc", "26-2-1", "33554432"))
    known = reference_model("dpdk-c")
    assert known is not None
    Path("models").mkdir()
    Path("models/mine.json").write_text(cost_model_json(replace(known, baseline=1.0)))
    (mine,) = open_models([], ["dpdk-c"])
    assert (mine.name, mine.origin) == ("dpdk-c@turin", "models/mine.json")
    assert reference_model("dpdk-c") == known
    (shipped,) = open_models(["dpdk-c@turin-shipped"])
    assert (shipped.origin, shipped.pricing.baseline) == ("reference", known.baseline)
    assert (shipped.here, shipped.elsewhere, mine.elsewhere) == ("turin", False, False)
