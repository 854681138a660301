"""Target dpdk-swx without DPDK: planning, limits, the job of a trial, and any specification as a program."""

import json

import pytest
from support.captures import capture
from support.swx_programs import entries_by_rule, own_specification

from p4perf.errors import CapabilityError, DataError, SpecError
from p4perf.experiment import plan_sweep
from p4perf.formats.pcap import read_capture
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs import load_experiment
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.dpdk_swx import HASHES, DpdkSwxTarget, program_bytes, swx_checksum, table_bytes

COMPILED, INTERPRETER = DpdkSwxTarget(), DpdkSwxTarget(("interpreter",))


def table(frame_size=64, **parameters):
    components = [("match_action_table", {"entries": 1000, **parameters})]
    return build_workload(components, frame_size_bytes=frame_size)


def plan(facts, workload=None, traffic=None, target=COMPILED, **more):
    return target.plan(workload or table(), traffic or TrafficPlan(64), facts(**more))


class TestPlanning:
    def test_labels(self):
        assert COMPILED.label == "dpdk-swx"
        assert INTERPRETER.label == "dpdk-swx:interpreter"
        assert not COMPILED.interpreted
        assert INTERPRETER.interpreted

    def test_all_metrics_are_known(self):
        assert set(COMPILED.metrics) <= set(METRICS)

    @pytest.mark.parametrize("target", [COMPILED, INTERPRETER], ids=lambda t: t.label)
    def test_another_number_of_entries_is_another_point_of_the_same_build(self, facts, target):
        one, other = plan(facts, target=target), plan(facts, table(entries=2000), target=target)
        assert other.key != one.key
        assert other.build.key == one.build.key

    def test_what_is_interpreted_is_not_compiled(self, facts):
        writes = [build_workload([("header_field_writes", {"writes": n})], frame_size_bytes=128) for n in (1, 2)]
        one, other = (plan(facts, w, TrafficPlan(128), INTERPRETER) for w in writes)
        assert other.key != one.key
        assert other.build.key == one.build.key
        one, other = (plan(facts, w, TrafficPlan(128)) for w in writes)
        assert other.build.key != one.build.key
        assert other.build.parts["baseline"].key == one.build.parts["baseline"].key

    def test_the_specifications_go_where_they_are_read(self, facts):
        compiled = COMPILED.trial(plan(facts), TrialOptions(), facts())
        interpreted = INTERPRETER.trial(plan(facts, target=INTERPRETER), TrialOptions(), facts())
        assert set(compiled.files) == {"verify.bin"}
        assert set(interpreted.files) == {"verify.bin", "program.spec", "baseline.spec"}
        assert "program.spec" in compiled.build.files

    def test_the_job_has_all_that_the_harness_needs(self, facts):
        argv = COMPILED.trial(plan(facts), TrialOptions(gate_ratio=0.25), facts()).argv
        assert argv[argv.index("--entries") + 1] == "1000"
        assert argv[argv.index("--gate-ratio") + 1] == "0.25000"
        assert argv[0] == "{build}/dpdk-swx"
        assert "--no-huge" in argv
        assert "--in-memory" in COMPILED.trial(plan(facts), TrialOptions(hugepages=True), facts()).argv

    def test_what_programs_change_is_restored(self, facts):
        changed = build_workload([("removed_headers", {"removed": 1})], frame_size_bytes=64)
        for workload, restored in ((changed, True), (table(), False)):
            job = COMPILED.trial(plan(facts, workload), TrialOptions(), facts())
            assert ("--restore" in job.argv) == restored


