"""Faults of disks, files, tools, nodes and clusters, caused for real: each ends as its row in SECURITY.md says."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import Result, command, environment, p4perf
from support.dask_cluster import dask_cluster
from support.sshd import alive, wait_until

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from docs_pages import tables  # noqa: E402

SPEC = ["mat/exact-entries", "--set", "entries=[10, 100, 1000, 10000]"]
RUN = ["run", *SPEC, "-o", "runs", "--target"]
TRIALS = 12
ERRNO = {"full": 28, "quota": 122, "read-only": 30, "broken": 5}

ROWS = {row[0]: row[1:3] for table in tables(ROOT / "SECURITY.md") if table.head[0] == "fault" for row in table.rows}
FAULTS = {}


def fault(name):
    """Marks a function that causes a fault, and returns how the command ended."""

    def register(function):
        FAULTS[name] = function
        return function

    return register


class Place:
    """A folder to work in, with a cache and a state of its own."""

    def __init__(self, folder, request):
        self.folder, self.fixture = folder, request.getfixturevalue
        (folder / "bin").mkdir()
        self.environment = {"XDG_CACHE_HOME": str(folder / "cache")}
        self.prefix = []  # a command that starts p4perf elsewhere

    def p4perf(self, *words, **env):
        return p4perf(*words, cwd=self.folder, **self.environment, **env)

    def alone(self, *words, before="", **env):
        """The command in a process that was started for it: what is preloaded and limited counts from the start."""
        limited = ["bash", "-c", f'{before}\nexec "$@"', "bash"] if before else []
        done = subprocess.run(
            [*self.prefix, *limited, *command(*words)], cwd=self.folder, env=environment(**self.environment, **env),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def started(self, *words, **env):
        return subprocess.Popen(
            [*self.prefix, *command(*words)], cwd=self.folder, env=environment(**self.environment, **env),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tool(self, name, script):
        """A tool that comes first on the PATH."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    @property
    def run(self):
        (run,) = (self.folder / "runs").glob("[!.]*")
        return run

    def trials(self):
        paths = sorted(self.folder.glob("runs/[!.]*/points/*/raw.jsonl"))
        return {p.parent.name: [json.loads(line)["record"] for line in p.read_text().splitlines()] for p in paths}

    def resumed(self):
        """The rest of a run, which is as if nothing had happened."""
        before = self.trials()
        done = (self.alone if self.prefix else self.p4perf)("resume", self.run, "-q")
        assert done.code == 0, done.err
        after = self.trials()
        assert sum(map(len, after.values())) == TRIALS
        assert all(after[point][: len(records)] == records for point, records in before.items())
        assert not list(self.run.rglob("*.tmp"))

    def finished(self):
        done = self.p4perf(*RUN, "fake", "-q")
        assert done.code == 0, done.err
        return self.run


def after_trials(place, process, number=2):
    """Wait until a run has that number of trials."""
    journals = lambda: list(place.folder.glob("runs/[!.]*/points/*/raw.jsonl"))  # noqa: E731
    enough = lambda: sum(p.read_bytes().count(b"\n") for p in journals()) >= number  # noqa: E731
    wait_until(lambda: process.poll() is not None or enough(), 300)
    assert process.poll() is None, process.communicate()[1]


def ended(process):
    _, err = process.communicate(timeout=300)
    return Result(process.returncode, "", err)


# --- disks


@functools.cache
def faulty():
    """The library that makes system calls fail."""
    if shutil.which("cc") is None:
        pytest.skip("needs cc")
    folder = Path(os.environ["XDG_STATE_HOME"])
    source, library = ROOT / "tests" / "support" / "faulty.c", folder / "faulty.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return str(library)


def failing(place, kind, calls, first):
    """Variables with which these calls fail in the output folder, from one of them on."""
    return {"LD_PRELOAD": faulty(), "P4PERF_FAULT": f"{ERRNO[kind]} {first} {calls} {place.folder / 'runs'}"}


