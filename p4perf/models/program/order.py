"""The order of the steps of a program: each before those that it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from p4perf.models.program.graph import Edge


class Leading(Protocol):
    """What has a name and leads on by edges; an edge to the empty name leads nowhere."""

    @property
    def name(self) -> str:
        """Under which others lead to it."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Where it leads."""


L = TypeVar("L", bound=Leading)


class LoopError(ValueError):
    """Steps lead back to where they came from: the names along the loop, the first one at the end again."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(" -> ".join(names))


class NowhereError(LookupError):
    """A name that something leads to, but that is not there.

    Args:
        name: the name.
        source: what leads to it; empty: it is the start.
    """

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name)
        self.name, self.source = name, source


def in_order(start: str, steps: Mapping[str, L]) -> list[L]:
    """The steps that can be reached from one of them, each before those that its edges lead to.

    Raises:
        LoopError: there is a cycle.
        NowhereError: there is no such start, or an edge leads to a name that is not there.
    """
    if start not in steps:
        raise NowhereError(start, "")
    found: list[L] = []
    finished: dict[str, bool] = {start: False}  # False: on the way
    stack = [(steps[start], 0)]
    while stack:
        step, position = stack.pop()
        if position == len(step.edges):
            finished[step.name] = True
            found.append(step)
            continue
        stack.append((step, position + 1))
        to = step.edges[position].to
        if not to or finished.get(to):
            continue
        if to in finished:
            names = [s.name for s, _ in stack]
            raise LoopError([*names[names.index(to) :], to])
        if to not in steps:
            raise NowhereError(to, step.name)
        finished[to] = False
        stack.append((steps[to], 0))
    return found[::-1]
