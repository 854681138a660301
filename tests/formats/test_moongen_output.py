"""What a run of MoonGen left, good and bad."""

import pytest

from p4perf.errors import MeasurementError
from p4perf.formats.moongen import read_output, without_colours

HEADER = "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes"
UP = "\x1b[1;37m[INFO]  \x1b[0;32m2 devices are up.\x1b[0m\x1b[0m"


def counter(direction, *rates):
    """A finished file: the mean of the rows from the second on is the last one."""
    rows = [*rates, sum(rates[1:]) / len(rates[1:])]
    lines = [f"{1600000000 + n},Device: id=0,{direction},{rate!r},1,1,{n},{n}" for n, rate in enumerate(rows)]
    return "\n".join([HEADER, *lines]) + "\n"


FILES = {"latency-tx.csv": counter("TX", 1.0, 2.0, 2.0), "latency-rx.csv": counter("RX", 1.0, 1.5, 1.5)}
SAID = [UP, "P4PERF packets sent=1000 received=990", "P4PERF probes sent=10 received=8 lost=2", "P4PERF COMPLETE"]


def test_a_complete_run():
    files = {**FILES, "histogram.csv": "410,3\n400.5,5\n"}
    output = read_output("\n".join(SAID), files, 0)
    assert (output.sent, output.received, output.probes_sent, output.probes_lost) == (1000, 990, 10, 2)
    assert (output.send_rate_mpps, output.receive_rate_mpps) == (2.0, 1.5)
    assert output.latencies_ns == ((400.5, 5), (410.0, 3))


def test_a_run_without_probes_has_no_latencies():
    lines = [line for line in SAID if "probes" not in line]
    output = read_output("\n".join(lines), {**FILES, "histogram.csv": "410,3\n"}, 255)
    assert output.latencies_ns == ()
    assert output.probes_sent == 0


@pytest.mark.parametrize(
    ("lines", "files", "message"),
    [
        (["[FATAL] Lua error in task probeTask: no timestamps", *SAID], FILES, "MoonGen failed: .*probeTask"),
        (["Lua error: boom"], FILES, "MoonGen failed: Lua error: boom"),
        (["\x1b[31m[ERROR] Device 1 (00:1B:21:BE:39:14) is DOWN: 0 MBit/s\x1b[0m", *SAID], FILES, "link .* down: "),
        (SAID[:-1], FILES, "ended with status 7 before its script was complete: .*probes"),
        ([], FILES, "before its script was complete: no output"),
        ([SAID[0], *SAID[2:]], FILES, "did not say its packets"),
        ([SAID[0], "P4PERF packets sent=nan received=1", *SAID[2:]], FILES, "sent='nan'"),
        ([SAID[0], "P4PERF packets received=1", *SAID[2:]], FILES, "sent=''"),
        (SAID, {**FILES, "latency-rx.csv": ""}, "latency-rx.csv is empty: MoonGen ended before its first row"),
        (SAID, {"latency-tx.csv": FILES["latency-tx.csv"]}, "left no file of its rx counter"),
        (SAID, {**FILES, "latency-rx.csv": HEADER + "\n1,Device: id=0,RX,nan,1,1,2,2\n"}, "too few rows"),
        (SAID, {**FILES, "latency-tx.csv": HEADER + "\n1,Device: id=0,TX,x,1,1,2,2\n"}, "latency-tx.csv:2: .* number"),
        (SAID, {**FILES, "histogram.csv": "410,3\nlatency,count\n"}, "histogram.csv:2: .*latency,count"),
    ],
)
def test_a_run_that_failed(lines, files, message):
    with pytest.raises(MeasurementError, match=message):
        read_output("\n".join(lines), files, 7)


def test_colours():
    assert without_colours(UP) == "[INFO]  2 devices are up."
