"""P4 programs through p4c. What the compilers make is tried with the real ones, where they are installed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.pricing import met_on

from p4perf.errors import BuildError, DataError, ExitCode, TargetUnavailableError, UsageError
from p4perf.evaluation.prediction.reading import ReadOptions, read_program
from p4perf.evaluation.prediction.reading.own import read_own
from p4perf.generators.p4.v1model import V1Model
from p4perf.models.program import ProgramGraph
from p4perf.models.program.paths import analyse
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.packets import frame
from p4perf.programs.reading.control_plane import read_control_plane
from p4perf.programs.reading.flow import resolve
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model

PROGRAMS = Path(__file__).parent / "programs"
ROUTER = PROGRAMS / "router.p4"
P4C = Path(__file__).parents[2] / "fakes" / "p4c"

needs_bmv2 = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on the path")


def test_without_p4c_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetUnavailableError, match=r"P4 for v1model, and p4c-bm2-ss is not installed") as caught:
        read_program(ROUTER)
    assert caught.value.exit_code is ExitCode.UNAVAILABLE
    assert "the .json of p4c-bm2-ss or the .spec of p4c-dpdk" in str(caught.value.hint)


def test_of_an_incomplete_p4c_the_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "p4c-bm2-ss").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetUnavailableError, match="P4 for pna, and p4c-dpdk is not installed"):
        read_program(ROUTER, ReadOptions(arch="pna"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ReadOptions(defines=("X; touch owned",)), "is no definition"),
        (ReadOptions(defines=("-o=/etc/passwd",)), "is no definition"),
        (ReadOptions(includes=(Path("/nowhere"),)), "no folder of include files"),
        (ReadOptions(arch="tna"), "no compiler here for architecture 'tna'"),
    ],
)
def test_options_that_are_none(options: ReadOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_program(ROUTER, options)


def test_the_architecture_is_that_of_the_include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "program.p4"
    path.write_text("control C() { apply {} }\n")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetUnavailableError, match=r"program\.p4 is P4, and p4c is not installed"):
        read_program(path)
    monkeypatch.setenv("PATH", str(P4C))
    with pytest.raises(DataError, match="does not state its architecture"):
        read_program(path)
    path.write_text("#include <psa.p4>\n#include <v1model.p4>\n")
    with pytest.raises(DataError, match="includes several architectures: psa, v1model"):
        read_program(path)


def test_a_compiler_gets_harmless_words_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the compiler notes its words: nothing of odd names is among them."""
    monkeypatch.setenv("PATH", f"{P4C}:/bin:/usr/bin")
    monkeypatch.setenv("NOTES", str(tmp_path))
    monkeypatch.setenv("RESULT", str(PROGRAMS / "router.json"))
    odd = tmp_path / "a $(touch owned); b"
    odd.mkdir()
    program = odd / "-o it's.p4"
    shutil.copyfile(ROUTER, program)
    graph = read_program(program, ReadOptions(defines=("ARCH=V1", "FAST"), includes=(odd,)))
    assert "Route.routes" in graph.nodes
    words = (tmp_path / "words").read_text().split()
    written = ["--pp", "printed.p4", "-o", "out.json"]
    assert words == ["-I", "include0", "-I", "include1", "-DARCH=V1", "-DFAST", *written, "program.p4"]


@needs_bmv2
def test_a_program_is_compiled_and_read() -> None:
    graph = read_program(ROUTER)
    committed = read_program(PROGRAMS / "router.json")
    assert set(graph.nodes) == set(committed.nodes)


@needs_bmv2
def test_what_p4c_does_not_take_is_told(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(ROUTER.read_text().replace("transition accept;", "transition nowhere;"))
    with pytest.raises(BuildError, match=r"p4c-bm2-ss does not take .*nowhere") as caught:
        read_program(path)
    assert caught.value.log


def kinds_of(graph: ProgramGraph) -> Counter[str]:
    found = analyse(graph, lambda node, _edge: float(len(node.constructs)))
    return Counter(c.kind for c, _ in met_on(graph, found.highest_cost))


@needs_bmv2
@pytest.mark.parametrize(
    "components",
    [
        [("match_action_table", {"entries": 100, "match_kind": "lpm", "key_bits": 32})],
        [("parser_headers", {"headers": 4}), ("counter", {"updates": 2})],
        [("hash", {"algorithm": "crc32", "size_bytes": 16}), ("register", {"accesses": 2, "operation": "read_write"})],
        [("conditionals", {"conditionals": 3}), ("checksum", {"operation": "update", "size_bytes": 20})],
    ],
)
def test_our_programs_are_the_same_by_way_of_p4(
    components: list[tuple[str, dict[str, object]]], tmp_path: Path
) -> None:
    """A program of ours in the vocabulary of costs, and its P4 compiled and read: the same constructs."""
    workload = build_workload(components, frame_size_bytes=256)
    traffic = TrafficPlan(frame_size_bytes=256)
    text = next(
        f.text() for f in V1Model().generate(workload, traffic) if f.path.endswith(".p4") and "base" not in f.path
    )
    path = tmp_path / "program.p4"
    path.write_text(text)
    ours, theirs = (
        kinds_of(resolve(read_own(workload.program, "program", 256), "program")),
        kinds_of(read_program(path)),
    )
    for kind in ("extract", "select", "emit", "lookup", "counter", "hash", "register read", "checksum update"):
        assert ours[kind] == theirs[kind], kind


@needs_bmv2
@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary"])
def test_packets_meet_the_same_by_way_of_p4(kind: str, tmp_path: Path) -> None:
    """Hits, misses and drops of one program: as it was made, and as it is read from the JSON of its P4."""
    parameters = {"entries": 8, "match_kind": kind, "key_bits": 32, "tables": 2}
    workload = build_workload([("match_action_table", parameters)], frame_size_bytes=128)
    files = {f.path: f.text() for f in V1Model().generate(workload, TrafficPlan(frame_size_bytes=128))}
    (tmp_path / "program.p4").write_text(files["program.p4"])
    (tmp_path / "commands").write_text("".join(text for text in files.values() if "table_add" in text))
    root = parse_json(compile_p4(tmp_path / "program.p4", None, (), ())[1], "program.json")
    program = read_v1model(root, read_control_plane(tmp_path / "commands", root))
    names = {table.name for table in workload.program.tables}
    labels = {table.name: table.label.rpartition(".")[2] for table in program.tables}
    for drawn in (0, 1, 7, 8, 9):
        data = frame(workload.program, workload.packets, drawn)
        expected = Interpreter(workload.program).run(data)
        found = Interpreter(program).run(data)
        assert [labels[name] for name in found.hits if labels[name] in names] == list(expected.hits)
        assert [labels[name] for name in found.misses if labels[name] in names] == list(expected.misses)
        assert found.sent == expected.sent
