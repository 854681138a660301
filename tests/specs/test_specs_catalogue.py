from importlib.resources import files
from itertools import pairwise

import pytest
from _drawn_programs import FRAME_BYTES, DrawnKinds, draw_programs

from p4perf.errors import SpecError
from p4perf.experiment.planning import point_workload
from p4perf.plugins import plugin_names
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import frame
from p4perf.specs import load_experiment
from p4perf.specs.loader import BASE, catalogue_names, list_catalogue, read_catalogue

POINTS = {
    "action/arithmetic": 17,
    "action/conditionals": 17,
    "action/header-field-writes": 17,
    "action/header-word-writes": 17,
    "action/metadata-word-writes": 8,
    "action/metadata-writes": 13,
    "action/nested-conditionals": 17,
    "baseline/l2fwd": 6,
    "baseline/offered-load": 10,
    "demo/exact-entries": 33,
    "deparser/added-header-size": 21,
    "deparser/headers-added": 22,
    "deparser/headers-removed": 21,
    "extern/checksum-update": 20,
    "extern/checksum-verify": 20,
    "extern/counter": 17,
    "extern/hash-checksum16": 20,
    "extern/hash-crc16": 20,
    "extern/hash-crc32": 20,
    "extern/meter": 17,
    "extern/random": 17,
    "extern/register-read": 17,
    "extern/register-write": 17,
    "load/bursts": 10,
    "load/packet-size": 7,
    "load/rate": 14,
    "mat/action-data": 12,
    "mat/exact-entries": 65,
    "mat/exact-keys": 18,
    "mat/exact-tables": 23,
    "mat/hit-ratio": 21,
    "mat/key-width": 32,
    "mat/locality": 20,
    "mat/lpm-entries": 64,
    "mat/lpm-key-width": 7,
    "mat/ternary-key-width": 8,
    "mat/lpm-tables": 10,
    "mat/same-table": 15,
    "mat/ternary-entries": 37,
    "mat/ternary-keys": 18,
    "mat/ternary-tables": 23,
    "parser/header-size": 32,
    "parser/headers": 11,
    "parser/parsed-fields": 25,
    "parser/select-branches": 18,
    "parser/select-depth": 16,
    "path/clone": 9,
    "path/multicast": 8,
    "path/recirculate": 11,
    "path/resubmit": 11,
}

TRAFFIC_ONLY = {
    "baseline/l2fwd",
    "baseline/offered-load",
    "load/bursts",
    "load/packet-size",
    "load/rate",
    "mat/locality",
}
"""What is swept here is the traffic, not the program."""

ONE_WORKLOAD = {"baseline/offered-load", "load/bursts", "load/rate", "mat/hit-ratio", "mat/locality"}
"""Not even the size of the packets changes."""

OPERATORS = {"operator/accuracy", "operator/all", "operator/pairs", "operator/paper"}

VIRTUAL_IO = {f"vio/{name}" for name in ("base", "batch", "descriptor-size", "factors", "header-size", "queue")}

COMPOSED = {
    "composition/components": 52,
    "composition/constructs": 17,
    "composition/context": 14,
    "composition/more-components": 88,
    "composition/more-programs": 60,
    "composition/programs": 32,
}
"""What cost models are learnt from: every point is a program, and no variable is swept."""

FUNCTIONS = {"composition/functions": 14, "composition/large-functions": 12}
"""Whole programs that were read."""

OTHERS_OWN: set[str] = {"baseline/cpu-frequency", *FUNCTIONS, *OPERATORS, *VIRTUAL_IO, *COMPOSED}
"""Experiments whose points are looked at elsewhere."""


def test_the_experiments():
    assert {entry.name for entry in list_catalogue()} - OTHERS_OWN == set(POINTS)
    assert all(entry.title for entry in list_catalogue())
    titles = [entry.title for entry in list_catalogue()]
    assert len(set(titles)) == len(titles)


