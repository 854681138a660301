"""Programs that are read compute on SWX what the interpreter computes, or are refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import stf

from p4perf.errors import CapabilityError, DataError
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.exercise import frames
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk_swx import DpdkSwxTarget

SAMPLES = Path(__file__).parents[3] / "shared/data/p4c_samples"
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]


def workload(path, packets=32):
    """The program with its packets; None if it is not read."""
    root, test = parse_json(path.read_text(), str(path)), path.with_suffix(".stf")
    try:
        program = read_v1model(root, stf.read(test, root).plane if test.exists() else None)
    except DataError:
        return None
    baseline = build_workload([], frame_size_bytes=64).program
    return ir.Workload(program, baseline, ir.PacketSpec((), (), 64), frames=frames(program, packets, size_bytes=60))


@pytest.fixture
def differs(testbed, facts, tmp_path):
    """Whether a workload is refused, or what is wrong with it; "" if it does what the interpreter says."""
    target = DpdkSwxTarget(("interpreter",))

    def run(given):
        try:
            plan = target.plan(given, TrafficPlan(64), facts)
            job = target.trial(plan, QUICK, facts)
        except (CapabilityError, RecursionError, ValueError) as error:
            return error
        result = testbed.run(replace(job, argv=(*job.argv, "--verify-only")), tmp_path)
        (tmp_path / "program.entries").unlink(missing_ok=True)
        return json.loads(result.stdout.splitlines()[-1]).get("error", "")

    return run


@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/data/p4c_samples is not here")
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_samples_of_p4c(differs, first):
    """Every thirty-second of them in the short test, the others in the thorough one."""
    paths = [p for n, p in enumerate(sorted(SAMPLES.glob("*.json"))) if (n % 32 == 0) == (first == 0)]
    found = {p.stem: differs(w) for p in paths if (w := workload(p)) is not None}
    refused = {name for name, error in found.items() if isinstance(error, Exception)}
    assert {name: error for name, error in found.items() if error and name not in refused} == {}
    assert len(refused) <= max(3, 0.15 * len(found))
