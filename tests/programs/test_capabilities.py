"""What a program uses, how much of it, and what a table says about that."""

import pytest

from p4perf.errors import CapabilityError
from p4perf.experiment.planning import point_workload
from p4perf.programs.capabilities import (
    CONSTRUCTS,
    NOT_OF_THE_LANGUAGE,
    OF_OWN_PROGRAMS,
    Capabilities,
    Limit,
    both,
    constructs,
    quantities,
)
from p4perf.specs import load_experiment


def workload(name, **values):
    """Program, packets and traffic of the last point of an experiment, or of one with other values."""
    experiment = load_experiment(name, overrides=[(key, str(value)) for key, value in values.items()])
    made, traffic = point_workload(experiment, experiment.points[-1])
    return made.program, made.packets, traffic


USES = {
    "mat/exact-entries": "exact",
    "mat/lpm-tables": "lpm",
    "mat/ternary-tables": "ternary",
    "mat/same-table": "repeated table",
    "action/conditionals": "conditional",
    "deparser/headers-added": "added header",
    "deparser/headers-removed": "removed header",
    "extern/hash-crc16": "hash crc16",
    "extern/hash-crc32": "hash crc32",
    "extern/hash-checksum16": "hash checksum16",
    "extern/checksum-verify": "checksum verify",
    "extern/checksum-update": "checksum update",
    "extern/counter": "counter",
    "extern/meter": "meter",
    "extern/register-read": "register read",
    "extern/register-write": "register write",
    "extern/random": "random",
    "path/recirculate": "recirculate",
    "path/resubmit": "resubmit",
    "path/clone": "clone",
    "path/multicast": "multicast",
    "operator/all": "operator",
    "operator/accuracy": "fence",
    "vio/base": "virtual I/O",
}


@pytest.mark.parametrize(("name", "construct"), USES.items())
def test_constructs_of_the_catalogue(name, construct):
    program, packets, traffic = workload(name)
    assert construct in constructs(program)
    table = Capabilities("somebody", missing={construct: "because"}, offers=frozenset(NOT_OF_THE_LANGUAGE))
    assert table.refusal(program, packets, traffic) == f"somebody has no {construct}: because"
    with pytest.raises(CapabilityError, match="because"):
        table.check(program, packets, traffic)


def test_every_construct_is_in_the_catalogue():
    assert {*USES.values(), "offered load"} == set(CONSTRUCTS) - set(OF_OWN_PROGRAMS)


def test_the_baseline_uses_nothing():
    program, packets, traffic = workload("baseline/l2fwd")
    assert constructs(program) == ()
    table = Capabilities("somebody", missing=dict.fromkeys(CONSTRUCTS, "because"))
    assert table.refusal(program, packets, traffic) is None


def test_an_offered_load_is_one_of_the_traffic():
    program, packets, traffic = workload("baseline/offered-load")
    table = Capabilities("somebody", missing={"offered load": "because"})
    assert table.refusal(program, packets, traffic) == "somebody has no offered load: because"
    assert table.refusal(program, packets) is None


def test_what_is_not_of_the_language_is_there_only_where_it_is_offered():
    program, packets, traffic = workload("vio/base")
    assert "somebody has no virtual I/O: " in Capabilities("somebody").refusal(program, packets, traffic)
    offering = Capabilities("somebody", offers=frozenset({"virtual I/O"}))
    assert offering.refusal(program, packets, traffic) is None


def test_what_is_required_is_asked_for():
    table = Capabilities("somebody", requires={"counter": "it only counts"})
    assert table.refusal(*workload("baseline/l2fwd")) == "somebody runs nothing without counter: it only counts"
    assert table.refusal(*workload("extern/counter")) is None
    assert both(Capabilities("another"), table).refusal(*workload("baseline/l2fwd")) is not None


@pytest.mark.parametrize(
    ("name", "values", "quantity", "amount"),
    [
        ("mat/exact-entries", {"entries": 5000}, "exact entries", 5000),
        ("mat/exact-entries", {"entries": 5, "key_bits": 64}, "exact key bits", 64),
        ("mat/exact-entries", {"entries": 5, "action_data_bytes": 12}, "action data bytes", 12),
        ("mat/exact-tables", {"tables": 7}, "tables", 7),
        ("baseline/l2fwd", {"frame_size": 512}, "frame bytes", 508),
        ("path/multicast", {"ports": 3}, "copies", 3),
    ],
)
def test_quantities(name, values, quantity, amount):
    program, packets, _ = workload(name, **values)
    found = quantities(program, packets)
    assert found[quantity] == pytest.approx(amount, abs=4 if quantity == "frame bytes" else 0)
    at_most = Capabilities("somebody", limits={quantity: Limit(found[quantity], "a book")})
    assert at_most.refusal(program, packets) is None
    less = Capabilities("somebody", limits={quantity: Limit(found[quantity] - 1, "a book")})
    reason = less.refusal(program, packets)
    assert f"more than the {found[quantity] - 1:,} that somebody takes (a book)" in reason


def test_what_a_program_has_nothing_of_is_not_counted():
    program, _, _ = workload("baseline/l2fwd")
    found = quantities(program)
    assert not {"tables", "exact entries", "copies", "register bits", "frame bytes"} & set(found)
    assert Capabilities("somebody", limits={"tables": Limit(0, "a book")}).refusal(program) is None


def test_more_of_a_component_is_more_of_its_quantity():
    small, _, _ = workload("parser/headers", headers=1)
    large, _, _ = workload("parser/headers", headers=9)
    assert quantities(large)["headers"] == quantities(small)["headers"] + 8
    assert quantities(large)["bytes of all headers"] > quantities(small)["bytes of all headers"]
