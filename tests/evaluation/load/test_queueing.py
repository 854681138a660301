"""Service times and arrivals from files, runs, models, specs and captures, and what was measured beside the model."""

from dataclasses import replace

import pytest
from support.captures import capture
from support.models import line_model
from support.runs import make_run

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.load import LatencyHistogram, LoggedHistogram, hlog_text
from p4perf.evaluation.load.queue_sources import arrival_law, choose_step_us, service_law
from p4perf.evaluation.load.queueing import System, nearest, operating_points, read_measured, steps_of
from p4perf.evaluation.plots.queue import comparison_figure, queue_figures
from p4perf.models import Quantity


def write(path, text):
    path.write_text(text)
    return str(path)


class TestServiceTimes:
    @pytest.mark.parametrize(
        ("text", "mean", "std"),
        [
            ("det:7us", 7, 0),
            ("det: 7000 ns", 7, 0),
            ("exponential:20us", 20, 20),
            ("exp:20us", 20, 20),
            ("gamma:20us,0.5", 20, 10),
            ("geometric:20us", 20, 20 * (1 - 1 / 20) ** 0.5),
            ("poisson-pmf:16us", 16, 4),
            ("nbin:16us", 16, 16),
        ],
    )
    def test_names(self, text, mean, std):
        law = service_law(text)
        assert law.mean_us == mean
        found = law.on_lattice(1.0)
        assert found.mean == pytest.approx(mean, rel=1e-9)
        assert found.std == pytest.approx(std, abs=0.02)

    @pytest.mark.parametrize(
        "text",
        ["det:7", "det:-7us", "gamma:7us", "gamma:7us,x", "det:7us,1", "exponential:0us", "nothing", "det:7 cats"],
    )
    def test_refusals(self, text):
        with pytest.raises(UsageError):
            service_law(text)

    def test_data(self, tmp_path):
        samples = write(tmp_path / "a.csv", "time_ns\n1000\n3000\n")
        assert service_law(samples).mean_us == pytest.approx(2)
        counts = write(tmp_path / "b.csv", "kind,t_us,count\na,1,3\na,2,1\nb,9,5\n")
        law = service_law(f"{counts}[kind=a]")
        assert law.mean_us == pytest.approx(1.25)
        assert law.on_lattice(1.0).dense(3).tolist() == [0, 0.75, 0.25]
        assert service_law(counts).mean_us == pytest.approx(50 / 9)

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("t_us,prob\n1,0.5\n2,0.4\n", "sum to 0.9"),
            ("t_us,prob\n1,-0.5\n2,1.5\n", "not a number of zero or more"),
            ("t_us\n-3\n", "not a number of zero or more"),
            ("t_us\nx\n", "not a number"),
            ("a,b\n1,2\n", "column of times"),
            ("a_us,b_us\n1,2\n", "column of times"),
            ("", "empty"),
            ("1\n2\n", "header"),
        ],
    )
    def test_damaged_data(self, tmp_path, text, what):
        with pytest.raises(DataError, match=what):
            service_law(write(tmp_path / "a.csv", text))

    def test_rows_that_are_not_there(self, tmp_path):
        path = write(tmp_path / "a.csv", "kind,t_us\na,1\n")
        for wrong in ("[kind=b]", "[other=a]", "[kind]"):
            with pytest.raises(UsageError):
                service_law(path + wrong)

    def test_histograms(self, tmp_path):
        first = LatencyHistogram.from_values([1000, 1000, 3000])
        second = LatencyHistogram.from_values([5000])
        log = write(tmp_path / "a.hlog", hlog_text([LoggedHistogram(first, "a"), LoggedHistogram(second, "b")]))
        assert service_law(f"{log}[tag=b]").mean_us == pytest.approx(5, rel=1e-3)
        with pytest.raises(UsageError, match="which histogram"):
            service_law(log)
        moongen = write(tmp_path / "histogram.csv", "1000,2\n3000,1\n")
        assert service_law(moongen).mean_us == pytest.approx(5 / 3, rel=1e-3)

    def test_runs(self, tmp_path):
        run = make_run(tmp_path, lambda x: 100 + x, metrics={"core_frequency": lambda _: 2.0}, noise=0)
        law = service_law(f"run:{run}[entries=100]")
        assert law.mean_us == pytest.approx(0.1)
        assert "200 cycles at 2 GHz" in law.origin
        assert service_law(f"run:{run}[entries=100]", frequency_ghz=1.0).mean_us == pytest.approx(0.2)
        for wrong in ("", "[entries=7]", "[rules=1]"):
            with pytest.raises(UsageError):
                service_law(f"run:{run}{wrong}")

    def test_a_run_without_a_frequency(self, tmp_path):
        run = make_run(tmp_path, lambda x: 100 + x, noise=0)
        with pytest.raises(UsageError, match="frequency"):
            service_law(f"run:{run}[entries=100]")

    def test_models(self, tmp_path):
        cycles = Quantity("cycles_per_packet", "cycles/packet")
        model = replace(line_model((10.0, 2.0, 1.0, 9.0)), y=cycles)
        path = write(tmp_path / "model.json", model.to_json())
        at = f"model:{path}[x=4]"
        wanted = float(model.evaluate([4.0])[0]) / 2.0 / 1e3
        law = service_law(at, frequency_ghz=2.0)
        assert law.mean_us == pytest.approx(wanted)
        assert "beyond" in service_law(f"model:{path}[x=99]", frequency_ghz=2.0).origin
        for text, frequency in ((at, None), (f"model:{path}", 2.0), (f"model:{path}[x=a]", 2.0)):
            with pytest.raises(UsageError):
                service_law(text, frequency_ghz=frequency)


