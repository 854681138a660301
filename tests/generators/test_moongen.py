"""The MoonGen scripts: their text, and what they do under the test double."""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.parser_states import extracting

import p4perf
from p4perf.errors import CapabilityError
from p4perf.formats.moongen import COMPLETION_MARKER
from p4perf.generators.moongen import MoonGen
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.packets import frame

DOUBLE = Path(__file__).parents[1] / "support" / "moongen_fake" / "main.lua"
ETHER_TYPE_PTP = bytes.fromhex("88f7")

needs_luajit = pytest.mark.skipif(shutil.which("luajit") is None, reason="luajit is not installed")

COMPONENTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "l2fwd": [],
    "parser_headers": [("parser_headers", {"headers": 5})],
    "match_action_table": [("match_action_table", {"entries": 300, "key_bits": 128, "action_data_bytes": 8})],
    "header_field_writes": [("header_field_writes", {"writes": 4, "fields": 8})],
}


@dataclass
class Run:
    """What one run under the double left behind."""

    exit_code: int
    stdout: str
    stderr: str
    folder: Path
    frames: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.stdout.splitlines()[-1:] == [COMPLETION_MARKER]

    def load(self) -> list[bytes]:
        """Frames that are no probes."""
        return [data for _, _, data in self.frames if data[12:14] != ETHER_TYPE_PTP]

    def said(self, what: str) -> dict[str, str]:
        """The values in the line ``P4PERF what key=value ...``."""
        found = re.search(rf"^P4PERF {what} (.*)$", self.stdout, re.M)
        assert found, self.stdout
        return dict(pair.split("=") for pair in found[1].split())

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open() as file:
            return list(csv.DictReader(file))


def run(
    folder: Path, workload: ir.Workload, traffic: TrafficPlan, script: str, *arguments: str, **double: object
) -> Run:
    for file in MoonGen().generate(workload, traffic):
        (folder / file.path).write_text(file.text())
    warmup = [] if {"-w", "-h"} & set(arguments) else ["-w", "0"]
    options = [f"--fake-{key.replace('_', '-')}={value}" for key, value in (double | {"dump": "frames"}).items()]
    done = subprocess.run(
        ["luajit", DOUBLE, *options, script, *arguments, *warmup],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    result = Run(done.returncode, done.stdout, done.stderr, folder)
    for line in (folder / "frames").read_text().splitlines() if (folder / "frames").exists() else []:
        device, queue, digits = line.split()
        result.frames.append((int(device), int(queue), bytes.fromhex(digits)))
    return result


def table_workload(entries: int, **parameters: Any) -> ir.Workload:
    return build_workload(
        [("match_action_table", {"entries": entries, "action_data_bytes": 4} | parameters)], frame_size_bytes=64
    )


def drawn(run: Run, workload: ir.Workload) -> list[int]:
    """The index of every frame; the frame must be the one that Python makes for that index."""
    numbers = []
    for data in run.load():
        number = int.from_bytes(data[14:30], "big")
        assert data == frame(workload.program, workload.packets, number)
        numbers.append(number)
    return numbers


# Text -----------------------------------------------------------------------------------------------------------------


def scripts(distribution: str) -> dict[str, str]:
    traffic = TrafficPlan(64, distribution=distribution, hit_ratio=0.9 if distribution == "uniform" else 1.0)
    files = MoonGen().generate(table_workload(70000), traffic)
    return {f.path: f.text().replace(p4perf.__version__, "VERSION") for f in files}


@pytest.mark.parametrize("script", ["max-load.lua", "latency.lua"])
def test_golden_scripts(script: str, golden: Callable[[str, str], None]) -> None:
    """One script whole, and the lines in which those of other distributions differ from it."""
    uniform = scripts("uniform")
    assert set(uniform) == {"max-load.lua", "latency.lua"}
    golden(f"moongen/uniform-{script}", uniform[script])
    for distribution in ("sequential", "single", "zipf"):
        names = (f"uniform-{script}", f"{distribution}-{script}")
        lines = (uniform[script].splitlines(), scripts(distribution)[script].splitlines())
        golden(
            f"moongen/{distribution}-{script}.diff", "\n".join(unified_diff(*lines, *names, n=0, lineterm="")) + "\n"
        )


@pytest.mark.parametrize("component", COMPONENTS)
def test_scripts_hold_the_headers_and_no_undefined_value(component: str) -> None:
    workload = build_workload(COMPONENTS[component], frame_size_bytes=256)
    for file in MoonGen().generate(workload, TrafficPlan(256)):
        text = file.text()
        digits = "".join(re.findall(r'^  "([0-9a-f]+)",$', text, re.M))
        assert frame(workload.program, workload.packets).hex() == digits.ljust(504, "0")
        assert "{{" not in text
        assert "None" not in text
        assert text.rstrip().endswith(f'print("{COMPLETION_MARKER}")\nend')
        assert all(len(line) <= 140 for line in text.splitlines())


def test_titles_and_notes_stay_in_their_comments() -> None:
    workload = table_workload(3)
    program = replace(workload.program, name="x\nos.execute('evil')]]")
    for file in MoonGen().generate(replace(workload, program=program, notes=("a\nevil",)), TrafficPlan(64)):
        assert all(line.startswith("--") for line in file.text().splitlines() if "evil" in line)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distribution": "normal"}, "no distribution 'normal'"),
        ({"pattern": "recorded"}, "no pattern 'recorded'"),
        ({"hit_ratio": 1.5}, "hit ratio of 1.5"),
        ({"distribution": "zipf", "zipf_s": 0.0}, "Zipf exponent"),
        ({"offered_load_mpps": 0.0}, "offered load"),
        ({"offered_load_mpps": math.inf}, "offered load"),
    ],
    ids=str,
)
def test_traffic_that_cannot_be_made_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CapabilityError, match=message):
        MoonGen().generate(table_workload(3), TrafficPlan(64, **changes))


