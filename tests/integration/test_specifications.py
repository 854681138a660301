"""Specifications of SWX compute what the interpreter makes of them: as they are, and on other targets."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import specifications
from support.swx_programs import own_specification
from test_own_programs import differences, runs_on_dpdk_c

from p4perf.errors import CapabilityError, DataError
from p4perf.formats.swx_spec import read_specification
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.swx import read_swx
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk_swx import HASHES, DpdkSwxTarget
from p4perf.targets.dpdk_swx_program import OnSwx
from p4perf.targets.oracle import verification_file

SPECIFICATIONS = Path(__file__).parents[3] / "shared/data/p4c_specs"
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)
SAMPLE = ("pna-example-tunnel",)
PACKETS = 1024

pytestmark = [
    pytest.mark.dpdk,
    pytest.mark.usefixtures("dpdk"),
    pytest.mark.skipif(not SPECIFICATIONS.exists(), reason="../shared/data/p4c_specs is not here"),
]

REJECTED = "program.spec:"
"""So errors begin with which DPDK 22.11 refuses what p4c writes."""

NOT_AS_SAID = ("psa-example-dpdk-counter.p4.spec",)
"""DPDK 22.11 adds to the first array where index and number of regadd are constants."""


def paths(*, sample):
    found = sorted(SPECIFICATIONS.glob("*.spec"))
    return [p for p in found if (p.name.split(".")[0] in SAMPLE) or not sample]


@pytest.fixture
def error(testbed, facts, tmp_path):
    """What is different on SWX; None if the specification is not read."""

    def run(text, settled):
        target = DpdkSwxTarget(("interpreter",))
        try:
            plan = target.plan(own_specification(text, fill=16), TrafficPlan(64), facts)
        except (DataError, CapabilityError):
            return None, 0
        kind = Interpreter if settled else OnSwx
        expectation = verification_file(plan.workload, hashes=HASHES, short_packets=False, packets=PACKETS, kind=kind)
        job = target.trial(plan, QUICK, facts)
        files = {**job.files, "verify.bin": expectation}
        result = testbed.run(replace(job, argv=(*job.argv, "--verify-only"), files=files), tmp_path)
        (tmp_path / "program.entries").unlink(missing_ok=True)
        assert result.stdout, result
        return json.loads(result.stdout.splitlines()[-1]).get("error", ""), int.from_bytes(expectation[8:12], "little")

    return run


@pytest.mark.parametrize(
    ("sample", "settled"),
    [
        (True, False),
        pytest.param(False, False, marks=pytest.mark.thorough),
        pytest.param(False, True, marks=pytest.mark.thorough),
    ],
)
def test_specifications_as_they_are(error, sample, settled):
    """Packets whose outcome depends on earlier ones are left out; there are none if it clears its memory."""
    packets = {}
    for path in paths(sample=sample):
        text = path.read_text()
        wrong, known = error(specifications.cleared(text) if settled else text, settled)
        if wrong is not None and not wrong.startswith(REJECTED) and path.name not in NOT_AS_SAID:
            assert not wrong, f"{path.name}: {wrong}"
            packets[path.name] = known
    assert len(packets) >= (1 if sample else 100)
    assert sum(packets.values()) > len(packets) * PACKETS / 2


@pytest.mark.parametrize("sample", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_specifications_on_dpdk_c(sample, tmp_path):
    found = []
    for path in paths(sample=sample):
        try:
            program = read_swx(read_specification(path.read_text(), path.name), name=path.name.split(".")[0])
        except DataError:
            continue
        program = filled(program, {}, default=16)
        drawn = frames(program, PACKETS)
        try:
            for frame in drawn:
                Interpreter(program).run(frame)
        except RecursionError:
            continue
        found.append(ir.Workload(program, program, ir.PacketSpec((), (), 64), frames=drawn))
    taken = [w for w in found if runs_on_dpdk_c(w)]
    assert len(taken) >= 0.9 * len(found) >= (0.8 * 0.9 * len(paths(sample=sample)))
    for n, begin in enumerate(range(0, len(taken), 40)):
        (folder := tmp_path / str(n)).mkdir()
        assert differences(taken[begin : begin + 40], folder, PACKETS) == []
