"""Target dpdk-c without DPDK: planning, limits, the job of a trial, and what its output means."""

import json
from dataclasses import replace

import pytest
from support.parser_states import extracting

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.c.dpdk import MAX_EXACT_ENTRIES, MAX_VARYING, VARIANTS, capabilities
from p4perf.programs import ir
from p4perf.programs.capabilities import CONSTRUCTS
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.dpdk_c import TBL24_BYTES, DpdkCTarget, program_bytes, table_bytes
from p4perf.targets.windows import Undisturbed

TARGET = DpdkCTarget()


def table(frame_size=64, **parameters):
    components = [("match_action_table", {"entries": 1000, **parameters})]
    return build_workload(components, frame_size_bytes=frame_size)


def plan(facts, workload=None, traffic=None, **more):
    return TARGET.plan(workload or table(), traffic or TrafficPlan(64), facts(**more))


class TestPlanning:
    def test_the_same_point_has_the_same_key(self, facts):
        assert plan(facts).key == plan(facts).key
        assert plan(facts).build.key == plan(facts).build.key

    @pytest.mark.parametrize(
        "fact", ["cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine"], ids=lambda fact: fact
    )
    def test_another_machine_or_compiler_is_another_point_and_build(self, facts, fact):
        other = plan(facts, **{fact: "another"})
        assert other.key != plan(facts).key
        assert other.build.key != plan(facts).build.key

    @pytest.mark.parametrize("fact", ["memory_available_bytes", "hugepages_free", "realtime", "measuring_cpu"])
    def test_what_does_not_change_the_program_does_not_change_the_key(self, facts, fact):
        assert plan(facts, **{fact: None}).key == plan(facts).key

    @pytest.mark.parametrize(
        "changes", [{"key_bits": 64}, {"action_data_bytes": 32}, {"key_bits": 8, "entries": 100}], ids=str
    )
    def test_another_program_is_another_build(self, facts, changes):
        other = plan(facts, table(**changes))
        assert other.key != plan(facts).key
        assert other.build.key != plan(facts).build.key

    def test_another_number_of_entries_is_another_point_of_the_same_build(self, facts):
        other = plan(facts, table(entries=2000))
        assert other.key != plan(facts).key
        assert other.build.key == plan(facts).build.key

    @pytest.mark.parametrize(
        "traffic",
        [
            TrafficPlan(64, distribution="sequential"),
            TrafficPlan(64, distribution="zipf", zipf_s=1.1),
            TrafficPlan(64, hit_ratio=0.5),
        ],
        ids=lambda t: f"{t.distribution} {t.hit_ratio}",
    )
    def test_other_traffic_is_another_point_of_the_same_build(self, facts, traffic):
        other = plan(facts, traffic=traffic)
        assert other.key != plan(facts).key
        assert other.build.key == plan(facts).build.key

    def test_the_exponent_counts_for_zipf_only(self, facts):
        def key(distribution, exponent):
            return plan(facts, traffic=TrafficPlan(64, distribution=distribution, zipf_s=exponent)).key

        assert key("zipf", 1.1) != key("zipf", 1.2)
        assert key("uniform", 1.1) == key("uniform", 1.2)

    def test_another_frame_size_is_another_point(self, facts):
        assert plan(facts, table(128), TrafficPlan(128)).key != plan(facts).key

    def test_the_key_names_a_folder(self, facts):
        assert len(plan(facts).key) == 16
        assert set(plan(facts).key) <= set("0123456789abcdef")

    def test_the_architecture_comes_after_the_flags_of_pkg_config(self, facts):
        (command,) = plan(facts).build.commands
        text = command[2]
        assert text.index("pkg-config --cflags") < text.index("-march=$march") < text.index("pkg-config --libs")
        assert command[4:6] == ("native", "dpdk-c")

    def test_the_program_is_built_alone_and_the_rest_once_for_all(self, facts):
        build = plan(facts).build
        assert "program.c" in build.files
        assert "tables.h" in build.files
        assert "main.c" not in build.files
        assert {
            "main.c",
            "options.c",
            "source.c",
            "verify.c",
            "measure.c",
            "tables.c",
            "prefixes.c",
            "hashes.c",
        } <= set(build.parts["harness"].files)
        assert "baseline.c" in build.parts["baseline"].files
        other = plan(facts, table(key_bits=64)).build
        assert other.key != build.key
        assert {n: p.key for n, p in other.parts.items()} == {n: p.key for n, p in build.parts.items()}

    def test_variants_are_other_builds_where_they_matter(self, facts):
        ternary = table(match_kind="ternary", key_bits=32)
        by_acl = DpdkCTarget(("acl",)).plan(ternary, TrafficPlan(64), facts())
        assert by_acl.build.key != plan(facts, ternary).build.key
        assert DpdkCTarget(("acl",)).plan(table(), TrafficPlan(64), facts()).key == plan(facts).key
        assert DpdkCTarget(("fib", "acl")).label == "dpdk-c:acl+fib"


