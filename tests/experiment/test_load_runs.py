"""Runs with a load generator: refused or planned, measured, killed and resumed, shared searches, failures."""

import json
import os
import sys

import pytest
from support.command import FAKES, p4perf
from support.load_session import PLUGIN, SUPPORT, FakeGenerator, sessions

from p4perf import plugins
from p4perf.errors import CapabilityError, SpecError
from p4perf.evaluation.load import read_hlog
from p4perf.experiment import new_run, open_testbed, resume_run
from p4perf.experiment.conductor import Conductor
from p4perf.experiment.planning import plan_sweep
from p4perf.specs import load_experiment
from p4perf.targets.base import NodeFacts

NOWHERE = NodeFacts({})
HEAD = """\
name: my/load
program: {component: match_action_table, parameters: {entries: $entries}}
load: {generator: fake, search: bisection, trial_ms: 100, latency_ms: 200, trials_per_load: 1, exceed_ratio: 0}
trials: {repetitions: 2}
"""
LATENCY = """\
metrics: {collect: [latency], optional: [loss_ratio]}
traffic: {frame_size: 128, offered_load: {fraction_of_max: $load}}
sweep: {entries: [10], load: [0.1, 0.5, 0.9]}
"""
TABLES = """\
metrics: {collect: [throughput_ndr, latency]}
traffic: {frame_size: 128}
sweep: {entries: [10, 100, 1000]}
"""


@pytest.fixture
def registered(monkeypatch):
    """The fake targets and the fake load generator are registered for the time of a test."""
    monkeypatch.setattr(sys, "path", [str(PLUGIN), str(FAKES), *sys.path])
    plugins._found.cache_clear()
    FakeGenerator.opened.clear()
    yield lambda name: plugins.load_plugin("p4perf.targets", name)()
    plugins._found.cache_clear()
    for module in ("p4perf_fake", "p4perf_fake_load"):
        sys.modules.pop(module, None)


@pytest.fixture
def spec(tmp_path):
    def spec(text, *overrides):
        path = tmp_path / "spec.yaml"
        path.write_text(HEAD + text)
        return load_experiment(str(path), overrides=overrides)

    return spec


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "sessions.jsonl"
    monkeypatch.setenv("P4PERF_FAKE_LOAD_LOG", str(path))
    return path


@pytest.fixture
def measured(registered, spec, tmp_path, log):
    def measured(text, *overrides):
        target, testbed, experiment = registered("fake-loaded"), open_testbed("local"), spec(text, *overrides)
        run, plan = new_run(experiment, target, testbed, tmp_path / "runs")
        return run, plan, Conductor(experiment, plan.points, target, testbed, run).measure()

    return measured


