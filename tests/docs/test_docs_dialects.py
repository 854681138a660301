"""What the page on generated programs says of P4 dialects is what their tables of capabilities say."""

from typing import get_args

from docs_pages import DOCS, bare, tables

from p4perf.generators.p4.base import P4Generator
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.capabilities import CONSTRUCTS, NOT_OF_THE_LANGUAGE, Quantity

DIALECTS = [
    name
    for name in plugin_names("p4perf.generators")
    if issubclass(load_plugin("p4perf.generators", name), P4Generator)
]
TABLES = {name: load_plugin("p4perf.generators", name).capabilities for name in DIALECTS}
OTHER = {"offered load", *NOT_OF_THE_LANGUAGE}
"""Constructs of traffic and of what is around a program: no dialect has words for them."""


def page_table(*head):
    (found,) = [t for t in tables(DOCS / "generated.md") if tuple(bare(h) for h in t.head[: len(head)]) == head]
    return found


def test_the_matrix():
    table = page_table("construct")
    columns = [bare(h) for h in table.head[1:]]
    assert sorted(columns) == DIALECTS
    assert [row[0] for row in table.rows] == [c for c in CONSTRUCTS if c not in OTHER]
    for construct, *row in table.rows:
        for dialect, cell in zip(columns, row, strict=True):
            known = TABLES[dialect]
            real = "no" if construct in known.missing else "remark" if construct in known.remarks else "yes"
            assert cell == real, f"{construct} in {dialect}"


def each(*head):
    """Dialect and construct -> the other cells of a table, whose first two cells may name several."""
    rows = page_table(*head).rows
    return {(d, c): rest for ds, cs, *rest in rows for d in bare(ds).split(", ") for c in cs.split(", ")}


def test_reasons_limits_and_remarks():
    missing = each("dialect", "construct", "reason")
    assert missing == {(d, c): [reason] for d, t in TABLES.items() for c, reason in t.missing.items()}
    remarks = each("dialect", "construct", "remark")
    assert remarks == {(d, c): [remark] for d, t in TABLES.items() for c, remark in t.remarks.items()}
    limits = each("dialect", "of what")
    assert limits == {(d, q): [str(x.most), x.source] for d, t in TABLES.items() for q, x in t.limits.items()}
    assert {q for _, q in limits} <= set(get_args(Quantity))
    assert set(OTHER).isdisjoint(c for _, c in missing)


def test_every_dialect_is_described():
    assert sorted(bare(row[0]) for row in page_table("dialect", "for").rows) == DIALECTS
