"""The metrics of p4perf and of plug-ins: one registry."""

import pytest

from p4perf.errors import UsageError
from p4perf.specs import json_schema, metrics
from p4perf.specs.metrics import METRICS, Metric, standard_metrics

JOULES = Metric("joules_per_packet", "J/packet", "energy")


@pytest.fixture
def registered(monkeypatch):
    def with_set(*more):
        sets = {"standard": standard_metrics, "more": lambda: more}
        monkeypatch.setattr(metrics, "plugin_names", lambda group: sorted(sets))
        monkeypatch.setattr(metrics, "load_plugin", lambda group, name: sets[name])
        metrics._registered.cache_clear()

    yield with_set
    metrics._registered.cache_clear()


def test_the_metrics_of_p4perf_are_a_registered_set():
    assert {m.name for m in standard_metrics()} == set(METRICS)


def test_a_set_of_a_plug_in_is_known_to_specs_and_their_schema(registered):
    registered(JOULES)
    assert METRICS["joules_per_packet"] == JOULES
    assert metrics.metric_named("joules_per_packet") == JOULES
    asked = json_schema()["$defs"]["MetricsSpec"]["properties"]["collect"]["items"]["enum"]
    assert asked == [*(m.name for m in standard_metrics()), "joules_per_packet"]


def test_a_metric_is_defined_once(registered):
    registered(Metric("packet_rate", "pps", "another unit"))
    with pytest.raises(UsageError, match="duplicate metric 'packet_rate' in the set of metrics 'more'"):
        list(METRICS)


def test_every_metric_has_a_unit_and_a_description():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit
        assert metric.description


def test_what_is_derived_is_derived_from_something_measured():
    for metric in METRICS.values():
        if metric.derived_from:
            assert METRICS[metric.derived_from].derived_from is None