class TestLimits:
    @pytest.mark.parametrize(
        ("workload", "traffic", "what"),
        [
            (table(), TrafficPlan(64, pattern="poisson", offered_load_mpps=1.0), "offered load"),
            (table(frame_size=4096), TrafficPlan(4096), "frame bytes"),
            (table(entries=10**9, key_bits=64), TrafficPlan(64), "GiB are available"),
        ],
        ids=["load", "frame", "memory"],
    )
    def test_refused(self, facts, workload, traffic, what):
        with pytest.raises(CapabilityError, match=what):
            plan(facts, workload, traffic)

    def test_memory_grows_with_the_table(self):
        small, large = (table(entries=n) for n in (1000, 1_000_000))
        bytes_of = [table_bytes(w.program, w.program.tables[0]) for w in (small, large)]
        assert 500 * bytes_of[0] < bytes_of[1] < 2000 * bytes_of[0]

    def test_missing_headers_stop_only_what_is_compiled(self, facts):
        fatal = [p for p in COMPILED.problems(facts()) if p.fatal]
        assert [p.hint for p in fatal] == [
            "sh tools/fetch-dpdk-headers.sh fetches them; dpdk-swx:interpreter needs none"
        ]
        assert not [p for p in COMPILED.problems(facts(dpdk_source_headers="/there")) if p.fatal]
        assert not [p for p in INTERPRETER.problems(facts()) if p.fatal]

    def test_cachegrind_runs_what_has_no_avx512(self, facts):
        caches = {"cache_l1_bytes": "49152", "cache_l2_bytes": "2097152", "cache_l3_bytes": "110100480"}
        there = facts(tool_valgrind="/usr/bin/valgrind", machine="x86_64", **caches)
        jobs = COMPILED.simulation(plan(facts), TrialOptions(), there)
        assert len(jobs) == 4
        for job in jobs:
            assert job.argv[0] == "valgrind"
            assert job.argv.index("--force-max-simd-bitwidth=256") < job.argv.index("--")
            scripts = [command[2] for command in job.build.commands if len(command) > 2]
            assert any("-march=x86-64-v3" in script for script in scripts)
            assert not any("-march=native" in script for script in scripts)

    def test_without_valgrind_nothing_is_simulated(self, facts):
        assert COMPILED.simulation(plan(facts), TrialOptions(), facts(tool_valgrind="")) == ()


class TestResults:
    @staticmethod
    def values(target, record, **pipeline):
        """The metrics of a record, by name."""
        out = "\n".join(json.dumps(line) for line in ({"pipeline": "program", **pipeline}, record))
        summary = target.summarise(target.parse(JobResult(0, out, "", 1.0)), None)
        return {m.metric: m.value for m in summary.metrics}

    def test_the_size_of_the_program_is_that_of_its_pipeline(self, make_record):
        metrics = self.values(COMPILED, make_record(setup_ms=2.0), code_bytes=4096, instructions=12)
        assert (metrics["code_bytes"], metrics["program_instructions"], metrics["load_time"]) == (4096, 12, 2.0)
        assert set(metrics) >= set(COMPILED.metrics)

    @pytest.mark.parametrize("pipeline", [{}, {"code_bytes": 0}], ids=["now", "before"])
    def test_what_is_interpreted_has_no_code(self, make_record, pipeline):
        metrics = self.values(INTERPRETER, make_record(), instructions=12, **pipeline)
        assert "code_bytes" not in metrics
        assert metrics["program_instructions"] == 12
        assert set(metrics) >= set(INTERPRETER.metrics) == set(COMPILED.metrics) - {"code_bytes"}

    def test_a_number_of_instructions_that_is_not_known_is_left_out(self, make_record):
        assert "program_instructions" not in self.values(COMPILED, make_record(), code_bytes=4096)

    def test_a_trial_without_counted_windows_has_no_metrics(self, make_record):
        def disturb(_, window):
            window["preemptions"] = 1

        assert self.values(COMPILED, make_record(change=disturb), code_bytes=4096, instructions=12) == {}

    def test_code_bytes_of_what_is_interpreted_cannot_be_asked_for(self, facts):
        asked = load_experiment(
            "action/header-field-writes", overrides=[("metrics.collect", "[cycles_per_packet, code_bytes]")]
        )
        with pytest.raises(SpecError, match="dpdk-swx:interpreter does not give code_bytes"):
            plan_sweep(asked, INTERPRETER, facts())

    def test_the_hashes_are_those_of_swx(self):
        hashes = dict(HASHES)
        assert hashes["crc32"](b"123456789") == 0x58E3FA20
        assert hashes["crc16"](b"123456789") == 0xBB3D
        assert swx_checksum(b"\xff\xff") == 0xFFFF
        assert swx_checksum(b"\x00\x01") == 0xFFFE


OWN = """
struct a_t { ; comment
	bit<16> first
	bit<8> second
}
struct m_t {
	bit<32> port
}
struct go_args_t {
	bit<32> port
	bit<16> word
}
header a instanceof a_t
metadata instanceof m_t
action go args instanceof go_args_t {
	return
}
table t {
	key {
		h.a.first exact
		h.a.second exact
	}
	actions {
		go
	}
	default_action go args port 1 word 2
	size 0x400
}
table free {
	actions {
		go
	}
	default_action go args port 3 word 4
}
apply {
	rx m.port
	tx m.port
}
"""


