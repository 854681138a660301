"""A fake target with a port for the fake load generator of ``support.load_session``."""

from typing import ClassVar

from p4perf_fake import FakeTarget

from p4perf.targets.base import Job
from p4perf.targets.link import check_link
from p4perf.targets.roles import Connects


class LoadedTarget(FakeTarget, Connects):
    """Has links, and a program that nobody talks to."""

    name = "fake-loaded"
    links: ClassVar = ("ring", "memif")

    def load(self, plan, link, facts):
        check_link(self.label, self.links, link)
        return Job(("true",), 1.0)
