"""The contract of a target, and the plain data that passes between targets and testbeds.

A target knows the device under test: what it can run, and which files and commands build a program. What else it can
do are roles, see :mod:`p4perf.targets.roles`. It knows no testbed: it returns :class:`BuildPlan` and :class:`Job`, and
a testbed carries them out.
"""

from __future__ import annotations

import hashlib
import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from p4perf.errors import UsageError
from p4perf.programs.capabilities import Capabilities
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload
from p4perf.results.manifest import NodeFacts as NodeFacts

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
        return tuple(placed(command, places) for command in self.commands)

    @property
    def key(self) -> str:
        """Content hash (hex, 32 digits): equal plans make equal products."""
        content = [dict(self.files), [list(c) for c in self.commands], self.product, dict(self.context)]
        content.append({name: part.key for name, part in self.parts.items()})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def placed(command: Sequence[str], places: Mapping[str, str]) -> tuple[str, ...]:
    """A command with places for ``{name}`` in its arguments."""
    words = list(command)
    for name, place in places.items():
        words = [word.replace(f"{{{name}}}", place) for word in words]
    return tuple(words)


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
    returncode: int
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool = False

    @property
    def tail(self) -> str:
        """The last lines of stderr, or else of stdout, for a message; empty if there are none."""
        return " / ".join((self.stderr.strip() or self.stdout.strip()).splitlines()[-3:])


_SIGNALS = {int(s): s.name for s in signal.Signals}


def ending(returncode: int) -> str:
    """How a process ended, in words: ``ended with status 1``, ``died of signal 11 (SIGSEGV)``."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    name = _SIGNALS.get(-returncode)
    return f"died of signal {-returncode}{f' ({name})' if name else ''}"


@dataclass(frozen=True, slots=True)
class Problem:
    """An obstacle to using a target or testbed."""

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
    error: float | None = None
    """Standard error of the value by the windows of its trial; None where these do not show it."""


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """Metric values of a trial, whether it meets the acceptance rules, and its quality flags."""

    metrics: tuple[MetricValue, ...]
    accepted: bool
    flags: tuple[str, ...]


def point_key(*identity: Any) -> str:
    """The hash that names a point (hex, 16 digits)."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


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


class Target(ABC):
    """A device under test. A new one is a module with a subclass and an entry point in the group ``p4perf.targets``.

    A subclass takes the roles of :mod:`p4perf.targets.roles` that it has, at least ``Measures`` or ``Serves``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    metrics: ClassVar[tuple[str, ...]]
    """Metrics that every accepted trial gives."""

    capabilities: ClassVar[Capabilities] = Capabilities("the target")

    variants: ClassVar[Mapping[str, str]] = {}
    """Alternative implementations in the target, by name with a summary: ``dpdk-swx:interpreter``."""

    caution: ClassVar[str] = ""
    """What to know before its numbers are compared with those of others, in one line."""

    standalone: ClassVar[bool] = True
    """Whether a planned point is all that it takes to build and run it, on any machine."""

    def check_program(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> None:
        """Refuse a program, with its packets, that is beyond the capabilities at a node.

        Raises:
            CapabilityError: it is; the message names the construct or the limit.
        """
        self.capabilities_at(facts).check(workload.program, workload.packets, traffic)

    def capabilities_at(self, facts: NodeFacts) -> Capabilities:
        return self.capabilities

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; they are parts of the target's label."""
        for variant in variants:
            if variant not in self.variants:
                hint = f"it has {', '.join(self.variants) or 'none'}"
                raise UsageError(f"target {self.name} has no variant {variant}", hint=hint)
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
