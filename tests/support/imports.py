"""Results of other tools, as they write them."""

import json
from pathlib import Path

from p4perf.evaluation.load.histogram import LatencyHistogram, encode

HEADER = "Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes"


def counter_csv(rates, *, direction="RX", device="Device: id=0", total=None, finished=True, header=True):
    """The CSV of a MoonGen counter: a row for each rate [Mpps]; the mean row if it was finished."""
    rows = [HEADER] if header else []
    packets = 0
    for second, rate in enumerate(rates):
        packets += int(rate * 1e6)
        rows.append(counter_row(1599232462 + second, device, direction, rate, packets))
    if finished:
        mean = sum(rates[1:]) / len(rates[1:]) if len(rates) > 1 else float("nan")
        rows.append(counter_row(1599232462 + len(rates), device, direction, mean, packets if total is None else total))
    return "\n".join(rows) + "\n"


def counter_row(time, device, direction, rate, packets):
    return f"{time},{device},{direction},{rate:.14g},{rate * 512:.14g},{rate * 672:.14g},{packets},{packets * 64}"


def make_pos(folder, runs, *, sent=None, node="loadgen", repr_loop=False, status="finished"):
    """A result folder of pos: ``runs`` are pairs of loop variables and the received rate [Mpps]."""
    path = Path(folder, "2020-10-07_23-22-39_868017")
    (path / "config").mkdir(parents=True)
    (path / "config" / "allocation.json").write_text('{"token": "secret"}')
    for name in (node, "dut"):
        (path / name).mkdir()
        (path / name / "bootstrap.stdout").write_text("ready\n")
    digits = len(str(len(runs)))
    for number, (loop, rate) in enumerate(runs):
        run = f"run{number:0{digits}d}"
        for name in (node, "dut"):
            base = path / name / f"2020-10-07_23-27-11_423961_unknown_{run}"
            text = repr(loop) if repr_loop else json.dumps(loop)
            for suffix, content in ((".loop", text), (".status", status), (".file", "#!/bin/sh\n")):
                base.with_name(base.name + suffix).write_text(content)
            base.with_name(base.name + ".stdout").write_text("b'send packets\\nexperiment successful\\n'")
            base.with_name(base.name + ".stderr").write_text("b''")
        (path / node / f"loadgen_{run}").write_text("['bash', '-c', 'MoonGen']")
        rates = [rate * 0.9, rate, rate, rate]
        total = int(sum(rates) * 1e6)
        (path / node / f"throughput-rx_{run}.csv").write_text(counter_csv(rates, total=total))
        if sent is not None:
            text = counter_csv(rates, direction="TX", total=sent * total)
            (path / node / f"throughput-tx_{run}.csv").write_text(text)
    return path


def histogram(latencies):
    """The histogram of MoonGen: latency [ns] and count."""
    return "".join(f"{ns},{count}\n" for ns, count in sorted(latencies.items()))


LOG = """\x1b[1;37m[INFO]  Found 2 usable devices:\x1b[0m
   Device 0: 52:54:00:C9:E4:6A (\x1b[0;32mRed Hat, Inc Virtio network device\x1b[0m)
\x1b[0;34m[Device: id=1] TX\x1b[0m: 0.0085 Mpps, 5.16 Mbit/s (6.52 Mbit/s with framing)
\x1b[1;36m[Device: id=0] RX\x1b[0m: 0.0085 Mpps, 5.16 Mbit/s (6.52 Mbit/s with framing)
\x1b[1;36m[Device: id=0] RX\x1b[0m: 0.0001 Mpps, 0.08 Mbit/s (0.10 Mbit/s with framing)
300000
\x1b[1;36m[Device: id=0] RX\x1b[0m: 0.0097 (StdDev 0.0018) Mpps, 5.26 (StdDev 1) Mbit/s (6.81 Mbit/s with framing), \
total 240000 packets with 20400308 bytes (incl. CRC)
\x1b[0;34m[Device: id=1] TX\x1b[0m: 0.0096 (StdDev 0.0018) Mpps, 5.85 (StdDev 1) Mbit/s (7.39 Mbit/s with framing), \
total 300000 packets with 22800000 bytes (incl. CRC)
"""
"""What MoonGen prints; a fifth is lost."""


