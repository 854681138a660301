"""p4perf predict from the outside: what it prints, writes and refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.command import environment, p4perf
from support.cost_models import write_model

from p4perf.cli.predict import _paths_differ, _warnings
from p4perf.programs.reading.flow import COPY

ONE_TABLE = ["mat/exact-entries", "--set", "entries=[1000]"]
SPEC = """\
struct ethernet_h {
	bit<48> dst
	bit<48> src
	bit<16> type
}
struct metadata_t {
	bit<32> port
}
metadata instanceof metadata_t
header ethernet instanceof ethernet_h
struct forward_args_t {
	bit<32> port
}
action forward args instanceof forward_args_t {
	mov m.port t.port
	return
}
action drop args none {
	drop
	return
}
table fib {
	key {
		h.ethernet.dst exact
	}
	actions {
		forward
		drop
	}
	default_action drop args none
	size 1000
}
apply {
	rx m.port
	extract h.ethernet
	table fib
	emit h.ethernet
	tx m.port
}
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "models").mkdir()
    write_model(tmp_path / "models" / "fake.json")
    (tmp_path / "fib.spec").write_text(SPEC)
    return tmp_path


def predicted(here, *arguments, code=0):
    done = p4perf("predict", *arguments, "--format", "json", cwd=here)
    assert done.code == code, done.err
    return json.loads(done.out) if code == 0 else done


def test_a_point_of_an_experiment_costs_what_its_components_do(here):
    answer = predicted(here, *ONE_TABLE)
    (row,) = answer["rows"]
    assert (row["target"], row["machine"]) == ("fake", "test")
    assert row["cycles"] == pytest.approx(60 + 86)
    assert row["cycles_low"] < 146 < row["cycles_high"]
    assert row["mpps_per_core"] == pytest.approx(2000 / 146)
    (breakdown,) = answer["predictions"][0]["paths"][0]["breakdown"]
    assert breakdown["construct"] == "component"


def test_a_specification_is_priced_by_primitives(here):
    answer = predicted(here, "fib.spec", "--probabilities", "uniform")
    (each,) = answer["predictions"]
    expected, best, worst = each["paths"]
    assert each["source"] == "swx"
    assert {line["part"] for line in expected["breakdown"]} == {"parser", "tables", "actions", "deparser"}
    assert best["cycles"]["value"] <= each["cycles"]["value"] <= worst["cycles"]["value"]
    assert each["model"]["origin"] == "models/fake.json"


CONDITIONS = ("--cores", "4", "--line-rate", "25Gbit/s", "--frame-size", "128")


def test_that_paths_cost_far_more_than_others_is_said(here):
    router = Path(__file__).parents[2] / "examples" / "swx" / "router.spec"
    assumed, sent = (p4perf("predict", router, "-t", "dpdk-swx", *more, cwd=here) for more in ((), ("--traffic",)))
    assert re.search(r"; paths cost \d+ to \d+ cycles", assumed.err)
    assert "paths cost " not in sent.err


def test_the_answer_is_short(here):
    write_model(here / "models" / "other.json", target="fake-small")
    done = p4perf("predict", "fib.spec", cwd=here)
    assert done.code == 0, done.err
    answer, breakdown = done.out.split("cost breakdown of the expected path")
    assert len(answer.splitlines()) == 4, "title, head and one line a target"
    assert 0 < len(breakdown.splitlines()) - 2 <= 7
    assert "lookup" not in done.out
    assert done.err.count("warning: ") <= 3
    assert "assuming that tables hit and packets are sent" in done.err
    assert "paths cost " not in done.err, "they cost about the same"
    assert "p4perf learn --quick" in done.err, "the model is of a machine called test"


