from __future__ import annotations

import pytest

from p4perf.errors import CapabilityError, SpecError
from p4perf.generators.base import Component
from p4perf.generators.packets import headers_size_bytes
from p4perf.generators.program import Const
from p4perf.generators.workload import build_workload
from p4perf.plugins import load_plugin, plugin_names


@pytest.mark.parametrize("name", plugin_names("p4perf.components"))
def test_every_component_keeps_the_contract(name: str) -> None:
    component = load_plugin("p4perf.components", name)()
    assert isinstance(component, Component)
    assert component.name == name
    assert component.summary
    for key, info in component.Parameters.model_fields.items():
        assert info.description, f"{name}.{key} has no description"


@pytest.mark.parametrize(("headers", "bits"), [(0, 32), (1, 16), (64, 1024), (3, 80)])
def test_parser_headers_scale_states_and_bytes(headers: int, bits: int) -> None:
    workload = build_workload([("parser_headers", {"headers": headers, "header_bits": bits})], frame_size_bytes=1518)
    assert len(workload.program.parser) == headers + 1
    assert headers_size_bytes(workload.program, workload.packets) == 14 + headers * bits // 8
    assert all(h.width_bits == bits for h in workload.program.headers[1:])


def test_zero_of_a_component_is_the_baseline() -> None:
    workload = build_workload([("parser_headers", {"headers": 0})], frame_size_bytes=64)
    assert workload.program.headers == workload.baseline.headers
    assert workload.program.control == workload.baseline.control


def test_parser_headers_come_first() -> None:
    with pytest.raises(CapabilityError, match="first component"):
        build_workload(
            [("header_field_writes", {"writes": 1}), ("parser_headers", {"headers": 1})], frame_size_bytes=512
        )


@pytest.mark.parametrize("size", [4, 8, 64, 1024])
def test_a_table_has_the_action_data_that_was_asked_for(size: int) -> None:
    workload = build_workload([("match_action_table", {"entries": 5, "action_data_bytes": size})], frame_size_bytes=64)
    table = workload.program.tables[0]
    assert workload.program.action(table.entries.action).data_bits == size * 8
    assert (table.entries.count, workload.program.key_bits(table)) == (5, 128)


@pytest.mark.parametrize(("hit_ratio", "entries", "fits"), [(1.0, 256, True), (1.0, 257, False), (0.5, 129, False)])
def test_a_key_has_to_have_enough_values(hit_ratio: float, entries: int, fits: bool) -> None:
    parameters = {"entries": entries, "key_bits": 8, "hit_ratio": hit_ratio}
    if fits:
        build_workload([("match_action_table", parameters)], frame_size_bytes=64)
    else:
        with pytest.raises(CapabilityError, match="8 bit has 256 values"):
            build_workload([("match_action_table", parameters)], frame_size_bytes=64)


def test_two_tables_in_one_program_have_names_of_their_own() -> None:
    table = ("match_action_table", {"entries": 2, "key_bits": 8, "action_data_bytes": 8})
    program = build_workload([table, table], frame_size_bytes=64).program
    assert [t.name for t in program.tables] == ["table_exact", "table_exact_1"]
    assert [h.name for h in program.headers] == ["ethernet", "bench", "bench_1"]


def test_writes_write_the_fields_in_order() -> None:
    workload = build_workload(
        [("header_field_writes", {"writes": 3, "fields": 5, "operation": "set"})], frame_size_bytes=64
    )
    body = workload.program.action("write_fields").body
    assert [(s.destination.field, s.value) for s in body] == [(f"f{n}", Const(255)) for n in range(3)]  # type: ignore[union-attr]
    with pytest.raises(CapabilityError, match="6 writes"):
        build_workload([("header_field_writes", {"writes": 6, "fields": 5})], frame_size_bytes=64)


@pytest.mark.parametrize(
    ("name", "parameters", "key"),
    [
        ("parser_headers", {"headers": 65}, "headers"),
        ("parser_headers", {"headers": "3"}, "headers"),
        ("parser_headers", {"headers": 1, "colour": 2}, "colour"),
        ("match_action_table", {}, "entries"),
        ("match_action_table", {"entries": 1, "key_bits": 12}, "key_bits"),
    ],
)
def test_wrong_parameters_are_named(name: str, parameters: dict[str, object], key: str) -> None:
    with pytest.raises(SpecError) as refused:
        build_workload([(name, parameters)], frame_size_bytes=64)
    assert refused.value.key == f"program.parameters.{key}"
    assert f"parameters of {name}" in (refused.value.hint or "")
