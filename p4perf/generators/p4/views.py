"""A program as plain tuples of text: what templates loop over fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from p4perf.generators.p4.names import p4_name
from p4perf.generators.p4.writer import Writer
from p4perf.generators.program import Program, Table
from p4perf.generators.rendering import identifier


@dataclass(frozen=True, slots=True)
class View:
    """The parts of a program as text, in the order in which they are declared."""

    headers: list[tuple[str, str, list[tuple[int, str]]]]
    """Type, name, and fields (width in bits, name) of each header."""
    metadata: list[tuple[int, str]]
    """Fields: width in bits, name."""
    states: list[tuple[str, list[str], str, list[tuple[str, str]], str]]
    """Name, extracted headers, select field or nothing, cases (constant, state), default of each parser state."""
    actions: list[tuple[str, str, list[str]]]
    """Name, parameters, lines of each action."""
    tables: list[tuple[str, list[tuple[str, str]], list[str], list[str], int | None, str]]
    """Name, keys (field, match kind), actions, rows of entries, size or None, default action of each table."""
    emitted: list[str]
    """Headers in the order of the deparser."""


def view(writer: Writer, rows: Mapping[str, Iterator[str]], sizes: Mapping[str, int]) -> View:
    """The view of a program.

    Args:
        writer: what writes it.
        rows: the entries that stand in the text, by table.
        sizes: the sizes that stand in the text, by table.
    """
    program: Program = writer.program
    return View(
        headers=[
            (
                f"header_{identifier(h.name)}_t",
                p4_name(h.name),
                [(f.width_bits, p4_name(f.name)) for f in h.fields],
            )
            for h in program.headers
        ],
        metadata=[(f.width_bits, p4_name(f.name)) for f in program.metadata],
        states=list(_states(program, writer)),
        actions=[(p4_name(a.name), writer.parameters(a), writer.action_lines(a)) for a in program.actions],
        tables=[_table(writer, t, list(rows.get(t.name, ())), sizes.get(t.name)) for t in program.tables],
        emitted=[p4_name(name) for name in program.emit],
    )


def _states(program: Program, writer: Writer) -> Iterator[tuple[str, list[str], str, list[tuple[str, str]], str]]:
    for state in program.parser:
        select, cases = "", []
        if (ref := state.select) is not None:
            select = writer.field(ref)
            cases = [(writer.constant(case.value, ref), p4_name(case.next_state)) for case in state.cases]
        yield p4_name(state.name), [p4_name(n) for n in state.extracts], select, cases, p4_name(state.default)


def _table(
    writer: Writer, table: Table, rows: list[str], size: int | None
) -> tuple[str, list[tuple[str, str]], list[str], list[str], int | None, str]:
    keys: list[tuple[str, str]] = [(writer.field(key.field), key.match_kind) for key in table.keys]
    return (
        p4_name(table.name),
        keys,
        [p4_name(a) for a in table.actions],
        rows,
        size,
        p4_name(table.default_action),
    )
