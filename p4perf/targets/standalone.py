"""A planned point as a folder that builds and runs without p4perf: sources, ``build.sh``, ``run.sh``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from p4perf.generators.rendering import render
from p4perf.targets.base import BuildPlan, NodeFacts, PointPlan, TrialOptions
from p4perf.targets.roles import Measures


def standalone_files(target: Measures, plan: PointPlan) -> Mapping[str, bytes]:
    """Files by name; ``sh build.sh && sh run.sh`` prints what one trial measures."""
    job = target.trial(plan, TrialOptions(), NodeFacts({}))
    argv = [argument.replace("{build}", ".").replace("{folder}", ".") for argument in job.argv]
    files, commands = _flat(plan.build)
    scripts = {
        "build.sh": render("sh/build.sh.j2", commands=[shlex.join(command) for command in commands]),
        "run.sh": render("sh/run.sh.j2", command=shlex.join(argv), target=target.name),
    }
    return {**{name: text.encode() for name, text in (files | scripts).items()}, **job.files}


def _flat(plan: BuildPlan) -> tuple[dict[str, str], list[tuple[str, ...]]]:
    """Files and commands of a plan and all of its parts, for one folder."""
    files: dict[str, str] = {}
    commands: list[tuple[str, ...]] = []
    for part in plan.parts.values():
        part_files, part_commands = _flat(part)
        files |= part_files
        commands += part_commands
    return files | dict(plan.files), [*commands, *plan.commands_with(dict.fromkeys(plan.parts, "."))]
