"""Builds a :class:`~p4perf.generators.program.Program` piece by piece: the baseline first, then its components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from p4perf.generators.program import (
    ACCEPT,
    Action,
    ControlNode,
    Field,
    FieldRef,
    Header,
    HeaderValues,
    PacketSpec,
    ParserState,
    Program,
    SelectCase,
    Table,
    VaryingField,
)


class ProgramBuilder:
    """A program under construction, together with the packets that take its longest path.

    The parser is a chain: each header that is added is extracted after the one before.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._headers: list[Header] = []
        self._values: list[HeaderValues] = []
        self._metadata: list[Field] = []
        self._states: list[ParserState] = []
        self._actions: list[Action] = []
        self._tables: list[Table] = []
        self._control: list[ControlNode] = []
        self._varying: list[VaryingField] = []

    def unique(self, stem: str) -> str:
        """A name that is not taken yet: the stem, or the stem with a number."""
        taken = {x.name for group in (self._headers, self._actions, self._tables, self._metadata) for x in group}
        if stem not in taken:
            return stem
        return next(f"{stem}_{n}" for n in range(1, len(taken) + 2) if f"{stem}_{n}" not in taken)

    def add_header(
        self,
        header: Header,
        values: Mapping[str, int] | None = None,
        *,
        select: str | None = None,
        select_value: int | None = None,
    ) -> None:
        """Append a header to the chain.

        Args:
            header: its layout.
            values: the values its fields carry in the packets (others are zero).
            select: a field *of the header before* that announces this one; without it the transition is unconditional.
            select_value: the value of that field.
        """
        values = dict(values or {})
        state = "start" if not self._states else f"parse_{header.name}"
        if self._states:
            before = self._states[-1]
            if select is None or select_value is None:
                self._states[-1] = replace(before, default=state)
            else:
                ref = FieldRef(before.extracts[-1], select)
                self._states[-1] = replace(before, select=ref, cases=(SelectCase(select_value, state),), default=ACCEPT)
                carried = dict(self._values[-1].values) | {select: select_value}
                self._values[-1] = HeaderValues(ref.header, tuple(sorted(carried.items())))
        self._states.append(ParserState(state, extracts=(header.name,)))
        self._headers.append(header)
        self._values.append(HeaderValues(header.name, tuple(sorted(values.items()))))

    def has_header(self, name: str) -> bool:
        """Whether a header of that name was added."""
        return any(h.name == name for h in self._headers)

    @property
    def last_header(self) -> Header:
        """The header that was added last."""
        return self._headers[-1]

    def add_metadata(self, field: Field) -> None:
        """Add a metadata field."""
        self._metadata.append(field)

    def add_action(self, action: Action) -> None:
        """Add an action."""
        self._actions.append(action)

    def add_table(self, table: Table) -> None:
        """Add a table (it does nothing until the control flow applies it)."""
        self._tables.append(table)

    def add_control(self, node: ControlNode) -> None:
        """Append to the control flow."""
        self._control.append(node)

    def vary(self, field: FieldRef, count: int) -> None:
        """Let a header field run over ``count`` values from packet to packet."""
        self._varying.append(VaryingField(field, count))

    def program(self) -> Program:
        """The program as it stands."""
        return Program(
            name=self.name,
            headers=tuple(self._headers),
            metadata=tuple(self._metadata),
            parser=tuple(self._states),
            actions=tuple(self._actions),
            tables=tuple(self._tables),
            control=tuple(self._control),
            emit=tuple(h.name for h in self._headers),
        )

    def packets(self, frame_size_bytes: int) -> PacketSpec:
        """Packets that carry every header of the chain."""
        return PacketSpec(tuple(self._values), tuple(self._varying), frame_size_bytes)
