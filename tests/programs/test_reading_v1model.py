"""Programs for v1model, read from JSON of p4c: its samples with their packet tests, and what is refused."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from support import stf
from support.traced import Traced

from p4perf.errors import DataError
from p4perf.programs import ir
from p4perf.programs.dataflow import follow
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter, unknown
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model

SAMPLES = Path(__file__).parents[3] / "shared/data/p4c_samples"
JSON = sorted(SAMPLES.glob("*.json"))
TESTED = sorted(path.with_suffix(".json") for path in SAMPLES.glob("*.stf"))

REFUSED = {
    "issue1607-bmv2": "a header of type stack_field is not supported",
    "parser-unroll-test1": "is not a string",  # extracts to an element of a stack that is only known at run time
}
"""Samples that are not read, and why."""

BY_CHANCE = "issue1517-bmv2"
"""A sample that decides by a random number."""

ENDLESS = "issue1043-bmv2"
"""A sample that resubmits every packet."""

pytestmark = pytest.mark.skipif(not JSON, reason="../shared/data/p4c_samples is not here")


@cache
def read(name: str) -> ir.Program:
    path = SAMPLES / f"{name}.json"
    return read_v1model(parse_json(path.read_text(), str(path)), name=name)


@pytest.mark.parametrize("path", JSON, ids=lambda path: path.stem)
def test_a_sample_is_read_or_refused_for_a_known_reason(path):
    if path.stem in REFUSED:
        with pytest.raises(DataError, match=REFUSED[path.stem]):
            read(path.stem)
        return
    interpreter = Interpreter(read(path.stem), given=unknown)
    for frame in [bytes(range(n)) for n in (1, 20, 60, 100)]:
        if path.stem in (BY_CHANCE, ENDLESS):
            with pytest.raises((ValueError, RecursionError)):
                interpreter.run(frame)
        else:
            assert all(0 <= sent.port < 511 for sent in interpreter.run(frame).sent)


@pytest.mark.parametrize("path", TESTED, ids=lambda path: path.stem)
def test_a_packet_test_of_p4c_passes(path):
    assert stf.differences(path) == []


@pytest.mark.parametrize(
    "path", [p for p in JSON if p.stem not in (*REFUSED, BY_CHANCE, ENDLESS)], ids=lambda p: p.stem
)
def test_what_is_known_holds_for_packets(path):
    program = filled(read(path.stem), {}, default=4)
    traced = Traced(program, follow(program))
    for frame in frames(program, 24):
        with suppress(RecursionError):
            traced.run(frame)
    assert traced.checked or not program.actions
