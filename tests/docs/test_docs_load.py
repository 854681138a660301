"""The page on load, and what other pages say of it, is what the code does: flags, metrics, figures, links, records.

What a load generator prints is made up here, for a device of 1 Mpps; the names of its columns are those of the harness.
"""

import inspect
import re
import typing
from pathlib import Path

import pytest
from docs_pages import DOCS, bare, tables
from test_docs_json import compare, fits, kind_of, listed, section

import p4perf as package
from p4perf.evaluation.load import Layout
from p4perf.evaluation.load import records as evaluation
from p4perf.experiment import evaluate
from p4perf.experiment.load import LATENCY_AT, LoadMeasurement, load_plan
from p4perf.experiment.search import Flag
from p4perf.plugins import load_plugin, plugin_names
from p4perf.specs import load_experiment
from p4perf.specs.metrics import LOAD_METRICS
from p4perf.specs.schema import LoadSpec
from p4perf.specs.types import IMIX
from p4perf.targets.roles import links_of
from p4perf.testbeds.loadgen import native

HARNESS = Path(package.__file__).parent / "targets" / "harness" / "load"
COLUMNS = re.findall(r'\bCOLUMN\("(\w+)"', (HARNESS / "load_generator.c").read_text())
INJECTED = {name for name in COLUMNS if name.startswith("injected_")}
CAPACITY_PPS = 1e6
GENERATOR_PPS = 14e6


def page_table(page, *head):
    (found,) = [t for t in tables(DOCS / page) if tuple(bare(h) for h in t.head[: len(head)]) == head]
    return found


def first_cells(table):
    return [name for row in table.rows for name in bare(row[0]).split(", ")]


class Session:
    """A generator of 14 Mpps and a device that loses what is beyond 1 Mpps."""

    devices: typing.ClassVar = ("program", "null")
    shortest_s: typing.ClassVar = 0.0
    ready: typing.ClassVar = {"slots": 1024, "tsc_hz": 2e9, "verified_packets": 2048}  # and no hugepages

    def offer(self, load, gate_ratio=None):
        rate_pps = load.rate_pps or GENERATOR_PPS
        sent = round(rate_pps * load.duration_s)
        lost = 0 if load.device == "null" else max(0, sent - round(CAPACITY_PPS * load.duration_s))
        counts = {"planned": sent, "sent": sent, "received": sent - lost, "received_while_sending": sent - lost}
        chains = {name: 12.0 for name in COLUMNS if name.endswith("_tsc")}
        columns = {**counts, **chains, "sending_us": 1e6 * (sent - 1) / rate_pps, "realtime": True}
        raw = {name: [columns.get(name, 0)] for name in COLUMNS if name not in INJECTED}
        raw |= {"load_version": native.LOAD_VERSION, "duration_ms": 1e3 * load.duration_s, "segments": 1}
        if load.latency:
            layout = Layout()
            head = {"lowest": layout.lowest, "highest": layout.highest, "digits": layout.digits, "overflow": 0}
            raw["histogram"] = {**head, "counts": [[1800, sent - lost]]}
        return native.account(raw, load, 1024, gate_ratio)


def measured(*offered):
    """The record of a trial at these offered loads, and its plan."""
    changes = [("metrics.collect", f"[{', '.join(LOAD_METRICS)}]"), ("metrics.optional", "[]"), *offered]
    experiment = load_experiment("load/rate", overrides=[*changes, ("sweep.load", "[0.5]")])
    plan = load_plan(experiment.spec, experiment.points[0])
    return LoadMeasurement(Session(), plan, 1, None).measure(), plan


@pytest.fixture(scope="module")
def single():
    return measured()


@pytest.fixture(scope="module")
def several():
    return measured(("traffic.offered_load", "{fraction_of_max: [0.5, $load, 0.9]}"), ("load.slots", "512"))


def test_flags():
    text = inspect.getsource(native.trial_flags) + inspect.getsource(evaluation)
    real = set(re.findall(r'^ +"(\w+)": ', inspect.getsource(native.trial_flags), re.MULTILINE))
    real |= set(re.findall(r'flags\.add\("(\w+)"\)', text)) | {str(flag) for flag in Flag}
    said = first_cells(page_table("load.md", "flag"))
    assert sorted(said) == sorted(real)


def test_metrics(single, several):
    rows = page_table("load.md", "metric", "unit", "star").rows
    said = {name: (unit, star) for names, unit, star, _ in rows for name in bare(names).split(", ")}
    names = {}
    for record, plan in (single, several):
        for metric in evaluation.summarise_load(record, plan.metrics, single=plan.single).metrics:
            name, at, _ = metric.metric.partition("_at_")
            names.setdefault(name, (metric.unit, set()))[1].add(bool(at))
    assert {name: unit for name, (unit, _) in said.items()} == {name: unit for name, (unit, _) in names.items()}
    assert {name for name, (_, star) in said.items() if star} == {name for name, (_, at) in names.items() if True in at}


def test_figures():
    text = inspect.getsource(evaluate)
    assert first_cells(page_table("load.md", "file", "what it shows")) == re.findall(r'place, "([\w-]+)"', text)


def test_links():
    (kinds, _) = (list(typing.get_args(kind)) for kind in typing.get_args(LoadSpec.model_fields["link"].annotation))
    assert first_cells(page_table("load.md", "link")) == kinds
    said = {bare(name): cell for name, cell in page_table("targets.md", "target").rows}
    real = {n: links_of(load_plugin("p4perf.targets", n)()) for n in plugin_names("p4perf.targets") if "fake" not in n}
    assert said.keys() == real.keys()
    for name, links in real.items():
        assert tuple(re.findall(r"`([\w-]+)`", said[name])) == tuple(links)


def test_numbers_in_the_text():
    text = re.sub(r"\s+", " ", (DOCS / "load.md").read_text())
    assert "by default {}, {} and {}".format(*LATENCY_AT) in text
    sizes, weights = zip(*IMIX, strict=True)
    assert f"{':'.join(map(str, weights))} of {sizes[0]}, {sizes[1]} and {sizes[2]} B" in text


def test_keys_of_the_journal(single, several):
    shared = {**several[0], "search": {**several[0]["search"], "searched_at": "0123"}}
    compare(section("load of raw.jsonl"), single[0], several[0], shared)


def test_keys_of_accounts(several):
    said = {key: kind_of(kind) for key, kind in listed("load of raw.jsonl")[1].items()}
    record, _ = several
    for account in (record["alone"], record["overload"], *(o[part] for o in record["offered"] for part in o)):
        if isinstance(account, dict):
            assert account.keys() == said.keys()
            assert all(fits(value, said[key]) for key, value in account.items())


def test_keys_of_what_the_generator_prints():
    said = list(listed("load of raw.jsonl")[2])
    assert said == [name for name in COLUMNS if name not in INJECTED]
    assert {*native._NUMBERS, "realtime", "device_busy_us"} == set(said), "the last one is for target bmv2"


def test_what_the_generator_says_when_it_is_up():
    main = (HARNESS / "load_main.c").read_text()
    (text,) = re.findall(r'printf\(("\{\\"load_version\\".*?\}\\n")', main, re.DOTALL)
    printed = set(re.findall(r'\\"(\w+)\\": ', text)) - {"load_version", "ready"}
    text = " ".join((DOCS / "json.md").read_text().split())
    (meaning,) = re.findall(r"`ready` \(mapping\) (.*?); `alone`", text)
    assert set(re.findall(r"`(\w+)`", meaning)) == printed
