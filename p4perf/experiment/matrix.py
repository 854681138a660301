"""Which experiments of the catalogue a target can run, by its capabilities and the generated programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.experiment.planning import point_workload
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import component_parameters
from p4perf.specs import load_experiment


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an experiment something can do: ``possible`` of ``points``; ``reason`` is why not all of them."""

    points: int
    possible: int
    reason: str = ""

    @override
    def __str__(self) -> str:
        if not self.reason:
            return f"all {self.points}"
        return f"no: {self.reason}" if not self.possible else f"{self.possible} of {self.points}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Column:
    """A target or generator: its capabilities, and the metrics of a target."""

    capabilities: Capabilities
    metrics: tuple[str, ...] | None = None


def coverage(experiments: Sequence[str], columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """One row an experiment: its name under ``experiment``, and a :class:`Coverage` for every column.

    This is what the tables of capabilities say; what else may be in the way (memory, tools) only a machine knows.
    """
    rows = []
    for name in experiments:
        experiment = load_experiment(name, parameters_of=component_parameters)
        possible = dict.fromkeys(columns, 0)
        wanted = experiment.spec.metrics.collect
        absent = {c: [m for m in wanted if m not in column.metrics] for c, column in columns.items() if column.metrics}
        reasons = {c: f"{c} does not give {', '.join(names)}" for c, names in absent.items() if names}
        able = {c: column.capabilities for c, column in columns.items() if c not in reasons}
        for point in experiment.points:
            try:
                workload, traffic = point_workload(experiment, point)
            except CapabilityError as error:
                for column in columns:
                    reasons.setdefault(column, error.message)
                continue
            for column, capabilities in able.items():
                reason = capabilities.refusal(workload.program, workload.packets, traffic)
                if reason is None:
                    possible[column] += 1
                else:
                    reasons.setdefault(column, reason)
        cells = {c: Coverage(len(experiment.points), possible[c], reasons.get(c, "")) for c in columns}
        rows.append({"experiment": experiment.spec.name, **cells})
    return rows


def limits(columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """Every missing construct and every limit of every column, with its source."""
    rows = []
    for name, column in columns.items():
        known = column.capabilities
        found: list[tuple[str, int, str]] = [(construct, 0, reason) for construct, reason in known.missing.items()]
        found += [(f"not: {construct}", 0, reason) for construct, reason in known.requires.items()]
        found += [(quantity, limit.most, limit.source) for quantity, limit in known.limits.items()]
        rows += [{"of": name, "what": what, "most": most, "source": source} for what, most, source in found]
    return rows
