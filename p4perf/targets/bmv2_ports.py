"""The ports of a program in bmv2: one goes back to the load generator, the others take copies away."""

from __future__ import annotations

from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.generators.analysis import statements, used_actions
from p4perf.generators.program import Clone, Const, Multicast, ParameterRef, Program, SetEgress, Workload


@dataclass(frozen=True, slots=True)
class Ports:
    """``generator`` is the port of the link; copies leave by ``sinks``, in ascending order, and are dropped there."""

    generator: int
    sinks: tuple[int, ...] = ()


def ports_of(workload: Workload) -> Ports:
    """The ports that program and baseline send by.

    Raises:
        CapabilityError: packets leave by another port than those of the baseline, so that none would come back.
    """
    unicast = {*_unicast(workload.baseline), *_unicast(workload.program)}
    groups = [set(s.ports) for s in statements(workload.program) if isinstance(s, Multicast) and s.ports]
    clones = {s.port for s in statements(workload.program) if isinstance(s, Clone)}
    if len(unicast) != 1:
        raise CapabilityError(
            f"bmv2 is connected with the load generator by one port, and packets would leave by {len(unicast)}",
            key="program",
        )
    (port,) = unicast
    if any(port not in group for group in groups):
        raise CapabilityError(
            f"bmv2 is connected with the load generator by port {port}, which is not in all multicast groups",
            key="program",
        )
    return Ports(port, tuple(sorted(clones.union(*groups) - {port})))


def _unicast(program: Program) -> set[int]:
    found = {s.port.value for s in statements(program) if isinstance(s, SetEgress) and isinstance(s.port, Const)}
    used = set(used_actions(program))
    for table in program.tables:
        action = program.action(table.entries.action)
        if action.name in used and any(
            isinstance(s, SetEgress) and isinstance(s.port, ParameterRef) for s in action.body
        ):
            found.add(table.entries.port)
    return found
