"""Target t4p4s without t4p4s: planning, refusals, how its compiler is asked, what is said of libraries."""

import json
import sys

import pytest

from p4perf.errors import BuildError, CapabilityError, MeasurementError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.p4.t4p4s import T4P4S
from p4perf.generators.workload import build_workload
from p4perf.specs.metrics import METRICS
from p4perf.targets.base import JobResult, NodeFacts, TrialOptions
from p4perf.targets.t4p4s import T4P4STarget, table_bytes
from p4perf.targets.t4p4s_build import built_libraries, library_name
from p4perf.testbeds.local import LocalTestbed

TARGET = T4P4STarget()
LIBRARIES = {"t4p4s_libraries": "/libraries"}


def table(frame_size=64, **parameters):
    components = [("match_action_table", {"entries": 1000, **parameters})]
    return build_workload(components, frame_size_bytes=frame_size)


def one(component, **parameters):
    return build_workload([(component, parameters)], frame_size_bytes=256)


def plan(facts, workload=None, traffic=None, **more):
    workload = workload or table()
    size = workload.packets.frame_size_bytes
    return TARGET.plan(workload, traffic or TrafficPlan(size), facts(**{**LIBRARIES, **more}))


class TestPlanning:
    def test_all_metrics_are_known(self):
        assert set(TARGET.metrics) <= set(METRICS)

    def test_a_library_is_named_by_the_p4_that_p4perf_generates(self, facts):
        texts = {f.path: f.text() for f in T4P4S().generate(table(), TrafficPlan(64))}
        parts = plan(facts).build.parts
        for role in ("program", "baseline"):
            text = texts[f"{role}.p4"]
            assert parts[role].files == {f"{role}.p4": text}
            assert f"/libraries/{library_name(text)}" in parts[role].commands[-1]

    def test_the_name_is_what_sha256sum_says(self):
        assert library_name("abc") == "ba7816bf8f01cfea.so"

    def test_another_number_of_entries_is_another_library(self, facts):
        fewer, more = (plan(facts, table(entries=n)) for n in (10, 1000))
        assert fewer.build.key != more.build.key
        assert fewer.build.parts["baseline"].key == more.build.parts["baseline"].key
        assert fewer.build.parts["executable"].key == more.build.parts["executable"].key

    def test_a_library_that_was_built_anew_is_another_point(self, facts):
        name = library_name(T4P4S().generate(table(), TrafficPlan(64))[0].text()).removesuffix(".so")
        keys = {built: plan(facts, t4p4s_built=built).key for built in (f"{name}:1", f"{name}:2", f"{'0' * 16}:3")}
        assert len(set(keys.values())) == 3
        assert plan(facts, t4p4s_built=f"{name}:1 {'0' * 16}:3").key == keys[f"{name}:1"], "others do not matter"

    def test_what_the_probe_says_of_libraries_is_read_strictly(self):
        words = f"{'a' * 16}:12 ../../x:1 {'b' * 15}:1 {'c' * 16}:x {'D' * 16}:1"
        assert built_libraries(NodeFacts({"t4p4s_built": words})) == {f"{'a' * 16}.so": "12"}

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

    def test_without_libraries_nothing_can_be_measured(self, facts):
        fatal = [p for p in TARGET.problems(facts()) if p.fatal]
        assert [p.what for p in fatal] == ["no libraries of t4p4s"]
        assert "T4P4S_LIBRARIES" in fatal[0].hint
        assert not [p for p in TARGET.problems(facts(**LIBRARIES)) if p.fatal]

    def test_missing_checkouts_are_told(self, facts):
        there = {**LIBRARIES, "tool_t4p4s": "/t4p4s"}
        told = [p for p in TARGET.problems(facts(**there)) if "checkout" in p.what]
        assert ["$P4C" in p.what and not p.fatal for p in told] == [True]


# --- How the compiler of a checkout is asked. Its messages are those of the real one, see OMISSIONS.

COMPILER = """
import pathlib, sys
assert sys.argv[1:] == ["--multi", "1", "-p", "{p4c}", "-g", "build/srcgen", "program.p4"], sys.argv
assert pathlib.Path("program.p4").read_text().startswith("// ")
pathlib.Path("src/utils").mkdir()
pathlib.Path("src/utils/codegen.py").write_text("written beside the sources")
print({text!r}, file=sys.stderr)
sys.exit({status})
"""


