"""Packets through the steps of a specification of SWX, with the statements of the reference interpreter.

The steps are those of :func:`~p4perf.evaluation.prediction.reading.swx.swx_flow`, so that decisions have the names that
its graph has; what each of their instructions does is what the reader of specifications makes of it. So packets are
followed as well through what the reader refuses as a whole: what an instruction leaves unknown, such as a hash that is
not known, is so until a decision depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from p4perf.errors import DataError
from p4perf.evaluation.prediction.reading.packets import Found, Lookups, Passed, Runner
from p4perf.evaluation.prediction.reading.swx_instructions import SENT
from p4perf.formats.swx_spec import JUMPS, Specification, SpecLine
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs import ir
from p4perf.programs.decisions import Decision
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import STANDARD_HASHES, crc32c_raw
from p4perf.programs.packet_state import NO_ARGUMENTS, Kept, PacketState, ParserError
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.flow import Flow, Step
from p4perf.programs.reading.swx import SwxReader

MAX_PASSES = 64
"""A packet that comes back more often is given up."""

BEHIND_BYTES = 4096
"""Behind a packet there is nothing but zeros, as far as headers are extracted."""

UNKNOWN: Mapping[str, int] = {"entryid": 1, "rss": 2, "hash": 2, "movh": 1}
"""Instructions whose result may be unknown, and which of their words it is written to."""

_BY_FLOW = (*JUMPS, "table", "emit", "tx", "drop", "return")
"""Instructions that the steps stand for."""


class UnknownDecisionError(Exception):
    """The next step of a packet is unknown; the text names what it depends on."""


class SwxMachine(Interpreter):
    """One specification with its entries, or with another ``lookup`` by the name of a table.

    Packets raise a DataError where the specification names something that is not there, and an UnknownDecisionError
    where their path, or what comes back, depends on something that is not known.
    """

    def __init__(
        self,
        spec: Specification,
        flow: Flow,
        plane: ControlPlane | None = None,
        lookup: Callable[[str], Found] | None = None,
    ) -> None:
        reader = SwxReader(spec, plane or ControlPlane())
        self._code = {line.number: _statements(reader, line, action) for action, line in reader.instructions()}
        self._declared = reader.declarations(flow.name)
        self._spec, self._flow, self._lookup = spec, flow, lookup
        self._operands = reader.operands
        super().__init__(self._declared, {**STANDARD_HASHES, "crc32": crc32c_raw})
        self._action = ""
        self._arguments = NO_ARGUMENTS
        self._hit = False
        self._emitted: list[str] = []
        self.short = False
        """Whether the last packet ended before its headers did."""

    def decisions(self, frame: bytes) -> tuple[list[Decision], str]:
        """The decisions of a packet, without FCS, in its first pass, and why they end; empty if its path has ended."""
        made: list[Decision] = []
        try:
            made.extend((passed.step.name, passed.label) for passed in self._pass_steps(self._begin(frame, 0, {})))
        except UnknownDecisionError as reason:
            return made, str(reason)
        return made, ""

    def walk(self, frame: bytes) -> Iterator[Passed]:
        """The steps that a packet passes, one after another, in all of its passes.

        SWX extracts what is behind a packet that is too short, and goes on.
        """
        kept: Kept = {}
        self.short = False
        for number in range(MAX_PASSES):
            packet, end = self._begin(frame + bytes(BEHIND_BYTES), number, kept), None
            for end in self._pass_steps(packet):
                yield end
            self.short = self.short or packet.parsed_bytes > len(frame)
            if end is None or packet.again is None or end.step.name != SENT:
                return
            kept = packet.kept(packet.again.keep)
            parts = [packet.joined(self._operands.refs(name)) for name in self._emitted]
            frame = b"".join(parts) + frame[packet.parsed_bytes :]
        raise UnknownDecisionError("packets that come back again and again")

    def _begin(self, frame: bytes, number: int, kept: Kept) -> PacketState:
        self._action, self._arguments, self._hit, self._emitted = "", NO_ARGUMENTS, False, []
        packet = PacketState(self._declared, frame, number, {"ingress_port": 0})
        packet.keep(kept)
        return packet

    def _pass_steps(self, packet: PacketState) -> Iterator[Passed]:
        name = self._flow.start
        while name:
            step = self._flow.steps[name]
            for line in step.code:
                if line.word(0) not in _BY_FLOW:
                    self._run_line(line, packet)
            valid = {h for h in self._spec.headers if self._operands.header_name(h) in packet.valid}
            present = [(fact, what) for fact, what in step.present if isinstance(fact, str) and fact in valid]
            self._emitted += [str(fact) for fact, _ in present]
            label = self._label(step, packet)
            name = next((e.to for e in step.edges if e.label == label), "")
            yield Passed(step, (*step.constructs, *(what for _, what in present)), label, name, len(step.edges) > 1)

    def _run_line(self, line: SpecLine, packet: PacketState) -> None:
        op = line.word(0)
        if op == "rx":
            packet.write(self._operands.ref(line.word(1), line), packet.known["ingress_port"])
            return
        statements = self._code[line.number]
        if statements is None and op == "mirror":
            return  # copies are not followed
        if statements is None and op not in UNKNOWN:
            raise UnknownDecisionError(f"{op} in line {line.number}")
        if statements is None:
            packet.write(self._operands.ref(line.word(UNKNOWN[op]), line), 0, random=True)
            return
        try:
            for statement in statements:
                if isinstance(statement, ir.Extract):
                    self._parser_statement(statement, packet)
                else:
                    self._execute(statement, self._arguments, packet)
        except ParserError:
            raise UnknownDecisionError("packets that are too short for their headers") from None
        except ValueError as error:
            raise UnknownDecisionError(f"{error}, line {line.number}") from error
        except KeyError as error:
            raise UnknownDecisionError(f"action data {error}, line {line.number}") from error

    def _label(self, step: Step, packet: PacketState) -> str:
        line = step.code[-1] if step.code else None
        labels = [edge.label for edge in step.edges]
        if line is not None and line.word(0) == "table":
            return self._look_up(line, labels, packet)
        if len(labels) < 2:
            return labels[0] if labels else ""
        if line is None:
            return self._action
        if "true" in labels:
            return "true" if self._jumps(line, packet) else "false"
        value, random = packet.evaluate(self._operands.value(line.word(2), line, self._action), self._arguments)
        if random:
            raise UnknownDecisionError(f"{line.word(2)} in line {line.number}")
        return found if (found := f"0x{value:x}") in labels else "default"

    def _jumps(self, line: SpecLine, packet: PacketState) -> bool:
        op = line.word(0)
        if op in ("jmph", "jmpnh"):
            return self._hit == (op == "jmph")
        if op in ("jmpa", "jmpna"):
            return (self._action == line.word(2)) == (op == "jmpa")
        holds, random = packet.holds(self._operands.condition(line, self._action), self._arguments)
        if random:
            raise UnknownDecisionError(f"{line.word(2)} in line {line.number}")
        return holds

    def _look_up(self, line: SpecLine, labels: list[str], packet: PacketState) -> str:
        name = line.word(1)
        if name in self._spec.learners:
            raise UnknownDecisionError(f"what learner {name} has learnt")
        table = next(t for t in self._declared.tables if t.label == name)
        if name in self._spec.selectors:
            member = self._spec.selectors[name].inner("member_id")
            if member is not None:
                packet.write(self._operands.ref(member.word(1), member), 0, random=True)
            return labels[0]
        keys = [key.field for key in table.keys]
        if table.entries.count and packet.random.intersection(keys):
            raise UnknownDecisionError(f"a key of table {name}")
        given = self._lookup(name) if self._lookup is not None and keys else None
        if given is not None:
            action = next(a for a in self._declared.actions if a.label == given[0])
            arguments: Mapping[str, int] = dict(zip((p.name for p in action.parameters), given[1], strict=True))
            hit = True
        else:
            action, arguments, hit = self._looked_up(table, [packet.read(ref) for ref in keys], packet)
        self._action, self._arguments, self._hit = action.label, arguments, hit
        outcome = "hit" if hit else "miss"
        return outcome if outcome in labels else labels[0]


def hashed_tables(tables: Mapping[str, SpecLine]) -> dict[str, tuple[int, bool]]:
    """For how many entries each table with keys is made at least, and whether its keys are metadata."""
    found = {}
    for name, table in tables.items():
        size, keys = table.inner("size"), table.inner("key")
        if size is not None and keys is not None and keys.lines:
            found[name] = size.number_at(1), keys.lines[0].word(0).startswith("m.")
    return found


def generated_runner(spec: Specification, flow: Flow, program: ir.Program, pipeline: Pipeline) -> Runner:
    """Runs packets through the specification that is generated for a program; that says what lookups find."""
    reference = Lookups(program)
    machine = SwxMachine(spec, flow, lookup=lambda table: reference.next(table, pipeline))

    def run(frame: bytes) -> tuple[list[Decision], str]:
        try:
            reference.run(frame)
        except (ValueError, RecursionError) as error:
            return [], str(error)
        return machine.decisions(frame)

    return run


def _statements(reader: SwxReader, line: SpecLine, action: str) -> tuple[ir.Statement | ir.Extract, ...] | None:
    """What an instruction does, None if that is not known."""
    if line.word(0) in (*_BY_FLOW, "rx"):
        return ()
    try:
        if line.word(0) in ("extract", "lookahead"):
            return tuple(s for s in reader.statements.in_parser(line) if not isinstance(s, ir.Advance | ir.Verify))
        return tuple(reader.statements.of(line, action))
    except DataError:
        return None
