"""States of parsers in short."""

from p4perf.programs import ir


def extracting(name, headers=(), select=None, cases=(), default=ir.ACCEPT):
    """A state that extracts headers, and selects on a field."""
    return ir.ParserState(name, tuple(map(ir.Extract, headers)), () if select is None else (select,), cases, default)
