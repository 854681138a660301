"""The instructions that every packet runs through: parser, control flow, checksums, deparser."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.swx.code import Assembler, Statements, number
from p4perf.generators.swx.general import GeneralStatements
from p4perf.generators.swx.layout import Model, parser_order
from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, MIRRORED, flattened, needed_fields
from p4perf.programs.capabilities import standing_at, unsupported
from p4perf.programs.dataflow import successors

MAX_ROUNDS = 2048
"""Of the loops of a parser: no packet has more bytes, and where a packet ends goes unnoticed."""

_HOLDS = {"==": "jmpeq", "!=": "jmpneq", "<": "jmplt", ">": "jmpgt"}
_FAILS = {"==": "jmpneq", "!=": "jmpeq", "<=": "jmpgt", ">=": "jmplt"}
"""Jumps of SWX: there is none for "not less than" and none for "not greater than"."""

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
        if self._model.general:
            self._general_parser()
            self._verify()
            self._block(self._model.program.control)
            self._egress()
        else:
            self._parser()
            self._verify()
            self._nodes(self._model.program.control)
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
        order = parser_order(self._model.program)
        names = [s.name for s in order]
        labels = {name: self._code.label(f"parse_{name}"[:40]) for name in names}
        accepted = self._code.label("accept")
        detours: dict[_Absent, str] = {}

        def target(state: ir.ParserState, successor: str) -> str:
            if successor != ir.ACCEPT:
                return labels[successor]
            absent = self._absent(state.name)
            if not absent:
                return accepted
            return detours.setdefault(absent, self._code.label("absent"))

        for n, state in enumerate(order):
            self._code.place(labels[state.name])
            follows = labels[names[n + 1]] if n + 1 < len(order) else None
            for header in state.extracts:
                self._code.op("extract", f"h.{header}")
            self._select(state, {s: target(state, s) for s in successors(state)}, follows)
        if not self._code.ended:
            self._code.op("jmp", accepted)
        self._code.place(accepted)
        self._accepted, self._detours = accepted, detours

    def _select(self, state: ir.ParserState, targets: dict[str, str], follows: str | None) -> None:
        default = targets[state.default]
        cases = []
        if state.select is not None:
            width = self._model.program.width_bits(state.select)
            if width > 64:
                raise CapabilityError("dpdk-swx compares fields of up to 64 bit, the parser selects on a longer one")
            seen: set[int] = set()
            for case in state.cases:
                if case.value not in seen and case.value < 1 << width:
                    cases.append((number(case.value), targets[case.next_state]))
                seen.add(case.value)
        if cases and state.select is not None:
            if state.select.header == ir.METADATA:
                raise CapabilityError("dpdk-swx has a parser that selects on fields of headers only")
            at = Statements(self._model, self._code, "").operand(state.select)
            if len(cases) == 1 and cases[0][1] == follows:
                self._code.op("jmpneq", default, at, cases[0][0])
                return
            for value, label in cases:
                self._code.op("jmpeq", label, at, value)
        if default != follows:
            self._code.op("jmp", default)

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

    def _general_parser(self) -> None:
        model, code = self._model, self._code
        statements = GeneralStatements(model, code, "")
        for header in model.program.headers:
            statements.clear_absent(header.name)
        needed = needed_fields(model.program)
        statements.body(tuple(a for a in model.program.initial if a.destination in needed))
        order = parser_order(model.program)
        targets = {name: code.label(f"parse_{name}"[:40]) for name in (*(s.name for s in order), ir.ACCEPT)}
        position = {state.name: n for n, state in enumerate(order)}
        again = {s for state in order for s in successors(state) if position.get(s, len(order)) <= position[state.name]}
        for state in order:
            code.place(targets[state.name])
            if state.name in again:
                goes_on = code.label("round")
                code.op("add", model.helper("swx_rounds"), "0x1")
                code.op("jmplt", goes_on, model.helper("swx_rounds"), number(MAX_ROUNDS))
                code.op("drop")
                code.place(goes_on)
            with standing_at(state.place):
                for statement in state.body:
                    statements.parse(statement, targets[ir.ACCEPT])
                statements.select(state, targets)
        code.place(targets[ir.ACCEPT])

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
                self.body(node.action)
            elif isinstance(node, ir.Block):
                self._block(node.body)
            else:
                with standing_at(self._model.program.table(node.table).place):
                    self._apply(node)

    def body(self, action: str) -> None:
        if self._model.general:
            statements = GeneralStatements(self._model, self._code, action, self._exit_to)
            statements.action(self._model.program.action(action))
            return
        Statements(self._model, self._code, action).action(self._model.program.action(action))

    def _apply(self, node: ir.ApplyTable) -> None:
        table = self._model.program.table(node.table)
        _, copies = self._model.match_fields(table)
        for operand, ref in copies:
            Statements(self._model, self._code, "").evaluate(ref, operand)
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
        if self._model.general:
            other, after = self._code.label("other"), self._code.label("after")
            GeneralStatements(self._model, self._code, "").jump(node.condition, False, other)
            self._nodes(node.then)
            self._code.op("jmp", after)
            self._code.place(other)
            self._nodes(node.otherwise)
            self._code.place(after)
            return
        decided = _decided(self._model, node.condition)
        if decided is not None:
            self._nodes(node.then if decided else node.otherwise)
            return
        holds, fails = self._jumps(node.condition)
        branch, after = self._code.label("branch"), self._code.label("after")
        # What is not jumped to comes first.
        first, second = (node.then, node.otherwise) if fails else (node.otherwise, node.then)
        jump = fails or holds
        self._code.op(jump[0], branch if second else after, *jump[1:])
        self._nodes(first)
        if second:
            if not (first and self._code.ended):
                self._code.op("jmp", after)
            self._code.place(branch)
            self._nodes(second)
        self._code.place(after)

    def _jumps(self, condition: ir.Condition) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The jump that is taken if a condition holds, and the one if it fails; empty where SWX has none."""
        if isinstance(condition, ir.IsValid):
            header = f"h.{condition.header}"
            return ("jmpv", header), ("jmpnv", header)
        if not isinstance(condition, ir.Compare):
            raise unsupported("dpdk-swx", condition)
        comparator, left, right = condition.comparator, condition.left, condition.right
        if isinstance(left, ir.Const):
            comparator, left, right = MIRRORED[comparator], right, left
        statements = Statements(self._model, self._code, "")
        operands = statements.operand(left), statements.operand(right)
        holds = (_HOLDS[comparator], *operands) if comparator in _HOLDS else ()
        fails = (_FAILS[comparator], *operands) if comparator in _FAILS else ()
        return holds, fails

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
            statements_of(self._model, self._code, "").header_checksum(checksum)
            self._code.op("jmpeq", right, sum_field, self._model.helper("swx_checksum"))
            self._code.op("drop")
            self._code.place(right)
            self._code.place(after)

    def _update(self) -> None:
        for checksum in self._model.program.updated:
            after = self._code.label("unsummed")
            self._code.op("jmpnv", after, f"h.{checksum.header}")
            statements_of(self._model, self._code, "").header_checksum(checksum)
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


def _decided(model: Model, condition: ir.Condition) -> bool | None:
    """What a comparison comes to where that does not depend on the packet; None if it does.

    SWX cuts an immediate value to the width of the header field that it is compared with.
    """
    if not isinstance(condition, ir.Compare):
        return None
    comparator, left, right = condition.comparator, condition.left, condition.right
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return COMPARE[comparator](left.value, right.value)
    if isinstance(left, ir.Const):
        comparator, left, right = MIRRORED[comparator], right, left
    if isinstance(right, ir.Const) and right.value >= 1 << _bits(model, left):
        return comparator in ("!=", "<", "<=")
    return None


def _bits(model: Model, e: ir.Expression) -> int:
    return model.width_bits(e) if isinstance(e, ir.FieldRef) else 32


def statements_of(model: Model, code: Assembler, action: str) -> Statements:
    """What writes statements of a program."""
    return (GeneralStatements if model.general else Statements)(model, code, action)
