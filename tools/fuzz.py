"""Usage: fuzz.py N [--begin SEED] [--jobs J] [--record FILE] [--keep FOLDER]. Give damaged files to all readers.

An input is what its seed makes of a whole file: values of JSON and YAML are exchanged, removed or moved, tokens
exchanged, bytes changed, pieces cut, repeated, or taken from another file. A reader may refuse it with an error of
p4perf. Anything else is a failure, as is an input that takes longer than 10 s of processor time or more than 2 GB of
memory. Failures are made smaller and kept. With ``--begin``, seeds continue where an earlier call ended; with
``--record``, the thousands of inputs that the file has are not tried again.
"""

from __future__ import annotations

import argparse
import atexit
import copy
import json
import math
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.claims import COMPUTED, PAPER  # noqa: E402
from support.command import p4perf  # noqa: E402
from support.runs import make_run  # noqa: E402

from p4perf.errors import P4PerfError  # noqa: E402
from p4perf.evaluation.fitting import datafiles, extrap  # noqa: E402
from p4perf.evaluation.fitting.tables import model_html  # noqa: E402
from p4perf.evaluation.imports.base import ImportOptions, Named  # noqa: E402
from p4perf.evaluation.load import histogram, queueing  # noqa: E402
from p4perf.evaluation.papers import parse_paper  # noqa: E402
from p4perf.evaluation.papers.baldi2018.files import parse_hardware  # noqa: E402
from p4perf.evaluation.prediction.library import parse_cost_model  # noqa: E402
from p4perf.evaluation.prediction.reading.program import ReadOptions, read_program  # noqa: E402
from p4perf.experiment import open_target, plan_sweep, require_usable  # noqa: E402
from p4perf.experiment.generation import Generation  # noqa: E402
from p4perf.experiment.imports import ImportOrder, read_import  # noqa: E402
from p4perf.experiment.own import own_experiment  # noqa: E402
from p4perf.experiment.report.runs import read_run  # noqa: E402
from p4perf.experiment.report.site import find_sources, write_site  # noqa: E402
from p4perf.experiment.session import reopened  # noqa: E402
from p4perf.formats.moongen import parse_counters  # noqa: E402
from p4perf.formats.pcap import read_capture  # noqa: E402
from p4perf.models.component import ComponentModel  # noqa: E402
from p4perf.models.export import ExportLanguage, export_model  # noqa: E402
from p4perf.programs.component import component_parameters  # noqa: E402
from p4perf.programs.reading.shares import read_shares  # noqa: E402
from p4perf.results import Run  # noqa: E402
from p4perf.results.campaign import CampaignDirectory  # noqa: E402
from p4perf.results.files import read_text  # noqa: E402
from p4perf.results.names import RunSummary  # noqa: E402
from p4perf.specs import load_experiment  # noqa: E402
from p4perf.testbeds.local import LocalTestbed  # noqa: E402
from p4perf.testbeds.nodes import read_node  # noqa: E402
from p4perf.testbeds.tuning import read_record  # noqa: E402

LONGEST_S = 10.0
"""Most processor time of one input."""

MOST_BYTES = 2_000_000_000
"""Most memory that a process takes to read inputs, beyond what it has before."""

CHUNK = 1000
"""Inputs between two lines of progress, and in a line of the record."""

WORDS = [
    *(b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"NaN", b"Infinity", b"18446744073709551616", b"9" * 5000, b"null"),
    *(b"true", b"[]", b"{}", b'""', b"[" * 300, b"{" * 300, b"'", b'"', b"\\", b"\0", b"\xff", b"\xed\xa0\x80", b"\r"),
    *(b"\n\n", b"\t", b"../../../etc/passwd", b"/dev/zero", b"$(id)", b"$x^{$", b"*a", b"&a [*a]"),
    *(b"!!python/object:os.system", b"x" * 5000, b"0x" + b"f" * 5000),
]  # fmt: skip
VALUES = [
    *(
        None,
        True,
        0,
        -1,
        1.5,
        1e308,
        -1e308,
        1e-320,
        math.nan,
        2**64,
        10**400,
        "",
        "x",
        "1",
        "\0",
        "\ud800",
        "x" * 5000,
        "9" * 5000,
        "0x" + "f" * 5000,
    ),
    *([], {}, [[]], [None], ["x"], [1, "x"], {"x": 1}, {"": {}}, "../../x", "/dev/zero", "2026-01-01", "x\n\x1b[31m"),
]
TOKEN = re.compile(rb"-?\d[\d.eE+-]*|\w+|\S")


@dataclass(frozen=True)
class Reader:
    """A reader of files, or of folders of which one file is damaged; ``sources`` are whole. Slow ones weigh less."""

    read: Callable[[Path], object]
    sources: Sequence[tuple[str, bytes]]
    folder: Path | None = None
    weight: int = 5
    """How often it comes, compared to others."""


def _text(path: Path, parse: Callable[[str, str], object]) -> object:
    return parse(read_text(path), str(path))


