"""The MoonGen scripts of every experiment of the catalogue: they run, and what they send is right to the last byte.

What a frame has to be is calculated here from headers and values, by itself: not by the code that makes the scripts.
"""

import math
import re
from dataclasses import dataclass, replace
from itertools import islice

import pytest
from support.moongen import run_script, scripts, why_not
from support.sampling import sampled

from p4perf.errors import CapabilityError
from p4perf.experiment import point_workload
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import ACCEPT
from p4perf.specs import list_catalogue, load_experiment

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

REFUSED: dict[str, tuple[int, str]] = {
    "composition/context": (8, "the scripts draw one number"),
    "composition/more-programs": (39, "the scripts draw one number"),
    "composition/programs": (24, "the scripts draw one number"),
}
"""Experiments with points for which there are no scripts: how many, and a pattern of the reason."""

EXPERIMENTS = [entry.name for entry in list_catalogue()]
FIRST = {name.partition("/")[0]: name for name in reversed(EXPERIMENTS)}.values()
"""One experiment of each folder of the catalogue."""
FRAMES = 1500
"""Frames that the link takes in a second."""

INTERPRETED = 20
SIGMAS = 5
MAX_LOAD = ("0", "1", "-t", "1", "-w", "0", "-q", "1")
LATENCY = ("0", "1", "-t", "1", "-w", "0", "-q", "2", "-r", "0.0005", "-i", "0.1")


@dataclass(frozen=True)
class Place:
    """A field in the frame: where it begins, in bits, how wide it is, what it holds and how much of that stays."""

    start: int
    width: int
    value: int
    free_bits: int = 0
    varies: bool = False

    def of(self, frame):
        return int.from_bytes(frame) >> (8 * len(frame) - self.start - self.width) & ((1 << self.width) - 1)


class Layout:
    """All fields of the frames of a workload, in order."""

    def __init__(self, workload):
        self.workload = workload
        program, packets = workload.program, workload.packets
        varying = {(v.field.header, v.field.field): v for v in packets.varying}
        self.places, at = [], 0
        for carried in packets.headers:
            for field in program.header(carried.header).fields:
                value = dict(carried.values).get(field.name, 0)
                found = varying.get((carried.header, field.name))
                free = found.free_bits if found else 0
                self.places.append(Place(at, field.width_bits, value, free, found is not None))
                at += field.width_bits
        assert at % 8 == 0
        self.headers_bytes = at // 8
        self.size = packets.frame_size_bytes - 4
        self.entries = max((v.count for v in packets.varying), default=0)
        self.fields = [p for p in self.places if p.varies]
        assert len(self.fields) == len(packets.varying)

    def check(self, frame):
        """That everything which does not vary is as it should be; return the index that all varying fields hold."""
        assert len(frame) == self.size
        for place in self.places:
            low = (1 << (place.free_bits if place.varies else place.width)) - 1
            assert place.of(frame) & low == place.value & low, f"{place}: {frame.hex()}"
        payload = frame[self.headers_bytes :]
        pattern = self.workload.packets.payload
        assert payload == (pattern * len(frame))[: len(payload)]
        indices = {p.of(frame) >> p.free_bits for p in self.fields}
        assert len(indices) <= 1, "all varying fields hold the same number"
        self.check_network_headers(frame)
        return indices.pop() if indices else 0

    def check_network_headers(self, frame):
        """Lengths and checksums of the protocols that the EtherType announces, and of headers that programs verify."""
        assert not network_faults(frame)
        at = 0
        for carried in self.workload.packets.headers:
            header = self.workload.program.header(carried.header)
            if any(c.header == header.name for c in self.workload.program.verified):
                index = max((p.of(frame) for p in self.fields), default=0)
                right = ones_sum(frame[at : at + header.size_bytes]) == 0xFFFF
                assert right == (index < self.entries), "the checksum is right, except of packets that miss"
            at += header.size_bytes

    def indices(self, frames):
        known = {frame: self.check(frame) for frame in set(frames)}
        return [known[frame] for frame in frames]


