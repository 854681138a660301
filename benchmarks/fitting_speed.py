"""How long does the derivation of models take, and how much memory, beside what we promise?

derive        all numbers of segments to six, one thread, CPU seconds and peak memory, each in a process of its own; the
              limits count imports as well, which are printed beside. `coarse` searches from coarse to fine
coarse        combined error of the search from coarse to fine as a multiple of the exact one
threads       wall time of one thread over that of two, interleaved. What this machine can give at best is measured
              beside: two processes with one thread each, side by side, against one alone. Where that is less than 2,
              the processors share something, or somebody else uses them
start         wall time of `import p4perf` and of `p4perf fit` with a file of 65 points, in a fresh process
engine        every template on every segment of 65 points, CPU seconds: our engine, scipy's curve_fit (on a sample of
    the
              segments, the rest extrapolated), and the numpy implementation that the tests compare with

CPU seconds are medians of the number of runs in brackets.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _speed_peers import compare
from _speed_worker import KINDS, MAX_SEGMENTS, draw

WORKER = Path(__file__).with_name("_speed_worker.py")
CPU_LIMITS_S = {
    (65, "exact"): 0.1,
    (200, "exact"): 1.0,
    (500, "exact"): 8.0,
    (1000, "exact"): 60.0,
    (2000, "coarse"): 60.0,
}
"""CPU seconds for a number of samples and a search."""
RUNS = {65: 5, 200: 3, 500: 2}
"""How often; else once."""
RSS_LIMIT_MB = {1000: 300.0}
COARSE_POINTS, COARSE_LIMIT = 500, 1.02
THREAD_POINTS, THREAD_ROUNDS, THREAD_LIMIT = 300, 5, 1.7
IMPORT_LIMIT_S, FIT_LIMIT_S, STARTS = 0.5, 2.0, 7
SINGLE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
PEER_POINTS, PEER_SAMPLE = 65, 60
GROUPS = ("derive", "memory", "coarse", "threads", "start", "engine")
"""Order of the report."""


@dataclass(frozen=True)
class Measured:
    """One line of the report.

    Args:
        group: what belongs together.
        name: what was measured.
        value: the number.
        unit: its unit.
        limit: what it must not exceed (or fall below), None if there is no limit.
        at_least: whether the limit is a lower one.
        note: further facts.
    """

    group: str
    name: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the value keeps to its limit; None without one."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def start(kind: str, n: int, search: str, threads: int = 1) -> subprocess.Popen[str]:
    """A worker that has imported and drawn everything and waits."""
    command = (sys.executable, str(WORKER), kind, str(n), search, str(threads))
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | SINGLE_THREAD
    )
    assert worker.stdout is not None
    if worker.stdout.readline().strip() != "ready":
        raise SystemExit(f"{' '.join(command)} failed")
    return worker


def together(*workers: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What workers say that are let go at the same time."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    said = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit("a worker failed")
    return [json.loads(text) for text in said]


def derivations(searches: Sequence[tuple[int, str]]) -> list[Measured]:
    """CPU seconds and memory for every size and kind."""
    out = []
    for n, search in searches:
        for kind, title in KINDS.items():
            runs = [together(start(kind, n, search))[0] for _ in range(RUNS.get(n, 1))]
            seconds = statistics.median(r["cpu_s"] for r in runs)
            name = f"{n} points, {search}, {title}"
            note = f"[{len(runs)}] {min(r['cpu_s'] for r in runs):.3g} .. {max(r['cpu_s'] for r in runs):.3g}"
            out.append(Measured("derive", name, seconds, "CPU s", CPU_LIMITS_S[n, search], note=note))
            rss, imports = (max(r[key] for r in runs) for key in ("rss_mb", "import_rss_mb"))
            note = f"of it imports {imports:.0f} MB"
            out.append(Measured("memory", name, rss, "MB", RSS_LIMIT_MB.get(n), note=note))
    return out


def coarse_errors() -> list[Measured]:
    """The search from coarse to fine against the exact one."""
    out = []
    for kind, title in KINDS.items():
        coarse, exact = (together(start(kind, COARSE_POINTS, s))[0]["errors"] for s in ("coarse", "exact"))
        for segments in range(1, MAX_SEGMENTS + 1):
            if (key := str(segments)) in coarse and key in exact:
                ratio = coarse[key] / exact[key] if exact[key] else 1.0
                out.append(Measured("coarse", f"{title}, {segments} segment(s)", ratio, "x exact error", COARSE_LIMIT))
    return out


def thread_speedup() -> list[Measured]:
    """One thread, two threads, two processes side by side, in turn."""
    processors = len(os.sched_getaffinity(0))
    if processors < 2:
        return []
    one, two, beside, cpu = [], [], [], []
    for _ in range(THREAD_ROUNDS):
        alone = together(start("segments", THREAD_POINTS, "exact", 1))[0]
        both = together(start("segments", THREAD_POINTS, "exact", 2))[0]
        pair = together(*(start("segments", THREAD_POINTS, "exact", 1) for _ in range(2)))
        one.append(alone["wall_s"])
        two.append(both["wall_s"])
        beside.append(max(p["wall_s"] for p in pair))
        cpu.append(both["cpu_s"] / alone["cpu_s"])
    gains = [a / b for a, b in zip(one, two, strict=True)]
    ideal = [2 * a / b for a, b in zip(one, beside, strict=True)]
    rounds = f"[{THREAD_ROUNDS}] {min(gains):.2f} .. {max(gains):.2f}"
    gain, best, most = statistics.median(gains), min(one) / min(two), 2 * min(one) / min(beside)
    title = f"{THREAD_POINTS} points"
    return [
        Measured("threads", f"two threads, {title}, median of pairs", gain, "x", THREAD_LIMIT, True, rounds),
        Measured("threads", f"two threads, {title}, best against best", best, "x", THREAD_LIMIT, True),
        Measured("threads", "two processes side by side, median", statistics.median(ideal), "x", note="the machine"),
        Measured("threads", "two processes side by side, best", most, "x", note="the machine"),
        Measured("threads", "two threads, of what two processes give", best / most, "of 1"),
        Measured("threads", "CPU time of two threads over one", statistics.median(cpu), "x", note=siblings()),
    ]


def siblings() -> str:
    """What Linux says of the processors."""
    files = sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list"))
    lists = {f.read_text().strip() for f in files}
    if not lists:
        return "topology unknown"
    shared = [text for text in lists if "," in text or "-" in text]
    info = Path("/proc/cpuinfo")
    virtual = info.exists() and "hypervisor" in info.read_text()
    said = f"siblings: {'; '.join(sorted(shared))}" if shared else "no siblings are told"
    return said + (", but the machine is virtual" if virtual else "")


def starts(runs: int) -> list[Measured]:
    """Wall time of fresh processes; every kind in turn."""
    x, y = draw("segments", 65)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        file.write_text("x,y\n" + "".join(f"{a:.17g},{b:.17g}\n" for a, b in zip(x, y, strict=True)))
        commands = {
            "python alone": ("-c", "pass"),
            "import numpy": ("-c", "import numpy"),
            "import p4perf": ("-c", "import p4perf"),
            "p4perf fit, 65 points": ("-m", "p4perf", "fit", str(file), "--x", "x", "--y", "y"),
            "p4perf fit with plots": (
                "-m",
                "p4perf",
                "fit",
                str(file),
                "--x",
                "x",
                "--y",
                "y",
                "-o",
                f"{folder}/model",
            ),
        }
        walls: dict[str, list[float]] = {name: [] for name in commands}
        cpus: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, arguments in commands.items():
                wall, cpu = _run((sys.executable, *arguments))
                walls[name].append(wall)
                cpus[name].append(cpu)
    limits = {"import p4perf": IMPORT_LIMIT_S, "p4perf fit, 65 points": FIT_LIMIT_S}
    out = []
    for name in commands:
        note = f"[{runs}] {min(walls[name]):.2f} .. {max(walls[name]):.2f}; CPU {statistics.median(cpus[name]):.2f} s"
        out.append(Measured("start", name, statistics.median(walls[name]), "s", limits.get(name), note=note))
    return out


def _run(command: Sequence[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peers() -> list[Measured]:
    """The engine beside others."""
    out = []
    rows = compare(*draw("segments", PEER_POINTS), sample=PEER_SAMPLE)
    for row in rows:
        note = f"{row.whole_cpu_s / rows[0].whole_cpu_s:.0f} x; {row.segments} segments fitted"
        if row is not rows[0]:
            note += f"; failed {row.failed:.1%}, worse than ours {row.worse:.1%}, better {row.better:.1%}"
        out.append(Measured("engine", row.method, row.whole_cpu_s, "CPU s", note=note))
    return out


def print_table(rows: Sequence[Measured]) -> None:
    """Plain text, an empty line between groups."""
    words = {None: "", True: "holds", False: "FAILS"}
    cells = [("group", "what", "value", "", "limit", "", "")]
    for row in rows:
        limit = "" if row.limit is None else f"{'>=' if row.at_least else '<='} {row.limit:g}"
        value = f"{row.value:.4f}" if row.group == "coarse" else f"{row.value:.3g}"
        cells.append((row.group, row.name, value, row.unit, limit, words[row.holds], row.note))
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    for before, line in zip([cells[0], *cells], cells, strict=False):
        if before[0] != line[0]:
            print()
        padded = (f"{c:>{w}}" if k == 2 else f"{c:<{w}}" for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        print("  ".join(padded).rstrip())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only series of up to 500 points")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON as well")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} processors, load {load:.1f}, numpy {np.__version__}")
    searches = [(n, search) for n, search in CPU_LIMITS_S if n <= 500 or not options.quick]
    rows = [*starts(STARTS), *thread_speedup(), *peers(), *derivations(searches), *coarse_errors()]
    rows.sort(key=lambda row: GROUPS.index(row.group))
    print_table(rows)
    failed = [row for row in rows if row.holds is False]
    print(f"\n{sum(row.holds is True for row in rows)} limits hold, {len(failed)} do not")
    if options.json:
        record = {"load": load, "rows": [asdict(row) | {"holds": row.holds} for row in rows]}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
