from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import CapabilityError
from p4perf.programs.component import build_workload
from p4perf.programs.ir import FieldRef
from p4perf.programs.packets import field_offset_bits, frame, headers_size_bytes


def test_the_bytes_of_a_frame() -> None:
    workload = build_workload([("match_action_table", {"entries": 1000, "key_bits": 24})], frame_size_bytes=64)
    expected = "02000000000202000000000188b50003e700000000"
    assert frame(workload.program, workload.packets, 999).hex() == expected + "00" * (60 - 21)
    assert headers_size_bytes(workload.program, workload.packets) == 21
    assert field_offset_bits(workload.program, workload.packets, FieldRef("bench", "result")) == 17 * 8


def test_a_field_that_is_not_there_is_an_error() -> None:
    workload = build_workload([], frame_size_bytes=64)
    with pytest.raises(KeyError):
        field_offset_bits(workload.program, workload.packets, FieldRef("bench", "key"))


@given(drawn=st.integers(0, 2**70), size=st.integers(64, 1518))
def test_a_number_is_cut_to_the_field_and_the_size_leaves_room_for_the_fcs(drawn: int, size: int) -> None:
    workload = build_workload([("match_action_table", {"entries": 10, "key_bits": 40})], frame_size_bytes=size)
    data = frame(workload.program, workload.packets, drawn)
    assert len(data) == size - 4
    assert int.from_bytes(data[14:19], "big") == drawn % 2**40


def test_headers_that_do_not_fit_are_refused_with_the_size_that_would_do() -> None:
    workload = build_workload([("header_field_writes", {"writes": 1, "fields": 12})], frame_size_bytes=64)
    with pytest.raises(CapabilityError, match="62 B") as refused:
        frame(workload.program, workload.packets)
    assert "66 B" in str(refused.value)


def test_the_free_bits_of_a_varying_field_are_those_of_the_values() -> None:
    parameters = {"entries": 100, "key_bits": 32, "match_kind": "lpm", "free_bits": 16}
    workload = build_workload([("match_action_table", parameters)], frame_size_bytes=64)
    assert frame(workload.program, workload.packets, 0x0102)[14:18].hex() == "0102ffff"
    assert frame(workload.program, workload.packets, 0x30102)[14:18].hex() == "0102ffff"
