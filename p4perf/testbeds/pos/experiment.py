"""The experiment folder of pos, made from a batch, and the results of its trials.

Trials are identified by loop files, never by the order of runs. Of a result folder, the files of trials and of the
setup are read; its ``config`` is not, because it holds a token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from p4perf.formats.pos import FINISHED, LAUNCHED, RUN, loop_values, printed
from p4perf.testbeds.base import Role
from p4perf.testbeds.batch.base import BatchJob, JobOutcome
from p4perf.testbeds.batch.folder import DUT, LOADGEN, ROLES, Files, below, node_files, text_files
from p4perf.testbeds.batch.outcomes import Missing, read_trial, text_of, together
from p4perf.testbeds.nodes import PosNode, PosNodeSpec, SiteFile
from p4perf.testbeds.processes import printable

GLOBAL_VARIABLES = "global-variables.yml"
LOOP_VARIABLES = "loop-variables.yml"
TRIAL = "trial"
"""The loop variable."""

BARRIER = "barrier.sh"

_ABOUT: Mapping[Role, str] = {DUT: "the device under test", LOADGEN: "the load generator"}


VARIABLES, SETUP, MEASUREMENT = "variables.yml", "setup.sh", "measurement.sh"
"""In the folder of a role: variables of its node, the script that prepares it, and that of every value of the loop."""


def experiment_files(jobs: Sequence[BatchJob], title: str, node: PosNode | None = None) -> Files:
    """The files of an experiment by path; errors as in :func:`~p4perf.testbeds.batch.folder.node_files`.

    Args:
        node: that of a site file; without one, names and images of nodes are arguments of ``experiment.sh``.
    """
    site = SiteFile.model_construct(nodes={}) if node is None else node.site
    unnamed = PosNode("", PosNodeSpec.model_construct(image=""), site, None)
    nodes: dict[Role, PosNode] = {DUT: node or unnamed}
    if any(job.parts for job in jobs):
        nodes[LOADGEN] = (node and node.generator) or unnamed
    values = {"title": title, "nodes": nodes, "site": site}
    trials = {TRIAL: [job.name for job in jobs]} if jobs else {}
    texts: dict[str, tuple[str, Mapping[str, Any]]] = {
        "experiment.sh": ("experiment.sh.j2", values),
        GLOBAL_VARIABLES: _variables("variables of all nodes", {"experiment": title}),
        LOOP_VARIABLES: _variables(f"{len(jobs)} trials in random order", {}, trials),
    }
    found: Files = {}
    for role, each in nodes.items():
        spec = each.spec
        found |= below(role, node_files(jobs, role))
        if LOADGEN in nodes:
            found[f"{role}/{BARRIER}"] = (package_files("p4perf.testbeds.pos") / BARRIER).read_bytes()
        setup = {"role": role, "packages": list(spec.packages), "setup": [list(command) for command in spec.setup]}
        texts[f"{role}/{VARIABLES}"] = _variables(f"variables of {_ABOUT[role]}", {"folder": spec.folder})
        texts[f"{role}/{SETUP}"] = ("setup.sh.j2", setup)
        texts[f"{role}/{MEASUREMENT}"] = ("measurement.sh.j2", {"role": role})
    if LOADGEN not in nodes:
        texts[f"{LOADGEN}/README.md"] = ("loadgen-README.md.j2", {})
    return found | text_files(texts)


def _variables(
    about: str, variables: Mapping[str, object], lists: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, Mapping[str, Any]]:
    return "variables.yml.j2", {"about": about, "variables": dict(variables), "lists": dict(lists or {})}


CONFIG = "config"
IDLE = "idle.txt"
"""Is left by a node that has no part in a trial."""


@dataclass(slots=True)
class _Run:
    """A run of the loop on one node: files of its command by suffix, and those that it uploaded."""

    node: str
    number: int
    command: dict[str, Path] = field(default_factory=dict)
    uploads: dict[str, Path] = field(default_factory=dict)


def is_tree(folder: Path) -> bool:
    """Whether a folder has folders of nodes with loop files."""
    return any(path.is_file() for path in folder.glob("*/*.loop"))


def read_trials(
    folder: Path, names: Sequence[str], loads: Collection[str] = ()
) -> tuple[dict[str, JobOutcome], dict[str, str]]:
    """What became of trials, by name: outcomes, and why the others have none.

    Args:
        loads: those of them that have a load generator.
    """
    runs: dict[str, list[_Run]] = {name: [] for name in names}
    for run in _runs(folder):
        if (name := _trial(run)) in runs and IDLE not in run.uploads:
            runs[name].append(run)
    outcomes: dict[str, JobOutcome] = {}
    missing: dict[str, str] = {}
    for name, some in runs.items():
        try:
            outcomes[name] = together(_of_nodes(some, name), ROLES if name in loads else (DUT,))
        except Missing as error:
            missing[name] = str(error) if some else f"no run in {folder} is of it"
    return outcomes, missing


def _of_nodes(runs: Sequence[_Run], name: str) -> dict[str, JobOutcome | Missing]:
    """What each node left of a trial: its first whole result, or why the last of its runs has none."""
    found: dict[str, JobOutcome | Missing] = {}
    for run in runs:
        if isinstance(found.get(run.node), JobOutcome):
            continue
        try:
            _require_finished(run)
            found[run.node] = read_trial(name, run.node, run.uploads)
        except Missing as error:
            found[run.node] = Missing(f", run {run.number}: {error}")
    return found


def runs_ended(folder: Path) -> int:
    """How many runs of the loop have a status by now."""
    return sum("_run" in path.stem for path in folder.glob("*/*.status"))


def node_facts(folder: Path) -> str | None:
    """What the probe of the node printed, None if there is no such file, or there are several."""
    found = [path for path in folder.glob("*/facts.txt") if path.parent.name != CONFIG]
    return text_of(found[0]) if len(found) == 1 else None


def command_status(folder: Path, node: str, name: str) -> tuple[str, str]:
    """Status of the last command of that name that is no loop (empty: none), and the last line that it said.

    Where a command failed, that is the last line on stderr, or else on stdout.
    """
    found = [
        path
        for path in (folder / node).glob("*.status")
        if (launch := LAUNCHED.fullmatch(path.stem)) is not None and launch["name"] == name
    ]
    if not found:
        return "", ""
    last = max(found, key=lambda path: path.name)
    return (text_of(last) or "").strip(), _last_line(last)


def _runs(folder: Path) -> Iterator[_Run]:
    found: dict[tuple[str, int], _Run] = {}
    for path in sorted(folder.glob("*/*")):
        node, match = path.parent.name, RUN.fullmatch(path.name)
        if match is None or node == CONFIG or path.parent.is_symlink() or not path.is_file():
            continue
        key = (node, int(match["number"]))
        run = found.setdefault(key, _Run(*key))
        suffix = match["suffix"] or ""
        if LAUNCHED.fullmatch(match["stem"]) is not None:
            run.command[suffix] = path
        else:
            run.uploads[f"{match['stem']}{suffix}"] = path
    yield from found.values()


def _trial(run: _Run) -> str:
    """The trial that a run is, as its loop file says; empty if that is not known."""
    loop = run.command.get(".loop")
    try:
        return "" if loop is None else str(loop_values(text_of(loop) or "").get("trial", ""))
    except ValueError:
        return ""


def _require_finished(run: _Run) -> None:
    status = run.command.get(".status")
    said = "" if status is None else (text_of(status) or "").strip()
    if status is None or not said:
        raise Missing("it has no status: the command did not end")
    if said != FINISHED:
        line = _last_line(status)
        raise Missing(f"it ended as {printable(said)[:40]!r}{f': {line}' if line else ''}")


def _last_line(status: Path) -> str:
    for suffix in (".stderr", ".stdout"):
        text = text_of(status.with_suffix(suffix)) or ""
        try:
            lines = printed(text).strip().splitlines()
        except ValueError:
            lines = text.strip().splitlines()
        if lines:
            return printable(lines[-1].strip())
    return ""
