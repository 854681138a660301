"""Points that a target can do, points that it cannot, and sweeps of which nothing is left."""

import pytest

from p4perf.errors import CapabilityError, SpecError
from p4perf.experiment import planning
from p4perf.experiment.planning import plan_sweep, point_workload, possible_points
from p4perf.specs import load_experiment
from p4perf.targets.base import NodeFacts

NOWHERE = NodeFacts({})
SETTABLE = NodeFacts({"cpu_lowest_khz": "1000000", "cpu_highest_khz": "1600000"})


def experiment(name, *overrides):
    return load_experiment(name, overrides=overrides)


def test_points_beyond_a_limit_are_refused_and_the_others_are_planned(fakes):
    whole = experiment("mat/exact-entries", ("entries", "[1, 100, 101, 5000]"))
    plan = plan_sweep(whole, fakes("fake-small")(), NOWHERE)
    assert [p.point.values["entries"] for p in plan.points] == [1, 100]
    assert [p.label for p in plan.points] == ["entries=1", "entries=100"]
    assert [r.label for r in plan.refused] == ["entries=101", "entries=5000"]
    assert (
        plan.refused[1].reason == "5,000 exact entries are more than the 100 that fake-small takes (number of drawers)"
    )
    assert plan.memory_bytes == 100


def test_what_the_target_itself_refuses_is_refused_the_same_way(fakes, monkeypatch):
    target = fakes("fake")

    def plan(self, workload, traffic, facts, real=target.plan):
        made = real(self, workload, traffic, facts)
        if made.memory_bytes > 10:
            raise CapabilityError("too many for this memory")
        return made

    monkeypatch.setattr(target, "plan", plan)
    found = plan_sweep(experiment("mat/exact-entries", ("entries", "[1, 100]")), target(), NOWHERE)
    assert (len(found.points), [r.reason for r in found.refused]) == (1, ["too many for this memory"])


def test_a_sweep_of_which_nothing_is_left_is_refused_with_its_first_reason(fakes):
    with pytest.raises(CapabilityError) as caught:
        plan_sweep(experiment("mat/exact-entries", ("entries", "[200, 300]")), fakes("fake-small")(), NOWHERE)
    assert "mat/exact-entries at entries=200: 200 exact entries" in caught.value.message
    with pytest.raises(CapabilityError, match="has no lpm: it counts on its fingers"):
        plan_sweep(experiment("mat/lpm-tables"), fakes("fake-small")(), NOWHERE)


def test_what_is_wrong_with_the_spec_is_no_refusal_of_points(fakes):
    with pytest.raises(SpecError, match="does not give latency"):
        plan_sweep(experiment("baseline/offered-load"), fakes("fake")(), NOWHERE)
    with pytest.raises(SpecError, match="are the same program and traffic on fake-small:bold"):
        plan_sweep(experiment("mat/key-width", ("entries", "10")), fakes("fake-small")(["bold"]), NOWHERE)


class TestFrequency:
    NAME = "baseline/cpu-frequency"

    def test_every_frequency_is_a_point_of_its_own(self, fakes):
        found = plan_sweep(experiment(self.NAME), fakes("fake")(), SETTABLE)
        assert [p.point.cpu_frequency_ghz for p in found.points] == [1.2, 1.3, 1.4, 1.5, 1.6]
        assert len({p.key for p in found.points}) == 5
        again = plan_sweep(experiment(self.NAME), fakes("fake")(), SETTABLE)
        assert [p.key for p in again.points] == [p.key for p in found.points]
        plain = plan_sweep(experiment("baseline/l2fwd", ("frame_size", "[64]")), fakes("fake")(), SETTABLE)
        assert plain.points[0].key not in {p.key for p in found.points}

    def test_what_the_cores_cannot_do_is_refused(self, fakes):
        found = plan_sweep(experiment(self.NAME), fakes("fake")(), SETTABLE)
        assert [r.label for r in found.refused] == [f"cpu_frequency={f}" for f in (1.7, 1.8, 1.9, 2.0)]
        assert found.refused[0].reason == "1.7 GHz is outside of 1 to 1.6 GHz, what the cores of this machine can do"

    def test_a_machine_without_cpufreq_refuses_the_experiment(self, fakes):
        with pytest.raises(CapabilityError, match="it has no cpufreq driver") as caught:
            plan_sweep(experiment(self.NAME), fakes("fake")(), NOWHERE)
        assert caught.value.key == "device.cpu_frequency"

    def test_the_spec(self, tmp_path):
        path = tmp_path / "one.yaml"
        path.write_text("{name: my/one, extends: baseline/l2fwd, device: {cpu_frequency: '1500 MHz'}}")
        (first, *_) = load_experiment(str(path)).points
        assert first.cpu_frequency_ghz == 1.5
        assert load_experiment("baseline/l2fwd").points[0].cpu_frequency_ghz is None
        path.write_text("{name: my/one, extends: baseline/l2fwd, device: {cpu_frequency: -1}}")
        with pytest.raises(SpecError, match="cpu_frequency"):
            load_experiment(str(path))


