"""Draw docs/images/architecture.svg: the floors of the package and who imports whom, from the code itself.

Floors are the layers that import-linter checks (pyproject.toml). Arrows are the imports between packages, without those
that follow from others or lead to what every package may use. Usage: python tools/architecture.py [FILE]
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "p4perf"
PAGE = ROOT / "docs" / "images" / "architecture.svg"

SAYS = {
    "cli": "the command p4perf",
    "api": "for Python and notebooks",
    "experiment": "conducts sweeps, searches, campaigns",
    "testbeds": "where it runs: local, ssh, pos",
    "evaluation": "fits, compares, predicts, reports",
    "targets": "what runs: DPDK, SWX, XDP, bmv2, ...",
    "generators": "programs become P4, C, SWX, Lua",
    "programs": "what a program is and means",
    "results": "the run directory",
    "specs": "what is measured, and the catalogue",
    "models": "fitted curves and prices; numpy only",
    "formats": "files of other tools",
    "plugins": "finds targets, components, ...",
    "errors": "failures and exit codes",
    "records": "JSON that describes itself",
    "version": "version",
}
"""What a package is for, in a few words."""

GROUND = {"plugins", "errors", "records", "version"}
"""Packages that all others may use: no arrows lead to them."""

WIDTH, BOX, HEIGHT, GAP, MARGIN = 860, 250, 46, 34, 20


def floors() -> Sequence[Sequence[str]]:
    """The packages of each floor, from the top down."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip().removeprefix("p4perf.") for name in layer.split("|")] for layer in layers]


def imports() -> Mapping[str, set[str]]:
    """For each package, those that its modules import."""
    known = {name for floor in floors() for name in floor}
    found: dict[str, set[str]] = {name: set() for name in known}
    for path in PACKAGE.rglob("*.py"):
        package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package in known:
            found[package] |= {name for name in _imported(path) if name in known} - {package}
    return found


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("p4perf."))


def reduced(graph: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    """The arrows that do not follow from others."""

    def reach(name: str) -> set[str]:
        return graph[name].union(*(reach(other) for other in graph[name]))

    return {name: {o for o in ends if not any(o in reach(e) for e in ends - {o})} for name, ends in graph.items()}


def drawing() -> str:
    """The picture, as SVG."""
    rows = floors()
    place = {}
    for floor, names in enumerate(rows):
        left = (WIDTH - len(names) * BOX - (len(names) - 1) * MARGIN) / 2
        for number, name in enumerate(names):
            place[name] = (left + number * (BOX + MARGIN), MARGIN + floor * (HEIGHT + GAP))
    height = MARGIN + len(rows) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'role="img" aria-label="Packages of p4perf in floors; arrows are imports">',
        "<style>.b{fill:#eef3f8;stroke:#345}.n{font-weight:bold;font-size:14px;fill:#123}.s{font-size:11px;fill:#345}"
        ".a{stroke:#789;fill:none;marker-end:url(#h)}</style>",
        '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#789"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    level = {name: number for number, names in enumerate(rows) for name in names}
    for name, ends in sorted(reduced(imports()).items()):
        parts += [_arrow(place[name], place[end], level[end] - level[name]) for end in sorted(ends - GROUND)]
    for name, (x, y) in place.items():
        parts.append(
            f'<rect class="b" x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="5"/>'
            f'<text class="n" x="{x + 10:g}" y="{y + 19:g}">{escape(name)}</text>'
            f'<text class="s" x="{x + 10:g}" y="{y + 36:g}">{escape(SAYS[name])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow(start: tuple[float, float], end: tuple[float, float], floors_down: int) -> str:
    """From the bottom of a box to the top of one below; around the boxes between, if there are any."""
    (x1, y1), (x2, y2) = start, end
    if floors_down == 1:
        return f'<path class="a" d="M{x1 + BOX / 2:g} {y1 + HEIGHT:g}L{x2 + BOX / 2:g} {y2:g}"/>'
    side = -1 if x1 + x2 + BOX < WIDTH else 1
    edge = BOX if side > 0 else 0
    bend = side * (30 + 14 * floors_down)
    points = (
        x1 + edge,
        y1 + HEIGHT / 2,
        x1 + edge + bend,
        y1 + HEIGHT,
        x2 + edge + bend,
        y2,
        x2 + edge,
        y2 + HEIGHT / 2,
    )
    (ax, ay), *rest = ((points[n], points[n + 1]) for n in range(0, 8, 2))
    return f'<path class="a" d="M{ax:g} {ay:g}C{" ".join(f"{x:g} {y:g}" for x, y in rest)}"/>'


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(drawing(), encoding="utf-8")
