"""Expressions, conditions and statements of a :class:`~p4perf.generators.program.Program`: what actions are made of.

Their meaning is in the docstring of :mod:`p4perf.generators.program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BinaryOperator = Literal["+", "-", "&", "|", "^"]

Comparator = Literal["==", "!=", "<", ">", "<=", ">="]

HashAlgorithm = Literal["crc16", "crc32", "checksum16"]
"""CRC-16/ARC, CRC-32/ISO-HDLC (both as v1model has them) and the internet checksum (RFC 1071)."""

METER_GREEN = 0
"""The colour of a packet that conforms, as v1model and DPDK number it."""

METADATA = "meta"
"""Name of the pseudo header that holds the metadata fields."""


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A reference to a header field, or to a metadata field where ``header`` is :data:`METADATA`."""

    header: str
    field: str


@dataclass(frozen=True, slots=True)
class Const:
    """An unsigned constant. It takes the width of what it is used with."""

    value: int


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """A reference to a parameter of the action in which it stands."""

    name: str


@dataclass(frozen=True, slots=True)
class BinaryOp:
    """``left operator right``, modulo two to the width of the destination."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class PassNumber:
    """How often this packet was recirculated or resubmitted so far: 0 in its first pass."""


Expression = FieldRef | Const | ParameterRef | BinaryOp | PassNumber


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition: ``left comparator right``, unsigned; both sides are fields, constants or the pass number."""

    comparator: Comparator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsValid:
    """A condition: that header was extracted or added, and not removed since."""

    header: str


Condition = Compare | IsValid


@dataclass(frozen=True, slots=True)
class Assign:
    """``destination = value``."""

    destination: FieldRef
    value: Expression


@dataclass(frozen=True, slots=True)
class SetEgress:
    """Send the packet out of that port."""

    port: Expression


@dataclass(frozen=True, slots=True)
class Drop:
    """Mark the packet as dropped, for good."""


@dataclass(frozen=True, slots=True)
class AddHeader:
    """Make a header valid; its fields take the given values, those that are not named zero."""

    header: str
    values: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveHeader:
    """Make a header invalid: it is not emitted."""

    header: str


@dataclass(frozen=True, slots=True)
class Hash:
    """``destination = algorithm(fields)``, over the fields one after another: whole bytes together."""

    destination: FieldRef
    algorithm: HashAlgorithm
    fields: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class CountPacket:
    """Add one to a cell of a counter; the index is taken modulo its size, which is a power of two."""

    counter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class MeterPacket:
    """``destination`` = colour that a cell of a meter gives this packet; the index is taken modulo the meter's size."""

    destination: FieldRef
    meter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class ReadRegister:
    """``destination`` = value of a cell of a register; the index is taken modulo the register's size."""

    destination: FieldRef
    register: str
    index: Expression


@dataclass(frozen=True, slots=True)
class WriteRegister:
    """Cell of a register = ``value``, modulo two to its width; the index is taken modulo the register's size."""

    register: str
    index: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Random:
    """``destination`` = a random number, uniform over its width. No decision may depend on it."""

    destination: FieldRef


@dataclass(frozen=True, slots=True)
class Recirculate:
    """Send the deparsed packet through the program once more."""


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Send the packet as it came into this pass through the program once more."""


@dataclass(frozen=True, slots=True)
class Clone:
    """Send a copy of the packet as it came into this pass by that port."""

    port: int


@dataclass(frozen=True, slots=True)
class Multicast:
    """Send the packet by all of these ports (ascending), instead of the egress port."""

    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """A C function of the bytes of a packet, as :mod:`p4perf.generators.operators` has them.

    ``code`` is the C text of an operator that is none of those: it defines ``operate``. ``flows`` is the number of keys
    of operators that look something up, ``multiplications`` the length of the chain.
    """

    name: str
    code: str = ""
    flows: int = 1000
    multiplications: int = 100


@dataclass(frozen=True, slots=True)
class RunOperator:
    """``destination = destination ^ operator(packet)``: all bytes of the packet, as they are now.

    What an operator with ``code`` makes of the packet and of the destination is not known.
    """

    destination: FieldRef
    operator: Operator


@dataclass(frozen=True, slots=True)
class Fence:
    """Nothing after it begins before everything before it is finished, on a processor that works out of order.

    With ``after`` it also waits for a chain of fixed length that begins with the value of that field. So what is before
    it always takes longer than the fence itself, which would hide a part of something short.
    """

    after: FieldRef | None = None


Statement = (
    Assign
    | SetEgress
    | Drop
    | AddHeader
    | RemoveHeader
    | Hash
    | CountPacket
    | MeterPacket
    | ReadRegister
    | WriteRegister
    | Random
    | Recirculate
    | Resubmit
    | Clone
    | Multicast
    | RunOperator
    | Fence
)