class TestPlanning:
    @pytest.mark.parametrize("metric", ["latency", "throughput_ndr", "throughput_pdr", "receive_rate", "loss_ratio"])
    def test_metrics_that_need_a_port_are_refused_without_one(self, registered, spec, metric):
        experiment = spec(f"metrics: {{collect: [packet_rate, {metric}]}}\nsweep: {{entries: [10]}}\n")
        with pytest.raises(SpecError) as caught:
            plan_sweep(experiment, registered("fake"), NOWHERE)
        assert caught.value.message == f"target fake does not give {metric}"
        assert caught.value.key == "metrics.collect"
        assert "metrics.optional" in caught.value.hint
        assert plan_sweep(experiment, registered("fake-loaded"), NOWHERE).points[0].load.metrics == (metric,)

    @pytest.mark.parametrize("name", ["dpdk-c", "dpdk-swx", "xdp"])
    @pytest.mark.parametrize("traffic", ["{offered_load: {rate_mpps: 1}}", "{pattern: poisson}"])
    def test_traffic_that_needs_a_port_is_refused_without_one(self, registered, spec, monkeypatch, name, traffic):
        target = registered(name)
        monkeypatch.setattr(type(target), "links", ())
        experiment = spec(f"traffic: {traffic}\nsweep: {{entries: [10]}}\nmetrics: {{collect: [packet_rate]}}\n")
        with pytest.raises(CapabilityError, match="load"):
            plan_sweep(experiment, target, NodeFacts({"cpus_allowed": "0-1"}))

    def test_bursts_that_are_longer_than_the_queue_are_left_out(self, registered, spec, monkeypatch):
        target = registered("fake-loaded")
        monkeypatch.setattr(type(target), "queue_packets", 256)
        text = "traffic: {{pattern: burst, burst: {{length: $length}}, frame_size: 128, offered_load: {}}}\n"
        text += "metrics: {{collect: [latency]}}\nsweep: {{entries: [10], length: [256, 257]}}\n"
        plan = plan_sweep(spec(text.format("{fraction_of_max: 0.5}")), target, NOWHERE)
        (refused,) = plan.refused
        assert (len(plan.points), refused.point.values["length"]) == (1, 257)
        assert refused.reason.startswith("a burst of 257 packets does not fit into the queue of 256 in front of")
        assert not plan_sweep(spec(text.format("{rate_mpps: 1}")), target, NOWHERE).refused

    def test_optional_metrics_are_left_out_without_a_port(self, registered, spec):
        experiment = spec("metrics: {collect: [packet_rate], optional: [latency]}\nsweep: {entries: [10]}\n")
        (point,) = plan_sweep(experiment, registered("fake"), NOWHERE).points
        assert (point.load, point.saturated, point.search_key) == (None, True, "")
        (point,) = plan_sweep(experiment, registered("fake-loaded"), NOWHERE).points
        assert point.load.metrics == ("latency",)
        assert point.saturated

    def test_a_link_that_the_target_lacks(self, registered, spec):
        with pytest.raises(CapabilityError, match="target fake-loaded has no port for the link af-packet") as caught:
            plan_sweep(spec(TABLES, ("load.link", "af-packet")), registered("fake-loaded"), NOWHERE)
        assert (caught.value.key, caught.value.hint) == ("load.link", "it has ring, memif")

    @pytest.mark.parametrize(
        ("override", "message", "key"),
        [
            (("load.search", "nothing"), "there is no search nothing", "load.search"),
            (("load.generator", "nothing"), "there is no generator nothing", "load.generator"),
            (("load.search", "overload"), "the search overload does not find throughput_ndr", "load.search"),
        ],
    )
    def test_plug_ins_that_do_not_help(self, registered, spec, override, message, key):
        with pytest.raises(SpecError) as caught:
            plan_sweep(spec(TABLES, override), registered("fake-loaded"), NOWHERE)
        assert (caught.value.message, caught.value.key) == (message, key)
        assert "mlrsearch" in caught.value.hint or "native" in caught.value.hint or "receive_rate" in caught.value.hint

    def test_the_link_is_the_first_one_of_the_target_unless_it_is_named(self, registered, spec):
        target = registered("fake-loaded")
        kinds = {p.load.link.kind for p in plan_sweep(spec(TABLES), target, NOWHERE).points}
        assert kinds == {target.links[0]}
        kinds = {p.load.link.kind for p in plan_sweep(spec(TABLES, ("load.link", "memif")), target, NOWHERE).points}
        assert kinds == {"memif"}

    def test_frames_without_room_for_a_stamp(self, registered, spec):
        text = TABLES.replace("{frame_size: 128}", "{mix: [[64, 1], [1518, 1]]}")
        with pytest.raises(CapabilityError, match=r"a frame of 64 B has no room for .* the 16 B stamp"):
            plan_sweep(spec(text, ("program.parameters.key_bits", "320")), registered("fake-loaded"), NOWHERE)

    def test_without_load_nothing_changes(self, registered, spec):
        experiment = spec("metrics: {collect: [packet_rate]}\nsweep: {entries: [10, 100]}\n")
        keys = [p.key for p in plan_sweep(experiment, registered("fake"), NOWHERE).points]
        loaded = plan_sweep(experiment, registered("fake-loaded"), NOWHERE).points
        assert [p.key for p in loaded] == keys
        assert {p.load for p in loaded} == {None}

    def test_points_are_told_apart_by_their_load(self, registered, spec):
        target = registered("fake-loaded")
        keys = set()
        for overrides in (
            (),
            (("load.slots", "512"),),
            (("load.link", "memif"),),
            (("load.trial_ms", "150"),),
            (("traffic.pattern", "poisson"),),
            (("traffic.mix", "imix"),),
            (("load.generator", "native"),),
        ):
            keys |= {p.key for p in plan_sweep(spec(LATENCY, *overrides), target, NOWHERE).points}
        assert len(keys) == 7 * 3
        again = {p.key for p in plan_sweep(spec(LATENCY), target, NOWHERE).points}
        assert len(again) == 3
        assert again <= keys

    def test_a_search_is_shared_by_points_that_differ_in_their_offered_load_only(self, registered, spec):
        target = registered("fake-loaded")
        points = plan_sweep(spec(LATENCY, ("entries", "[10, 100]")), target, NOWHERE).points
        by_key = {}
        for point in points:
            by_key.setdefault(point.search_key, set()).add(point.point.values["entries"])
        assert sorted(by_key.values(), key=min) == [{10}, {100}]
        others = plan_sweep(spec(LATENCY, ("load.slots", "512")), target, NOWHERE).points
        assert not {p.search_key for p in others} & set(by_key)

    @pytest.mark.parametrize(
        ("metrics", "offered", "saturated"),
        [
            ("[latency]", "max", False),
            ("[latency, cycles_per_packet]", "max", True),
            ("[latency, packet_rate]", "max", True),
            ("[latency, packet_rate]", "{rate_mpps: 1}", False),
            ("[latency, packet_rate, memory_bytes]", "{rate_mpps: 1}", True),
        ],
    )
    def test_the_target_is_its_own_packet_source_where_that_is_asked_for(
        self, registered, spec, metrics, offered, saturated
    ):
        """At an offered load the packet rate is that of the load generator."""
        text = f"metrics: {{collect: {metrics}}}\ntraffic: {{offered_load: {offered}}}\nsweep: {{entries: [10]}}\n"
        (point,) = plan_sweep(spec(text), registered("fake-loaded"), NOWHERE).points
        assert point.saturated is saturated


