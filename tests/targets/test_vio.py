"""Target vio: sizes that go together, what it refuses, the job of a trial, and what its output means."""

import json

import pytest

from p4perf.errors import CapabilityError, MeasurementError, SpecError
from p4perf.experiment import open_target, plan_sweep
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs import load_experiment
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, NodeFacts, TrialOptions
from p4perf.targets.vio import VioTarget, configuration, share_a_core, two_cores

TARGET = VioTarget()
ALL_FACTORS = {
    "virtio_header_bytes": 0,
    "descriptor_bytes": 4,
    "header_bytes": 0,
    "headroom_bytes": 0,
    "data_room_bytes": 64,
    "rx_copy": "none",
    "tx_copy": "none",
    "batch": 1024,
    "queue": 2048,
    "host_cache": 1024,
    "function_cache": 1024,
    "rx_ring": 1024,
    "tx_ring": 1024,
}


def queues(frame_size=64, **parameters):
    return build_workload([("vio", parameters)], frame_size_bytes=frame_size)


def node(**more):
    known = {
        "cc_version": "cc 12",
        "cpus_allowed": "0-3",
        "thread_siblings": "0-1 2-3 ",
        "shared_memory": "yes",
        "realtime": "yes",
        "memory_available_bytes": str(8 << 30),
        "hugepage_bytes": str(2 << 20),
        "hugepages_free": "0",
    }
    return NodeFacts({key: value for key, value in {**known, **more}.items() if value is not None})


def plan(workload=None, facts=None, **traffic):
    return TARGET.plan(workload or queues(), TrafficPlan(64, **traffic), facts or node())


class TestLayout:
    def test_the_base(self):
        io = queues().program.virtual_io
        assert (io.data_offset_bytes, io.stride_bytes) == (128 + 128, 2304)
        assert (io.rx_batch, io.function_batch, io.tx_batch, io.lag) == (32, 32, 32, 1)
        assert io.shared_bytes == 16384 * 2304 + 2 * 256 * 16

    def test_the_smallest_buffer_is_a_line(self):
        assert queues(**ALL_FACTORS).program.virtual_io.stride_bytes == 64

    def test_a_virtio_header_has_a_line_of_its_own_without_headroom(self):
        small = {"header_bytes": 0, "headroom_bytes": 0, "data_room_bytes": 64}
        io = queues(**small).program.virtual_io
        assert (io.data_offset_bytes, io.stride_bytes) == (64, 128)

    def test_a_header_takes_whole_lines(self):
        assert queues(header_bytes=32).program.virtual_io.header_room_bytes == 64

    def test_a_batch_is_that_of_everybody_who_has_none(self):
        io = queues(batch=64, tx_batch=128, queue=512).program.virtual_io
        assert (io.rx_batch, io.function_batch, io.tx_batch, io.lag) == (64, 64, 128, 2)

    def test_switches_of_the_compiler(self):
        base, small = (configuration(queues(**p).program.virtual_io, 64) for p in ({}, ALL_FACTORS))
        for line in ("PACKET_BYTES 60", "VIRTIO_HEADER_BYTES 12", "STRIDE_BYTES 2304", "RX_COPY COPY_PLAIN", "LAG 1"):
            assert f"#define {line}\n" in base
        for line in ("VIRTIO_HEADER_BYTES 0", "STRIDE_BYTES 64", "TX_COPY COPY_NONE", "FUNCTION_BATCH 1024"):
            assert f"#define {line}\n" in small


