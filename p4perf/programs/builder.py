"""Builds a :class:`~p4perf.programs.ir.Program` piece by piece: the baseline first, then its components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.virtual_io import VirtualIo


@dataclass
class ProgramBuilder:
    """A program under construction, together with the packets that take its longest path.

    The parser is a chain: each header that is added is extracted after the one before, until it forks into branches.
    Everything that the parser has no part in, such as a header that an action may add, goes into the lists.
    """

    name: str
    headers: list[ir.Header] = field(default_factory=list)
    """In the order in which they are emitted."""
    metadata: list[ir.Field] = field(default_factory=list)
    actions: list[ir.Action] = field(default_factory=list)
    tables: list[ir.Table] = field(default_factory=list)
    control: list[ir.ControlNode] = field(default_factory=list)
    last: list[ir.ControlNode] = field(default_factory=list)
    """What comes after all of the control flow that others append."""
    counters: list[ir.Counter] = field(default_factory=list)
    meters: list[ir.Meter] = field(default_factory=list)
    registers: list[ir.Register] = field(default_factory=list)
    verified: list[ir.FieldRef] = field(default_factory=list)
    updated: list[ir.FieldRef] = field(default_factory=list)
    virtual_io: VirtualIo | None = None
    keeps_fcs: bool = False
    """Whether the place of the FCS is a part of the packet."""
    _states: list[ir.ParserState] = field(default_factory=list)
    _values: list[ir.HeaderValues] = field(default_factory=list)
    _varying: list[ir.VaryingField] = field(default_factory=list)
    _chain_end: int = 0
    _forked: bool = False

    def unique(self, stem: str) -> str:
        """A name that is not taken yet: the stem, or the stem with a number."""
        named = (self.headers, self.actions, self.tables, self.metadata, self.counters, self.meters, self.registers)
        taken = {x.name for group in named for x in group}
        return stem if stem not in taken else next(n for n in (f"{stem}_{k}" for k in count(1)) if n not in taken)

    def add_header(
        self, header: ir.Header, values: Mapping[str, int] | None = None, *, select: tuple[str, int] | None = None
    ) -> None:
        """Append a header to the chain.

        Args:
            values: the values its fields carry in the packets (others are zero).
            select: a field *of the header before* and the value by which it announces this one; without it the
                transition is unconditional.

        Raises:
            CapabilityError: the parser has forked, so that no header follows all of its branches.
        """
        if select is not None:
            field, value = select
            self.add_branches(field, [(value, header)], values, continued=True)
            return
        self._refuse_fork()
        state = "start"
        if self._states:
            state = f"parse_{header.name}"
            self._states[-1] = replace(self._states[-1], default=state)
        self._append(state, header)
        self._values.append(_values_of(header.name, values))

    def add_branches(
        self,
        select: str,
        branches: Sequence[tuple[int, ir.Header]],
        values: Mapping[str, int] | None = None,
        *,
        continued: bool = False,
    ) -> None:
        """Let the parser fork at the last header: each value of its field ``select`` leads to a header of its own.

        Other values of the field end the parser.

        Args:
            branches: the values of that field and the headers, which all have to have the same size.
            values: the values that the fields of the carried header have in the packets (others are zero).
            continued: the packets carry the header of the last branch, and the chain continues after it; the other
                branches end the parser. Without it the packets carry the header of the first branch, and nothing can
                follow.
        """
        self._refuse_fork()
        before = self._states[-1]
        ref = ir.FieldRef(before.extracts[-1], select)
        cases = tuple(ir.SelectCase.of_value(value, f"parse_{header.name}") for value, header in branches)
        self._states[-1] = replace(before, selected=(ref,), cases=cases, default=ir.ACCEPT)
        selected, carried = branches[-1 if continued else 0]
        last = self._values[-1]
        self._values[-1] = _values_of(last.header, dict(last.values) | {select: selected})
        for _, header in branches:
            self._append(f"parse_{header.name}", header)
        self._values.append(_values_of(carried.name, values))
        self._forked = not continued

    def _append(self, state: str, header: ir.Header) -> None:
        self._states.append(ir.ParserState(state, (ir.Extract(header.name),)))
        self.headers.insert(self._chain_end, header)
        self._chain_end += 1

    def _refuse_fork(self) -> None:
        if self._forked:
            raise CapabilityError(
                "no header can follow the branches of a parser", hint="put the component with branches last"
            )

    @property
    def last_header(self) -> ir.Header:
        """The header that the parser extracts last (of branches, that of the last one)."""
        return self.headers[self._chain_end - 1]

    def action(self, stem: str, body: Iterable[ir.Statement]) -> ir.CallAction:
        """Add an action without parameters, named after ``stem``; the node that calls it, for the control flow."""
        action = ir.Action(self.unique(stem), body=tuple(body))
        self.actions.append(action)
        return ir.CallAction(action.name)

    def call(self, stem: str, body: Iterable[ir.Statement]) -> None:
        """Add an action without parameters, named after ``stem``, and call it."""
        self.control.append(self.action(stem, body))

    def varies(self, field: ir.FieldRef) -> bool:
        """Whether a header field changes from packet to packet already."""
        return any(v.field == field for v in self._varying)

    def vary(self, field: ir.FieldRef, count: int, free_bits: int = 0) -> None:
        """Let a header field run over ``count`` values from packet to packet, above its lowest ``free_bits`` bits."""
        self._varying.append(ir.VaryingField(field, count, free_bits))

    def program(self) -> ir.Program:
        return ir.Program(
            name=self.name,
            headers=tuple(self.headers),
            metadata=tuple(self.metadata),
            parser=tuple(self._states),
            actions=tuple(self.actions),
            tables=tuple(self.tables),
            control=(*self.control, *self.last),
            emit=tuple(h.name for h in self.headers),
            counters=tuple(self.counters),
            meters=tuple(self.meters),
            registers=tuple(self.registers),
            verified=tuple(self.verified),
            updated=tuple(self.updated),
            virtual_io=self.virtual_io,
        )

    def packets(self, frame_size_bytes: int) -> ir.PacketSpec:
        """Packets that carry every header of the chain."""
        return ir.PacketSpec(tuple(self._values), tuple(self._varying), frame_size_bytes, keeps_fcs=self.keeps_fcs)


def _values_of(header: str, values: Mapping[str, int] | None) -> ir.HeaderValues:
    return ir.HeaderValues(header, tuple(sorted((values or {}).items())))
