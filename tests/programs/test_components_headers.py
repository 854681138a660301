"""Components of parser and deparser, against bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.component_runs import ETHERNET, OTHER, generated, program_of, sent, through, workload_of

from p4perf.errors import CapabilityError
from p4perf.programs.analysis import changes_layout
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import headers_size_bytes

few = settings(max_examples=25)


@pytest.mark.parametrize(("headers", "bits"), [(0, 32), (1, 16), (64, 1024), (3, 80)])
def test_parser_headers_scale_states_and_bytes(headers: int, bits: int) -> None:
    workload = workload_of("parser_headers", headers=headers, header_bits=bits)
    assert len(workload.program.parser) == headers + 1
    assert headers_size_bytes(workload.program, workload.packets) == 14 + headers * bits // 8
    assert all(h.width_bits == bits for h in workload.program.headers[1:])


@few
@given(st.integers(1, 1400), st.sampled_from([8, 16, 32, 48, 64]), st.binary(max_size=1500))
def test_parsed_fields_need_their_bytes_and_leave_them(fields: int, bits: int, data: bytes) -> None:
    program = program_of("parsed_fields", fields=fields, field_bits=bits)
    assert [f.width_bits for f in program.headers[1].fields] == [bits] * fields
    whole = len(data) * 8 >= fields * bits
    assert sent(Interpreter(program).run(ETHERNET + data)) == ([(1, data)] if whole else [])
    assert Interpreter(program).run(OTHER + data).data == OTHER + data
    assert not changes_layout(program)


@few
@given(st.integers(1, 40), st.data())
def test_each_case_of_a_select_leads_to_a_header_of_its_own(branches: int, data: st.DataObject) -> None:
    workload = workload_of("parser_branches", branches=branches, header_bits=24)
    program = workload.program
    assert len(program.parser) == branches + 2
    assert len({c.next_state for c in program.parser[1].cases}) == len(program.parser[1].cases) == branches
    tag = data.draw(st.integers(0, 2 * branches))
    # A branch needs the three bytes of its header; another value of the field ends the parser.
    for after in (3, 2):
        packet = tag.to_bytes(2, "big") + bytes(range(after))
        expected = [] if after < 3 and tag < branches else [(1, packet)]
        assert sent(Interpreter(program).run(ETHERNET + packet)) == expected
    (varying,) = workload.packets.varying
    assert (varying.field.field, varying.count) == ("tag", branches)
    assert [generated(workload, n)[:2] for n in range(branches)] == [n.to_bytes(2, "big") for n in range(branches)]


@few
@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_selects_in_a_row(branches: int, depth: int, data: st.DataObject) -> None:
    workload = workload_of("parser_branches", branches=branches, depth=depth, header_bits=32)
    program = workload.program
    assert len(program.headers) == 2 + branches * depth
    tags = data.draw(st.lists(st.integers(0, branches), min_size=depth, max_size=depth))
    # Every header but the first is a tag and two bytes; the last case of each select but the last goes on.
    needed, going = 2, True
    for tag in tags:
        needed += 4 if going and tag < branches else 0
        going = going and tag == branches - 1
    body = tags[0].to_bytes(2, "big")
    for tag in [*tags[1:], 0xEEEE]:
        body += tag.to_bytes(2, "big") + b"\xaa\xbb"
    interpreter = Interpreter(program)
    assert sent(interpreter.run(ETHERNET + body[:needed])) == [(1, body[:needed])]
    assert sent(interpreter.run(ETHERNET + body[: needed - 1])) == []


def test_packets_go_as_deep_as_they_can() -> None:
    workload = workload_of("parser_branches", branches=3, depth=3, header_bits=32)
    for drawn in range(3):
        data = generated(workload, drawn)
        assert [int.from_bytes(data[at : at + 2], "big") for at in (0, 2, 6)] == [2, 2, drawn]
        assert sent(Interpreter(workload.program).run(ETHERNET + data[:14])) == [(1, data[:14])]
        assert sent(Interpreter(workload.program).run(ETHERNET + data[:13])) == []


def test_too_many_branches_are_refused() -> None:
    with pytest.raises(CapabilityError, match="1280 headers") as refused:
        program_of("parser_branches", branches=256, depth=5)
    assert refused.value.key == "program.parameters.depth"
    assert refused.value.hint


@few
@given(st.integers(0, 40), st.integers(1, 30), st.binary(max_size=100))
def test_added_headers_come_before_the_payload(headers: int, size: int, payload: bytes) -> None:
    added = bytes((1 + n) % 256 for n in range(headers * size))
    assert sent(through("added_headers", payload, headers=headers, header_bytes=size)) == [(1, added + payload)]
    program = program_of("added_headers", headers=headers, header_bytes=size)
    assert changes_layout(program) == (headers > 0)
    assert Interpreter(program).run(OTHER[:13]).sent == ()
    assert len(program.headers) == 1 + headers
    assert all(f.width_bits <= 64 for h in program.headers for f in h.fields)


@few
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20), st.binary(max_size=900))
def test_removed_headers_are_cut_out(removed: int, kept: int, size: int, data: bytes) -> None:
    outcome = through("removed_headers", data, removed=removed, kept=kept, header_bytes=size)
    whole = len(data) >= (removed + kept) * size
    assert sent(outcome) == ([(1, data[removed * size :])] if whole else [])


def test_the_bytes_of_headers_can_be_told_apart() -> None:
    workload = workload_of("removed_headers", removed=2, kept=1, header_bytes=3)
    assert generated(workload)[:9] == bytes(range(1, 10))
    assert sent(Interpreter(workload.program).run(ETHERNET + bytes(range(1, 10)))) == [(1, bytes((7, 8, 9)))]
