"""Packet filters for ebpf_model.p4 as programs for v1model."""

from __future__ import annotations

import pytest
from support.filters import FILTER

from p4perf.errors import DataError
from p4perf.programs.reading.ebpf import as_v1model, filter_control


def test_a_filter_becomes_a_switch_around_its_parser_and_control():
    text = as_v1model(FILTER, "filter.p4")
    assert "#include <v1model.p4>" in text
    assert "ebpf" not in text
    assert "prs() filter_parser;" in text
    assert "pipe() filter;" in text
    assert "inout Headers_t hdr" in text
    assert text.rstrip().endswith("main;")


def test_what_a_parser_rejects_is_an_error_of_it():
    text = as_v1model(FILTER, "filter.p4")
    assert "default: p4perf_reject;" in text
    assert " reject;" not in text
    assert text.index("state p4perf_reject {") < text.index("state start {")


def test_how_a_table_is_implemented_is_left_out():
    text = as_v1model(FILTER, "filter.p4")
    assert "implementation" not in text
    assert "hash_table" not in text
    assert "default_action = NoAction();" in text


def test_the_control_is_known_by_name():
    assert filter_control(FILTER) == "pipe"
    assert filter_control(FILTER.replace("ebpfFilter(", "V1Switch(")) is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ebpfFilter(", "xdp(", "is not a packet filter"),
        ("p.extract(headers.ipv4);", "p.advance(8);", "skips bytes"),
        ("    action Pass", "    CounterArray(32w10, true) counters;\n    action Pass", "CounterArray"),
    ],
)
def test_what_is_not_read(old, new, words):
    with pytest.raises(DataError, match=words) as caught:
        as_v1model(FILTER.replace(old, new), "filter.p4")
    assert caught.value.location.file == "filter.p4"