class TestLimits:
    def refused(self, facts, match, workload=None, traffic=None, **more):
        with pytest.raises(CapabilityError, match=match) as caught:
            plan(facts, workload, traffic, **more)
        return caught.value

    def test_more_entries_than_rte_hash_takes(self, facts):
        error = self.refused(
            facts, "100,000,000", table(entries=MAX_EXACT_ENTRIES + 1), memory_available_bytes=str(1 << 60)
        )
        assert "rte_hash" in error.message

    def test_as_many_entries_as_rte_hash_takes(self, facts):
        most = table(entries=MAX_EXACT_ENTRIES)
        assert plan(facts, most, memory_available_bytes=str(1 << 60)).memory_bytes > 1e10

    def test_lpm_tables_have_64_mib_each(self, facts):
        many = table(match_kind="lpm", key_bits=32, entries=1, tables=1024)
        self.refused(facts, r"take about 6\d\.\d GiB", many)

    def test_more_memory_than_there_is(self, facts):
        error = self.refused(facts, r"take about 2\.\d GiB, but 1\.0 GiB are available", table(entries=2 * 10**7),
                             memory_available_bytes=str(1 << 30))  # fmt: skip
        assert "fewer entries" in error.hint

    def test_unknown_memory_refuses_nothing(self, facts):
        assert plan(facts, table(entries=10**8), memory_available_bytes=None).memory_bytes > 0

    @pytest.mark.parametrize("size", [2049, 9000])
    def test_a_frame_that_fits_into_no_mbuf(self, facts, size):
        error = self.refused(facts, f"at most 2048 B, not {size} B", table(size), TrafficPlan(size))
        assert error.key == "traffic.frame_size"

    def test_the_largest_frame(self, facts):
        assert plan(facts, table(2048), TrafficPlan(2048)).key

    @pytest.mark.parametrize("traffic", [TrafficPlan(64, pattern="poisson"), TrafficPlan(64, offered_load_mpps=1.0)])
    def test_any_load_but_the_maximum(self, facts, traffic):
        assert "cbr" in self.refused(facts, "no offered load", traffic=traffic).hint

    @pytest.mark.parametrize("bits", [12, 520, 4096])
    def test_keys_of_any_width(self, facts, bits):
        assert plan(facts, keyed_program(bits, 1024, varying=False), TrafficPlan(1024)).key

    def test_a_key_of_more_than_512_bytes(self, facts):
        self.refused(facts, "4,104 exact key bits", keyed_program(4104, 1024, varying=False), TrafficPlan(1024))

    def test_a_varying_field_that_is_not_whole_bytes(self, facts):
        self.refused(facts, "varies whole bytes", keyed_program(12))

    def test_fields_that_vary(self, facts):
        def several(count):
            components = [("match_action_table", {"entries": 10 + n}) for n in range(count)]
            return build_workload(components, frame_size_bytes=512)

        job = TARGET.trial(plan(facts, several(MAX_VARYING), TrafficPlan(512)), TrialOptions(), facts())
        keys = [job.argv[n + 1] for n, argument in enumerate(job.argv) if argument == "--keys"]
        assert keys == [str(10 + n) for n in range(MAX_VARYING)]
        self.refused(facts, "9 varying fields", several(MAX_VARYING + 1), TrafficPlan(512))

    def test_every_limit_has_a_source_and_every_construct_is_there(self):
        for chosen in ((), tuple(VARIANTS)):
            table_of_limits = capabilities(chosen)
            assert len(table_of_limits.limits) >= 10
            assert all(limit.most > 0 and limit.source for limit in table_of_limits.limits.values())
            assert not set(table_of_limits.missing) & (set(CONSTRUCTS) - {"offered load"})
        assert TARGET.capabilities.limits == capabilities().limits