@pytest.mark.parametrize("program", ["examples/swx/router.spec", "examples/programs/ipv4_router/ipv4_router.json"])
def test_breakdowns_name_what_is_in_the_program_of_the_user(tmp_path, program):
    targets = ("-t", "dpdk-c", "-t", "dpdk-swx", "-t", "xdp")
    done = p4perf("predict", Path(program).absolute(), *targets, "--traffic", cwd=tmp_path)
    title, head, *lines = done.out.partition("cost breakdown")[2].splitlines()
    assert not re.search(r"@|L_|line_\d| #", done.out)
    assert title.endswith("path [cycles/packet]")
    (routes,) = [line for line in lines if re.match(r"tables +\S*routes ", line)]
    assert len(re.split(r"\s{2,}", routes)) == len(head.split()) == 5, "one row has all targets"


def test_verbose_shows_ways_rates_and_breakdown(here):
    done = p4perf("predict", "fib.spec", *CONDITIONS, "--verbose", "--probabilities", "uniform", cwd=here)
    assert done.code == 0, done.err
    assert "cost breakdown of the expected path" in done.out
    assert "4 cores, 128 B" in done.out
    assert "lookup exact, 1000 entries, 48 bit key" in done.out
    for said in ("lowest-cost path", "highest-cost path", "25 Gbit/s", "Poisson", "model models/fake.json"):
        assert said in done.err


def test_what_if_of_a_table_that_no_packet_meets_says_so(here):
    table = SPEC[SPEC.index("table fib") : SPEC.index("apply {")]
    text = SPEC.replace("apply {", table.replace("table fib", "table rare") + "apply {")
    where = "\tjmpneq USUAL h.ethernet.type 0x800\n\ttable rare\n\tjmp OUT\n\tUSUAL : table fib\n"
    (here / "rare.spec").write_text(text.replace("\ttable fib\n\temit", where + "\tOUT : emit"))
    done = p4perf("predict", "rare.spec", "--set", "rare.entries=10000", cwd=here)
    assert done.code == 0, done.err
    assert "rare.entries=10000 on fake@test: nothing differs on the expected path" in done.err
    assert "nothing to show" not in done.out


@pytest.mark.thorough
def test_what_if_shows_both_and_the_difference(here):
    answer = predicted(here, "fib.spec", "--set", "fib.entries=10000", "--probabilities", "uniform")
    before, after = answer["rows"]
    assert (before["change"], after["change"]) == ("", "fib.entries=10000")
    (difference,) = answer["differences"]
    assert difference["cycles"]["value"] == pytest.approx(after["cycles"] - before["cycles"])
    assert difference["cycles"]["value"] == pytest.approx(10)
    assert [line["node"] for line in difference["lines"]] == ["fib"]


@pytest.mark.thorough
def test_memory_stands_beside_the_breakdown(here):
    write_model(here / "models" / "dpdk.json", target="dpdk-c")
    arguments = ("fib.spec", "--target", "dpdk-c", "--probabilities", "uniform")
    answer = predicted(here, *arguments)
    (each,), (row,) = answer["predictions"], answer["rows"]
    (table,) = each["memory"]
    assert (table["what"], table["basis"]) == ("table fib", "formula")
    assert table["bytes"] == each["memory_bytes"] == row["memory_bytes"] > 1000 * (64 + 16)
    larger = predicted(here, *arguments, "--set", "fib.entries=1e6")["rows"]
    assert larger[1]["memory_bytes"] > 500 * larger[0]["memory_bytes"]
    assert predicted(here, *arguments, "--without", "fib")["rows"][1]["memory_bytes"] == 0
    done = p4perf("predict", *arguments, "--verbose", cwd=here)
    assert "fib: memory" in done.out
    assert "layout of DPDK 22.11" in done.out
    assert "memory: " in done.err


def test_without_a_table(here):
    answer = predicted(here, "fib.spec", "--without", "fib")
    before, after = answer["rows"]
    assert after["cycles"] < before["cycles"] - 40
    assert after["change"] == "without fib"


