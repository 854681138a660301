"""A specification of a user (.spec) as target dpdk-swx runs it: as it is, with the user's instructions.

The :class:`~p4perf.programs.ir.Program` that was read of it has the entries, and says what becomes of the packets that
the pipeline is verified with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.formats.swx_spec import number, read_specification, words_of
from p4perf.programs import ir
from p4perf.programs.analysis import destination, written_fields
from p4perf.programs.interpreter import GivenBy, Interpreter, unknown
from p4perf.programs.operators import STANDARD_HASHES, HashFunctions
from p4perf.programs.packet_state import PacketState
from p4perf.programs.reading.swx import entries_text
from p4perf.programs.reading.values import identifier

N_PORTS = ir.MAX_PORT + 2
"""Output ports of the pipeline, the last of which drops."""

METER_BYTES = 256

ENTRY_BYTES = 4096
"""Memory that an entry of a wildcard table takes at most, a generous guess."""

SLOT_BYTES = 640
"""Memory of a slot of a table that is found twice while it is filled, a generous guess."""


def own_pipeline(program: ir.Program, text: str) -> dict[str, Any]:
    """What the harness has to know of the pipeline, as :meth:`~p4perf.generators.swx.spec.Pipeline.config` has it."""
    kept: tuple[ir.Counter | ir.Register, ...] = (*program.counters, *program.registers)
    specification = read_specification(text, "program.spec")
    arrays = {identifier(name): name for name in specification.registers}
    return {
        "role": "program",
        "n_ports": N_PORTS,
        "mirrors": [],
        "states": [{"name": arrays[a.name], "size": 1 << (a.size - 1).bit_length()} for a in kept],
        "meters": [{"name": name, "size": size} for name, size in specification.meters.items()],
        "entries": bool(entries_text(program)),
        "in_order": bool(program.states),
        "tables": [{"name": table.label, "action": None} for table in program.tables],
    }


def own_bytes(program: ir.Program, text: str) -> int:
    """Memory of the tables, registers and meters in bytes."""
    spec = read_specification(text, "program.spec")
    sizes = (t.inner("size") for t in (*spec.tables.values(), *spec.learners.values()))
    slots = SLOT_BYTES * sum(size.number_at(1) for size in sizes if size is not None)
    entries = ENTRY_BYTES * sum(table.entries.count for table in program.tables)
    return entries + slots + 8 * sum(spec.registers.values()) + METER_BYTES * sum(spec.meters.values())


def check_own(workload: ir.Workload, text: str) -> None:
    """Refuse a specification with tables that the harness cannot fill, or with packets that SWX would crash of.

    Raises:
        CapabilityError: it is one; the message names the table, or the lines that write the number of a port.
    """
    specification = read_specification(text, "program.spec")
    if specification.selectors:
        raise CapabilityError(f"the harness has no members for selector {next(iter(specification.selectors))}")
    port = max(_missing_ports(workload), default=0)
    if not port:
        return
    lines = ((n, words_of(line)) for n, line in enumerate(text.splitlines(), 1))
    writing = ((n, words) for n, words in lines if words[-3:-2] == ("mov",) and number(words[-1]) == port)
    said = "; ".join(f"line {n}: {' '.join(words)}" for n, words in writing)
    raise CapabilityError(
        f"a packet leaves by port {port}{f' ({said})' if said else ''}; SWX does not check that a port exists, and "
        f"there are 0 to {ir.MAX_PORT}"
    )


def _missing_ports(workload: ir.Workload) -> Iterator[int]:
    """The ports that packets leave by and that are not there."""
    program = workload.program
    varying = any(f.varying for header in program.headers for f in header.fields)
    ports = _WithPorts(program)
    for frame in workload.frames:
        if ports.run(frame).errors and varying:
            raise CapabilityError("a packet is shorter than the length of a header says, and SWX reads on beyond it")
    yield from ports.missing


class _WithPorts(Interpreter):
    """The interpreter that notes the ports that are not there."""

    def __init__(self, program: ir.Program) -> None:
        super().__init__(program)
        self.missing: set[int] = set()

    @override
    def _execute(self, statement: ir.Statement, arguments: Mapping[str, int], packet: PacketState) -> None:
        if (checked := _checked_port(statement)) is not None:
            port, _ = packet.evaluate(checked, arguments)
            self.missing |= {port} if port > ir.MAX_PORT else set()
        super()._execute(statement, arguments, packet)


UNKNOWN = ir.Intrinsic("unknown")


class OnSwx(Interpreter):
    """The interpreter of a specification, where SWX leaves to earlier packets what the program takes for zero.

    Metadata hold what was left there, and so do fields of headers that are not valid. ``run`` raises a ValueError where
    the outcome depends on that, and where a packet leaves by a port that is not there.
    """

    def __init__(self, program: ir.Program, hashes: HashFunctions = STANDARD_HASHES, given: GivenBy = unknown) -> None:
        super().__init__(_unsettled(program), hashes, given=given)

    @override
    def _execute(self, statement: ir.Statement, arguments: Mapping[str, int], packet: PacketState) -> None:
        if (port := _checked_port(statement)) is not None and packet.evaluate(port, arguments)[0] > ir.MAX_PORT:
            raise ValueError(f"a packet leaves by port {packet.evaluate(port, arguments)[0]}")
        written = destination(statement)
        if written is not None and written.header not in (ir.METADATA, *packet.valid):
            raise ValueError("a header is written to that is not there")
        super()._execute(statement, arguments, packet)

    @override
    def _apply(self, node: ir.ApplyTable, table: ir.Table, packet: PacketState) -> None:
        if any(key.field.header not in (ir.METADATA, *packet.valid) for key in table.keys):
            raise ValueError("a field is looked up that is not there")
        super()._apply(node, table, packet)


def _checked_port(statement: ir.Statement) -> ir.Expression | None:
    """The port of which the reader adds a check that it exists."""
    match statement:
        case ir.Branch(ir.Compare("<=", port, ir.Const(ir.MAX_PORT)), (*_, ir.SetEgress()), _):
            return port
    return None


def _unsettled(program: ir.Program) -> ir.Program:
    """The program in which metadata that is written to begins as unknown, and so are fields of absent headers."""
    begin = {assign.destination: assign for assign in program.initial}
    written = written_fields(program)
    for f in program.metadata:
        if (ref := ir.FieldRef(ir.METADATA, f.name)) in written:
            begin.setdefault(ref, ir.Assign(ref, UNKNOWN))
    return replace(settled_headers(program), initial=tuple(begin.values()))


def settled_headers(program: ir.Program) -> ir.Program:
    """The program in which fields of absent headers are unknown, but in keys."""
    parser = (
        replace(s, body=_with_unknown(s.body, program), selected=_with_unknown(s.selected, program))
        for s in program.parser
    )
    return replace(
        program,
        control=_with_unknown(program.control, program),
        egress=_with_unknown(program.egress, program),
        actions=tuple(replace(a, body=_with_unknown(a.body, program)) for a in program.actions),
        parser=tuple(parser),
    )


def _with_unknown(value: Any, program: ir.Program) -> Any:
    """An expression, statement or node in which fields of headers that are not valid are unknown."""
    match value:
        case ir.FieldRef(header):
            return value if header == ir.METADATA else ir.Conditional(ir.IsValid(header), value, UNKNOWN)
        case ir.AddHeader(header, given):
            names = (f.name for f in program.header(header).fields)
            return ir.AddHeader(header, tuple((n, _with_unknown(dict(given).get(n, UNKNOWN), program)) for n in names))
        case tuple():
            return tuple(_with_unknown(v, program) for v in value)
    if not is_dataclass(value):
        return value
    kept = ("destination", "fields", "keep", "cases")
    new = {f.name: _with_unknown(getattr(value, f.name), program) for f in fields(value) if f.name not in kept}
    if isinstance(value, ir.ApplyTable):
        new["cases"] = tuple((name, _with_unknown(nodes, program)) for name, nodes in value.cases)
    return replace(value, **new)  # type: ignore[type-var]
