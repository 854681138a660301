"""The tidy table: one row per point, trial and metric."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from p4perf.experiment.ledger import Ledger
from p4perf.experiment.planning import PlannedPoint

FIXED_COLUMNS = ("point", "point_index", "repetition", "attempt")
VALUE_COLUMNS = ("metric", "value", "unit", "accepted", "flags")


def tidy_table(points: Sequence[PlannedPoint], ledger: Ledger) -> pd.DataFrame:
    """All metric values of all trials that ran to their end, in the order of points and trials.

    Columns: ``point`` (hash), ``point_index``, ``repetition``, ``attempt``, one per swept variable, ``metric``,
    ``value``, ``unit``, ``accepted`` and ``flags`` (comma-separated).
    """
    variables = list(points[0].point.values) if points else []
    rows = []
    for planned in points:
        for entry, summary in ledger.trials(planned.key):
            if summary is None:
                continue
            head = (planned.key, planned.point.index, entry["trial"]["repetition"], entry["trial"]["attempt"])
            swept = tuple(planned.point.values[v] for v in variables)
            flags = ",".join(summary.flags)
            rows += [(*head, *swept, m.metric, m.value, m.unit, summary.accepted, flags) for m in summary.metrics]
        counted = ledger.simulation(planned.key) or ()
        head, swept = (planned.key, planned.point.index, 0, 0), tuple(planned.point.values[v] for v in variables)
        rows += [(*head, *swept, m.metric, m.value, m.unit, True, "simulated") for m in counted]
    return pd.DataFrame(rows, columns=[*FIXED_COLUMNS, *variables, *VALUE_COLUMNS])
