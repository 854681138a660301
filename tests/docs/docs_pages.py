"""The pages of docs/ as data: fenced blocks, tables by heading, links."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))

ROOT = DOCS.parent
EXAMPLES = ROOT / "examples"
"""A reader types in a checkout: every part of a page finds this folder beside its own files."""
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARTIFACT.md", "SECURITY.md")]

STAND_IN = "<!-- stand-in target -->"
OUTPUT = "<!-- output -->"
_FILE = re.compile(r"<!-- file: (\S+) -->")
_SCENE = re.compile(r"<!-- scene: ([\w-]+) -->")
_FENCE = re.compile(r"^```(\w*)\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block; ``note`` is the comment line right above it, ``scene`` the one that it belongs to."""

    language: str
    text: str
    line: int
    note: str
    scene: str

    @property
    def file(self):
        match = _FILE.fullmatch(self.note)
        return match and match[1]


@dataclass(frozen=True)
class Table:
    """A table, the titles that it stands below, and its rows; backticks are kept."""

    headings: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Part:
    """The blocks of a page that share a folder: from a line ``<!-- scene: NAME -->`` to the next, or all of them."""

    page: Path
    scene: str

    @property
    def blocks(self):
        return [block for block in blocks(self.page) if block.scene == self.scene]

    @property
    def id(self):
        return self.page.name if self.scene == self.page.stem else f"{self.page.name}:{self.scene}"


def parts(page):
    return [Part(page, scene) for scene in dict.fromkeys(block.scene for block in blocks(page))]


def blocks(page):
    found, lines, start, scene = [], page.read_text().splitlines(), None, page.stem
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if start is None and (named := _SCENE.fullmatch(line)):
            scene = named[1]
        if match and start is None:
            start, language = number, match[1]
        elif match:
            note = lines[start - 1].strip() if start else ""
            text = "\n".join(lines[start + 1 : number]) + "\n"
            found.append(Block(language, text, start + 1, note, scene))
            start = None
    assert start is None, f"{page.name}: a fence is not closed"
    return found


def prose(page):
    """The lines of a page with those of fenced blocks left empty."""
    inside, out = False, []
    for line in page.read_text().splitlines():
        fence = line.startswith("```")
        out.append("" if inside or fence else line)
        inside ^= fence
    return out


def headings(page):
    return [match[2].strip() for line in prose(page) if (match := re.match(r"(#+) (.*)", line))]


def anchors(page):
    """Anchors as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings(page)}


def cells(line):
    """The cells of a row; a vertical bar inside of one is written with a backslash."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner))


def tables(page):
    found, trail, lines = [], [], prose(page)
    number = 0
    while number < len(lines):
        line = lines[number]
        if match := re.match(r"(#+) (.*)", line):
            trail = [*trail[: len(match[1]) - 1], match[2].strip()]
        elif line.startswith("|") and number + 1 < len(lines) and re.fullmatch(r"[|\- ]+", lines[number + 1]):
            rows = []
            head, number = cells(line), number + 2
            while number < len(lines) and lines[number].startswith("|"):
                rows.append(cells(lines[number]))
                assert len(rows[-1]) == len(head), f"{page.name}: {lines[number]}"
                number += 1
            found.append(Table(tuple(trail), head, tuple(rows)))
            continue
        number += 1
    return found


def bare(cell):
    """A cell without backticks."""
    return cell.replace("`", "")


def command_named(group, words):
    """The command that words begin with, those of groups too, and the words behind its name."""
    assert words[0] in group.commands, " ".join(words)
    command = group.commands[words[0]]
    return command_named(command, words[1:]) if hasattr(command, "commands") and words[1:] else (command, words[1:])