@pytest.fixture
def checkout(tmp_path):
    """Makes a checkout whose compiler prints a text and ends with a status."""

    def make(text="", status=0):
        folder = tmp_path / "t4p4s"
        (folder / "src" / "hlir16").mkdir(parents=True)
        (folder / "src" / "hlir16" / "hlir.py").touch()
        (folder / "src" / "compiler.py").write_text(COMPILER.format(p4c=tmp_path / "p4c", text=text, status=status))
        return folder

    return make


@pytest.fixture
def build(tmp_path, facts, checkout):
    """Builds the library of the program of a table, as a testbed does; the folder of the build."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()

    def run(text="", status=0, *, library=b"a library", folder=None):
        there = {"tool_t4p4s": str(folder or checkout(text, status)), "tool_p4c": str(tmp_path / "p4c")}
        there |= {"t4p4s_python": sys.executable, "t4p4s_libraries": str(libraries)}
        part = plan(facts, **there).build.parts["program"]
        if library is not None:
            (libraries / library_name(part.files["program.p4"])).write_bytes(library)
        return LocalTestbed(tmp_path / "cache").build(part)

    return run


class TestBuild:
    def test_what_the_compiler_takes_is_taken(self, build):
        made = build("HLIR (uncached) program.p4")
        assert (made / "program.so").read_bytes() == b"a library"
        assert not (made / "overlay").exists()

    def test_the_checkout_stays_as_it_is(self, build, checkout):
        folder = checkout()
        before = sorted(p.relative_to(folder) for p in folder.rglob("*"))
        build(folder=folder)
        assert sorted(p.relative_to(folder) for p in folder.rglob("*")) == before

    @pytest.mark.parametrize(
        ("text", "status", "what"),
        [
            ("Warning: while Compiling assignment: Assignment to slice is currently not supported", 0, "slice"),
            (
                "Warning: while adding const entry: Underscore entry for const entry for table t not supported yet",
                0,
                "Underscore entry",
            ),
            ("Error: while formatting expression: Assignment to unsupported source type Add in: a", 1, "source type"),
            ("program.p4(12): [--Werror=type-error] error: Field not found", 1, "Werror=type-error"),
            ("program.p4(3):syntax error, unexpected IDENTIFIER", 1, "syntax error"),
            ("Traceback\nNameError: name 'hi_name' is not defined", 1, "hi_name"),
            ("Killed", 137, "status 137: Killed"),
            ("", 1, "status 1: no message"),
        ],
    )
    def test_what_it_leaves_out_is_refused_whatever_its_status(self, build, text, status, what):
        with pytest.raises(BuildError, match=f"t4p4s does not take this program: .*{what}"):
            build(text, status)

    def test_a_checkout_without_its_submodule(self, build, checkout):
        folder = checkout()
        (folder / "src" / "hlir16" / "hlir.py").unlink()
        with pytest.raises(BuildError, match="git submodule update --init"):
            build(folder=folder)

    def test_a_library_that_is_not_there_is_named(self, build):
        with pytest.raises(BuildError, match=r"there is no library of this program: .*/libraries/[0-9a-f]{16}\.so"):
            build(library=None)


DESCRIPTION = {"code_bytes": 70_000, "made_by": "t4p4s"}


class TestRecords:
    @staticmethod
    def result(*lines, returncode=0):
        return JobResult(returncode, "".join(f"{json.dumps(line)}\n" for line in lines), "", 1.0)

    def test_libraries_are_in_the_record(self, make_record):
        lines = [{"library": role, **DESCRIPTION, "compile_ms": 9e3} for role in ("program", "baseline")]
        record = TARGET.parse(self.result(*lines, make_record()))
        values = {m.metric: m.value for m in TARGET.summarise(record, None).metrics}
        assert values["code_bytes"] == 70_000
        assert values["compile_time"] == 9e3
        assert values["cost_cycles_per_packet"] == 80
        assert set(TARGET.metrics) <= set(values)

    def test_a_time_that_nobody_knows_is_no_metric(self, make_record):
        lines = [{"library": role, **DESCRIPTION} for role in ("program", "baseline")]
        values = {m.metric for m in TARGET.summarise(TARGET.parse(self.result(*lines, make_record())), None).metrics}
        assert "compile_time" not in values
        assert set(TARGET.metrics) <= values

    def test_a_record_without_libraries_is_damaged(self, make_record):
        with pytest.raises(MeasurementError, match="damaged description"):
            TARGET.parse(self.result(make_record()))

    @pytest.mark.parametrize("kind", ["verify", "library"])
    def test_errors_have_a_kind(self, kind):
        with pytest.raises(MeasurementError, match="packet 3") as caught:
            TARGET.parse(self.result({"error": "packet 3 left by port 1, expected 2", "kind": kind}, returncode=1))
        assert caught.value.key == kind