@pytest.mark.parametrize("size", [60, 1519])
def test_frame_sizes_that_devices_do_not_send_are_refused(size: int) -> None:
    with pytest.raises(CapabilityError, match=f"not of {size} B"):
        MoonGen().generate(build_workload([], frame_size_bytes=size), TrafficPlan(size))


def test_fields_that_the_scripts_cannot_write_are_refused() -> None:
    program = ir.Program(
        "p",
        (ir.Header("h", (ir.Field("a", 4), ir.Field("b", 12))),),
        (),
        (extracting("start", ("h",)),),
        (),
        (),
        (),
        ("h",),
    )
    packets = ir.PacketSpec((ir.HeaderValues("h"),), (ir.VaryingField(ir.FieldRef("h", "b"), 5),), 64)
    with pytest.raises(CapabilityError, match=r"h\.b varies, but is not made of whole bytes"):
        MoonGen().generate(ir.Workload(program, program, packets), TrafficPlan(64))
    table = ("match_action_table", {"entries": 3, "action_data_bytes": 4})
    other = ("match_action_table", {"entries": 4, "action_data_bytes": 4})
    with pytest.raises(CapabilityError, match="ranges of 3, 4 values"):
        MoonGen().generate(build_workload([table, other], frame_size_bytes=128), TrafficPlan(128))


# Runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@needs_luajit
@pytest.mark.parametrize("component", COMPONENTS)
def test_maximum_load_of_every_component(component: str, tmp_path: Path) -> None:
    workload = build_workload(COMPONENTS[component], frame_size_bytes=128)
    result = run(tmp_path, workload, TrafficPlan(128), "max-load.lua", "0", "1", "-t", "4")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.complete
    assert "FATAL" not in result.stdout
    line_rate = 10 / ((128 + 20) * 8)
    for direction in ("tx", "rx"):
        rows = result.rows(f"max-load-{direction}.csv")
        assert len(rows) == 5  # half a second before the load, four with it, and the mean
        assert float(rows[-1]["PacketRate"]) == pytest.approx(line_rate, rel=0.01)
        mean = sum(float(r["PacketRate"]) for r in rows[1:-1]) / (len(rows) - 2)
        assert float(rows[-1]["PacketRate"]) == pytest.approx(mean, rel=1e-9)
        assert {r["Direction"] for r in rows} == {direction.upper()}
    assert {(device, queue) for device, queue, _ in result.frames} == {(0, n) for n in range(4)}
    expected = {frame(workload.program, workload.packets, n) for n in range(300)}
    assert set(result.load()) <= expected
    assert int(rows[-1]["TotalPackets"]) == len(result.frames)


