"""A planned point as a folder that builds and runs without p4perf: sources, ``build.sh``, ``run.sh``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from p4perf.generators.rendering import render
from p4perf.targets.base import NodeFacts, PointPlan, Target, TrialOptions


def standalone_files(target: Target, plan: PointPlan) -> Mapping[str, bytes]:
    """Files by name; ``sh build.sh && sh run.sh`` prints what one trial measures."""
    job = target.trial(plan, TrialOptions(), NodeFacts({}))
    argv = [argument.replace("{build}", ".").replace("{folder}", ".") for argument in job.argv]
    scripts = {
        "build.sh": render("sh/build.sh.j2", commands=[shlex.join(command) for command in plan.build.commands]),
        "run.sh": render("sh/run.sh.j2", command=shlex.join(argv), target=target.name),
    }
    texts = {**plan.build.files, **scripts}
    return {**{name: text.encode() for name, text in texts.items()}, **job.files}
