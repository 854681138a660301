"""Names in P4 text: what a spec calls something may mean something else in P4."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from p4perf.errors import CapabilityError
from p4perf.generators.program import ACCEPT, METADATA, Action, Program
from p4perf.generators.rendering import identifier

_RESERVED = """
    abstract action actions apply bit bool const control default else entries enum error exit extern false for hdr
    header header_union if in inout int isValid key lastIndex last list main mark_to_drop match_kind meta next NoAction
    out package packet packet_in packet_out parser pop_front priority push_front reject return select setInvalid
    setValid standard_metadata state string struct switch table this transition true tuple type typedef value_set
    varbit verify void
    exact lpm ternary range optional selector size default_action implementation counters meters
    assert assume clone clone3 counter digest direct_counter direct_meter hash log_msg meter random recirculate register
    resubmit truncate update_checksum verify_checksum CloneType CounterType HashAlgorithm MeterType
    drop_packet ingress_drop istd mirror_packet ostd send_to_port Checksum Counter Digest DirectCounter DirectMeter Hash
    InternetChecksum Meter PortId_t PortIdUint_t PassNumber_t PassNumberUint_t Random Register checksum_unit
    nfp_port_t"""

RESERVED = frozenset(_RESERVED.split())
"""Names with a meaning in P4_16, on a header stack, in an architecture, or in the generated program."""


@cache
def p4_name(name: str) -> str:
    """A name that means nothing else in P4: a reserved word gets an underscore, and so does what then looks like one.

    Raises:
        SpecError: it is not an identifier.
    """
    return f"{name}_" if identifier(name).rstrip("_") in RESERVED else name


def free_name(stem: str, taken: Iterable[str]) -> str:
    """``stem``, with as many underscores as it takes to be none of ``taken``."""
    names = set(taken)
    while stem in names:
        stem += "_"
    return stem


def check_names(program: Program) -> None:
    """Refuse names that P4 could not tell apart.

    Raises:
        CapabilityError: a name is used twice, or for what it cannot mean.
        SpecError: a name is not an identifier.
    """
    _check_group(h.name for h in program.headers)
    _check_group(f.name for f in program.metadata)
    _check_group(s.name for s in program.parser)
    objects = [*(a.name for a in program.actions), *(t.name for t in program.tables)]
    objects += [*(c.name for c in program.counters), *(m.name for m in program.meters)]
    _check_group([*objects, *(r.name for r in program.registers)])
    for header in program.headers:
        _check_group(f.name for f in header.fields)
    for action in program.actions:
        _check_group(p.name for p in action.parameters)
    if METADATA in {h.name for h in program.headers}:
        raise CapabilityError(f"a header cannot be called {METADATA}")
    if "start" not in {s.name for s in program.parser} or ACCEPT in {s.name for s in program.parser}:
        raise CapabilityError("a parser begins with state start and has no state of the name accept")


def _check_group(group: Iterable[str]) -> None:
    names = [p4_name(name) for name in group]
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise CapabilityError(f"names are used twice: {', '.join(twice)}")


def local_name(stem: str, action: Action) -> str:
    """A name for a variable of an action that none of its parameters has."""
    return free_name(stem, (p4_name(p.name) for p in action.parameters))
