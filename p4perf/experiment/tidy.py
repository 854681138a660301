"""The tidy table: one row per point, trial and metric."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from p4perf.experiment.ledger import Ledger
from p4perf.experiment.planning import PlannedPoint

FIXED_COLUMNS = ("point", "point_index", "repetition", "attempt")
TESTBED = "testbed"
VALUE_COLUMNS = ("metric", "value", "unit", "accepted", "flags")


def tidy_table(points: Sequence[PlannedPoint], ledger: Ledger, testbed: str) -> pd.DataFrame:
    """All metric values of all trials that ran to their end, in the order of points and trials.

    Columns: ``point`` (hash), ``point_index``, ``repetition``, ``attempt``, ``testbed``, one per swept variable,
    ``metric``, ``value``, ``unit``, ``accepted`` and ``flags`` (comma-separated).

    Args:
        points: the points.
        ledger: their trials.
        testbed: that of trials that do not name theirs.
    """
    variables = list(points[0].point.values) if points else []
    rows = []
    for planned in points:
        for entry, summary in ledger.trials(planned.key):
            if summary is None:
                continue
            place = str(entry.get(TESTBED, testbed))
            head = (planned.key, planned.point.index, entry["trial"]["repetition"], entry["trial"]["attempt"], place)
            swept = tuple(planned.point.values[v] for v in variables)
            flags = ",".join(summary.flags)
            rows += [(*head, *swept, m.metric, m.value, m.unit, summary.accepted, flags) for m in summary.metrics]
        counted = ledger.simulation(planned.key) or ()
        place = ledger.testbed(planned.key) or testbed
        head, swept = (planned.key, planned.point.index, 0, 0, place), tuple(planned.point.values[v] for v in variables)
        rows += [(*head, *swept, m.metric, m.value, m.unit, True, "simulated") for m in counted]
    return pd.DataFrame(rows, columns=[*FIXED_COLUMNS, TESTBED, *variables, *VALUE_COLUMNS])