class TestSizes:
    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({"batch": 48}, "no power of two"),
            ({"queue": 300}, "no power of two"),
            ({"batch": 1024}, "does not fit into a queue of 256"),
            ({"tx_batch": 512}, "does not fit into a queue of 256"),
            ({"function_batch": 256, "tx_batch": 256, "rx_batch": 256, "queue": 128}, "does not fit"),
            ({"function_batch": 128, "queue": 128, "rx_batch": 1, "tx_batch": 1, "buffers": 256}, "fewer than the"),
            ({"rx_ring": 20000}, "fewer than the"),
            ({"descriptor_bytes": 4, "buffers": 100_000}, "16 bits"),
        ],
        ids=str,
    )
    def test_sizes_that_do_not_go_together(self, parameters, words):
        with pytest.raises(CapabilityError, match=words) as caught:
            plan(queues(**parameters))
        assert caught.value.key.startswith("program.parameters.")

    def test_batches_that_would_wait_for_each_other(self):
        """Up to 255 packets wait for a batch of the function, and then there is no room for another batch of 32."""
        with pytest.raises(CapabilityError, match="wait for each other"):
            plan(queues(rx_batch=128, function_batch=1, tx_batch=256, queue=256))
        assert plan(queues(rx_batch=32, function_batch=256, tx_batch=32, queue=256)).key

    def test_a_point_whose_sizes_do_not_go_together_is_refused_alone(self):
        spec = [("sweep.queue", "[64, 128, 300]")]
        planned = plan_sweep(load_experiment("vio/queue", overrides=spec), TARGET, node())
        assert [p.point.values["queue"] for p in planned.points] == [64, 128]
        assert "no power of two" in planned.refused[0].reason

    @pytest.mark.parametrize("parameters", [{"header_bytes": 100}, {"rx_copy": "fast"}, {"batch": 0}, {"cores": 3}])
    def test_what_a_parameter_does_not_take(self, parameters):
        with pytest.raises(SpecError):
            queues(**parameters)

    def test_two_hosts(self):
        with pytest.raises(CapabilityError, match="one host"):
            build_workload([("vio", {}), ("vio", {})], frame_size_bytes=64)

    def test_a_packet_larger_than_a_buffer(self):
        with pytest.raises(CapabilityError, match="does not fit into a data room of 64"):
            plan(queues(128, data_room_bytes=64))

    def test_a_body_smaller_than_what_is_read(self):
        with pytest.raises(CapabilityError, match="behind its number"):
            plan(queues(64, body_read_bytes=48))


class TestWhoTakesWhat:
    @pytest.mark.parametrize("name", [n for n in plugin_names("p4perf.targets") if n not in ("vio", "fake")])
    def test_other_targets_refuse_the_queues_and_name_the_target(self, name):
        with pytest.raises(CapabilityError, match=r"no virtual I/O: .*target vio"):
            open_target(name).plan(queues(), TrafficPlan(64), node())

    @pytest.mark.parametrize("name", ["v1model", "psa", "dpdk-c", "swx", "xdp"])
    def test_no_language_has_them(self, name):
        with pytest.raises(CapabilityError, match="no virtual I/O"):
            list(load_plugin("p4perf.generators", name)().generate(queues(), TrafficPlan(64)))

    @pytest.mark.parametrize("name", ["mat/exact-entries", "parser/headers", "baseline/l2fwd", "action/arithmetic"])
    def test_programs_are_refused(self, name):
        with pytest.raises(CapabilityError, match="use component vio alone"):
            plan_sweep(load_experiment(name), TARGET, node())

    @pytest.mark.parametrize("other", [("parser_headers", {"headers": 2}), ("metadata_writes", {"writes": 2})], ids=str)
    def test_programs_behind_the_queues_are_refused(self, other):
        workload = build_workload([("vio", {}), other], frame_size_bytes=256)
        with pytest.raises(CapabilityError, match="no program runs"):
            TARGET.plan(workload, TrafficPlan(256), node())

    def test_an_offered_load_is_refused(self):
        with pytest.raises(CapabilityError, match="offered load"):
            plan(offered_load_mpps=1.0)

    def test_contents_that_nobody_reads_are_refused(self):
        experiment = load_experiment("vio/base", overrides=[("traffic.payload", "abcd")])
        with pytest.raises(CapabilityError, match="fills packets itself"):
            plan_sweep(experiment, TARGET, node())


