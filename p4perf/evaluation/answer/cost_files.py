"""The files of cost models: how they are told from other files, and what a prediction needs of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p4perf.errors import DataError, Location, SpecError
from p4perf.evaluation.answer.prediction import TargetModel
from p4perf.models.program import Bill, Charge, Construct
from p4perf.models.program.costs import CostModel
from p4perf.models.program.costs_storage import SCHEMA, read_cost_model
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.specs.units import parse_quantity

CLOCK = "core_frequency"
"""Fact of a machine: how fast its cores are, such as ``2.9 GHz``."""

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
    return TargetModel(
        ProgramPricing(model, parts), machine_name(model.machine.get("cpu_model", "")), _clock_hz(model, file), file
    )


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