def test_changes_of_an_experiment_are_those_of_its_spec(here):
    answer = predicted(here, *ONE_TABLE, "--set", "action_data_bytes=64", "--without", "match_action_table")
    before, after = answer["rows"]
    assert before["cycles"] - after["cycles"] == pytest.approx(93)


def test_what_if_tables_have_no_empty_cells_and_no_digits_beyond_their_intervals(here):
    done = p4perf("predict", "fib.spec", "--without", "fib", cwd=here)
    table = done.out.split("what differs [cycles/packet]\n")[1].split("cost breakdown")[0].splitlines()
    cells = [re.split(r"\s{2,}", line) for line in table]
    assert all(len(row) == len(cells[0]) == 6 for row in cells)
    assert [cells[1][0], cells[1][1], cells[1][4]] == ["tables", "fib", "none"]
    numbers = re.findall(r"(?<![\w.])[\d.]+(?![\w.])", " ".join(" ".join(row[3:]) for row in cells[1:]))
    assert numbers
    assert all(len(number.replace(".", "").lstrip("0").rstrip("0")) <= 3 for number in numbers)


def test_the_rate_of_a_difference_is_one_that_a_core_can_reach(here):
    (found,) = predicted(here, "fib.spec", "--without", "fib")["differences"]
    assert found["cycles"]["value"] < 0 < found["mpps_per_core"]["value"] <= found["mpps_per_core"]["high"]
    assert found["mpps_per_core"]["high"] < 2000 / 60, "the baseline of the model takes 60 cycles at 2 GHz"


def test_many_predictions_say_where_their_breakdowns_are(here):
    done = p4perf("predict", "mat/exact-entries", "--points", "5", cwd=here)
    said = "5 predictions: cost breakdowns are printed for up to 4; choose fewer with --points 1 or -t TARGET, or read"
    assert f"{said} all with --format json" in done.err
    assert "cost breakdown" not in done.out


def test_a_target_that_is_given_twice_counts_once(here):
    done = p4perf("predict", "fib.spec", "-t", "fake", "-t", "fake", cwd=here)
    assert done.err.count("note: fake is given twice, and counts once") == 1
    assert done.out.split("cost breakdown")[0].count("fake") == 1


def test_several_targets_stand_side_by_side(here):
    write_model(here / "models" / "other.json", target="fake-small", baseline=90.0)
    answer = predicted(here, "fib.spec")
    assert [row["target"] for row in answer["rows"]] == ["fake", "fake-small"]
    assert answer["rows"][1]["cycles"] - answer["rows"][0]["cycles"] == pytest.approx(30)
    only = predicted(here, "fib.spec", "--target", "fake-small")
    assert [row["target"] for row in only["rows"]] == ["fake-small"]


def test_models_are_listed_and_a_folder_says_what_it_leaves_out(here):
    write_model(here / "models" / "dpdk.json", target="dpdk-c")
    rows = json.loads(p4perf("list", "models", "--format", "json", cwd=here).out)["rows"]
    used = {row["name"]: row["file"] for row in rows if row["used"]}
    assert used.pop("dpdk-c@test") == "models/dpdk.json", "it is nearer than those that ship"
    assert used.pop("fake@test") == "models/fake.json"
    assert {name.partition("@")[0] for name in used} == {"dpdk-swx", "dpdk-swx:interpreter", "xdp"}
    assert {row["name"] for row in rows} >= {"dpdk-c@turin", "dpdk-c@emerald-rapids"}
    assert {row["processor"] for row in rows} >= {"AMD EPYC", "Test CPU @ 2.00GHz"}
    table = p4perf("list", "models", cwd=here).out
    assert "ships with p4perf" in table
    assert "models/dpdk.json" in table
    said = "targets with a model in the folder models; -t uses models that ship: dpdk-swx, dpdk-swx:interpreter, xdp"
    assert said in p4perf("predict", "fib.spec", cwd=here).err
    assert "the folder models" not in p4perf("predict", "fib.spec", "-t", "fake", cwd=here).err


