"""A run from a stranger goes through every command, and changes nothing outside of its folder and the output."""

import functools
import json
import os
import shutil

import pytest
from support.command import p4perf

from p4perf.cli.app import COMMANDS
from p4perf.errors import ExitCode

SPEC = "mat/exact-entries"
PRECIOUS = "precious, without an end of line"
NAME = "../../../home/x$\\frac{\x1b[31m\"'<script>`touch {home}/code`$(touch {home}/code)"
CODE = '"""\n\'\'\'\n*/\n__import__("os").system("touch {home}/code")\n/*'


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of the fake target whose last point has no trial yet."""
    folder = tmp_path_factory.mktemp("whole")
    done = p4perf("run", SPEC, "--points", 4, "--target", "fake", "-o", folder)
    assert done.code == 0, done.err
    (run,) = folder.iterdir()
    last = json.loads((run / "manifest.json").read_text())["planned_points"][-1]
    shutil.rmtree(run / "points" / last)
    return run


class Stranger:
    """A machine of a user, with the folder of a stranger on it."""

    def __init__(self, place, whole):
        self.home, self.desk, self.run = place / "home", place / "desk", place / "received" / "run"
        for folder in (self.home, self.desk):
            folder.mkdir()
        (self.home / "precious").write_text(PRECIOUS)
        shutil.copytree(whole, self.run)
        self.last = json.loads((self.run / "manifest.json").read_text())["planned_points"][-1]
        self.environment = {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(place / "cache"),
            "XDG_STATE_HOME": str(place / "state"),
            "TMPDIR": str(place / "temporary"),
        }
        (place / "temporary").mkdir()

    def filled(self, text):
        return text.replace("{home}", str(self.home))

    def change(self, name, key, value):
        content = json.loads((self.run / name).read_text())
        *above, last = key.split(".")
        functools.reduce(lambda each, k: each.setdefault(k, {}), above, content)[last] = value
        (self.run / name).write_text(json.dumps(content))

    def link(self, name, to):
        path = self.run / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to)

    def outside(self):
        """Everything that is the user's own: names, contents, times and targets of links."""
        return {
            path: (path.lstat().st_mtime_ns, path.is_file() and path.read_bytes())
            for path in (self.home, *sorted(self.home.rglob("*")))
        }

    def p4perf(self, *arguments):
        return p4perf(*arguments, cwd=self.desk, **self.environment)


def links_to_a_file(stranger):
    for name in (".lock", f"points/{stranger.last}/raw.jsonl", "model.json", "measurements.parquet", "plots/cost.svg"):
        stranger.link(name, stranger.home / "precious")


def a_hard_link(stranger):
    os.link(stranger.home / "precious", stranger.run / "points" / "hard")
    (stranger.run / ".lock").unlink(missing_ok=True)
    os.link(stranger.home / "precious", stranger.run / ".lock")


def links_to_a_folder(stranger):
    for name in ("points", "plots", "batches"):
        stranger.link(name, stranger.home)


def names(stranger):
    for key in ("experiment", "target", "testbed", "source", "node.cpu_model"):
        stranger.change("manifest.json", key, stranger.filled(NAME))


def words_of_the_spec(stranger):
    spec = stranger.run / "spec.yaml"
    lines = [line for line in spec.read_text().splitlines() if not line.startswith("title:")]
    spec.write_text("\n".join([f"title: {json.dumps(stranger.filled(NAME))}", *lines]))


def a_model(stranger):
    for key in ("name", "target", "x.name", "y.name", "x.unit"):
        stranger.change("model.json", key, stranger.filled(CODE))


def a_place(stranger):
    stranger.change("manifest.json", "testbed", "manual")
    stranger.change("manifest.json", "place", {"address": f"manual:{stranger.home}/new"})


def a_pipe_and_a_device(stranger):
    (stranger.run / "model.json").unlink()
    os.mkfifo(stranger.run / "model.json")
    stranger.link("measurements.parquet", "/dev/zero")


def loops_of_links(stranger):
    for name in ("points", "plots", "batches", "model.json", "loop.yaml"):
        stranger.link(name, name)
    spec = stranger.run / "spec.yaml"
    spec.write_text(spec.read_text().replace("traffic:\n", "traffic:\n  replay: {pcap: loop.yaml}\n", 1))


