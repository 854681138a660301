"""The experiment folder of pos: what its users write by hand, made from a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from typing import Any

from p4perf.testbeds.base import Role
from p4perf.testbeds.batch.base import AnyJob, LoadJob
from p4perf.testbeds.batch.folder import DUT, LOADGEN, Files, below, node_files, text_files
from p4perf.testbeds.pos.site import PosNode

NODE_FOLDER = "/root/p4perf"
"""Folder of a node for everything, where no site file says another one."""

GLOBAL_VARIABLES = "global-variables.yml"
LOOP_VARIABLES = "loop-variables.yml"
TRIAL = "trial"
"""The loop variable."""

BARRIER = "barrier.sh"

_ABOUT: Mapping[Role, str] = {DUT: "the device under test", LOADGEN: "the load generator"}


def variables_of(role: Role) -> str:
    """The file with the variables of a node."""
    return f"{role}/variables.yml"


def setup_of(role: Role) -> str:
    """The script that prepares a node."""
    return f"{role}/setup.sh"


def measurement_of(role: Role) -> str:
    """The script that measures on a node, for every value of the loop."""
    return f"{role}/measurement.sh"


@dataclass(frozen=True, slots=True)
class Script:
    """What ``experiment.sh`` and ``setup.sh`` are to do; an empty node or image is an argument of the script.

    ``loadgen`` is the same for the node of the load generator, of which only what is said of the node counts.
    """

    node: str = ""
    image: str = ""
    folder: str = NODE_FOLDER
    boot_parameters: Sequence[str] = ()
    packages: Sequence[str] = ()
    setup: Sequence[Sequence[str]] = ()
    cli: Sequence[str] = ("pos",)
    duration_min: int | None = None
    result_folder: str | None = None
    free_before: bool = False
    loadgen: Script | None = None

    @classmethod
    def of(cls, node: PosNode) -> Script:
        """For a node of a site file."""
        spec, site = node.spec, node.site
        return cls(
            node.name,
            spec.image,
            spec.folder,
            spec.boot_parameters,
            spec.packages,
            spec.setup,
            site.cli,
            site.duration_min,
            site.result_folder,
            site.free_before,
            None if node.generator is None else cls.of(node.generator),
        )


def experiment_files(jobs: Sequence[AnyJob], title: str, script: Script) -> Files:
    """The files of an experiment by path; errors as in :func:`~p4perf.testbeds.batch.folder.node_files`."""
    nodes = {DUT: script}
    if any(isinstance(job, LoadJob) for job in jobs):
        nodes[LOADGEN] = script.loadgen or Script()
    values: dict[str, Any] = {
        "title": title,
        "nodes": [
            {
                "role": role,
                "name": node.node,
                "image": node.image,
                "folder": node.folder,
                "boot_parameters": list(node.boot_parameters),
            }
            for role, node in nodes.items()
        ],
        "cli": list(script.cli),
        "duration_min": script.duration_min,
        "result_folder": script.result_folder,
        "free_before": script.free_before,
    }
    trials = {TRIAL: [job.name for job in jobs]} if jobs else {}
    texts: dict[str, tuple[str, Mapping[str, Any]]] = {
        "experiment.sh": ("experiment.sh.j2", values),
        GLOBAL_VARIABLES: _variables("variables of all nodes", {"experiment": title}),
        LOOP_VARIABLES: _variables(f"{len(jobs)} trials in random order", {}, trials),
    }
    found: Files = {}
    for role, node in nodes.items():
        found |= below(role, node_files(jobs, role))
        if LOADGEN in nodes:
            found[f"{role}/{BARRIER}"] = (package_files("p4perf.testbeds.pos") / BARRIER).read_bytes()
        setup = {"role": role, "packages": list(node.packages), "setup": [list(command) for command in node.setup]}
        texts[variables_of(role)] = _variables(f"variables of {_ABOUT[role]}", {"folder": node.folder})
        texts[setup_of(role)] = ("setup.sh.j2", setup)
        texts[measurement_of(role)] = ("measurement.sh.j2", {"role": role})
    if LOADGEN not in nodes:
        texts[f"{LOADGEN}/README.md"] = ("loadgen-README.md.j2", {})
    return found | text_files(texts)


def _variables(
    about: str, variables: Mapping[str, object], lists: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, Mapping[str, Any]]:
    return "variables.yml.j2", {"about": about, "variables": dict(variables), "lists": dict(lists or {})}
