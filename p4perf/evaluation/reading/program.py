"""From any program to its graph, whatever it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from p4perf.evaluation.reading.bmv2 import read_bmv2
from p4perf.evaluation.reading.flow import resolve
from p4perf.evaluation.reading.swx import read_swx
from p4perf.evaluation.reading.tree import parse_json, read_text
from p4perf.models.program.graph import ProgramGraph

Format = Literal["bmv2", "swx", "p4", "p4perf"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What else is known of a program.

    Args:
        form: what the file is; None: by its suffix and content.
        arch: architecture of a P4 program: ``v1model``, ``psa`` or ``pna``; None: by its ``#include``.
        defines: of the preprocessor, ``NAME`` or ``NAME=VALUE``.
        includes: folders with include files.
        entries: how many entries tables hold, by their names; of those not named it is how many they may hold.
        commands: a file of runtime commands of bmv2 (``table_add ...``), whose entries count.
        point: of a p4perf spec with a sweep: swept variables and their values; None: its only point.
        ways: of a p4perf spec: constructs of its components, or of the program that is generated for it.
    """

    form: Format | None = None
    arch: str | None = None
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    commands: Path | None = None
    point: Mapping[str, str] | None = None
    ways: Literal["components", "primitives"] = "components"


def read_program(path: Path, options: ReadOptions = ReadOptions()) -> ProgramGraph:
    """Read a program.

    Raises:
        DataError: the file cannot be read, or is not what it should be: truncated, empty, of another kind, with a loop
            that never ends; the message names the key (as a JSON pointer) or line.
        SpecError: a p4perf spec is wrong, or has several points and none was chosen.
        UsageError: an option names a table that is not there.
        TargetUnavailableError: the program is in P4 and there is no p4c.
        BuildError: p4c does not take it.
    """
    path = Path(path)
    form = options.form or guess_form(path)
    if form == "bmv2":
        return resolve(read_bmv2(parse_json(read_text(path), str(path)), path.stem, options.entries), str(path))
    if form == "swx":
        return resolve(read_swx(read_text(path), str(path), path.stem, options.entries), str(path))
    raise NotImplementedError


def guess_form(path: Path) -> Format:
    """What a file is, by its suffix."""
    return "swx" if path.suffix == ".spec" else "bmv2"
