"""The contract of a target, and the plain data that passes between targets and testbeds.

A target knows the device under test: what it can run, which files and commands build a program, which command makes
one trial, and what the output of that command means. It knows no testbed: it returns :class:`BuildPlan` and
:class:`Job`, and a testbed carries them out.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from p4perf.errors import CapabilityError, MeasurementError, UsageError
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.results.facts import NodeFacts as NodeFacts
from p4perf.targets.link import LinkPlan

if TYPE_CHECKING:
    from p4perf.targets.service import ServedProgram, Service, Step

TrialRecord = Mapping[str, Any]
"""What one trial printed, as JSON data: kept raw in the run directory."""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """How to make a program: files to write into an empty folder, commands to run there, the file that results.

    ``parts`` are built before, once for all plans that need them: ``{name}`` in a command stands for the folder of the
    part of that name.
    """

    files: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    product: str
    context: Mapping[str, str] = field(default_factory=dict)
    """What else the product depends on: compiler and library versions, CPU."""
    parts: Mapping[str, BuildPlan] = field(default_factory=dict)
    timeout_s: float | None = None
    """How long one command may take, in seconds, where that is longer than builds take otherwise."""

    def commands_with(self, places: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
        """The commands with the places of the parts in them."""
        return tuple(tuple(_placed(argument, places) for argument in command) for command in self.commands)

    @property
    def key(self) -> str:
        """Content hash (hex, 32 digits): equal plans make equal products."""
        content = [dict(self.files), [list(c) for c in self.commands], self.product, dict(self.context)]
        content.append({name: part.key for name, part in self.parts.items()})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _placed(argument: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        argument = argument.replace(f"{{{name}}}", place)
    return argument


@dataclass(frozen=True, slots=True)
class Job:
    """A command for a testbed.

    ``{build}`` and ``{folder}`` in an argument stand for the folder of the build's product and the folder in which
    ``files`` were put.
    """

    argv: tuple[str, ...]
    timeout_s: float
    build: BuildPlan | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a job."""

    returncode: int
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that stands in the way of using a target or testbed."""

    what: str
    hint: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """How a trial is measured.

    ``mode`` is ``gated`` (short windows between calibrations, for shared machines) or ``plain`` (for an isolated core).
    ``gate_ratio`` is the calibration ratio of an undisturbed core, None if not known yet.
    """

    mode: str = "gated"
    windows: int = 40
    window_us: int = 500
    timeout_ms: int = 2500
    warmup_ms: int = 10
    seed: int = 1
    gate_ratio: float | None = None
    hugepages: bool = False
    simulated: tuple[str, ...] | None = None
    """Metrics that a simulation is wanted for; None: all that the target can simulate."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One measured number. ``unit`` is its unit as in :mod:`p4perf.specs.metrics`."""

    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """What a trial says: metric values, whether it meets the acceptance rules, and its quality flags."""

    metrics: tuple[MetricValue, ...]
    accepted: bool
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PointPlan:
    """All that a target needs to measure one point, and the hash that names the point.

    ``memory_bytes`` is the memory that tables and buffers will take, estimated from their layout; ``setup_s`` is the
    time in which the tables of one start are filled, roughly.
    """

    key: str
    build: BuildPlan
    workload: Workload
    traffic: TrafficPlan
    memory_bytes: int
    setup_s: float = 0.0


def step_failed(step: Step, result: JobResult, why: str = "") -> MeasurementError:
    """The failure of a step, with the last lines of what it printed."""
    said = " / ".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-3:])
    status = f"ended with status {result.returncode}"
    how = f"was stopped after {result.duration_s:.0f} s" if result.timed_out else status
    return MeasurementError(f"{step.what}: {why or f'the command {how}'}{f': {said}' if said else ''}")


