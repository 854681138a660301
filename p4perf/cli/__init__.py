"""THE DOOR: the ``p4perf`` command. stdout is data, stderr is diagnostics."""

from importlib import import_module

from p4perf.cli.app import app as app
from p4perf.cli.app import main as main

for _module in [
    "compare",
    "derive",
    "derive_many",
    "doctor",
    "eo",
    "factors",
    "gate",
    "generate",
    "import_",
    "inspect",
    "learn",
    "measure",
    "opq",
    "pack",
    "predict",
    "queue",
    "report",
    "reproduce",
    "vio",
]:
    import_module(f"{__name__}.{_module}")
