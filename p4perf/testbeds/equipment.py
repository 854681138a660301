"""What files with nodes say of each, and how a user names one of them, whichever testbed reaches it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, field_validator
from pydantic_core import PydanticCustomError

from p4perf.errors import UsageError
from p4perf.specs.messages import nearest
from p4perf.specs.types import Strict
from p4perf.testbeds.base import Role

_PCI = r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$"
FORBIDDEN = frozenset('"\\$%')
"""Characters that ssh or a shell would take for something else in a path."""

ToolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
Core = Annotated[StrictInt, Field(ge=0, le=65535)]


class Equipment(Strict):
    """Cores, interfaces and tools of a node, as far as they are said."""

    cores: tuple[Core, ...] = Field((), max_length=4096, description="CPUs that everything is held on; default: all.")
    interfaces: dict[Name, Annotated[str, Field(pattern=_PCI)]] = Field(
        default_factory=dict, description="Network interfaces by name, as PCI addresses; doctor looks for them."
    )
    tools: dict[ToolName, str] = Field(
        default_factory=dict, description="Paths of what is not on the PATH there: moongen, t4p4s, p4c, nfp4build, ..."
    )
    load_generator: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] | None = Field(
        None, description="What sends load from this node to the others, where a spec names none: moongen."
    )
    cpu_ghz: Annotated[float, Field(gt=0, le=10)] | None = Field(
        None, description="Frequency at which its cores are held, in GHz, where it cannot be read."
    )

    @field_validator("tools")
    @classmethod
    def _paths(cls, tools: dict[str, str]) -> dict[str, str]:
        for path in tools.values():
            if not path.startswith("/") or not path.isprintable() or FORBIDDEN & set(path):
                raise PydanticCustomError("p4perf_form", "expected absolute paths without quotes, backslashes, $ and %")
        return tools

    def as_facts(self) -> dict[str, str]:
        found = {f"interface_{name}": address for name, address in self.interfaces.items()}
        found |= {f"tool_{name}": path for name, path in self.tools.items()}
        if self.cores:
            found["cores"] = ",".join(map(str, self.cores))
        if self.load_generator is not None:
            found["load_generator"] = self.load_generator
        if self.cpu_ghz is not None:
            found["cpu_ghz"] = repr(self.cpu_ghz)
        return found


def file_and_node(place: str, testbed: str, noun: str, example: str) -> tuple[Path, str | None]:
    """The parts of a place such as ``nodes.yaml:dut``; None where no node is named.

    Raises:
        UsageError: the place is empty.
    """
    if not place:
        raise UsageError(f"testbed {testbed} needs a {noun} file", hint=f"write {testbed}:{example}")
    file, colon, name = place.rpartition(":")
    return (Path(file), name or None) if colon and not Path(place).exists() else (Path(place), None)


def chosen_node(testbed: str, file: Path, roles: Mapping[str, Collection[Role]], name: str | None) -> str:
    """The node of that name, or the only device under test, of the nodes of a file with their roles.

    Raises:
        UsageError: there is no such node, or several devices under test and no name says which.
    """
    devices = [each for each, its_roles in roles.items() if "dut" in its_roles]
    if name is None and len(devices) != 1:
        raise UsageError(
            f"{file} has {len(devices) or 'no'} nodes with the role dut",
            hint=f"name one: {testbed}:{file}:{(devices or list(roles))[0]}",
        )
    chosen = name or devices[0]
    if chosen not in roles:
        raise UsageError(f"{file} has no node {chosen}", hint=nearest(chosen, roles, "it has"))
    return chosen