class TestSpecifications:
    def plan(self, facts, text=OWN, target=COMPILED, **more):
        return target.plan(own_specification(text, **more), TrafficPlan(64), facts())

    def test_a_plan_has_the_text_as_it_is_and_the_entries(self, facts):
        planned = self.plan(facts, target=INTERPRETER, entries=entries_by_rule(OWN, "t", "go", 2))
        job = INTERPRETER.trial(planned, TrialOptions(), facts())
        assert set(job.files) == {"program.spec", "baseline.spec", "program.entries", "verify.bin", "source.bin"}
        assert job.files["program.spec"].decode() == OWN
        assert job.files["program.entries"].decode().splitlines()[1] == "match 0x0 0x0 action go port 0x1 word 0x1"
        assert job.argv.count("--entries") == 2
        assert '.entries = "program.entries"' in planned.build.files["config.c"]
        assert self.plan(facts).build.files["program.spec"] == OWN

    def test_the_key_names_all_that_matters(self, facts):
        entries = entries_by_rule(OWN, "t", "go", 1)
        keys = [self.plan(facts, **m).key for m in ({}, {"text": OWN + "\n"}, {"entries": entries})]
        assert len(set(keys)) == 3
        assert self.plan(facts).key == keys[0]

    def test_entries_by_rule(self):
        assert entries_by_rule(OWN, "t", "go", 258, port=7).splitlines()[-1] == (
            "match 0x1 0x1 action go port 0x7 word 0x2ab2"
        )

    def test_a_port_that_is_not_there_is_refused_with_its_line(self, facts):
        text = OWN.replace("\ttx", "\tmov m.port 0xFFFFFFFA\n\ttx")
        with pytest.raises(CapabilityError, match=r"port 4294967290 \(line 37: mov m\.port 0xFFFFFFFA\)"):
            self.plan(facts, text)

    @pytest.mark.parametrize(
        ("old", "new", "what"),
        [
            ("apply {", "action other args none {", "no block 'apply'"),
            ("size 0x400", "size many", "'many' is no number"),
            ("table free", "tables free", "'tables' begins nothing"),
        ],
    )
    def test_damaged_specifications_are_refused_before_anything_is_built(self, facts, old, new, what):
        with pytest.raises(DataError, match=what):
            self.plan(facts, OWN.replace(old, new))

    def test_a_key_of_an_unknown_field_is_refused(self):
        with pytest.raises(DataError, match=r"no field 'h\.a\.third'"):
            entries_by_rule(OWN.replace("h.a.second", "h.a.third"), "t", "go", 1)

    def test_memory_follows_the_sizes(self, facts):
        large = self.plan(facts, OWN.replace("0x400", "0x100000"))
        assert large.memory_bytes > self.plan(facts).memory_bytes + (1 << 28)


class TestFrames:
    @pytest.mark.parametrize("order", "<>")
    def test_the_first_frame_of_a_capture(self, tmp_path, order):
        assert read_capture(capture(tmp_path / "one.pcap", [b"hello"], order=order)).frames[0] == b"hello"

    @pytest.mark.parametrize(
        ("data", "what"),
        [
            (b"", "not a pcap file"),
            (b"\x0a\x0d\x0d\x0a" + bytes(40), "not a pcap file"),
            (b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x01\0\0\0", "holds no frame"),
            (b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x01\0\0\0" + bytes(8) + b"\x09\0\0\0" * 2, "within packet 1"),
        ],
    )
    def test_damaged_captures(self, tmp_path, data, what):
        path = tmp_path / "bad.pcap"
        path.write_bytes(data)
        with pytest.raises(DataError, match=what):
            read_capture(path).frames[0]

    def test_no_capture(self, tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_capture(tmp_path / "none.pcap").frames[0]


@pytest.mark.parametrize(("entries", "seen"), [(100, 39_104), (10_000, 2_733_120)])
def test_compiled_rules_take_less_than_while_they_are_compiled(entries, seen):
    """Seen: prefixes of 32-bit keys with 64 B of action data."""
    sizes = {"entries": entries, "match_kind": "lpm", "key_bits": 32}
    program = build_workload([("match_action_table", sizes)], frame_size_bytes=128).program
    (found,) = DpdkSwxTarget().memory(program).values()
    assert found == pytest.approx(seen, rel=0.02)
    assert program_bytes(program) == table_bytes(program, program.tables[0]) > 10 * found
