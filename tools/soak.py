"""Usage: soak.py N [--kind KIND ...] [--record FILE] [--seconds S] [--jobs J]. Kill p4perf, and judge what is left.

An episode runs one command with an output of its own. Its seed says how often something is killed (kill -9) and when,
within the time, or the processor time, that the command takes undisturbed. What was killed is begun anew, as a user
would: runs and campaigns are resumed. In the end, everything that was on disk at a kill has to be there still (else it
is lost), nothing may be there twice (doubled), the files have to be those of an undisturbed command (different), the
command has to end as that does (refused), and nobody may be left: no temporary file, process, network interface or
namespace, page of memory. An episode that finds something while the machine stood still for a while is repeated.

N is the number of kills of sweeps; other kinds get their share of it. With ``--record``, episodes that the file has are
not repeated; with ``--seconds``, none is begun after that time. ``--jobs`` kinds run at a time, but for those that
judge what is left on the whole machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import math
import os
import platform
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.claims import COMPUTED, GROWS, PAPER  # noqa: E402
from support.command import forked  # noqa: E402
from support.dask_cluster import DaskCluster  # noqa: E402
from support.sshd import Sshd, why_not  # noqa: E402

LONGEST_S = 300.0
"""A command that takes longer, while the machine does not stand still, hangs."""

PAUSE_S = 5.0
"""The machine stands still if this process does not run for so long."""

PROGRESS_S = 20.0
"""Time between two lines of progress of a kind."""

TICKS = os.sysconf("SC_CLK_TCK")

GRACE_S = 10.0
"""How long processes and interfaces may take to go."""

MACHINE = [Path(p) for p in ("/run/netns", "/sys/class/net", "/dev/hugepages", "/dev/shm", "/sys/fs/bpf")]  # noqa: S108
"""Folders of the system in which a data plane may leave something."""

SWEEP = ["mat/exact-entries", "--set", "entries=[1, 10, 100, 1000, 10000]", "-t", "fake"]
REAL = ["mat/exact-entries", "--set", "entries=[10, 1000]", "--set", "trials.repetitions=2"]
REAL += ["--set", "trials.mode=plain", "--set", "trials.max_attempts=2"]
TEMPORARY = re.compile(r"\.p4perf-.*\.tmp|\..*\.old|.*\.tmp")
DATE = re.compile(r"--\d{8}T\d{6}(?=/|$)")
TIME = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")

Trials = Mapping[str, list[tuple[object, ...]]]
"""What journals hold of every trial but its times, by path."""


class World:
    """What the episodes of a kind share, and what is killed in them: here the command itself."""

    local = True
    """Whether the command itself does most of the work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def words(self, kind: Kind, place: Path) -> list[str]:
        """The command that begins or continues an episode."""
        runs = [
            p.parent for p in sorted(place.glob("out/[!.]*/*.json")) if p.name in ("manifest.json", "campaign.json")
        ]
        if kind.resumed and runs:
            return ["resume", str(runs[0])]
        return [w.replace("OUT", str(place / "out")).replace("WORLD", str(self.folder)) for w in kind.words]

    def strike(self, command: BaseProcess, rng: random.Random) -> bool:
        """Kill what is there, and put in its place what has to be there then; whether there was anything."""
        kill(command)
        return True

    def places(self) -> list[Path]:
        """Folders, beside that of an episode, by which its processes are known."""
        return []

    def close(self) -> None:
        """End what was started."""


def kill(command: BaseProcess) -> None:
    command.kill()
    command.join()


class Cluster(World):
    """A Dask scheduler with two workers, one of which is killed, or both with the scheduler, or the client."""

    victim = "client"
    local = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._start()

    def _start(self) -> None:
        self._cluster = DaskCluster(self.folder)
        self._workers = {name: self._cluster.worker(name) for name in ("a", "b")}

    def words(self, kind: Kind, place: Path) -> list[str]:
        return [*super().words(kind, place), "--scheduler", self._cluster.address]

    def strike(self, command: BaseProcess, rng: random.Random) -> bool:
        if self.victim == "client":
            kill(command)
        elif self.victim == "worker":
            name = rng.choice("ab")
            self._workers[name].kill()
            self._workers[name].wait()
            self._workers[name] = self._cluster.worker(name)
        else:
            self._cluster.stop()
            finish(command)
            self._start()
        return True

    def close(self) -> None:
        self._cluster.stop()