def keyed_program(bits, frame_size=128, *, varying=True):
    """A table with a key of any width."""
    pad = -bits % 8
    fields = (ir.Field("key", bits), *((ir.Field("pad", pad),) if pad else ()))
    program = ir.Program(
        name="keyed",
        headers=(ir.Header("h", fields),),
        metadata=(),
        parser=(extracting("start", ("h",)),),
        actions=(ir.Action("set", body=(ir.SetEgress(ir.Const(1)),)), ir.Action("no")),
        tables=(ir.Table("t", (ir.Key(ir.FieldRef("h", "key")),), ("set", "no"), "no", ir.EntrySet(4, "set")),),
        control=(ir.ApplyTable("t"),),
        emit=("h",),
    )
    baseline = replace(program, tables=(), control=())
    varied = (ir.VaryingField(ir.FieldRef("h", "key"), 4),) if varying else ()
    packets = ir.PacketSpec((ir.HeaderValues("h"),), varied, frame_size)
    return ir.Workload(program, baseline, packets)


class TestMemory:
    def bytes_of(self, **parameters):
        program = table(frame_size=1518, **parameters).program
        return table_bytes(program, program.tables[0])

    def test_grows_with_entries_keys_and_action_data(self):
        assert self.bytes_of() < self.bytes_of(entries=2000)
        assert self.bytes_of(key_bits=128) < self.bytes_of(key_bits=256)
        assert self.bytes_of(action_data_bytes=64) < self.bytes_of(action_data_bytes=68)
        assert self.bytes_of(action_data_bytes=4) == self.bytes_of(action_data_bytes=64), "whole cache lines"

    def test_never_falls_with_entries(self):
        sizes = [self.bytes_of(entries=n) for n in range(1, 3000, 7)]
        assert sizes == sorted(sizes)

    def test_a_million_entries_are_about_as_large_as_rte_hash_makes_them(self):
        # 1.25 slots of 32 B key and 64 B data each, 2**21 slots in buckets of 64 B for 8 and in the free list.
        assert self.bytes_of(entries=10**6) == 1_250_000 * 96 + 8 * 2**21 + 4 * 2**21

    def test_kinds_of_tables(self):
        def of_kind(kind, bits, free_bits=0, variants=(), entries=1000):
            components = {"match_kind": kind, "key_bits": bits, "free_bits": free_bits, "entries": entries}
            return program_bytes(table(frame_size=1518, **components).program, variants)

        data = 1000 * 64
        assert data < of_kind("ternary", 32) < of_kind("ternary", 64) < of_kind("ternary", 128) < 2 * data
        assert of_kind("ternary", 32, variants=("acl",)) > of_kind("ternary", 32)
        for bits in (32, 128):
            for variants in ((), ("fib",)):
                assert of_kind("lpm", bits, 8, variants) > TBL24_BYTES
        # 2**16 prefixes of 32 bit fill 256 groups of 256 entries, those of 24 bit none.
        long, short = of_kind("lpm", 32, 0, entries=1 << 16), of_kind("lpm", 32, 8, entries=1 << 16)
        assert long - short == 256 * 1024

    def test_states_count(self):
        counters = build_workload([("counter", {"updates": 2, "size": 1024})], frame_size_bytes=64)
        assert program_bytes(counters.program) == 2 * 1024 * 8

    def test_working_set_per_entry(self):
        fixed, each = TARGET.bytes_per_entry(table())
        assert fixed == 0
        assert 96 < each < 128
        assert TARGET.bytes_per_entry(build_workload([], frame_size_bytes=64)) is None

    def test_the_plan_counts_the_packet_buffers_too(self, facts):
        program = table().program
        assert plan(facts).memory_bytes > table_bytes(program, program.tables[0]) + (16 << 20)

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [({}, True), ({"hugepages_free": "100"}, False), ({"hugepages_free": None}, False),
         ({"hugepage_bytes": str(1 << 30)}, False)],
    )  # fmt: skip
    def test_hugepages_are_used_if_they_hold_everything(self, facts, changes, expected):
        assert TARGET.use_hugepages(500 << 20, facts(**changes)) is expected


