"""What a target can do beside planning points: small roles, of which each target takes those that it has.

Callers ask for a role with ``isinstance``, or with :func:`measuring`, :func:`connected` and :func:`serving` where the
target has to have it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.programs.ir import Program, Table, Workload
from p4perf.targets import base
from p4perf.targets.builds import calibration_job
from p4perf.targets.link import LinkPlan
from p4perf.targets.windows import Undisturbed


class Measures(base.Target):
    """Has trials of its own: one command each, which is its own source of packets."""

    @abstractmethod
    def trial(self, plan: base.PointPlan, options: base.TrialOptions, facts: base.NodeFacts) -> base.Job:
        """The command of one trial (one process start) of a planned point."""

    @abstractmethod
    def parse(self, result: base.JobResult) -> base.TrialRecord:
        """The record of a finished trial.

        Raises:
            MeasurementError: the output differs from the oracle, or the program died, hung or printed nonsense.
        """

    @abstractmethod
    def summarise(self, record: base.TrialRecord, gate_ratio: float | None) -> base.TrialSummary:
        """Metric values of a record, judged with the gate ratio known by now."""

    def undisturbed(self, record: base.TrialRecord) -> Undisturbed | None:
        """The undisturbed core that this trial or calibration saw; None if it saw none."""
        return None

    def use_hugepages(self, memory_bytes: int, facts: base.NodeFacts) -> bool:
        """Whether a run whose largest point takes that much memory can and should use hugepages."""
        return False


class Calibrates(Measures):
    """Has a command that measures how undisturbed the machine is."""

    def calibration(self) -> base.Job:
        """The command; it prints one line of JSON per CPU, which :meth:`gate_ratio` reads."""
        return calibration_job()


class Simulates(base.Target):
    """Counts by simulation what a planned point does."""

    simulates: ClassVar[tuple[str, ...]]
    """Metrics that :meth:`simulated` gives, where :meth:`simulation` has commands for a node."""

    @abstractmethod
    def simulation(
        self, plan: base.PointPlan, options: base.TrialOptions, facts: base.NodeFacts
    ) -> tuple[base.Job, ...]:
        """The commands of a simulation; none where the node lacks what it takes."""

    @abstractmethod
    def simulated(self, results: Sequence[base.JobResult]) -> tuple[base.MetricValue, ...]:
        """Metric values from the results of :meth:`simulation`, in its order.

        Raises:
            MeasurementError: a simulation failed.
        """


class SizesMemory(base.Target):
    """Knows the layouts of tables and arrays."""

    layout: ClassVar[str]
    """The library or system whose layouts these are, with its release."""

    half_measured: ClassVar[frozenset[str]] = frozenset()
    """Kinds of tables of whose memory the metric ``memory_bytes`` covers only a part."""

    @abstractmethod
    def memory(self, program: Program) -> Mapping[str, float]:
        """Memory of the tables and arrays of a program in bytes, by their names. Absent names are unknown."""

    def bytes_per_entry(self, workload: Workload) -> tuple[float, float] | None:
        """Working set of a single exact table as ``(fixed bytes, bytes per entry)``; None without such a figure."""
        program = workload.program
        if len(program.tables) != 1 or program.match_kind(program.tables[0]) != "exact":
            return None
        size = self.bytes_per_exact_entry(program, program.tables[0])
        return None if size is None else (0.0, size)

    def bytes_per_exact_entry(self, program: Program, table: Table) -> float | None:
        """Bytes of cache lines that lookups touch for each entry of a large exact table."""
        return None


class Connects(base.Target):
    """Has a port that the native load generator of the same machine reaches by a virtual link."""

    links: ClassVar[tuple[str, ...]]
    """Kinds of links, the default first."""
    queue_packets: ClassVar[int | None] = None
    """Most packets that wait in front of the device, if fewer than a link may hold."""

    @abstractmethod
    def load(self, plan: base.PointPlan, link: LinkPlan, facts: base.NodeFacts) -> base.Job:
        """The command that starts load generator and device and then converses.

        Raises:
            CapabilityError: the target has no port of that kind.
        """


ServedProgram = Literal["program", "baseline"]


@dataclass(frozen=True, slots=True)
class ServiceStep:
    """A command that runs to its end on the node of the device.

    ``what`` is what it does, in the words of a message: ``loading the firmware``.
    """

    what: str
    job: base.Job


@dataclass(frozen=True, slots=True)
class Service:
    """A device between the packets of a load generator.

    Args:
        prepare: commands before, one after the other.
        main: the command that runs as long as the device is needed; None where the device then runs by itself.
        ready: extended regular expression (POSIX); a line of the output of ``main`` that matches it means that the
            device forwards packets.
        broken: likewise; a line that matches it means that the device will never forward. Empty: there is none.
        ready_timeout_s: time limit for ``ready``, in seconds.
        settle_s: pause between ``ready`` and the first packet, in seconds.
        before: commands whose output is kept with a trial, run right before it: counters.
        during: commands that run while load is offered, beginning when it has settled.
        after: as ``before``, right after it.
        release: commands at the end, run whatever happened.
    """

    prepare: tuple[ServiceStep, ...] = ()
    main: base.Job | None = None
    ready: str = ""
    broken: str = ""
    ready_timeout_s: float = 60.0
    settle_s: float = 0.0
    before: tuple[ServiceStep, ...] = ()
    during: tuple[ServiceStep, ...] = ()
    after: tuple[ServiceStep, ...] = ()
    release: tuple[ServiceStep, ...] = ()


def step_failed(step: ServiceStep, result: base.JobResult, why: str = "") -> MeasurementError:
    """The failure of a step, with the last lines of its output."""
    status = f"ended with status {result.returncode}"
    how = f"was stopped after {result.duration_s:.0f} s" if result.timed_out else status
    return MeasurementError(f"{step.what}: {why or f'the command {how}'}{f': {result.tail}' if result.tail else ''}")


class Serves(base.Target):
    """Forwards the packets of a load generator on another machine."""

    served_gives: ClassVar[tuple[str, ...]] = ("packet_rate",)
    """Metrics that :meth:`served_metrics` gives."""

    def is_served(self, facts: base.NodeFacts) -> bool:
        """Whether all measurements on that node come from a load generator outside."""
        return True

    @abstractmethod
    def service(self, plan: base.PointPlan, program: ServedProgram, facts: base.NodeFacts) -> Service:
        """The commands that start the device, watch it and stop it.

        Raises:
            CapabilityError: the node lacks ports or cores for it.
        """

    def check_step(self, step: ServiceStep, result: base.JobResult) -> None:
        """Judge a step of :meth:`service`, whose exit code may say little.

        Raises:
            MeasurementError: it failed; final for the point if the key is ``refused``.
        """
        if result.timed_out or result.returncode != 0:
            raise step_failed(step, result)

    def evidence(self, results: Mapping[str, base.JobResult]) -> Mapping[str, Any]:
        """JSON data from the commands around a trial (``before``, ``during``, ``after``), by :attr:`Step.what`."""
        return {what: result.stdout for what, result in results.items()}

    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[base.MetricValue, ...]:
        """Metric values of an overload of the device.

        Args:
            overload: ``program`` and ``baseline``: the account of each, as the run keeps it (``receive_rate_pps``,
                ``sent``, ``received``, ``raw`` ...), and ``evidence`` as above.
            facts: of the node, as the run recorded them.
        """
        return ()


def measuring(target: base.Target) -> Measures:
    """The target as one that has trials of its own."""
    if isinstance(target, Measures):
        return target
    hint = "name a node with the role loadgen"
    raise CapabilityError(f"target {target.label} is measured by a load generator outside only", key="load", hint=hint)


def connected(target: base.Target) -> Connects:
    """The target as one with a port for the native load generator."""
    if isinstance(target, Connects):
        return target
    hint = "leave out what needs one: offered loads, throughput, loss and latency"
    raise CapabilityError(f"target {target.label} has no port for a load generator", key="load.link", hint=hint)


def serving(target: base.Target) -> Serves:
    """The target as one that a load generator on another machine loads."""
    if isinstance(target, Serves):
        return target
    raise CapabilityError(f"target {target.label} has no ports for a load generator on another machine", key="load")


def is_served(target: base.Target, facts: base.NodeFacts) -> bool:
    """Whether all measurements of the target on that node come from a load generator outside."""
    return isinstance(target, Serves) and target.is_served(facts)


def links_of(target: base.Target) -> tuple[str, ...]:
    """Kinds of links by which the native load generator reaches the target; none if it has no port."""
    return target.links if isinstance(target, Connects) else ()


def uses_hugepages(target: base.Target, memory_bytes: int, facts: base.NodeFacts) -> bool:
    """Whether a run whose largest point takes that much memory can and should use hugepages."""
    return isinstance(target, Measures) and target.use_hugepages(memory_bytes, facts)


def knows_hugepages(target: base.Target) -> bool:
    """Whether the target uses hugepages where there are enough of them."""
    return isinstance(target, Measures) and type(target).use_hugepages is not Measures.use_hugepages


def calibration_of(target: base.Target) -> base.Job | None:
    """The command that measures how undisturbed the machine is; None if the target has none."""
    return target.calibration() if isinstance(target, Calibrates) else None