WRITES = "write,fsync,open,mkdir,rename"


@fault("no space for a new run")
def no_space(place):
    with mounted(place.folder / "runs", "size=4k"):
        done = place.p4perf(*RUN, "fake")
        assert not list((place.folder / "runs").rglob("*.tmp"))
    return done


@contextlib.contextmanager
def mounted(folder, options):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting needs privileges")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def at_writes(place, kind, calls, steps):
    """A run that fails at one of its writes, for several of them; how the last one ended."""
    count = place.folder / "count"
    whole = place.alone(*RUN, "fake", "-q", P4PERF_CALLS=str(count), **failing(place, kind, calls, 1))
    assert whole.code == 0, whole.err
    number = count.stat().st_size
    assert number > TRIALS
    for step in range(steps):
        shutil.rmtree(place.folder / "runs")
        first = 2 + (number - 2) * (step + 1) // (steps + 1)
        done = place.alone(*RUN, "fake", "-q", **failing(place, kind, calls, first))
        assert done.code == 3, (first, number, done.err)
        fits(done, "no space at any write of a run" if kind == "full" else None)
        if list((place.folder / "runs").glob("[!.]*")):
            place.resumed()
    return done


@fault("no space at any write of a run")
def no_space_later(place, steps=2):
    return at_writes(place, "full", WRITES, steps)


@fault("the quota is used up")
def quota(place):
    done = place.alone(*RUN, "fake", "-q", **failing(place, "quota", "write", 25))
    place.resumed()
    return done


@fault("a read-only file system")
def read_only(place):
    with mounted(place.folder / "runs", "ro"):
        return place.p4perf(*RUN, "fake")


@fault("the device fails when data is forced to it")
def broken(place):
    done = place.alone(*RUN, "fake", "-q", **failing(place, "broken", "fsync", 12))
    place.resumed()
    return done


@fault("a limit for the size of files")
def size_limit(place):
    return place.alone(*RUN, "fake", "-q", before="ulimit -f 4", PYTHONDONTWRITEBYTECODE="1")


@fault("no space for what a command prints")
def no_space_to_print(place):
    return place.alone("list", "experiments", before="exec >/dev/full")


@fault("no folder for temporary files")
def no_temporary_folder(place):
    done = place.p4perf(*RUN, "fake-built", "-q", TMPDIR="/nonexistent/folder")
    assert sum(map(len, place.trials().values())) == TRIALS
    return done


@fault("no folder for the cache")
def no_cache(place):
    (place.folder / "file").touch()
    place.environment["XDG_CACHE_HOME"] = str(place.folder / "file" / "cache")
    return place.p4perf(*RUN, "fake-built")


# --- files


def damaged(place, pattern, change, *words):
    """How a command ends on a finished run of which a file is changed; the file stays as it is."""
    run = place.finished()
    path = next(iter(sorted(run.glob(pattern))))
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    done = place.p4perf(*(str(word).replace("RUN", str(run)) for word in words))
    assert path.read_bytes() == before
    return done


