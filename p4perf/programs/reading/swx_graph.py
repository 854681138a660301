"""Instructions of SWX as a graph without loops, and the nested branches that mean the same.

A branch ends where all paths from it meet again. Conditions that lead to the same place one after another become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Generic, TypeVar

from p4perf.formats.swx_spec import COMPARE, JUMPS, SpecLine, labelled
from p4perf.programs import ir
from p4perf.programs.analysis import NEGATED

N = TypeVar("N")

BY_RESULT = ("jmph", "jmpnh", "jmpa", "jmpna")
"""Jumps by the result of the table before them."""

ENDS = ("tx", "drop", "return")

MAX_NESTING = 100
"""Branches in branches, beyond which a list of instructions is refused."""

MAX_COPIES = 8
"""A list of instructions may grow so many times by jumps into branches, whose rest is there twice then."""


@dataclass(frozen=True)
class Graph:
    """The instructions of an action or of the apply block. The number of the end is how many there are."""

    lines: tuple[SpecLine, ...]
    labels: dict[str, int]

    @classmethod
    def of(cls, block: Sequence[SpecLine]) -> Graph:
        labels, lines = labelled(block)
        return cls(tuple(lines), labels)

    @property
    def end(self) -> int:
        return len(self.lines)

    @cached_property
    def following(self) -> tuple[tuple[int, ...], ...]:
        """What may come after each instruction; of a jump that is taken on a condition the target is first."""
        found: list[tuple[int, ...]] = []
        for n, line in enumerate(self.lines):
            op = line.word(0)
            if op in JUMPS:
                if line.word(1) not in self.labels:
                    raise line.error(f"there is no label {line.word(1)!r}")
                to = self.labels[line.word(1)]
                found.append((to,) if op == "jmp" else (to, n + 1))
            else:
                found.append((self.end,) if op in ENDS else (n + 1,))
        return tuple(found)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The instructions that are reached, each after all that lead to it.

        Raises:
            DataError: there is a loop.
        """
        sorter = TopologicalSorter({n: self.following[n] for n in self.between({0}, self.end)})
        try:
            found = [n for n in sorter.static_order() if n != self.end]
        except CycleError as error:
            raise self.lines[max(error.args[1])].error("jumps back: loops are not supported") from error
        return tuple(reversed(found))

    @cached_property
    def rank(self) -> dict[int, int]:
        """The place of each instruction in the order; the end is the last."""
        return {n: place for place, n in enumerate((*self.order, self.end))}

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """From how many instructions each is reached, of those that are reached themselves."""
        counts = [0] * (self.end + 1)
        for reached in self.order:
            for n in set(self.following[reached]):
                counts[n] += 1
        return tuple(counts)

    @cached_property
    def _meets(self) -> tuple[int, ...]:
        found = [self.end] * (self.end + 1)
        for n in reversed(self.order):
            found[n] = self._common(self.following[n], found)
        return tuple(found)

    def _common(self, numbers: Iterable[int], meets: Sequence[int]) -> int:
        first, *others = numbers
        for other in others:
            while first != other:
                if self.rank[first] < self.rank[other]:
                    first = meets[first]
                else:
                    other = meets[other]
        return first

    def meet(self, numbers: Iterable[int]) -> int:
        """The first instruction to which all paths from these come."""
        return self._common(numbers, self._meets)

    def between(self, begin: Iterable[int], end: int) -> set[int]:
        """The instructions that are reached from these before another one."""
        found: set[int] = set()
        todo = list(begin)
        while todo:
            n = todo.pop()
            if n != end and n not in found and n < self.end:
                found.add(n)
                todo += self.following[n]
        return found

    def is_test(self, n: int) -> bool:
        """Whether it is a jump that compares fields or asks for a header."""
        return n < self.end and self.lines[n].word(0) in ("jmpv", "jmpnv", *COMPARE)


