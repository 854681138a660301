"""What constructs cost: one charge each, what their company adds, and the sum with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from p4perf.models.program.constructs import Construct

Basis = Literal["measured", "interpolated", "extrapolated", "bounded", "unknown"]


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of one construct.

    Args:
        what: the construct.
        times: how often a packet meets it, on average.
        cycles: of all these times together, per packet.
        low: lower end of the interval of ``cycles``.
        high: upper end.
        source: the component model that says so, such as ``mat/exact-entries``; empty if there is none.
        basis: how it is known. ``extrapolated``: outside of what was measured; ``bounded``: no model, but a bound;
            ``unknown``: neither, and ``cycles`` is 0.
        remark: for people, such as what was outside of which domain.
    """

    what: Construct
    times: float
    cycles: float
    low: float
    high: float
    source: str = ""
    basis: Basis = "measured"
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """The price of a way through a program, in cycles per packet.

    Args:
        baseline: what a program that only forwards costs.
        charges: of every construct.
        context: what constructs cost beside one another beyond their sum (negative if less).
        low: lower end of the interval of the sum.
        high: upper end.
        level: coverage that the interval aims at.
        memory_bytes: of tables, arrays and code of the whole program; None if nothing is known of it.
        warnings: such as that the program is outside of what the model was calibrated for.
    """

    baseline: float
    charges: tuple[Charge, ...]
    context: float
    low: float
    high: float
    level: float = 0.9
    memory_bytes: float | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def cycles(self) -> float:
        """Cycles per packet."""
        return self.baseline + sum(charge.cycles for charge in self.charges) + self.context


class Pricing(Protocol):
    """What says the price of constructs on one target of one machine."""

    @property
    def target(self) -> str:
        """Name of the target, with its variant."""
        ...

    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        """The price of one construct alone."""
        ...

    def bill(self, met: Sequence[tuple[Construct, float]]) -> Bill:
        """The price of all constructs that a packet meets, in the order in which it meets them, and how often."""
        ...
