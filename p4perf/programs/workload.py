"""Workloads: from component names and parameters to a program with its packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from p4perf.errors import SpecError
from p4perf.plugins import load_plugin
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component
from p4perf.programs.ir import Workload
from p4perf.specs.messages import describe


def build_workload(
    components: Sequence[tuple[str, Mapping[str, Any]]], *, frame_size_bytes: int, baseline: str = "l2fwd"
) -> Workload:
    """Compose the baseline and the components, in order, into a program.

    Args:
        frame_size_bytes: frame size including the FCS (RFC 2544), in bytes.
        baseline: name of the component that every program starts with and is compared to.

    Raises:
        SpecError: an unknown component, or parameters that it does not take.
        CapabilityError: the components do not go together.
    """
    base, whole = ProgramBuilder("baseline"), ProgramBuilder("program")
    for builder in (base, whole):
        _extend(builder, baseline, {})
    for name, parameters in components:
        _extend(whole, name, parameters)
    return Workload(whole.program(), base.program(), whole.packets(frame_size_bytes))


def _extend(builder: ProgramBuilder, name: str, parameters: Mapping[str, Any]) -> None:
    component: Component = load_plugin("p4perf.components", name)()
    try:
        validated = component.Parameters(**parameters)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        known = ", ".join(component.Parameters.model_fields) or "none"
        raise SpecError(
            f"component {name}: {describe(first)[0]}",
            key=f"program.parameters.{where}",
            hint=f"parameters of {name}: {known}",
        ) from error
    component.extend(builder, validated)
