"""Programs that were read, on the targets that run them: whether each does what the interpreter says, or is refused.

Run as a program it prints what became of each program of a folder of JSON, on each target, and a table of all::

    PYTHONPATH=tests python -m support.own_samples FOLDER --target xdp --processes 2
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from support import stf

from p4perf.errors import CapabilityError, DataError
from p4perf.plugins import load_plugin
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.tree import parse_json
from p4perf.programs.reading.v1model import read_v1model
from p4perf.targets.base import NodeFacts, TrialOptions
from p4perf.targets.process import HarnessTarget
from p4perf.testbeds.local import LocalTestbed

SAMPLES = Path(__file__).parents[3] / "shared/data/p4c_samples"
TARGETS = ("dpdk-c", "dpdk-swx:interpreter", "xdp")
FRAME_BYTES = 60
QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)


@dataclass(frozen=True)
class Verdict:
    """What became of a program on a target, over how many packets, and why."""

    name: str
    kind: Literal["equal", "refused", "differs", "unknown", "not read"]
    packets: int = 0
    why: str = ""


def workload(path: Path, packets: int = 32, entries: int = 16) -> ir.Workload:
    """The program with entries, those of its packet test first, and its packets.

    Raises:
        DataError: it is not read.
        ValueError: what becomes of a packet is not decided by the program.
        RecursionError: a packet never leaves it.
    """
    root, test = parse_json(path.read_text(), str(path)), path.with_suffix(".stf")
    program = read_v1model(root, stf.read(test, root).plane if test.exists() else None, path.stem)
    program = filled(program, {}, default=entries)
    drawn = tuple(frame[:FRAME_BYTES].ljust(FRAME_BYTES, b"\0") for frame in frames(program, packets))
    for frame in (*drawn, *frames(program, 256)):
        Interpreter(program).run(frame)
    baseline = build_workload([], frame_size_bytes=FRAME_BYTES + 4).program
    return ir.Workload(program, baseline, ir.PacketSpec((), (), FRAME_BYTES + 4), frames=drawn)


@cache
def _place(builds: Path | None) -> tuple[LocalTestbed, NodeFacts]:
    testbed = LocalTestbed(builds)
    return testbed, testbed.facts()


def verdict(path: Path, target_name: str, builds: Path | None = None) -> Verdict:
    """Run a program on a target for its verification only."""
    try:
        given = workload(path)
    except DataError as error:
        return Verdict(path.stem, "not read", why=str(error))
    except (ValueError, RecursionError) as error:
        return Verdict(path.stem, "unknown", why=str(error))
    name, _, variant = target_name.partition(":")
    target = load_plugin("p4perf.targets", name)((variant,) if variant else ())
    testbed, facts = _place(builds)
    assert isinstance(target, HarnessTarget)
    try:
        plan = target.plan(given, TrafficPlan(FRAME_BYTES + 4), facts)
        job = target.trial(plan, QUICK, facts)
    except CapabilityError as error:
        return Verdict(path.stem, "refused", why=str(error))
    with tempfile.TemporaryDirectory() as folder:
        result = testbed.run(replace(job, argv=(*job.argv, "--verify-only")), Path(folder))
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    found = json.loads(lines[-1]) if lines else {"error": f"{result.returncode}: {result.stderr[-300:]}"}
    if error := found.get("error", ""):
        return Verdict(path.stem, "refused" if found.get("kind") == "refused" else "differs", why=str(error))
    return Verdict(path.stem, "equal", found["verified_packets"])


def verdicts(paths: Sequence[Path], target: str, processes: int, builds: Path | None = None) -> Iterator[Verdict]:
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_safely, paths, [target] * len(paths), [builds] * len(paths))


def _safely(path: Path, target: str, builds: Path | None) -> Verdict:
    """A verdict on one processor, as harnesses pin themselves to one; what is raised is a difference, too."""
    try:
        return verdict(path, target, builds)
    except Exception as error:
        return Verdict(path.stem, "differs", why=f"{type(error).__name__}: {error}")


def reason(text: str) -> str:
    """A refusal without what is special to the program."""
    return re.sub(r"\(.*?\)|[\w./-]+\.p4:\d+:?|\d[\d,]*", "", text).split(":")[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=SAMPLES)
    parser.add_argument("--target", action="append")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    paths = [p for p in sorted(options.folder.glob("**/*.json")) if re.search(options.only, p.stem)]
    for target in options.target or TARGETS:
        found = []
        for each in verdicts(paths, target, options.processes):
            found.append(each)
            few = each.kind == "equal" and each.packets < 1000
            if each.kind != "equal" or few:
                print(f"{target} {each.name}: {each.kind} {each.packets or ''} {each.why}", flush=True)
        kinds = Counter(each.kind for each in found)
        read = len(found) - kinds["not read"]
        equal = [each.packets for each in found if each.kind == "equal"]
        print(f"{target}: {read} read, {kinds}, packets {min(equal, default=0)} to {max(equal, default=0)}")
        for why, number in Counter(reason(each.why) for each in found if each.kind == "refused").most_common():
            print(f"  {number:3} {why}")


if __name__ == "__main__":
    os.nice(5)
    main()