class Worker(Cluster):
    victim = "worker"


class DaskScheduler(Cluster):
    victim = "scheduler"


class Node(World):
    """A node behind ssh. Its connections are cut, or it is switched off and on, or one of its processes is killed."""

    victim = "node"
    local = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._node = Sshd(folder).start()
        self._node.node_file(folder / "nodes.yaml")

    def strike(self, command: BaseProcess, rng: random.Random) -> bool:
        there = self._node.connections()
        if self.victim == "connection":
            self._node.cut()
        elif self.victim == "node":
            self._node.restart()
        elif there := [pid for pid in processes_of([self._node.work], []) if pid != self._node.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(there), signal.SIGKILL)
        return bool(there)

    def places(self) -> list[Path]:
        return [self._node.work]

    def close(self) -> None:
        self._node.stop()


class Connection(Node):
    victim = "connection"


class RemoteProcess(Node):
    victim = "remote process"


class Runs(World):
    """A finished run to report and to pack, and a table to import."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        finish(forked(["run", *SWEEP, "-o", "runs", "-q"], folder, output(folder), **variables(folder)))
        (run,) = (folder / "runs").iterdir()
        run.rename(folder / "run")
        (folder / "table.csv").write_text("x,y\n" + "".join(f"{x},{3 * x}\n" for x in range(1, 40)))
        for name in ("tables", "headers"):
            base = {"tables": "mat/exact-entries", "headers": "parser/headers"}[name]
            (folder / f"{name}.yaml").write_text(
                f"{{name: my/{name}, extends: {base}, trials: {{repetitions: 2}}, sweep: "
                + {"tables": "{entries: [1, 10, 100, 1000]}}", "headers": "{headers: [0, 2, 4]}}"}[name]
            )
        (folder / "claims.yaml").write_text(PAPER + GROWS + COMPUTED)


@dataclass(frozen=True)
class Kind:
    """A command, and what is killed while it runs.

    Args:
        share: of the kills of sweeps.
        resumed: whether ``p4perf resume`` continues it; else the same command does.
        exact: whether an undisturbed command makes the same trials.
    """

    words: Sequence[str]
    share: float = 0.05
    world: type[World] = World
    resumed: bool = False
    exact: bool = True
    codes: Sequence[int] = (0,)
    sleep_s: float = 0.0

    @property
    def alone(self) -> bool:
        """Whether it is judged by what is left on the whole machine."""
        return not self.exact or "netns" in self.words


LEARN = ["learn", "-t", "fake-adding", "--set", "trials.repetitions=1", "--runs", "OUT/runs", "--resume"]
CAMPAIGN = ["run", "WORLD/tables.yaml", "WORLD/headers.yaml", "-t", "fake", "-t", "fake-small"]
THERE = ["run", *SWEEP, "--testbed", "ssh:WORLD/nodes.yaml", "-o", "OUT"]

KINDS = {
    "sweep": Kind(["run", *SWEEP, "-o", "OUT"], 1.0, resumed=True),
    "campaign": Kind([*CAMPAIGN, "-o", "OUT"], world=Runs, resumed=True),
    "learn": Kind([*LEARN, "-o", "OUT/costs.json", "-q"]),
    "reproduce": Kind(["reproduce", "WORLD/claims.yaml", "-o", "OUT"], world=Runs),
    "report": Kind(["report", "WORLD/run", "-o", "OUT/site"], world=Runs),
    "pack": Kind(["pack", "WORLD/run", "-o", "OUT/run.zip"], world=Runs),
    "import": Kind(
        ["import", "WORLD/table.csv", "--x", "x", "--metric", "cycles_per_packet=y", "-o", "OUT"], world=Runs
    ),
    "generate": Kind(["generate", "mat/exact-entries", "--points", "4", "-o", "OUT/generated"]),
    "dask client": Kind(["run", *SWEEP, "-o", "OUT"], world=Cluster, resumed=True),
    "dask worker": Kind(["run", *SWEEP, "-o", "OUT"], world=Worker, resumed=True),
    "dask scheduler": Kind(["run", *SWEEP, "-o", "OUT"], world=DaskScheduler, resumed=True),
    "ssh connection": Kind(THERE, world=Connection, resumed=True),
    "ssh process": Kind(THERE, world=RemoteProcess, resumed=True),
    "ssh node": Kind(THERE, world=Node, resumed=True),
    "netns": Kind(["run", *SWEEP, "--testbed", "netns", "-o", "OUT"], resumed=True),
    "dpdk-c": Kind(["run", *REAL, "-t", "dpdk-c", "-o", "OUT"], 0.1, resumed=True, exact=False, codes=(0, 4)),
    "xdp": Kind(["run", *REAL, "-t", "xdp", "-o", "OUT"], 0.1, resumed=True, exact=False, codes=(0, 4)),
}


class CommandError(Exception):
    """A command that nobody disturbed ended with an error."""


@dataclass(frozen=True)
class Result:
    """What a command left: trials, and digests of files by names without dates."""

    trials: Trials
    files: Mapping[str, str]
    seconds: float = 0.0
    processor_s: float = 0.0


@dataclass
class Episode:
    """What became of a command of which something was killed; ``trials`` were on disk at each kill."""

    kind: str
    seed: int
    kills: int = 0
    trials: list[int] = field(default_factory=list)
    stopped: int = 0
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    def findings(self) -> dict[str, list[str]]:
        return {name: found for name in FINDINGS if (found := getattr(self, name))}


FINDINGS = ("lost", "doubled", "different", "refused", "leftovers")


def variables(place: Path, sleep_s: float = 0.0) -> dict[str, str]:
    """An environment that keeps everything in one folder."""
    (place / "tmp").mkdir(exist_ok=True)
    folders = {"TMPDIR": "tmp", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
    return {**{name: str(place / where) for name, where in folders.items()}, "P4PERF_FAKE_SLEEP_S": str(sleep_s)}


def output(place: Path) -> tuple[Path, Path]:
    return place / "stdout", place / "stderr"


def used(command: BaseProcess) -> float:
    """The processor time of a command, with that of its children that ended; 0 if it has ended itself."""
    with contextlib.suppress(OSError):
        numbers = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, numbers[11:15])) / TICKS
    return 0.0


def reach(command: BaseProcess, seconds: float, *, of_processor: bool) -> None:
    """Wait until a command has run, or has used the processor, for so long, or has ended."""
    if not of_processor:
        command.join(seconds)
    while of_processor and command.exitcode is None and used(command) < seconds:
        command.join(0.005)


def finish(command: BaseProcess) -> int | None:
    """The exit code; None for a command that hung and was killed."""
    for _ in range(round(LONGEST_S)):  # by seconds that pass while the machine does not stand still
        command.join(1.0)
        if command.exitcode is not None:
            return command.exitcode
    kill(command)
    return None


def trials_of(place: Path) -> Trials:
    """The trials on disk; a line that was cut off does not count."""
    found = {}
    for path in sorted((place / "out").rglob("raw.jsonl")):
        name = str(path.relative_to(place))
        if "/." not in name:
            lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
            found[name] = [(line["trial"], line.get("record"), line.get("failure")) for line in lines]
    return found


def contents(path: Path) -> bytes:
    """The bytes of a file; those of measurements without the node on which each was made, which is as it happens."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    import pandas as pd  # here, so that a forked command has no library that it did not load itself

    return pd.read_parquet(path).drop(columns="testbed", errors="ignore").to_csv().encode()


