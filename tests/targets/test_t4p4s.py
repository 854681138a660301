"""Target t4p4s without t4p4s: planning, refusals, what its script is told and says, records."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.t4p4s import Checkouts, tree, write

from p4perf.errors import BuildError, CapabilityError, MeasurementError, StorageError
from p4perf.generators.p4.t4p4s import T4P4S
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, TrialOptions
from p4perf.targets.t4p4s import T4P4STarget, table_bytes
from p4perf.targets.t4p4s_program import own_text
from p4perf.testbeds.local import LocalTestbed

TARGET = T4P4STarget()
EXAMPLES = Path(__file__).parents[2] / "examples/programs"
CHECKOUTS = {"tool_t4p4s": "/t4p4s", "tool_p4c": "/p4c"}


def table(frame_size=64, **parameters):
    components = [("match_action_table", {"entries": 1000, **parameters})]
    return build_workload(components, frame_size_bytes=frame_size)


def one(component, **parameters):
    return build_workload([(component, parameters)], frame_size_bytes=256)


def plan(facts, workload=None, traffic=None, **more):
    workload = workload or table()
    size = workload.packets.frame_size_bytes
    return TARGET.plan(workload, traffic or TrafficPlan(size), facts(**{**CHECKOUTS, **more}))


class TestPlanning:
    def test_all_metrics_are_known(self):
        assert set(TARGET.metrics) <= set(METRICS)

    def test_a_library_is_made_of_the_p4_that_p4perf_generates(self, facts):
        texts = {f.path: f.text() for f in T4P4S().generate(table(), TrafficPlan(64))}
        parts = plan(facts).build.parts
        for role in ("program", "baseline"):
            assert parts[role].files[f"{role}.p4"] == texts[f"{role}.p4"]
            assert parts[role].product == f"{role}.so"

    def test_its_compiler_gets_no_flags_of_an_architecture(self, facts):
        """t4p4s has what pkg-config says of DPDK. With ``-march=native`` its baseline is 45 % dearer."""
        for role in ("program", "baseline"):
            added = plan(facts).build.parts[role].files["added.cfg"].splitlines()
            flags = [line.split("cflags += ")[1] for line in added if "cflags += " in line]
            assert flags == ["-fPIC", "-DT4P4S_VETH_MODE"]

    def test_another_number_of_entries_is_another_library(self, facts):
        fewer, more = (plan(facts, table(entries=n)) for n in (10, 1000))
        assert fewer.build.key != more.build.key
        assert fewer.build.parts["baseline"].key == more.build.parts["baseline"].key
        assert fewer.build.parts["executable"].key == more.build.parts["executable"].key

    def test_checkouts_are_part_of_the_point(self, facts):
        commits = [plan(facts, t4p4s_commit=c, hlir16_commit="1", p4test_version="2").key for c in ("a", "b")]
        assert len(set(commits)) == 2

    def test_the_job_has_all_that_the_harness_needs(self, facts):
        job = TARGET.trial(plan(facts), TrialOptions(gate_ratio=0.25), facts())
        assert job.argv[0] == "{build}/t4p4s"
        assert job.argv[job.argv.index("--gate-ratio") + 1] == "0.25000"
        assert "--entries" not in job.argv, "they stand in the program"
        assert set(job.files) == {"verify.bin"}

    def test_what_is_verified_are_packets(self, facts):
        """No hits of tables and no states: two numbers of the head are zero, and nothing follows the packets."""
        content = TARGET.trial(plan(facts), TrialOptions(), facts()).files["verify.bin"]
        assert content[:8] == b"P4PVRFY2"
        assert [int.from_bytes(content[n : n + 4], sys.byteorder) for n in (12, 16)] == [0, 0]

    def test_a_patient_start_where_entries_come_one_at_a_time(self, facts):
        few, many = (TARGET.trial(plan(facts, table(entries=n)), TrialOptions(), facts()) for n in (1, 1000))
        assert many.timeout_s > few.timeout_s + 0.5

    def test_memory_has_both_replicas_and_all_groups(self):
        exact, lpm, lpm6 = (
            table(entries=n, **kind)
            for n, kind in (
                (1000, {}),
                (100, {"match_kind": "lpm", "key_bits": 32}),
                (100, {"match_kind": "lpm", "key_bits": 128, "free_bits": 64}),
            )
        )
        sizes = [table_bytes(w.program, w.program.tables[0]) for w in (exact, lpm, lpm6)]
        assert sizes[0] < 1 << 20
        assert 64 << 20 < sizes[1] < 66 << 20
        assert 128 << 20 < sizes[2] < 130 << 20

    def test_random_numbers_go_to_a_variable_first(self, facts):
        """The C that t4p4s generates casts the address of a field to an integer, and the program dies."""
        text = plan(facts, one("random", numbers=2, width_bits=16)).build.parts["program"].files["program.p4"]
        calls = [line.split("(")[1].split(",")[0] for line in text.splitlines() if line.strip().startswith("random(")]
        assert len(calls) == 2
        assert not [name for name in calls if "." in name]
        assert all(f"= {name};" in text for name in calls)


class TestRefusals:
    @pytest.mark.parametrize(
        ("workload", "what"),
        [
            (table(entries=1025, key_bits=32), "1,025 exact entries are more than the 1,024"),
            (table(match_kind="ternary", entries=10), "turns ternary keys into exact ones"),
            (one("counter", updates=1), "a library does not show its cells"),
            (one("register", accesses=1, operation="write", width_bits=32), "a library does not show its cells"),
            (one("checksum", operation="update", size_bytes=20), "stores nothing"),
            (one("hash", algorithm="crc16", size_bytes=4), "falls back to the identity"),
            (one("hash", algorithm="crc32", size_bytes=4), "hashes the start of the header"),
            (one("clone", copies=1), "only prints a line"),
            (one("recirculate", times=1), "does not link"),
            (one("arithmetic", operations=1, operator="+", width_bits=48), "adds and subtracts in 8, 16, 32 bit"),
            (table(frame_size=4096), "frame bytes"),
        ],
        ids=[
            "entries",
            "ternary",
            "counter",
            "register",
            "checksum",
            "crc16",
            "crc32",
            "clone",
            "recirculate",
            "sum",
            "frame",
        ],
    )
    def test_the_plan_refuses_what_t4p4s_would_get_wrong(self, facts, workload, what):
        with pytest.raises(CapabilityError, match=what) as caught:
            plan(facts, workload)
        assert TARGET.capabilities.refusal(workload.program, workload.packets) == caught.value.message

    def test_no_offered_load(self, facts):
        with pytest.raises(CapabilityError, match="offered load"):
            plan(facts, traffic=TrafficPlan(64, pattern="poisson", offered_load_mpps=1.0))

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({}, None),
            ({"tool_t4p4s": None}, "its checkout on the node: the node has none"),
            ({"tool_t4p4s": "/my t4p4s"}, "has characters that t4p4s.sh does not quote"),
            ({"tool_p4c": None}, "p4c, built in its source folder: the node has none"),
            ({"t4p4s_lacks": "netcat Python's-mesonbuild "}, "not here: netcat, Python's-mesonbuild"),
        ],
    )
    def test_what_the_node_lacks(self, facts, changes, what):
        fatal = [p for p in TARGET.problems(facts(**{**CHECKOUTS, **changes})) if p.fatal]
        assert [what in p.what for p in fatal] == ([True] if what else [])


class TestProbe:
    """What a node says of checkouts."""

    def test_checkouts_in_variables(self, tmp_path, monkeypatch):
        found = Checkouts(tmp_path, monkeypatch)
        monkeypatch.setenv("T4P4S", str(found.checkout))
        monkeypatch.setenv("P4C", str(found.p4c))
        write(found.tools / "python-of-t4p4s", "#!/bin/sh\nexit 1\n", executable=True)
        monkeypatch.setenv("PYTHON3", "python-of-t4p4s")
        known = LocalTestbed(tmp_path / "cache").facts().values
        assert {key: known[key] for key in ("tool_t4p4s", "tool_p4c")} == {
            key: found.known[key] for key in ("tool_t4p4s", "tool_p4c")
        }
        assert known["t4p4s_python"] == str(found.tools / "python-of-t4p4s")
        assert known["t4p4s_lacks"].split() == ["Python's-mesonbuild", "Python's-more_itertools"]


# --- What t4p4s.sh is told and says, by its stand-in. With DPDK: tests/integration/test_t4p4s_libraries.py.


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Checkouts(tmp_path, monkeypatch)


@pytest.fixture
def build(node, facts):
    """Builds the library of the program of a table, as a testbed does; the folder of the build."""

    def run(*fakes, **changes):
        node.fakes(*fakes)
        part = plan(facts, **{**node.known, **changes}).build.parts["program"]
        return LocalTestbed(node.folder / "cache").build(part)

    return run


class TestBuild:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("fake", "what"),
        [
            ("slice", "does not take this program: Warning: while Compiling assignment: Assignment to slice"),
            ("underscore", "does not take this program: Warning: while .*: Underscore entry"),
            ("p4-error", "does not take this program: Error: while formatting statement"),
            ("traceback", "does not take this program: TypeError: 'float' object"),
            ("meson", 'made no library of this program: .* ERROR: Dependency "libdpdk" not found'),
            ("ninja", "made no library of this program: .* error: too few arguments"),
            ("link", "made no library of this program: .* undefined symbol: externimpl_resubmit"),
            ("no-switch", "made no library of this program: it does not say why"),
        ],
    )
    def test_what_it_says_counts_whatever_its_status(self, node, build, fake, what):
        before = tree(node.checkout)
        with pytest.raises(BuildError, match=what) as caught:
            build(fake)
        kept = node.folder / "cache/failed-build"
        assert str(kept) in caught.value.hint
        assert (kept / "said.log").read_text() in caught.value.log
        assert not (kept / "build/last").exists(), "everything would be there three times"
        node.fakes()
        assert {**before, "lights.cfg": b""} == {**tree(node.checkout), "lights.cfg": b""}, "it is only read"

    def test_a_full_disk_is_no_fault_of_the_program(self, build):
        with pytest.raises(StorageError, match="the disk is full"):
            build("disk")

    def test_a_checkout_without_its_submodule(self, node, build):
        (node.checkout / "src/hlir16/hlir.py").unlink()
        with pytest.raises(BuildError, match="src/hlir16 is empty: git submodule update --init"):
            build()

    def test_a_folder_that_is_no_checkout(self, node, build):
        (node.checkout / "opts_dpdk.cfg").unlink()
        with pytest.raises(BuildError, match="is no checkout of t4p4s") as caught:
            build()
        assert "opts_dpdk.cfg" in caught.value.log

    def test_a_program_that_p4c_refuses(self, node, build):
        said = "program.p4(12): [--Werror=type-error] error: Field not found"
        write(node.p4c / "build/p4test", f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", executable=True)
        with pytest.raises(BuildError, match=r"does not take this program: program\.p4\(12\): .*Field not found"):
            build()


DESCRIPTION = {"code_bytes": 70_000}


class TestRecords:
    @staticmethod
    def result(*lines, returncode=0):
        return JobResult(returncode, "".join(f"{json.dumps(line)}\n" for line in lines), "", 1.0)

    def test_libraries_are_in_the_record(self, make_record):
        lines = [{"library": role, **DESCRIPTION} for role in ("program", "baseline")]
        record = TARGET.parse(self.result(*lines, make_record(compile_ms=9e3)))
        values = {m.metric: m.value for m in TARGET.summarise(record, None).metrics}
        assert values["code_bytes"] == 70_000
        assert values["compile_time"] == 9e3
        assert values["cost_cycles_per_packet"] == 80
        assert set(TARGET.metrics) <= set(values)

    def test_a_record_without_libraries_is_damaged(self, make_record):
        with pytest.raises(MeasurementError, match="damaged description"):
            TARGET.parse(self.result(make_record()))

    @pytest.mark.parametrize("kind", ["verify", "library"])
    def test_errors_have_a_kind(self, kind):
        with pytest.raises(MeasurementError, match="packet 3") as caught:
            TARGET.parse(self.result({"error": "packet 3 left by port 1, expected 2", "kind": kind}, returncode=1))
        assert caught.value.key == kind


class TestProgramsOfUsers:
    TEXT = """#include <core.p4>