@pytest.mark.sampled(3)
@needs_luajit
@pytest.mark.parametrize("pattern", ["cbr", "poisson"])
@pytest.mark.parametrize("component", COMPONENTS)
def test_latency_of_every_component(component: str, pattern: str, tmp_path: Path) -> None:
    workload = build_workload(COMPONENTS[component], frame_size_bytes=128)
    arguments = ("0", "1", "-r", "0.002", "-t", "4", "-q", "2", "-i", "0.01")
    result = run(tmp_path, workload, TrafficPlan(128, pattern=pattern), "latency.lua", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.complete
    tolerance = 0.01 if pattern == "cbr" else 0.1
    rate = result.said("rate")
    assert float(rate["load_mpps"]) == pytest.approx(0.002, rel=tolerance)
    probes = [data for _, queue, data in result.frames if queue == 2]
    assert len(probes) == int(result.said("probes")["sent"]) == 400
    for probe in probes:
        assert (probe[:12], probe[12:14], len(probe)) == (
            frame(workload.program, workload.packets)[:12],
            b"\x88\xf7",
            124,
        )
    samples = [line.split(",") for line in (tmp_path / "histogram.csv").read_text().splitlines()]
    assert sum(int(count) for _, count in samples) == 400
    assert [int(ns) for ns, _ in samples] == sorted(int(ns) for ns, _ in samples)
    assert (tmp_path / "probes.csv").read_text() == "sent,received,lost\n400,400,0\n"
    expected = {frame(workload.program, workload.packets, n) for n in range(300)}
    assert set(result.load()) <= expected


@needs_luajit
@pytest.mark.parametrize(
    ("rate", "queues", "taken", "gap_ns"),
    [(14.5, 1, 1, 69), (14.0, 1, 2, 143), (10, 1, 1, 100), (0.004, 1, 1, 250000)],
)
def test_poisson_traffic_takes_as_many_queues_as_whole_nanoseconds_need(
    rate: float, queues: int, taken: int, gap_ns: int
) -> None:
    text = scripts("uniform")["latency.lua"]
    constants = re.search(r"local ROUNDING = .*\nlocal FURTHER_QUEUES = .*\n", text)
    function = re.search(r"local function poissonGap.*?\nend\n", text, re.DOTALL)
    assert constants
    assert function
    asked = f"{constants[0]}{function[0]}print(poissonGap({rate}, {queues}))"
    said = subprocess.run(["luajit", "-e", asked], capture_output=True, text=True, check=True).stdout.split()
    assert [int(said[0]), int(said[1])] == [taken, gap_ns]
    assert float(said[2]) == pytest.approx(1000 * taken / gap_ns)
    assert float(said[2]) == pytest.approx(rate, rel=0.0011)


def gaps_ns(run: Run, queue: int = 0) -> list[int]:
    """Times between the frames of a queue, in nanoseconds."""
    times = [int(line) for line in (run.folder / "times").read_text().splitlines()]
    own = [time for time, (_, number, _) in zip(times, run.frames, strict=True) if number == queue]
    return [later - earlier for earlier, later in pairwise(own)]


@needs_luajit
@pytest.mark.parametrize("burst", [1, 5, 32, 100])
def test_bursts(burst: int, tmp_path: Path) -> None:
    traffic = TrafficPlan(64, pattern="burst", burst_length=burst, offered_load_mpps=0.002)
    arguments = ("latency.lua", "0", "1", "-t", "4", "-i", "0.5")
    result = run(tmp_path, table_workload(5), traffic, *arguments, link_mbit=1000, times="times")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.complete
    # The limiter catches up at the beginning, and the end comes somewhere in a burst: two bursts of all that is sent.
    assert float(result.said("rate")["load_mpps"]) == pytest.approx(0.002, rel=0.01 + 2 * burst / 8000)
    gaps = gaps_ns(result)[5 * burst :]  # at first the limiter catches up
    wire_ns, period_ns = 672, 1e9 * burst / 2000
    pauses = [gap for gap in gaps if gap > 2 * wire_ns]
    assert len(pauses) == pytest.approx(len(gaps) / burst, abs=1)
    assert sum(sorted(pauses)[1:-1]) / (len(pauses) - 2) == pytest.approx(period_ns - wire_ns * (burst - 1), rel=1e-3)
    assert all(gap == pytest.approx(wire_ns, abs=2) for gap in gaps if gap <= 2 * wire_ns)


@needs_luajit
def test_bursts_with_a_gap_and_a_spacing_of_their_own(tmp_path: Path) -> None:
    traffic = TrafficPlan(64, pattern="burst", burst_length=4, burst_spacing_ns=10_000, burst_gap_us=1000)
    arguments = ("latency.lua", "0", "1", "-r", "0.002", "-t", "3", "-i", "0.5")
    result = run(tmp_path, table_workload(5), traffic, *arguments, link_mbit=1000, times="times")
    assert result.complete
    gaps = gaps_ns(result)[20:-1]
    assert {round(gap, -3) for gap in gaps} == {10_000, 1_000_000}
    assert Counter(round(gap, -3) for gap in gaps)[10_000] == pytest.approx(0.75 * len(gaps), abs=2)


@pytest.mark.thorough
@needs_luajit
def test_bursts_that_do_not_fit_into_the_load(tmp_path: Path) -> None:
    traffic = TrafficPlan(64, pattern="burst", burst_length=10, burst_spacing_ns=1_000_000)
    result = run(tmp_path, table_workload(5), traffic, "latency.lua", "0", "1", "-r", "0.002", "-t", "3")
    assert not result.complete
    assert "bursts of 10 frames do not fit into this load" in result.stdout + result.stderr


@pytest.mark.parametrize("length", [0, 1_000_001])
def test_bursts_have_a_length(length: int) -> None:
    with pytest.raises(CapabilityError, match="a burst has 1 to 1000000 packets"):
        MoonGen().generate(table_workload(5), TrafficPlan(64, pattern="burst", burst_length=length))


@pytest.mark.sampled(4)
@needs_luajit
@pytest.mark.parametrize("queues", [1, 3, 4])
@pytest.mark.parametrize("entries", [1, 256, 300, 1001])
def test_sequential_traffic_enumerates_all_keys(entries: int, queues: int, tmp_path: Path) -> None:
    workload = table_workload(entries)
    traffic = TrafficPlan(64, distribution="sequential")
    result = run(tmp_path, workload, traffic, "max-load.lua", "0", "1", "-q", str(queues), "-t", "3", link_mbit=3)
    counts = Counter(drawn(result, workload))
    assert set(counts) == set(range(entries))
    assert max(counts.values()) - min(counts.values()) <= 70 * queues
    if queues == 1:
        numbers = drawn(result, workload)
        assert numbers == [n % entries for n in range(len(numbers))]


@needs_luajit
def test_uniform_traffic_hits_and_misses_as_often_as_it_should(tmp_path: Path) -> None:
    workload = table_workload(1000)
    result = run(tmp_path, workload, TrafficPlan(64, hit_ratio=0.75), "max-load.lua", "0", "1", "-t", "3")
    numbers = drawn(result, workload)
    share = sum(n < 1000 for n in numbers) / len(numbers)
    assert share == pytest.approx(0.75, abs=5 * math.sqrt(0.75 * 0.25 / len(numbers)))
    counts = Counter(n % 1000 for n in numbers)
    assert set(counts) == set(range(1000))
    chi_square = sum((counts[n] - len(numbers) / 1000) ** 2 for n in range(1000)) / (len(numbers) / 1000)
    assert chi_square < 1000 + 5 * math.sqrt(2000)
    assert max(numbers) < 2000


@needs_luajit
def test_single_traffic_sends_one_key(tmp_path: Path) -> None:
    workload = table_workload(1000)
    result = run(tmp_path, workload, TrafficPlan(64, distribution="single"), "max-load.lua", "0", "1", "-t", "2")
    assert set(drawn(result, workload)) == {0}


@pytest.mark.thorough
@needs_luajit
@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.3])
@pytest.mark.parametrize("entries", [10, 20000])
def test_zipf_traffic_has_the_distribution(entries: int, exponent: float, tmp_path: Path) -> None:
    workload = table_workload(entries)
    traffic = TrafficPlan(64, distribution="zipf", zipf_s=exponent)
    result = run(tmp_path, workload, traffic, "max-load.lua", "0", "1", "-t", "4")
    numbers = drawn(result, workload)
    weights = [rank**-exponent for rank in range(1, entries + 1)]
    for start, end in ((0, 1), (1, 3), (3, 10), (10, 1000), (1000, 6000), (6000, 20000)):
        expected = sum(weights[start:end]) / sum(weights)
        seen = sum(start <= n < end for n in numbers) / len(numbers)
        assert seen == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / len(numbers)) + 2e-4)
    assert min(numbers) >= 0
    assert max(numbers) < entries