def arrivals(path, times_us):
    return capture(path, [bytes(60)] * len(times_us), times_us=times_us)


class TestArrivals:
    def test_names(self):
        assert arrival_law("poisson", 1e5).kind == "exponential"
        assert arrival_law("poisson-pmf", 1e5).kind == "poisson-pmf"
        assert arrival_law("cbr", 1e5).mean_us == 10
        with pytest.raises(UsageError, match="how many"):
            arrival_law("poisson", None)
        with pytest.raises(UsageError, match="unknown arrivals"):
            arrival_law("pareto", 1e5)

    def test_captures(self, tmp_path):
        path = arrivals(tmp_path / "a.pcap", [0, 1, 2, 3, 40])
        law = arrival_law(f"pcap:{path}", None)
        assert law.mean_us == pytest.approx(10)
        assert law.ordered
        assert law.values_us[:4] == (1.0, 1.0, 1.0, 37.0)
        assert arrival_law(f"pcap:{path}", 2e5).values_us[0] == pytest.approx(0.5)

    def test_specs(self, tmp_path):
        head = (
            "name: a\nmetrics: {collect: [loss_ratio]}\nsweep: {entries: [100]}\n"
            "program: {component: match_action_table, parameters: {entries: $entries}}\n"
        )
        poisson = write(tmp_path / "a.yaml", head + "traffic: {pattern: poisson, offered_load: {rate_mpps: 0.5}}\n")
        assert arrival_law(f"spec:{poisson}", None).kind == "exponential"
        assert arrival_law(f"spec:{poisson}", None).mean_us == pytest.approx(2)
        text = "traffic: {pattern: burst, burst: {length: 4, spacing_ns: 100}, offered_load: {rate_mpps: 0.5}}\n"
        burst = arrival_law(f"spec:{write(tmp_path / 'b.yaml', head + text)}", None)
        assert burst.ordered
        assert burst.values_us == pytest.approx((0.1, 0.1, 0.1, 7.7))
        with pytest.raises(UsageError, match="share of the highest rate"):
            arrival_law("spec:load/rate", None)
        assert arrival_law("spec:load/rate", 1e6).kind == "det"


