"""Builds a :class:`~p4perf.programs.ir.Program` piece by piece: the baseline first, then its components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from p4perf.errors import CapabilityError
from p4perf.programs import ir
from p4perf.programs.virtual_io import VirtualIo


class ProgramBuilder:
    """A program under construction, together with the packets that take its longest path.

    The parser is a chain: each header that is added is extracted after the one before, until it forks into branches.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._headers: list[ir.Header] = []
        self._values: list[ir.HeaderValues] = []
        self._metadata: list[ir.Field] = []
        self._states: list[ir.ParserState] = []
        self._actions: list[ir.Action] = []
        self._tables: list[ir.Table] = []
        self._control: list[ir.ControlNode] = []
        self._last: list[ir.ControlNode] = []
        self._keeps_fcs = False
        self._varying: list[ir.VaryingField] = []
        self._counters: list[ir.Counter] = []
        self._meters: list[ir.Meter] = []
        self._registers: list[ir.Register] = []
        self._verified: list[ir.HeaderChecksum] = []
        self._updated: list[ir.HeaderChecksum] = []
        self._virtual_io: VirtualIo | None = None
        self._chain_end = 0
        self._forked = False

    def unique(self, stem: str) -> str:
        """A name that is not taken yet: the stem, or the stem with a number."""
        groups = (
            *(self._headers, self._actions, self._tables, self._metadata),
            *(self._counters, self._meters, self._registers),
        )
        taken = {x.name for group in groups for x in group}
        if stem not in taken:
            return stem
        return next(f"{stem}_{n}" for n in range(1, len(taken) + 2) if f"{stem}_{n}" not in taken)

    def add_header(
        self,
        header: ir.Header,
        values: Mapping[str, int] | None = None,
        *,
        select: str | None = None,
        select_value: int | None = None,
    ) -> None:
        """Append a header to the chain.

        Args:
            values: the values its fields carry in the packets (others are zero).
            select: a field *of the header before* that announces this one; without it the transition is unconditional.

        Raises:
            CapabilityError: the parser has forked, so that no header follows all of its branches.
        """
        if self._states and select is not None and select_value is not None:
            self.add_branches(select, [(select_value, header)], values, continued=True)
            return
        self._refuse_fork()
        state = "start"
        if self._states:
            state = f"parse_{header.name}"
            self._states[-1] = replace(self._states[-1], default=state)
        self._append(state, header)
        self._values.append(_values_of(header, values))

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
        self._carry(select, selected)
        for _, header in branches:
            self._append(f"parse_{header.name}", header)
        self._values.append(_values_of(carried, values))
        self._forked = not continued

    def _append(self, state: str, header: ir.Header) -> None:
        self._states.append(ir.ParserState(state, (ir.Extract(header.name),)))
        self._headers.insert(self._chain_end, header)
        self._chain_end += 1

    def declare_header(self, header: ir.Header) -> None:
        """Add a header that no packet comes with: actions may add it; it is emitted after all that are parsed."""
        self._headers.append(header)

    def _refuse_fork(self) -> None:
        if self._forked:
            raise CapabilityError(
                "no header can follow the branches of a parser", hint="put the component with branches last"
            )

    def _carry(self, field: str, value: int) -> None:
        """Set a value of the header that came last."""
        last = self._values[-1]
        self._values[-1] = ir.HeaderValues(last.header, tuple(sorted((dict(last.values) | {field: value}).items())))

    def has_header(self, name: str) -> bool:
        return any(h.name == name for h in self._headers)

    @property
    def last_header(self) -> ir.Header:
        """The header that the parser extracts last (of branches, that of the last one)."""
        return self._headers[self._chain_end - 1]

    def add_metadata(self, field: ir.Field) -> None:
        self._metadata.append(field)

    def add_action(self, action: ir.Action) -> None:
        self._actions.append(action)

    def call(self, stem: str, body: Sequence[ir.Statement]) -> None:
        """Add an action without parameters, named after ``stem``, and call it."""
        name = self.unique(stem)
        self.add_action(ir.Action(name, body=tuple(body)))
        self.add_control(ir.CallAction(name))

    def add_table(self, table: ir.Table) -> None:
        """Add a table (it does nothing until the control flow applies it)."""
        self._tables.append(table)

    def add_control(self, node: ir.ControlNode, *, last: bool = False) -> None:
        """Append to the control flow, or, if it is ``last``, to what comes after all that others append."""
        (self._last if last else self._control).append(node)

    def keep_fcs(self) -> None:
        """Let the place of the FCS be a part of the packet."""
        self._keeps_fcs = True

    def has_metadata(self, name: str) -> bool:
        return any(f.name == name for f in self._metadata)

    def varies(self, field: ir.FieldRef) -> bool:
        """Whether a header field changes from packet to packet already."""
        return any(v.field == field for v in self._varying)

    def add_counter(self, counter: ir.Counter) -> None:
        self._counters.append(counter)

    def add_meter(self, meter: ir.Meter) -> None:
        self._meters.append(meter)

    def add_register(self, register: ir.Register) -> None:
        self._registers.append(register)

    def verify(self, checksum: ir.HeaderChecksum) -> None:
        """Let the checksum of a header be verified after parsing."""
        self._verified.append(checksum)

    def update(self, checksum: ir.HeaderChecksum) -> None:
        """Let the checksum of a header be calculated before the packet is sent."""
        self._updated.append(checksum)

    def surround(self, virtual_io: VirtualIo) -> None:
        """Let packets come through queues of a host."""
        if self._virtual_io is not None:
            raise CapabilityError("a program has one host, with one pair of queues", key="program.component")
        self._virtual_io = virtual_io

    def vary(self, field: ir.FieldRef, count: int, free_bits: int = 0) -> None:
        """Let a header field run over ``count`` values from packet to packet, above its lowest ``free_bits`` bits."""
        self._varying.append(ir.VaryingField(field, count, free_bits))

    def program(self) -> ir.Program:
        return ir.Program(
            name=self.name,
            headers=tuple(self._headers),
            metadata=tuple(self._metadata),
            parser=tuple(self._states),
            actions=tuple(self._actions),
            tables=tuple(self._tables),
            control=(*self._control, *self._last),
            emit=tuple(h.name for h in self._headers),
            counters=tuple(self._counters),
            meters=tuple(self._meters),
            registers=tuple(self._registers),
            verified=tuple(self._verified),
            updated=tuple(self._updated),
            virtual_io=self._virtual_io,
        )

    def packets(self, frame_size_bytes: int) -> ir.PacketSpec:
        """Packets that carry every header of the chain."""
        return ir.PacketSpec(tuple(self._values), tuple(self._varying), frame_size_bytes, keeps_fcs=self._keeps_fcs)


def _values_of(header: ir.Header, values: Mapping[str, int] | None) -> ir.HeaderValues:
    return ir.HeaderValues(header.name, tuple(sorted((values or {}).items())))