class TestJournal:
    def test_it_has_what_the_load_generator_saw(self, measured):
        run, plan, outcome = measured(TABLES)
        assert (outcome.complete, outcome.trials, outcome.exit_code) == (3, 6, 0)
        for planned in plan.points:
            trials = run.trials(planned.key)
            assert [t["trial"]["attempt"] for t in trials] == [0, 1]
            for trial in trials:
                assert "record" not in trial, "nobody asked for the target as its own packet source"
                assert trial["load"]["generator"] == "fake"
                assert [o["fraction"] for o in trial["load"]["offered"]] == [0.1, 0.5, 0.7]
                assert trial["load"]["search"]["trials"]

    def test_both_ways_of_measuring_are_in_one_trial(self, measured):
        text = TABLES.replace("[throughput_ndr, latency]", "[cycles_per_packet, throughput_ndr]")
        run, plan, _ = measured(text)
        for planned in plan.points:
            assert all({"record", "load"} <= set(trial) for trial in run.trials(planned.key))
        metrics = set(run.read_measurements()["metric"])
        assert {"cycles_per_packet", "throughput_ndr", "throughput_ndr_upper"} <= metrics

    def test_the_table_has_the_metrics(self, measured):
        run, plan, _ = measured(TABLES)
        table = run.read_measurements()
        assert table["accepted"].all()
        counts = table.groupby("metric").size()
        for name in ("throughput_ndr", "latency_p50_at_10", "latency_p99_at_70", "latency_floor_p50_at_50"):
            assert counts[name] == 2 * len(plan.points), name
        assert set(table[table["metric"] == "throughput_ndr"]["unit"]) == {"Mpps"}
        assert not table["value"].isna().any()
        assert not table.duplicated(["point", "attempt", "metric"]).any()

    def test_latencies_are_beside_it_for_other_tools(self, measured):
        run, plan, _ = measured(TABLES)
        for planned in plan.points:
            for attempt in (0, 1):
                logged = read_hlog(run.path / "points" / planned.key / f"latency-{attempt}.hlog")
                tags = [one.tag for one in logged]
                assert tags == [f"{t}-{f}" for f in ("0.1", "0.5", "0.7") for t in ("load", "floor")]

    def test_repetitions_have_seeds_of_their_own(self, measured):
        measured(TABLES)
        seeds = [load.seed for session in FakeGenerator.opened for load in session.asked[:1]]
        assert len(set(seeds)) == 2

    def test_a_metric_of_load_can_be_the_headline(self, measured):
        text = LATENCY + "model: {x: load, y: latency_p99}\n"
        _, _, outcome = measured(text)
        assert outcome.trials == 6