@pytest.mark.parametrize(
    ("program", "key", "line"),
    [
        (
            "component: [hash: {size_bytes: 16}, register: {accesses: 2, size: 1000}]",
            "program.component.1.register.size",
            3,
        ),
        (
            "component: [register]\n  parameters: {register: {accesses: 2, size: 1000}}",
            "program.parameters.register.size",
            4,
        ),
        ("component: register\n  parameters:\n    accesses: 2\n    size: 1000", "program.parameters.size", 6),
    ],
)
def test_what_a_component_refuses_has_its_key_and_place(tmp_path, program, key, line):
    path = tmp_path / "spec.yaml"
    path.write_text(f"name: mine/cells\nprogram:\n  {program}\n")
    experiment = load_experiment(str(path))
    with pytest.raises(CapabilityError, match="an array of 1000 cells is not possible") as refused:
        point_workload(experiment, experiment.points[0])
    assert (refused.value.key, refused.value.location.line) == (key, line)


def test_a_frame_without_room_for_the_headers_is_refused_without_a_target(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(
        "name: mine/small\ntraffic:\n  frame_size: $size\n"
        "program: {component: match_action_table, parameters: {entries: 4, key_bits: 512}}\nsweep: {size: [1518, 64]}\n"
    )
    with pytest.raises(CapabilityError, match="mine/small at size=64: the headers take 82 B") as refused:
        possible_points(load_experiment(str(path)))
    assert (refused.value.location.line, refused.value.location.column) == (3, 15)
    path.write_text(path.read_text().replace("frame_size: $size", "mix: {64: 1, 1518: 1}").split("sweep")[0])
    with pytest.raises(CapabilityError, match="a frame of 64 B has room for 60 B"):
        possible_points(load_experiment(str(path)))


class TestSkipping:
    """A point of which no program exists ends a sweep, unless the spec says to leave such points out."""

    @pytest.fixture
    def load(self, tmp_path, monkeypatch):
        """The experiment, of which the points that are named have no program."""
        real = planning.build_workload

        def build(components, **conditions):
            if components[-1][1].get("entries") in impossible:
                raise CapabilityError("no such program exists")
            return real(components, **conditions)

        impossible: set[int] = set()
        monkeypatch.setattr(planning, "build_workload", build)

        def load(*without, skip):
            impossible.update(without)
            return experiment(
                "mat/exact-entries", ("entries", "[1, 2, 3]"), ("sweep.skip_impossible", str(skip).lower())
            )

        return load

    def test_it_is_refused_with_a_way_out(self, load, fakes):
        with pytest.raises(CapabilityError, match="mat/exact-entries at entries=2: no such program exists") as caught:
            plan_sweep(load(2, skip=False), fakes("fake")(), NOWHERE)
        assert "--skip-impossible" in caught.value.hint

    def test_or_left_out_and_named(self, load, fakes):
        found = plan_sweep(load(2, skip=True), fakes("fake")(), NOWHERE)
        assert [p.point.values["entries"] for p in found.points] == [1, 3]
        assert [(r.label, r.reason) for r in found.refused] == [("entries=2", "no such program exists")]
        assert [r.label for r in possible_points(load(2, skip=True))[1]] == ["entries=2"]

    def test_of_a_sweep_without_any_program_the_reason_stays(self, load, fakes):
        with pytest.raises(CapabilityError, match="no such program exists"):
            plan_sweep(load(1, 2, 3, skip=True), fakes("fake")(), NOWHERE)

    def test_the_hash_of_other_specs_stays(self, load):
        plain = experiment("mat/exact-entries", ("entries", "[1, 2, 3]"))
        assert load(skip=False).spec_hash == plain.spec_hash != load(skip=True).spec_hash
