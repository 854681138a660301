"""The node file: which machines there are, what each is for, and how it is reached.

It is YAML, read as strictly as specs are, and may come from third parties: nothing in it reaches a shell unquoted or is
an option of ssh. It holds no secrets, only paths of keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, StrictInt, field_validator
from pydantic_core import PydanticCustomError

from p4perf.errors import DataError, TestbedError, UsageError
from p4perf.specs.source import SourceNode
from p4perf.specs.strictfile import read_strictly
from p4perf.specs.types import Strict
from p4perf.testbeds.base import Role
from p4perf.testbeds.equipment import FORBIDDEN, Equipment, Name, chosen_node

_HOST = r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^[0-9A-Fa-f:]+(%[A-Za-z0-9]+)?$"
_USER = r"^[A-Za-z_][A-Za-z0-9_.-]*\$?$"


class NodeSpec(Equipment):
    """One node."""

    host: str = Field(pattern=_HOST, max_length=255, description="Address, name, or alias of ~/.ssh/config.")
    user: str | None = Field(None, pattern=_USER, max_length=64, description="Who logs in; by default as ssh says.")
    port: StrictInt | None = Field(None, ge=1, le=65535, description="Port of its sshd; by default as ssh says.")
    identity: str | None = Field(None, description="Path of the private key; an agent offers no others then.")
    known_hosts: str | None = Field(None, description="Path of the file with its host key; by default those of ssh.")
    roles: tuple[Role, ...] = Field(("dut", "loadgen"), min_length=1, description="What it is for.")
    work_folder: str = Field("~/.cache/p4perf", description="Folder of the node for builds and jobs.")
    connect_timeout_s: StrictInt = Field(10, ge=1, le=600, description="How long connecting may take, in seconds.")

    @field_validator("identity", "known_hosts", "work_folder")
    @classmethod
    def _plain(cls, path: str | None) -> str | None:
        if path is not None and (not path or not path.isprintable() or FORBIDDEN & set(path)):
            raise PydanticCustomError("p4perf_form", "expected a path without quotes, backslashes, $ and %")
        return path

    @field_validator("work_folder")
    @classmethod
    def _absolute(cls, path: str) -> str:
        if not path.startswith(("/", "~/")) or ".." in path.split("/") or not path.strip("~/"):
            raise PydanticCustomError("p4perf_form", "expected an absolute path, or one that begins with ~/")
        return path


class NodeFile(Strict):
    """The whole file."""

    nodes: dict[Name, NodeSpec] = Field(min_length=1, max_length=1000, description="The nodes, by name.")


@dataclass(frozen=True, slots=True)
class RemoteNode:
    """A node as it is used: paths of keys are absolute, the load generator is that of ``generator_node``."""

    name: str
    spec: NodeSpec
    generator_node: str | None
    """Name of the node that sends load to this one; None if it does that itself, or none does."""

    def error(self, step: str, what: str, hint: str | None = None) -> TestbedError:
        return TestbedError(f"node {self.name}, {step}: {what}", hint=hint)


def read_node(file: Path, name: str | None) -> RemoteNode:
    """A node of a node file: that of a name, or the only one that is the device under test.

    Raises:
        DataError: the file cannot be read or is wrong; with the place.
        UsageError: it has no such node, or several devices under test and no name says which.
    """
    content, root = read_strictly(file, NodeFile, "node file")
    nodes = content.nodes
    chosen = chosen_node("ssh", file, {n: spec.roles for n, spec in nodes.items()}, name)
    spec, sender = nodes[chosen], _sender(nodes, chosen, file)
    resolved = {
        "identity": _found(file, root, chosen, "identity", spec.identity),
        "known_hosts": _found(file, root, chosen, "known_hosts", spec.known_hosts),
        "work_folder": spec.work_folder.rstrip("/"),
        "load_generator": nodes[sender].load_generator if sender else spec.load_generator,
    }
    return RemoteNode(chosen, spec.model_copy(update=resolved), sender if sender != chosen else None)


def _sender(nodes: Mapping[str, NodeSpec], chosen: str, file: Path) -> str | None:
    """The node that sends load to a device: itself, or the only other one with that role."""
    if "loadgen" in nodes[chosen].roles:
        return chosen
    others = [name for name, spec in nodes.items() if "loadgen" in spec.roles]
    if len(others) > 1:
        raise UsageError(
            f"{file} has {len(others)} nodes with the role loadgen",
            hint="give each device its own node file with one load generator",
        )
    return next(iter(others), None)


def _found(file: Path, root: SourceNode, name: str, key: str, written: str | None) -> str | None:
    """The path of a key, from the folder of the file; it has to be there, or ssh would take another."""
    if written is None:
        return None
    path = file.absolute().parent / Path(written).expanduser()
    if not path.is_file() or FORBIDDEN & set(str(path)):
        raise DataError(
            f"there is no file {path}" if not path.is_file() else f"{path} has a character that ssh does not take",
            location=root.locate(["nodes", name, key]),
            key=f"nodes.{name}.{key}",
        )
    return str(path)
