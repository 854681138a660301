"""What a queue model says: the distribution of the processing time, loss and load, in units of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from p4perf.errors import UsageError
from p4perf.models.queue.distributions import FloatArray, Lattice

RESOLUTION = 1e-14
"""A smaller loss cannot be distinguished from rounding and is 0."""
QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, eq=False)
class QueueResult:
    """One operating point.

    Args:
        delay: processing time of accepted packets, from their arrival to the end of their service [steps].
        loss: share of the packets that are refused.
        load: work offered in a unit of time, interrupts and polls included (rho).
        packet_load: work of the packets alone in a unit of time; Eq. 10 of the paper.
        utilisation: share of the time in which the processor works on packets, interrupts or batches.
        mean_interval: mean time between the beginnings of batches [steps].
        residual: sum of the absolute differences between the stationary distribution and its image under the equations.
        balance: difference between the loss and what the idle time of the processor implies for it.
        batch_loss: mean over batches of the lost share of a batch, None where it is not computed.
        seen: distribution of what a batch finds: unfinished work [steps], or packets in the ring.
    """

    delay: Lattice
    loss: float
    load: float
    packet_load: float
    utilisation: float
    mean_batch: float
    mean_interval: float
    step_us: float
    residual: float
    balance: float
    batch_loss: float | None = None
    seen: Lattice | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def mean_us(self) -> float:
        return self.delay.mean * self.step_us

    @property
    def std_us(self) -> float:
        return self.delay.std * self.step_us

    @property
    def min_us(self) -> float:
        return self.delay.first * self.step_us

    @property
    def max_us(self) -> float:
        """Largest processing time that is more probable than rounding [us]."""
        return self.delay.last * self.step_us

    def quantile_us(self, share: float) -> float:
        """The smallest processing time that is not exceeded with that probability [us]."""
        return self.delay.quantile(share) * self.step_us

    def quantiles_us(self, shares: Sequence[float] = QUANTILES) -> dict[float, float]:
        return {share: self.quantile_us(share) for share in shares}

    def cdf(self) -> tuple[FloatArray, FloatArray]:
        """Times [us] and the probability that the processing time is not longer."""
        return self.delay.values * self.step_us, self.delay.cumulative


def objective_us(result: QueueResult, what: str) -> float:
    """The mean, or a percentile such as ``p99`` or ``p99.9``, of the processing time [us]."""
    if what == "mean":
        return result.mean_us
    try:
        percent = float(what.removeprefix("p"))
    except ValueError:
        percent = -1.0
    if not what.startswith("p") or not 0 < percent < 100:
        raise UsageError(f"{what!r} is neither mean nor a percentile such as p99")
    return result.quantile_us(percent / 100)
