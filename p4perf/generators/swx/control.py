"""The instructions that every packet runs through: parser, control flow, checksums, deparser."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import Assembler, number
from p4perf.generators.swx.layout import Model, parser_order
from p4perf.generators.swx.statements import Statements
from p4perf.programs import ir
from p4perf.programs.analysis import flattened
from p4perf.programs.capabilities import standing_at
from p4perf.programs.dataflow import successors

MAX_ROUNDS = 2048
"""Of the loops of a parser: no packet has more bytes, and where a packet ends goes unnoticed."""

_Absent = tuple[tuple[str, bool], ...]
"""Headers that a packet may not have, and whether it surely has not."""


class Control:
    """Writes the instructions that every packet runs through."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._code = Assembler("L")
        self._accepted = ""
        self._exit_to = ""
        self._detours: dict[_Absent, str] = {}

    def lines(self) -> list[str]:
        """All instructions, from ``rx`` to ``tx``."""
        # What comes first is known last: which fields have to be zero.
        self._parser()
        self._verify()
        run = self._block if self._model.general else self._nodes
        run(self._model.program.control)
        self._egress()
        self._update()
        self._send()
        for absent, label in self._detours.items():
            self._code.place(label)
            self._detour(absent)
            self._code.op("jmp", self._accepted)
        body = self._code.lines()
        start = Assembler("S")
        start.op("rx", self._model.layout.port_in)
        for operand, value in self._model.zeroed():
            start.op("mov", operand, number(value))
        if self._model.has("swx_pass"):
            start.op("recircid", self._model.helper("swx_pass"))
        return [*start.lines(), *body]

    # Parser

    def _parser(self) -> None:
        model, code = self._model, self._code
        statements = Statements(model, code, "")
        if model.general:
            for header in model.program.headers:
                statements.clear_absent(header.name)
            statements.body(model.program.initial)
        order = parser_order(model.program)
        names = [s.name for s in order]
        again = {to for n, state in enumerate(order) for to in successors(state) if to in names[: n + 1]}
        labels = {name: code.label(f"parse_{name}"[:40]) for name in names}
        self._accepted = code.label("accept")

        def target(state: ir.ParserState, successor: str) -> str:
            if successor != ir.ACCEPT:
                return labels[successor]
            absent = () if model.general else self._absent(state.name)
            return self._detours.setdefault(absent, code.label("absent")) if absent else self._accepted

        for n, state in enumerate(order):
            code.place(labels[state.name])
            targets = {s: target(state, s) for s in successors(state)}
            if state.name in again:
                self._round()
            with standing_at(state.place):
                for statement in state.body:
                    statements.parse(statement, self._accepted)
                statements.select(state, targets, labels[names[n + 1]] if n + 1 < len(order) else None)
        if not code.ended:
            code.op("jmp", self._accepted)
        code.place(self._accepted)

    def _round(self) -> None:
        """Count what a loop of parser states goes through."""
        code, goes_on = self._code, self._code.label("round")
        code.op("add", self._model.helper("swx_rounds"), "0x1")
        code.op("jmplt", goes_on, self._model.helper("swx_rounds"), number(MAX_ROUNDS))
        code.op("drop")
        code.place(goes_on)

    def _absent(self, state: str) -> _Absent:
        """Headers that are touched although a packet may not have them, and whether it surely has not."""
        known = self._model.findings.edges[state, ir.ACCEPT]
        extracted = {name for s in self._model.program.parser for name in s.extracts}
        read = {ref.header for ref in self._model.findings.unsafe_reads}
        return tuple(
            (h.name, h.name not in known.maybe_valid)
            for h in self._model.program.headers
            if h.name in self._model.findings.maybe_invalid
            and h.name not in known.valid
            and (h.name in extracted or h.name in read)
        )

    def _detour(self, absent: _Absent) -> None:
        statements = Statements(self._model, self._code, "")
        for header, surely in absent:
            after = self._code.label("present")
            if not surely:
                self._code.op("jmpv", after, f"h.{header}")
            statements.clear_absent(header)
            self._code.place(after)

    # Control flow

    def _block(self, nodes: tuple[ir.ControlNode, ...]) -> None:
        """A control flow that an exit ends."""
        outer, self._exit_to = self._exit_to, self._code.label("exit")
        self._nodes(nodes)
        self._code.place(self._exit_to)
        self._exit_to = outer
        if self._model.has("swx_exit"):
            self._code.op("mov", self._model.helper("swx_exit"), "0x0")

    def _egress(self) -> None:
        """What the packet goes through by itself; its port is decided."""
        model, code = self._model, self._code
        if not model.program.egress:
            return
        end, leave = code.label("leave"), model.helper("swx_leave")
        code.op("jmpneq", end, model.helper("swx_dropped"), "0x0")
        if model.has("swx_again"):
            code.op("jmpneq", end, model.helper("swx_again"), "0x0")
        code.op("mov", leave, model.layout.port_out)
        code.op("jmpeq", end, leave, number(model.drop_port))
        self._block(model.program.egress)
        code.op("mov", model.layout.port_out, leave)
        code.place(end)

    def _nodes(self, nodes: tuple[ir.ControlNode, ...]) -> None:
        for node in nodes:
            if isinstance(node, ir.If):
                with standing_at(node.place):
                    self._if(node)
            elif isinstance(node, ir.CallAction):
                action = self._model.program.action(node.action)
                Statements(self._model, self._code, node.action, self._exit_to).action(action)
            elif isinstance(node, ir.Block):
                self._block(node.body)
            else:
                with standing_at(self._model.program.table(node.table).place):
                    self._apply(node)

    def _apply(self, node: ir.ApplyTable) -> None:
        table = self._model.program.table(node.table)
        _, copies = self._model.match_fields(table)
        for operand, place in copies:
            Statements(self._model, self._code, "").load(place, operand)
        self._code.op("table", table.name)
        if any(isinstance(s, ir.Exit) for n in table.taken for s in flattened(self._model.program.action(n).body)):
            self._code.op("jmpneq", self._exit_to, self._model.helper("swx_exit"), "0x0")
        if not any(node.branches):
            return
        if node.cases and (node.hit or node.miss):
            raise CapabilityError("dpdk-swx has one kind of control flow by the result of a table at a time")
        after = self._code.label("after")
        for name, nodes in node.cases:
            if name in table.taken:
                self._unless(nodes, after, "jmpna", name)
        if node.hit:
            self._unless(node.hit, after, "jmpnh")
        if node.miss:
            self._unless(node.miss, after, "jmph")
        self._code.place(after)

    def _unless(self, nodes: tuple[ir.ControlNode, ...], after: str, jump: str, *operands: str) -> None:
        """Nodes that are not jumped over, behind which nothing comes up to ``after``."""
        other = self._code.label("other")
        self._code.op(jump, other, *operands)
        self._nodes(nodes)
        self._code.op("jmp", after)
        self._code.place(other)

    def _if(self, node: ir.If) -> None:
        condition, statements = node.condition, Statements(self._model, self._code, "")
        if (decided := statements.decided(condition)) is not None:
            self._nodes(node.then if decided else node.otherwise)
            return
        # What is not jumped to comes first.
        if_held = isinstance(condition, ir.Compare) and condition.comparator in ("<", ">")
        first, second = (node.otherwise, node.then) if if_held else (node.then, node.otherwise)
        branch, after = self._code.label("branch"), self._code.label("after")
        statements.jump(condition, if_held, branch if second else after)
        self._nodes(first)
        if second:
            if not (first and self._code.ended):
                self._code.op("jmp", after)
            self._code.place(branch)
            self._nodes(second)
        self._code.place(after)

    # Checksums and deparser

    def _verify(self) -> None:
        accepted = [k.valid for (_, to), k in self._model.findings.edges.items() if to == ir.ACCEPT]
        always_there = frozenset.intersection(*accepted) if accepted and not self._model.general else frozenset()
        for checksum in self._model.program.verified:
            after, right = self._code.label("unchecked"), self._code.label("right")
            sum_field = f"h.{checksum.header}.{checksum.field}"
            if checksum.header not in always_there:
                self._code.op("jmpnv", after, f"h.{checksum.header}")
            self._code.op("mov", self._model.helper("swx_checksum"), sum_field)
            Statements(self._model, self._code, "").header_checksum(checksum)
            self._code.op("jmpeq", right, sum_field, self._model.helper("swx_checksum"))
            self._code.op("drop")
            self._code.place(right)
            self._code.place(after)

    def _update(self) -> None:
        for checksum in self._model.program.updated:
            after = self._code.label("unsummed")
            self._code.op("jmpnv", after, f"h.{checksum.header}")
            Statements(self._model, self._code, "").header_checksum(checksum)
            self._code.place(after)

    def _send(self) -> None:
        model, code = self._model, self._code
        send, dropped = code.label("send"), code.label("dropped")
        if model.has("swx_dropped"):
            code.op("jmpneq", dropped, model.helper("swx_dropped"), "0x0")
        if model.has("swx_again"):
            once = code.label("once")
            code.op("jmpeq", once, model.helper("swx_again"), "0x0")
            code.op("recirculate")
            code.op("jmp", send)
            code.place(once)
        self._groups(send)
        code.place(send)
        self._emit()
        code.op("tx", model.layout.port_out)
        if model.has("swx_dropped"):
            code.place(dropped)
            if model.clones:
                self._emit()
            code.op("drop")

    def _emit(self) -> None:
        for header in (h for h in self._model.program.emit if self._model.program.header(h).fields):
            self._code.op("emit", f"h.{header}")

    def _groups(self, send: str) -> None:
        """Multicast: a copy for each port but the first one, by which the packet itself leaves."""
        model, code = self._model, self._code
        for n, ports in enumerate(model.groups):
            other = code.label("group")
            code.op("jmpneq", other, model.helper("swx_group"), number(n + 1))
            for port in ports[1:]:
                Statements(model, code, "").mirror(port)
            code.op("mov", model.layout.port_out, number(ports[0]))
            code.op("jmp", send)
            code.place(other)