@needs_luajit
def test_wide_indices_are_written_big_endian(tmp_path: Path) -> None:
    workload = table_workload(10**9)
    result = run(tmp_path, workload, TrafficPlan(64, hit_ratio=0.5), "max-load.lua", "0", "1", "-t", "2")
    numbers = drawn(result, workload)
    assert max(numbers) > 1.9e9
    assert max(numbers) < 2e9


@pytest.mark.thorough
@needs_luajit
def test_a_rate_that_is_not_reached_is_told(tmp_path: Path) -> None:
    workload, arguments = table_workload(5), ("max-load.lua", "0", "1", "-r", "0.005", "-t", "4")
    assert run(tmp_path, workload, TrafficPlan(64), *arguments).said("rate")["verdict"] == "ok"
    ignoring = run(tmp_path, workload, TrafficPlan(64), *arguments, ignore_rate="")
    assert ignoring.said("rate")["verdict"] == "off"
    assert ignoring.complete
    too_much = run(tmp_path, workload, TrafficPlan(64), "max-load.lua", "0", "1", "-r", "5", "-t", "4")
    assert too_much.said("rate")["verdict"] == "off"


@needs_luajit
def test_the_load_of_the_plan_is_the_default(tmp_path: Path) -> None:
    traffic = TrafficPlan(64, offered_load_mpps=0.004, pattern="poisson")
    result = run(tmp_path, table_workload(5), traffic, "latency.lua", "0", "1", "-t", "4", "-i", "0.1")
    assert result.said("rate")["requested_mpps"] == "0.004"
    sent = result.load()
    assert result.complete
    assert len(sent) == pytest.approx(16000, rel=0.05)


