"""Operators in C compute what they should, a user's own is compiled and measured, and what is wrong with it is told."""

import json
import re
from pathlib import Path

import pytest
from support.command import p4perf
from support.many_programs import check_many

from p4perf.errors import DataError
from p4perf.experiment import plan_sweep
from p4perf.experiment.operator import build_operator, operator_experiment
from p4perf.programs.component import build_workload
from p4perf.programs.operators import OPERATORS

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def workload(operator, size, baseline="l2fwd_result"):
    return build_workload([("operator", {"operator": operator})], frame_size_bytes=size, baseline=baseline)


@pytest.mark.thorough
def test_every_operator_computes_what_its_reference_does(tmp_path):
    """On packets of an odd and an even size, also such that are cut short, are foreign or have changed bytes."""
    names = [*OPERATORS, "checksum+rte_net_crc"]
    workloads = [workload(name, 61 + 60 * (n % 2)) for n, name in enumerate(names)]
    assert check_many(workloads, tmp_path) == [""] * len(workloads)


@pytest.fixture
def cache(testbed, tmp_path):
    """The environment of a command that builds in the cache that all tests share."""
    (tmp_path / "xdg").mkdir()
    (tmp_path / "xdg" / "p4perf").symlink_to(testbed._cache)
    return {"XDG_CACHE_HOME": str(tmp_path / "xdg")}


def test_the_operator_of_the_page_is_measured(tmp_path, cache):
    folder = tmp_path / 'it\'s a $(touch folder) "here"'
    folder.mkdir()
    (code,) = re.findall(r"<!-- file: sum_of_bytes.c -->\n```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (folder / "sum of; 'bytes'.c").write_text(code)
    done = p4perf(
        *("measure", "sum of; 'bytes'.c", "--sizes", "512,64", "--repetitions", 1, "--format", "json"),
        cwd=folder,
        **cache,
    )
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    assert printed["kind"] == "operator"
    assert [(r["operator"], r["packet_size"]) for r in printed["rows"]] == [("sum_of_bytes", 64), ("sum_of_bytes", 512)]
    small, large = printed["rows"]
    assert large["cost_cycles"] > (small["cost_cycles"] or 0)
    assert large["resolution_cycles"] > 0
    assert "environment: dedicated core: " in done.err
    (run,) = (folder / "runs").iterdir()
    assert not list(tmp_path.rglob("folder"))
    manifest = json.loads((run / "manifest.json").read_text())
    assert [c["check"] for c in manifest["environment"]] == ["dedicated core", "interrupts", "constant frequency"]
    assert {p["values"]["packet_size"] for p in manifest["points"]} == {64, 512}
    again = p4perf("resume", run, "--quiet", **cache)
    assert again.code == 0, again.err


BROKEN = {
    "syntax": ("uint64_t\noperate(uint8_t *packet, uint32_t length)\n{\n\treturn packet[0]\n}\n", 4, "expected ';'"),
    "undeclared": ("uint64_t operate(uint8_t *packet, uint32_t length) { return x; }\n", 1, "'x' undeclared"),
    "another function": ("uint64_t operate(int x) { return x; }\n", 1, "conflicting types for 'operate'"),
    "static": ("static uint64_t operate(uint8_t *p, uint32_t n) { return *p + n; }\n", 1, "static declaration"),
    "header": ('\n#include "not there.h"\n', 2, "not there.h: No such file"),
    "nothing": ("int x;\n", None, "defines no function operate"),
    "name of the harness": (
        "uint64_t measure(void) { return 1; }\nuint64_t operate(uint8_t *p, uint32_t n)"
        " { return measure() + *p + n; }\n",
        None,
        "defines measure",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_the_compiler_says_is_told_with_its_place(kind, tmp_path, testbed, target, facts, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    text, line, words = BROKEN[kind]
    path = tmp_path / "my op.c"
    path.write_text(text)
    experiment = operator_experiment(path, (64,))
    plan = plan_sweep(experiment, target, facts).points[0].plan.build
    with pytest.raises(DataError) as caught:
        build_operator(path, plan, testbed)
    error = caught.value
    assert words in error.message
    assert error.location.file == str(path)
    assert error.location.line == line
    if line is not None:
        assert error.location.text == text.split("\n")[line - 1]


@pytest.mark.thorough
def test_an_operator_that_crashes_fails_its_points(tmp_path, cache):
    (tmp_path / "bad.c").write_text(
        "#include <stdint.h>\n"
        "uint64_t operate(uint8_t *p, uint32_t n) { *(volatile char *)(uintptr_t)n = *p; return 1; }\n"
    )
    done = p4perf("measure", "bad.c", "--sizes", "64", "--repetitions", 1, "--quiet", cwd=tmp_path, **cache)
    assert done.code == 4
    assert "SIGSEGV" in done.err
    assert "Traceback" not in done.err
