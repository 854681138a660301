"""Result folders of pos: loop files decide, runs that failed are left out, links stay inside."""

import pytest
from support.imports import LOG, counter_csv, histogram, make_pos

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import ImportOptions, Named, assemble
from p4perf.evaluation.imports.moongen import PosImporter, parse_loop, python_bytes

READER = PosImporter()
RUNS = [({"pkt_sz": size, "pkt_rate": rate}, 10.0 * rate + size / 64) for size in (64, 128) for rate in (1, 2, 3)]


def read(path, **options):
    return READER.read(path, ImportOptions(**options))


def rates(reading):
    return {
        tuple(trial.facts.values()): value.value
        for trial in reading.trials
        for value in trial.values
        if value.metric == "packet_rate"
    }


def reasons(reading):
    return "\n".join(f"{item.place}: {item.reason}" for item in reading.left_out)


@pytest.mark.parametrize("repr_loop", [False, True])
def test_loop_files_tell_the_points(tmp_path, repr_loop):
    path = make_pos(tmp_path, RUNS, sent=2, repr_loop=repr_loop)
    assert READER.recognises(path)
    reading = read(path)
    assert rates(reading) == {tuple(loop.values()): pytest.approx(rate) for loop, rate in RUNS}
    assert {v.value for t in reading.trials for v in t.values if v.metric == "loss_ratio"} == {0.5}
    assert (reading.testbed, reading.target) == ("pos", "")
    used = {file.suffix for file in reading.files}
    assert used == {".loop", ".csv"}
    assert not any("config" in file.parts for file in reading.files)
    assert "bootstrap.stdout: belongs to no run" in reasons(reading)


def test_the_order_of_runs_means_nothing(tmp_path):
    assert rates(read(make_pos(tmp_path, RUNS[::-1]))) == pytest.approx(rates(read(make_pos(tmp_path / "b", RUNS))))


def test_many_runs_have_more_digits(tmp_path):
    path = make_pos(tmp_path, [({"n": n}, float(n + 1)) for n in range(12)])
    assert (path / "loadgen" / "throughput-rx_run00.csv").exists()
    assert len(read(path).trials) == 12


def test_a_run_that_failed_is_left_out(tmp_path):
    path = make_pos(tmp_path, RUNS)
    (path / "dut" / "2020-10-07_23-27-11_423961_unknown_run3.status").write_text("error")
    (path / "dut" / "2020-10-07_23-27-11_423961_unknown_run4.status").unlink()
    reading = read(path)
    assert len(reading.trials) == 4
    assert "run3.status: a command of that run ended as 'error'" in reasons(reading)
    assert "run4.loop: a command of that run has no status" in reasons(reading)


def test_a_run_without_loop_file_is_left_out(tmp_path):
    path = make_pos(tmp_path, RUNS)
    for node in ("loadgen", "dut"):
        (path / node / "2020-10-07_23-27-11_423961_unknown_run0.loop").unlink()
    assert "run 0: has no loop file" in reasons(read(path))


def test_nodes_that_contradict_each_other(tmp_path):
    path = make_pos(tmp_path, RUNS)
    (path / "dut" / "2020-10-07_23-27-11_423961_unknown_run0.loop").write_text('{"pkt_sz": 65, "pkt_rate": 1}')
    with pytest.raises(DataError, match="other values than"):
        read(path)


