"""The contract of a load generator: it offers load to a device under test and says what became of every packet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from p4perf.errors import UsageError
from p4perf.targets.base import Job, JobResult, NodeFacts, PointPlan, Problem, Target
from p4perf.targets.link import LinkPlan
from p4perf.testbeds.base import Testbed

Device = Literal["program", "baseline", "null", "faulty"]
"""What the device does with packets: its program, its baseline, or nothing but sending them back, which ``faulty`` does
not do well: it loses, doubles and swaps some, to check the accounts."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """How packets are spaced: ``cbr``, ``poisson``, ``burst``, or ``recorded`` with the gaps of a capture.

    Of bursts: packets in one, the pause after it in us (None: what the rate leaves), time between its packets in ns.
    """

    pattern: str = "cbr"
    burst_length: int = 32
    burst_gap_us: float | None = None
    burst_spacing_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """One trial: packets per second (None: as many as the generator can), for how long, and through what."""

    rate_pps: float | None
    duration_s: float
    spacing: Spacing = field(default_factory=Spacing)
    latency: bool = False
    device: Device = "program"
    seed: int = 1
    faults: tuple[int, int, int] = (0, 0, 0)
    """Of the device ``faulty``: intervals in packets at which it loses, doubles and swaps one; 0: never."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The part of a trial that nothing disturbed: its share of the traffic, packets planned, sent, and lost."""

    share: float
    planned: int
    sent: int
    lost: int


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the packets of a trial. Counters were read after the traffic had stopped and drained.

    ``planned`` is how many were to be sent; ``lost`` are those sent that neither came back nor were dropped because the
    program said so; ``duplicated`` are further copies beyond those that the program makes; ``reordered`` came after one
    with a higher number (RFC 4737). ``rate_pps`` is what was achieved between the first and the last packet,
    ``receive_rate_pps`` what came back in that time.
    """

    planned: int
    sent: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    dropped: int
    rate_pps: float
    receive_rate_pps: float
    flags: tuple[str, ...]
    """What is wrong with this trial: see :mod:`p4perf.testbeds.loadgen.native`."""
    histogram: Mapping[str, Any] | None
    """Latencies as :class:`p4perf.evaluation.load.LatencyHistogram` reads them, if they were asked for."""
    raw: Mapping[str, Any]
    """What the generator printed."""
    counted: Counted | None = None
    """What is left without the times at which generator or device were interrupted; None where these are not known."""

    @property
    def loss_ratio(self) -> float:
        """Lost packets over sent packets (RFC 2544)."""
        return self.lost / self.sent if self.sent else 0.0


class LoadSession(ABC):
    """A load generator and a device that are up, with their link."""

    ready: Mapping[str, Any]
    """What the generator printed when it was ready."""

    devices: tuple[Device, ...] = ("program", "baseline", "null", "faulty")
    """What there is at the other end of the link."""

    shortest_s: float = 0.0
    """Shortest trial that the generator can make; what is asked to be shorter takes so long, in seconds."""

    @abstractmethod
    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        """One trial.

        Raises:
            MeasurementError: the device died, hangs, or lost every packet; or the generator printed nonsense.
        """


@dataclass(frozen=True, slots=True)
class Offer:
    """A trial as one command of the node of the generator, and the names of the files that it leaves in its folder."""

    job: Job
    leaves: tuple[str, ...] = ()


class LoadOffers(ABC):
    """Trials of a generator as single commands, for testbeds on which no dialogue is possible between trials."""

    devices: ClassVar[tuple[Device, ...]] = ("program", "baseline")
    shortest_s: ClassVar[float] = 0.0
    """As of :class:`LoadSession`."""

    @abstractmethod
    def offer(self, load: Load) -> Offer:
        """The command of a trial.

        Raises:
            CapabilityError, MeasurementError: there is none for such a load.
        """

    @abstractmethod
    def account(
        self, load: Load, result: JobResult, left: Mapping[str, str], evidence: Mapping[str, Any], node: str
    ) -> Account:
        """What a trial was.

        Args:
            evidence: counters of the device, see :meth:`p4perf.targets.base.Target.evidence`.

        Raises:
            MeasurementError: it failed; with node and script.
        """


class LoadGenerator(ABC):
    """A load generator. A new one is a module with a subclass and an entry point in ``p4perf.load_generators``."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """What is missing on that machine; empty if the generator can be used there."""

    @abstractmethod
    def open(
        self, target: Target, plan: PointPlan, link: LinkPlan, testbed: Testbed, facts: NodeFacts, folder: Path
    ) -> AbstractContextManager[LoadSession]:
        """Bring generator and device up.

        Raises:
            BuildError, TestbedError: see :meth:`p4perf.testbeds.base.Testbed.converse`.
            CapabilityError: the target has no port of that kind.
            MeasurementError: the device computes something else than the oracle, or does not start.
        """

    def offers(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> LoadOffers:
        """Trials of a point as commands.

        Args:
            facts: of the node of the generator.

        Raises:
            UsageError: this generator answers between trials.
            CapabilityError: it cannot send what is asked for.
            TestbedError: something is missing on its node.
        """
        raise UsageError(
            f"load generator {self.name} answers between trials, which testbeds that run trials in batches cannot do",
            hint="use moongen there, or testbed local or ssh",
        )
