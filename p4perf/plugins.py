"""Entry points: how targets, testbeds, components, importers and so on are found, ours and other people's."""

from __future__ import annotations

import difflib
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from p4perf.errors import UsageError

GROUPS = {
    "p4perf.components": "component",
    "p4perf.generators": "generator",
    "p4perf.targets": "target",
    "p4perf.testbeds": "testbed",
    "p4perf.load_generators": "load generator",
    "p4perf.searches": "search",
    "p4perf.importers": "importer",
    "p4perf.templates": "template set",
    "p4perf.error_metrics": "error metric",
    "p4perf.split_finders": "split finder",
    "p4perf.elementary_operations": "set of elementary operations",
}


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def plugin_names(group: str) -> list[str]:
    """Names registered in an entry point group, sorted."""
    return sorted(_found(group))


def load_plugin(group: str, name: str) -> Any:
    """The object behind one entry point.

    Raises:
        UsageError: nothing of that name is registered; the message names the nearest that is.
    """
    found = _found(group)
    if name not in found:
        noun = GROUPS.get(group, group)
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(found))}"
        raise UsageError(f"there is no {noun} {name!r}", hint=hint)
    return found[name].load()