class TestTrial:
    def arguments(self, facts, workload=None, traffic=None, **options):
        job = TARGET.trial(plan(facts, workload, traffic), TrialOptions(**options), facts())
        return job, " ".join(job.argv)

    def test_the_job_has_the_program_its_oracle_and_a_time_limit(self, facts):
        job, text = self.arguments(facts)
        assert job.argv[0] == "{build}/dpdk-c"
        assert "--verify {folder}/verify.bin" in text
        assert job.files["verify.bin"].startswith(b"P4PVRFY2")
        assert 30 < job.timeout_s < 60
        assert "--key-offset 14 --key-length 16 --keys 1000 --hit-ratio 1.0 --distribution uniform" in text
        assert "--entries 1000" in text
        assert "-l 1 " in text

    def test_large_tables_get_more_time_and_memory(self, facts):
        small, large = self.arguments(facts), self.arguments(facts, table(entries=10**7))
        assert large[0].timeout_s > small[0].timeout_s + 30
        memory = [int(j.argv[j.argv.index("-m") + 1]) for j, _ in (small, large)]
        assert memory[1] > memory[0] + 1000

    def test_pages(self, facts):
        assert "--no-huge" in self.arguments(facts)[1]
        assert "--no-huge" not in self.arguments(facts, hugepages=True)[1]

    def test_modes(self, facts):
        assert "--gate-ratio" not in self.arguments(facts)[1]
        assert "--gate-ratio 0.26450" in self.arguments(facts, gate_ratio=0.2645)[1]
        plain = self.arguments(facts, gate_ratio=0.2645, mode="plain")[1]
        assert "--plain" in plain
        assert "--gate-ratio" not in plain

    def test_seed_and_windows(self, facts):
        text = self.arguments(facts, seed=7, windows=33, window_us=250, timeout_ms=900, warmup_ms=3)[1]
        assert "--seed 7 --windows 33 --window-us 250 --timeout-ms 900 --warmup-ms 3" in text

    def test_zipf(self, facts):
        text = self.arguments(facts, traffic=TrafficPlan(64, distribution="zipf", zipf_s=1.25))[1]
        assert "--distribution zipf --zipf 1.25" in text

    def test_tables_of_one_size_are_told_at_once(self, facts):
        text = self.arguments(facts, table(tables=5))[1]
        assert "--entries 1000*5" in text
        assert self.arguments(facts, table(tables=2))[0].argv.count("--entries") == 1

    def test_packets_that_are_spoilt_are_restored(self, facts):
        removed = build_workload([("removed_headers", {"removed": 2})], frame_size_bytes=64)
        assert "--restore" in self.arguments(facts, removed)[1]
        assert "--restore" not in self.arguments(facts)[1]

    def test_slow_tables_get_time_and_few_packets_to_warm_up(self, facts):
        job, text = self.arguments(facts, table(match_kind="ternary", key_bits=32, entries=100_000))
        assert "--warmup-packets 5000" in text
        lpm, _ = self.arguments(facts, table(match_kind="lpm", key_bits=32, entries=200_000))
        assert lpm.timeout_s > 100 > job.timeout_s

    def test_programs_without_tables_vary_nothing(self, facts):
        assert "--key" not in self.arguments(facts, build_workload([], frame_size_bytes=64))[1]


class TestProblems:
    def test_everything_is_there(self, facts):
        assert TARGET.problems(facts()) == ()

    @pytest.mark.parametrize(
        ("missing", "what"),
        [("cc_version", "compiler"), ("pkg_config_version", "pkg-config"), ("dpdk_version", "libdpdk")],
    )
    def test_without_a_tool_the_target_cannot_be_used(self, facts, missing, what):
        (problem,) = TARGET.problems(facts(**{missing: None}))
        assert problem.fatal
        assert what in problem.what
        assert "install" in problem.hint

    @pytest.mark.parametrize("changes", [{"realtime": "no"}, {"hugepages_free": "0"}, {"hugepages_free": None}])
    def test_without_privileges_it_can(self, facts, changes):
        (problem,) = TARGET.problems(facts(**changes))
        assert not problem.fatal


class TestParsing:
    def parse(self, out="", err="", code=0, **more):
        return TARGET.parse(JobResult(code, out, err, 1.5, **more))

    def test_a_record(self, make_record):
        record = make_record()
        assert self.parse("EAL: hello\n" + json.dumps(record) + "\n") == record

    @pytest.mark.parametrize(
        ("result", "message"),
        [
            ({"out": '{"error": "packet 7 left by port 1", "kind": "verify"}\n', "code": 1}, "packet 7 left by port 1"),
            ({"out": '{"error": "no memory for the packet pool", "kind": "memory"}'}, "no memory for the packet pool"),
            ({"out": "", "code": 0}, "ended with status 0 and left no result: no output"),
            (
                {"out": "", "err": "a\nb\nc\nPANIC\n", "code": -6},
                r"died of signal 6 \(SIGABRT\) and left no result: b / c / PANIC",
            ),
            ({"out": "Killed\n", "code": -9}, r"died of signal 9 \(SIGKILL\) and left no result: Killed"),
            ({"out": '{"harness_version": 2, "prog', "code": 0}, "damaged JSON"),
            ({"out": "{}", "code": 0}, "another version"),
            ({"out": '{"harness_version": 99}', "code": 0}, "another version"),
            ({"out": '{"harness_version": 2}', "code": 3}, "status 3"),
            ({"out": '{"harness_version": 2}', "code": 0}, "record of a trial"),
            ({"out": "{}", "code": -9, "timed_out": True}, "stopped after 2 s without a result"),
        ],
        ids=lambda v: v if isinstance(v, str) else "",
    )
    def test_odd_output(self, result, message):
        with pytest.raises(MeasurementError, match=message):
            self.parse(**result)

    def test_an_oracle_that_disagrees_is_told_apart(self):
        with pytest.raises(MeasurementError) as caught:
            self.parse('{"error": "packet 7 differs at byte 3", "kind": "verify"}', code=1)
        assert caught.value.key == "verify"


