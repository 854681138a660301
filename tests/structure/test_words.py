"""One word for each thing: what p4perf does not say is in no page, help text, message or description of a key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from p4perf.cli import loaded

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "p4perf"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
PAGES += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARTIFACT.md", "SECURITY.md")]

REFUSED = re.compile(
    r"\b(?:"
    + "|".join(
        (
            "beside one another",
            "bills?",
            "came not up",
            "cheapest (?:way|path)",
            "circumstances",
            "dear(?:er|est)?",
            "figures that answer",
            "garbles?",
            "(?:go|goes|going|gone|went) on with",
            "has to meet them to",
            "(?:is|are) no \\w+ in the format of",
            "(?:is|are) there twice",
            "(?:is|are) told",
            "nobody (?:knows|said)",
            "none that is",
            "null: none",
            "once more",
            "(?:programs )?of other people",
            "programs of others",
            "so many",
            "tells",
            "there is no way to",
            "workshops?",
            "wrong guess(?:es)?",
        )
    )
    + r")\b",
    re.IGNORECASE,
)
CODE = re.compile(r"`[^`]*`")


def refused(text: str) -> list[str]:
    return REFUSED.findall(CODE.sub("", text))


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    assert refused(prose(page)) == []


def helps(command: object, name: str = "p4perf") -> Iterator[tuple[str, str]]:
    yield name, getattr(command, "help", "") or ""
    for parameter in getattr(command, "params", ()):
        yield f"{name} {parameter.name}", getattr(parameter, "help", "") or ""
    for under, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{name} {under}")


def test_help_texts() -> None:
    texts = list(helps(get_command(loaded())))
    assert len(texts) > 200
    assert {name: found for name, text in texts if (found := refused(text))} == {}


def strings(path: Path) -> Iterator[str]:
    """Texts of a module that a user may read: all but its docstrings and comments."""
    tree = ast.parse(path.read_bytes())
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_messages_and_descriptions() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in strings(path)
        if " " in text and refused(text)
    }
    assert found == set()


def test_templates() -> None:
    found = {str(path): refused(path.read_text()) for path in PACKAGE.rglob("*.j2")}
    assert len(found) > 10
    assert {path for path, words in found.items() if words} == set()


@pytest.mark.parametrize("text", ["Wrong guesses cost 20 cycles.", "x is there twice", "it goes on with the run"])
def test_words_are_found(text: str) -> None:
    assert len(refused(text)) == 1


def test_code_is_left_alone() -> None:
    assert refused("The key `bill` of old files.") == []
