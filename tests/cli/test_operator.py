"""p4perf measure of an operator: what is wrong with a file or an option, before anything is built."""

import pytest
import yaml
from support.command import p4perf

from p4perf.errors import BuildError, DataError, ExitCode, UsageError
from p4perf.experiment.operator import (
    explained,
    operator_experiment,
    operator_name,
    read_code,
    refuse_strange_code,
)
from p4perf.experiment.planning import point_workload
from p4perf.generators.c.dpdk import OWN_OPERATOR
from p4perf.programs.components.operator import MAX_CODE_BYTES
from p4perf.programs.operators import OPERATORS
from p4perf.specs import load_experiment
from p4perf.targets.base import BuildPlan

CODE = "uint64_t operate(uint8_t *packet, uint32_t length) { return *packet + length; }\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mine.c"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"int a;\n\xff\n", ":2: is not text in UTF-8"),
        (b"int a;\0\n", ":1: has a control character"),
        (b"/*" + b"x" * MAX_CODE_BYTES + b"*/", "is larger than"),
    ],
)
def test_files_that_are_no_c(tmp_path, data, words):
    path = tmp_path / "broken.c"
    path.write_bytes(data)
    done = p4perf("measure", path)
    assert done.code == 2
    assert str(path) in done.err
    assert words in done.err


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "folder.c").mkdir()
    for path in (tmp_path / "none.c", tmp_path / "folder.c"):
        done = p4perf("measure", path)
        assert done.code == 2
        assert f"{path}: cannot be read: " in done.err


@pytest.mark.parametrize("sizes", ["", "64,", "64,a", "63", "2049", "64,64", "-64", "6.4", "999999999999"])
def test_sizes(source, sizes):
    done = p4perf("measure", source, f"--sizes={sizes}")
    assert done.code == 2
    assert "--sizes" in done.err


def test_batches_are_refused(source, tmp_path):
    done = p4perf("measure", source, "--testbed", f"manual:{tmp_path}", cwd=tmp_path)
    assert done.code == 2
    assert "works in batches" in done.err


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my_op.c", "my_op"),
        ("My Op-2.c", "my_op_2"),
        ("htons.c", "own_htons"),
        ("2nd.c", "own_2nd"),
        ("äöü.c", "own"),
        ("--set x=1;$(id).c", "set_x_1_id"),
        ("x" * 200 + ".c", "x" * 60),
    ],
)
def test_names(tmp_path, file, name):
    assert operator_name(tmp_path / file) == name
    assert name not in OPERATORS


HARD = (
    (
        '#define A "\\"$packet_size {{ x }} #{y} %s" \'\n'
        "\t/* ends with blanks:   \n   \u2028 \u0085\u00e4 \U0001f600 : - ? | > */\r\n"
        "  # no yaml: [comment, &anchor *alias !tag]\n---\n...\n" + CODE
    )
    .replace("\u0085", "")
    .replace("\u2028", "")
)


def test_the_text_survives_the_spec(tmp_path):
    path = tmp_path / "hard.c"
    path.write_text(HARD, newline="")
    experiment = operator_experiment(path, (256, 64))
    assert [p.values for p in experiment.points] == [
        {"operator": "hard", "packet_size": 64},
        {"operator": "hard", "packet_size": 256},
    ]
    text = experiment.resolved_yaml()
    (tmp_path / "spec.yaml").write_text(text)
    again = load_experiment(str(tmp_path / "spec.yaml"))
    assert again.spec_hash == experiment.spec_hash
    assert yaml.safe_load(text)["program"]["parameters"]["code"] == HARD.replace("\r\n", "\n")
    workload, _ = point_workload(again, again.points[0])
    (own,) = {s.operator for a in workload.program.actions for s in a.body if hasattr(s, "operator")}
    assert own.code == HARD.replace("\r\n", "\n")


def test_repetitions(source):
    assert operator_experiment(source, (64,), 7).spec.trials.repetitions == 7


def test_errors_of_the_api(source, tmp_path):
    with pytest.raises(UsageError):
        operator_experiment(source, ())
    with pytest.raises(DataError):
        read_code(tmp_path / "none.c")


def test_failures_that_are_not_the_operators(source):
    error = BuildError("the build failed: no cc", log="sh: cc: not found")
    assert explained(error, source) is error


def test_errors_on_lines_that_are_not_there(source):
    """A #line directive may say anything."""
    error = explained(BuildError("x", log="own_operator.c:999:1: error: no\n"), source)
    assert isinstance(error, DataError)
    assert (error.location.line, error.location.text) == (999, None)


class TestCodeOfStrangers:
    """A spec may hold an operator in C: it is compiled and run only if the user named a file with that code before."""

    @pytest.fixture(autouse=True)
    def state(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    @pytest.mark.parametrize("deep", [False, True])
    def test_code_runs_where_its_file_was_measured(self, source, deep):
        plan = BuildPlan({OWN_OPERATOR: CODE}, (), "x")
        plans = [BuildPlan({}, (), "x"), BuildPlan({}, (), "y", parts={"part": plan}) if deep else plan]
        with pytest.raises(UsageError, match="would run with all your rights"):
            refuse_strange_code(plans)
        operator_experiment(source, [64])
        refuse_strange_code(plans)
        with pytest.raises(UsageError, match="would run with all your rights"):
            refuse_strange_code([BuildPlan({OWN_OPERATOR: f"{CODE} "}, (), "x")])

    def test_a_spec_does_not_bring_code_along(self, tmp_path, source, monkeypatch):
        hit = tmp_path / "hit"
        call = f'__attribute__((constructor)) static void go(void) {{ if (system("touch {hit}")) exit(1); }}'
        source.write_text(f"#include <stdlib.h>\n{call}\n{CODE}")
        spec = tmp_path / "spec.yaml"
        spec.write_text(operator_experiment(source, [64]).resolved_yaml())
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        done = p4perf("run", spec, "--target", "dpdk-c", "-o", tmp_path / "runs", "--set", "trials.repetitions=1")
        if done.code == ExitCode.UNAVAILABLE:
            pytest.skip(done.err)
        assert (done.code, hit.exists(), (tmp_path / "runs").exists()) == (2, False, False), done.err
        assert "program.parameters.code: the spec holds an operator in C" in done.err