def test_specs_to_extend_are_no_experiments():
    assert "base/common" in catalogue_names()
    assert not any(name.startswith(BASE) for name in POINTS)


@pytest.mark.parametrize("name", catalogue_names())
def test_every_file_is_named_as_it_lies_and_points_editors_to_the_schema(name):
    assert read_catalogue(name).child("name").content == name
    text = files("p4perf.specs").joinpath("catalogue", *f"{name}.yaml".split("/")).read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../../schemas/experiment.json\n#\n# ")


@pytest.mark.parametrize("name", POINTS)
def test_every_point_is_a_program_of_its_own_that_sends_its_packets(name):
    experiment = load_experiment(name)
    assert len(experiment.points) == POINTS[name]
    model = experiment.spec.model
    assert model is not None
    xs = [point.values[model.x] for point in experiment.points]
    assert all(a < b for a, b in pairwise(xs))
    workloads = [point_workload(experiment, point)[0] for point in experiment.points]
    distinct = {(w.program, w.packets) for w in workloads}
    assert len(distinct) == (1 if name in ONE_WORKLOAD else len(workloads))
    assert len({w.baseline for w in workloads}) == 1
    if name not in TRAFFIC_ONLY:
        assert len({point.frame_size_bytes for point in experiment.points}) == 1
    for workload in (workloads[0], workloads[len(workloads) // 2], workloads[-1]):
        packet = frame(workload.program, workload.packets)
        assert len(packet) == workload.packets.frame_size_bytes - 4
        assert Interpreter(workload.program).run(packet).sent


@pytest.mark.parametrize("name", COMPOSED)
def test_every_composed_program_sends_its_packets(name):
    experiment = load_experiment(name)
    assert len(experiment.points) == COMPOSED[name]
    workloads = [point_workload(experiment, point)[0] for point in experiment.points]
    assert len({w.program for w in workloads}) == len(workloads)
    assert {point.frame_size_bytes for point in experiment.points} == {FRAME_BYTES}
    for workload in workloads[::5]:
        # Each table has keys of its own; some of the drawn components have several keys, or indices.
        fields, tables = len({v.field for v in workload.packets.varying}), len(workload.program.tables)
        assert fields >= bool(tables) if name == "composition/more-components" else fields == tables
        assert Interpreter(workload.program).run(frame(workload.program, workload.packets)).sent


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_network_functions_are_programs_that_send_packets(name):
    experiment = load_experiment(name)
    assert len(experiment.points) == FUNCTIONS[name]
    for workload in (point_workload(experiment, point)[0] for point in experiment.points[::6]):
        assert workload.source is not None
        assert any(Interpreter(workload.program).run(frame).sent for frame in workload.frames)


def test_the_composed_programs_are_those_that_were_drawn():
    experiment = load_experiment("composition/programs")
    drawn = draw_programs(2002, 60, DrawnKinds(components=(3, 7), prefixes=0.5))
    prefixes = [each for each in drawn if any("match_kind" in parameters for _, parameters in each)][:6]
    found = tuple(point.components for point in experiment.points)
    assert found == (*draw_programs(2001, len(found) - len(prefixes)), *prefixes)


def test_tables_of_prefixes_are_drawn_only_where_they_are_wanted():
    def kinds(**more):
        tables = [p for c in draw_programs(3, 60, DrawnKinds(**more)) for n, p in c if n == "match_action_table"]
        return {parameters.get("match_kind", "exact") for parameters in tables}

    assert kinds() == {"exact"}
    assert kinds(prefixes=1.0) == {"lpm"}
    assert kinds(prefixes=0.5) == {"exact", "lpm"}


def test_every_component_has_an_experiment():
    experiments = [load_experiment(spec) for spec in {*POINTS, *OPERATORS, *VIRTUAL_IO}]
    used = {name for experiment in experiments for point in experiment.points for name, _ in point.components}
    used |= {experiment.spec.program.baseline for experiment in experiments}
    assert used == set(plugin_names("p4perf.components")) - {"fake"}


PUBLISHED_TABLES = [1, 2, 3, 4, 6, 8, 10, 16, 20, 32, 50, 64, 100, 128, 150, 200, 256, 300, 400, 512, 700, 900, 1024]
PUBLISHED_HEADERS = [*range(10), *range(10, 150, 10)]
PUBLISHED_ENTRIES = [m * 10**k for k in range(7) for m in range(1, 10)] + [10_000_000, 20_000_000]
PUBLISHED_WRITES = [0, 1, 2, 4, 8, 16, 32, 64, 128, 200, 256, 350, 470]
PUBLISHED_KEYS = [1, 2, 3, 4, 6, 8, 10, 16, 20, 32, 50, 64, 100, 128, 150, 200, 256, 470]
PUBLISHED_FIELDS = [0, 1, 2, 4, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 150, 200, 256, 300, 350, 400]


@pytest.mark.parametrize(
    ("name", "variable", "published"),
    [
        ("mat/exact-entries", "entries", PUBLISHED_ENTRIES),
        ("mat/lpm-entries", "entries", PUBLISHED_ENTRIES[:-1]),
        ("mat/ternary-entries", "entries", [n for n in PUBLISHED_ENTRIES if n <= 10_000]),
        ("mat/exact-tables", "tables", PUBLISHED_TABLES),
        ("mat/ternary-tables", "tables", PUBLISHED_TABLES),
        ("mat/lpm-tables", "tables", [n for n in PUBLISHED_TABLES if n <= 32]),
        ("mat/same-table", "applications", [1, 2, 3, 4, 6, 8, 10, 16, 20, 32, 64, 128, 256, 512, 1024]),
        ("mat/exact-keys", "keys", PUBLISHED_KEYS),
        ("mat/ternary-keys", "keys", PUBLISHED_KEYS),
        ("action/metadata-writes", "writes", PUBLISHED_WRITES),
        ("parser/parsed-fields", "fields", [*PUBLISHED_FIELDS, 470]),
        ("deparser/headers-added", "headers", [n for n in PUBLISHED_HEADERS if n <= 120]),
        ("deparser/added-header-size", "header_bytes", [n for n in PUBLISHED_HEADERS if 1 <= n <= 120]),
        ("deparser/headers-removed", "removed", [n for n in PUBLISHED_HEADERS if n <= 110]),
    ],
)
def test_the_published_sweeps(name, variable, published):
    experiment = load_experiment(name)
    assert [p.values[variable] for p in experiment.points] == published
    assert experiment.spec.source is not None


def test_the_published_loads():
    loads = [point.traffic.offered_load.fraction_of_max for point in load_experiment("baseline/offered-load").points]
    assert loads == [(n / 100,) for n in range(1, 11)]


def test_the_exact_table_of_the_paper():
    name, parameters = load_experiment("mat/exact-entries").points[-1].components[0]
    assert name == "match_action_table"
    assert parameters == {
        "match_kind": "exact",
        "entries": 20_000_000,
        "key_bits": 128,
        "action_data_bytes": 64,
        "hit_ratio": 1.0,
    }


def test_traffic_that_is_swept_reaches_the_generators():
    experiment = load_experiment("mat/locality")
    traffics = [point_workload(experiment, point)[1] for point in experiment.points]
    assert [t.zipf_s for t in traffics] == pytest.approx([n / 10 for n in range(1, 21)])
    assert {t.distribution for t in traffics} == {"zipf"}
    experiment = load_experiment("mat/hit-ratio")
    ratios = [point_workload(experiment, point)[1].hit_ratio for point in experiment.points]
    assert ratios == pytest.approx([n / 20 for n in range(21)])


def test_an_unknown_name_has_the_nearest():
    with pytest.raises(SpecError, match="unknown experiment mat/exact-entires") as caught:
        read_catalogue("mat/exact-entires")
    assert caught.value.hint == "did you mean mat/exact-entries?"