class TestSummaries:
    def flags(self, record, gate_ratio=None):
        return TARGET.summarise(record, gate_ratio).flags

    def test_values(self, make_record):
        summary = TARGET.summarise(make_record(), None)
        assert summary.accepted
        assert summary.flags == ()
        values = {m.metric: m.value for m in summary.metrics}
        assert set(TARGET.metrics) <= set(values)
        assert values["cycles_per_packet"] == 100
        assert values["baseline_cycles_per_packet"] == 20
        assert values["cost_cycles_per_packet"] == 80
        assert values["packet_rate"] == pytest.approx(20)
        assert values["memory_bytes"] == 4096
        assert (values["code_bytes"], values["compile_time"], values["load_time"]) == (300, 150.5, 0.25)
        assert "instructions" not in values

    def test_hardware_counters_where_there_are_any(self, make_record):
        record = make_record()
        n = len(record["windows"]["program"])
        record["windows"] |= {"instructions": [150.0, 30.0] * (n // 2), "cache_misses": [0.5, 0.0] * (n // 2)}
        values = {m.metric: (m.value, m.unit) for m in TARGET.summarise(record, None).metrics}
        assert values["instructions"] == (150, "instructions/packet")
        assert values["cache_misses"] == (0.5, "misses/packet")

    def test_units_are_those_of_the_metrics(self, make_record):
        for value in TARGET.summarise(make_record(), None).metrics:
            if value.metric in METRICS:
                assert value.unit == METRICS[value.metric].unit

    @pytest.mark.parametrize(
        ("changes", "flag"),
        [
            ({"hugepages": False}, "no_hugepages"),
            ({"realtime": False}, "no_realtime"),
            ({"gated": False}, "ungated"),
            ({"hops": 2}, "hopped"),
            ({"timed_out": True}, "timed_out"),
        ],
    )
    def test_circumstances_are_flagged_but_accepted(self, make_record, changes, flag):
        summary = TARGET.summarise(make_record(**changes), None)
        assert summary.accepted
        assert summary.flags == (flag,)

    def test_plain_mode_has_no_use_for_realtime(self, make_record):
        assert self.flags(make_record(gated=False, realtime=False)) == ("ungated",)

    def test_a_disturbed_baseline_spoils_the_trial(self, make_record):
        def disturbed(n, window):
            if window["program"] == 1 and n % 2:
                window["tsc_per_packet"] = 40.0

        summary = TARGET.summarise(make_record(change=disturbed), None)
        assert not summary.accepted
        assert "high_spread" in summary.flags

    def test_a_trial_without_counted_windows_has_no_values(self, make_record):
        summary = TARGET.summarise(make_record(change=lambda n, w: w.update(preemptions=1)), None)
        assert summary.metrics == ()
        assert not summary.accepted
        assert {"few_windows", "low_acceptance"} <= set(summary.flags)

    def test_a_trial_is_judged_with_the_ratio_known_by_now(self, make_record):
        record = make_record(gate_ratio=0.25)
        assert TARGET.summarise(record, None).accepted
        assert not TARGET.summarise(record, 0.15).accepted

    def test_the_gate_ratio_of_trials_and_calibrations(self, make_record):
        assert TARGET.undisturbed(make_record(gate_ratio=0.2)) == Undisturbed(0.25, 12.0)
        assert TARGET.undisturbed(make_record(windows=2, gate_ratio=0.2)) == Undisturbed(0.2, 12.0)
        assert TARGET.undisturbed(make_record(gated=False)) is None
        assert TARGET.undisturbed(make_record(gate_ratio=0.0)) is None
        line = {"gate_ratio": [n / 100 for n in range(101)], "chain_tsc": [12.0] * 101}
        assert TARGET.undisturbed(line) == Undisturbed(0.1, 12.0)
        assert TARGET.undisturbed({}) is None
