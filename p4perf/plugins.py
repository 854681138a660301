"""Entry points: how targets, components, metrics, importers and so on are found, ours and those of plug-ins."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from p4perf.errors import UsageError

DEFAULT_TARGET = "dpdk-c"
"""What measures where no target is named."""

GROUPS = {
    "p4perf.components": "component",
    "p4perf.generators": "generator",
    "p4perf.targets": "target",
    "p4perf.testbeds": "testbed",
    "p4perf.load_generators": "load generator",
    "p4perf.searches": "search",
    "p4perf.importers": "importer",
    "p4perf.metrics": "set of metrics",
    "p4perf.templates": "template set",
    "p4perf.error_metrics": "error metric",
    "p4perf.split_finders": "split finder",
    "p4perf.elementary_operations": "set of elementary operations",
}


@cache
def _found() -> dict[str, dict[str, EntryPoint]]:
    """The entry points of all groups by name, read once: the metadata of every installed package is searched."""
    points = entry_points()
    return {group: {point.name: point for point in points.select(group=group)} for group in GROUPS}


def plugin_names(group: str) -> list[str]:
    return sorted(_found()[group])


def load_plugin(group: str, name: str) -> Any:
    """The object behind one entry point; raises as :func:`find_plugin`."""
    return find_plugin(group, name).load()


def find_plugin(group: str, name: str) -> EntryPoint:
    """One entry point.

    Raises:
        UsageError: nothing of that name is registered; the message names the nearest that is.
    """
    found = _found()[group]
    if name not in found:
        noun = GROUPS[group]
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean {near[0]}?" if near else f"supported: {', '.join(sorted(found))}"
        raise UsageError(f"unknown {noun} {name!r}", hint=hint)
    return found[name]


def open_plugin(group: str, name: str, **options: Any) -> Any:
    """An instance of the dataclass behind one entry point.

    Raises:
        UsageError: nothing of that name is registered, it has no such option, or a value is wrong.
    """
    plugin = load_plugin(group, name)
    known = [field.name for field in fields(plugin)]
    for option in options:
        if option not in known:
            hint = f"known: {', '.join(known)}" if known else "it has no options"
            raise UsageError(f"the {GROUPS[group]} {name!r} has no option {option!r}", hint=hint)
    return plugin(**options)


def folder_beside(kind: type, name: str) -> Path:
    """The folder of that name beside the module that defines a class: what a plug-in ships with its code."""
    file = sys.modules[kind.__module__].__file__
    if file is None:
        raise UsageError(f"{kind.__module__} has no file, so there is no folder beside it")
    return Path(file).parent / name


def files_beside(kind: type, name: str) -> Mapping[str, str]:
    """The text files of such a folder and of the folders in it, by their paths below it.

    A target of a plug-in puts the C of its harness into its builds with this.
    """
    folder = folder_beside(kind, name)
    if not folder.is_dir():
        raise UsageError(
            f"{kind.__module__} comes without its folder {name}", hint="add it to package-data and reinstall"
        )
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}