class Target(ABC):
    """A device under test. A new one is a module with a subclass and an entry point in the group ``p4perf.targets``."""

    name: ClassVar[str]
    summary: ClassVar[str]

    metrics: ClassVar[tuple[str, ...]]
    """Metrics that every accepted trial gives."""

    simulates: ClassVar[tuple[str, ...]] = ()
    """Metrics that :meth:`simulated` gives, where :meth:`simulation` has commands for a node."""

    capabilities: ClassVar[Capabilities] = Capabilities("the target")
    """What the target can do and up to where."""

    variants: ClassVar[Mapping[str, str]] = {}
    """Other ways in which the target can do the same, by name with a summary: ``dpdk-swx:interpreter``."""

    standalone: ClassVar[bool] = True
    """Whether a planned point is all that it takes to build and run it, on any machine."""

    def capabilities_at(self, facts: NodeFacts) -> Capabilities:
        """What the target can do on that node."""
        return self.capabilities

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; they are parts of the target's label.

        Raises:
            UsageError: the target has no such variant.
        """
        for variant in variants:
            if variant not in self.variants:
                raise UsageError(
                    f"target {self.name} has no variant {variant}",
                    hint=f"it has {', '.join(self.variants) or 'none'}",
                )
        self.chosen = tuple(v for v in self.variants if v in variants)

    @property
    def label(self) -> str:
        """Name and chosen variants, as users write them: ``dpdk-c``, ``dpdk-c:acl+fib``."""
        return f"{self.name}:{'+'.join(self.chosen)}" if self.chosen else self.name

    @abstractmethod
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """What is missing on that machine; empty if the target can be used there."""

    @abstractmethod
    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """Plan one point, without running anything.

        Raises:
            CapabilityError: the target cannot do this point; the message names the limit and where it comes from.
        """

    @abstractmethod
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        """The command of one trial (one process start) of a planned point."""

    @abstractmethod
    def parse(self, result: JobResult) -> TrialRecord:
        """The record of a finished trial.

        Raises:
            MeasurementError: the program computed something else than the oracle, died, hung, or printed nonsense.
        """

    @abstractmethod
    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        """Metric values of a record, judged with the gate ratio known by now."""

    def simulation(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> tuple[Job, ...]:
        """Commands that count by simulation what a planned point does; none if the target or the node cannot."""
        return ()

    def simulated(self, results: Sequence[JobResult]) -> tuple[MetricValue, ...]:
        """What the results of :meth:`simulation`, in its order, say.

        Raises:
            MeasurementError: a simulation failed.
        """
        return ()

    links: ClassVar[tuple[str, ...]] = ()
    """Kinds of links by which a load generator of this machine can reach the target; none if it has no port."""

    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        """The command that brings the native load generator and the device up and then converses.

        Raises:
            CapabilityError: the target has no port of that kind.
        """
        raise CapabilityError(
            f"target {self.label} has no port for a load generator",
            key="load.link",
            hint="leave out what needs one: offered loads, throughput, loss and latency",
        )

    served_gives: ClassVar[tuple[str, ...]] = ("packet_rate",)
    """Metrics that :meth:`served_metrics` gives where the target is served."""

    def is_served(self, facts: NodeFacts) -> bool:
        """Whether all that is measured of it there comes from a load generator outside, by :meth:`service`."""
        return False

    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        """How the device comes up to forward the packets of a load generator.

        Raises:
            CapabilityError: it has no ports.
        """
        raise CapabilityError(f"target {self.label} has no ports for a load generator on another machine", key="load")

    def check_step(self, step: Step, result: JobResult) -> None:
        """Judge a step of :meth:`service`, whose exit code may say little.

        Raises:
            MeasurementError: it failed; final for the point if the key is ``refused``.
        """
        if result.timed_out or result.returncode != 0:
            raise step_failed(step, result)

    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        """What the commands around a trial say (``before``, ``during``, ``after``), by :attr:`Step.what`: JSON data."""
        return {what: result.stdout for what, result in results.items()}

    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        """What an overload of the device tells besides how many packets came back.

        Args:
            overload: ``program`` and ``baseline``: the account of each, as the run keeps it (``receive_rate_pps``,
                ``sent``, ``received``, ``raw`` ...), and ``evidence`` as above.
            facts: of the node, as the run recorded them.
        """
        return ()

    def calibration(self) -> Job | None:
        """A command that tells how undisturbed the machine is, or None if the target has none."""
        return None

    def gate_ratio(self, record: TrialRecord) -> float | None:
        """The gate ratio that this trial or calibration saw, if it saw one."""
        return None

    def use_hugepages(self, memory_bytes: int, facts: NodeFacts) -> bool:
        """Whether a run whose largest point takes that much memory can and should use hugepages."""
        return False

    def memory(self, program: Program) -> Mapping[str, float]:
        """Memory of the tables and arrays of a program in bytes, from the layouts of what holds them, by their names.

        What is not named is not known.
        """
        return {}

    half_measured: ClassVar[frozenset[str]] = frozenset()
    """Kinds of tables of which the metric ``memory_bytes`` is a part only."""

    layout: ClassVar[str] = ""
    """Of which library, and which release of it, the layouts are that :meth:`memory` knows."""

    def bytes_per_entry(self, workload: Workload) -> tuple[float, float] | None:
        """Working set of the tables as ``(fixed bytes, bytes per entry)``, or None if there is no such figure."""
        return None
