"""The files of cost models: how they are told from other files, and what a prediction needs of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p4perf.errors import DataError, Location, P4PerfError, SpecError
from p4perf.evaluation.answer.memory import MemoryModel
from p4perf.evaluation.answer.prediction import TargetModel
from p4perf.evaluation.prediction.constructs import component_increments
from p4perf.generators.base import TrafficPlan
from p4perf.models.program import Bill, Charge, Construct
from p4perf.models.program.bill import Basis
from p4perf.models.program.bounds import weaker
from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import SCHEMA, read_cost_model
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.specs.units import parse_quantity

CLOCK = "core_frequency"
"""Fact of a machine: how fast its cores are, such as ``2.9 GHz``."""

FRAME_BYTES = 1518
"""Frame in which a component is looked at that was not measured: the largest of Ethernet."""

_NOISE = re.compile(r"\((?:r|tm)\)|@.*|\b(?:cpu|processor|intel|amd|\d+-core)\b", re.IGNORECASE)


@dataclass(frozen=True)
class KnownParts:
    """Prices of primitives that are asked for once only: programs meet the same construct again and again."""

    costs: PrimitiveCosts
    _known: dict[tuple[object, ...], Charge] = field(default_factory=dict, compare=False, repr=False)

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone."""
        key = (what.kind, what.sizes, times)
        if key not in self._known:
            self._known[key] = self.costs.charge(what, times)
        return replace(self._known[key], what=what)

    def charges(self, met: Sequence[tuple[Construct, float]]) -> Sequence[Charge]:
        """One charge for each of several constructs, in order; what the baseline has paid for costs nothing."""
        return self.costs.charges(met)

    def component(self, what: Construct, times: float = 1.0) -> Charge | None:
        """The price of a component as that of what an average packet meets in it; None if something has no price."""
        key = (what.kind, what.sizes)
        if key not in self._known:
            self._known[key] = component_charge(self.costs, what)
        found = self._known[key]
        if found.basis == "unknown":
            return None
        sums = {name: times * getattr(found, name) for name in ("cycles", "low", "high")}
        return replace(found, what=what, times=times, **sums)


def component_charge(costs: PrimitiveCosts, what: Construct) -> Charge:
    """The price of a component as the sum of its primitives; of basis ``unknown`` if one of them has none."""
    parameters = {name: value for name, value in what.sizes if name != "name"}
    try:
        (way,) = component_increments([(str(what.size("name")), parameters)], TrafficPlan(FRAME_BYTES))
    except P4PerfError as error:
        return Charge(what, 1.0, 0.0, 0.0, 0.0, basis="unknown", remark=error.message)
    charges = costs.priced(way.met)
    more = (costs.mispredicted(way.mispredicted), costs.changed_layout(way.met))
    charges += [charge for charge in more if charge is not None]
    ends = [sum(getattr(charge, name) for charge in charges) for name in ("cycles", "low", "high")]
    basis: Basis = "interpolated"
    for charge in charges:
        basis = weaker(basis, charge.basis)
    sources = ", ".join(dict.fromkeys(s for c in charges for s in c.source.split(", ") if s))
    remarks = [c.remark for c in charges if c.remark and c.basis in ("extrapolated", "bounded", "unknown")]
    remark = "; ".join(dict.fromkeys(("the sum of what it is made of", *remarks)))
    return Charge(what, 1.0, max(ends[0], 0.0), max(ends[1], 0.0), max(ends[2], 0.0), sources, basis, remark)


@dataclass(frozen=True)
class ProgramPricing:
    """A cost model for components and for primitives.

    Components are priced as the model says. Programs of primitives have the charges of these, and what the model says
    that tables cost beside one another; the interval is the wider one of both, relative to the sum.
    """

    model: CostModel
    parts: PrimitiveCosts | None = None

    @property
    def target(self) -> str:
        """Name of the target, with its variant."""
        return self.model.target

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone."""
        return self.model.charge(what, times)

    def bill(self, met: Sequence[tuple[Construct, float]]) -> Bill:
        """The price of all constructs that a packet meets."""
        if self.parts is None or any(what.kind == "component" for what, _ in met):
            return self.model.bill(met)
        alone = self.parts.bill(met)
        beside = self.model.bill(met)
        found = replace(alone, baseline=self.model.baseline, context=beside.context)
        down = max((bill.cycles - bill.low) / bill.cycles for bill in (alone, beside))
        up = max((bill.high - bill.cycles) / bill.cycles for bill in (alone, beside))
        return replace(
            found,
            low=max(found.cycles * (1 - down), 0.0),
            high=found.cycles * (1 + up),
            warnings=tuple(dict.fromkeys((*alone.warnings, *beside.warnings))),
        )


def is_cost_model(text: str) -> bool:
    """Whether a text says that it is a cost model of programs; what else is wrong with it is another matter."""
    if SCHEMA not in text:
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return True
    return isinstance(value, dict) and value.get("schema") == SCHEMA


def parse_cost_model(text: str, file: str) -> TargetModel:
    """A cost model.

    Raises:
        DataError: it is damaged, or of another version; with the key.
    """
    model = read_cost_model(text, file=file)
    parts = None
    if model.primitives is not None:
        parts = PrimitiveCosts.from_record(dict(model.primitives), file=file)
        model = replace(model, parts=KnownParts(parts))
    machine = machine_name(model.machine.get("cpu_model", ""))
    return TargetModel(ProgramPricing(model, parts), machine, _clock_hz(model, file), file, MemoryModel(model))


def machine_name(cpu_model: str) -> str:
    """A word for a machine: ``xeon-gold-6142`` for ``Intel(R) Xeon(R) Gold 6142 CPU @ 2.60GHz``."""
    words = re.findall(r"[a-z0-9.]+", _NOISE.sub(" ", cpu_model).lower())
    return "-".join(words) or "unknown"


def _clock_hz(model: CostModel, file: str) -> float | None:
    text = model.machine.get(CLOCK)
    if text is None:
        return None
    try:
        return float(parse_quantity(text, "frequency", "Hz"))
    except SpecError as error:
        raise DataError(error.message, location=Location(file), key=f"machine.{CLOCK}", hint=error.hint) from error
