"""Instructions of SWX one by one: what they do, as constructs and as facts that they settle.

The set is that of DPDK 22.11 (rte_swx_pipeline.h, "Instruction set", and lib/pipeline/rte_swx_pipeline.c). What is not
in it becomes a construct ``unknown``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from p4perf.evaluation.reading.blocks import Instruction
from p4perf.evaluation.reading.flow import Assigned, Effect, Fact, Valid
from p4perf.evaluation.reading.swx_text import Line, Specification, number
from p4perf.models.program.constructs import Construct, construct

SENT, LOST = "sent", "dropped"

HIT, RAN = "$hit", "$ran"
"""Fields in which the outcome of the last table is remembered: whether it was hit, and the number of its action."""

COMPUTE = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
COMPARE = {"jmpeq": "==", "jmpneq": "!=", "jmplt": "<", "jmpgt": ">"}
JUMPS = ("jmp", "jmpv", "jmpnv", "jmph", "jmpnh", "jmpa", "jmpna", *COMPARE)
SILENT = ("rx",)


@dataclass(frozen=True)
class Translator:
    """Translates instructions of one place.

    Args:
        spec: what the specification declares.
        where: of the place, for people.
        remark: is told what a reader should know.
        clone_bytes: size of the packets that are mirrored.
        action: name of the action in which they stand, empty in the apply block.
        ports: fields that say where packets are sent.
    """

    spec: Specification
    where: str
    remark: Callable[[str], None]
    clone_bytes: int
    action: str = ""
    ports: frozenset[str] = frozenset()

    def bits(self, operand: str, line: Line) -> int:
        """Width of an operand.

        Raises:
            DataError: there is none of that name.
        """
        return self.spec.bits(operand, line, self.spec.arguments(self.action))

    def plain(self, line: Line) -> Instruction:
        """An instruction that is neither a jump nor a table.

        Raises:
            DataError: it names something that is not there.
        """
        op = line.word(0)
        where = f"{self.where}, line {line.number}"
        if op == "tx":
            return Instruction(jumps=(("", SENT),), falls=None, where=where)
        if op == "drop":
            return Instruction((construct("drop", where),), jumps=(("", LOST),), falls=None, where=where)
        if op == "emit":
            bits = self.spec.header_bits(line.word(1), line)
            what = construct("emit", where, bytes=bits // 8)
            return Instruction(present=((line.word(1).removeprefix("h."), what),), kind="deparser", where=where)
        met, effects = self._plain(op, line, where)
        return Instruction(tuple(met), tuple(effects), where=where)

    def jump(self, line: Line, target: int | str, actions: Mapping[str, int]) -> Instruction:
        """A jump.

        Args:
            line: of it.
            target: where it goes.
            actions: numbers of the actions.

        Raises:
            DataError: it names something that is not there.
        """
        op = line.word(0)
        where = f"{self.where}, line {line.number}"
        if op == "jmp":
            return Instruction((construct("jump", where),), jumps=(("", target),), falls=None, where=where)
        test: Fact | None = None
        inverted = op in ("jmpnv", "jmpnh", "jmpna", "jmpneq")
        bits = 1
        if op in ("jmpv", "jmpnv"):
            self.spec.header_bits(line.word(2), line)
            test = line.word(2).removeprefix("h.")
        elif op in ("jmph", "jmpnh"):
            test = (HIT, 1)
        elif op in ("jmpa", "jmpna"):
            if line.word(2) not in actions:
                raise line.error(f"there is no action {line.word(2)!r}")
            test = (RAN, actions[line.word(2)])
        else:
            bits = self.bits(line.word(2), line)
            value = number(line.word(3))
            if value is None:
                self.bits(line.word(3), line)
            elif op in ("jmpeq", "jmpneq"):
                test = (line.word(2), value)
        what = construct("condition", where, bits=bits)
        return Instruction(
            (what,), (), (("true", target),), "false", test=test, inverted=inverted, kind="condition", where=where
        )

    def _plain(self, op: str, line: Line, where: str) -> tuple[list[Construct], list[Effect]]:
        if op in SILENT:
            return [], [Assigned(line.word(1), None)]
        if op in ("extract", "lookahead"):
            header = line.word(1)
            size = self.spec.header_bits(header, line) // 8
            if len(line.words) > 2:
                self.remark(f"header {header} has a varying length and is counted with its greatest, {size} B")
            return [construct("extract", where, bytes=size)], [Valid(header.removeprefix("h."), True)]
        if op in ("validate", "invalidate"):
            size = self.spec.header_bits(line.word(1), line) // 8
            kind = "add header" if op == "validate" else "remove header"
            what = construct("add header" if kind == "add header" else "remove header", where, bytes=size)
            return [what], [Valid(line.word(1).removeprefix("h."), op == "validate")]
        if op in ("mov", "movh", "dma"):
            return self._move(op, line, where)
        if op in COMPUTE:
            bits = self.bits(line.word(1), line)
            self.bits(line.word(2), line)
            return [construct("compute", where, operator=COMPUTE[op], bits=bits)], [Assigned(line.word(1), None)]
        if op in ("ckadd", "cksub"):
            size = -(-min(self.bits(line.word(2), line), 1 << 16) // 8)
            return [construct("checksum update", where, bytes=size)], [Assigned(line.word(1), None)]
        if op == "hash" or op == "rss":
            size = -(-self.spec.span_bits(line.word(3), line.words[-1], line) // 8)
            algorithm = line.word(1) if op == "hash" else "toeplitz"
            return [construct("hash", where, algorithm=algorithm, bytes=size)], [Assigned(line.word(2), None)]
        return self._stateful(op, line, where)

    def _move(self, op: str, line: Line, where: str) -> tuple[list[Construct], list[Effect]]:
        target = line.word(1)
        bits = self.bits(target, line)
        self.bits(line.word(2), line)
        if target in self.ports:
            return [construct("set egress", where)], []
        value = number(line.word(2)) if op == "mov" else None
        if value is not None:
            value &= (1 << bits) - 1
        effects: list[Effect] = [Assigned(target, value)]
        if op == "dma":
            effects = [Valid(target.removeprefix("h."), True)]
        to = "header" if target.startswith("h.") else "metadata"
        return [construct("write", where, bits=bits, to=to)], effects

    def _stateful(self, op: str, line: Line, where: str) -> tuple[list[Construct], list[Effect]]:
        spec = self.spec
        if op == "regrd":
            cells, bits = _array(spec.registers, line, 2), self.bits(line.word(1), line)
            return [construct("register read", where, cells=cells, bits=bits)], [Assigned(line.word(1), None)]
        if op == "regwr":
            cells, bits = _array(spec.registers, line, 1), self.bits(line.word(3), line)
            return [construct("register write", where, cells=cells, bits=bits)], []
        if op == "regadd":
            return [construct("counter", where, cells=_array(spec.registers, line, 1))], []
        if op == "meter":
            return [construct("meter", where, cells=_array(spec.meters, line, 1))], [Assigned(line.words[-1], None)]
        if op == "mirror":
            self.remark(f"mirrored packets are counted with {self.clone_bytes} B")
            return [construct("clone", where, bytes=self.clone_bytes)], []
        if op == "recirculate":
            return [construct("recirculate", where)], []
        if op in ("recircid", "entryid"):
            bits = self.bits(line.word(1), line)
            return [construct("write", where, bits=bits, to="metadata")], [Assigned(line.word(1), None)]
        name = " ".join(line.words[:2]) if op == "extern" else op
        self.remark(f"{name} is not known and counted as unknown")
        return [construct("unknown", where, name=name)], []


def _array(found: Mapping[str, int], line: Line, n: int) -> int:
    if line.word(n) not in found:
        raise line.error(f"there is no array {line.word(n)!r}")
    return found[line.word(n)]
