"""The MoonGen scripts with the real Lua modules of libmoon, and whether the test double does what these do."""

import re
from dataclasses import replace

import pytest
from support.moongen import Both, moongen_lua, said, scripts, why_no_libmoon

from p4perf.errors import CapabilityError
from p4perf.experiment import point_workload
from p4perf.formats.moongen import read_output
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.specs import list_catalogue, load_experiment

pytestmark = pytest.mark.skipif(why_no_libmoon() is not None, reason=str(why_no_libmoon()))

needs_rate_control = pytest.mark.skipif(
    moongen_lua() is None, reason="P4PERF_LIBMOON is not a part of a checkout of MoonGen"
)

LOAD = ("0", "1", "-t", "4", "-w", "1")
PROBED = (*LOAD, "-r", "0.0005", "-i", "0.05")


@pytest.fixture
def both(tmp_path):
    return Both(tmp_path)


def middle(name):
    experiment = load_experiment(name)
    return point_workload(experiment, experiment.points[len(experiment.points) // 2])


# Frames and files -----------------------------------------------------------------------------------------------------

RUNS = {
    "all keys in order": ("mat/exact-entries", {"distribution": "sequential"}, "max-load", (*LOAD, "-q", "2")),
    "hits and misses": ("mat/hit-ratio", {"hit_ratio": 0.6}, "max-load", (*LOAD, "-q", "4")),
    "skewed keys": ("mat/locality", {}, "max-load", (*LOAD, "-q", "1")),
    "prefixes": ("mat/lpm-entries", {}, "latency", (*PROBED, "-q", "2")),
    "many headers": ("parser/headers", {}, "latency", PROBED),
    "long frames": ("extern/checksum-verify", {"hit_ratio": 0.5}, "max-load", (*LOAD, "-q", "1")),
    "a limited rate": ("mat/exact-entries", {}, "max-load", (*LOAD, "-q", "3", "-r", "0.0006")),
    "one device": ("mat/exact-entries", {}, "latency", ("1", *PROBED[1:])),
    "no warm-up": ("mat/exact-entries", {}, "max-load", (*LOAD[:-1], "0")),
}
CONTROLLED = {
    "poisson": ("mat/exact-entries", {}, "latency", (*PROBED, "-q", "2", "-p", "poisson")),
    "bursts": ("load/bursts", {}, "latency", (*PROBED, "-q", "2", "-b", "16")),
    "spaced bursts": (
        "load/bursts",
        {},
        "latency",
        (*PROBED, "-b", "4", "--burst-spacing", "1e6", "--burst-gap", "9e3"),
    ),
}


@pytest.mark.parametrize(
    "case",
    [*RUNS, *(pytest.param(name, marks=needs_rate_control) for name in CONTROLLED)],
)
def test_the_same_frames_and_files(case, both):
    name, changes, stem, words = (RUNS | CONTROLLED)[case]
    workload, traffic = middle(name)
    real, double = both(scripts(workload, replace(traffic, **changes))[f"{stem}.lua"], *words, lose_probe=9)
    assert real.complete, real
    assert double.complete, double
    same_frames(real, double)
    for file in (f"{stem}-tx.csv", f"{stem}-rx.csv"):
        same_counters(*both.texts(file))
    if stem == "latency":
        first, second = both.texts("histogram.csv")
        assert first == second
        assert both.texts("probes.csv")[0] == both.texts("probes.csv")[1]
    for run, folder in ((real, "real"), (double, "double")):
        files = {f.name: f.read_text() for f in (both.folder / folder).glob("*.csv")}
        output = read_output(run.stdout, files, run.exit_code)
        assert output.sent == int(run.said("packets")["sent"])
        assert (output.probes_lost > 0) == (stem == "latency")
    numbers = re.compile(r"[0-9.e+-]+")
    assert [numbers.sub("#", line) for line in said(real)] == [numbers.sub("#", line) for line in said(double)]


@pytest.mark.parametrize("name", [entry.name for entry in list_catalogue()])
def test_the_same_frames_of_every_experiment(name, both):
    workload, traffic = middle(name)
    traffic = replace(traffic, pattern="cbr")
    link_mbit = -(-workload.packets.frame_size_bytes // 64)
    words = {"max-load.lua": ("-q", "2"), "latency.lua": ("-q", "1", "-r", "0.0004", "-i", "0.1")}
    try:
        rendered = scripts(workload, traffic)
    except CapabilityError as refusal:
        pytest.skip(f"refused: {refusal.message}")
    for file, text in rendered.items():
        real, double = both(text, "0", "1", "-t", "1", "-w", "0", *words[file], link_mbit=link_mbit)
        assert real.complete, real
        same_frames(real, double)


def same_frames(real, double):
    """What each queue sent is the same, but for the end, as the clocks are not quite the same."""
    queues = {queue for _, queue, _ in double.frames}
    assert queues == {queue for _, queue, _ in real.frames}
    for queue in queues:
        a, b = ([data for _, q, data in run.frames if q == queue] for run in (real, double))
        common = min(len(a), len(b))
        assert common > 0.97 * max(len(a), len(b)) - 2
        assert a[:common] == b[:common]


def same_counters(real, double):
    """Two files of a counter: the same header, as many rows of the same form, nearly the same numbers, averages."""
    first, second = ([line.split(",") for line in text.splitlines()] for text in (real, double))
    assert first[0] == second[0]
    assert len(first) == len(second)
    for text in (real, double):
        rates = [float(line.split(",")[3]) for line in text.splitlines()[1:]]
        assert rates[-1] == pytest.approx(sum(rates[1:-1]) / len(rates[1:-1]), rel=1e-9)
    for ours, theirs in zip(first[1:], second[1:], strict=True):
        assert ours[1:3] == theirs[1:3]
        assert re.fullmatch(r"\d{10}", ours[0])
        assert re.fullmatch(r"\d{10}", theirs[0])
        for a, b in zip(ours[3:], theirs[3:], strict=True):
            assert re.fullmatch(r"[0-9.e+-]+", a)
            assert float(a) == pytest.approx(float(b), rel=0.05)


# Arguments ------------------------------------------------------------------------------------------------------------

SHOWING = """
function master(args)
  local names = {}
  for name in pairs(args) do
    table.insert(names, name)
  end
  table.sort(names)
  for _, name in ipairs(names) do
    print("ARG", name, type(args[name]), args[name])
  end
end
"""

ACCEPTED = [
    "0 1",
    "0 1 -r 0.25",
    "-r 0.25 0 1",
    "0 1 --rate=1e-3 -t 5 -w 0.25 -q 3",
    "0 1 -q4 -r1",
    "0 1 -r 1 -r 2",
    "0 1 -r 1 -p burst -b 8 --burst-spacing 100 --burst-gap 20 -i 0.01",
    "0 1 -r 1 --pattern poisson --burst-length 3 --probe-interval 0",
    "0 1 -r 1 --tx-file a.csv --rx-file=b.csv --histogram-file h --probes-file p",
    "0 1 -r 1 --tx-file 007 --rx-file 1e3",
    "-- 0 1",
    "0 0x10",
]
REFUSED = [
    "",
    "0",
    "0 1 2",
    "0 x",
    "0 1.5",
    "0 -1",
    "0 1 -r",
    "0 1 -r -t 5",
    "0 1 -r 0",
    "0 1 -r nan",
    "0 1 -r inf",
    "0 1 -t 0.5",
    "0 1 -q 0",
    "0 1 -q 1.5",
    "0 1 -w -1",
    "0 1 -p random",
    "0 1 -b 0",
    "0 1 --burst-gap -3",
    "0 1 --rate=",
    "0 1 --colour red",
    "0 1 -z",
    "0 1 --runtime",
]


@pytest.fixture(scope="module")
def showing():
    """The latency script, which has all options, with a master that shows its arguments."""
    workload = build_workload([], frame_size_bytes=64)
    return scripts(workload, TrafficPlan(64))["latency.lua"] + SHOWING


@pytest.mark.parametrize("words", ACCEPTED)
def test_options_are_parsed_alike(words, showing, both):
    real, double = both(showing, *words.split())
    assert (real.exit_code, real.stderr) == (double.exit_code, double.stderr) == (0, "")
    shown = [line for line in said(real) if line.startswith("ARG")]
    assert shown == [line for line in said(double) if line.startswith("ARG")]
    assert len(shown) >= 13


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_options_are_refused_alike(words, showing, both):
    real, double = both(showing, *words.split())
    assert real.exit_code == double.exit_code == 1
    message, other = (re.search(r"^Error: (.*)$", run.stderr, re.M) for run in (real, double))
    assert message
    assert other
    assert message[1] == other[1]


def test_help(showing, both):
    for run in both(showing, "-h"):
        assert run.exit_code == 0
        assert "-r" in run.stdout
        assert "ARG" not in run.stdout
