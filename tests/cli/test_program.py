"""Programs of users: what may stand on the command line, and what comes of a specification."""

import json
from pathlib import Path

import pytest
from support.command import p4perf

from p4perf.cli.measure import varying_bytes
from p4perf.errors import UsageError
from p4perf.experiment import open_target, open_testbed, program, require_usable
from p4perf.experiment.program import ProgramInput
from p4perf.targets.base import NodeFacts, Problem, TrialOptions

SPEC = """struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> ether_type
}
struct metadata_t {
	bit<32> port
}
struct send_args_t {
	bit<32> port
}
header eth instanceof ethernet_t
metadata instanceof metadata_t
action send args instanceof send_args_t {
	mov m.port t.port
	return
}
action miss args none {
	mov m.port 1
	return
}
table hosts {
	key {
		h.eth.dst exact
	}
	actions {
		send
		miss
	}
	default_action miss args none
	size 64
}
apply {
	rx m.port
	extract h.eth
	table hosts
	emit h.eth
	tx m.port
}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.spec"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["baseline/l2fwd"], "measures one program"),
        (["--all"], "measures one program"),
        (["--budget", "1m"], "measures one program"),
        (["--target", "dpdk-swx", "--target", "xdp"], "measures one program"),
        (["--target", "dpdk-c"], "runs no .spec"),
        (["--target", "dpdk-swx:interpreter", "--vary", "1:2"], "OFFSET:LENGTH:KEYS"),
        (["--target", "dpdk-swx:interpreter", "--frame", "xyz"], "hexadecimal"),
        (["--target", "dpdk-swx:interpreter", "--frame", "nowhere.pcap"], "nowhere.pcap: cannot be read"),
        (["--target", "dpdk-swx:interpreter", "--entries", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["--target", "dpdk-swx:interpreter", "--expect", "nowhere.bin"], "nowhere.bin: cannot be read"),
    ],
)
def test_what_does_not_go_with_a_program(spec: Path, tmp_path: Path, arguments: list[str], wanted: str) -> None:
    done = p4perf("run", "--program", spec, *arguments, "-o", tmp_path / "runs", cwd=tmp_path)
    assert done.code == 2, done.err
    assert wanted in done.err
    assert not (tmp_path / "runs").exists()


def test_options_of_a_program_need_one(tmp_path: Path) -> None:
    done = p4perf("run", "baseline/l2fwd", "--vary", "1:2:3", "-o", tmp_path / "runs")
    assert done.code == 2
    assert "--program" in done.err


def test_other_files_are_no_programs(tmp_path: Path) -> None:
    (tmp_path / "a.p4").write_text("")
    done = p4perf("run", "--program", tmp_path / "a.p4", "-o", tmp_path / "runs")
    assert done.code == 2
    assert "p4c-dpdk" in done.err


def test_what_varies() -> None:
    found = varying_bytes("26:4:1000")
    assert (found.offset, found.length, found.keys) == (26, 4, 1000)
    for text in ("", "1:2", "a:b:c", "1:2:3:4", "-1:2:3"):
        with pytest.raises(UsageError):
            varying_bytes(text)


def _problems() -> tuple[Problem, ...]:
    target, testbed = open_target("dpdk-swx:interpreter"), open_testbed("local")
    return tuple(p for p in target.problems(testbed.facts()) if p.fatal)


@pytest.mark.thorough
@pytest.mark.dpdk
def test_a_specification_with_entries_is_measured(spec: Path, tmp_path: Path) -> None:
    if problems := _problems():
        pytest.skip(problems[0].what)
    assert require_usable(open_target("dpdk-swx:interpreter"), open_testbed("local"))
    entries = tmp_path / "hosts.txt"
    entries.write_text("table hosts\nmatch 0x020000000002 action send port 0x3\n")
    common = ("run", "--program", spec, "--target", "dpdk-swx:interpreter", "-o", tmp_path / "runs", "-f", "json")
    done = p4perf(*common, "--entries", entries, "--vary", "0:6:64", "--repetitions", "1")
    assert done.code in (0, 4), done.err
    if done.code == 4:
        pytest.skip("the machine was disturbed")
    printed = json.loads(done.out)
    metrics = {row["metric"]: row for row in printed["rows"]}
    assert metrics["cycles_per_packet"]["median"] > 0
    assert metrics["cycles_per_packet"]["n"] == 1
    folder = Path(printed["run"])
    assert (folder / "program.spec").read_text() == SPEC
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["program"] == "hosts"
    records = [json.loads(line) for line in (folder / "raw.jsonl").read_text().splitlines()]
    assert {record["hugepages"] for record in records} == {manifest["hugepages"]}


class LookedError(Exception):
    """A trial would begin now."""


@pytest.mark.parametrize("free", [0, 2048])
def test_a_program_is_measured_in_hugepages_where_experiments_are(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    facts = NodeFacts({"hugepage_bytes": str(2 << 20), "hugepages_free": str(free), "measuring_cpu": "0"})

    def trial(plan: object, options: TrialOptions, facts: NodeFacts) -> None:
        assert options.hugepages is bool(free)
        raise LookedError

    monkeypatch.setattr(program, "require_usable", lambda device, place: facts)
    monkeypatch.setattr(program, "measured_gate_ratio", lambda device, place, folder: None)
    monkeypatch.setattr(program, "trial_of_specification", trial)
    given = ProgramInput("hosts", SPEC, bytes(60))
    with pytest.raises(LookedError):
        program.measure_program(given, "dpdk-swx:interpreter", "local", Path("runs"))


@pytest.mark.dpdk
@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("bit<16> ether_type", "sixteen bits"), "program.spec:4"),
        (("table hosts\n\temit", "table guests\n\temit"), "guests"),
        (("metadata_t {", "metadata_t {\n\tbit<2048> room"), "beyond the first 256 bytes"),
    ],
)
def test_mistakes_in_a_specification_are_named(
    spec: Path, tmp_path: Path, change: tuple[str, str], wanted: str
) -> None:
    if problems := _problems():
        pytest.skip(problems[0].what)
    assert change[0] in SPEC
    spec.write_text(SPEC.replace(*change))
    done = p4perf("run", "--program", spec, "--target", "dpdk-swx:interpreter", "-o", tmp_path / "runs")
    assert done.code == 2, done.err
    assert wanted in done.err
    assert not (tmp_path / "runs").exists()