def ones_sum(data):
    """The sum of RFC 1071: 0xffff if the checksum inside is right."""
    total = sum(int.from_bytes(data[n : n + 2].ljust(2, b"\0")) for n in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def network_faults(frame):
    """What is wrong with an IPv4 header after the EtherTypes, if there is one."""
    at = 12
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    if frame[at : at + 2] != b"\x08\x00":
        return []
    packet = frame[at + 2 :]
    header = packet[: 4 * (packet[0] & 15)]
    length = int.from_bytes(packet[2:4])
    checks = {
        "version": packet[0] >> 4 == 4 and len(header) >= 20,
        "total length": len(header) <= length <= len(packet),
        "checksum": ones_sum(header) == 0xFFFF,
    }
    return [what for what, right in checks.items() if not right]


def test_faults_of_a_header_are_seen():
    right = bytes.fromhex("02" * 12 + "0800" + "4500001c0000000040110000" + "0a0000010a000102" + "00" * 8)
    checksum = 0xFFFF - ones_sum(right[14:34])
    right = right[:24] + checksum.to_bytes(2) + right[26:]
    assert network_faults(right) == []
    assert network_faults(right[:12] + bytes.fromhex("81000001") + right[12:]) == []
    assert network_faults(right[:33] + b"\1" + right[34:]) == ["checksum"]
    assert network_faults(right[:38]) == ["total length"]


def parsed_bytes(program, frame):
    """How much of a frame the parser of a program takes, state by state."""
    at, state, fields = 0, "start", {}
    while state != ACCEPT:
        known = program.state(state)
        for name in known.extracts:
            for field in program.header(name).fields:
                fields[name, field.name] = Place(at, field.width_bits, 0).of(frame)
                at += field.width_bits
        value = fields[known.select.header, known.select.field] if known.select else None
        state = next((c.next_state for c in known.cases if c.value == value), known.default)
    return at // 8


def check_meaning(layout, frames):
    """What the frames are to the program: it parses all headers, and tables find the entries that they should."""
    program = layout.workload.program
    interpreter = Interpreter(program)
    for frame, index in islice(((f, layout.check(f)) for f in dict.fromkeys(frames)), INTERPRETED):
        hit = not layout.fields or index < layout.entries
        if hit:
            assert parsed_bytes(program, frame) == layout.headers_bytes
        if hit or program.tables:
            assert bool(interpreter.run(frame).sent) == hit


class Runs:
    """Runs of scripts, each text once."""

    def __init__(self, folder, seen):
        self.folder, self.seen = folder, seen

    def __call__(self, layout, traffic, stem, *words):
        text = scripts(layout.workload, traffic)[f"{stem}.lua"]
        if (text, words) in self.seen:
            return None
        self.seen.add((text, words))
        link_mbit = FRAMES * (layout.size + 24) * 8 / 1e6
        result = run_script(text, words, self.folder, link_mbit=link_mbit)
        assert result.complete, result
        assert "fake:" not in result.stdout
        assert result.load()
        return result


@pytest.fixture(scope="module")
def seen():
    return set()


@pytest.fixture
def runs(tmp_path, seen):
    return Runs(tmp_path, seen)


def taken(name):
    """Layout and traffic of the points that there are scripts for."""
    experiment, found, reasons = load_experiment(name), [], []
    for point in experiment.points:
        workload, traffic = point_workload(experiment, point)
        try:
            scripts(workload, traffic)
        except CapabilityError as error:
            reasons.append(error.message)
        else:
            found.append((Layout(workload), traffic))
    expected, pattern = REFUSED.get(name, (0, ""))
    assert len(reasons) == expected, reasons
    assert all(re.search(pattern, reason) for reason in reasons), reasons
    return found


def check_share(layout, traffic, indices):
    """That hits and misses are in range, and as many as they should be."""
    if not layout.fields:
        return
    if traffic.hit_ratio == 1:
        assert max(indices) < layout.entries
    assert max(indices) < 2 * layout.entries
    share = sum(n < layout.entries for n in indices) / len(indices)
    spread = math.sqrt(traffic.hit_ratio * (1 - traffic.hit_ratio) / len(indices))
    assert share == pytest.approx(traffic.hit_ratio, abs=SIGMAS * spread + 1e-9)
    if layout.entries <= FRAMES / 100 and traffic.distribution == "uniform" and traffic.hit_ratio == 1:
        assert set(indices) == set(range(layout.entries))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", sampled(EXPERIMENTS, *FIRST))
def test_both_scripts_of_an_experiment(name, runs):
    points = taken(name)
    chosen = {0, len(points) // 2, len(points) - 1}
    for layout, traffic in [points[n] for n in sorted(chosen)]:
        if load := runs(layout, traffic, "max-load", *MAX_LOAD):
            assert len(load.frames) == pytest.approx(FRAMES, rel=0.1)
            check_share(layout, traffic, layout.indices(load.load()))
            check_meaning(layout, load.load())
        if latency := runs(layout, traffic, "latency", *LATENCY):
            check_share(layout, traffic, layout.indices(latency.load()))
            assert {queue for _, queue, _ in latency.frames} == {0, 1, 2}
            probes = latency.probes()
            assert len(probes) == int(latency.said("probes")["received"]) == 10
            same = 6 if name.startswith("operator/") else 12  # there the source address tells the flow
            assert {(p[:same], p[12:16], len(p)) for p in probes} == {
                (latency.load()[0][:same], bytes.fromhex("88f70002"), layout.size)
            }


@pytest.mark.parametrize("name", sampled(EXPERIMENTS, *FIRST))
def test_all_distributions_of_an_experiment(name, runs):
    """Keys one after the other on one queue and on two, hits and misses, and skewed ones."""
    points = taken(name)
    layout, traffic = points[len(points) // 2]
    if not layout.fields:
        return
    for queues in (1, 2):
        plan = replace(traffic, distribution="sequential", hit_ratio=1.0)
        if done := runs(layout, plan, "max-load", *MAX_LOAD[:-1], queues):
            for queue in range(queues):
                expected = [(queue + n * queues) % layout.entries for n in range(len(done.load(queue)))]
                assert layout.indices(done.load(queue)) == expected
    room = min(1 << (p.width - p.free_bits) for p in layout.fields)
    plans = [replace(traffic, distribution="zipf", zipf_s=1.2, hit_ratio=1.0)]
    if room >= 2 * layout.entries:
        plans += [replace(traffic, distribution=d, hit_ratio=0.6) for d in ("uniform", "single")]
    for plan in plans:
        if done := runs(layout, plan, "max-load", *MAX_LOAD):
            check_share(layout, plan, layout.indices(done.load()))
            check_meaning(layout, done.load())
            if plan.distribution == "single":
                assert set(layout.indices(done.load())) == {0, layout.entries}


@pytest.mark.parametrize("pattern", ["burst", "poisson"])
def test_load_after_a_pause_is_as_before(pattern, tmp_path):
    """Rate control in software does not make up for the pause after the warm-up, nor for the time before it."""
    workload, traffic = point_workload(experiment := load_experiment("load/bursts"), experiment.points[0])
    words = ("0", "1", "-t", "4", "-w", "1", "-q", "1", "-r", "0.001", "-i", "0.1", "-p", pattern, "-b", "16")
    result = run_script(scripts(workload, traffic)["latency.lua"], words, tmp_path, link_mbit=10, times="times")
    assert result.complete
    sent, probes = int(result.said("packets")["sent"]), int(result.said("probes")["sent"])
    spread = 32 if pattern == "burst" else 64 + SIGMAS * math.sqrt(4000)
    assert sent - probes == pytest.approx(4000, abs=spread)
    times = [int(line) / 1e9 for line in (tmp_path / "times").read_text().splitlines()]
    crowd = max(sum(start <= t < start + 0.05 for t in times) for start in [n / 20 for n in range(int(20 * times[-1]))])
    assert crowd < 130, "in 50 ms, where 50 are due on average"


RATES = [
    # Frames of 512 B at 10 Gbit/s: 40.96 Mbit/s are 41, of which one queue gets 11.
    ("0.01", "4", 41),
    ("0.01", "3", 41),
    ("0.0005", "2", 2),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("mpps", "queues", "mbit"), RATES)
@pytest.mark.parametrize("stem", ["max-load", "latency"])
def test_queues_share_a_rate_of_whole_mbits(stem, mpps, queues, mbit, tmp_path):
    """Rate limiters take whole Mbit/s; rates of queues that were cut to these would be too low together."""
    workload = build_workload([], frame_size_bytes=512)
    words = ("0", "1", "-t", "4", "-w", "0", "-q", queues, "-r", mpps, *(["-i", "1"] if stem == "latency" else []))
    result = run_script(scripts(workload, TrafficPlan(512))[f"{stem}.lua"], words, tmp_path, link_mbit=10000)
    assert result.complete
    assert float(result.said("rate")["load_mpps"]) == pytest.approx(mbit / (512 * 8), rel=1e-3)


@pytest.mark.parametrize("stem", ["max-load", "latency"])
def test_rates_that_limiters_do_not_take_are_refused(stem, tmp_path):
    """A limit of 0 Mbit/s would be none."""
    workload = build_workload([], frame_size_bytes=512)
    words = ("0", "1", "-t", "1", "-w", "0", "-q", "5", "-r", "1e-6")
    result = run_script(scripts(workload, TrafficPlan(512))[f"{stem}.lua"], words, tmp_path, link_mbit=10)
    assert result.exit_code == 1
    assert "1e-06 Mpps are too few for rate limiters" in result.stdout
    assert not result.frames
