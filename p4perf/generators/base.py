"""The contract of a generator, and the files that it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from p4perf.generators.rendering import environment
from p4perf.plugins import folder_beside
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Workload


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file to write: its path below the output folder (POSIX, relative) and its text in pieces."""

    path: str
    pieces: Iterable[str]
    entries: int = 0
    """Entries of the largest table whose entries it holds; 0 for a file that is not one of table entries."""

    def text(self) -> str:
        """The whole text (do not ask for it where there are millions of entries)."""
        return "".join(self.pieces)

    def __iter__(self) -> Iterator[str]:
        return iter(self.pieces)


class Generator(ABC):
    """Makes files from a workload for one language and architecture."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """The files for one sweep point.

        Raises:
            CapabilityError: this language or architecture cannot express the program; the message names the limit.
        """

    def render(self, template: str, **context: object) -> str:
        """Render a template of the folder ``templates`` beside the module of the generator, else of p4perf's own."""
        return environment(folder_beside(type(self), "templates")).get_template(template).render(**context)
