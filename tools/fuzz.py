"""Usage: fuzz.py N [--begin SEED] [--jobs J] [--keep FOLDER]. Give damaged files to all readers, and report by reader.

An input is what its seed makes of a whole file: tokens are exchanged, bytes changed, pieces cut, repeated, or taken
from another file. A reader may refuse it with an error of p4perf. Anything else is a failure, as is an input that takes
longer than 10 s of processor time. Failures are made smaller and kept. With ``--begin``, seeds continue where an
earlier call ended.
"""

from __future__ import annotations

import argparse
import atexit
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.runs import make_run  # noqa: E402

from p4perf.errors import P4PerfError  # noqa: E402
from p4perf.evaluation.fitting import datafiles, extrap  # noqa: E402
from p4perf.evaluation.load import histogram, queueing  # noqa: E402
from p4perf.evaluation.papers import parse_paper  # noqa: E402
from p4perf.evaluation.prediction.library import parse_cost_model  # noqa: E402
from p4perf.evaluation.prediction.reading.program import ReadOptions, read_program  # noqa: E402
from p4perf.experiment.generation import Generation  # noqa: E402
from p4perf.experiment.own import own_experiment  # noqa: E402
from p4perf.experiment.report.runs import read_run  # noqa: E402
from p4perf.formats.moongen import parse_counters  # noqa: E402
from p4perf.formats.pcap import read_capture  # noqa: E402
from p4perf.models.component import ComponentModel  # noqa: E402
from p4perf.programs.component import component_parameters  # noqa: E402
from p4perf.results import Run  # noqa: E402
from p4perf.results.campaign import CampaignDirectory  # noqa: E402
from p4perf.results.files import read_text  # noqa: E402
from p4perf.specs import load_experiment  # noqa: E402
from p4perf.testbeds.nodes import read_node  # noqa: E402
from p4perf.testbeds.tuning import read_record  # noqa: E402

LONGEST_S = 10.0
"""Most processor time of one input."""

WORDS = [
    *(b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"NaN", b"Infinity", b"18446744073709551616", b"9" * 400, b"null"),
    *(b"true", b"[]", b"{}", b'""', b"[" * 300, b"{" * 300, b"'", b'"', b"\\", b"\0", b"\xff", b"\xed\xa0\x80", b"\r"),
    *(b"\n\n", b"\t", b"../../../etc/passwd", b"/dev/zero", b"$(id)", b"$x^{$", b"*a", b"&a [*a]"),
    *(b"!!python/object:os.system", b"x" * 5000),
]  # fmt: skip
TOKEN = re.compile(rb"-?\d[\d.eE+-]*|\w+|\S")


@dataclass(frozen=True)
class Reader:
    """A reader of files, or of folders of which one file is damaged; ``sources`` are whole ones."""

    read: Callable[[Path], object]
    sources: Sequence[tuple[str, bytes]]
    folder: Path | None = None


def _text(path: Path, parse: Callable[[str, str], object]) -> object:
    return parse(read_text(path), str(path))


def _of_run(path: Path) -> None:
    run = Run.open(path)
    _ = run.manifest, run.spec, run.table, run.headline, run.variable, run.flag_counts
    run.directory.state()
    for point in run.directory.points():
        run.directory.trials(point)
    read_run(path)