class TestLattice:
    def test_a_step_fits_service_and_constants(self):
        assert choose_step_us(service_law("det:7us"), (100.0, 4.0)) == 1
        assert choose_step_us(service_law("det:100ns"), (0.08,)) == pytest.approx(0.01)
        assert choose_step_us(service_law("det:7us"), (), 1e5) == 5

    def test_what_does_not_fit(self):
        with pytest.raises(UsageError, match="too coarse"):
            steps_of(1.4, 1.0, "the interval")
        system = System(service_law("det:7us"), "moderated", 20.0)
        with pytest.raises(UsageError, match="too coarse"):
            operating_points(system, [arrival_law("poisson", 1e4)], [100.0])


class TestMeasured:
    def test_repetitions(self, tmp_path):
        path = tmp_path / "m.csv"
        path.write_text("interarrival_us,mean_us,loss\n10,80,0\n10,82,0.1\n5,90,0\n")
        slow, fast = read_measured(path)
        assert slow.rate_mpps == pytest.approx(0.1)
        assert slow.values["mean_us"].value == 81
        assert slow.values["mean_us"].half_width == pytest.approx(12.706, rel=1e-3)
        assert fast.row()["measured_mean_us_ci"] is None
        assert nearest([slow, fast], 0.2) is fast
        assert nearest([slow, fast], 0.3) is None

    @pytest.mark.parametrize(
        "text", ["a,b\n1,2\n", "rate_mpps,mean_us\n", "rate_mpps,mean_us\n0,1\n", "rate_mpps,mean_us\n1,x\n"]
    )
    def test_damage(self, tmp_path, text):
        path = tmp_path / "m.csv"
        path.write_text(text)
        with pytest.raises(DataError):
            read_measured(path)

    def test_runs(self, tmp_path):
        metrics = {
            "latency_mean": lambda x: 5 + x / 100,
            "offered_rate": lambda x: x / 100,
            "loss_ratio": lambda _: 0.0,
        }
        run = make_run(tmp_path, lambda x: 4 + x / 100, metrics=metrics, metric="latency_p50", noise=0)
        found = read_measured(run)
        assert found[0].values["p50_us"].value == pytest.approx(4.01)
        assert found[0].values["mean_us"].value == pytest.approx(5.01)
        with pytest.raises(UsageError, match="no latency"):
            read_measured(make_run(tmp_path / "other", lambda x: x))
        with pytest.raises(UsageError, match="there is no"):
            read_measured(tmp_path / "nothing")


def test_figures(tmp_path):
    """Which figures there are follows from the points; all are drawn without a warning."""
    system = System(service_law("det:7us"), "moderated", 1.0, 4.0, 300.0)
    laws = [arrival_law(kind, rate) for kind in ("det", "poisson") for rate in (0.05e6, 0.15e6)]
    points = operating_points(system, laws, [50.0, 100.0], packets=20_000)
    path = tmp_path / "m.csv"
    path.write_text("rate_mpps,mean_us,loss\n0.05,80,0\n0.05,82,0\n0.15,300,0.1\n")
    measured = read_measured(path)
    assert set(queue_figures(points, measured)) == {"cdf", "delay", "loss", "measured"}
    assert set(queue_figures(points[:1])) == {"cdf"}
    labels = [text.get_text() for text in queue_figures(points)["delay"].legends[0].get_texts()]
    assert labels == ["moderation 50 µs", "moderation 100 µs", "arrivals det", "arrivals poisson"]
    with pytest.raises(UsageError):
        queue_figures([])
    with pytest.raises(UsageError):
        comparison_figure(points, [])


def test_a_trace_too_wild_to_analyse_is_still_simulated(tmp_path):
    """A ring of thousands with gaps of thousands of steps has too many states."""
    path = arrivals(tmp_path / "a.pcap", [0, 1, 2, 3, 900])
    law = arrival_law(f"pcap:{path}", None)
    system = System(service_law("det:7us"), "poll", 1.0, ring=4096, empty_poll_us=1.0)
    with pytest.raises(UsageError, match="states"):
        operating_points(system, [law], [])
    (point,) = operating_points(system, [law], [], packets=20_000)
    assert point.result is None
    assert point.row()["mean_us"] is None
    assert point.row()["simulated_mean_us"] > 7
