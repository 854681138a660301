"""No circles: neither between Python modules, whatever they import at run time or for types, nor between C files."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "p4perf"
C_FOLDERS = sorted({path.parent for path in PACKAGE.rglob("*.c")})

DEFINITION = re.compile(r"^(?!static\b)\w[\w *]*\n(\w+)\([^{;]*\)\n\{", re.MULTILINE)
"""A function of C that other files can call."""

Graph = dict[str, set[str]]


def circle(graph: Graph) -> list[str]:
    """One circle of the graph; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def python_graph(package: Path) -> Graph:
    """What each module of a package imports of it, at its top, in a function or for types."""
    paths = {module_name(path, package.parent): path for path in package.rglob("*.py")}
    graph = {}
    for name, path in paths.items():
        named = set(imported(ast.parse(path.read_bytes()), paths)) & paths.keys()
        # Importing a module runs its packages first, unless they are running already.
        run = {above for module in named for above in packages(module)} - {*packages(name)}
        graph[name] = (named | run) - {name}
    return graph


def module_name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def packages(module: str) -> Iterator[str]:
    """The packages that a module is in."""
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def imported(tree: ast.AST, modules: Container[str]) -> Iterator[str]:
    """The modules that a tree imports; ``from package import name`` imports the package unless the name is a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (
                name if name in modules or name.rpartition(".")[2].startswith("_") else node.module for name in full
            )


def c_graph(folder: Path) -> Graph:
    """What each C file of a folder needs of another: the files it includes, and those that define what it calls."""
    texts = {path.name: without_comments(path.read_text()) for path in sorted(folder.glob("*.[ch]"))}
    defined = {
        symbol: name for name, text in texts.items() if name.endswith(".c") for symbol in DEFINITION.findall(text)
    }
    graph = {}
    for name, text in texts.items():
        needs = {found for found in re.findall(r'#\s*include\s+"([^"]+)"', text) if found in texts}
        if name.endswith(".c"):
            needs |= {defined[word] for word in set(re.findall(r"(?<![.>\w])\w+", text)) & defined.keys()}
        graph[name] = needs - {name}
    return graph


def without_comments(text: str) -> str:
    """C text without comments and what strings hold, but for the names of included files."""
    kept = r"#\s*include[^\n]*"
    dropped = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"'
    return re.sub(f"({kept})|{dropped}", lambda found: found[1] or " ", text, flags=re.DOTALL)


def test_python_modules_form_no_circle() -> None:
    graph = python_graph(PACKAGE)
    assert len(graph) > 200
    assert circle(graph) == []


@pytest.mark.parametrize("folder", C_FOLDERS, ids=lambda folder: folder.name)
def test_c_files_form_no_circle(folder: Path) -> None:
    assert circle(c_graph(folder)) == []
