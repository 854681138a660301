"""Every component: its contract, its bounds, and that it goes together with the others."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from p4perf.errors import CapabilityError, SpecError
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.component import Component, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import frame, headers_size_bytes

NAMES = [name for name in plugin_names("p4perf.components") if name != "fake"]

MINIMAL: dict[str, dict[str, Any]] = {
    "l2fwd": {},
    "parser_headers": {"headers": 2},
    "parsed_fields": {"fields": 3},
    "parser_branches": {"branches": 3},
    "added_headers": {"headers": 2},
    "removed_headers": {"removed": 2},
    "match_action_table": {"entries": 3},
    "header_field_writes": {"writes": 2},
    "metadata_writes": {"writes": 2},
    "arithmetic": {"operations": 2},
    "conditionals": {"conditionals": 2},
    "hash": {"size_bytes": 8},
    "checksum": {"size_bytes": 8},
    "counter": {"updates": 2},
    "meter": {"executions": 2},
    "register": {"accesses": 2},
    "random": {"numbers": 2},
    "recirculate": {"times": 2},
    "resubmit": {"times": 2},
    "clone": {"copies": 2},
    "multicast": {"ports": 2},
    "operator": {"operator": "htons"},
    "l2fwd_result": {},
    "l2fwd_serial": {},
    "vio": {},
}


def parameters_of(name: str) -> dict[str, Any]:
    return dict(load_plugin("p4perf.components", name).Parameters.model_fields)


def limits(field: Any) -> dict[str, Any]:
    return {key: getattr(m, key) for m in field.metadata for key in ("ge", "le", "multiple_of") if hasattr(m, key)}


def test_every_component_is_here() -> None:
    assert set(MINIMAL) == set(NAMES)


@pytest.mark.parametrize("name", plugin_names("p4perf.components"))
def test_every_component_keeps_the_contract(name: str) -> None:
    component = load_plugin("p4perf.components", name)()
    assert isinstance(component, Component)
    assert component.name == name
    assert component.summary
    for key, info in component.Parameters.model_fields.items():
        assert info.description, f"{name}.{key} has no description"


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_say_what_is_scaled_and_held(name: str) -> None:
    text = load_plugin("p4perf.components", name).__doc__
    assert name == "l2fwd" or ("Scaled: " in text and ("Held: " in text or "hold" in text))


@pytest.mark.parametrize("name", NAMES)
def test_every_component_sends_its_packets(name: str) -> None:
    workload = build_workload([(name, MINIMAL[name])], frame_size_bytes=256)
    for drawn in range(min((v.count for v in workload.packets.varying), default=1)):
        assert Interpreter(workload.program).run(frame(workload.program, workload.packets, drawn)).sent


def out_of_bounds() -> list[Any]:
    cases = []
    for name in NAMES:
        for key, field in parameters_of(name).items():
            found = limits(field)
            wrong: list[Any] = [3 if field.annotation is str else "3", None, [1]]
            if found:
                wrong += [found["ge"] - 1, found["le"] + (found.get("multiple_of") or 1), 10**30]
                wrong += [found["ge"] + 1] if "multiple_of" in found else []
            if choices := typing.get_args(field.annotation):
                wrong += [value for value in ("nothing", 7, 0) if value not in choices]
            if field.annotation is int:
                wrong += [2.5, True]
            if field.annotation is bool:
                wrong += [1, "true"]
            cases += [pytest.param(name, key, value, id=f"{name}.{key}={value}") for value in wrong]
    return cases


@pytest.mark.parametrize(("name", "key", "value"), out_of_bounds())
def test_a_parameter_out_of_bounds_is_named(name: str, key: str, value: object) -> None:
    with pytest.raises(SpecError) as refused:
        build_workload([(name, MINIMAL[name] | {key: value})], frame_size_bytes=1518)
    assert refused.value.key == f"program.parameters.{key}"
    assert f"parameters of {name}" in (refused.value.hint or "")


@pytest.mark.parametrize("name", NAMES)
def test_unknown_and_missing_parameters_are_named(name: str) -> None:
    with pytest.raises(SpecError) as refused:
        build_workload([(name, MINIMAL[name] | {"colour": 2})], frame_size_bytes=256)
    assert refused.value.key == "program.parameters.colour"
    for key, field in parameters_of(name).items():
        if field.is_required():
            rest = {k: v for k, v in MINIMAL[name].items() if k != key}
            with pytest.raises(SpecError) as refused:
                build_workload([(name, rest)], frame_size_bytes=256)
            assert refused.value.key == f"program.parameters.{key}"


NO_SHOW = {
    *(("match_action_table", key) for key in ("hit_ratio", "free_bits", "distribution")),
    ("checksum", "hit_ratio"),
}
"""These show in the traffic, or with another kind of match."""


@pytest.mark.parametrize(("name", "key"), [(n, k) for n in NAMES for k in parameters_of(n) if (n, k) not in NO_SHOW])
def test_every_parameter_changes_the_program(name: str, key: str) -> None:
    field = parameters_of(name)[key]
    now = MINIMAL[name].get(key, field.default)
    if field.annotation is bool:
        others = [not now]
    elif choices := typing.get_args(field.annotation):
        others = [choice for choice in choices if choice != now]
    elif field.annotation is float:
        others = [1.0]
    elif field.annotation is str:
        others = ["htons_words"] if key == "operator" else ["int x;"]
    else:
        others = [now - 1 if key == "constant" else 2 * now if now else limits(field).get("multiple_of") or 1]
    first = build_workload([(name, MINIMAL[name])], frame_size_bytes=512)
    for other in others:
        more = {
            "tables": {"entries": 3, "key_bits": 256},
            "constant": {"operation": "set"},
            "code": {"operator": "mine", "code": "int y;"},
        }.get(key, {})
        if key in ("constant", "code"):
            first = build_workload([(name, MINIMAL[name] | more)], frame_size_bytes=512)
        second = build_workload([(name, MINIMAL[name] | more | {key: other})], frame_size_bytes=512)
        assert second.program != first.program, f"{key}={other}"


COMPOSABLE = [name for name in NAMES if name not in ("parser_headers", "parser_branches", "vio")]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(COMPOSABLE), max_size=6), st.booleans())
def test_components_compose_in_any_order(names: list[str], branches: bool) -> None:
    # What comes back with other headers than it came with is another packet to the parser.
    assume("recirculate" not in names or not {"removed_headers", "added_headers"} & set(names))
    chosen = [*names, *(["parser_branches"] if branches else [])]
    workload = build_workload([(n, MINIMAL[n]) for n in chosen], frame_size_bytes=1518)
    program = workload.program
    for group in (
        program.headers,
        program.actions,
        program.tables,
        program.metadata,
        program.parser,
        program.counters,
        program.meters,
        program.registers,
    ):
        group_names = [item.name for item in group]
        assert len(set(group_names)) == len(group_names)
    assert set(program.emit) == {h.name for h in program.headers}
    assert all(h.width_bits % 8 == 0 for h in program.headers)
    outcome = Interpreter(program).run(frame(program, workload.packets))
    assert outcome.sent


def test_what_cannot_follow_is_refused() -> None:
    with pytest.raises(CapabilityError, match="branches of a parser") as refused:
        build_workload([("parser_branches", {"branches": 2}), ("hash", {"size_bytes": 4})], frame_size_bytes=512)
    assert "last" in (refused.value.hint or "")


def test_a_chain_of_headers_follows_whatever_is_before() -> None:
    components = [("parser_headers", {"headers": 2}), ("hash", {"size_bytes": 8}), ("parser_headers", {"headers": 2})]
    workload = build_workload(components, frame_size_bytes=128)
    names = [header.name for header in workload.program.headers]
    assert names == ["ethernet", "chain_0", "chain_1", "hashed", "chain_0_1", "chain_1_1"]
    states = {state.name: state for state in workload.program.parser}
    assert states["parse_hashed"].select is None
    assert states["parse_hashed"].default == "parse_chain_0_1"
    assert states["parse_chain_0_1"].cases[0].next_state == "parse_chain_1_1"
    data = frame(workload.program, workload.packets)
    (sent,) = Interpreter(workload.program).run(data).sent
    assert sent.data[14:22] == data[14:22]


@pytest.mark.parametrize("name", ["parser_headers", "parsed_fields", "parser_branches"])
def test_zero_of_a_component_is_the_baseline(name: str) -> None:
    parameters = {"branches": 3, "depth": 0} if name == "parser_branches" else {next(iter(MINIMAL[name])): 0}
    workload = build_workload([(name, parameters)], frame_size_bytes=64)
    assert workload.program.headers == workload.baseline.headers
    assert workload.program.parser == workload.baseline.parser
    assert workload.program.control == workload.baseline.control


@pytest.mark.parametrize("name", NAMES)
def test_headers_that_do_not_fit_into_the_frame_are_refused(name: str) -> None:
    workload = build_workload([(name, MINIMAL[name])], frame_size_bytes=64)
    needed = headers_size_bytes(workload.program, workload.packets)
    fcs_bytes = 0 if workload.packets.keeps_fcs else 4
    small = build_workload([(name, MINIMAL[name])], frame_size_bytes=needed + fcs_bytes - 1)
    with pytest.raises(CapabilityError, match=f"the headers take {needed} B"):
        frame(small.program, small.packets)