#include <v1model.p4>

control Other(inout headers_t hdr) {
    table labels {
        key = {
        }
    }
}

control MainControl(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action forward(bit<9> port) {
        sm.egress_spec = port;
    }
    table labels {
        key = {
            hdr.mpls.label: exact;
        }
        const entries = {
            0x5: old();
        }
        default_action = unknown();
        size = 16;
    }
    table destinations {
        key = {
            hdr.ipv4.dst: lpm;
        }
    }
}
"""

    def workload(self, **parameters):
        text = (EXAMPLES / "mpls_router/mpls_router.json").read_text()
        given = {"program": text, "p4": self.TEXT, "default_fill": 2, **parameters}
        return build_workload([("p4", given)], frame_size_bytes=128)

    def listed(self):
        """The workload with a table of each kind, whose entries are known."""
        workload = self.workload()
        program = workload.program
        to = ir.Action("to", (ir.Field("port", 9),), label="MainControl.forward")
        keys = [ir.Key(ir.FieldRef("ethernet", name), kind) for name, kind in (("dst", "exact"), ("src", "lpm"))]
        entries = [(ir.Match.masked(7, -1), (3,)), (ir.Match.masked(0xA00000000000, 0xF00000000000), (4,))]
        tables = [
            ir.Table(n, (k,), ("to",), "to", ir.EntryList((ir.Entry((m,), "to", d),)), (9,), label=f"MainControl.{n}")
            for n, k, (m, d) in zip(("labels", "destinations"), keys, entries, strict=True)
        ]
        return replace(workload, program=replace(program, actions=(*program.actions, to), tables=tuple(tables)))

    def test_entries_stand_in_the_text_at_their_tables(self):
        text = own_text(self.listed())
        other, _, main = text.partition("control MainControl")
        labels, _, destinations = main.partition("table destinations")
        assert "0x7: forward(0x3);" in labels
        assert "old()" not in labels
        assert "default_action = forward(0x9);" in labels
        assert "unknown()" not in labels
        assert "0xa00000000000 &&& 0xf00000000000: forward(0x4);" in destinations
        assert other == self.TEXT.partition("control MainControl")[0]

    def test_the_port_is_that_which_t4p4s_reads(self):
        text = own_text(self.listed())
        assert "sm.egress_port = port;" in text
        assert "egress_spec" not in text

    def test_a_table_that_is_not_in_the_text(self):
        workload = self.listed()
        lost = replace(workload.program.tables[0], label="MainControl.lost")
        with pytest.raises(CapabilityError, match=r"MainControl\.lost is not where its name says"):
            own_text(replace(workload, program=replace(workload.program, tables=(lost,))))

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({"p4": ""}, "there is no such text"),
            ({"port": 2}, "come in by port 0"),
            ({"program": "acl_firewall"}, "ternary"),
            ({"program": "l2_switch"}, "does not show its cells"),
        ],
        ids=str,
    )
    def test_what_is_refused(self, facts, parameters, words):
        if name := parameters.get("program"):
            parameters = {"program": (EXAMPLES / name / f"{name}.json").read_text()}
        with pytest.raises(CapabilityError, match=words):
            plan(facts, self.workload(**parameters))

    def test_the_job_has_the_packets(self, facts):
        workload = self.workload()
        job_files = TARGET.job_files(workload)
        assert job_files["source.bin"] == b"".join(workload.frames)
        assert job_files["verify.bin"].startswith(b"P4PVRFY2")
