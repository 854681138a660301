"""Testbed pos: a node that pos allocates and boots; trials run in one loop, and results are read when it has ended.

The command line of pos is the only way in which p4perf talks to it, in old and new versions. Verbs, options and what
they print were read from published experiments and from notes of users: ``pos allocations variables`` is called
``set_variables`` in newer versions; the result folder is the last word that ``allocate`` prints.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from typing_extensions import override

from p4perf.errors import DataError, P4PerfError, StorageError, TestbedError
from p4perf.formats.pos import FINISHED
from p4perf.results.files import read_text, temporary_folder, write_text_atomically
from p4perf.targets.base import JobResult, NodeFacts, Problem
from p4perf.testbeds.base import Role, says_disk_full
from p4perf.testbeds.batch.base import BatchJob, BatchResults, BatchTestbed, Note
from p4perf.testbeds.batch.folder import DUT, LOADGEN, text_files, trial_limits_s, write_folder
from p4perf.testbeds.batch.outcomes import probed_facts, text_of
from p4perf.testbeds.local import facts_of
from p4perf.testbeds.nodes import PosNode, file_and_node, read_site
from p4perf.testbeds.pos import experiment
from p4perf.testbeds.processes import diagnosis, interrupts_wait, run_command

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
        self._run(("allocations", "free", self._node.name, "-k"), CALL_S)

    def variables(self, file: Path, kind: str = "") -> None:
        """Set variables from a file: of the node, or ``global`` or ``loop`` ones. Before the node is reset."""
        step = "setting variables"
        if self._newer is None:
            self._newer = self._run(("allocations", "set_variables", "--help"), CALL_S).returncode == 0
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
        result = self._run(("commands", "await", command), SLICE_S)
        if not result.timed_out and result.returncode != 0:
            raise self._failure(step, result)
        return not result.timed_out

    def _call(self, step: str, *words: str, timeout_s: float = CALL_S) -> str:
        result = self._run(words, timeout_s)
        if result.timed_out:
            raise self._node.error(step, f"pos did not finish within {timeout_s:.0f} s")
        if result.returncode != 0:
            raise self._failure(step, result)
        return result.stdout

    def _run(self, words: tuple[str, ...], timeout_s: float) -> JobResult:
        return run_command((*self._node.site.cli, *words), timeout_s, Path("/"))

    def _failure(self, step: str, result: JobResult) -> TestbedError:
        otherwise = f"pos ended with status {result.returncode}"
        what, hint = diagnosis(result.stderr or result.stdout, _KNOWN, otherwise, quote=True)
        return self._node.error(step, what, hint)


FACTS = "facts.txt"

SETTLE_S = 5.0
"""How long the files of a command may take to appear after it was awaited, in seconds."""

STALL_S = 600.0
"""How long no run may end beyond the time limit of the longest trial, in seconds."""

RESUME = "p4perf resume continues a run; what was measured is kept"


class PosTestbed(BatchTestbed):
    """Runs batches on a node of a site file, and on that of its load generator where trials have one.

    p4perf itself runs where the command line of pos and its results are. Every batch has an allocation of its own,
    which is freed however the batch ends. Its experiment folder is in the run directory, with three notes beside it by
    which it is known what was begun: ``allocation.txt``, ``result-folder.txt`` and ``command.txt``; and ``ended.txt``.
    """

    name = "pos"
    summary = (
        "a node of a pos testbed, allocated and booted for every batch of trials: pos:SITE.yaml, pos:SITE.yaml:NODE"
    )

    def __init__(self, node: PosNode, file: Path) -> None:
        self._node, self._file = node, file.absolute()
        self._cli = PosCli(node)
        self._facts: NodeFacts | None = None

    @classmethod
    @override
    def at(cls, place: str) -> Self:
        file, name = file_and_node(place, cls.name, "site", "site.yaml")
        return cls(read_site(file, name), file)

    @property
    @override
    def label(self) -> str:
        return f"{self.name}:{self._node.name}"

    @property
    @override
    def record(self) -> Mapping[str, str]:
        address = f"{self.name}:{self._file}:{self._node.name}"
        record = {"address": address, "node": self._node.name, "image": self._node.spec.image}
        generator = self._node.generator
        return record if generator is None else {**record, "load_generator_node": generator.name}

    @override
    def problems(self) -> tuple[Problem, ...]:
        found = []
        if "dut" not in self._node.spec.roles:
            found.append(Problem(f"node {self._node.name} has not the role dut", f"see to roles in {self._file}"))
        command = self._node.site.cli[0]
        if shutil.which(command) is None:
            advice = f"run p4perf on the management host, or see to cli in {self._file}"
            found.append(Problem(f"no {command} on the PATH", advice))
        return tuple(found)

    @property
    @override
    def load_generator(self) -> str:
        generator = self._node.generator
        return "" if generator is None else generator.spec.load_generator or ""

    @override
    def generator_facts(self) -> NodeFacts:
        if self._node.generator is None:
            self._refuse(f"has no load generator in {self._file}")
        return NodeFacts(self._node.generator.spec.as_facts())

    @override
    def facts(self) -> NodeFacts:
        """Those in the file that the site file names; without one the node is allocated and booted once to ask it.

        Those that the site file states are added.
        """
        if self._facts is None:
            seen = self._asked_facts() if self._node.facts is None else probed_facts(self._node.facts)
            written = self._node.spec.as_facts()
            written |= {"load_generator": self.load_generator} if self.load_generator else {}
            self._facts = NodeFacts({**seen.values, **written})
        return self._facts

    def _asked_facts(self) -> NodeFacts:
        with temporary_folder() as temporary:
            folder, ignore = temporary, lambda text: None
            self.write_batch((), folder, "the facts of a node")
            with self._allocated(folder, ignore) as allocation:
                self._prepare(folder, allocation, ignore)
                try:
                    return probed_facts(allocation.results / self._node.name / FACTS)
                except DataError as error:
                    raise self._node.error("reading its facts", "the setup did not upload them", RESUME) from error

    @override
    def write_batch(self, jobs: Sequence[BatchJob], folder: Path, title: str) -> None:
        files = experiment.experiment_files(jobs, title, self._node)
        readme = {"title": title, "trials": len(jobs), "loads": any(job.parts for job in jobs)}
        write_folder(folder, files | text_files({"README.md": ("pos-README.md.j2", readme)}))

    @override
    def run_batch(self, names: Sequence[str], folder: Path, note: Note) -> BatchResults:
        if (results := self._earlier(folder, note)) is None:
            with self._allocated(folder, note) as allocation:
                results = allocation.results
                self._prepare(folder, allocation, note)
                nodes = self._nodes(folder)
                who = " and ".join(node.name for node in nodes.values())
                note(f"node {who}: measuring in {len(names)} runs, results in {results}")
                commands = [
                    self._of(node).launch("measuring", folder / role / experiment.MEASUREMENT, "measurement", loop=True)
                    for role, node in nodes.items()
                ]
                _note_down(folder, "command", " ".join(commands))
                self._await(commands, folder, results, note)
        elif not results.is_dir():
            raise self._node.error("reading results", f"there is no result folder {results}", _see_root(self._file))
        outcomes, missing = experiment.read_trials(results, names, trial_limits_s(folder / LOADGEN))
        if missing and any(says_disk_full(why) for why in missing.values()) and not outcomes:
            why = next(why for why in missing.values() if says_disk_full(why))
            raise StorageError(why, hint="make room on the node, and continue with p4perf resume")
        text = text_of(results / self._node.name / FACTS)
        facts = None if text is None else facts_of(text)
        return BatchResults(outcomes, missing, facts=facts, place=str(results))

    def _earlier(self, folder: Path, note: Note) -> Path | None:
        """The results of a batch that was begun before; waited for if it runs, and None if it did not get so far."""
        place, command, allocation = (_noted(folder, key) for key in ("result-folder", "command", "allocation"))
        ended = _noted(folder, "ended") is not None
        if allocation is None or place is None:
            return None
        results = Path(self._node.site.results_root) / place
        if not ended:
            try:
                if command is not None:
                    note(f"node {self._node.name}: continuing command {command}, results in {results}")
                    with contextlib.suppress(TestbedError):  # it ended long ago, or its node is gone
                        self._await(command.split(), folder, results, note)
            finally:
                self._free(folder, allocation, note)
        if command is None:
            for key in ("allocation", "result-folder", "ended"):
                _path(folder, key).unlink(missing_ok=True)
            return None
        return results

    @contextlib.contextmanager
    def _allocated(self, folder: Path, note: Note) -> Iterator[Allocation]:
        """The nodes are ours for the body, and freed however that ends."""
        nodes = list(self._nodes(folder).values())
        if self._node.site.free_before:
            for node in nodes:
                self._of(node).free_before()
        allocation = None
        try:
            with interrupts_wait():
                allocation = self._cli.allocate(*(node.name for node in nodes[1:]))
                _note_down(folder, "allocation", allocation.name)
                _note_down(folder, "result-folder", str(allocation.results))
            yield allocation
        finally:
            if allocation is not None:
                self._free(folder, allocation.name, note)

    def _free(self, folder: Path, allocation: str, note: Note) -> None:
        """Free an allocation; a failure is noted, and does not hide an earlier one."""
        with interrupts_wait():
            try:
                self._cli.free(allocation)
            except P4PerfError as error:
                note(f"{error.message}; check that it is free: pos allocations list")
            _note_down(folder, "ended", "ended")

    def _nodes(self, folder: Path) -> dict[Role, PosNode]:
        """The nodes of a batch: the device, and the load generator if trials have one."""
        nodes: dict[Role, PosNode] = {DUT: self._node}
        if (folder / LOADGEN / experiment.SETUP).exists():
            if self._node.generator is None:
                self._refuse(f"has no load generator in {self._file} any more")
            nodes[LOADGEN] = self._node.generator
        return nodes

    def _of(self, node: PosNode) -> PosCli:
        return self._cli if node is self._node else PosCli(node)

    def _prepare(self, folder: Path, allocation: Allocation, note: Note) -> None:
        """Variables, image, reset, files, setup, in this order: a node reads variables when it boots."""
        nodes = self._nodes(folder)
        self._cli.variables(folder / experiment.GLOBAL_VARIABLES, "global")
        for role, node in nodes.items():
            self._of(node).variables(folder / role / experiment.VARIABLES)
        if "trial:" in (folder / experiment.LOOP_VARIABLES).read_text(encoding="utf-8"):
            self._cli.variables(folder / experiment.LOOP_VARIABLES, "loop")
        for role, node in nodes.items():
            note(f"node {node.name}: booting {node.spec.image}")
            self._of(node).boot()
            self._of(node).copy(folder / role)
        step = "setting up"
        begun = []
        for role, node in nodes.items():
            note(f"node {node.name}: setting up and building")
            begun.append((node, self._of(node).launch(step, folder / role / experiment.SETUP, "setup")))
        deadline = time.monotonic() + self._node.site.setup_timeout_s
        for node, command in begun:
            while not self._of(node).wait(step, command):
                if time.monotonic() > deadline:
                    raise node.error(step, f"it did not end within {self._node.site.setup_timeout_s} s")
            self._judge_setup(node, allocation.results)

    def _judge_setup(self, node: PosNode, results: Path) -> None:
        step, deadline = "setting up", time.monotonic() + SETTLE_S
        while not (said := experiment.command_status(results, node.name, "setup"))[0]:
            if not results.is_dir():
                raise node.error(step, f"there is no result folder {results}", _see_root(self._file))
            if time.monotonic() > deadline:
                raise node.error(step, "its script has no status", RESUME)
            time.sleep(0.1)
        status, line = said
        if says_disk_full(line):
            raise StorageError(f"node {node.name}, {step}: {line}", hint="make room on the node")
        if status != FINISHED:
            raise node.error(step, f"its script ended as {status!r:.40}{f': {line}' if line else ''}", RESUME)

    def _await(self, commands: Sequence[str], folder: Path, results: Path, note: Note) -> None:
        """Wait for the end of the loops, as long as their runs end."""
        step, known, since = "measuring", experiment.runs_ended(results), time.monotonic()
        patience_s = max(trial_limits_s(folder / DUT).values(), default=0.0) + STALL_S
        waiting = list(commands)
        while waiting:
            if self._cli.wait(step, waiting[0]):
                waiting.pop(0)
            elif (ended := experiment.runs_ended(results)) > known:
                known, since = ended, time.monotonic()
                note(f"node {self._node.name}: {ended} runs have ended")
            elif time.monotonic() - since > patience_s:
                raise self._node.error(step, f"no run has ended for {patience_s:.0f} s", RESUME)


def _see_root(file: Path) -> str:
    return f"check results_root in {file}: the results of pos must be readable here"


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.txt"


def _note_down(folder: Path, key: str, text: str) -> None:
    write_text_atomically(_path(folder, key), f"{text}\n")


def _noted(folder: Path, key: str) -> str | None:
    path = _path(folder, key)
    return (read_text(path).split("\n")[0] or None) if path.exists() else None
