"""JSON of TRex and of CSIT."""

import json

import pytest
from support.imports import csit_test, trex_bench, trex_stats

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import ImportOptions, Named, assemble
from p4perf.evaluation.imports.assembly import read_sources, recognise
from p4perf.evaluation.imports.base import convert
from p4perf.evaluation.imports.json_results import CsitImporter, TrexImporter

TREX, CSIT = TrexImporter(), CsitImporter()


def read(reader, path, content, **options):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    assert reader.recognises(path)
    return reader.read(path, ImportOptions(**options))


def values(reading):
    """Values by metric, in the metric's unit."""
    found = [value for trial in reading.trials for value in trial.values if value.metric]
    return {value.metric: convert(value.value, value.unit, value.metric) for value in found}


def reasons(reading):
    return "\n".join(f"{item.place}: {item.reason}" for item in reading.left_out)


# --- TRex


def test_statistics_after_the_traffic(tmp_path):
    reading = read(TREX, tmp_path / "stats.json", trex_stats())
    assert values(reading) == {"loss_ratio": pytest.approx(0.001), "latency_min": 12.0, "latency_max": 33.0}
    assert "total.rx_pps: is 0: the traffic had stopped" in reasons(reading)
    assert "latency.5.latency.average" in reasons(reading)


def test_statistics_during_the_traffic_have_no_loss(tmp_path):
    reading = read(TREX, tmp_path / "stats.json", trex_stats(rx_pps=1.5e6))
    assert values(reading)["packet_rate"] == 1.5
    assert "loss_ratio" not in values(reading)
    made = assemble([reading], ImportOptions())
    assert any("under way" in item.reason for item in made.left_out)


@pytest.mark.parametrize(("sent", "received"), [(0, 0), (10, 11)])
def test_a_loss_that_cannot_be(tmp_path, sent, received):
    reading = read(TREX, tmp_path / "stats.json", trex_stats(sent=sent, received=received, latency=False))
    assert reading.trials == ()
    assert "the loss is not known" in reasons(reading)


def test_streams_without_a_sample(tmp_path):
    stats = json.loads(trex_stats())
    stats["latency"]["5"]["latency"] |= {"total_max": 0, "total_min": 0}
    reading = read(TREX, tmp_path / "stats.json", stats)
    assert set(values(reading)) == {"loss_ratio"}
    assert "no latency was sampled" in reasons(reading)


@pytest.mark.parametrize(("pdr", "metric"), [(0.0, "throughput_ndr"), (0.5, "throughput_pdr"), (0.1, None)])
def test_the_loss_that_a_benchmark_accepts_decides_what_it_found(tmp_path, pdr, metric):
    reading = read(TREX, tmp_path / "ndr.json", trex_bench(pdr=pdr))
    found = values(reading)
    assert {m: v for m, v in found.items() if m.startswith("throughput")} == ({metric: 8.0} if metric else {})
    assert reading.trials[0].facts == {"packet_len": 64, "cores": 2, "title": "l2fwd"}
    if metric is None:
        options = ImportOptions(metrics=(Named("throughput_ndr", "tx_pps"),))
        made = assemble([reading], options)
        assert made.points[0].results[0].values["throughput_ndr"].value == 8.0


