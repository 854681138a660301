"""The compilers on the path take every program of the catalogue, and of every construct, in every dialect."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command import p4perf
from support.p4_programs import COMPONENTS, CONSTRUCTS, workload

from p4perf.errors import CapabilityError
from p4perf.plugins import load_plugin
from p4perf.programs.component import TrafficPlan, build_workload

DIALECTS = ("v1model", "t4p4s", "nfp", "psa", "pna")
WORKLOADS = {
    **{name: build_workload(components, frame_size_bytes=1024) for name, components in COMPONENTS.items()},
    **{f"construct: {name}": workload(program) for name, program in CONSTRUCTS.items()},
}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_compilers_take_the_program(name, dialect, tmp_path):
    generator = load_plugin("p4perf.generators", dialect)()
    commands = [command for command in generator.compilers if shutil.which(command[0])]
    if not commands:
        pytest.skip(f"{' and '.join(c[0] for c in generator.compilers)} not on the path")
    try:
        files = generator.generate(WORKLOADS[name], TrafficPlan(1024))
    except CapabilityError as refusal:
        pytest.skip(f"refused: {refusal.message}")
    (tmp_path / "program.p4").write_text(files[0].text())
    for command in commands:
        words = [word.format(source="program.p4", output="program") for word in command]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    if (tmp_path / "program.spec").exists():
        check_spec((tmp_path / "program.spec").read_text(), files)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_compilers_take_every_point_of_the_catalogue(dialect, tmp_path):
    compilers = load_plugin("p4perf.generators", dialect).compilers
    if not any(shutil.which(command[0]) for command in compilers):
        pytest.skip(f"{' and '.join(c[0] for c in compilers)} not on the path")
    done = p4perf("generate", "--all", "-g", dialect, "--verify", "-o", tmp_path, "-f", "json", timeout=4 * 3600)
    rows = json.loads(done.out)["rows"]
    faults = [row for row in rows if row["verdict"] != "ok"]
    assert not faults, "\n".join(
        f"{row['experiment']} {row['point']} {row['tool']}: {row['message']}" for row in faults
    )
    assert done.code == 0, done.err
    texts = {file.read_bytes() for file in tmp_path.rglob("*.p4")}
    assert {Path(row["file"]).read_bytes() for row in rows} == texts


def check_spec(spec, files):
    """What entry files name is there, and nothing is in the spec that DPDK 22.11 is known to refuse."""
    assert not re.search(r"^\s*compl ", spec, re.MULTILINE)
    assert not re.search(r"jmp\w+ \w+ 0x", spec), "a constant on the left of a comparison"
    tables = set(re.findall(r"^table (\w+) ", spec, re.MULTILINE))
    for file in files:
        if file.entries and not file.path.startswith("baseline"):
            table = re.fullmatch(r"entries-(\w+)\.txt", file.path)[1]
            assert table in tables
            row = next(iter(file.pieces)).splitlines()[0]
            action = re.search(r" action (\w+)", row)[1]
            body = re.search(rf"^table {table} .*?^}}", spec, re.MULTILINE | re.DOTALL)[0]
            assert re.search(rf"^\s*{action}\s*$", body, re.MULTILINE), f"{table} has no action {action}"
            arguments = re.findall(r" (\w+) 0x\w+", row.partition(f" action {action}")[2])
            declared = re.search(rf"^struct {action}_arg_t {{(.*?)}}", spec, re.MULTILINE | re.DOTALL)[1]
            assert re.findall(r"> (\w+)", declared) == arguments
