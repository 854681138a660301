"""Programs that are read compute on a target what the interpreter computes, or are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from support import many_programs, stf
from support.large_program import large_program

from p4perf.errors import CapabilityError, DataError
from p4perf.generators.c.dpdk import render_program
from p4perf.programs import ir
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model
from p4perf.targets import oracle

SAMPLES = Path(__file__).parents[3] / "shared/data/p4c_samples"
EXAMPLES = Path(__file__).parents[2] / "examples/programs"
PACKETS = 1024

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]


def workload(path: Path, packets: int = PACKETS) -> ir.Workload | None:
    """The program with its packets; None if it is not read, or never comes to an end with one of them."""
    root, test = parse_json(path.read_text(), str(path)), path.with_suffix(".stf")
    try:
        program = read_v1model(root, stf.read(test, root).plane if test.exists() else None, path.stem)
    except DataError:
        return None
    try:
        program = filled(program, {}, default=16)
        drawn = frames(program, packets)
        interpreter = Interpreter(program)
        for frame in drawn:
            interpreter.run(frame)
    except (ValueError, RecursionError):
        return None
    return ir.Workload(program, program, ir.PacketSpec((), (), 64), frames=drawn)


def verification(each: ir.Workload, seed: int) -> bytes:
    return oracle.verification_file.__wrapped__(each, packets=len(each.frames), given=oracle.given_to)


def differences(workloads: list[ir.Workload], folder: Path, packets: int = PACKETS) -> list[str]:
    with patch.object(many_programs, "verification", verification), patch.object(many_programs, "PACKETS", packets):
        found = many_programs.check_many(workloads, folder)
    return [f"{w.program.name}: {error}" for w, error in zip(workloads, found, strict=True) if error]


def runs_on_dpdk_c(each: ir.Workload) -> bool:
    try:
        render_program(each.program, "tried")
    except CapabilityError:
        return False
    return True


@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/data/p4c_samples is not here")
def test_samples_of_p4c_on_dpdk_c(tmp_path):
    """Every twentieth of them; ``test_own_samples.py`` has them all."""
    read = [w for p in sorted(SAMPLES.glob("*.json"))[::20] if (w := workload(p)) is not None]
    taken = [w for w in read if runs_on_dpdk_c(w)]
    assert len(taken) >= 0.85 * len(read) > 12
    assert differences(taken, tmp_path) == []


def test_the_examples_on_dpdk_c(tmp_path):
    taken = [workload(path, 200) for path in sorted(EXAMPLES.glob("*/*.json"))]
    assert len(taken) == 14
    assert all(runs_on_dpdk_c(w) for w in taken)
    assert differences(taken, tmp_path, 200) == []


def test_a_large_program(tmp_path):
    """A hundred tables and forty headers."""
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large_program(tables=100, headers=40)))
    each = workload(path, 300)
    assert (len(each.program.tables), len(each.program.headers)) == (100, 40)
    assert differences([each], tmp_path, 300) == []


def test_a_wide_field_that_is_shifted_into_itself(tmp_path):
    """As a micro-segment of SRv6 is taken off an address."""
    each = workload(EXAMPLES / "srv6_endpoint/srv6_endpoint.json", 200)
    wide = next(ir.FieldRef(h.name, f.name) for h in each.program.headers for f in h.fields if f.width_bits == 128)
    shifted = [ir.Cast(ir.BinaryOp(operator, wide, ir.Const(16)), 128) for operator in ("<<", ">>")]
    more = tuple(ir.Assign(wide, ir.BinaryOp("|", value, wide)) for value in shifted)
    actions = tuple(replace(a, body=(*a.body, *more)) for a in each.program.actions)
    assert differences([replace(each, program=replace(each.program, actions=actions))], tmp_path, 200) == []


def test_an_oracle_that_disagrees_is_noticed(tmp_path):
    each = workload(EXAMPLES / "l2_switch/l2_switch.json", 200)
    wrong = tuple(replace(a, body=(*a.body, ir.SetEgress(ir.Const(3)))) for a in each.program.actions)

    def of_another(given: ir.Workload, seed: int) -> bytes:
        return verification(replace(given, program=replace(given.program, actions=wrong)), seed)

    with patch.object(many_programs, "verification", of_another), patch.object(many_programs, "PACKETS", 200):
        (error,) = many_programs.check_many([each], tmp_path)
    assert "left by port" in error or "left" in error