@fault("half a manifest")
def half_a_manifest(place):
    return damaged(place, "manifest.json", lambda data: data[: len(data) // 2], "resume", "RUN")


@fault("a journal with a damaged line")
def damaged_journal(place):
    return damaged(place, "points/*/raw.jsonl", lambda data: b"}" + data[1:], "resume", "RUN")


@fault("a journal whose last line is half")
def half_a_line(place):
    run = place.finished()
    before = place.trials()
    path = sorted(run.glob("points/*/raw.jsonl"))[0]
    path.write_bytes(path.read_bytes()[:-20])
    (path.parent / "finished.json").unlink()
    done = place.p4perf("resume", run, "-q")
    assert place.trials() == before
    return done


@fault("a damaged table of measurements")
def damaged_table(place):
    return damaged(place, "measurements.parquet", lambda data: data[:100] + b"x" * 100 + data[200:], "show", "RUN")


@fault("a model with impossible numbers")
def impossible_model(place):
    change = lambda data: re.sub(rb'("parameters": {\s*"\w+": )[0-9.e+-]+', rb"\g<1>1e400", data, count=1)  # noqa: E731
    return damaged(place, "model.json", change, "export", "RUN/model.json", "--as", "c")


@fault("a damaged build in the cache")
def damaged_build(place):
    if shutil.which("cc") is None:
        pytest.skip("needs cc")
    first = place.p4perf(*RUN, "fake-built", "-q")
    assert first.code == 0, first.err
    (product,) = (place.folder / "cache" / "p4perf" / "builds").glob("*/a")
    whole = product.read_bytes()
    product.write_bytes(b"")
    shutil.rmtree(place.folder / "runs")
    done = place.p4perf(*RUN, "fake-built", "-q")
    assert len(product.read_bytes()) == len(whole)
    return done


@fault("a run of another machine")
def another_machine(place):
    change = lambda data: re.sub(rb'"cpu_model": "[^"]*"', b'"cpu_model": "Some CPU"', data)  # noqa: E731
    return damaged(place, "manifest.json", change, "resume", "RUN")


# --- processes and tools


@fault("two processes on a run")
def two_processes(place):
    with place.started(*RUN, "fake", "-q", P4PERF_FAKE_SLEEP_S="0.3") as process:
        after_trials(place, process)
        done = place.p4perf("resume", place.run)
        assert ended(process).code == 0
    return done


@fault("an interrupt")
def interrupt(place):
    with place.started(*RUN, "fake", "-q", P4PERF_FAKE_SLEEP_S="0.1") as process:
        after_trials(place, process)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    place.resumed()
    return done


def scripted(place, script):
    done = place.p4perf(*RUN, "fake-harness", "-q", "--points", 1, P4PERF_FAKE_SCRIPT=script)
    (path,) = place.run.glob("points/*/raw.jsonl")
    entry = json.loads(path.read_text().splitlines()[0])
    assert entry["failure"]["message"] in " ".join(done.err.split())
    return done


@fault("the program is killed, as when memory is short")
def killed(place):
    return scripted(place, "kill -KILL $$")


@fault("the program prints half a JSON")
def half_json(place):
    return scripted(place, "printf '{\"windows\": [1, '")


@fault("the program does not end")
def endless(place):
    return scripted(place, "exec sleep 600")


@fault("the program prints without end")
def chatty(place):
    return scripted(place, "exec yes")


@fault("the compiler hangs")
def hanging_compiler(place):
    return place.p4perf(
        *RUN,
        "fake-built",
        "-q",
        "--points",
        1,
        **place.tool("cc", 'test "$1" = --version && echo cc 1.0 || exec sleep 600'),
    )


@fault("the compiler does not say its version")
def silent_compiler(place):
    return place.p4perf(*RUN, "dpdk-c", **place.tool("cc", "exec sleep 600"))


@fault("the compiler crashes")
def crashing_compiler(place):
    return place.p4perf(*RUN, "dpdk-c", **place.tool("cc", "kill -SEGV $$"))


@fault("p4c, or the preprocessor that it starts, hangs")
def hanging_preprocessor(place):
    program = place.folder / "program.p4"
    program.write_text("#include <v1model.p4>\n")
    path = place.tool("p4c-bm2-ss", "cpp program.p4 && echo done")
    place.tool("cpp", f"echo $$ >{place.folder}/pid; sleep 600")
    done = place.p4perf("predict", program, **path, P4PERF_TEST_P4C_S="1")
    wait_until(lambda: not alive(int((place.folder / "pid").read_text())), what="the end of the preprocessor")
    return done


@fault("p4c crashes")
def crashing_p4c(place):
    program = place.folder / "program.p4"
    program.write_text("#include <v1model.p4>\n")
    return place.p4perf("predict", program, **place.tool("p4c-bm2-ss", "kill -SEGV $$"))


def bound(place, path, to):
    """Start p4perf where a file or folder of the system is another one."""
    script = 'mount --bind "$1" "$0" && shift && exec "$@"'
    place.prefix = ["unshare", "--mount", "sh", "-c", script, str(to), str(path)]
    if os.geteuid() != 0 or subprocess.run([*place.prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting needs privileges")


@fault("a core goes offline in a run")
def core_gone(place):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    with place.started(*RUN, "fake", "-q", P4PERF_FAKE_SLEEP_S="0.1") as process:
        after_trials(place, process)
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores[:1])
        done = ended(process)
    assert sum(map(len, place.trials().values())) == TRIALS
    return done


@fault("hugepages are taken away in a run")
def hugepages_gone(place):
    there = Path("/proc/meminfo").read_text()
    numbers = place.folder / "meminfo"
    free = lambda count: numbers.write_text(re.sub(r"(HugePages_Free: *)\d+", rf"\g<1>{count}", there))  # noqa: E731
    free(8)
    bound(place, numbers, "/proc/meminfo")
    with place.started(*RUN, "fake-hugepages", "-q", P4PERF_FAKE_SLEEP_S="0.1") as process:
        after_trials(place, process)
        free(0)
        done = ended(process)
    free(8)
    place.resumed()
    return done


@fault("the frequency of the cores is changed in a run")
def frequency_changed(place):
    policy = place.folder / "cpus" / "cpu0" / "cpufreq"
    policy.mkdir(parents=True)
    for end, khz in (("min", 1000000), ("max", 2000000)):
        for kind in ("scaling", "cpuinfo"):
            (policy / f"{kind}_{end}_freq").write_text(f"{khz}\n")
    bound(place, place.folder / "cpus", "/sys/devices/system/cpu")
    words = (*RUN, "fake", "-q", "--set", "device.cpu_frequency=1.5GHz")
    with place.started(*words, P4PERF_FAKE_SLEEP_S="0.5") as process:
        after_trials(place, process)
        highest = policy / "scaling_max_freq"
        wait_until(lambda: highest.read_text() == "2000000\n")
        wait_until(lambda: highest.read_text() == "1500000\n")
        time.sleep(0.2)  # it is held by now
        highest.write_text("1900000\n")
        done = ended(process)
    place.resumed()
    return done


@fault("too little memory for p4perf itself")
def out_of_memory(place):
    with (place.folder / "large.csv").open("wb") as file:
        file.truncate(900 << 20)
    words = ["fit", "large.csv", "--x", "x", "--y", "y"]
    return place.alone(*words, before="ulimit -v 1500000", OPENBLAS_NUM_THREADS="1")


@fault("too few open files allowed")
def few_files(place):
    return place.alone(*RUN, "fake", "-q", before="ulimit -n 8")


@fault("the clock jumps forth and back")
def clock(place):
    done = place.alone(*RUN, "fake", "-q", LD_PRELOAD=faulty(), P4PERF_CLOCK="-40000000")
    assert sum(map(len, place.trials().values())) == TRIALS
    status = place.p4perf("status", place.run, "--format", "json")
    assert json.loads(status.out)["rows"][0]["complete"]
    for path in place.run.glob("points/*/raw.jsonl"):
        assert all(json.loads(line)["duration_s"] >= 0 for line in path.read_text().splitlines())
    return done


# --- networks, nodes and clusters


@fault("no right to network namespaces")
def no_namespaces(place):
    return place.p4perf(*RUN, "fake", "--testbed", "netns", **place.tool("unshare", "exit 1"))


@fault("the tools of network namespaces are gone in a run")
def namespaces_gone(place):
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool in (tool for folder in os.environ["PATH"].split(":") for tool in Path(folder).glob("*")):
        with contextlib.suppress(FileExistsError):
            (place.folder / "bin" / tool.name).symlink_to(tool)
    path = str(place.folder / "bin")
    with place.started(*RUN, "fake", "-q", "--testbed", "netns", PATH=path, P4PERF_FAKE_SLEEP_S="0.1") as process:
        after_trials(place, process)
        (place.folder / "bin" / "unshare").unlink()
        done = ended(process)
    place.resumed()
    return done


@fault("cores of a node go offline")
def cores_gone(place):
    file = place.fixture("node").node_file(place.folder / "nodes.yaml", cores="[4095]")
    return place.p4perf(*RUN, "fake", "--testbed", f"ssh:{file}")


@fault("a node is switched off in a run")
def node_gone(place):
    node = place.fixture("new_node")()
    words = (*RUN, "fake", "-q", "--set", "trials.repetitions=30", "--testbed", f"ssh:{node.node_file()}")
    with place.started(*words) as process:
        after_trials(place, process)
        node.stop()
        done = ended(process)
    node.start()
    before = place.trials()
    assert place.p4perf("resume", place.run, "-q").code == 0
    after = place.trials()
    assert [len(records) for records in after.values()] == [30] * 4
    assert all(after[point][: len(records)] == records for point, records in before.items())
    return done


@fault("nothing listens on a node")
def no_node(place):
    file = place.fixture("node").node_file(place.folder / "nodes.yaml", port=1)
    return place.p4perf(*RUN, "fake", "--testbed", f"ssh:{file}")


@fault("no Dask scheduler")
def no_scheduler(place):
    pytest.importorskip("distributed")
    return place.p4perf(*RUN, "fake", "--scheduler", "tcp://127.0.0.1:1")


def on_cluster(place, strike):
    """A run on two workers, to which something happens."""
    pytest.importorskip("distributed")
    with dask_cluster(place.folder) as cluster:
        workers = [cluster.worker(name) for name in ("a", "b")]
        words = (*RUN, "fake", "--set", "trials.repetitions=6", "--scheduler", cluster.address)
        with place.started(*words) as process:
            after_trials(place, process)
            strike(cluster, workers)
            return ended(process)


@fault("the Dask scheduler dies in a run")
def scheduler_gone(place):
    return on_cluster(place, lambda cluster, workers: cluster.stop())


@fault("a Dask worker dies in a run")
def worker_gone(place):
    done = on_cluster(place, lambda cluster, workers: workers[0].kill())
    assert "has gone" in done.err
    assert sum(map(len, place.trials().values())) >= 24
    return done


# --- the table


def fits(done, name):
    """Whether a command ended as a row says."""
    message, code = ROWS[name]
    assert "Traceback" not in done.err, done.err
    assert done.code == int(code), done.err
    errors = [" ".join(line.split()) for line in done.err.splitlines() if line.startswith("error: ")]
    if message == "none":
        assert errors == []
        return
    wanted = ".*".join(map(re.escape, message.split("…")))
    assert len(errors) == (int(code) != 130), done.err
    assert re.search(wanted, " ".join(done.err.split())), f"{done.err!r} is not as {message!r}"


SLOW = {
    *("no space at any write of a run", "the quota is used up", "a Dask worker dies in a run"),
    *("hugepages are taken away in a run", "the frequency of the cores is changed in a run"),
    *("the Dask scheduler dies in a run", "a node is switched off in a run", "the program prints without end"),
    *("the tools of network namespaces are gone in a run", "the device fails when data is forced to it"),
}


def test_every_row_is_tried():
    assert list(ROWS) == list(FAULTS)
    assert len(ROWS) >= 24


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough) if name in SLOW else name for name in FAULTS]
)
def test_a_fault_ends_as_the_table_says(name, tmp_path, request):
    fits(FAULTS[name](Place(tmp_path, request)), name)


@pytest.mark.thorough
def test_no_space_at_many_writes(tmp_path, request):
    no_space_later(Place(tmp_path, request), steps=12)
