"""Specifications of the SWX pipeline of DPDK: what p4c-dpdk makes of P4, written directly.

One line is one instruction of SWX. DPDK 22.11 either interprets it or generates C for it (target ``dpdk-swx``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, Generator, render
from p4perf.generators.swx.code import Assembler, Statements, number
from p4perf.generators.swx.layout import SCRATCH, WORD_BITS, Model, StructField, parser_order, whole_bytes
from p4perf.programs import ir
from p4perf.programs.analysis import COMPARE, MIRRORED, used_actions
from p4perf.programs.capabilities import Capabilities, Limit, unsupported
from p4perf.programs.component import TrafficPlan
from p4perf.programs.dataflow import successors
from p4perf.programs.packets import FCS_BYTES
from p4perf.version import __version__

MAX_HEADERS = 64
MAX_STRUCT_BYTES = 255
MAX_METADATA_BYTES = 236
"""What is left of the structure for the fields of a program, beside ports, drop flag and temporaries."""
MAX_NAME = 63
MAX_TABLES = 256
MAX_COPIES = 64

CAPABILITIES = Capabilities(
    "dpdk-swx",
    missing={
        "offered load": "it reads packets from memory as fast as the program takes them",
        "hash crc16": "its hash functions are crc32 (CRC-32C) and jhash (DPDK 22.11, hash_funcs_register)",
        "random": "it has no instruction that draws numbers (DPDK 22.11, enum instruction_type)",
        "resubmit": "a packet that comes back is the one that was deparsed (DPDK 22.11, instruction recirculate)",
    },
    limits={
        "headers": Limit(
            MAX_HEADERS, "one bit of a 64-bit mask each, DPDK 22.11, rte_swx_pipeline_packet_header_register"
        ),
        "header bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold sizes and offsets in one byte, DPDK 22.11, struct instr_io"
        ),
        "metadata bytes": Limit(
            MAX_METADATA_BYTES,
            "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand; ports and more",
        ),
        "action data bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand"
        ),
        "computed field bits": Limit(64, "operands of arithmetic, DPDK 22.11, instr_alu_add_translate"),
        "tables": Limit(MAX_TABLES, "instructions hold the table in one byte, DPDK 22.11, struct instr_table"),
        "exact entries": Limit(1 << 30, "sizes of 32 bit, DPDK 22.11, rte_swx_table_em.c"),
        "lpm key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "ternary key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "register bits": Limit(64, "cells of 64 bit, DPDK 22.11, rte_swx_pipeline_regarray_config"),
        "copies": Limit(MAX_COPIES, "mirroring slots are bits of a 64-bit mask, DPDK 22.11, struct thread"),
    },
    remarks={
        "hash crc32": "it is CRC-32C that starts with zero (rte_hash_crc), not that of Ethernet; the oracle knows",
        "hash checksum16": "it says 0xFFFF where RFC 1071 says 0 (ckadd); the oracle knows",
        "checksum verify": "a checksum that should be 0 is taken for wrong: ckadd makes it 0xFFFF",
        "checksum update": "a checksum that should be 0 becomes 0xFFFF (ckadd)",
        "clone": "a clone is made when the packet is sent, so only programs that change no header have clones",
        "lpm": "SWX matches prefixes by rte_acl, as it does ternary keys",
    },
)
"""Constructs that are missing and limits. Offsets in metadata and action data are checked when they are known."""


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
        self._detours: dict[_Absent, str] = {}

    def lines(self) -> list[str]:
        """All instructions, from ``rx`` to ``tx``."""
        # What comes first is known last: which fields have to be zero.
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

    # Control flow

    def _nodes(self, nodes: tuple[ir.ControlNode, ...]) -> None:
        for node in nodes:
            if isinstance(node, ir.If):
                self._if(node)
            elif isinstance(node, ir.CallAction):
                self.body(node.action)
            elif isinstance(node, ir.Block):
                raise unsupported("dpdk-swx", node)
            else:
                self._apply(node)

    def body(self, action: str) -> None:
        Statements(self._model, self._code, action).body(self._model.program.action(action).body)

    def _apply(self, node: ir.ApplyTable) -> None:
        table = self._model.program.table(node.table)
        _, copies = self._model.match_fields(table)
        for operand, ref in copies:
            Statements(self._model, self._code, "").evaluate(ref, operand)
        self._code.op("table", table.name)

    def _if(self, node: ir.If) -> None:
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
        always_there = frozenset.intersection(*accepted) if accepted else frozenset()
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
        for header in self._model.program.emit:
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


class Swx(Generator):
    """Renders ``program.spec`` and ``baseline.spec``."""

    name = "swx"
    summary = "specifications of the SWX pipeline of DPDK 22.11"

    @override
    def generate(self, workload: ir.Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        packet_bytes = workload.packets.frame_size_bytes - FCS_BYTES
        CAPABILITIES.check(workload.program, workload.packets, traffic)
        return (
            GeneratedFile("program.spec", (Pipeline(workload.program, "program", packet_bytes).specification(),)),
            GeneratedFile("baseline.spec", (Pipeline(workload.baseline, "baseline", packet_bytes).specification(),)),
        )


@dataclass(frozen=True, slots=True)
class _Struct:
    name: str
    fields: tuple[StructField, ...]


class Pipeline:
    """One program as a pipeline of SWX; meters get the size of its packets in memory."""

    def __init__(self, program: ir.Program, role: str, packet_bytes: int) -> None:
        self.program = program
        self.role = role
        self._model = Model(program, packet_bytes)
        # Actions first: the control flow looks at the flags that they set.
        run = {n for t in program.tables for n in (t.default_action, t.rule.action)}
        names = (a.name for a in program.actions if a.name in run)
        self._actions = [self._action(name, n) for n, name in enumerate(names)]
        self._apply = Control(self._model).lines()
        self._tables = [self._table(t) for t in program.tables]
        # An instruction reads eight bytes where its field begins, also at the end of the metadata.
        self._model.layout.metadata.append("swx_end", WORD_BITS)
        self._structs = self._all_structs()
        self._check()

    def specification(self, *, table_size: int | None = None) -> str:
        """The whole text; the size of a table is by default the number of its entries."""
        headers = [{"name": h.name, "struct": f"{h.name}_t"} for h in self.program.headers]
        if self._model.layout.scratch.fields:
            headers.append({"name": SCRATCH, "struct": f"{SCRATCH}_t"})
        tables = [t | ({} if table_size is None else {"size": table_size}) for t in self._tables]
        return render(
            "swx/program.spec.j2",
            version=__version__,
            program=self.program,
            drop_port=self._model.drop_port,
            structs=self._structs,
            headers=headers,
            registers=(*self.program.counters, *self.program.registers),
            meters=self.program.meters,
            actions=self._actions,
            tables=tables,
            apply=self._apply,
        )

    def config(self) -> dict[str, Any]:
        """What the harness has to know, for the template of its configuration."""
        return {
            "role": self.role,
            "n_ports": self._model.n_ports,
            "mirrors": self._model.mirrors,
            "states": [*self.program.counters, *self.program.registers],
            "meters": list(self.program.meters),
            "entries": False,
            "in_order": bool(self.program.states),
            "tables": [
                {
                    "name": t.name,
                    "action": t.rule.action,
                    "port": t.rule.port,
                    "free_bits": t.rule.free_bits,
                    "key_bits": [bits for _, bits in self._model.match_fields(t)[0]],
                    "arguments": self._model.arguments(t.rule.action),
                }
                for t in self.program.tables
            ],
        }

    def _action(self, name: str, position: int) -> dict[str, Any]:
        code = Assembler(f"A{position}")
        if name in used_actions(self.program):
            Statements(self._model, code, name).body(self.program.action(name).body)
        if not code.ended:
            code.op("return")
        arguments = self._model.arguments(name)
        return {"name": name, "struct": f"{name}_args_t" if arguments else None, "lines": code.lines()}

    def _table(self, table: ir.Table) -> dict[str, Any]:
        kind = self.program.match_kind(table)
        fields, at = [], 0
        operands, _ = self._model.match_fields(table)
        for key in table.keys:
            for _ in self._model.layout.places(key.field):
                exact = key.match_kind == "exact"
                fields.append((operands[at][0], "exact" if exact else "lpm" if kind == "lpm" else "wildcard"))
                at += 1
        if sum(k == "lpm" for _, k in fields) > 1:
            fields = [(name, "wildcard" if k == "lpm" else k) for name, k in fields]
        actions = list(dict.fromkeys((table.rule.action, table.default_action)))
        size = max(table.entries.count, 1)
        return {"name": table.name, "fields": fields, "actions": actions, "default": table.default_action, "size": size}

    def _all_structs(self) -> list[_Struct]:
        layout = self._model.layout
        structs = [_Struct(f"{name}_t", tuple(s.fields)) for name, s in layout.headers.items()]
        if layout.scratch.fields:
            structs.append(_Struct(f"{SCRATCH}_t", tuple(layout.scratch.fields)))
        structs.append(_Struct("metadata_t", tuple(layout.metadata.fields)))
        for action in self._actions:
            fields, at = [], 0
            for name, bits, _, _ in self._model.arguments(action["name"]):
                fields.append(StructField(name, whole_bytes(bits), at))
                at += whole_bytes(bits)
            if fields:
                structs.append(_Struct(action["struct"], tuple(fields)))
        return structs

    def _check(self) -> None:
        """Refuse what instructions of SWX cannot name: it would be cut without a word."""
        for struct in self._structs:
            last = struct.fields[-1]
            end = last.first + last.bits if struct.name[:-2] in self._model.layout.headers else last.first
            if end // 8 > MAX_STRUCT_BYTES:
                raise CapabilityError(
                    f"{struct.name} takes more than {MAX_STRUCT_BYTES} B: instructions of SWX hold offsets in one byte "
                    "(DPDK 22.11, struct instr_operand)"
                )
        if len(self._model.layout.headers) + bool(self._model.layout.scratch.fields) > MAX_HEADERS:
            raise CapabilityError(f"SWX has {MAX_HEADERS} headers, and one of them is needed to hash or sum fields")
        words = {w for line in (*self._apply, *(x for a in self._actions for x in a["lines"])) for w in line.split()}
        names = {*words, *(s.name for s in self._structs), *(f.name for s in self._structs for f in s.fields)}
        if too_long := sorted(n for n in names if len(n) > MAX_NAME):
            raise CapabilityError(f"SWX takes names of up to {MAX_NAME} characters, {too_long[0]} is longer")
