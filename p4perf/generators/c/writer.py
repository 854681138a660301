"""What the C text of a program has in common on DPDK and in XDP: words of 64 bit, expressions, statements.

How fields, headers and state are reached is up to the target: the verifier of eBPF has a say in that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from p4perf.errors import CapabilityError
from p4perf.programs import ir

WORD_BITS = 64
"""Widest number that is computed with."""


@dataclass(frozen=True)
class CWriter(ABC):
    """One program as C text; ``p`` is the packet, ``d`` the action data."""

    program: ir.Program

    word_type: ClassVar[str]
    zero: ClassVar[str]
    limit: ClassVar[str]
    """What is said of a wider computation."""

    @staticmethod
    @abstractmethod
    def constant(value: int) -> str:
        """A C constant of 64 bit, unsigned."""

    @abstractmethod
    def load(self, ref: ir.FieldRef, low: int = 0) -> str:
        """The value of a field, or of up to 64 bits of it from bit ``low`` (counted from the lowest) on."""

    @abstractmethod
    def is_valid(self, header: str) -> str:
        """Whether a packet has a header."""

    @abstractmethod
    def assign(self, ref: ir.FieldRef, value: ir.Expression) -> Iterator[str]:
        """Statements that write the value of an expression to a field, of any width."""

    @abstractmethod
    def store(self, ref: ir.FieldRef, value: str) -> Iterator[str]:
        """Statements that write a number to a field."""

    @abstractmethod
    def add_header(self, statement: ir.AddHeader) -> Iterator[str]:
        """Statements that add a header. Its values come first, since they may be of the header itself."""

    @abstractmethod
    def hash_fields(self, statement: ir.Hash) -> Iterator[str]:
        """Statements that write the hash of fields to a field."""

    @abstractmethod
    def random(self, ref: ir.FieldRef) -> Iterator[str]:
        """Statements that write random bits to a field."""

    @abstractmethod
    def colour(self, meter: str, index: ir.Expression) -> str:
        """The colour that a meter gives the packet."""

    @abstractmethod
    def register(self, name: str, index: ir.Expression) -> str:
        """The value of a cell of a register."""

    @abstractmethod
    def effect(self, statement: ir.Statement) -> Iterator[str]:
        """Statements for what writes no field."""

    def expression(self, e: ir.Expression, low: int = 0) -> str:
        """The value of an expression, modulo two to the 64, shifted to the right by ``low`` (a multiple of 64) bits.

        Raises:
            CapabilityError: it would have to be computed in more than one word.
        """
        match e:
            case ir.Const(value):
                return self.constant((value >> low) & ((1 << WORD_BITS) - 1))
            case ir.FieldRef():
                return self.load(e, low)
            case ir.ParameterRef(name):
                return self.zero if low else f"({self.word_type})d->{name}"
            case ir.BinaryOp(operator, left, right):
                if low:
                    raise CapabilityError(self.limit)
                return f"({self.expression(left)} {operator} {self.expression(right)})"
            case ir.PassNumber():
                return self.zero if low else f"({self.word_type})p->pass"

    def condition(self, condition: ir.Condition) -> str:
        match condition:
            case ir.Compare(comparator, left, right):
                return f"{self.expression(left)} {comparator} {self.expression(right)}"
            case ir.IsValid(header):
                return self.is_valid(header)

    def action(self, action: ir.Action) -> Iterator[str]:
        """The body of an action."""
        for statement in action.body:
            yield from self.statement(statement)

    def statement(self, statement: ir.Statement) -> Iterator[str]:
        match statement:
            case ir.Assign(ref, value):
                yield from self.assign(ref, value)
            case ir.AddHeader():
                yield from self.add_header(statement)
            case ir.Hash():
                yield from self.hash_fields(statement)
            case ir.Random(ref):
                yield from self.random(ref)
            case ir.MeterPacket(ref, meter, index):
                yield from self.store(ref, self.colour(meter, index))
            case ir.ReadRegister(ref, register, index):
                yield from self.store(ref, self.register(register, index))
            case _:
                yield from self.effect(statement)
