"""Expressions and conditions of a :class:`~p4perf.programs.ir.Program`.

The value of an expression is an integer of any size and sign; it is cut to a width where it is stored, and by
:class:`Cast`. So ``bit<N>`` arithmetic is the operation and a cast, and what P4 has besides is written by these:

* the slice ``x[h:l]`` is ``x >> l``, cast to ``h - l + 1`` bits;
* the concatenation ``a ++ b`` is ``(a << width of b) | b``;
* the saturating ``|+|`` and ``|-|`` are ``+`` and ``-`` with a saturating cast;
* ``-x`` is ``0 - x``, and ``~x`` of an unsigned ``x`` is ``x ^`` ones; both with a cast.

Shifts to the right keep the sign. The dividend of ``/`` and ``%`` is not negative; a divisor below 1 counts as 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BinaryOperator = Literal["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]

Comparator = Literal["==", "!=", "<", ">", "<=", ">="]

METADATA = "meta"
"""Name of the pseudo header that holds the metadata fields."""


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A reference to a header field, or to a metadata field where ``header`` is :data:`METADATA`."""

    header: str
    field: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant. It takes the width of what it is used with."""

    value: int


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """A reference to a parameter of the action in which it stands."""

    name: str


@dataclass(frozen=True, slots=True)
class BinaryOp:
    """``left operator right``, of integers."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as ``bit<width_bits>``, or as ``int<width_bits>`` (two's complement) where ``signed``.

    It is taken modulo two to the width; where ``saturating``, it is the nearest value of the type instead.
    """

    value: Expression
    width_bits: int
    signed: bool = False
    saturating: bool = False


@dataclass(frozen=True, slots=True)
class Conditional:
    """``condition ? then : otherwise``."""

    condition: Condition
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition as a number: 1 if it holds, else 0."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Bits of the packet that are not parsed yet, ``offset_bits`` behind the place of the parser; only there."""

    offset_bits: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class PassNumber:
    """How often this packet was recirculated or resubmitted so far: 0 in its first pass."""


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """What the target knows of a packet.

    ``ingress_port`` is where it came in, ``packet_length`` its bytes in memory when the pass began, ``instance_type``
    one of those of v1model (0 normal, 1 ingress clone, 2 egress clone, 4 recirculated, 5 multicast, 6 resubmitted),
    ``egress_port`` where a copy goes, ``replication_id`` the number of a multicast copy within its group; the last two
    are known in egress only, as the instance types 1, 2 and 5. ``unknown`` is anything, such as a timestamp or the
    depth of a queue.
    """

    name: Literal["ingress_port", "packet_length", "instance_type", "egress_port", "replication_id", "unknown"]


Expression = (
    FieldRef | Const | ParameterRef | BinaryOp | Cast | Conditional | Truth | Lookahead | PassNumber | Intrinsic
)


@dataclass(frozen=True, slots=True)
class Compare:
    """``left comparator right``, of integers."""

    comparator: Comparator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsValid:
    """That header was extracted or added, and not removed since."""

    header: str


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class And:
    """Both conditions hold."""

    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the conditions holds."""

    left: Condition
    right: Condition


Condition = Compare | IsValid | Not | And | Or
