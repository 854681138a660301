"""The command line of pos, the only way in which p4perf talks to it, in old and new versions.

Verbs, options and what they print were read from published experiments and from notes of users: ``pos allocations
variables`` is called ``set_variables`` in newer versions; the result folder is the last word that ``allocate`` prints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from p4perf.errors import TestbedError
from p4perf.targets.base import JobResult
from p4perf.testbeds.nodes import PosNode
from p4perf.testbeds.processes import diagnosis, run_command

_KNOWN = {
    "Nodes are already allocated": (
        "it is allocated already",
        "pos allocations free NODE if the allocation is yours and not needed, or wait; free_before in the site file",
    ),
    "no calendar event for node": (
        "there is no entry in the calendar for it at this time",
        "make one with pos calendar create, and run again",
    ),
    "Maximum number of future entries": (
        "there are too many entries of this user in the calendar",
        "remove one of them (pos calendar)",
    ),
    "neither allocation nor node|[Nn]o such node|[Uu]nknown node|[Nn]ode .* does not exist": (
        "pos knows no such node",
        "see to nodes in the site file and to pos nodes list",
    ),
    "[Ii]mage .*(not found|does not exist|unknown)|[Nn]o such image": ("pos has no such image", "pos images list"),
    "not (yet )?(bootstrapped|booted|reset)|has to be reset|needs (a )?reset": (
        "it is not booted",
        "pos nodes reset NODE, and look at its console",
    ),
    "Connection refused|Max retries exceeded|ConnectionError|Failed to establish a new connection": (
        "the daemon of pos does not answer",
        "is this the management host? try pos nodes list",
    ),
    "No space left on device|Disk quota exceeded": (
        "a disk is full",
        "make room on the node or on the management host",
    ),
}


CALL_S = 120.0
"""How long a short command may take, in seconds."""

COPY_S = 900.0
"""How long copying to a node may take, in seconds."""

SLICE_S = 30.0
"""How long a command is awaited at a time, in seconds."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,200}")
_ALLOCATION = re.compile(r"^Allocation ID: *(\S+) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocation: its name (or the node, where pos reports none), and the folder of its results."""

    name: str
    results: Path


class PosCli:
    """Commands of pos for one node. What fails is a :class:`~p4perf.errors.TestbedError` that names node and step."""

    def __init__(self, node: PosNode) -> None:
        self._node = node
        self._newer: bool | None = None

    def allocate(self, *others: str) -> Allocation:
        site, step = self._node.site, "allocating"
        words = ["allocations", "allocate", self._node.name, *others]
        words += ["--result-folder", site.result_folder] if site.result_folder else []
        words += ["--duration", str(site.duration_min)] if site.duration_min else []
        said = self._call(step, *words)
        found, name = said.split(), _ALLOCATION.search(said)
        if not found or (name is not None and _IDENTIFIER.fullmatch(name[1]) is None):
            raise self._node.error(step, "pos did not say where the results will be")
        return Allocation(name[1] if name else self._node.name, Path(site.results_root) / found[-1])

    def free(self, allocation: str) -> None:
        """Free an allocation; by default its entry in the calendar stays, because a run may have several batches."""
        keep = ["-k"] if self._node.site.keep_calendar else []
        self._call("freeing", "allocations", "free", allocation, *keep)

    def free_before(self) -> None:
        """Free what the node is allocated for, and keep the entry in the calendar; if it is not, nothing is said."""
        self._run("freeing", ("allocations", "free", self._node.name, "-k"), CALL_S)

    def variables(self, file: Path, kind: str = "") -> None:
        """Set variables from a file: of the node, or ``global`` or ``loop`` ones. Before the node is reset."""
        step = "setting variables"
        if self._newer is None:
            self._newer = self._run(step, ("allocations", "set_variables", "--help"), CALL_S).returncode == 0
        if self._newer:
            option = {"global": ["-g"], "loop": ["-l"]}.get(kind, [])
            self._call(step, "allocations", "set_variables", "-e", "yml", *option, self._node.name, str(file))
        else:
            option = [f"--as-{kind}"] if kind else []
            self._call(step, "allocations", "variables", self._node.name, str(file), *option)

    def boot(self) -> None:
        """Choose image and parameters, and reset the node; it is up when this returns."""
        spec, name = self._node.spec, self._node.name
        self._call("choosing the image", "nodes", "image", name, spec.image)
        if spec.boot_parameters:
            self._call("setting boot parameters", "nodes", "bootparameter", name, *spec.boot_parameters)
        self._call("resetting", "nodes", "reset", name, timeout_s=float(self._node.site.reset_timeout_s))

    def copy(self, folder: Path) -> None:
        where = self._node.spec.folder
        words = ("nodes", "copy", self._node.name, str(folder), "--dest", where, "--recursive")
        self._call("copying files", *words, timeout_s=COPY_S)

    def launch(self, step: str, script: Path, name: str, *, loop: bool = False) -> str:
        """Start a script on the node, for every combination of loop variables if asked for; its identifier."""
        words = ["commands", "launch", "--infile", str(script), "--name", name, "--queued"]
        words += ["--loop"] if loop else []
        said = self._call(step, *words, self._node.name).split()
        if not said or _IDENTIFIER.fullmatch(said[-1]) is None:
            raise self._node.error(step, "pos did not say what the command is called")
        return said[-1]

    def wait(self, step: str, command: str) -> bool:
        """Wait for the end of a command, for a while; whether it ended."""
        result = self._run(step, ("commands", "await", command), SLICE_S)
        if not result.timed_out and result.returncode != 0:
            raise self._failure(step, result)
        return not result.timed_out

    def _call(self, step: str, *words: str, timeout_s: float = CALL_S) -> str:
        result = self._run(step, words, timeout_s)
        if result.timed_out:
            raise self._node.error(step, f"pos did not come to an end within {timeout_s:.0f} s")
        if result.returncode != 0:
            raise self._failure(step, result)
        return result.stdout

    def _run(self, step: str, words: tuple[str, ...], timeout_s: float) -> JobResult:
        return run_command((*self._node.site.cli, *words), timeout_s, Path("/"))

    def _failure(self, step: str, result: JobResult) -> TestbedError:
        otherwise = f"pos ended with status {result.returncode}"
        what, hint = diagnosis(result.stderr or result.stdout, _KNOWN, otherwise, quote=True)
        return self._node.error(step, what, hint)
