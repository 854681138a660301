"""The site file: which nodes of a pos testbed there are, and how they are allocated, booted and prepared.

It is YAML, read as strictly as specs are. It holds no secrets. The command line of pos is run as ``cli`` says, and
commands of ``setup`` run on the node: a site file is to be trusted as a script is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt, field_validator
from pydantic_core import PydanticCustomError

from p4perf.errors import TestbedError, UsageError
from p4perf.specs.strictfile import read_strictly
from p4perf.specs.types import Strict
from p4perf.testbeds.base import Role
from p4perf.testbeds.equipment import Equipment, Name, chosen_node

RESULTS_ROOT = "/srv/testbed/results"
"""Where posd keeps results, below which ``pos allocations show`` and old versions name them."""

_PLAIN = frozenset("\"'\\$`\0")
"""Characters that paths do not have here."""


def _checked_path(path: str) -> str:
    if not path.startswith("/") or not path.isprintable() or _PLAIN & set(path) or ".." in path.split("/"):
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
    """One node."""

    roles: tuple[Role, ...] = Field(("dut",), min_length=1, description="What it is for.")
    image: Image = Field(description="Image that it boots, such as debian-bookworm or debian-bookworm@TIME.")
    boot_parameters: tuple[BootParameter, ...] = Field((), max_length=100, description="Parameters of its kernel.")
    folder: Folder = Field("/root/p4perf", description="Folder of the node for sources, builds and trials.")
    packages: tuple[Package, ...] = Field((), max_length=100, description="Packages that apt-get installs there.")
    setup: tuple[Command, ...] = Field((), max_length=100, description="Commands that prepare it, as lists of words.")


class SiteFile(Strict):
    """The whole file."""

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
class PosNode:
    """The node that is measured, and how it gets there."""

    name: str
    spec: PosNodeSpec
    site: SiteFile
    facts: Path | None
    generator: PosNode | None = None
    """The node that sends load to it."""

    def error(self, step: str, what: str, hint: str | None = None) -> TestbedError:
        return TestbedError(f"node {self.name}, {step}: {what}", hint=hint)


def read_site(file: Path, name: str | None) -> PosNode:
    """A node of a site file: that of a name, or the only one that is the device under test.

    Raises:
        DataError: the file cannot be read or is wrong; with the place.
        UsageError: it has no such node, or several devices under test and no name says which.
    """
    site, _ = read_strictly(file, SiteFile, "site file")
    chosen = chosen_node("pos", file, {n: spec.roles for n, spec in site.nodes.items()}, name)
    facts = None if site.facts is None else file.absolute().parent / site.facts
    return PosNode(chosen, site.nodes[chosen], site, facts, _generator(site, chosen, file))


def _generator(site: SiteFile, chosen: str, file: Path) -> PosNode | None:
    """The only other node that has a load generator."""
    others = [
        name
        for name, spec in site.nodes.items()
        if name != chosen and "loadgen" in spec.roles and spec.load_generator is not None
    ]
    if len(others) > 1:
        raise UsageError(
            f"{file} has {len(others)} nodes with a load_generator: {', '.join(others)}",
            hint="give each device its own site file with one load generator",
        )
    return PosNode(others[0], site.nodes[others[0]], site, None) if others else None