def test_warnings_name_the_targets_that_they_are_about():
    some = {"xdp": ("wide", "old"), "dpdk-c": ("wide",), "dpdk-swx": ("wide", "old", "ternary")}
    shown = [SimpleNamespace(model=SimpleNamespace(target=name), advice=texts) for name, texts in some.items()]
    assert _warnings(shown, verbose=False) == ["wide", "xdp, dpdk-swx: old", "dpdk-swx: ternary"]


def test_what_a_target_cannot_do_is_said(here):
    write_model(here / "models" / "other.json", target="fake-small")
    answer = predicted(here, *ONE_TABLE)
    assert [row["target"] for row in answer["rows"]] == ["fake"]
    (refused,) = answer["refused"]
    assert refused["model"] == "fake-small@test"
    assert "100" in refused["reason"]
    alone = predicted(here, *ONE_TABLE, "--target", "fake-small", code=2)
    assert "100" in alone.err


def test_measuring_shows_both_and_whether_the_interval_holds(here):
    """The stand-in target takes 100 cycles whatever the program, 10 of them for its baseline; the model's takes 60."""
    model = here / "models" / "fake.json"
    name = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    model.write_text(model.read_text().replace("Test CPU @ 2.00GHz", name[1] if name else ""))
    answer = predicted(here, *ONE_TABLE, "--measure", "--set", "trials.repetitions=3")
    (row,) = answer["measured"]
    assert row["predicted_cycles"] == pytest.approx(146)
    assert row["measured_cycles"] == pytest.approx(60 + (100 - 10), abs=1)
    assert row["error"] == pytest.approx(row["predicted_cycles"] / row["measured_cycles"] - 1)
    assert row["interval_holds"] is True
    done = p4perf("predict", ONE_TABLE[0], "--set", "entries=[10]", "--measure", cwd=here)
    assert "OUTSIDE the interval" in done.err
    assert "1 of 1 measurement OUTSIDE the interval of the prediction; p4perf learn makes a model of" in done.err
    _, head, row = done.out.partition("prediction and measurement")[2].splitlines()
    assert head.split()[-6:] == ["measured", "error", "inside", "interval", "starts", "flags"]
    assert " no " in row
    assert "predicted" not in done.err, "the table says it all"


def test_all_packets_miss_an_empty_table(here):
    for option in (["--fill", "fib=0"], ["--set", "fib.entries=0"]):
        *_, answer = predicted(here, "fib.spec", *option)["predictions"]
        (expected,) = [path for path in answer["paths"] if path["path"] == "expected"]
        assert "fib:drop" in {line["node"] for line in expected["breakdown"]}, option
        (lookup,) = [line for line in expected["breakdown"] if line["construct"] == "lookup"]
        assert (lookup["sizes"]["entries"], lookup["sizes"]["hit"]) == (0, 0), option


def test_more_entries_than_a_table_declares_are_a_warning(here):
    (here / "fib.spec").write_text(SPEC)
    for option in ((), ("--traffic",)):
        done = p4perf("predict", "fib.spec", "--target", "dpdk-c", "--fill", "fib=1001", *option, cwd=here)
        assert done.err.count("warning: fib: 1001 entries exceed its declared size of 1000") == 1, option
        assert done.code == 0
        done = p4perf("predict", "fib.spec", "--target", "dpdk-c", "--fill", "fib=1000", *option, cwd=here)
        assert "declared" not in done.err, option


def test_a_machine_with_models_of_several_targets(here):
    done = p4perf("predict", "fib.spec", "--model", "turin", cwd=here)
    assert done.code == 2
    assert "turin is the machine of several models: dpdk-c@turin, dpdk-swx@turin, xdp@turin" in done.err
    (row,) = predicted(here, "fib.spec", "--model", "turin", "--target", "dpdk-swx")["rows"]
    assert (row["target"], row["machine"]) == ("dpdk-swx", "turin")


