"""Testbed netns: this machine, with network namespaces between load generator and device under test."""

from __future__ import annotations

import shutil
from pathlib import Path

from p4perf.errors import TestbedError
from p4perf.targets.base import Job, NodeFacts, Problem
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.processes import run_command

LINK = "af-packet"
"""The link of load generators: sockets of the kernel at both ends of a veth pair, each in a namespace of its own."""

_UNSHARE = ("unshare", "--net", "--")


class NetnsTestbed(LocalTestbed):
    """Every job has a network namespace of its own, in which nothing of this machine's network is seen.

    Where a load generator is needed, it and the device are in two namespaces with a veth pair between them, unless the
    spec names another link.
    """

    name = "netns"
    summary = "this machine, every job in a network namespace of its own; load goes through a veth pair"

    def problems(self) -> tuple[Problem, ...]:
        """Those of the testbed local, and the tools and the right to make namespaces."""
        found = list(super().problems())
        for tool, package in (("unshare", "util-linux"), ("ip", "iproute2")):
            if shutil.which(tool) is None:
                found.append(Problem(f"no {tool} on the PATH", f"install the package {package}"))
        if not found and run_command((*_UNSHARE, "true"), 10.0, Path("/")).returncode != 0:
            found.append(Problem("no right to make network namespaces", "run as root or grant CAP_SYS_ADMIN"))
        return tuple(found)

    def facts(self) -> NodeFacts:
        """Those of this machine, and the link that is used."""
        return NodeFacts({**super().facts().values, "link": LINK})

    def _prepared(self, job: Job, folder: Path) -> tuple[str, ...]:
        command = super()._prepared(job, folder)
        if shutil.which(command[0]) is None:  # unshare would be there, and fail
            raise TestbedError(f"cannot start {command[0]}: No such file or directory")
        return (*_UNSHARE, *command)
