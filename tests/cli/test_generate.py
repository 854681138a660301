"""generate: refusals that stop nothing, the whole catalogue, and verdicts of compilers (fakes on the path)."""

import itertools
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from support.command import p4perf

from p4perf.errors import StorageError
from p4perf.experiment import generation
from p4perf.programs.component import component_parameters
from p4perf.programs.reading.p4c import compiled
from p4perf.specs import load_experiment

PATH = "/bin:/usr/bin"
P4 = ["-g", "v1model", "-g", "psa"]


def tool(folder, name, script):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return f"{folder}{os.pathsep}{PATH}"


def verified(tmp_path, path, *more, code):
    arguments = ("extern/random", "--verify", "-o", tmp_path / "out", "-f", "json", *more)
    done = p4perf("generate", *arguments, PATH=path)
    assert done.code == code, done.err
    return done, json.loads(done.out)["rows"] if done.out else []


def test_a_refusal_does_not_stop_the_others(tmp_path):
    done = p4perf("generate", "path/clone", "--set", "copies=[1,2]", *P4, "-o", tmp_path, "-f", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {row["generator"] for row in found["rows"]} == {"v1model"}
    assert [(r["generator"], "clone" in r["reason"]) for r in found["refused"]] == [("psa", True)] * len(
        found["refused"]
    )
    assert found["refused"]
    assert "note: psa refuses" in done.err


def test_nothing_at_all_is_an_error_with_its_reason(tmp_path):
    done = p4perf("generate", "extern/random", "--set", "numbers=[1,2]", "-g", "psa", "-g", "pna", "-o", tmp_path)
    assert done.code == 2
    assert "psa has no random" in done.err


@pytest.mark.parametrize("arguments", [["generate"], ["generate", "demo/exact-entries", "--all"]])
def test_a_spec_or_all(arguments):
    done = p4perf(*arguments)
    assert done.code == 2
    assert "takes an experiment or --all" in done.err
    assert p4perf("generate", "--all", "--set", "entries=3").code == 2


def test_the_whole_catalogue(tmp_path):
    done = p4perf("generate", "--all", "--points", 1, "-g", "t4p4s", "-g", "v1model", "-o", tmp_path, "-f", "json")
    assert done.code == 0, done.err
    rows = {row["generator"]: row for row in json.loads(done.out)["rows"]}
    refused = json.loads((tmp_path / "refused.json").read_text())
    for name, row in rows.items():
        of = [r for r in refused if r["generator"] == name]
        assert row["refused"] == len(of)
        assert row["points"] == len(list((tmp_path / name).rglob("program.p4")))
    assert all(r["reason"] and r["experiment"] for r in refused)
    assert any(r["generator"] == "t4p4s" and "ternary" in r["reason"] for r in refused)
    assert (tmp_path / "v1model" / "extern" / "counter" / "0" / "point.json").exists()
    assert [p.name for p in tmp_path.rglob("commands.txt")], "groups are no entries"
    assert not list((tmp_path / "v1model" / "mat").rglob("commands.txt"))


def test_a_compiler_that_hangs_is_ended_with_what_it_has_started(tmp_path):
    tool(tmp_path / "bin", "p4test", f"sleep 300 & echo $! > {tmp_path}/child; wait")
    running: set[int] = set()
    with tempfile.TemporaryFile() as said, pytest.raises(subprocess.TimeoutExpired):
        compiled([str(tmp_path / "bin" / "p4test")], tmp_path, said, 2.0, running)
    assert running == set()
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")

    def is_over() -> bool:
        try:
            return state.read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    deadline = time.monotonic() + 60
    while not is_over() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_over()


def test_without_a_compiler_nothing_is_written(tmp_path):
    done, _ = verified(tmp_path, PATH, *P4, code=3)
    assert "p4test, p4c-bm2-ss, p4c-dpdk are not on the path" in done.err
    assert not (tmp_path / "out").exists()
    assert p4perf("generate", "demo/exact-entries", "-g", "moongen", "--verify").code == 2


def test_verdicts_and_messages(tmp_path):
    path = tool(tmp_path / "bin", "p4test", "grep -q 'random(' \"$1\" && echo 'error: no random' && exit 1; exit 0")
    tool(tmp_path / "bin", "p4c-bm2-ss", "kill -SEGV $$")
    _, rows = verified(tmp_path, path, "-g", "v1model", "--set", "numbers=[0,4]", code=1)
    seen = {(row["tool"], row["verdict"]) for row in rows}
    assert seen == {("p4test", "ok"), ("p4test", "refused"), ("p4c-bm2-ss", "crashed")}
    assert {row["message"] for row in rows if row["verdict"] == "refused"} == {"error: no random"}
    assert {row["message"] for row in rows if row["verdict"] == "crashed"} == {"ended by signal 11"}


def test_each_text_is_compiled_once_and_missing_tools_are_named(tmp_path):
    path = tool(tmp_path / "bin", "p4test", f'echo x >> "{tmp_path}/calls"')
    done, rows = verified(tmp_path, path, "-g", "v1model", "-g", "nfp", "--set", "numbers=[4,8]", code=0)
    assert "v1model is not verified by p4c-bm2-ss" in done.err
    assert {row["verdict"] for row in rows} == {"ok"}
    assert len((tmp_path / "calls").read_text().split()) == len(rows)
    copies = [row["programs"] for row in rows if row["file"].endswith("baseline.p4")]
    files = len(list((tmp_path / "out").rglob("baseline.p4")))
    assert sum(copies) == files
    assert len(copies) == 2


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_is_full_leaves_no_half_tree(tmp_path, monkeypatch, there):
    count, output = itertools.count(), tmp_path / "out"
    write = generation.write_atomically

    def full(path, pieces):
        if next(count) == 3:
            raise StorageError(f"cannot write {path}: the disk is full")
        write(path, pieces)

    monkeypatch.setattr(generation, "write_atomically", full)
    experiment = load_experiment("mat/exact-entries", points=3, parameters_of=component_parameters)

    def fill(folder):
        return generation.Generation(["v1model"], folder, 10, alone=True).run(experiment)

    if there:
        output.mkdir()
        (output / "mine").write_text("")
    with pytest.raises(StorageError, match="the disk is full"):
        generation.generate_into(output, fill)
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if there else [])
    monkeypatch.undo()
    written = generation.generate_into(output, fill).written
    assert all(each.path.is_file() and each.path.is_relative_to(output) for each in written)
