"""What all P4 dialects have in common: from a workload to the texts of its two programs, and their table entries."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from p4perf.generators.base import GeneratedFile, Generator, TrafficPlan
from p4perf.generators.capabilities import Capabilities, constructs
from p4perf.generators.entries import entry_rows
from p4perf.generators.p4.checks import check_program
from p4perf.generators.p4.flow import Flow, analyse, possibly_absent
from p4perf.generators.p4.names import free_name
from p4perf.generators.p4.views import view
from p4perf.generators.p4.writer import Writer
from p4perf.generators.program import PacketSpec, Program, Table, Workload
from p4perf.generators.rendering import render
from p4perf.version import __version__

MAX_CONST_ENTRIES = 1024
"""Entries of one table that stand in the P4 text, where they do; a table with more gets them at run time."""

MAX_CONST_BYTES = 1 << 16
"""So much action data of one table stands in the text: p4c takes ten minutes for the 2 MB of mat/action-data."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of text that are made anew whenever somebody iterates over them."""

    make: Callable[[], Iterator[str]]

    def __iter__(self) -> Iterator[str]:
        return self.make()


class P4Generator(Generator):
    """Renders ``program.p4`` and ``baseline.p4``, and the files that their tables need at run time.

    A dialect is a subclass with a template that extends ``p4/base.p4.j2``, a :class:`Writer` and a table of what it
    lacks.
    """

    capabilities: ClassVar[Capabilities]
    """What the dialect lacks, its limits, and what to know of what it has."""
    title: ClassVar[str]
    """What the first line of a program calls the dialect."""
    template: ClassVar[str]
    max_port: ClassVar[int]
    """The highest port."""
    compilers: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Commands that compile a program: a tool and its arguments, with ``{source}`` and ``{output}``."""

    def __init__(self) -> None:
        self._baselines: dict[Program, tuple[GeneratedFile, ...]] = {}

    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        """The two programs, and the files with entries that are not in their text.

        Pieces of entry files are made while they are written.

        Raises:
            CapabilityError: the program has no form in this dialect; the message names the limit.
        """
        files = self.files("program", workload.program, workload.packets, workload.notes)
        if workload.baseline not in self._baselines:
            self._baselines[workload.baseline] = self.files("baseline", workload.baseline)
        return (*files, *self._baselines[workload.baseline])

    def files(
        self, stem: str, program: Program, packets: PacketSpec | None = None, notes: tuple[str, ...] = ()
    ) -> tuple[GeneratedFile, ...]:
        """One program and the files that go with it.

        Raises:
            CapabilityError: the program has no form in this dialect; the message names the limit.
            SpecError: a name is not an identifier.
        """
        self.capabilities.check(program, packets)
        check_program(program, self.capabilities.owner, self.max_port)
        flow = analyse(program)
        self.check(program, flow)
        program = self.adapted(program)
        writer = self.writer(program, flow)
        remarks = [
            f"{c}: {self.capabilities.remarks[c]}" for c in constructs(program) if c in self.capabilities.remarks
        ]
        context = dict(self.context(stem, program, writer))
        seen = view(writer, context.pop("const_entries"), context.pop("sizes"))
        text = render(
            self.template,
            **context,
            program=program,
            stem=stem,
            title=self.title,
            version=__version__,
            notes=[*notes, *remarks, *_absence(program)],
            may_lack_port=flow.may_lack_port,
            verified=program.verified,
            updated=program.updated,
            name=writer.name,
            headers=seen.headers,
            metadata=seen.metadata,
            states=seen.states,
            actions=seen.actions,
            tables=seen.tables,
            emitted=seen.emitted,
            control=list(writer.control_lines()),
        )
        return (GeneratedFile(f"{stem}.p4", (text,)), *self.companions(stem, program, writer))

    @abstractmethod
    def writer(self, program: Program, flow: Flow) -> Writer:
        """What writes the statements of a program in this dialect."""

    @abstractmethod
    def context(self, stem: str, program: Program, writer: Writer) -> Mapping[str, Any]:
        """What the template of the dialect asks for besides what all ask for."""

    def check(self, program: Program, flow: Flow) -> None:
        """Refuse what the table of capabilities cannot say.

        Raises:
            CapabilityError: the message names the limit.
        """
        del program, flow

    def adapted(self, program: Program) -> Program:
        """The program in the form that the dialect needs it in, with the same meaning."""
        return program

    def companions(self, stem: str, program: Program, writer: Writer) -> tuple[GeneratedFile, ...]:
        """Files that a program needs at run time."""
        del stem, program, writer
        return ()


def _absence(program: Program) -> Iterator[str]:
    absent = possibly_absent(program)
    if absent:
        names = ", ".join(h.name for h in program.headers if h.name in absent)
        yield f"P4 leaves undefined what fields of {names} read as in packets without it; a Program says zero"


RowText = Callable[[Sequence[str], Sequence[str]], str]


def lazy_rows(program: Program, tables: Sequence[Table], row: Callable[[Table], RowText]) -> Pieces:
    """The entries of tables as pieces of text, made when they are asked for."""
    return Pieces(partial(_rows, program, tuple(tables), row))


def _rows(program: Program, tables: tuple[Table, ...], row: Callable[[Table], RowText]) -> Iterator[str]:
    for table in tables:
        yield from entry_rows(program, table, row(table))


def unshared(program: Program) -> Program:
    """The same program, in which no action that takes entries belongs to more than one table or ends with a number.

    A compiler that copies such actions, or numbers them anew, gives them names by which no control plane knows them.
    """
    owners: dict[str, str] = {}
    taken = {a.name for a in program.actions} | {t.name for t in program.tables}
    actions, tables = list(program.actions), []
    for table in program.tables:
        name = table.entries.action
        shared = owners.setdefault(name, table.name) != table.name or _NUMBERED.search(name) is not None
        if shared and name != table.default_action:
            copy = free_name(f"{_NUMBERED.sub('', name)}_nr{len(actions)}", taken)
            taken.add(copy)
            actions.append(replace(program.action(name), name=copy))
            listed = tuple(copy if a == name else a for a in table.actions)
            table = replace(table, actions=listed, entries=replace(table.entries, action=copy))
        tables.append(table)
    return (
        replace(program, actions=tuple(actions), tables=tuple(tables))
        if len(actions) > len(program.actions)
        else program
    )


_NUMBERED = re.compile(r"_\d+$")
