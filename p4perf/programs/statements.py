"""Statements of the actions of a :class:`~p4perf.programs.ir.Program`.

The index of a cell of a counter, meter or register is taken modulo the least power of two that is not smaller than the
array: P4 leaves open what an index beyond the array does, and here it is a cell of its own where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from p4perf.programs.expressions import Condition, Expression, FieldRef

HashAlgorithm = Literal["crc16", "crc32", "checksum16"]
"""CRC-16/ARC, CRC-32/ISO-HDLC (both as v1model has them), the internet checksum (RFC 1071)."""

METER_GREEN = 0
"""The colour of a packet that conforms, as v1model and DPDK number it."""


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
    """``destination = algorithm(fields)``, over the fields one after another: whole bytes together.

    ``payload``: the bytes of the packet that were not parsed come behind them.
    """

    destination: FieldRef
    algorithm: HashAlgorithm
    fields: tuple[FieldRef, ...]
    payload: bool = False


@dataclass(frozen=True, slots=True)
class CountPacket:
    """Count the packet in a cell of a counter."""

    counter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class MeterPacket:
    """``destination`` = colour that a cell of a meter gives this packet."""

    destination: FieldRef
    meter: str
    index: Expression


@dataclass(frozen=True, slots=True)
class ReadRegister:
    """``destination`` = value of a cell of a register."""

    destination: FieldRef
    register: str
    index: Expression


@dataclass(frozen=True, slots=True)
class WriteRegister:
    """Cell of a register = ``value``, modulo two to its width."""

    register: str
    index: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Random:
    """``destination`` = a random number, uniform over its width. No decision may depend on it."""

    destination: FieldRef


@dataclass(frozen=True, slots=True)
class Recirculate:
    """Send the deparsed packet through the program again; the metadata fields ``keep`` keep their values."""

    keep: tuple[FieldRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Send the packet as it came into this pass through the program again; ``keep`` as for recirculation."""

    keep: tuple[FieldRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Clone:
    """Send a copy by that port: of the packet as it came into this pass, or in egress of the packet as it is.

    Where the program has an egress, the copy goes through it, with the values of the metadata fields ``keep``.
    """

    port: int
    keep: tuple[FieldRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Multicast:
    """Send the packet by all of these ports (ascending), instead of the egress port.

    ``replication_ids`` are those of the copies, as egress sees them; all zero where empty.
    """

    ports: tuple[int, ...]
    replication_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """A C function of the bytes of a packet, as :mod:`p4perf.programs.operators` has them.

    ``code`` is the C text of another operator: it defines ``operate``. ``flows`` is the number of keys
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


@dataclass(frozen=True, slots=True)
class Branch:
    """Run ``then`` if the condition holds, else ``otherwise``."""

    condition: Condition
    then: Statements
    otherwise: Statements = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """Go to the end of the innermost block of the control flow at once."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Tell the control plane the values of fields; packets are as they were."""

    fields: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Send no more than the first bytes of the packet."""

    size_bytes: Expression


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
    | Branch
    | Exit
    | Digest
    | Truncate
)

Statements = tuple[Statement, ...]
"""What an action does, in order."""
