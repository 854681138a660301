"""From any program to its graph, whatever it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from p4perf.errors import DataError, Location
from p4perf.evaluation.reading.bmv2 import is_bmv2, read_bmv2
from p4perf.evaluation.reading.commands import Entry, read_commands
from p4perf.evaluation.reading.flow import Flow, resolve
from p4perf.evaluation.reading.own import component_graph, load_point, point_program, read_own
from p4perf.evaluation.reading.p4c import compile_p4
from p4perf.evaluation.reading.swx import swx_flow
from p4perf.evaluation.reading.swx_entries import SwxEntries, read_swx_entries
from p4perf.evaluation.reading.swx_text import Specification, read_specification
from p4perf.evaluation.reading.tree import Tree, parse_json, read_text
from p4perf.generators.packets import FCS_BYTES
from p4perf.models.program.graph import ProgramGraph

Format = Literal["bmv2", "swx", "p4", "p4perf"]

SUFFIXES: Mapping[str, Format] = {
    ".json": "bmv2",
    ".spec": "swx",
    ".p4": "p4",
    ".yaml": "p4perf",
    ".yml": "p4perf",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What else is known of a program.

    Args:
        form: what the file is; None: by its suffix and content.
        arch: architecture of a P4 program: ``v1model``, ``psa`` or ``pna``; None: by its ``#include``.
        defines: of the preprocessor, ``NAME`` or ``NAME=VALUE``.
        includes: folders with include files.
        entries: how many entries tables hold, by their names; of those not named it is how many they may hold.
        commands: a file whose entries count: runtime commands of bmv2 (``table_add ...``); of a specification of SWX
            also entries in the format of DPDK.
        point: of a p4perf spec with a sweep: swept variables and their values; None: its only point.
        ways: of a p4perf spec: constructs of its components, or of the program that is generated for it.
        frame_bytes: frame size with FCS, which clones are counted with; None: that of the program, or 64.
    """

    form: Format | None = None
    arch: str | None = None
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    entries: Mapping[str, int] = field(default_factory=dict)
    commands: Path | None = None
    point: Mapping[str, str] | None = None
    ways: Literal["components", "primitives"] = "components"
    frame_bytes: int | None = None


def read_program(path: Path | str, options: ReadOptions | None = None) -> ProgramGraph:
    """Read a program.

    Args:
        path: the file, or the name of an experiment of the catalogue.
        options: what else is known of it.

    Raises:
        DataError: the file cannot be read, or is not what it should be: truncated, empty, of another kind, with a loop
            that never ends; the message names the key (as a JSON pointer) or line.
        SpecError: a p4perf spec is wrong, or has several points and none was chosen.
        UsageError: an option does not belong to the program.
        TargetUnavailableError: the program is in P4 and there is no p4c.
        BuildError: p4c does not take it.
    """
    options = options or ReadOptions()
    form = options.form or guess_form(Path(path))
    if form == "p4perf":
        graph = _read_own(str(path), options)
    else:
        text, form = load_text(Path(path), form, options)
        if form == "swx":
            graph = _swx_graph(text, path, options)
        else:
            graph = bmv2_graph(parse_json(text, str(path)), Path(path).stem, options)
    return replace(graph, frame_bytes=options.frame_bytes or graph.frame_bytes)


def _swx_graph(text: str, path: Path | str, options: ReadOptions) -> ProgramGraph:
    spec = read_specification(text, str(path))
    entries = None if options.commands is None else read_swx_entries(options.commands, spec)
    return resolve(flow_of_swx(spec, path, entries, options), str(path))


def flow_of_swx(spec: Specification, path: Path | str, entries: SwxEntries | None, options: ReadOptions) -> Flow:
    """The steps of a specification of SWX with its entries, if they are known.

    Raises:
        DataError: it names something that it does not declare.
    """
    given, used = dict(options.entries), {}
    if entries is not None:
        used = entries.used
        for table in spec.tables:
            given.setdefault(table, len(entries.tables.get(table, ())))
    return swx_flow(spec, str(path), Path(path).stem, given, packet_bytes(options), used)


def bmv2_graph(root: Tree, name: str, options: ReadOptions) -> ProgramGraph:
    """The graph of a program for bmv2.

    Raises:
        DataError: the document is no such program, or has a loop.
    """
    given = dict(options.entries)
    if options.commands is not None:
        for table, entries in counted(root, options.commands).items():
            given.setdefault(table, entries)
    return resolve(read_bmv2(root, name, given, packet_bytes(options)), root.file)


def counted(root: Tree, commands: Path) -> dict[str, int]:
    """How many entries commands add to the tables of a program, all tables with a key.

    Raises:
        DataError: the commands or the program cannot be read.
    """
    if not is_bmv2(root):
        return {}
    added: dict[str, list[Entry]] = read_commands(commands, root).entries
    names = [t.text("name") for p in root.each("pipelines") for t in p.each("tables") if list(t.each("key"))]
    constant = {t.text("name") for p in root.each("pipelines") for t in p.each("tables") if list(t.each("entries"))}
    return {name: len(added.get(name, ())) for name in names if name not in constant}


def load_text(path: Path, form: Format, options: ReadOptions) -> tuple[str, Literal["bmv2", "swx"]]:
    """The text of a program for bmv2 or SWX; programs in P4 are compiled.

    Raises:
        DataError: as :func:`read_program`, and so the other errors.
    """
    if form == "p4":
        compiled = compile_p4(path, options.arch, options.defines, options.includes)
        return compiled.text, compiled.form
    text = read_text(path)
    if not text.strip():
        raise DataError("is empty", location=Location(str(path)))
    return text, "swx" if form == "swx" else "bmv2"


def packet_bytes(options: ReadOptions) -> int | None:
    """Bytes of packets in memory, without FCS; None if nobody said."""
    return None if options.frame_bytes is None else options.frame_bytes - FCS_BYTES


def guess_form(path: Path) -> Format:
    """What a file is, by its suffix, or else by how it begins.

    Raises:
        DataError: it cannot be read, or could be anything.
    """
    known = SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    if not path.exists() and not path.suffix:
        return "p4perf"  # a name of the catalogue
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return "bmv2"
    if "\napply {" in text:
        return "swx"
    if "#include" in text:
        return "p4"
    raise DataError(
        "is nothing that p4perf knows",
        location=Location(str(path)),
        hint="give a .p4, the .json of p4c-bm2-ss, the .spec of p4c-dpdk, or a p4perf spec (.yaml)",
    )


def _read_own(source: str, options: ReadOptions) -> ProgramGraph:
    experiment, point = load_point(source, options.point)
    if options.ways == "components":
        return component_graph(experiment, point)
    program = point_program(experiment, point)
    return resolve(read_own(program, experiment.spec.name, point.frame_size_bytes), source)