@needs_luajit
def test_one_device_can_be_both(tmp_path: Path) -> None:
    result = run(tmp_path, table_workload(5), TrafficPlan(64), "latency.lua", "1", "1", "-r", "0.001", "-t", "4")
    assert result.complete
    assert {device for device, _, _ in result.frames} == {1}


@needs_luajit
def test_files_can_be_named_and_old_ones_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "histogram.csv").write_text("1,1\n")
    (tmp_path / "a.csv").write_text("old")
    names = ("--tx-file", "a.csv", "--rx-file=b.csv", "--probes-file", "c.csv", "--histogram-file", "d.csv")
    result = run(
        tmp_path, table_workload(5), TrafficPlan(64), "latency.lua", "0", "1", "-r", "0.001", "-t", "4", *names
    )
    assert result.complete
    assert result.rows("a.csv")[-1]["Direction"] == "TX"
    assert (tmp_path / "c.csv").exists()
    assert (tmp_path / "d.csv").exists()
    assert (tmp_path / "histogram.csv").read_text() == "1,1\n"


@needs_luajit
def test_lost_probes_are_counted(tmp_path: Path) -> None:
    arguments = ("latency.lua", "0", "1", "-r", "0.001", "-t", "4")
    result = run(tmp_path, table_workload(5), TrafficPlan(64), *arguments, lose_probe=4)
    probes = {key: int(value) for key, value in result.said("probes").items()}
    assert probes["sent"] == probes["received"] + probes["lost"]
    assert probes["lost"] == probes["sent"] // 4
    assert result.complete


