"""The door of the readers: which one a path is for, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from p4perf.errors import DataError, Location, UsageError
from p4perf.evaluation.imports.base import Importer, Reading
from p4perf.evaluation.imports.files import check_file, read_plain_text
from p4perf.evaluation.imports.options import ImportOptions
from p4perf.plugins import load_plugin, plugin_names

GROUP = "p4perf.importers"


def read_sources(
    paths: Sequence[Path], options: ImportOptions, *, importer: str | None = None
) -> tuple[str, list[Reading]]:
    """Read files and folders, all by the same reader.

    Args:
        paths: one at least.
        options: what the user said.
        importer: name of the reader; None: the one that recognises the first path.

    Returns:
        Name of the reader, and what is in each path.

    Raises:
        DataError: something is damaged, or no reader recognises it.
        UsageError: there is no such reader, a path is given twice, or the options do not suit it.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("a path is given twice")
    for path in paths:
        if not path.exists():
            raise DataError("there is no such file or folder", location=Location(str(path)))
    name = importer or recognise(paths[0])
    reader: Importer = load_plugin(GROUP, name)()
    for path in paths:
        if importer is None and not reader.recognises(path) and path.is_file() and not read_plain_text(path).strip():
            continue
        if importer is None and not reader.recognises(path):
            hint = "import files of different kinds one after another, or say what they are with --from"
            raise DataError(f"is not of the kind {name}, as {paths[0]} is", location=Location(str(path)), hint=hint)
    return name, [reader.read(path, options) for path in paths]


def recognise(path: Path) -> str:
    """The name of the reader for a file or folder. A CSV file that another reader knows is left to that.

    Raises:
        DataError: none recognises it, or several do.
    """
    where = Location(str(path))
    if path.is_file():
        check_file(path)
    known = plugin_names(GROUP)
    found = [name for name in known if load_plugin(GROUP, name)().recognises(path)]
    found = [name for name in found if name != "csv"] or found
    if len(found) == 1:
        return found[0]
    if path.is_file() and not found and not read_plain_text(path).strip():
        raise DataError("is empty", location=where)
    said = f"could be of several kinds: {', '.join(found)}" if found else "is of no kind that is known"
    raise DataError(said, location=where, hint=f"say what it is: --from {', '.join(known)}")
