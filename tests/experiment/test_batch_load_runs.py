"""Sweeps with a load generator on the fake of pos: a device on one node, MoonGen on the other, nobody answers."""

import json

import pytest
from support.command import p4perf
from support.moongen import moongen, why_not
from support.pos import FakePos

from p4perf.results import RunDirectory

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

RATE = ["--set", "traffic.offered_load={rate_mpps: 0.0003}"]
SPEC = ["mat/exact-entries", "--points", 2, "--set", "trials.repetitions=1", "--target", "fake-served"]


class Lab:
    """Two nodes of pos: a device with a capacity of 500 packets per second, of 800 with the baseline, and MoonGen."""

    def __init__(self, folder):
        self.folder, self.pos, self.capacity = folder, FakePos(folder / "pos"), folder / "capacity"

    def address(self, **options):
        path = moongen(self.folder / "MoonGen", self.capacity, **{"link_mbit": 1, **options})
        site = self.pos.loaded_site(path, cpu_ghz=2.0, tools={"fake_capacity": str(self.capacity)})
        return f"pos:{site}"

    def run(self, *words, **options):
        return p4perf("run", *SPEC, *words, "--testbed", self.address(**options), "-o", self.folder / "runs")

    @property
    def only(self):
        (run,) = [p for p in (self.folder / "runs").glob("[!.]*") if (p / "manifest.json").exists()]
        return RunDirectory.open(run)


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def medians(run):
    table = run.read_measurements()
    return table[table["accepted"]].groupby("metric")["value"].median()


def entries(run):
    return [entry for point in run.points() for entry in run.trials(point)]


def test_a_sweep(lab):
    done = lab.run()
    assert done.code == 0, done.err
    found = medians(lab.only)
    assert found["packet_rate"] == pytest.approx(500e-6, rel=0.02)
    assert found["cost_cycles_per_packet"] == pytest.approx(2e9 / 500 - 2e9 / 800, rel=0.05)
    assert lab.only.manifest()["place"]["load_generator_node"] == "nida"
    for entry in entries(lab.only):
        assert entry["load"]["overload"]["raw"]["evidence"] == {"counting before": "500\n", "counting after": "500\n"}
        assert entry["load"]["baseline"]["raw"]["evidence"] == {"counting before": "800\n", "counting after": "800\n"}
    assert not lab.capacity.exists(), "the device was released"
    assert lab.pos.freed
    (tree,) = lab.pos.trees
    names = {path.name for path in (tree / "nida").iterdir()}
    assert names >= {"load0-max-load-rx_run0.csv", "load1-max-load-tx_run0.csv", "steps_run0.txt"}


def test_latency_at_a_rate(lab):
    sets = ["--set", "metrics.collect=[packet_rate, latency, loss_ratio]", *RATE, "--set", "load.latency_ms=5000"]
    done = lab.run(*sets, "--set", "model=null", "--points", 1, link_mbit=10)
    assert done.code == 0, done.err
    found = medians(lab.only)
    assert found["latency_p50"] == pytest.approx(5.03, abs=0.05)
    assert found["offered_rate"] == pytest.approx(300e-6, rel=0.02)
    assert list(lab.only.path.glob("points/*/latency-0.hlog"))


def test_fixed_rates_in_a_sweep(lab):
    sets = ["--set", "sweep={rate: [0.0002, 0.0004]}", "--set", "traffic.offered_load={rate_mpps: $rate}"]
    sets += ["--set", "program.parameters.entries=100", "--set", "metrics.collect=[packet_rate, loss_ratio]"]
    done = p4perf(
        *(
            "run",
            "mat/exact-entries",
            "--target",
            "fake-served",
            "--set",
            "model=null",
            "--set",
            "trials.repetitions=1",
        ),
        *(*sets, "--set", "trials.repetitions=1", "--testbed", lab.address(), "-o", lab.folder / "runs"),
    )
    assert done.code == 0, done.err
    table = lab.only.read_measurements()
    offered = table[table["metric"] == "offered_rate"].set_index("rate")["value"]
    assert offered.to_dict() == pytest.approx({0.0002: 0.0002, 0.0004: 0.0004}, rel=0.02)


