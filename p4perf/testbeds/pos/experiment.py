"""The experiment folder of pos: what its users write by hand, made from a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p4perf.testbeds.batch.base import BatchJob
from p4perf.testbeds.batch.folder import DUT, Files, below, node_files, text_files
from p4perf.testbeds.pos.site import PosNode

NODE_FOLDER = "/root/p4perf"
"""Folder of a node for everything, where no site file says another one."""

GLOBAL_VARIABLES = "global-variables.yml"
LOOP_VARIABLES = "loop-variables.yml"
NODE_VARIABLES = f"{DUT}/variables.yml"
SETUP = f"{DUT}/setup.sh"
MEASUREMENT = f"{DUT}/measurement.sh"
TRIAL = "trial"
"""The loop variable."""


@dataclass(frozen=True, slots=True)
class Script:
    """What ``experiment.sh`` and ``setup.sh`` are to do; an empty node or image is an argument of the script."""

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
        )


def experiment_files(jobs: Sequence[BatchJob], title: str, script: Script) -> Files:
    """The files of an experiment by path; errors as in :func:`~p4perf.testbeds.batch.folder.node_files`."""
    values: dict[str, Any] = {
        "title": title,
        "node": script.node,
        "image": script.image,
        "folder": script.folder,
        "boot_parameters": list(script.boot_parameters),
        "cli": list(script.cli),
        "duration_min": script.duration_min,
        "result_folder": script.result_folder,
        "free_before": script.free_before,
    }
    trials = {TRIAL: [job.name for job in jobs]} if jobs else {}
    texts: dict[str, tuple[str, Mapping[str, Any]]] = {
        "experiment.sh": ("experiment.sh.j2", values),
        "loadgen/README.md": ("loadgen-README.md.j2", {}),
        GLOBAL_VARIABLES: _variables("variables of all nodes", {"experiment": title}),
        LOOP_VARIABLES: _variables(f"{len(jobs)} trials in random order", {}, trials),
        NODE_VARIABLES: _variables("variables of the device under test", {"folder": script.folder}),
        SETUP: (
            "setup.sh.j2",
            {"packages": list(script.packages), "setup": [list(command) for command in script.setup]},
        ),
        MEASUREMENT: ("measurement.sh.j2", {}),
    }
    return below(DUT, node_files(jobs)) | text_files(texts)


def _variables(
    about: str, variables: Mapping[str, object], lists: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, Mapping[str, Any]]:
    return "variables.yml.j2", {"about": about, "variables": dict(variables), "lists": dict(lists or {})}
