"""Contents of packets that a spec asks for: constant fields and payload, in every generator that sends packets."""

import re

import pytest

from p4perf.errors import SpecError
from p4perf.experiment.planning import point_workload
from p4perf.generators.moongen import MoonGen
from p4perf.programs.component import TrafficPlan
from p4perf.programs.packets import frame, headers_size_bytes
from p4perf.specs import load_experiment
from p4perf.targets.oracle import source_arguments

SPEC = """\
name: my/contents
program: {{component: match_action_table, parameters: {{entries: 10, key_bits: 32}}}}
traffic: {{frame_size: 128, {more}}}
"""


@pytest.fixture
def workload(tmp_path):
    def workload(more):
        path = tmp_path / "spec.yaml"
        path.write_text(SPEC.format(more=more))
        experiment = load_experiment(str(path))
        return point_workload(experiment, experiment.points[0])[0]

    return workload


def bytes_of(workload):
    return frame(workload.program, workload.packets, 3)


def test_without_them_nothing_changes(workload):
    assert bytes_of(workload("fields: {}, payload: '00'")) == bytes_of(workload("pattern: cbr"))


def test_constant_fields(workload):
    plain = bytes_of(workload("pattern: cbr"))
    changed = bytes_of(workload("fields: {ethernet.src: 0x0a0b0c0d0e0f, ethernet.dst: 1}"))
    assert changed[:12] == bytes.fromhex("0000000000010a0b0c0d0e0f")
    assert changed[12:] == plain[12:]


@pytest.mark.parametrize(("text", "first"), [("a5", b"\xa5\xa5\xa5"), ("0102", b"\1\2\1"), ("C0FFEE", b"\xc0\xff\xee")])
def test_the_payload_is_repeated_behind_the_headers(workload, text, first):
    found = workload(f"payload: '{text}'")
    data, headers = bytes_of(found), headers_size_bytes(found.program, found.packets)
    assert len(data) == 124
    assert data[:headers] == bytes_of(workload("pattern: cbr"))[:headers]
    assert data[headers : headers + 3] == first
    pattern = bytes.fromhex(text)
    assert data[headers:] == (pattern * 124)[: 124 - headers]


def test_a_longer_payload_than_the_frame_is_cut(workload):
    found = workload("payload: '" + "ab" * 1000 + "'")
    assert len(bytes_of(found)) == 124


def test_it_reaches_those_who_send(workload):
    found = workload("payload: a5, fields: {ethernet.src: 7}")
    expected = frame(found.program, found.packets).hex()
    arguments = source_arguments(found, TrafficPlan(128), "x", restored=False)
    assert arguments[arguments.index("--frame") + 1] == expected
    texts = [f.text() for f in MoonGen().generate(found, TrafficPlan(128))]
    assert texts
    for text in texts:
        assert expected in "".join(re.findall(r'^ +"([0-9a-f]+)",$', text, re.MULTILINE))


@pytest.mark.parametrize(
    ("more", "message", "key"),
    [
        (
            "fields: {ethernet.nothing: 1}",
            "the packets have no field ethernet.nothing",
            "traffic.fields.ethernet.nothing",
        ),
        ("fields: {nothing.src: 1}", "the packets have no field nothing.src", "traffic.fields.nothing.src"),
        ("fields: {ethernet.ether_type: 0x10000}", "65536 does not fit into the 16 bits", "traffic.fields.ethernet"),
    ],
)
def test_fields_that_cannot_be_set(workload, more, message, key):
    with pytest.raises(SpecError) as caught:
        workload(more)
    assert message in caught.value.message
    assert caught.value.key.startswith(key)


def test_a_field_that_varies(workload):
    (varying,) = workload("pattern: cbr").packets.varying
    name = f"{varying.field.header}.{varying.field.field}"
    with pytest.raises(SpecError, match="varies from packet to packet"):
        workload(f"fields: {{{name}: 1}}")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("fields: {src: 1}", "traffic.fields"),
        ("fields: {ethernet.src: -1}", "traffic.fields"),
        ("fields: {ethernet.src: one}", "traffic.fields"),
        ("payload: abc", "traffic.payload"),
        ("payload: ''", "traffic.payload"),
        ("payload: zz", "traffic.payload"),
        ("payload: '" + "00" * 1025 + "'", "traffic.payload"),
    ],
)
def test_what_is_no_content(workload, more, key):
    with pytest.raises(SpecError) as caught:
        workload(more)
    assert caught.value.key.startswith(key)
    assert caught.value.location.line == 3