def test_sizes_with_the_same_prices_do_not_differ(here):
    router = Path("examples/programs/ipv4_router/ipv4_router.json").absolute()
    options = ("--target", "dpdk-c", "--fill", "routes=1000", "--set", "routes.entries=500")
    done = p4perf("predict", router, *options, cwd=here)
    assert "no difference: the model prices both alike" in done.err


def test_only_what_runs_can_be_measured(here):
    done = p4perf("predict", "fib.spec", "--without", "fib", "--measure", cwd=here)
    assert done.code == 2
    assert "--without fib does not go with --traffic or --measure" in done.err


def test_traffic_is_what_measure_sends(tmp_path):
    """64 entries are made up, and what misses or hits is counted in the packets."""
    here = tmp_path
    (here / "fib.spec").write_text(SPEC)
    (here / "shares.yaml").write_text("tables:\n  fib: {hit: 0.75}\n")
    options = ("--target", "dpdk-c", "--traffic", "--probabilities", "shares.yaml")
    (answer,) = predicted(here, "fib.spec", *options)["predictions"]
    assert answer["packets"] == "tables: fib 64 entries, 75 % hits; 75 % of the packets are sent"
    (expected,) = [path for path in answer["paths"] if path["path"] == "expected"]
    (lookup,) = [line for line in expected["breakdown"] if line["construct"] == "lookup"]
    assert (lookup["node"], lookup["sizes"]["entries"], lookup["sizes"]["hit"]) == ("fib", 64, 0.75)
    (larger,) = predicted(here, "fib.spec", *options, "--fill", "fib=1e3")["predictions"]
    assert larger["packets"].startswith("tables: fib 1000 entries")
    assert "p4perf measure sends" in p4perf("predict", "fib.spec", *options, cwd=here).err
    (usual,) = predicted(here, "fib.spec", "--target", "dpdk-c")["predictions"]
    assert usual["packets"] == ""


def test_traffic_meets_entries_with_an_idle_default_action(tmp_path):
    """In the router, as many packets are sent as look up routes: entries of the ACL pass or drop."""
    spec = (Path(__file__).parents[2] / "examples" / "swx" / "router.spec").read_text()
    (tmp_path / "router.spec").write_text(spec)
    for target in ("dpdk-swx", "dpdk-c"):
        (answer,) = predicted(tmp_path, "router.spec", "--target", target, "--traffic")["predictions"]
        sent = float(re.search(r"([\d.]+) % of the packets are sent", answer["packets"])[1]) / 100
        (expected,) = [path for path in answer["paths"] if path["path"] == "expected"]
        times = {line["node"]: line["times"] for line in expected["breakdown"] if line["construct"] == "lookup"}
        assert 0.3 < sent < 0.95
        assert times == pytest.approx({"acl": 1.0, "routes": sent}, abs=0.01), target


def test_files(here):
    done = p4perf("predict", "fib.spec", "-o", "out", cwd=here)
    assert done.code == 0, done.err
    content = json.loads((here / "out" / "prediction.json").read_text())
    assert content["kind"] == "predict"
    names = {path.name for path in (here / "out").iterdir()}
    assert {
        "prediction.json",
        "rates.svg",
        "rates.png",
        "breakdown--fib--fake.svg",
        "breakdown--fib--fake.png",
    } == names


def test_latency_at_a_rate_and_loss_beyond_saturation(here):
    answer = predicted(here, *ONE_TABLE, "--rate", "20Mpps", "--line-rate", "100Gbit/s")
    latency = answer["predictions"][0]["latency"]
    assert latency["overloaded"] is True
    assert latency["loss"]["value"] == pytest.approx(1 - 2000 / 146 / 20, rel=0.01)


