"""The interpreter beside the dataflow: what is known of a packet is compared with the packet."""

from functools import reduce

from p4perf.programs import ir
from p4perf.programs.dataflow import PORT, Dataflow, PathState
from p4perf.programs.interpreter import Interpreter


class Traced(Interpreter):
    """Compares what is known before each statement with one packet, and what is known at the end."""

    def __init__(self, drawn: ir.Program, found: Dataflow) -> None:
        super().__init__(drawn)
        self.before: dict[ir.Statement, PathState] = {}
        for step in found.steps:
            self.before[step.what] = reduce(PathState.joined, [self.before.get(step.what, step.state)], step.state)
        self.found = found
        self.checked = 0
        self.in_parser = False

    def holds(self, known: PathState, packet) -> None:
        self.checked += 1
        assert known.valid <= packet.valid <= known.maybe_valid
        assert PORT not in known.assigned or packet.egress is not None
        assert known.droppers or not packet.dropped
        assert known.passes_again or packet.again is None
        if known.decided:
            assert packet.dropped or packet.copies or packet.egress is not None

    def _parsed(self, arrival, port):
        self.in_parser = True
        packet = super()._parsed(arrival, port)
        self.in_parser = False
        if packet is not None:
            self.holds(self.found.parsed, packet)
        return packet

    def _execute(self, statement, arguments, packet):
        if not self.in_parser:
            self.holds(self.before[statement], packet)
        super()._execute(statement, arguments, packet)

    def _control(self, nodes, packet):
        super()._control(nodes, packet)
        if nodes is self._program.control:
            self.holds(self.found.end, packet)
