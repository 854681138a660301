"""What of a program that was read compilers leave out, and what waits for what came just before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from p4perf.evaluation.prediction.reading.constructs import GATHERED, is_gathered
from p4perf.models.program.graph import Construct, construct
from p4perf.programs import ir
from p4perf.programs.analysis import (
    IDLE,
    destination,
    operands,
    subexpressions,
    unneeded_headers,
    unused_metadata,
)


def overwritten(body: Sequence[ir.Statement]) -> Set[int]:
    """Statements that only write a field that a later one writes again before anything reads it."""
    found: set[int] = set()
    again: set[ir.FieldRef | None] = set()
    for n, statement in reversed(list(enumerate(body))):
        if not isinstance(statement, IDLE):
            again.clear()
        elif (to := destination(statement)) in again:
            found.add(n)
        else:
            again.add(to)
            again -= {e for whole in operands(statement) for e in subexpressions(whole) if isinstance(e, ir.FieldRef)}
    return found


def waits(program: ir.Program, body: Sequence[ir.Statement]) -> Iterator[tuple[Construct, ...]]:
    """Of each statement the waits: for fields of headers that one before it has written, for bytes put together."""
    written: set[ir.FieldRef] = set()
    for statement in body:
        inside = {e for whole in operands(statement) for e in subexpressions(whole) if isinstance(e, ir.FieldRef)}
        again = written & inside
        gathered = isinstance(statement, ir.Hash) and is_gathered(program, statement.fields)
        yield (construct("overlap", code="stored", earlier=0.0, swaps=0.0),) * len(again) + (GATHERED,) * gathered
        to = destination(statement)
        if to is not None and to.header != ir.METADATA:
            written.add(to)


def idle_states(program: ir.Program) -> Set[str]:
    """States of the parser from which on it finds only what nothing depends on."""
    unused = unused_metadata(program)

    def is_simple(statement: ir.ParserStatement) -> bool:
        if isinstance(statement, ir.Extract):
            return not statement.varying_bits
        return (program.parser_error if isinstance(statement, ir.Verify) else destination(statement)) in unused

    endless = {name for name in looped_states(program) if not program.state(name).body}
    left = {s.name: s for s in program.parser if s.name not in endless and all(map(is_simple, s.body))}
    while True:
        ways = (replace(s, selected=(), cases=()) if s.name in left else s for s in program.parser)
        unneeded = unneeded_headers(replace(program, parser=tuple(ways)))
        idle = {
            name: state
            for name, state in left.items()
            if {*(case.next_state for case in state.cases), state.default} <= {ir.ACCEPT, *left}
            and unneeded.issuperset(state.extracts)
        }
        if idle == left:
            return idle.keys() - {"start"}
        left = idle


def looped_states(program: ir.Program) -> set[str]:
    """States of the parser that may be met again."""
    after = {s.name: {c.next_state for c in s.cases} | {s.default} for s in program.parser}
    left = set(after)
    while True:
        reached = {to for name in left for to in after[name]}
        kept = {name for name in left if name in reached and after[name] & left}
        if kept == left:
            return left
        left = kept
