"""The claims of published papers, and whether they are reproduced. Each paper has a folder with its checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType, ModuleType

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.papers import shapes
from p4perf.evaluation.papers.baldi2018 import checks as baldi2018
from p4perf.evaluation.papers.claims import Claim as Claim
from p4perf.evaluation.papers.claims import Evidence as Evidence
from p4perf.evaluation.papers.claims import Finding as Finding
from p4perf.evaluation.papers.claims import Kind as Kind
from p4perf.evaluation.papers.claims import PaperClaims as PaperClaims
from p4perf.evaluation.papers.claims import Quantity as Quantity
from p4perf.evaluation.papers.claims import impossible as impossible
from p4perf.evaluation.papers.claims import judge as judge
from p4perf.evaluation.papers.gebert2016 import checks as gebert2016
from p4perf.evaluation.papers.ren2025 import checks as ren2025
from p4perf.evaluation.papers.scholz2021 import checks as scholz2021
from p4perf.evaluation.papers.takeya2024 import checks as takeya2024
from p4perf.specs.messages import nearest
from p4perf.specs.source import SourceNode
from p4perf.specs.types import parse_strictly, read_strictly

SUFFIXES = (".yaml", ".yml")
PLACE = re.compile(r"(?P<kind>fig|table|eq)(?P<number>[0-9ivx]+[a-z]?)")
"""A figure, a table or an equation of a paper, as users name it."""
_PLACES = {"fig": "figure", "table": "table", "eq": "equation"}

Check = Callable[..., Mapping[str, Quantity]]
"""Takes the arguments of a claim, returns quantities by name."""


def _checks_of(*modules: ModuleType) -> Mapping[str, Check]:
    """The public functions of modules by name, words joined by hyphens."""
    return MappingProxyType(
        {
            name.replace("_", "-"): function
            for module in modules
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if function.__module__ == module.__name__ and not name.startswith("_")
        }
    )


CHECKS = _checks_of(scholz2021, baldi2018, gebert2016, ren2025, takeya2024)
"""Checks that need nothing but what ships with p4perf."""
SHAPES = _checks_of(shapes)
"""Checks that take a measured run first."""


@cache
def shipped_papers() -> tuple[PaperClaims, ...]:
    folders = sorted(files("p4perf.evaluation.papers").iterdir(), key=lambda folder: folder.name)
    found = [(f.name, f.joinpath("claims.yaml")) for f in folders]
    return tuple(parse_paper(file.read_bytes(), f"{name}.yaml") for name, file in found if file.is_file())


def parse_paper(data: bytes, file: str) -> PaperClaims:
    """The paper of a file's content; ``file`` is its name, for messages."""
    return _known_checks(*parse_strictly(data, file, PaperClaims))


def _known_checks(paper: PaperClaims, root: SourceNode) -> PaperClaims:
    """The paper, whose checks there are and can be called so."""
    for index, claim in enumerate(paper.claims):
        if claim.check is None:
            continue
        known = SHAPES if claim.measure is not None else CHECKS
        name, where = claim.check.name, ("claims", index, "check")
        if name not in known:
            raise DataError(
                f"there is no check {name!r}",
                location=root.locate((*where, "name")),
                key=f"claims.{index}.check.name",
                hint=nearest(name, known, "checks"),
            )
        try:
            arguments = dict(claim.check.arguments)
            signature = inspect.signature(known[name])
            signature.bind(*([None] if claim.measure is not None else []), **arguments)
        except TypeError as error:
            raise DataError(
                f"the check {name} cannot be called like this: {error}",
                location=root.locate(where),
                key=f"claims.{index}.check.arguments",
                hint=f"it is {name}{inspect.signature(known[name])}",
            ) from error
    return paper


KINDS: Mapping[str, Kind] = {"analytic": "analytic", "published": "published data", "measured": "re-measured by shape"}
"""Kinds of claims, by the words that choose them."""


def chosen_claims(names: Sequence[str], kinds: Sequence[str] = ()) -> tuple[tuple[PaperClaims, Claim], ...]:
    """The requested claims, in the order of the papers.

    Args:
        names: ``PAPER``, ``PAPER:CLAIM``, ``PAPER:PLACE``, or the path of a file of claims; all that ship
            without a name. A place is a figure, a table or an equation: ``fig2``, ``table1``, ``eq5``.
        kinds: words of :data:`KINDS`; all without one.

    Raises:
        UsageError: there is no such paper or claim; names the nearest. Or nothing is left.
        DataError: a file cannot be read or is wrong.
    """
    if wrong := [kind for kind in kinds if kind not in KINDS]:
        raise UsageError(f"there is no kind {wrong[0]!r} of claims", hint=nearest(wrong[0], KINDS, "kinds"))
    wanted_kinds = [KINDS[kind] for kind in kinds]
    files_given = [Path(name) for name in names if name.endswith(SUFFIXES)]
    own = [_known_checks(*read_strictly(path, PaperClaims, "file of claims")) for path in files_given]
    by_key = {paper.key: paper for paper in (*shipped_papers(), *own)}
    wanted: dict[tuple[str, str], None] = {(paper.key, claim.id): None for paper in own for claim in paper.claims}
    for name in (n for n in names if not n.endswith(SUFFIXES)):
        key, colon, identity = name.partition(":")
        if key not in by_key:
            raise UsageError(f"there is no paper {key!r}", hint=nearest(key, by_key, "papers"))
        wanted |= {(key, each): None for each in _ids(by_key[key], identity if colon else None)}
    every = [(paper, claim) for paper in by_key.values() for claim in paper.claims]
    named = [(paper, claim) for paper, claim in every if not names or (paper.key, claim.id) in wanted]
    found = tuple((paper, claim) for paper, claim in named if not kinds or claim.kind in wanted_kinds)
    if not found:
        raise UsageError("no claim is left to check", hint="ask for other kinds, or name other claims")
    return found


def _ids(paper: PaperClaims, wanted: str | None) -> tuple[str, ...]:
    """All claims of a paper, the one of that name, or those of a figure, a table or an equation."""
    ids = tuple(claim.id for claim in paper.claims)
    if wanted is None or wanted in ids:
        return ids if wanted is None else (wanted,)
    place = PLACE.fullmatch(wanted.lower())
    there = () if place is None else tuple(c.id for c in paper.claims if _stands_in(c, place["kind"], place["number"]))
    if not there:
        raise UsageError(f"there is no claim {wanted!r} of {paper.key}", hint=nearest(wanted, ids, "claims"))
    return there


def _stands_in(claim: Claim, kind: str, number: str) -> bool:
    """``10`` is figure 10 as well as its parts 10a and 10b."""
    place = (getattr(claim.source, _PLACES[kind]) or "").lower()
    return place == number or (number.isdigit() and place.startswith(number) and place[len(number) :].isalpha())
