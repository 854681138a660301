"""What programs cost on one target of one machine: a baseline, and prices of what packets meet.

Such models are learnt from measured runs (:mod:`p4perf.evaluation.prediction.learning`). A component costs what it is
made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from p4perf.models.estimate import Estimate, exactly
from p4perf.models.program.graph import Construct
from p4perf.models.program.memory import MeasuredTable

NOTHING = exactly(0.0)

Basis = Literal["measured", "interpolated", "extrapolated", "bounded", "unknown"]


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of one construct.

    Args:
        times: average number of times that a packet meets it.
        cycles: for all these times together, per packet, with their interval.
        source: the component model that says so, such as ``mat/exact-entries``; empty if there is none.
        basis: how it is known. ``extrapolated``: outside of what was measured; ``bounded``: no model, but a bound;
            ``unknown``: neither, and ``cycles`` are 0.
        remark: for people, such as what was outside of which domain.
    """

    what: Construct
    times: float
    cycles: Estimate
    source: str = ""
    basis: Basis = "measured"
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """The price of a path through a program, in cycles per packet.

    Args:
        baseline: what a program that only forwards costs.
        interaction: what constructs cost together beyond their sum (negative if less).
        low, high: ends of the interval of the sum.
        level: coverage that the interval aims at.
    """

    baseline: float
    charges: tuple[Charge, ...]
    interaction: float
    low: float
    high: float
    level: float = 0.9
    warnings: tuple[str, ...] = field(default=())

    @property
    def cycles(self) -> Estimate:
        """Cycles per packet."""
        value = self.baseline + sum(charge.cycles.value for charge in self.charges) + self.interaction
        return Estimate(value, self.low, self.high)


@dataclass(frozen=True, slots=True)
class BatchCycles:
    """Cycles of a batch behind a ring beside those of its packets.

    Args:
        batch: of each.
        idle: more of one behind a look at the ring that found nothing.
        empty: of such a look.
    """

    batch: float
    idle: float
    empty: float


class Pricing(Protocol):
    """What says the price of constructs on one target of one machine."""

    @property
    def target(self) -> str: ...

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone."""
        ...

    def breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        """The price of all constructs that a packet meets, in the order in which it meets them, and how often."""
        ...


class PartPricing(Pricing, Protocol):
    """What prices constructs, and components by what these are made of."""

    def composed(self, met: Sequence[tuple[Construct, float]], baseline: float) -> CostBreakdown:
        """The price of a program of components, over a baseline of its own."""
        ...


@dataclass(frozen=True)
class CostModel:
    """What programs cost on one target of one machine.

    Args:
        baseline: cycles per packet of the program that only forwards.
        tables: single tables whose memory was measured.
        batches: what batches cost behind a ring; None if unknown.
        frame_bytes: frame size of all programs, with FCS.
        provenance: runs, versions and dates, as JSON values.
        primitives: prices of constructs, as JSON values; ``parts``, not stored, has them.
    """

    target: str
    baseline: float
    tables: tuple[MeasuredTable, ...] = ()
    frame_bytes: int = 0
    machine: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    primitives: Mapping[str, Any] = field(default_factory=dict)
    batches: BatchCycles | None = None
    parts: PartPricing | None = field(default=None, compare=False, repr=False)

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        if self.parts is None:
            return Charge(what, times, NOTHING, basis="unknown", remark=f"{what.kind} has no price here")
        return self.parts.charge(what, times)

    def breakdown(self, met: Sequence[tuple[Construct, float]]) -> CostBreakdown:
        """The price of what a packet meets."""
        if self.parts is not None and any(what.kind == "component" for what, _ in met):
            return self.parts.composed(met, self.baseline)
        if self.parts is not None:
            return self.parts.breakdown(met)
        charges = tuple(self.charge(what, times) for what, times in met)
        return CostBreakdown(self.baseline, charges, 0.0, self.baseline, self.baseline)
