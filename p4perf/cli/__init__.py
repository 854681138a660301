"""THE DOOR: the ``p4perf`` command. stdout is data, stderr is talk."""

from p4perf.cli import compare, derive, derive_many, doctor, generate, import_, inspect, measure, operator, opq
from p4perf.cli.app import app, main

__all__ = [
    "app",
    "compare",
    "derive",
    "derive_many",
    "doctor",
    "generate",
    "import_",
    "inspect",
    "main",
    "measure",
    "operator",
    "opq",
]