class TestSharedSearches:
    def test_one_point_of_a_repetition_searches(self, measured, log):
        run, plan, _ = measured(LATENCY)
        by_repetition = {0: [], 1: []}
        for planned in plan.points:
            for trial in run.trials(planned.key):
                by_repetition[trial["trial"]["repetition"]].append((planned.key, trial["load"]["search"]))
        for found in by_repetition.values():
            searched = [key for key, search in found if "searched_at" not in search]
            assert len(searched) == 1
            assert {search["searched_at"] for _, search in found if "searched_at" in search} == set(searched)
            assert len({json.dumps(search["bounds"]) for _, search in found}) == 1
        # Warm-up, the generator alone, program and floor: nothing else where the search is known.
        assert sorted(len(session["rates"]) for session in sessions(log))[:4] == [4, 4, 4, 4]
        assert len(sessions(log)) == 6

    def test_other_programs_search_for_themselves(self, measured):
        run, plan, _ = measured(LATENCY, ("entries", "[10, 100]"), ("trials.repetitions", "1"))
        own = [
            planned.point.values["entries"]
            for planned in plan.points
            for trial in run.trials(planned.key)
            if "searched_at" not in trial["load"]["search"]
        ]
        assert sorted(own) == [10, 100]

    def test_the_loads_are_fractions_of_what_was_found(self, measured):
        run, plan, _ = measured(LATENCY)
        for planned in plan.points:
            for trial in run.trials(planned.key):
                (offered,) = trial["load"]["offered"]
                ndr = trial["load"]["search"]["bounds"]["ndr"]["lower_pps"]
                assert offered["rate_pps"] == planned.point.values["load"] * ndr


class TestFailures:
    def test_one_of_the_generator_fails_its_trial_and_the_sweep_goes_on(self, measured, monkeypatch):
        monkeypatch.setenv("P4PERF_FAKE_LOAD", json.dumps({"fail_entries": [100]}))
        run, plan, outcome = measured(TABLES)
        assert outcome.failed == (("entries=100", "the device under test died (signal 11)"),)
        assert (outcome.complete, outcome.starved, int(outcome.exit_code)) == (2, (), 4)
        for planned in plan.points:
            trials = run.trials(planned.key)
            if planned.label == "entries=100":
                assert len(trials) == 3
                assert {t["failure"]["message"] for t in trials} == {"the device under test died (signal 11)"}
                assert not any("load" in t for t in trials)
            else:
                assert len(trials) == 2
                assert not any("failure" in t for t in trials)

    def test_if_nothing_works_the_first_reason_is_told(self, tmp_path):
        result = cli(tmp_path, "-q", P4PERF_FAKE_LOAD=json.dumps({"fail_entries": [10, 100, 1000]}))
        assert result.code == 4
        assert "the device under test died (signal 11)" in result.err
        assert "Traceback" not in result.err

    def test_a_search_that_finds_nothing_starves_its_point(self, measured, monkeypatch):
        monkeypatch.setenv("P4PERF_FAKE_LOAD", json.dumps({"capacity_pps": 0.01}))
        run, _, outcome = measured(TABLES, ("trials.repetitions", "1"), ("trials.max_attempts", "2"))
        assert outcome.starved == ("entries=10", "entries=100", "entries=1000")
        assert all("below_minimum" in flags for flags in outcome.starved_flags)
        table = run.read_measurements()
        assert not table["accepted"].any()
        assert all("below_minimum" in flags for flags in table["flags"])


def cli(folder, *options, text=TABLES, command="run", **env):
    """The command on the fake target with links."""
    path = folder / "spec.yaml"
    path.write_text(HEAD + text)
    plugin_path = os.pathsep.join(map(str, (PLUGIN, FAKES, SUPPORT)))
    what = ("run", path, "--target", "fake-loaded", "-o", folder / "runs") if command == "run" else (command,)
    return p4perf(*what, *options, cwd=folder, PYTHONPATH=plugin_path, **env)