def result_of(place: Path, seconds: float = 0.0, processor_s: float = 0.0) -> Result:
    files = {}
    for path in sorted((place / "out").rglob("*")):
        name = DATE.sub("", str(path.relative_to(place)))
        if path.is_file() and path.name != ".lock" and not TEMPORARY.search(name):
            data = TIME.sub(b"TIME", contents(path).replace(str(place).encode(), b"PLACE"))
            number = sum(known == name or known.startswith(f"{name} (") for known in files)
            files[f"{name} ({number + 1})" if number else name] = hashlib.sha256(data).hexdigest()
    return Result(trials_of(place), files, seconds, processor_s)


def processes_of(places: Sequence[Path], groups: Sequence[int]) -> list[int]:
    """The processes that name one of these folders in their environment or command, or work there; or of a group."""
    found = []
    wanted = [str(place).encode() for place in places]
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            known = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            known += os.fsencode((entry / "cwd").readlink())
            if state != "Z" and (int(group) in groups or any(place in known for place in wanted)):
                found.append(int(entry.name))
    return found


def machine() -> set[str]:
    """What a data plane may leave on the machine."""
    there = {str(path) for folder in MACHINE if folder.is_dir() for path in folder.glob("*")}
    there = {path for path in there if "/sem.mp-" not in path}  # of Python, which clears them up
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {words[0]: int(words[1]) for words in lines}
    used = memory["HugePages_Total:"] - memory["HugePages_Free:"]
    return {*there, *(f"{n} hugepages in use" for n in range(1, used + 1))}


