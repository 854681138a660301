"""The contract of a component, the workload that components make, and the traffic that exercises it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from p4perf.errors import CapabilityError, P4PerfError, SpecError
from p4perf.plugins import load_plugin
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component_parameters import ComponentParameters as ComponentParameters
from p4perf.programs.ir import Workload
from p4perf.specs.messages import describe

OWN = "p4"
"""What a spec calls your own P4 program, in the place of a component."""

P = TypeVar("P", bound=ComponentParameters)


class Component(ABC):
    """One language construct that is scaled.

    A component adds its headers, tables, actions and control flow to the baseline. A new one is a module with a
    subclass of this class and an entry point in the group ``p4perf.components``.
    """

    name: ClassVar[str]
    """The name that specs use."""

    summary: ClassVar[str]
    """One line for ``p4perf list``."""

    Parameters: ClassVar[type[ComponentParameters]] = ComponentParameters
    """Its parameters, as a pydantic model; none by default."""

    @abstractmethod
    def extend(self, builder: ProgramBuilder, parameters: Any) -> None:
        """Add the construct, scaled as ``parameters`` say, to the program under construction.

        Raises:
            CapabilityError: no such program exists (say, more entries than the key has values).
        """


def component_parameters(name: str) -> type[ComponentParameters]:
    """The parameters that a component takes.

    Raises:
        UsageError: unknown component; the message names the nearest.
    """
    if name == OWN:
        from p4perf.programs.own import OwnParameters

        return OwnParameters
    component: type[Component] = load_plugin("p4perf.components", name)
    return component.Parameters


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """What the load generator does, with all variables resolved.

    ``distribution`` is ``uniform``, ``sequential``, ``single`` or ``zipf`` (then ``zipf_s`` is its exponent);
    ``hit_ratio`` is the share of packets whose key is in the table.
    """

    frame_size_bytes: int
    pattern: str = "cbr"
    distribution: str = "uniform"
    zipf_s: float = 1.0
    hit_ratio: float = 1.0
    offered_load_mpps: float | None = None
    """Offered load in million packets per second; None means as much as the link or target takes."""
    latency_at: tuple[float, ...] = ()
    """Loads at which latency is measured, as fractions of the maximum."""
    burst_length: int = 32
    """Packets in a burst of the pattern ``burst``."""
    burst_spacing_ns: float = 0.0
    """Time between the packets of a burst; 0 is as fast as the link goes."""
    burst_gap_us: float | None = None
    """Pause after a burst; None is what the offered load leaves."""

    @property
    def flows(self) -> tuple[str, float, float]:
        """How the keys of packets are spread: the distribution, its exponent, and the share of hits."""
        return self.distribution, self.zipf_s, self.hit_ratio


def build_workload(
    components: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    frame_size_bytes: int,
    baseline: str = "l2fwd",
    captured: Sequence[bytes] = (),
) -> Workload:
    """Compose the baseline and the components, in order, into a program.

    Args:
        frame_size_bytes: frame size including the FCS (RFC 2544), in bytes.
        baseline: name of the component that every program starts with and is compared to.
        captured: frames of a capture, which your own program gets in the place of others.

    Raises:
        SpecError: an unknown component, or parameters that it does not take.
        CapabilityError: the components do not go together.
    """
    base, whole = ProgramBuilder("baseline"), ProgramBuilder("program")
    for builder in (base, whole):
        _extend(builder, baseline, {})
    if any(name == OWN for name, _ in components):
        if len(components) > 1:
            raise CapabilityError("a program of your own stands alone", key="program.component")
        from p4perf.programs.own import OwnParameters, own_workload

        own = _validated(OWN, OwnParameters, components[0][1])
        return own_workload(own, base.program(), frame_size_bytes, tuple(captured))
    for number, (name, parameters) in enumerate(components):
        try:
            _extend(whole, name, parameters)
        except P4PerfError as error:
            error.component = number
            raise
    return Workload(whole.program(), base.program(), whole.packets(frame_size_bytes))


def _extend(builder: ProgramBuilder, name: str, parameters: Mapping[str, Any]) -> None:
    component: Component = load_plugin("p4perf.components", name)()
    component.extend(builder, _validated(name, component.Parameters, parameters))


def _validated(name: str, kind: type[P], parameters: Mapping[str, Any]) -> P:
    try:
        return kind(**parameters)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        known = ", ".join(kind.model_fields) or "none"
        raise SpecError(
            f"component {name}: {describe(first, kind.model_fields)[0]}",
            key=f"program.parameters.{where}",
            hint=f"parameters of {name}: {known}",
        ) from error