@dataclass
class Structure(Generic[N]):
    """Nests the instructions of a graph, by functions that make of them what is nested.

    Args:
        condition: on which a jump is taken.
        plain: instructions that neither jump nor look a packet up, one after another.
        branch: at a jump.
        table: that is applied, and what comes after a hit, after a miss and after its actions.
        actions: of a table; none where it cannot be applied.
    """

    graph: Graph
    condition: Callable[[SpecLine], ir.Condition]
    plain: Callable[[Sequence[SpecLine]], Iterator[N]]
    branch: Callable[[ir.Condition, tuple[N, ...], tuple[N, ...], SpecLine], N]
    table: Callable[[SpecLine, tuple[N, ...], tuple[N, ...], tuple[tuple[str, tuple[N, ...]], ...]], N]
    actions: Callable[[SpecLine], tuple[str, ...]]
    visited: int = field(default=0, init=False)

    def nested(self, begin: int, end: int, depth: int = 0) -> Iterator[N]:
        """From one instruction up to another one."""
        graph, plain = self.graph, list[SpecLine]()
        n = begin
        while n != end:
            line = graph.lines[n]
            self.visited += 1
            if depth > MAX_NESTING or self.visited > MAX_COPIES * (graph.end + MAX_NESTING):
                raise line.error("jumps into too many branches to be nested")
            op, following = line.word(0), graph.following[n]
            if op == "table":
                yield from self.plain(plain)
                plain = []
                n = n + 1
                meet = graph.meet(graph.following[n]) if self._decides(n) else n
                yield self._table(line, n, meet, depth)
                n = meet
            elif op in BY_RESULT:
                raise line.error("asks for the result of a table that is not right before it")
            elif len(following) == 2:
                yield from self.plain(plain)
                plain = []
                meet = graph.meet(following)
                condition, then, otherwise = self._merged(n)
                first, second = (tuple(self.nested(side, meet, depth + 1)) for side in (then, otherwise))
                if not first:
                    condition, first, second = negated(condition), second, ()
                if first:
                    yield self.branch(condition, first, second, line)
                n = meet
            else:
                if op != "jmp":
                    plain.append(line)
                n = following[0]
        yield from self.plain(plain)

    def _decides(self, n: int) -> bool:
        """Whether an instruction asks for the result of the table before it, and of no other."""
        return n < self.graph.end and self.graph.lines[n].word(0) in BY_RESULT and self.graph.sources[n] == 1

    def _table(self, table: SpecLine, n: int, meet: int, depth: int) -> N:
        graph = self.graph
        if n == meet:
            return self.table(table, (), (), ())
        op = graph.lines[n].word(0)
        if op in ("jmph", "jmpnh"):
            taken, falls = (tuple(self.nested(side, meet, depth + 1)) for side in graph.following[n])
            return self.table(table, taken, falls, ()) if op == "jmph" else self.table(table, falls, taken, ())
        cases = []
        for action in self.actions(table):
            to = n
            while to == n or (self._decides(to) and graph.lines[to].word(0) in ("jmpa", "jmpna")):
                jumps = (graph.lines[to].word(2) == action) == (graph.lines[to].word(0) == "jmpa")
                to = graph.following[to][0 if jumps else 1]
            if to != meet:
                cases.append((action, tuple(self.nested(to, meet, depth + 1))))
        return self.table(table, (), (), tuple(cases))

    def _merged(self, n: int) -> tuple[ir.Condition, int, int]:
        """A condition, and what comes after it if it holds, and if not; with those that only it leads to."""
        graph = self.graph
        condition, (then, otherwise) = self.condition(graph.lines[n]), graph.following[n]
        while True:
            if graph.is_test(otherwise) and graph.sources[otherwise] == 1 and then in graph.following[otherwise]:
                other = self.condition(graph.lines[otherwise])
                taken, falls = graph.following[otherwise]
                if taken == then:
                    condition, otherwise = ir.Or(condition, other), falls
                else:
                    condition, otherwise = ir.Or(condition, negated(other)), taken
            elif graph.is_test(then) and graph.sources[then] == 1 and otherwise in graph.following[then]:
                other = self.condition(graph.lines[then])
                taken, falls = graph.following[then]
                if taken == otherwise:
                    condition, then = ir.And(condition, negated(other)), falls
                else:
                    condition, then = ir.And(condition, other), taken
            else:
                return condition, then, otherwise


def negated(condition: ir.Condition) -> ir.Condition:
    """The condition that another one does not hold."""
    match condition:
        case ir.Not(inner):
            return inner
        case ir.Compare(comparator, left, right):
            return ir.Compare(NEGATED[comparator], left, right)
    return ir.Not(condition)
