"""What the tools of the NFP print, as data: nothing is made up, and nothing breaks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.targets import nfp4000 as steps
from p4perf.targets.base import JobResult
from p4perf.targets.nfp4000 import Nfp4000Target, counters_of, firmware_of, interfaces_of, plain

TARGET = Nfp4000Target()
BEFORE = "[{'id': 0, 'name': 'FAKE_IN', 'value': 10}, {'id': 1, 'name': 'FAKE_DROPS', 'value': 2}]"
AFTER = BEFORE.replace("10}", "1010}").replace("2}", "102}")
ETHTOOL = "interface left enp3s0\nNIC statistics:\n     rx_drop_events: {}\n     rx_frames_received_ok: 7\n"
DESIGN = {
    "generic": {},
    "vendor": {
        "tables_info": {
            "MainIngress::lookup": {"max_entries": 1025, "data_size": 32, "id": 0, "matches": []},
            "odd": {"max_entries": "many", "data_size": True},
        }
    },
}
INFO = {"sku": "AMDA0096-0001:0", "worker_mes": ["i32.me0", "i33.me0"], "reduced_thread_usage": False}


def result(text):
    return JobResult(0, text, "", 1.0)


def evidence(**texts):
    return TARGET.evidence({getattr(steps, name): result(text) for name, text in texts.items()})


@pytest.mark.parametrize(
    "text",
    [
        "[{'id': 0, 'name': 'A', 'value': 12}]",
        "[{u'id': 0L, u'name': u'A', u'value': 12L}]",
        '[{"id": 0, "name": "A", "value": 12}]',
        "{'A': 12}",
        "[{'name': 'A', 'value': 12}, {'name': 'text', 'value': '12'}, 'x', {'name': 3, 'value': 4}]",
    ],
)
def test_counters_in_all_forms(text):
    assert counters_of(text) == {"A": 12}


@pytest.mark.parametrize("text", ["", "Traceback", "[1, 2]", "__import__('os').system('x')", "[" * 100_000, "7"])
def test_output_that_is_none_is_kept(text):
    assert counters_of(text) == {"unread": text[:2000]}


@given(st.text())
def test_no_output_breaks_the_readers(text):
    for reader in (counters_of, interfaces_of, firmware_of):
        json.dumps(reader(text))


def test_output_that_is_too_long_is_not_read():
    assert plain(" " * (1 << 21)) is None


def test_counters_with_their_differences():
    found = evidence(COUNTERS_BEFORE=BEFORE, COUNTERS_AFTER=AFTER)
    assert found["counters"]["before"] == {"FAKE_IN": 10, "FAKE_DROPS": 2}
    assert found["counters"]["difference"] == {"FAKE_IN": 1000, "FAKE_DROPS": 100}
    assert found["drops"] == {"FAKE_DROPS": 100}
    json.dumps(found)


def test_a_side_that_is_missing_or_damaged_gives_no_difference():
    assert evidence(COUNTERS_BEFORE=BEFORE) == {
        "counters": {"before": {"FAKE_IN": 10, "FAKE_DROPS": 2}},
        "drops": {},
    }
    assert evidence(COUNTERS_BEFORE=BEFORE, COUNTERS_AFTER="?")["counters"]["difference"] == {}
    assert evidence() == {"drops": {}}


def test_interfaces():
    found = evidence(INTERFACES_BEFORE=ETHTOOL.format(3), INTERFACES_AFTER=ETHTOOL.format(8))
    assert found["interfaces"]["left"]["difference"] == {"rx_drop_events": 5, "rx_frames_received_ok": 0}
    assert found["drops"] == {"left.rx_drop_events": 5}
    assert evidence(INTERFACES_BEFORE="", INTERFACES_AFTER="") == {"drops": {}}, "in CPP mode there is no device"


def built(**changes):
    lines = {"firmware_bytes": "4100", "compile_ms": "61000", "build_info": json.dumps(INFO)}
    lines |= {"pif_design": json.dumps(DESIGN), **changes}
    return "".join(f"{name} {value}\n" for name, value in lines.items() if value is not None)


def test_what_was_built_is_what_its_files_say():
    assert firmware_of(built()) == {
        "firmware_bytes": 4100,
        "compile_ms": 61000,
        "sku": "AMDA0096-0001:0",
        "worker_mes": 2,
        "reduced_thread_usage": False,
        "tables": {"MainIngress::lookup": {"max_entries": 1025, "data_bytes": 32}, "odd": {}},
    }


@pytest.mark.parametrize("change", ["firmware_bytes", "compile_ms", "build_info", "pif_design"])
def test_what_is_not_there_is_left_out(change):
    for value in (None, "", "{", "[]", "null", '{"vendor": 3, "worker_mes": 27, "sku": 1}'):
        found = firmware_of(built(**{change: value}))
        assert change not in found
        assert "tables" in found or change == "pif_design"
        assert "worker_mes" in found or change == "build_info"


def test_metrics_of_an_overload():
    known = {"evidence": evidence(BUILT=built())}
    for program in ({"receive_rate_pps": 8.5e6, **known}, {"receive_rate_pps": 8.5e6, "raw": known}):
        found = TARGET.served_metrics({"program": program, "baseline": {}}, {})
        assert [(m.metric, m.value, m.unit) for m in found] == [
            ("packet_rate", 8.5, "Mpps"),
            ("compile_time", 61000.0, "ms"),
        ]


@pytest.mark.parametrize("rate", [None, 0, -1.0, float("nan"), float("inf"), "fast"])
def test_no_metric_of_nothing(rate):
    assert TARGET.served_metrics({"program": {"receive_rate_pps": rate}}, {}) == ()
    assert TARGET.served_metrics({}, {}) == ()


def test_cycles_are_not_among_the_metrics():
    assert not [metric for metric in TARGET.metrics if "cycles" in metric]
