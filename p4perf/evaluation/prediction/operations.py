"""A program as a sequence of elementary operations: what packets meet, by the reference interpreter.

A field is parsed once, the first time that it is read, and kept in a register; a field that was written is deparsed
once, at the end of the pass. Metadata live in registers (the assumption of Baldi 2018, end of section 2.1). A lookup
gathers its key, finds the entry and reads it whole. What depends on the packet is averaged over packets that are drawn
as the load generator draws them. A branch that packets take differently, the same time that they meet it, is predicted
wrong as often as they take any but the commonest branch; what all packets do alike is predicted.

Operations of the local source of packets (``draw``, ``restore``) are part of the sequence where ``local`` says so: the
numbers of targets that read packets from memory have them, a network card does them for nothing.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from p4perf.errors import CapabilityError
from p4perf.generators.c.dpdk_text import layout
from p4perf.models.eo import Call, NetworkFunction, make_call, registered_operations
from p4perf.programs import ir
from p4perf.programs.analysis import destination, needs_restore, operands
from p4perf.programs.capabilities import NOT_OF_THE_LANGUAGE, constructs
from p4perf.programs.component import TrafficPlan
from p4perf.programs.interpreter import Interpreter, Met
from p4perf.programs.packets import FCS_BYTES, frame, headers_size_bytes

PACKETS = 16
"""Packets of each kind (hits, misses) that are looked at."""

COUNTER_BYTES = 8
CHECKSUM_BYTES = 2
SELECT = "select"


def derive(
    workload: ir.Workload, traffic: TrafficPlan, *, local: bool = True, name: str = "program"
) -> NetworkFunction:
    """The operations of a program, for the packets that it is measured with.

    Args:
        local: with what the local source of packets does, as the targets have it that read packets from memory.

    Raises:
        CapabilityError: no elementary operation says what a construct does, such as an operator in C.
    """
    unknown = [construct for construct in constructs(workload.program) if construct in NOT_OF_THE_LANGUAGE]
    if unknown:
        raise CapabilityError(f"{name} has no estimate: no elementary operation says what its {unknown[0]} does")
    tally = _Tally()
    for drawn, weight in drawn_packets(workload, traffic):
        walk = _Walk(workload, tally, weight)
        walk.begin(local)
        data = frame(workload.program, workload.packets, drawn)
        Interpreter(workload.program, watch=walk.watch).run(data)
        walk.end()
    title = f"operations of {workload.program.name}, as {PACKETS} packets of its workload meet them"
    return NetworkFunction(name, tally.calls(), title, frame_bytes=traffic.frame_size_bytes, source="derived")


def drawn_packets(workload: ir.Workload, traffic: TrafficPlan) -> list[tuple[int, Fraction]]:
    """Numbers for the varying fields of the packets that are looked at, with the share of packets of each."""
    keys = min((v.count for v in workload.packets.varying), default=1)
    hits = sorted({n * keys // PACKETS for n in range(PACKETS)})
    ratio = Fraction(str(traffic.hit_ratio)) if workload.packets.varying else Fraction(1)
    found = [(n, ratio / len(hits)) for n in hits]
    found += [(keys + n, (1 - ratio) / len(hits)) for n in hits]
    return [(n, weight) for n, weight in found if weight]


class _Tally:
    """How often each operation is met, in the order in which they were met first."""

    def __init__(self) -> None:
        self._operations = registered_operations()
        self._times: dict[tuple[str, tuple[Fraction, ...], str, str], Fraction] = {}
        self._branches: dict[str, tuple[int, dict[str | bool | None, Fraction]]] = {}

    def add(self, name: str, *arguments: float | Fraction, times: Fraction, table: str = "", remark: str = "") -> None:
        key = (name, tuple(Fraction(a) for a in arguments), table, remark)
        self._times[key] = self._times.get(key, Fraction(0)) + times

    def branch(self, place: str, branches: int, outcome: str | bool | None, times: Fraction) -> None:
        self._times.setdefault((SELECT, (), "", place), Fraction(0))
        _, outcomes = self._branches.setdefault(place, (branches, {}))
        outcomes[outcome] = outcomes.get(outcome, Fraction(0)) + times

    def calls(self) -> tuple[Call, ...]:
        found: dict[tuple[str, str], Call] = {}
        for (name, arguments, table, remark), times in self._times.items():
            if name == SELECT:
                branches, outcomes = self._branches[remark]
                times = sum(outcomes.values(), Fraction(0))
                miss = 1 - max(outcomes.values()) / times
                call = make_call(self._operations["branch"], branches, Fraction(round(miss * 1000), 1000), times=times)
            else:
                call = make_call(self._operations[name], *arguments, times=times, table=table, remark=remark)
            before = found.get((str(call), table))
            total = times if before is None else before.times + times
            found[str(call), table] = Call(call.operation, call.arguments, total, table, call.remark)
        return tuple(found.values())


class _Walk:
    """One packet on its path: what is in registers, which headers there are."""

    def __init__(self, workload: ir.Workload, tally: _Tally, weight: Fraction) -> None:
        self._program: ir.Program = workload.program
        self._workload = workload
        self._tally = tally
        self._weight = weight
        self._layout = layout(workload.program)
        self._reset()
        self._passes = 0
        self._visits: Counter[str] = Counter()

    def _reset(self) -> None:
        self._registers: set[ir.FieldRef] = set()
        self._written: dict[ir.FieldRef, None] = {}
        self._valid: set[str] = set()

    def _add(self, name: str, *arguments: float | Fraction, table: str = "", remark: str = "") -> None:
        self._tally.add(name, *arguments, times=self._weight, table=table, remark=remark)

    def _branch(self, place: str, branches: int, outcome: str | bool | None) -> None:
        self._visits[place] += 1
        self._tally.branch(f"{place}, {self._visits[place]}", branches, outcome, self._weight)

    def begin(self, local: bool) -> None:
        program, packets = self._program, self._workload.packets
        headers = headers_size_bytes(program, packets)
        self._add("I/O_mem", headers, packets.frame_size_bytes - FCS_BYTES - headers)
        if not local:
            return
        for varying in packets.varying:
            bits = program.width_bits(varying.field) - varying.free_bits
            self._add("draw", 8 if bits <= 64 else 16)
        if needs_restore(program) or self._layout.deparses:
            self._add("restore", headers)

    def watch(self, met: Met, outcome: str | bool | None) -> None:
        match met:
            case ir.ParserState():
                self._state(met, outcome)
            case ir.If(condition):
                if isinstance(condition, ir.Compare):
                    self._read(condition.left, condition.right)
                self._branch(f"if {id(met)}", 2, outcome)
            case ir.ApplyTable(name):
                self._lookup(self._program.table(name), bool(outcome))
                self._branch(f"table {name}", 2, outcome)
            case ir.CallAction() | ir.Block() | ir.Action() | ir.SelectCase():
                pass
            case _:
                self._statement(met)

    def _state(self, state: ir.ParserState, outcome: str | bool | None) -> None:
        if state.name == "start":
            if self._passes:
                self._finish()
            self._reset()
            self._passes += 1
        for name in state.extracts:
            self._add("extract", self._program.header(name).size_bytes)
            self._valid.add(name)
        if state.select is not None:
            self._read(state.select)
            self._branch(f"state {state.name}", len(state.cases) + 1, outcome)
        if outcome == "accept":
            for checksum in self._program.verified:
                if checksum.header in self._valid:
                    self._add("checksum", self._program.header(checksum.header).size_bytes)

    def _read(self, *expressions: ir.Expression) -> None:
        for expression in expressions:
            match expression:
                case ir.FieldRef() if expression.header != ir.METADATA and expression not in self._registers:
                    self._add("parse", self._bytes(expression))
                    self._registers.add(expression)
                case ir.BinaryOp(_, left, right):
                    self._read(left, right)

    def _compute(self, expression: ir.Expression, size: int) -> None:
        if isinstance(expression, ir.BinaryOp):
            self._compute(expression.left, size)
            self._compute(expression.right, size)
            by_one = isinstance(expression.right, ir.Const) and expression.operator in ("+", "-")
            name = {"+": "increase", "-": "decrease"}[expression.operator] if by_one else "sum"
            self._add(name, size)

    def _bytes(self, ref: ir.FieldRef) -> int:
        return -(-self._program.width_bits(ref) // 8)

    def _lookup(self, table: ir.Table, hit: bool) -> None:
        """A miss reads no action data."""
        program = self._program
        bits, kind = program.key_bits(table), program.match_kind(table)
        key = -(-bits // 8)
        data = program.action(table.rule.action).data_bits // 8 if hit else 0
        count = max(table.entries.count, 1)
        if any(k.field.header != ir.METADATA and k.field not in self._registers for k in table.keys):
            self._add("parse", key)
        if kind == "exact" or bits > 64:
            self._add("deparse", key, remark="the key, in one piece")
        if kind == "exact":
            self._add("ht_lookup", -(-key // 8), key + data, count, table=table.name)
        elif kind == "lpm":
            self._add("lpm_lookup", (bits - table.rule.free_bits) / 8, data, count, table=table.name)
        else:
            pair = 8 if bits <= 32 else 16 * -(-bits // 64)
            self._add("list_lookup", pair, count, table=table.name)

    def _statement(self, statement: ir.Statement) -> None:
        program = self._program
        match statement:
            case ir.Assign(ref, value):
                self._read(value)
                self._compute(value, min(8, self._bytes(ref)))
            case ir.Hash(_, algorithm, fields):
                self._flush(set(fields))
                size = sum(program.width_bits(f) for f in fields) // 8
                self._add({"checksum16": "checksum"}.get(algorithm, algorithm), size)
            case ir.CountPacket(counter, index):
                self._read(index)
                self._add("array_access", COUNTER_BYTES, program.counter(counter).size, table=counter)
                self._add("increase", COUNTER_BYTES)
                self._add("deparse", COUNTER_BYTES)
            case ir.MeterPacket(_, meter, index):
                self._read(index)
                self._add("meter", program.meter(meter).size, table=meter)
            case ir.ReadRegister(_, name) | ir.WriteRegister(name):
                self._read(*operands(statement))
                register = program.register(name)
                self._add("array_access", -(-register.width_bits // 8), register.size, table=name)
            case ir.Random(ref):
                self._add("random", self._bytes(ref))
            case ir.AddHeader(name, values):
                self._read(*(value for _, value in values))
                header = program.header(name)
                self._add("deparse", header.size_bytes)
                self._valid.add(name)
                self._registers -= {ir.FieldRef(name, f.name) for f in header.fields}
            case ir.RemoveHeader(name):
                self._valid.discard(name)
                self._written = {ref: None for ref in self._written if ref.header != name}
            case ir.Clone():
                self._add("clone", self._workload.packets.frame_size_bytes - FCS_BYTES)
            case ir.Multicast(ports):
                self._add("multicast", max(len(ports) - 1, 0))
        written = destination(statement)
        if written is not None and written.header != ir.METADATA:
            self._registers.add(written)
            self._written[written] = None

    def _flush(self, refs: set[ir.FieldRef]) -> None:
        for ref in [r for r in self._written if r in refs]:
            self._add("deparse", self._bytes(ref))
            del self._written[ref]

    def _finish(self) -> None:
        self._flush({ref for ref in self._written if ref.header in self._valid})
        for checksum in self._program.updated:
            if checksum.header in self._valid:
                self._add("checksum", self._program.header(checksum.header).size_bytes)
                self._add("deparse", CHECKSUM_BYTES)
        if self._layout.deparses:
            self._add("resize")
            for name in self._program.emit:
                if name in self._valid:
                    self._add("move", self._program.header(name).size_bytes)

    def end(self) -> None:
        self._finish()
        sent = sum(self._program.header(name).size_bytes for name in self._program.emit if name in self._valid)
        headers = headers_size_bytes(self._program, self._workload.packets)
        self._add("mem_I/O", sent, self._workload.packets.frame_size_bytes - FCS_BYTES - headers)
