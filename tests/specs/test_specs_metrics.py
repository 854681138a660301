from typing import get_args

from p4perf.specs.metrics import METRICS, MetricName


def test_the_table_and_the_type_name_the_same_metrics():
    assert set(METRICS) == set(get_args(MetricName))


def test_every_metric_has_a_unit_and_a_description():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit
        assert metric.description


def test_what_is_derived_is_derived_from_something_measured():
    for metric in METRICS.values():
        if metric.derived_from:
            assert METRICS[metric.derived_from].derived_from is None