def test_overload_latencies_and_repetitions_by_their_names(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    node = path / "loadgen"
    for name in ("throughput-rx_run0.csv",):
        (node / name).unlink()
    for repetition in (1, 2, 3):
        (node / f"throughput-max-rx_run0.csv_{repetition}").write_text(counter_csv([1.0, repetition, repetition]))
        (node / f"throughput-max-tx_run0.csv_{repetition}").write_text(counter_csv([1.0, 9.0, 9.0], direction="TX"))
    (node / "histogram-0.1_run0.csv").write_text(histogram({1000: 100}))
    (node / "perf_stat_1_run0.stderr").write_text("cycles\n")
    reading = read(path)
    made = assemble([reading], ImportOptions())
    results = made.points[0].results
    assert [r.values["receive_rate"].value for r in results] == [1, 2, 3]
    assert "latency_p50_at_10" in results[0].values
    assert "perf_stat_1_run0.stderr: is what a command printed" in reasons(reading)


def test_a_rate_at_a_share_of_the_maximum_has_no_metric(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    (path / "loadgen" / "throughput-0.5-rx_run0.csv").write_text(counter_csv([1.0, 2.0, 2.0], total=50))
    (path / "loadgen" / "throughput-0.5-tx_run0.csv").write_text(
        counter_csv([1.0, 2.0, 2.0], direction="TX", total=100)
    )
    made = assemble([read(path)], ImportOptions())
    assert made.points[0].results[0].values["loss_ratio_at_50"].value == 0.5
    assert any("share of the maximum" in item.reason for item in made.left_out)


def test_printed_counters_and_empty_histograms(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    (path / "loadgen" / "throughput-rx_run0.csv").unlink()
    (path / "loadgen" / "throughput_run0.log").write_text(LOG)
    (path / "loadgen" / "histogram_run0.csv").write_text("")
    reading = read(path)
    assert rates(reading) == {(10,): 0.0097}
    assert "histogram_run0.csv: no latency sample" in reasons(reading)


def test_the_user_names_a_file(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    (path / "loadgen" / "2020-10-07_23-27-11_423961_unknown_run0.stdout").write_text(repr(LOG.encode()))
    options = ImportOptions(metrics=(Named("receive_rate", "unknown.stdout"),))
    made = assemble([READER.read(path, options)], options)
    assert made.points[0].results[0].values["receive_rate"].value == 0.0097
    assert made.metrics == ("receive_rate",)


def test_two_files_of_one_metric_have_to_be_told_apart(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    (path / "loadgen" / "other-rx_run0.csv").write_text(counter_csv([1.0, 2.0, 2.0]))
    with pytest.raises(DataError, match="gives packet_rate as well") as caught:
        assemble([read(path)], ImportOptions())
    assert "--metric packet_rate=" in caught.value.hint
    options = ImportOptions(metrics=(Named("packet_rate", "other-rx"),))
    made = assemble([READER.read(path, options)], options)
    assert made.points[0].results[0].values["packet_rate"].value == 2


def test_damage_stops_or_is_left_out(tmp_path):
    path = make_pos(tmp_path, RUNS)
    damaged = path / "loadgen" / "throughput-rx_run2.csv"
    damaged.write_text(damaged.read_text()[:-30])
    with pytest.raises(DataError, match="cells") as caught:
        read(path)
    assert (caught.value.location.line, caught.value.hint) == (6, "--skip-damaged leaves damaged files out")
    reading = read(path, skip_damaged=True)
    assert len(reading.trials) == 5
    assert "is damaged" in reasons(reading)


def test_links_that_lead_out_are_refused(tmp_path):
    path = make_pos(tmp_path, RUNS)
    (tmp_path / "secret").write_text("secret")
    (path / "dut" / "x_run0.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="outside"):
        read(path)
    (path / "dut" / "x_run0.csv").unlink()
    (path / "dut" / "up").symlink_to(tmp_path)
    with pytest.raises(DataError, match="outside"):
        read(path)


def test_folders_that_are_none(tmp_path):
    path = make_pos(tmp_path, RUNS)
    assert not READER.recognises(tmp_path)
    with pytest.raises(DataError, match="not a result folder") as caught:
        read(tmp_path)
    assert str(path) in caught.value.hint


def test_a_share_that_is_none(tmp_path):
    path = make_pos(tmp_path, [({"entries": 10}, 1.0)])
    (path / "loadgen" / "histogram-0.0_run0.csv").write_text(histogram({1000: 100}))
    with pytest.raises(UsageError, match="not a share"):
        read(path)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ('{"pkt_sz": 64, "rate": 1.0, "mode": "lpm"}', {"pkt_sz": 64, "rate": 1, "mode": "lpm"}),
        ("{'pkt_sz': 64, 'rate': 0.5}", {"pkt_sz": 64, "rate": 0.5}),
        ('{"entries": "1000"}', {"entries": 1000}),
        ('{"offload": true}', {"offload": "true"}),
    ],
)
def test_loop_files(tmp_path, text, facts):
    path = tmp_path / "a.loop"
    path.write_text(text)
    assert parse_loop(path) == facts


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", "{}", '{"a": [1]}', '{"a": null, "b": {}}', "__import__('os')", '{"a": 1e999}', "{" * 5000],
)
def test_damaged_loop_files(tmp_path, text):
    path = tmp_path / "a.loop"
    path.write_text(text)
    with pytest.raises(DataError):
        parse_loop(path)


def test_outputs_of_commands_are_bytes_as_python_prints_them(tmp_path):
    assert python_bytes("b'one\\ntwo\\n'\n", tmp_path) == "one\ntwo\n"
    assert python_bytes("plain", tmp_path) == "plain"
    with pytest.raises(DataError, match="bytes"):
        python_bytes("b'one", tmp_path)