@cache
def readers() -> dict[str, Reader]:
    """All readers by name, with whole files for each."""
    place = Path(tempfile.mkdtemp(prefix="p4perf-fuzz-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    run = make_run(place, lambda x: 20.0 + x, starts=2, overrides=(("entries", "[1, 10, 100, 1000, 10000]"),))
    (run / "points" / "p0").mkdir(exist_ok=True)
    (run / "points" / "p0" / "raw.jsonl").write_text(
        '{"trial":{"repetition":0,"attempt":0},"record":{"cycles":[1,2]}}\n'
    )
    campaign = place / "campaign"
    campaign.mkdir()
    (campaign / "campaign.json").write_text(
        '{"schema_version": 1, "created": "2026-11-21T10:15:00+00:00", "experiments": ["mat/exact-entries"], "sources":'
        ' ["mat/exact-entries"], "targets": ["dpdk-c"], "testbed": "local", "budget_s": null, "overrides": [["a", "1"]]'
        ', "points": 3, "spent_s": 1.5, "left_s": null, "cells": []}'
    )
    specs = sorted(p for p in (ROOT / "p4perf/specs/catalogue").rglob("*.yaml"))
    pick = [(p.name, p.read_bytes()) for p in specs]
    programs = [(p.name, p.read_bytes()) for p in sorted((ROOT / "examples/programs").glob("*/*.json"))]
    published = files("p4perf.models.published").iterdir()
    models = [(f.name, f.read_bytes()) for f in published if f.name.endswith(".json") and f.name != "papers.json"]
    costs = min((ROOT / "p4perf/models/reference").glob("*.json"), key=lambda p: p.stat().st_size)
    papers = [(p.parent.name, p.read_bytes()) for p in sorted(ROOT.glob("p4perf/evaluation/papers/*/claims.yaml"))]
    frame = bytes(range(64))
    packets = b"".join(struct.pack("<4I", n, 5 * n, 64, 64) + frame for n in range(4))
    capture = struct.pack("<I2H4I", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + packets
    Generation(["swx"], place / "swx", 100, alone=True).run(
        load_experiment("mat/exact-entries", points=2, parameters_of=component_parameters)
    )
    swx = [(p.name, p.read_bytes()) for p in sorted((place / "swx").rglob("*.spec"))]
    nodes = b"nodes:\n  dut:\n    host: 10.0.0.2\n    user: p4\n    port: 2222\n    cores: [2, 3]\n"
    undo = b'{"changes": [{"path": "/proc/sys/kernel/sched_autogroup_enabled", "before": "1", "after": "0"}]}'
    counters = (
        b"Time,Device,Direction,PacketRate,MbitRate,MbitRateWithFraming,TotalPackets,TotalBytes\n"
        b"1,dev,RX,1.0,2.0,3.0,4,5\n"
    )
    data = b"".join(b"DATA %d\n" % 2**n for n in range(5))
    series = b"PARAMETER p\nPOINTS 1 2 4 8 16\nREGION r\nMETRIC time\n" + data
    table = b"x,y\n" + b"".join(b"%d,%d\n" % (x, 3 * x) for x in range(1, 9))
    loads = b"rate_mpps,mean_us,p99_us\n1,2,3\n2,3,4\n"
    return {
        "spec": Reader(lambda p: load_experiment(str(p), parameters_of=component_parameters), pick),
        "bmv2": Reader(lambda p: read_program(p, ReadOptions(form="bmv2")), programs),
        "measured program": Reader(own_experiment, programs),
        "swx": Reader(lambda p: read_program(p, ReadOptions(form="swx")), swx),
        "component model": Reader(lambda p: _text(p, lambda t, f: ComponentModel.from_json(t, file=f)), models),
        "cost model": Reader(partial(_text, parse=parse_cost_model), [(costs.name, costs.read_bytes())]),
        "claims": Reader(lambda p: parse_paper(p.read_bytes(), str(p)), papers),
        "csv": Reader(lambda p: datafiles.read_csv(p, "x", "y"), [("t.csv", table)]),
        "extrap": Reader(extrap.read_extrap, [("e.txt", series)]),
        "histogram": Reader(histogram.read_moongen_histogram, [("h.csv", b"1,2\n3,4\n10,1\n")]),
        "counters": Reader(partial(_text, parse=parse_counters), [("c.csv", counters)]),
        "loads": Reader(queueing.read_measured, [("l.csv", loads)]),
        "capture": Reader(read_capture, [("c.pcap", capture)]),
        "nodes": Reader(lambda p: read_node(p, None), [("nodes.yaml", nodes)]),
        "undo record": Reader(read_record, [("undo.json", undo)]),
        "run": Reader(_of_run, _files(run), run),
        "campaign": Reader(lambda p: CampaignDirectory.open(p).content(), _files(campaign), campaign),
    }


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [(str(p.relative_to(folder)), p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()]


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """The bytes after some mutations; ``other`` is a file of the same kind."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + rng.choice((1, 8, 200)))
        tokens = list(TOKEN.finditer(data, at, at + 2000))
        match rng.randrange(8):
            case 0 | 1 | 2 if tokens:
                token = rng.choice(tokens)
                data = data[: token.start()] + rng.choice(WORDS) + data[token.end() :]
            case 3:
                data = data[:at] + rng.choice(WORDS) + data[at:]
            case 4:
                data = data[:at] + data[end:]
            case 5:
                data = data[:end] + data[at:end] * rng.choice((1, 3, 50)) + data[end:]
            case 6:
                start = rng.randrange(len(other) + 1)
                data = data[:at] + other[start : start + 200] + data[end:]
            case _:
                data = data[:at] + (bytes([rng.randrange(256)]) + data[at + 1 :] if rng.random() < 0.8 else b"")
    return data


@dataclass(frozen=True)
class Outcome:
    reader: str
    seed: int
    verdict: str
    seconds: float
    data: bytes = b""


class _TooSlow(BaseException):
    pass


def _stop(number: int, frame: object) -> None:
    raise _TooSlow


def verdict_of(reader: Reader, name: str, data: bytes) -> str:
    """``read``, ``refused``, or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="p4perf-fuzz-") as folder:
        place = Path(folder, "it") if reader.folder else Path(folder, name)
        if reader.folder:
            shutil.copytree(reader.folder, place)
        (place / name if reader.folder else place).write_bytes(data)
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(place)
        except P4PerfError as error:
            return "refused" if str(error).strip() else "a failure without a message"
        except _TooSlow:
            return "too slow"
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:200]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return "read"


def try_seed(seed: int) -> Outcome:
    """Damage a file of a reader, both chosen by the seed, and let it be read; a failure comes with a small input."""
    known = readers()
    rng = random.Random(seed)  # noqa: S311 - the same inputs every time
    chosen = list(known)[seed % len(known)]
    reader = known[chosen]
    name, data = rng.choice(reader.sources)
    data = damaged(data, rng.choice(reader.sources)[1], rng)
    begun = time.process_time()
    verdict = verdict_of(reader, name, data)
    seconds = time.process_time() - begun
    if verdict in ("read", "refused"):
        return Outcome(chosen, seed, verdict, seconds)
    return Outcome(
        chosen, seed, verdict, seconds, data if verdict == "too slow" else _smaller(reader, name, data, verdict)
    )


def _smaller(reader: Reader, name: str, data: bytes, verdict: str, tries: int = 200) -> bytes:
    kind, size = verdict.partition(":")[0], len(data) // 2
    while size and tries > 0:
        at = 0
        while at < len(data) and tries > 0:
            shorter, tries = data[:at] + data[at + size :], tries - 1
            if verdict_of(reader, name, shorter).partition(":")[0] == kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def outcomes(begin: int, count: int, jobs: int) -> Iterator[Outcome]:
    seeds = range(begin, begin + count)
    if jobs == 1:
        yield from map(try_seed, seeds)
        return
    readers()  # which the others inherit
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(try_seed, seeds, chunksize=20)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    chosen = parser.parse_args(arguments)
    counts: Counter[tuple[str, str]] = Counter()
    slowest: dict[str, float] = {}
    failures = 0
    for each in outcomes(chosen.begin, chosen.count, chosen.jobs):
        good = each.verdict in ("read", "refused")
        counts[each.reader, each.verdict if good else "failed"] += 1
        slowest[each.reader] = max(slowest.get(each.reader, 0.0), each.seconds)
        if not good:
            failures += 1
            chosen.keep.mkdir(parents=True, exist_ok=True)
            path = chosen.keep / f"{each.reader.replace(' ', '-')}-{each.seed}"
            path.write_bytes(each.data)
            print(f"{each.reader}, seed {each.seed}: {each.verdict} ({path})")
    print(f"{'reader':18}{'inputs':>8}{'read':>8}{'refused':>9}{'failed':>8}{'slowest':>10}")
    for name in slowest:
        found = [counts[name, verdict] for verdict in ("read", "refused", "failed")]
        print(f"{name:18}{sum(found):8}{found[0]:8}{found[1]:9}{found[2]:8}{slowest[name]:8.2f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
