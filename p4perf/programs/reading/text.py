"""The text of a program in any format that is read: JSON of p4c for v1model and PSA, or a specification of SWX."""

from __future__ import annotations

from p4perf.errors import DataError, Location
from p4perf.formats.swx_spec import Specification, read_specification
from p4perf.programs import ir
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.psa import PsaReader, is_psa
from p4perf.programs.reading.swx import read_swx
from p4perf.programs.reading.tree import Tree, parse_json
from p4perf.programs.reading.v1model import JsonReader

Parsed = Tree | Specification


def parse_program(text: str, source: str) -> Parsed:
    """What a text declares; ``source`` is what messages call it.

    Raises:
        DataError: it is no program; with the place.
    """
    if not text.strip():
        raise DataError("the file is empty", location=Location(source))
    return parse_json(text, source) if text.lstrip()[0] in "{[" else read_specification(text, source)


def check_bmv2(root: Tree) -> None:
    """Refuse a JSON document that does not look like a program for bmv2.

    Raises:
        DataError: it does not.
    """
    if not (isinstance(root.value, dict) and {"header_types", "parsers", "pipelines"} <= set(root.value)):
        raise root.error(
            "is JSON, but no program for bmv2: it has no header_types, parsers and pipelines",
            hint="p4c-bm2-ss PROGRAM.p4 -o PROGRAM.json makes one",
        )


def read_program(parsed: Parsed, plane: ControlPlane, name: str = "program") -> ir.Program:
    """Read a program.

    Raises:
        DataError: it has what is not supported; with the place.
    """
    if isinstance(parsed, Specification):
        return read_swx(parsed, plane, name)
    check_bmv2(parsed)
    return (PsaReader if is_psa(parsed) else JsonReader)(parsed, plane).program(name)