def test_the_run_is_the_one_of_two_nodes_that_are_reached_by_ssh(lab, new_node):
    """The spec is the same to the byte, the points are the same, and both can be compared."""
    assert lab.run().code == 0
    dut, sender = new_node("dut"), new_node("sender")
    file = lab.folder / "nodes.yaml"
    file.write_text(
        "nodes:\n"
        + dut.entry(roles="[dut]", cpu_ghz=2.0, tools=f"{{fake_capacity: {lab.capacity}}}")
        + sender.entry(
            roles="[loadgen]",
            load_generator="moongen",
            tools=f"{{moongen: {lab.folder}/MoonGen}}",
            interfaces="{tx: '0000:04:00.0', rx: '0000:04:00.1'}",
        )
    )
    done = p4perf("run", *SPEC, "--testbed", f"ssh:{file}", "-o", lab.folder / "other" / "runs")
    assert done.code == 0, done.err
    ours, theirs = lab.only, Lab(lab.folder / "other").only
    assert (ours.path / "spec.yaml").read_bytes() == (theirs.path / "spec.yaml").read_bytes()
    assert ours.manifest()["planned_points"] == theirs.manifest()["planned_points"]
    for one, other in zip(entries(ours), entries(theirs), strict=True):
        assert one["load"].keys() == other["load"].keys()
        assert one["load"]["overload"].keys() == other["load"]["overload"].keys()
        assert one["load"]["overload"]["raw"].keys() == other["load"]["overload"]["raw"].keys()
    words = ("--format", "json", "--output", lab.folder / "compared")
    compared = p4perf("compare", ours.path, theirs.path, *words)
    assert compared.code == 0, compared.err
    (experiment,) = json.loads(compared.out)["experiments"]
    assert experiment["shared_points"] == [1, 20_000_000]


class TestRefused:
    """What has to be answered between trials; nothing is allocated for it."""

    @pytest.mark.parametrize(
        "sets",
        [
            ["metrics.collect=[packet_rate, cycles_per_packet, throughput_ndr]"],
            ["metrics.collect=[packet_rate, cycles_per_packet, latency]"],
            [
                "metrics.collect=[packet_rate, cycles_per_packet, latency]",
                "load.search=overload",
            ],
        ],
    )
    def test_searches(self, lab, sets):
        refused = lab.run(*(word for text in sets for word in ("--set", text)))
        assert refused.code == 2, refused.err
        assert "testbed pos:cesis cannot search a throughput" in refused.err
        assert "sweep fixed rates (traffic.offered_load: {rate_mpps: ...})" in refused.err
        assert lab.pos.log == []
        assert not (lab.folder / "runs").exists()

    @pytest.mark.parametrize("place", ["pos", "manual"])
    def test_no_load_generator(self, lab, place):
        address = f"pos:{lab.pos.known_site()}" if place == "pos" else f"manual:{lab.folder / 'carried'}"
        refused = p4perf("run", *SPEC, "--testbed", address, "-o", lab.folder / "runs")
        assert refused.code == 2, refused.err
        assert "is loaded from outside, and testbed " in refused.err
        assert "has no load generator" in refused.err
        assert lab.pos.log == []

    def test_one_that_answers_between_trials(self, lab):
        refused = lab.run("--set", "load.generator=native")
        assert refused.code == 2, refused.err
        assert "load generator native answers between trials" in refused.err


def moongen_that(lab, *lines):
    """The double, and what happens then."""
    real = lab.folder / "MoonGen"
    moongen(lab.folder / "real-MoonGen", lab.capacity, link_mbit=1)
    real.write_text("\n".join(["#!/bin/sh", f'"{lab.folder}/real-MoonGen" "$@"', *lines, ""]))
    real.chmod(0o755)
    return f"pos:{lab.pos.loaded_site(real, cpu_ghz=2.0, tools={'fake_capacity': str(lab.capacity)})}"


