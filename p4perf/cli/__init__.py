"""THE DOOR: the ``p4perf`` command. stdout is data, stderr is talk."""

from p4perf.cli import (
    calibrate,
    cesim,
    compare,
    derive,
    derive_many,
    doctor,
    eivu,
    eo,
    factors,
    generate,
    import_,
    inspect,
    measure,
    operator,
    opq,
    queue,
    report,
)
from p4perf.cli.app import app, main

__all__ = [
    "app",
    "calibrate",
    "cesim",
    "compare",
    "derive",
    "derive_many",
    "doctor",
    "eivu",
    "eo",
    "factors",
    "generate",
    "import_",
    "inspect",
    "main",
    "measure",
    "operator",
    "opq",
    "queue",
    "report",
]