def hashes(stranger):
    points = json.loads((stranger.run / "manifest.json").read_text())["planned_points"]
    stranger.change("manifest.json", "planned_points", ["../../../home", *points[1:]])


KINDS = [
    *(links_to_a_file, a_hard_link, links_to_a_folder, loops_of_links, names, hashes),
    *(words_of_the_spec, a_model, a_place, a_pipe_and_a_device),
]

RUN, OUT = "{run}", "out"
CALLS = {
    "run": [["run", "{run}/spec.yaml", "--target", "fake", "-o", OUT]],
    "measure": [["measure", "{run}/model.json"]],
    "resume": [["resume", RUN]],
    "learn": [["learn", "--target", "fake", "--runs", RUN, "--resume"]],
    "fit": [["fit", RUN], ["fit", "{run}/measurements.parquet", "--x", "entries", "--y", "value"]],
    "predict": [
        ["predict", "{run}/model.json", "-m", "{run}/model.json"],
        ["predict", "{run}/spec.yaml", "--runs", RUN],
    ],
    "compare": [
        ["compare", RUN, "{whole}", "-o", "compared"],
        ["compare", "--component", SPEC, RUN, "{run}/model.json"],
    ],
    "gate": [
        ["gate", "--baseline", RUN, "{whole}"],
        ["gate", "--baseline", "{run}/model.json", RUN, "--junit", "j.xml"],
    ],
    "list": [["list", "runs", "--in", "{run}/.."]],
    "show": [["show", RUN], ["show", RUN, "--format", "csv"]],
    "report": [["report", RUN, "-o", "site"]],
    "open": [["open", RUN, "--no-browser"]],
    "status": [["status", RUN]],
    "import": [["import", RUN, "-o", OUT], ["import", "{run}/model.json", "-o", OUT]],
    "export": [["export", RUN, "--as", form, "-o", f"model.{form}"] for form in ("python", "c", "latex")],
    "pack": [["pack", RUN, "-o", "packed.zip"]],
    "reproduce": [["reproduce", "{run}/spec.yaml", "-o", RUN], ["reproduce", "queue", "--quick", "-o", RUN]],
    "estimate": [
        ["estimate", "queue", "--service", "{run}/model.json"],
        ["estimate", "queue", "--service", "det:1us", "--measured", RUN],
    ],
    "analyse": [["analyse", "opq", RUN, "-o", "opq"], ["analyse", "factors", RUN, "-o", "factors"]],
    "doctor": [["doctor", "--testbed", "ssh:{run}/spec.yaml"]],
    "check": [["check", "{run}/spec.yaml"], ["check", "{run}/manifest.json"]],
    "generate": [["generate", "{run}/spec.yaml", "--points", 2, "-o", "generated"]],
}


def test_every_command_is_tried():
    assert set(CALLS) == {name for names in COMMANDS.values() for name in names}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_is_changed_outside_of_the_folder_and_the_output(tmp_path, whole, kind):
    stranger = Stranger(tmp_path, whole)
    kind(stranger)
    before, untouched = stranger.outside(), sorted(tmp_path.iterdir())
    for call in (call for calls in CALLS.values() for call in calls):
        words = [str(word).format(run=stranger.run, whole=whole) for word in call]
        done = stranger.p4perf(*words)
        text = f"{' '.join(words)}: {done.err}"
        assert "Traceback" not in done.err, text
        assert done.code != ExitCode.INTERNAL, text
        assert done.code in set(ExitCode), text
        assert "\x1b" not in done.err + ("" if "csv" in words else done.out), text
        assert stranger.outside() == before, text
    assert set(tmp_path.iterdir()) - set(untouched) <= {tmp_path / "cache", tmp_path / "state"}
    assert list((tmp_path / "temporary").iterdir()) == []
    for exported in stranger.desk.glob("*.python"):
        exec(compile(exported.read_text(), str(exported), "exec"), {"__name__": "exported"})  # noqa: S102
        assert stranger.outside() == before
