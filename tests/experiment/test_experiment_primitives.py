"""From run directories to prices: which runs say something, and what they say."""

import json

import pytest
from support.runs import make_run

from p4perf.errors import NoVerdictError
from p4perf.experiment.evaluate import BASELINE, COST
from p4perf.experiment.learning import learn_primitives, read_rows
from p4perf.models.program import construct
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.results import Run


def measured(folder, curve, spec="parser/headers", overrides=(), **options):
    path = make_run(
        folder,
        curve,
        spec=spec,
        overrides=overrides,
        metric=COST,
        metrics={BASELINE: lambda _: 40.0},
        **options,
    )
    return Run.open(path)


def test_every_point_says_what_its_packets_met(tmp_path):
    run = measured(tmp_path, lambda headers: 7.0 * headers, rejected=[10], noise=0)
    rows = read_rows(run)
    assert [row.point for row in rows] == [f"headers={n}" for n in range(10)]
    assert rows[0].met == ()
    assert sum(times for what, times in rows[3].met if what.kind == "extract") == 3
    assert (rows[3].cycles, rows[3].starts, rows[3].baseline) == (21.0, (21.0,) * 3, 40.0)


def test_prices_come_from_all_runs_of_the_target(tmp_path):
    runs = [
        measured(tmp_path / "a", lambda headers: 7.0 * headers),
        measured(tmp_path / "b", lambda writes: 7.0 + 4.0 * writes, "action/header-field-writes"),
        measured(tmp_path / "c", lambda headers: 70.0 * headers, target="xdp"),
        measured(tmp_path / "d", lambda s: 100 * s, "mat/locality", [("zipf_s", "[0.5, 1]")]),
        measured(tmp_path / "e", lambda size: size, "vio/descriptor-size"),
    ]
    costs = learn_primitives(runs, "dpdk-c", 40.0)
    assert (costs.target, costs.baseline) == ("dpdk-c", pytest.approx(40, rel=0.1))
    increment = [(construct("write", bits=32, to="header"), 1.0), (construct("compute", operator="+", bits=32), 1.0)]
    assert sum(c.cycles.value for c in costs.priced(increment)) == pytest.approx(4, rel=0.1)
    assert [a.experiment for a in costs.agreement] == ["parser/headers", "action/header-field-writes"]
    assert len(costs.remarks) == 2
    assert costs.remarks[0].startswith("mat/locality says nothing of prices")
    assert PrimitiveCosts.from_record(json.loads(json.dumps(costs.record()))) == costs


def test_runs_without_costs_say_why(tmp_path):
    with pytest.raises(NoVerdictError, match=COST):
        read_rows(Run.open(make_run(tmp_path, lambda entries: 100.0)))


def test_no_run_of_the_target(tmp_path):
    run = measured(tmp_path, lambda headers: 7.0 * headers)
    with pytest.raises(NoVerdictError, match="no run of dpdk-swx:interpreter"):
        learn_primitives([run], "dpdk-swx:interpreter", 40.0)


@pytest.mark.parametrize(("target", "code"), [("dpdk-swx", "compiled"), ("dpdk-swx:interpreter", "interpreted")])
def test_points_of_swx_are_read_instruction_by_instruction(tmp_path, target, code):
    run = measured(tmp_path, lambda writes: 20.0 * writes, "action/header-field-writes", noise=0)
    manifest = json.loads((run.path / "manifest.json").read_text())
    (run.path / "manifest.json").write_text(json.dumps({**manifest, "target": target}))
    rows = read_rows(Run.open(run.path))
    met = [what for what, times in rows[9].met if times > 0]
    assert sum(what.kind == "compute" for what in met) == 9
    assert not any(what.kind == "write" for what in met)
    assert [what.size("code") for what in met if what.kind == "overlap"] == [code] * 8