class TestKilled:
    @pytest.mark.sampled(1)
    @pytest.mark.parametrize("kill_at", [1, 3, 5])
    @pytest.mark.parametrize("text", [TABLES, LATENCY], ids=["tables", "loads"])
    def test_a_resumed_run_measures_only_what_is_missing(self, tmp_path, kill_at, text):
        log = tmp_path / "sessions.jsonl"
        env = {"P4PERF_FAKE_LOAD_LOG": str(log)}
        killed = cli(tmp_path, "-q", text=text, P4PERF_FAKE_LOAD=json.dumps({"kill_at": kill_at}), **env)
        assert killed.code == -9
        (run,) = (tmp_path / "runs").iterdir()
        before = journals(run)
        assert sum(map(len, before.values())) == kill_at
        assert len(sessions(log)) == kill_at
        resumed = cli(tmp_path, run, "-q", text=text, command="resume", **env)
        assert resumed.code == 0, resumed.err
        after = journals(run)
        assert all(after[point][: len(trials)] == trials for point, trials in before.items())
        assert {len(trials) for trials in after.values()} == {2}
        assert len(after) == 3
        assert len(sessions(log)) == 6, "a trial that was finished was made again"

    @pytest.mark.thorough
    def test_a_search_from_before_is_used_after(self, tmp_path):
        log = tmp_path / "sessions.jsonl"
        env = {"P4PERF_FAKE_LOAD_LOG": str(log)}
        cli(tmp_path, "-q", text=LATENCY, P4PERF_FAKE_LOAD=json.dumps({"kill_at": 1}), **env)
        (run,) = (tmp_path / "runs").iterdir()
        assert cli(tmp_path, run, "-q", text=LATENCY, command="resume", **env).code == 0
        offers = [len(session["rates"]) for session in sessions(log)]
        assert offers[0] > 4
        assert offers[1:3] == [4, 4]

    @pytest.mark.thorough
    def test_a_complete_run_has_nothing_to_resume(self, measured, log):
        run, _, _ = measured(TABLES)
        done = len(sessions(log))
        _, outcome = resume_run(run.path)
        assert (outcome.trials, outcome.complete, len(sessions(log))) == (0, 3, done)


def journals(run):
    """The complete lines of all journals."""
    return {
        path.parent.name: [line for line in path.read_bytes().split(b"\n")[:-1] if line]
        for path in run.glob("points/*/raw.jsonl")
    }


class TestStrict:
    FLAGGED = json.dumps({"flag": "no_realtime"})

    def test_without_flags_it_changes_nothing(self, tmp_path):
        result = cli(tmp_path, "--strict")
        assert result.code == 0, result.err
        assert "quality flags of the accepted trials: none" in result.err

    @pytest.mark.thorough
    def test_with_flags_there_is_no_model(self, tmp_path):
        text = TABLES + "model: {y: throughput_ndr}\n"
        result = cli(tmp_path, "--strict", text=text, P4PERF_FAKE_LOAD=self.FLAGGED)
        assert result.code == 4
        assert "--strict refuses these: no_realtime (6)" in result.err
        assert "Traceback" not in result.err
        (run,) = (tmp_path / "runs").iterdir()
        assert not (run / "model.json").exists()
        assert {len(trials) for trials in journals(run).values()} == {2}, "the trials are kept"
        assert f"p4perf fit runs/{run.name} makes a model" in result.err
        assert p4perf("fit", run).code == 0
        assert (run / "model.json").exists()

    @pytest.mark.thorough
    def test_without_it_flags_are_only_told(self, tmp_path):
        text = TABLES + "model: {y: throughput_ndr}\n"
        result = cli(tmp_path, text=text, P4PERF_FAKE_LOAD=self.FLAGGED)
        assert result.code == 0, result.err
        assert "quality flags of the accepted trials: no_realtime (6)" in result.err
        (run,) = (tmp_path / "runs").iterdir()
        assert (run / "model.json").exists()
        again = cli(tmp_path, run, "--strict", command="resume")
        assert again.code == 4
        assert "no_realtime (6)" in again.err

    def test_it_is_for_one_experiment_on_one_target(self, tmp_path):
        result = cli(tmp_path, "--strict", "--target", "fake")
        assert result.code == 2
        assert "--strict is for one experiment on one target" in result.err

    def test_targets_without_a_load_generator_know_it_too(self, tmp_path):
        result = p4perf("run", "mat/exact-entries", "--points", 3, "-t", "fake", "-o", tmp_path / "runs", "--strict")
        assert result.code == 0, result.err