def test_shares_may_be_written_with_a_percent_sign(here):
    given = ([*ONE_TABLE, "--load", load] for load in ("0.4", "40%"))
    one, other = (predicted(here, *arguments)["predictions"][0]["latency"] for arguments in given)
    assert one == other


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fib.spec", "--target", "xdp:generic"], 3, "p4perf learn --target xdp:generic measures one"),
        (["fib.spec", "--target", "bmv2"], 3, "p4perf learn cannot make one: in composition/components, 200,000 exact"),
        (["fib.spec", "--target", "bmv2"], 3, "more than the 100,000 that bmv2 takes\n"),
        (["fib.spec", "--target", "t4p4s"], 3, "in composition/constructs, t4p4s has no ternary\n"),
        (["fib.spec", "--model", "nothing@there"], 2, "there is no model"),
        (["fib.spec", "--model", "models/fake.json", "--target", "xdp"], 2, "--model is for fake, and --target asks"),
        (["fib.spec", "--model", "fib.spec"], 2, "not a cost model"),
        (["fib.spec", "--model", "newer.json"], 2, "schema_version"),
        (["fib.spec", "--probabilities", "strange.yaml"], 2, "strange.yaml"),
        (["fib.spec", "--load", "0.5", "--rate", "1Mpps"], 2, "--load and --rate"),
        (["fib.spec", "--frame-size", "20"], 2, "64"),
        (["fib.spec", "--line-rate", "10"], 2, "--line-rate"),
        (["fib.spec", "--fill", "fib"], 2, "TABLE=N"),
        (["fib.spec", "--set", "fib.hit=0.5", "--set", "fib.hit=60%"], 2, "--set fib.hit: given more than once"),
        (["fib.spec", "--fill", "fib=1", "--fill", "fib=2"], 2, "--fill fib: given more than once"),
        (["fib.spec", "--set", "acl.entries=3"], 2, "acl"),
        (["fib.spec", "--set", "fib.entries=-3"], 2, "entries must be at least 0, got -3"),
        (["fib.spec", "--fill", "fib=-3"], 2, "entries must be at least 0, got -3"),
        (["fib.spec", "--fill", "fob=5"], 2, "there is no table 'fob'\nhint: did you mean fib?"),
        (["fbi.spec"], 2, "there is no such file\nhint: did you mean fib.spec?"),
        (["strnge.yaml"], 2, "there is no such file\nhint: did you mean strange.yaml?"),
        ([*ONE_TABLE, "--points", "0"], 2, "error: invalid value for '--points': must be at least 1"),
        (["empty.spec"], 2, "empty"),
        (["nothing.spec"], 2, "nothing.spec"),
        (["no/such-experiment"], 2, "no experiment"),
        (["mat/exact-entries", "--capture", "x.pcap"], 2, "--capture"),
        (["mat/exact-entries", "--traffic"], 2, "--traffic is for programs of your own"),
        (["fib.spec", "--traffic", "--probabilities", "uniform"], 2, "equal shares"),
        (
            ["fib.spec", "--traffic", "--probabilities", "s.yaml", "--capture", "x.pcap"],
            2,
            "--probabilities and --capture",
        ),
        (
            ["fib.spec", "--traffic", "--set", "fib.entries=3"],
            2,
            "--set fib.entries=3 does not go with --traffic or --measure",
        ),
        (["fib.spec", "--traffic", "--fill", "fib=many"], 2, "TABLE=N"),
        (["fib.spec", "--zipf", "1.2"], 2, "--zipf is for --traffic"),
        (["fib.spec", "--miss", "fib=0.2"], 2, "--miss is for --traffic"),
        (["fib.spec", "--packets", "256"], 2, "--packets is for --traffic"),
        (["fib.spec", "--default-fill", "9"], 2, "--default-fill is for --traffic"),
        (["fib.spec", "--port", "1"], 2, "--port is for --traffic"),
        (["fib.spec", "--traffic", "--miss", "fob=0.2"], 2, "there is no table 'fob'\nhint: did you mean fib?"),
    ],
)
def test_mistakes_have_one_clear_sentence(here, arguments, code, said):
    (here / "strange.yaml").write_text("tables:\n  acl: {hit: 0.5}\n")
    (here / "empty.spec").write_text("")
    text = (here / "models" / "fake.json").read_text()
    (here / "newer.json").write_text(text.replace('"schema_version": 2', '"schema_version": 99'))
    done = p4perf("predict", *arguments, cwd=here)
    assert done.code == code, done.out + done.err
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("program", [("fib.spec",), ("mat/exact-entries", "--points", "2", "--target", "dpdk-c")])
def test_what_is_slow_to_load_is_not_loaded(here, program):
    code = """
import atexit, sys
from p4perf.cli import main
heavy = "pandas pyarrow matplotlib plotly scipy.stats scipy.optimize dask rich.console MLRsearch p4perf.cli.eo".split()
atexit.register(lambda: print([m for m in heavy if m in sys.modules], file=sys.stderr))
sys.argv[:1] = ["p4perf", "predict", "--format", "json"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *program], capture_output=True, text=True, check=True, cwd=here, env=environment()
    )
    assert json.loads(done.stdout)["rows"]
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_model_without_a_clock_needs_one(tmp_path):
    path = write_model(tmp_path / "bare.json", clock="")
    done = p4perf("predict", *ONE_TABLE, "--model", path, cwd=tmp_path)
    assert done.code == 2
    assert "--frequency" in done.err
    assert p4perf("predict", *ONE_TABLE, "--model", path, "--frequency", "2GHz", cwd=tmp_path).code == 0


def test_a_prediction_has_a_page_in_a_report(here):
    done = p4perf("predict", "fib.spec", "--probabilities", "uniform", "-o", "predicted", cwd=here)
    assert done.code == 0, done.err
    done = p4perf("report", "predicted", "-o", "site", cwd=here)
    assert (done.code, "damaged" in done.err) == (0, False), done.err
    (page,) = (here / "site" / "predictions").glob("*.html")
    text = page.read_text()
    for said in ("<h2>Cost breakdown</h2>", "lookup", "expected", "lowest-cost", "highest-cost", "<h2>Rates</h2>"):
        assert said in text


def test_a_specification_is_run_with_its_rules(here):
    packet = bytes.fromhex("0200000000010200000000020800").ljust(60, b"\0")
    head = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(8) + (65535).to_bytes(4, "little") + (1).to_bytes(4, "little")
    frames = [packet, packet, packet, bytes(60)]
    records = [bytes(8) + 2 * len(f).to_bytes(4, "little") + f for f in frames]
    (here / "t.pcap").write_bytes(head + b"".join(records))
    (here / "fib.rules").write_text("table_add Main.fib Main.forward 02:00:00:00:00:01 => 2\n")
    answer = predicted(here, "fib.spec", "--entries", "fib.rules", "--capture", "t.pcap")
    (each,) = answer["predictions"]
    (lookup,) = [line for line in each["paths"][0]["breakdown"] if line["part"] == "tables"]
    assert lookup["sizes"] == {"match_kind": "exact", "entries": 1, "key_bits": 48, "action_data_bytes": 4, "hit": 0.75}
    assert not any("nobody said" in warning for warning in each["warnings"])


def test_targets_that_are_priced_on_different_paths_are_told_apart():
    def on(table: str, *, packets: str = "") -> SimpleNamespace:
        charge = SimpleNamespace(what=SimpleNamespace(kind="lookup"), times=1.0)
        itemised = SimpleNamespace(lines=[SimpleNamespace(node=table, charge=charge)])
        graph = SimpleNamespace(assumed=True, packets=packets)
        return SimpleNamespace(breakdowns={"expected": itemised}, graph=graph, changes=())

    assert _paths_differ([on("routes"), on("neighbours")], "expected")
    assert not _paths_differ([on("routes"), on(f"routes{COPY}1")], "expected"), "a copy of the same table"
    assert not _paths_differ([on("routes", packets="of a capture"), on("neighbours")], "expected")