def leftovers(place: Path, world: World, groups: Sequence[int], before: set[str] | None) -> list[str]:
    """What is there still, after some time in which it may go."""
    deadline = time.monotonic() + GRACE_S
    while True:
        found = [str(p.relative_to(place)) for p in (place / "out").rglob("*") if TEMPORARY.fullmatch(p.name)]
        found += [str(path.relative_to(place)) for path in (place / "tmp").iterdir()]
        found += [str(path.relative_to(place)) for path in place.glob("cache/p4perf/builds/.*.*")]
        for lock in place.glob("out/**/.lock"):
            found += [f"{lock.relative_to(place)} names a holder"] if lock.read_bytes() else []
        for pid in processes_of([place], groups):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(f"process {pid}: {words[:100]}")
        found += [str(path) for folder in world.places() for path in folder.glob("sessions/*")]
        if before is not None:
            found += sorted(machine() - before)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@contextlib.contextmanager
def made(kind: Kind) -> Iterator[World]:
    """What the episodes of a kind share."""
    with tempfile.TemporaryDirectory(prefix="p4perf-soak-") as folder:
        world = kind.world(Path(folder))
        try:
            yield world
        finally:
            world.close()


class Clock(threading.Thread):
    """Notices that this process did not run for a while: limits of time mean nothing then."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.pauses = 0

    def run(self) -> None:
        while True:
            before = time.monotonic()
            time.sleep(0.5)
            self.pauses += time.monotonic() - before > PAUSE_S


CLOCK = Clock()


def undisturbed(kind: Kind, world: World) -> Result:
    """The result of a kind without kills: the files that two commands make alike, in the time of the faster one."""
    results = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="p4perf-soak-") as folder:
            place, begun = Path(folder), time.monotonic()
            (place / "out").mkdir()
            words, said, processor_s = world.words(kind, place), output(place), 0.0
            command = forked(words, place, said, **variables(place, kind.sleep_s))
            while command.exitcode is None and time.monotonic() < begun + LONGEST_S:
                processor_s = max(processor_s, used(command))
                command.join(0.05)
            seconds, code = time.monotonic() - begun, finish(command)
            if code not in kind.codes:
                raise CommandError(f"p4perf {' '.join(words)} ends with {code}: {said[1].read_text()}")
            results.append(result_of(place, seconds, processor_s))
    first, second = results
    files = {name: digest if digest == second.files.get(name) else "" for name, digest in first.files.items()}
    return Result(first.trials, files, min(first.seconds, second.seconds), min(first.processor_s, second.processor_s))


def judge(episode: Episode, kind: Kind, reference: Result, found: Result) -> None:
    """Note what is twice or not as in an undisturbed command."""
    for path, entries in found.trials.items():
        attempts = [trial["attempt"] for trial, _, _ in entries]
        if attempts != list(range(len(attempts))):
            episode.doubled.append(f"{path}: attempts {attempts}")
    # It cannot be known beforehand whether real measurements are good enough for a model.
    there, wanted_files = ({n for n in r.files if kind.exact or "/points/" in n} for r in (found, reference))
    episode.doubled += sorted(there - wanted_files)
    episode.lost += sorted(wanted_files - there)
    if not kind.exact:
        return
    wanted = {DATE.sub("", path): entries for path, entries in reference.trials.items()}
    for path, entries in found.trials.items():
        # A process that was killed on a node is a failure of its trial, and of its point.
        if entries != wanted.get(DATE.sub("", path)) and not any(failure for _, _, failure in entries):
            episode.different.append(f"{path}: {len(entries)} trials")
    if not any(failure for entries in found.trials.values() for _, _, failure in entries):
        names = reference.files.keys() & found.files.keys()
        episode.different += sorted(n for n in names if reference.files[n] not in ("", found.files[n]))


def without_pause(act: Callable[[], Episode | Result]) -> Any:
    """What comes of an action that is repeated as long as it fails while the machine stands still; how often it was."""
    stopped = 0
    while True:
        before = CLOCK.pauses
        try:
            found = act()
            if CLOCK.pauses == before or isinstance(found, Result) or not found.findings():
                return found, stopped
        except CommandError:
            if CLOCK.pauses == before:
                raise
        stopped += 1


def run_episode(name: str, kind: Kind, seed: int, world: World, reference: Result) -> Episode:
    rng = random.Random(f"{name} {seed}")  # noqa: S311 - the same moments every time
    episode, begun = Episode(name, seed), time.monotonic()
    before = machine() if kind.alone else None
    with tempfile.TemporaryDirectory(prefix="p4perf-soak-") as folder:
        place = Path(folder)
        (place / "out").mkdir()
        if not kind.exact and seed % 4:  # most kills hit no build, which takes longer than all else
            (world.folder / "cache").mkdir(exist_ok=True)
            (place / "cache").symlink_to(world.folder / "cache")
        start = functools.partial(forked, cwd=place, files=output(place), **variables(place, kind.sleep_s))
        groups: list[int] = []
        kept: Trials = {}
        wanted, command = rng.choice((1, 2, 4, 7, 11)), None
        while True:
            if command is None:
                command = start(world.words(kind, place))
                groups.append(command.pid or 0)
            if episode.kills < wanted:
                of_processor, share, more = rng.random() < 0.5, rng.random(), rng.uniform(0, 0.02)
                of_processor &= kind.world.local
                most = reference.processor_s if of_processor else reference.seconds
                reach(command, share * most, of_processor=of_processor)
                command.join(more)
                if command.exitcode is None and world.strike(command, rng):
                    episode.kills += 1
                    kept = _still(episode, kept, trials_of(place))
                    episode.trials.append(sum(map(len, kept.values())))
            if episode.kills >= wanted or command.exitcode is not None:
                code = finish(command)
                if code in (0, *kind.codes):
                    break
                if code is None or (code > 0 and kind.world is World):
                    episode.refused.append(f"exit code {code}: {output(place)[1].read_text()[-500:]}")
                    break
                command = None
        kept = _still(episode, kept, trials_of(place))
        if kind.resumed:  # a resume of what is complete
            code = finish(start(world.words(kind, place)))
            if code not in kind.codes:
                episode.refused.append(f"the last resume, exit code {code}: {output(place)[1].read_text()[-500:]}")
            _still(episode, kept, trials_of(place))
        if not episode.refused:  # what did not end is not complete
            judge(episode, kind, reference, result_of(place))
        episode.leftovers += leftovers(place, world, groups, before)
        episode.seconds = round(time.monotonic() - begun, 2)
        for pid in processes_of([place], groups):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return episode


def _still(episode: Episode, before: Trials, now: Trials) -> Trials:
    """What is on disk now; what was there before and is not any more is lost."""
    for path, entries in before.items():
        if now.get(path, [])[: len(entries)] != entries:
            episode.lost.append(f"{path}: {len(entries)} trials before a kill")
    return now


def episodes(
    name: str, kills: int, begin: int, known: Mapping[tuple[str, int], Episode], deadline: float = math.inf
) -> Iterator[Episode]:
    """Episodes of a kind until so much was killed, or it is late."""
    kind, seed = KINDS[name], begin
    while kills > 0 and (name, seed) in known:
        yield known[name, seed]
        kills -= known[name, seed].kills
        seed += 1
    if kills <= 0 or time.time() > deadline:
        return
    with made(kind) as world:
        reference, _ = without_pause(functools.partial(undisturbed, kind, world))
        while kills > 0 and time.time() < deadline:
            act = functools.partial(run_episode, name, kind, seed, world, reference)
            episode, episode.stopped = without_pause(act)
            yield episode
            kills -= episode.kills
            seed += 1


def soak(
    name: str,
    kills: int,
    begin: int,
    known: Mapping[tuple[str, int], Episode],
    record: Path | None = None,
    deadline: float = math.inf,
) -> list[Episode]:
    """The episodes of a kind; what is new is printed and comes into the record."""
    found: list[Episode] = []
    said = time.monotonic()
    for episode in episodes(name, kills, begin, known, deadline):
        found.append(episode)
        for what, items in episode.findings().items():
            print(f"{name}, seed {episode.seed}, {what}: {'; '.join(items[:3])}", flush=True)
        if (name, episode.seed) in known:
            continue
        if record is not None:
            with record.open("a") as file:
                file.write(json.dumps(asdict(episode)) + "\n")
        if time.monotonic() > said + PROGRESS_S:
            said, done = time.monotonic(), sum(e.kills for e in found)
            bad = sum(bool(e.findings()) for e in found)
            print(
                f"{time.strftime('%H:%M:%S')} {name}: {done} of {kills} kills in {len(found)} episodes, {bad} bad",
                file=sys.stderr,
                flush=True,
            )
    return found


def table(found: Sequence[Episode]) -> str:
    """A line for every kind; ``midway`` are kills at which some trials, but not all of the episode, were on disk."""
    lines = [f"{'kind':16}{'seeds':>12}{'kills':>7}{'midway':>8}" + "".join(f"{n:>11}" for n in FINDINGS)]
    lines[0] += f"{'stopped':>9}{'time':>9}"
    for name in KINDS:
        if mine := [e for e in found if e.kind == name]:
            seeds = f"{min(e.seed for e in mine)}..{max(e.seed for e in mine)}"
            counts = Counter({n: sum(len(getattr(e, n)) for e in mine) for n in FINDINGS})
            most = max((n for e in mine for n in e.trials), default=0)
            midway = sum(0 < n < most for e in mine for n in e.trials)
            line = f"{name:16}{seeds:>12}{sum(e.kills for e in mine):7}{midway:8}"
            line += "".join(f"{counts[n]:11}" for n in FINDINGS) + f"{sum(e.stopped for e in mine):9}"
            lines.append(f"{line}{sum(e.seconds for e in mine):7.0f} s")
    return "\n".join(lines)


def here() -> str:
    """The machine, as a report names it."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    model, cores = next(iter(models), platform.machine()), len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, {platform.release()}, Python {platform.python_version()}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--kind", action="append", choices=list(KINDS), default=[])
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    CLOCK.is_alive() or CLOCK.start()
    known: dict[tuple[str, int], Episode] = {}
    if chosen.record is not None and chosen.record.exists():
        read = [Episode(**json.loads(line)) for line in chosen.record.read_text().splitlines()]
        known = {(e.kind, e.seed): e for e in read}
    names = []
    for name in chosen.kind or KINDS:
        if name.startswith("ssh") and (reason := why_not()):
            print(f"{name} is left out: {reason}")
        else:
            names.append(name)

    def of(name: str) -> tuple[Any, ...]:
        kills = max(1, round(chosen.count * KINDS[name].share))
        return name, kills, chosen.begin, known, chosen.record, deadline

    begun, deadline, found = time.strftime("%Y-%m-%d %H:%M:%S"), time.time() + chosen.seconds, []
    together = [name for name in names if chosen.jobs > 1 and not KINDS[name].alone]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for each in pool.map(lambda name: soak(*of(name)), together):
            found += each
    for name in names:
        if name not in together:
            found += soak(*of(name))
    print(table(found))
    print(f"{begun} to {time.strftime('%H:%M:%S')}, {here()}", file=sys.stderr)
    return 1 if any(episode.findings() for episode in found) else 0


if __name__ == "__main__":
    sys.exit(main())