class TestFaults:
    """One clear error that names node and step; the nodes are freed, the device is released, the others are kept."""

    def check(self, lab, done, *messages, code=4):
        assert done.code == code, done.err
        text = " ".join(done.err.split())
        for message in messages:
            assert message in text
        assert "Traceback" not in text
        assert lab.pos.freed
        assert not lab.capacity.exists(), "the device was released"

    def test_moongen_ends_with_0_after_a_fatal_error(self, lab):
        sets = ["--set", "metrics.collect=[packet_rate, latency]", *RATE, "--set", "model=null", "--points", 1]
        self.check(lab, lab.run(*sets, no_timestamps=True), "node nida, latency.lua: MoonGen failed: ")
        assert {entry["failure"]["exit_code"] for entry in entries(lab.only)} == {4}

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([": >max-load-rx.csv"], "max-load-rx.csv is empty"),
            (["rm max-load-tx.csv"], "MoonGen left no file of its tx counter"),
            (["echo 1,2 >>max-load-rx.csv"], "has 2 cells"),
        ],
    )
    def test_files_of_moongen_that_are_not_whole(self, lab, lines, message):
        address = moongen_that(lab, *lines)
        done = p4perf("run", *SPEC, "--points", 1, "--testbed", address, "-o", lab.folder / "runs")
        self.check(lab, done, "node nida, max-load.lua: ", message)

    def test_a_step_of_the_device_that_fails(self, lab):
        site = lab.pos.loaded_site(moongen(lab.folder / "MoonGen", link_mbit=1), tools={"fake_capacity": "/no/file"})
        done = p4perf("run", *SPEC, "--points", 1, "--testbed", f"pos:{site}", "-o", lab.folder / "runs")
        self.check(lab, done, "node cesis, counting before: the command ended with status 1: cat: /no/file")

    def test_a_trial_that_fails_does_not_take_others_along(self, lab):
        once = f'if [ ! -e "{lab.folder}/seen" ]; then touch "{lab.folder}/seen"; : >max-load-rx.csv; fi'
        done = p4perf("run", *SPEC, "--testbed", moongen_that(lab, once), "-o", lab.folder / "runs")
        assert done.code == 0, done.err
        assert sorted("failure" in entry for entry in entries(lab.only)) == [False, False, True]
        assert len(list(lab.only.path.glob("batches/*"))) == 2

    @pytest.mark.parametrize("how", ["lost_runs", "silent_runs"])
    def test_a_node_that_does_not_come_to_a_meeting(self, lab, how):
        """The first run of the node of the device is lost; the other one does not wait for ever."""
        lab.pos.configure(sync_timeout_s=1.0, **{how: [0]})
        done = lab.run()
        assert done.code == 0, done.err
        text = " ".join(done.err.split())
        assert "1 of 2 trials have no result; the first" in text
        if how == "lost_runs":
            assert "the node with the role dut has no run of it; node nida waited in vain at load0-begin" in text
        else:
            assert "node cesis, measuring, run 0: it has no status: the command did not end" in text
        assert len(entries(lab.only)) == 2

    def test_a_measurement_that_is_killed(self, lab):
        lab.pos.configure(sync_timeout_s=1.0)
        role = "$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status)"
        kill = f'if [ ! -e "{lab.folder}/seen" ]; then touch "{lab.folder}/seen"; kill -KILL {role}; fi'
        done = p4perf("run", *SPEC, "--testbed", moongen_that(lab, kill), "-o", lab.folder / "runs")
        assert done.code == 0, done.err
        text = " ".join(done.err.split())
        assert "node nida, measuring, run 0: it ended as 'error'" in text
        assert "node cesis waited in vain at load0-end" in text
        assert not lab.capacity.exists(), "the device was released"
        assert len(entries(lab.only)) == 2

    def test_a_full_disk(self, lab):
        lab.pos.configure(full_runs=[0])
        done = lab.run()
        assert done.code == 0, done.err
        assert "node cesis, measuring, run 0: it ended as 'error': OSError: [Errno 28] No space left" in " ".join(
            done.err.split()
        )