def trex_stats(*, sent=1_000_000, received=999_000, rx_pps=0.0, latency=True):
    """What ``get_stats()`` of TRex's stateless client returns, as JSON."""
    port = {"opackets": sent, "ipackets": 0, "tx_pps": 2e6, "rx_pps": 0.0, "oerrors": 0, "ierrors": 0}
    total = {**port, "ipackets": received, "rx_pps": rx_pps}
    stats = {
        "0": port,
        "1": {**port, "opackets": 0, "ipackets": received},
        "global": {"cpu_util": 20.1, "bw_per_core": 3.1, "queue_full": 0, "tx_pps": 2e6, "rx_pps": rx_pps},
        "total": total,
        "flow_stats": {"global": {"rx_err": {"0": 0}}},
    }
    if latency:
        inner = {"average": 20.5, "histogram": {"20": 7, "30": 1}, "jitter": 2, "last_max": 25}
        inner |= {"total_max": 33.0, "total_min": 12.0}
        errors = {"dropped": 0, "dup": 0, "out_of_order": 0, "seq_too_high": 0, "seq_too_low": 0}
        stats["latency"] = {"5": {"latency": inner, "err_cntrs": errors}, "global": {"old_flow": 0, "bad_hdr": 0}}
    return json.dumps(stats)


def trex_bench(*, pdr=0.0, drop=0.0, tx_pps=8_000_000.0, size=64, cores=2):
    """What ``ndr_bench`` of TRex writes."""
    results = {
        "queue_full_percentage": 0.0, "drop_rate_percentage": drop, "valid_latency": True, "rate_tx_bps": 4.1e9,
        "rate_rx_bps": 4.1e9, "tx_util": 54.0, "latency": {}, "cpu_util": 31.0, "tx_pps": tx_pps, "bw_per_core": 12.0,
        "rx_pps": tx_pps, "rate_p": 54.0, "total_tx_L1": 5.4e9, "total_rx_L1": 5.4e9, "tx_bps": 4.1e9, "rx_bps": 4.1e9,
        "total_iterations": 6, "max_rate_bps": 7.6e9, "iteration": 6, "ndr_points": [4.1e9], "title": "l2fwd",
    }  # fmt: skip
    config = {
        "iteration_duration": 20.0, "q_full_resolution": 2.0, "first_run_duration": 20.0, "pdr": pdr, "pdr_error": 1.0,
        "ndr_results": 1, "max_iterations": 10, "ports": [0, 1], "cores": cores, "total_cores": 2, "verbose": False,
        "bi_dir": False, "plugin_file": None, "tunables": {"packet_len": size, "vm": None}, "opt_binary_search": False,
        "title": "l2fwd", "opt_binary_search_percentage": 5,
    }  # fmt: skip
    return json.dumps({"results": results, "config": config})


_US = LatencyHistogram.from_values([10, 40, 80], [900, 90, 10])
HDRH = encode(_US.layout, _US.counts)
"""A histogram as CSIT has it: its values are microseconds."""


def csit_test(kind="ndrpdr", *, test="ethip4-ip4scale20k", size=64, cores=1, rate=10e6, passed=True, **changes):
    """A test case of CSIT in version 1.5.1 of its model, as an object."""
    pps = lambda value: {"rate": {"value": value, "unit": "pps"}, "bandwidth": {"value": value * 672, "unit": "bps"}}  # noqa: E731
    latency = {
        name: {"avg": 10 + index, "hdrh": HDRH, "max": 90 + index, "min": 4, "unit": "us"}
        for index, name in enumerate(("pdr_0", "pdr_10", "pdr_50", "pdr_90"))
    }
    results = {
        "ndrpdr": {
            "type": "ndrpdr",
            "ndr": {"lower": pps(rate)},
            "pdr": {"lower": pps(rate * 1.1)},
            "latency_forward": latency,
            "latency_reverse": latency,
        },
        "mrr": {
            "type": "mrr",
            "receive_rate": {"rate": {"values": [rate, rate * 1.01], "avg": rate, "stdev": 1.0, "unit": "pps"}},
        },
        "soak": {"type": "soak", "critical_rate": {"lower": pps(rate)}},
        "unknown": {"type": "unknown"},
    }
    name = f"{size}b-{2 * cores}t{cores}c-{test}-{kind}"
    case = {
        "version": "1.5.1", "dut_type": "VPP", "dut_version": "24.06-rc0", "tg_type": "TREX", "tg_version": "v3.03",
        "hosts": ["10.30.51.50"], "start_time": "2026-01-01T00:00:00.0Z", "end_time": "2026-01-01T00:10:00.0Z",
        "duration": 600.0, "telemetry": [], "message": "" if passed else "no VPP", "passed": passed, "tags": ["64B"],
        "test_documentation": "", "test_id": f"tests.vpp.perf.ip4.2n1l-10ge2p1x710-{test}-{kind}.{name}",
        "test_name_long": f"10ge2p1x710-{size}b-{2 * cores}t{cores}c-{test}", "test_name_short": test,
        "test_type": kind, "result": results[kind],
    }  # fmt: skip
    return {**case, **changes}
