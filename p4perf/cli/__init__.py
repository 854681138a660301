"""THE DOOR: the ``p4perf`` command. stdout is data, stderr is diagnostics."""

import os
from importlib import import_module
from pkgutil import iter_modules

from p4perf.cli.app import app as app
from p4perf.cli.app import main as main

# The matrices of p4perf are small: threads of BLAS take more time to wait for one another than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

for _module in iter_modules(__path__):
    if _module.name != "progress":  # no command, and slow to load
        import_module(f"{__name__}.{_module.name}")