def _of_run(path: Path) -> None:
    run = Run.open(path)
    _ = run.manifest, run.spec, run.table, run.headline, run.variable, run.flag_counts
    run.directory.state()
    for point in run.directory.points():
        run.directory.trials(point)
    read_run(path)
    RunSummary.of(run)


class _Place(LocalTestbed):
    """This machine, which is asked once for what it has."""

    facts = cache(LocalTestbed.facts)  # type: ignore[assignment]


def _of_resume(path: Path) -> None:
    reopened(path, placed=lambda _: _PLACE)


_PLACE = _Place()


def _of_model(path: Path) -> None:
    model = ComponentModel.from_json(read_text(path), file=str(path))
    model_html(model)
    for language in get_args(ExportLanguage):
        export_model(model, language)


def _of_site(path: Path) -> None:
    write_site(find_sources([path]), path.parent / "site", processes=1)


@cache
def readers() -> dict[str, Reader]:
    """All readers by name, with whole files for each."""
    place = Path(tempfile.mkdtemp(prefix="p4perf-fuzz-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    run = make_run(place, lambda x: 20.0 + x, starts=2, overrides=(("entries", "[1, 10, 100, 1000, 10000]"),))
    target = open_target("dpdk-c")
    here = require_usable(target, _PLACE)
    begun = make_run(place / "begun", lambda x: 20.0 + x, overrides=(("entries", "[1, 10]"),), node=dict(here.values))
    planned = [point.key for point in plan_sweep(Run.open(begun).experiment, target, here).points]
    record = json.loads((begun / "manifest.json").read_text()) | {"planned_points": planned}
    (begun / "manifest.json").write_text(json.dumps(record))
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
    other = make_run(place, lambda x: 30.0 + x, starts=2, target="xdp", overrides=(("entries", "[1, 10, 100]"),))
    (place / "claims.yaml").write_text(PAPER + COMPUTED)
    program = str(next(ROOT.glob("examples/programs/l2_switch/*.json")))
    documents = {"comparison": place / "compared", "prediction": place / "predicted", "reproduction": place / "checked"}
    for words in (
        ["compare", run, other, "-o", documents["comparison"]],
        ["predict", program, "-o", documents["prediction"]],
        ["reproduce", place / "claims.yaml", "-o", documents["reproduction"]],
    ):
        done = p4perf(*words, cwd=place, timeout=3600)
        if done.code:
            raise RuntimeError(done.err)
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
    columns = ImportOptions(variables=(Named("x", "x"),), metrics=(Named("cycles_per_packet", "y"),))
    table = b"x,y\n" + b"".join(b"%d,%d\n" % (x, 3 * x) for x in range(1, 9))
    router, switch = (ROOT / f"examples/programs/{name}/{name}.json" for name in ("ipv4_router", "l2_switch"))
    switch, shares = read_program(switch, ReadOptions("bmv2")), switch.with_name("shares.yaml").read_bytes()
    commands = b"table_add MainControl.routes MainControl.set_next_hop 10.0.0.0/8 => 1\n"
    commands += b"table_set_default MainControl.routes no_route\nmc_mgrp_create 1\nmc_node_create 0 1 2\n"
    hops = b"table,next_hop,action\nMainControl.next_hops,1,no_neighbour\n"
    planes = [("c.txt", commands), ("c.csv", hops)]
    machines = [
        (p.name, p.read_bytes()) for p in sorted(ROOT.glob("p4perf/evaluation/papers/baldi2018/**/hardware/*.yaml"))
    ]
    loads = b"rate_mpps,mean_us,p99_us\n1,2,3\n2,3,4\n"
    return {
        "spec": Reader(lambda p: load_experiment(str(p), parameters_of=component_parameters), pick),
        "bmv2": Reader(lambda p: read_program(p, ReadOptions(form="bmv2")), programs),
        "measured program": Reader(own_experiment, programs),
        "swx": Reader(lambda p: read_program(p, ReadOptions(form="swx")), swx),
        "component model": Reader(_of_model, models),
        "cost model": Reader(partial(_text, parse=parse_cost_model), [(costs.name, costs.read_bytes())]),
        "claims": Reader(lambda p: parse_paper(p.read_bytes(), str(p)), papers, weight=1),
        "csv": Reader(lambda p: datafiles.read_csv(p, "x", "y"), [("t.csv", table)]),
        "extrap": Reader(extrap.read_extrap, [("e.txt", series)]),
        "histogram": Reader(histogram.read_moongen_histogram, [("h.csv", b"1,2\n3,4\n10,1\n")]),
        "counters": Reader(partial(_text, parse=parse_counters), [("c.csv", counters)]),
        "loads": Reader(queueing.read_measured, [("l.csv", loads)]),
        "capture": Reader(read_capture, [("c.pcap", capture)]),
        "nodes": Reader(lambda p: read_node(p, None), [("nodes.yaml", nodes)]),
        "undo record": Reader(read_record, [("undo.json", undo)]),
        "run": Reader(_of_run, _files(run), run, weight=3),
        "resume": Reader(_of_resume, _files(begun), begun, weight=1),
        "campaign": Reader(lambda p: CampaignDirectory.open(p).content(), _files(campaign), campaign),
        "control plane": Reader(lambda p: read_program(router, ReadOptions("bmv2", commands=p)), planes),
        "shares": Reader(lambda p: read_shares(p, switch), [("shares.yaml", shares)]),
        "machine": Reader(lambda p: _text(p, lambda t, f: parse_hardware(t.encode(), f)), machines),
        "import": Reader(lambda p: read_import([p], columns, ImportOrder()), [("t.csv", table)]),
        **{
            name: Reader(_of_site, [(f"{name}.json", (folder / f"{name}.json").read_bytes())], weight=1)
            for name, folder in documents.items()
        },
    }


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [(str(p.relative_to(folder)), p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()]


def restructured(data: bytes, rng: random.Random) -> bytes:
    """JSON or YAML with some values exchanged, removed or moved; as it is if it is neither."""
    lines = data.splitlines(keepends=True)
    if len(lines) > 1 and all(line.startswith(b"{") for line in lines):
        at = rng.randrange(len(lines))
        return b"".join([*lines[:at], restructured(lines[at], rng), b"\n", *lines[at + 1 :]])
    try:
        content = json.loads(data) if data.lstrip()[:1] in b"{[" else yaml.load(data, yaml.CSafeLoader)
    except (ValueError, yaml.YAMLError):
        return data
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(content))
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(5):
            case 0:
                del holder[key]
            case 1:
                other, name = rng.choice(places)
                holder[key] = copy.deepcopy(other[name])
            case 2 if isinstance(holder, dict):
                holder[rng.choice(("x", "", str(key).upper(), "../x"))] = holder.pop(key)
            case _:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
    return json.dumps(content, default=str).encode()


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, with each of its keys or indices."""
    for key in list(content) if isinstance(content, dict) else range(len(content) if isinstance(content, list) else 0):
        yield content, key
        yield from _places(content[key])


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """The bytes after some mutations; ``other`` is a file of the same kind."""
    if rng.random() < 0.4 and (changed := restructured(data, rng)) != data:
        return changed
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
    names = [name for name, reader in known.items() for _ in range(reader.weight)]
    chosen = names[seed % len(names)]
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


@dataclass(frozen=True)
class Row:
    """What became of the inputs of a reader."""

    read: int = 0
    refused: int = 0
    failed: int = 0
    slowest_s: float = 0.0

    def __add__(self, other: Row) -> Row:
        numbers = [getattr(self, name) + getattr(other, name) for name in ("read", "refused", "failed")]
        return Row(*numbers, max(self.slowest_s, other.slowest_s))


def chunk(begin: int, count: int, jobs: int, keep: Path) -> dict[str, Row]:
    """Try these inputs; failures are printed and kept."""
    rows: dict[str, Row] = {}
    for each in outcomes(begin, count, jobs):
        good = each.verdict in ("read", "refused")
        row = Row(each.verdict == "read", each.verdict == "refused", not good, round(each.seconds, 3))
        rows[each.reader] = rows.get(each.reader, Row()) + row
        if not good:
            keep.mkdir(parents=True, exist_ok=True)
            path = keep / f"{each.reader.replace(' ', '-')}-{each.seed}"
            path.write_bytes(each.data)
            print(f"{each.reader}, seed {each.seed}: {each.verdict} ({path})", flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    chosen = parser.parse_args(arguments)
    known = {}
    if chosen.record is not None and chosen.record.exists():
        lines = [json.loads(line) for line in chosen.record.read_text().splitlines()]
        known = {(line["begin"], line["count"]): {n: Row(*row) for n, row in line["rows"].items()} for line in lines}
    total: dict[str, Row] = {}
    end = chosen.begin + chosen.count
    for begin in range(chosen.begin, end, CHUNK):
        count = min(CHUNK, end - begin)
        rows = known.get((begin, count))
        if rows is None:
            rows = chunk(begin, count, chosen.jobs, chosen.keep)
            if chosen.record is not None:
                with chosen.record.open("a") as file:
                    line = {"begin": begin, "count": count, "rows": {name: astuple(row) for name, row in rows.items()}}
                    file.write(json.dumps(line) + "\n")
            most = (
                max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) >> 10
            )
            bad = sum(row.failed for row in (*total.values(), *rows.values()))
            done = f"{begin + count - chosen.begin} of {chosen.count} inputs, {bad} failed, at most {most} MiB"
            print(f"{time.strftime('%H:%M:%S')} {done}", file=sys.stderr, flush=True)
        total = {name: total.get(name, Row()) + rows.get(name, Row()) for name in {**total, **rows}}
    print(f"{'reader':18}{'inputs':>8}{'read':>8}{'refused':>9}{'failed':>8}{'slowest':>10}")
    for name in readers():
        row = total.get(name, Row())
        inputs = row.read + row.refused + row.failed
        print(f"{name:18}{inputs:8}{row.read:8}{row.refused:9}{row.failed:8}{row.slowest_s:8.2f} s")
    return 1 if any(row.failed for row in total.values()) else 0


if __name__ == "__main__":
    readers()
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))  # more is a MemoryError, and so a failure
    sys.exit(main())
