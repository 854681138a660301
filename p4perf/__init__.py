# ruff: noqa: F403, F405 - type checkers know the names by p4perf.api
"""p4perf: what will this data-plane program cost on that target?

>>> import p4perf
>>> fit = p4perf.fit([1, 2, 3, 4, 5, 6], [3.0, 5.0, 7.0, 9.0, 11.0, 13.0])
>>> print(fit)
1 .. 6: y = 1 + 2 x (sMAPE < 0.0001 %)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p4perf.version import __version__

if TYPE_CHECKING:
    from p4perf.api import *

__all__ = [
    "__version__", "analyse_factors", "analyse_opq", "check", "compare", "doctor", "estimate_cesim", "estimate_eo",
    "estimate_place", "estimate_queue", "export", "fit", "gate", "generate", "import_results", "learn", "list_items",
    "list_runs", "load_model", "measure", "open_page", "open_run", "pack", "predict", "report", "reproduce", "resume",
    "run", "status",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load what needs numpy and pandas only when it is used."""
    if name in __all__:
        from p4perf import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