def test_a_benchmark_that_found_nothing(tmp_path):
    reading = read(TREX, tmp_path / "ndr.json", trex_bench(pdr=0.1, drop=3.0))
    assert reading.trials == ()
    assert "found no load" in reasons(reading)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda s: s["total"].pop("ipackets"), "total.ipackets"),
        (lambda s: s["total"].update(rx_pps="fast"), "total.rx_pps"),
        (lambda s: s["total"].update(opackets=-1), "total.opackets"),
        (lambda s: s["total"].update(opackets=True), "total.opackets"),
        (lambda s: s["total"].update(opackets=10**400), "total.opackets"),
        (lambda s: s.update(latency=[]), "latency"),
        (lambda s: s["latency"].update({"5": {}}), "latency.5.latency"),
    ],
)
def test_damaged_statistics_name_the_key(tmp_path, change, key):
    stats = json.loads(trex_stats())
    change(stats)
    with pytest.raises(DataError) as caught:
        read(TREX, tmp_path / "stats.json", stats)
    assert (caught.value.key, caught.value.location.file) == (key, str(tmp_path / "stats.json"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{", ":1:2"),
        ("[1]", "not a JSON object"),
        ('{"total": {"opackets": NaN}}', "NaN"),
        ("{'total': 1}", "not valid JSON"),
        ("{}", "not JSON of TRex"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_json_of_trex(tmp_path, text, said):
    path = tmp_path / "stats.json"
    path.write_text(text)
    assert not TREX.recognises(path)
    with pytest.raises(DataError, match=said):
        TREX.read(path, ImportOptions())


# --- CSIT


def test_bounds_and_latencies(tmp_path):
    reading = read(CSIT, tmp_path / "a.info.json", csit_test())
    found = values(reading)
    assert found["throughput_ndr"] == 10.0
    assert found["throughput_pdr"] == 11.0
    assert {m for m in found if m.endswith("_at_90")} == {
        f"latency_{s}_at_90" for s in ("min", "mean", "max", "p50", "p75", "p90", "p95", "p99")
    }
    assert found["latency_p50_at_90"] == pytest.approx(10, rel=2e-3)
    assert found["latency_p95_at_90"] == pytest.approx(40, rel=2e-3)
    assert found["latency_mean_at_10"] == 11
    assert (reading.target, reading.testbed) == ("vpp", "csit")
    assert reading.trials[0].facts == {
        "frame_size": 64, "cores": 1, "threads": 2, "nic": "10ge2p1x710", "test": "ethip4-ip4scale20k", "dut": "vpp",
        "dut_version": "24.06-rc0",
    }  # fmt: skip
    assert "latency_reverse" in reasons(reading)


def test_a_histogram_that_cannot_be_read_is_left_out(tmp_path):
    case = csit_test()
    case["result"]["latency_forward"]["pdr_50"]["hdrh"] = "HISTFAAAAB"
    reading = read(CSIT, tmp_path / "a.json", case)
    assert "latency_p50_at_50" not in values(reading)
    assert "pdr_50.hdrh: the histogram is not in the encoding V2" in reasons(reading)


def test_trials_of_mrr_are_repetitions(tmp_path):
    reading = read(CSIT, tmp_path / "a.json", csit_test("mrr"))
    (point,) = assemble([reading], ImportOptions()).points
    assert [r.values["receive_rate"].value for r in point.results] == [10.0, pytest.approx(10.1)]
    assert point.results[1].values["receive_rate"].place.key == "result.receive_rate.rate.values[1]"


def test_a_folder_of_tests_and_a_number_in_their_names(tmp_path):
    for scale, rate in (("20k", 10e6), ("200k", 8e6), ("2m", 5e6)):
        (tmp_path / f"{scale}.info.json").write_text(json.dumps(csit_test(test=f"ethip4-ip4scale{scale}", rate=rate)))
    options = ImportOptions(pattern="ip4scale{entries}-", metrics=(Named("throughput_ndr"),))
    assert CSIT.recognises(tmp_path)
    made = assemble([CSIT.read(tmp_path, options)], options)
    assert made.variables == ("entries",)
    assert [p.values["entries"] for p in made.points] == [20_000, 200_000, 2_000_000]
    with pytest.raises(UsageError, match="does not fit"):
        CSIT.read(tmp_path, ImportOptions(pattern="fib{entries}-"))


def test_what_is_left_out(tmp_path):
    for name, case in {
        "failed": csit_test(passed=False),
        "soak": csit_test("soak"),
        "unknown": csit_test("unknown"),
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(case))
    reading = CSIT.read(tmp_path, ImportOptions())
    assert reading.trials == ()
    for said in ("the test failed: no VPP", "the type 'soak'", "the type 'unknown'"):
        assert said in reasons(reading)


def test_rates_of_connections_are_none_of_packets(tmp_path):
    case = csit_test("mrr")
    case["result"]["receive_rate"]["rate"]["unit"] = "cps"
    reading = read(CSIT, tmp_path / "a.json", case)
    assert reading.trials == ()
    assert "is 'cps', not a rate of packets" in reasons(reading)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda c: c.update(version="2.0.0"), "version"),
        (lambda c: c.pop("version"), "version"),
        (lambda c: c["result"].pop("ndr"), "result.ndr"),
        (lambda c: c["result"]["pdr"]["lower"]["rate"].update(value=None), "result.pdr.lower.rate.value"),
        (lambda c: c["result"]["latency_forward"].update(pdr_10=3), "result.latency_forward.pdr_10"),
        (lambda c: c["result"].update(type=3), "result.type"),
    ],
)
def test_damaged_tests_name_the_key(tmp_path, change, key):
    case = csit_test()
    change(case)
    (tmp_path / "a.json").write_text(json.dumps(case))
    with pytest.raises(DataError) as caught:
        CSIT.read(tmp_path / "a.json", ImportOptions())
    assert caught.value.key == key
    reading = CSIT.read(tmp_path, ImportOptions(skip_damaged=True))
    assert "is damaged" in reasons(reading)


def test_a_folder_without_tests(tmp_path):
    assert not CSIT.recognises(tmp_path)
    with pytest.raises(DataError, match="no JSON files"):
        CSIT.read(tmp_path, ImportOptions())


# --- which reader


def test_kinds_are_told_by_content(tmp_path):
    for kind, text in {
        "trex": trex_stats(),
        "csit": json.dumps(csit_test()),
        "csv": "entries,packet_rate\n1,2\n",
        "moongen": "100,1\n200,3\n",
    }.items():
        (tmp_path / "data.csv").write_text(text)
        assert recognise(tmp_path / "data.csv") == kind


def test_what_no_reader_knows(tmp_path):
    for text, said in (("", "is empty"), ("hello\n", "is of an unknown kind"), ('{"a": 1}', "unknown kind")):
        (tmp_path / "data").write_text(text)
        with pytest.raises(DataError, match=said):
            recognise(tmp_path / "data")


def test_sources_are_of_one_kind_and_there_once(tmp_path):
    (tmp_path / "a.json").write_text(trex_stats())
    (tmp_path / "b.json").write_text(json.dumps(csit_test()))
    with pytest.raises(DataError, match="not of the kind trex"):
        read_sources([tmp_path / "a.json", tmp_path / "b.json"], ImportOptions())
    with pytest.raises(UsageError, match="twice"):
        read_sources([tmp_path / "a.json", tmp_path / "a.json"], ImportOptions())
    with pytest.raises(DataError, match="no such file"):
        read_sources([tmp_path / "absent"], ImportOptions())
    with pytest.raises(UsageError, match="unknown importer 'trax'"):
        read_sources([tmp_path / "a.json"], ImportOptions(), importer="trax")