@needs_luajit
def test_without_probes_there_is_no_completion(tmp_path: Path) -> None:
    arguments = ("latency.lua", "0", "1", "-r", "0.001", "-t", "4")
    for double, message in (({"lose_probe": 1}, "no probe came back"), ({"no_timestamps": ""}, "did not finish")):
        (tmp_path / "probes.csv").write_text("sent,received,lost\n9,9,0\n")
        result = run(tmp_path, table_workload(5), TrafficPlan(64), *arguments, **double)
        assert result.exit_code == 1
        assert not result.complete
        assert message in result.stdout


@pytest.mark.sampled(4)
@needs_luajit
@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("max-load.lua", ("0",), "missing argument 'rx'"),
        ("max-load.lua", ("0", "x"), "x is not a whole number from 0 on"),
        ("max-load.lua", ("0", "1.5"), "1.5 is not a whole number"),
        ("max-load.lua", ("0", "1", "2"), "too many arguments"),
        ("max-load.lua", ("0", "1", "-r", "0"), "0 is not a number from 1e-06 on"),
        ("max-load.lua", ("0", "1", "-t", "0.5"), "0.5 is not a number from 1 on"),
        ("max-load.lua", ("0", "1", "-q", "0"), "0 is not a whole number from 1 on"),
        ("max-load.lua", ("0", "1", "-r"), "option '-r' requires an argument"),
        ("max-load.lua", ("0", "1", "--colour"), "unknown option"),
        ("latency.lua", ("0", "1", "-r", "nan"), "nan is not a number"),
        ("latency.lua", ("0", "1", "-r", "inf"), "inf is not a number"),
        ("latency.lua", ("0", "1", "-r", "1", "-p", "random"), "random is no pattern"),
        ("latency.lua", ("0", "1", "-r", "1", "-b", "0"), "0 is not a whole number from 1 on"),
        ("latency.lua", ("0", "1"), "the load is missing"),
        ("latency.lua", ("0", "7", "-r", "1"), "there is no device 7"),
        ("max-load.lua", ("0", "1", "-q", "40"), "Not enough cores"),
    ],
    ids=str,
)
def test_wrong_arguments_are_told(script: str, arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = run(tmp_path, table_workload(5), TrafficPlan(64), script, *arguments)
    assert result.exit_code == 1
    assert message in result.stdout + result.stderr
    assert not result.complete


# The double itself ----------------------------------------------------------------------------------------------------


@needs_luajit
@pytest.mark.parametrize(
    ("script", "exit_code", "message"),
    [
        ("function master(args) print(nothing) end", 1, "undefined global nothing"),
        ("function master(args) x = 1 end", 1, "assigns to global x"),
        ("local mg = require 'moongen'\nfunction master() mg.fly() end", 1, "moongen has no fly"),
        ("local d = require 'device'\nfunction master() d.config{port = 0, colour = 1} end", 1, "no setting colour"),
        ("local d = require 'device'\nfunction master() d.config{port = 0}:getTxQueue(1) end", 1, "no txQueues 1"),
        ("require 'turbo'", 0, "[FATAL] Lua error in task master"),
        ("function master(", 255, "Lua error:"),
        (
            "local mg = require 'moongen'\nfunction master() mg.startTask('gone') mg.waitForTasks() end",
            0,
            "global gone",
        ),
        (
            "local mg = require 'moongen'\nfunction master() mg.startTask('x', print) end",
            1,
            "a function cannot be handed",
        ),
        (
            "local mg = require 'moongen'\nlocal seen = 0\nfunction t(x) seen = seen + 1 x.y = 2 return seen end\n"
            "function master()\n local x = {y = 1}\n local a, b = mg.startTask('t', x), mg.startTask('t', x)\n"
            " print(a:wait(), b:wait(), seen, x.y)\nend",
            0,
            "1\t1\t0\t1",
        ),
    ],
    ids=str,
)
def test_the_double_is_strict(script: str, exit_code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "script.lua").write_text(script)
    done = subprocess.run(["luajit", DOUBLE, "script.lua"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert message in done.stdout + done.stderr
    assert done.returncode == exit_code
