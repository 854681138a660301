"""The files that name nodes: node files of testbed ssh and site files of testbed pos, and what both say of a node.

They are YAML, read as strictly as specs are, and hold no secrets, only paths of keys. A node file may come from third
parties: nothing in it reaches a shell unquoted or is an option of ssh. A site file is to be trusted as a script is: the
command line of pos is run as ``cli`` says, and commands of ``setup`` run on the node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt, field_validator
from pydantic_core import PydanticCustomError

from p4perf.errors import DataError, TestbedError, UsageError
from p4perf.specs.messages import nearest
from p4perf.specs.source import SourceNode
from p4perf.specs.types import Strict, read_strictly
from p4perf.targets.link import PCI_ADDRESS
from p4perf.testbeds.base import Role

_FORBIDDEN = frozenset('"\\$%')
"""Characters that ssh or a shell would take for something else in a path."""

ToolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
Core = Annotated[StrictInt, Field(ge=0, le=65535)]


class Equipment(Strict):
    """Cores, interfaces and tools of a node, as far as they are said."""

    cores: tuple[Core, ...] = Field((), max_length=4096, description="CPUs that everything is held on; default: all.")
    interfaces: dict[Name, Annotated[str, Field(pattern=f"^{PCI_ADDRESS.pattern}$")]] = Field(
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
            if not path.startswith("/") or not path.isprintable() or _FORBIDDEN & set(path):
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


@dataclass(frozen=True, slots=True)
class NamedNode:
    name: str

    def error(self, step: str, what: str, hint: str | None = None) -> TestbedError:
        return TestbedError(f"node {self.name}, {step}: {what}", hint=hint)


def file_and_node(place: str, testbed: str, noun: str, example: str) -> tuple[Path, str | None]:
    """The parts of a place such as ``nodes.yaml:dut``; None where no node is named.

    Raises:
        UsageError: the place is empty.
    """
    if not place:
        raise UsageError(f"testbed {testbed} needs a {noun} file", hint=f"write {testbed}:{example}")
    file, colon, name = place.rpartition(":")
    return (Path(file), name or None) if colon and not Path(place).exists() else (Path(place), None)


def _chosen(testbed: str, file: Path, roles: Mapping[str, Collection[Role]], name: str | None) -> str:
    """The node of that name, or the only device under test, of the nodes of a file with their roles."""
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


def _only(senders: Sequence[str], mark: str, file: Path, noun: str) -> str | None:
    """The one of the nodes with that mark, which send load; None if there is none."""
    if len(senders) > 1:
        raise UsageError(
            f"{file} has {len(senders)} nodes with {mark}: {', '.join(senders)}",
            hint=f"give each device its own {noun} file with one load generator",
        )
    return next(iter(senders), None)


# Node files: testbed ssh

_HOST = r"^[A-Za-z0-9][A-Za-z0-9._-]*$|^[0-9A-Fa-f:]+(%[A-Za-z0-9]+)?$"
_USER = r"^[A-Za-z_][A-Za-z0-9_.-]*\$?$"


class NodeSpec(Equipment):
    """One node of a node file."""

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
        if path is not None and (not path or not path.isprintable() or _FORBIDDEN & set(path)):
            raise PydanticCustomError("p4perf_form", "expected a path without quotes, backslashes, $ and %")
        return path

    @field_validator("work_folder")
    @classmethod
    def _absolute(cls, path: str) -> str:
        if not path.startswith(("/", "~/")) or ".." in path.split("/") or not path.strip("~/"):
            raise PydanticCustomError("p4perf_form", "expected an absolute path, or one that begins with ~/")
        return path


class NodeFile(Strict):
    nodes: dict[Name, NodeSpec] = Field(min_length=1, max_length=1000, description="The nodes, by name.")


@dataclass(frozen=True, slots=True)
class RemoteNode(NamedNode):
    """A node of a node file: paths of keys are absolute, the load generator is that of ``generator_node``."""

    spec: NodeSpec
    generator_node: str | None
    """Name of the node that sends load to this one; None if it does that itself, or none does."""


def read_node(file: Path, name: str | None) -> RemoteNode:
    """A node of a node file: that of a name, or the only one that is the device under test.

    Raises:
        DataError: the file cannot be read or is wrong; with the place.
        UsageError: it has no such node, or several devices under test and no name says which.
    """
    content, root = read_strictly(file, NodeFile, "node file")
    nodes = content.nodes
    chosen = _chosen("ssh", file, {n: spec.roles for n, spec in nodes.items()}, name)
    spec = nodes[chosen]
    senders = [each for each, other in nodes.items() if "loadgen" in other.roles]
    sender = chosen if chosen in senders else _only(senders, "the role loadgen", file, "node")
    resolved = {
        "identity": _found(file, root, chosen, "identity", spec.identity),
        "known_hosts": _found(file, root, chosen, "known_hosts", spec.known_hosts),
        "work_folder": spec.work_folder.rstrip("/"),
        "load_generator": nodes[sender].load_generator if sender else spec.load_generator,
    }
    return RemoteNode(chosen, spec.model_copy(update=resolved), sender if sender != chosen else None)


def _found(file: Path, root: SourceNode, name: str, key: str, written: str | None) -> str | None:
    """The path of a key, from the folder of the file; it has to be there, or ssh would take another."""
    if written is None:
        return None
    path = file.absolute().parent / Path(written).expanduser()
    if not path.is_file() or _FORBIDDEN & set(str(path)):
        raise DataError(
            f"there is no file {path}" if not path.is_file() else f"{path} has a character that ssh does not take",
            location=root.locate(["nodes", name, key]),
            key=f"nodes.{name}.{key}",
        )
    return str(path)


# Site files: testbed pos

RESULTS_ROOT = "/srv/testbed/results"
"""Where posd keeps results, below which ``pos allocations show`` and old versions name them."""

_UNQUOTABLE = frozenset("\"'\\$`\0")
"""Characters that paths of a site file do not have."""


def _checked_path(path: str) -> str:
    if not path.startswith("/") or not path.isprintable() or _UNQUOTABLE & set(path) or ".." in path.split("/"):
        raise PydanticCustomError("p4perf_form", "expected an absolute path without quotes, backslashes and $")
    if not path.strip("/"):
        raise PydanticCustomError("p4perf_form", "expected a folder below /")
    return path.rstrip("/")


Folder = Annotated[str, AfterValidator(_checked_path)]
Image = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,100}(@[A-Za-z0-9_.:+-]{1,60})?$")]
BootParameter = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,80}(=[A-Za-z0-9_.,:/+-]{1,200})?$")]
Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]{0,100}(=[A-Za-z0-9.+~:-]{1,100})?$")]
Word = Annotated[str, Field(min_length=1, max_length=4096)]
Command = Annotated[tuple[Word, ...], Field(min_length=1, max_length=100)]


class PosNodeSpec(Equipment):
    """One node of a site file."""

    roles: tuple[Role, ...] = Field(("dut",), min_length=1, description="What it is for.")
    image: Image = Field(description="Image that it boots, such as debian-bookworm or debian-bookworm@TIME.")
    boot_parameters: tuple[BootParameter, ...] = Field((), max_length=100, description="Parameters of its kernel.")
    folder: Folder = Field("/root/p4perf", description="Folder of the node for sources, builds and trials.")
    packages: tuple[Package, ...] = Field((), max_length=100, description="Packages that apt-get installs there.")
    setup: tuple[Command, ...] = Field((), max_length=100, description="Commands that prepare it, as lists of words.")


class SiteFile(Strict):
    """Which nodes of a pos testbed there are, and how they are allocated, booted and prepared."""

    nodes: dict[Name, PosNodeSpec] = Field(min_length=1, max_length=1000, description="The nodes, by name.")
    cli: Command = Field(("pos",), description="The command line of pos, as a list of words.")
    duration_min: StrictInt | None = Field(None, ge=1, le=100_000, description="How long is allocated, in minutes.")
    result_folder: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,100}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,100}){0,8}$",
        description="Folder of the user's results on pos.",
    )
    results_root: Folder = Field(RESULTS_ROOT, description="Folder of this machine below which pos keeps results.")
    free_before: StrictBool = Field(False, description="Free the node before, keeping the calendar entry.")
    keep_calendar: StrictBool = Field(
        True, description="Freeing keeps the entry in the calendar: a run may allocate anew."
    )
    reset_timeout_s: StrictInt = Field(1200, ge=1, le=86400, description="How long a node may boot, in seconds.")
    setup_timeout_s: StrictInt = Field(3600, ge=1, le=604800, description="How long setting up and building may take.")
    facts: str | None = Field(None, description="File with the facts of the node; without it, it is allocated to ask.")

    @field_validator("cli")
    @classmethod
    def _command(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        if words[0].startswith("-") or not all(word.isprintable() for word in words):
            raise PydanticCustomError("p4perf_form", "expected a command as a list of words")
        return words


@dataclass(frozen=True, slots=True)
class PosNode(NamedNode):
    """A node of a site file, and the node that sends load to it."""

    spec: PosNodeSpec
    site: SiteFile
    facts: Path | None
    generator: PosNode | None = None


def read_site(file: Path, name: str | None) -> PosNode:
    """A node of a site file, chosen as in :func:`read_node`, with the same errors."""
    site, _ = read_strictly(file, SiteFile, "site file")
    nodes = site.nodes
    chosen = _chosen("pos", file, {n: spec.roles for n, spec in nodes.items()}, name)
    facts = None if site.facts is None else file.absolute().parent / site.facts
    senders = [n for n, spec in nodes.items() if n != chosen and "loadgen" in spec.roles and spec.load_generator]
    sender = _only(senders, "a load_generator", file, "site")
    generator = None if sender is None else PosNode(sender, nodes[sender], site, None)
    return PosNode(chosen, nodes[chosen], site, facts, generator)
