"""Operating points: a system as people describe it, in microseconds, solved on a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from p4perf.errors import UsageError
from p4perf.evaluation.queueing.laws import Law
from p4perf.models.queue import Bernoulli, Lattice, ModeratedQueue, Poisson, PollQueue, Profile, QueueResult
from p4perf.models.queue.check import Agreement, second_method
from p4perf.models.queue.simulation import Simulated, simulate

Mode = Literal["moderated", "poll"]
ROUNDED = 0.02
"""A constant time that a lattice changes by more than this share does not fit it."""


@dataclass(frozen=True)
class System:
    """A processor and what stands in front of it.

    Args:
        service: service time of a packet.
        mode: ``moderated`` interrupts, or ``poll``.
        step_us: step of the lattice [us].
        overhead_us: work of an interrupt [us].
        buffer_us: work that the buffer holds, L [us]; None: it never overflows.
        batch_cost_us: work for a batch, in poll mode [us].
        ring: places of the ring, in poll mode.
        burst: most packets of a batch, in poll mode.
        empty_poll_us: time of a poll that finds nothing [us].
    """

    service: Law
    mode: Mode
    step_us: float
    overhead_us: float = 0.0
    buffer_us: float | None = None
    batch_cost_us: float = 0.0
    ring: int = 1024
    burst: int = 32
    empty_poll_us: float = 0.0

    def moderated(self, arrivals: Law, moderation_us: float) -> ModeratedQueue:
        """The system behind a card that moderates interrupts.

        Raises:
            UsageError: a time does not fit the lattice.
        """
        limit = None
        if self.buffer_us is not None:
            limit = steps_of(self.buffer_us, self.step_us, "the buffer")
        return ModeratedQueue(
            arrivals.on_lattice(self.step_us),
            self.service.on_lattice(self.step_us),
            steps_of(moderation_us, self.step_us, "the moderation interval"),
            Law("det", self.overhead_us).on_lattice(self.step_us),
            limit,
            self.step_us,
        )

    def polled(self, arrivals: Law) -> PollQueue:
        """The system that polls.

        Raises:
            UsageError: a time does not fit the lattice.
        """
        mean = arrivals.mean_us / self.step_us
        process: Lattice | Poisson | Bernoulli
        if arrivals.kind == "exponential":
            process = Poisson(mean)
        elif arrivals.kind == "geometric":
            process = Bernoulli(mean)
        else:
            process = arrivals.on_lattice(self.step_us)
        return PollQueue(
            process,
            self.service.on_lattice(self.step_us),
            Law("det", self.batch_cost_us).on_lattice(self.step_us),
            self.ring,
            self.burst,
            max(round(self.empty_poll_us / self.step_us), 1),
            self.step_us,
        )


def steps_of(time_us: float, step_us: float, what: str) -> int:
    """A time in whole steps.

    Raises:
        UsageError: that changes it by more than 2 %.
    """
    steps = round(time_us / step_us)
    if steps < 1 or abs(steps * step_us / time_us - 1) > ROUNDED:
        raise UsageError(
            f"the lattice is too coarse: {what} is {time_us / step_us:.4g} of its steps", hint="give a finer --lattice"
        )
    return steps


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """One row: what was asked, and what came out.

    ``simulated`` and ``agreement`` are there where they were asked for; ``result`` is None where there is only the
    simulation of a trace.
    """

    arrivals: Law
    moderation_us: float | None
    result: QueueResult | None
    simulated: Simulated | None = None
    agreement: Agreement | None = None

    @property
    def rate_mpps(self) -> float:
        """Offered load [Mpps]."""
        return 1 / self.arrivals.mean_us

    def row(self) -> dict[str, Any]:
        """Plain values for tables and JSON."""
        out: dict[str, Any] = {
            "arrivals": self.arrivals.text or self.arrivals.kind,
            "rate_mpps": self.rate_mpps,
            "interarrival_us": self.arrivals.mean_us,
            "moderation_us": self.moderation_us,
        }
        r = self.result
        out |= {
            "load": r and r.load,
            "utilisation": r and r.utilisation,
            "loss": r and r.loss,
            "mean_us": r and r.mean_us,
            "std_us": r and r.std_us,
        }
        for share, name in ((0.5, "p50_us"), (0.9, "p90_us"), (0.99, "p99_us"), (0.999, "p999_us")):
            out[name] = r and r.quantile_us(share)
        out["mean_batch"] = r and r.mean_batch
        s = self.simulated
        if s is not None:
            out |= {
                "simulated_mean_us": s.mean_us.value, "simulated_mean_ci_us": s.mean_us.half_width,
                "simulated_p50_us": s.quantiles_us[0.5].value, "simulated_p99_us": s.quantiles_us[0.99].value,
                "simulated_loss": s.loss.value, "simulated_loss_ci": s.loss.half_width,
            }  # fmt: skip
        if self.agreement is not None:
            out["second_method"] = self.agreement.largest
        return out


def operating_points(
    system: System,
    arrivals: Sequence[Law],
    moderations_us: Sequence[float],
    *,
    profile: Profile = "exact",
    check: bool = False,
    packets: int = 0,
    seed: int = 1,
) -> list[OperatingPoint]:
    """Every kind of arrivals with every moderation interval.

    Args:
        system: the system.
        arrivals: interarrival times.
        moderations_us: intervals [us]; not used in poll mode.
        profile: of the moderated system.
        check: solve by the second method as well; moderated systems with a buffer only.
        packets: packets that are simulated for each point; 0: none. A trace is always simulated as it is.
        seed: of the simulation.

    Raises:
        UsageError: a point cannot be solved.
    """
    intervals: Sequence[float | None] = moderations_us if system.mode == "moderated" else [None]
    return [_point(system, law, interval, profile, check, packets, seed) for interval in intervals for law in arrivals]


def _point(
    system: System, law: Law, interval: float | None, profile: Profile, check: bool, packets: int, seed: int
) -> OperatingPoint:
    queue = system.polled(law) if interval is None else system.moderated(law, interval)
    traced = law.ordered and packets > 0
    result: QueueResult | None = None
    agreement = None
    try:
        result = queue.solve(profile) if isinstance(queue, ModeratedQueue) else queue.solve()
    except UsageError:
        # A trace has a simulation in any case.
        if not traced:
            raise
    if check and profile == "exact" and isinstance(queue, ModeratedQueue) and queue.limit is not None:
        agreement = second_method(queue, result.seen) if result is not None and result.seen is not None else None
    seen = None
    if packets:
        gaps = [v / system.step_us for v in law.values_us] if traced else None
        seen = simulate(queue, packets, gaps=gaps, seed=seed)
    return OperatingPoint(law, interval, result, seen, agreement)