class TestPlanning:
    def test_the_cells_of_the_design(self):
        planned = plan_sweep(load_experiment("vio/factors"), TARGET, node())
        assert len(planned.points) == 64
        assert not planned.refused
        assert len({p.plan.build.key for p in planned.points}) == 64
        assert len({p.plan.build.parts["harness"].key for p in planned.points}) == 1

    @pytest.mark.parametrize("name", ["vio/base", "vio/header-size", "vio/batch", "vio/queue", "vio/descriptor-size"])
    def test_the_catalogue(self, name):
        assert not plan_sweep(load_experiment(name), TARGET, node()).refused

    def test_too_little_memory(self):
        with pytest.raises(CapabilityError, match="but 100 MiB are available") as caught:
            plan(facts=node(memory_available_bytes=str(100 << 20)))
        assert caught.value.key == "program.parameters.buffers"

    def test_keys(self):
        assert plan().key == plan().key
        assert plan(queues(header_bytes=256)).key != plan().key
        assert plan(queues(128)).key != plan().key, "another size of packets"
        assert plan(facts=node(cc_version="cc 13")).key != plan().key
        assert plan(facts=node(memory_available_bytes=None)).key == plan().key

    def test_the_words_of_a_trial(self):
        argv = TARGET.trial(plan(), TrialOptions(gate_ratio=0.25, hugepages=True, seed=7), node()).argv
        assert argv[0] == "{build}/vio"
        words = " ".join(argv)
        for word in ("--function-cpu 3", "--host-cpu 1", "--gate-ratio 0.25000", "--hugepages", "--seed 7"):
            assert word in words
        plain = TARGET.trial(plan(), TrialOptions(mode="plain", gate_ratio=0.25), node()).argv
        assert "--plain" in plain
        assert "--gate-ratio" not in plain

    def test_hugepages_if_there_are_enough(self):
        memory = plan().memory_bytes
        assert not TARGET.use_hugepages(memory, node(hugepages_free="10"))
        assert TARGET.use_hugepages(memory, node(hugepages_free="1000"))


class TestProblems:
    @staticmethod
    def fatal(**facts):
        return [p.what for p in TARGET.problems(node(**facts)) if p.fatal]

    def test_none(self):
        assert self.fatal() == []

    def test_one_core(self):
        assert "need a CPU each" in self.fatal(cpus_allowed="2")[0]

    def test_no_shared_memory(self):
        assert "share" in self.fatal(shared_memory="no")[0]

    def test_no_compiler(self):
        assert "compiler" in self.fatal(cc_version=None)[0]

    def test_two_threads_of_one_core_are_told(self):
        told = [p.what for p in TARGET.problems(node(cpus_allowed="2-3")) if not p.fatal]
        assert any("threads of one core" in what for what in told)


@pytest.mark.parametrize(
    ("allowed", "siblings", "isolated", "pair"),
    [
        ("0-1", "", "", (1, 0)),
        ("0-1", "0 1 ", "", (1, 0)),
        ("0-3", "0,2 1,3 ", "", (3, 2)),
        ("0-3", "0-1 2-3 ", "", (3, 1)),
        ("0-3", "0-1 2-3 ", "1", (1, 3)),
        ("0-1", "0-1 ", "", (1, 0)),
        ("0", "0 ", "", None),
        ("", "", "", None),
    ],
)
def test_two_cores(allowed, siblings, isolated, pair):
    facts = NodeFacts({"cpus_allowed": allowed, "thread_siblings": siblings, "isolated_cpus": isolated})
    assert two_cores(facts) == pair
    if pair is not None:
        assert share_a_core(facts, pair) == (siblings == "0-1 ")


def record(n=30, cycles=200.0, **windows):
    columns = {
        "program": [0] * n,
        "tsc_per_packet": [cycles] * n,
        **{f"{of}{key}": [0] * n for of in ("", "peer_") for key in ("preemptions",)},
        **{f"{of}chain_{when}_tsc": [8.0] * n for of in ("", "peer_") for when in ("before", "after")},
        **{f"{of}mix_{when}_tsc": [2.0] * n for of in ("", "peer_") for when in ("before", "after")},
        **windows,
    }
    return {
        "harness_version": 1,
        "programs": ["vio"],
        "tsc_hz": 2e9,
        "chain_core_cycles": 12.0,
        "gated": True,
        "gate_ratio": 0.25,
        "gate_tolerance": 0.15,
        "drift_tolerance": 0.05,
        "realtime": True,
        "hugepages": False,
        "timed_out": False,
        "memory_bytes": 1000,
        "windows": {"n": n, **columns},
    }


class TestRecords:
    def test_metrics(self):
        summary = TARGET.summarise(record(), None)
        values = {m.metric: m.value for m in summary.metrics}
        assert summary.accepted
        assert summary.flags == ("no_hugepages",)
        assert values["packet_rate"] == pytest.approx(10.0)
        assert values["cycles_per_packet"] == pytest.approx(300.0)
        assert set(TARGET.metrics) <= set(values)
        assert all(m.unit == METRICS[m.metric].unit for m in summary.metrics if m.metric in METRICS)

    @pytest.mark.parametrize(
        "windows",
        [
            {"peer_preemptions": [0] * 15 + [1] * 15},
            {"peer_mix_after_tsc": [2.0] * 15 + [3.0] * 15},
            {"peer_chain_after_tsc": [8.0] * 15 + [9.0] * 15},
            {"mix_before_tsc": [2.0] * 15 + [3.0] * 15},
        ],
        ids=str,
    )
    def test_windows_in_which_either_core_was_disturbed_do_not_count(self, windows):
        summary = TARGET.summarise(record(**windows), None)
        assert not summary.accepted
        assert "few_windows" in summary.flags
        assert {m.metric: m.value for m in summary.metrics}["windows_counted"] == 15

    def test_counters_where_there_are_any(self):
        sides = {
            f"{side}_{what}": [value] * 30 for side, value in (("host", 2.0), ("function", 1.0)) for what in COUNTED
        }
        values = {m.metric: m.value for m in TARGET.summarise(record(**sides), None).metrics}
        assert (values["host_l1_misses"], values["function_l1_misses"]) == (2.0, 1.0)
        assert (values["instructions"], values["cache_misses"]) == (3.0, 3.0)

    def test_wrong_packets_end_the_point(self):
        said = json.dumps({"error": "packet 7 came back where packet 6 was expected", "kind": "verify"})
        with pytest.raises(MeasurementError, match="packet 7") as caught:
            TARGET.parse(JobResult(1, said + "\n", "", 0.1))
        assert caught.value.key == "verify"

    def test_a_record_that_lacks_the_second_core(self):
        damaged = record()
        del damaged["windows"]["peer_mix_after_tsc"]
        with pytest.raises(MeasurementError, match="peer_mix_after_tsc"):
            TARGET.parse(JobResult(0, json.dumps(damaged), "", 0.1))


COUNTED = ("instructions", "l1_misses", "llc_misses")


def traced(packets, fetched):
    line = {"packets": packets, "host_pid": 10, "function_pid": 11}
    line |= {f"{side}_{what}": 0 for side in ("host", "function") for what in ("fetched", "upgraded")}
    return json.dumps(line | {"host_fetched": 3 * fetched, "function_fetched": 2 * fetched})


def simulated(packets, host, function):
    counts = "\n".join(
        f"=={pid}== {name} {n:,}"
        for pid, n in ((10, host), (11, function))
        for name in ("I refs:", "I1  misses:", "D1  misses:", "LL misses:")
    )
    return JobResult(0, traced(packets, 0) + "\n", counts, 1.0)


class TestSimulation:
    def test_lines_and_misses_by_side(self):
        trace = [JobResult(0, traced(n, n), "", 1.0) for n in (1000, 2000)]
        cachegrind = [simulated(n, 10 * n, n) for n in (1000, 2000)]
        values = {m.metric: m.value for m in VioTarget().simulated([*trace, *cachegrind])}
        assert values["simulated_host_line_requests"] == 3
        assert values["simulated_function_line_requests"] == 2
        assert values["simulated_host_l1_misses"] == 20, "instructions and data"
        assert values["simulated_function_l1_misses"] == 2
        assert set(values) == set(TARGET.simulates)

    def test_without_valgrind_there_are_the_transfers(self):
        jobs = TARGET.simulation(plan(), TrialOptions(), node())
        assert len(jobs) == 2
        values = VioTarget().simulated([JobResult(0, traced(n, n), "", 1.0) for n in (1000, 2000)])
        assert {m.metric for m in values} == {"simulated_host_line_requests", "simulated_function_line_requests"}

    @pytest.mark.parametrize("bad", [JobResult(1, "", "boom", 1.0), JobResult(0, '{"packets": 5}', "", 1.0)], ids=str)
    def test_a_run_that_failed(self, bad):
        with pytest.raises(MeasurementError, match="simulation"):
            VioTarget().simulated([bad, bad])
