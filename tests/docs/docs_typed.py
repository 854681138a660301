"""Blocks of the pages that a reader types into a shell, or gives to something that does."""

import re

import yaml
from docs_pages import PAGES, ROOT, bare, tables

COMMAND = re.compile(r"^(?:\$ )?(?:p4perf|make|git clone) ", re.MULTILINE)
"""How a line begins that somebody types, in a block that is not one of a shell by its language."""

RUN_ELSEWHERE = dict.fromkeys([*PAGES, ROOT / "ARTIFACT.md"], ("console",))
"""Languages whose blocks ``test_docs.py`` runs, with what they print."""

BY_THE_MAINTAINERS = {
    "git clone REPOSITORY p4perf && cd p4perf": "where the repository is, nobody knows here",
    "make install": "installs packages of the system",
    "source .venv/bin/activate": "there is no such environment here: the tests have one of their own",
    "make demo": "installs packages of the system, then is `p4perf run demo/exact-entries`",
    "make test": "runs this test",
    "make test-all": "runs this test",
}
"""Lines that are not typed, and why: what they do in a fresh clone is looked at by those who release."""


def logical_lines(text):
    """The lines of a script, those that go on in the next one joined."""
    return re.sub(r"\\\n\s*", "", text).splitlines()


def script(block):
    """What is typed of a block; None if nothing is."""
    if block.language in ("sh", "bash"):
        return block.text
    if block.language == "yml" and re.search(r"^ *- run: ", block.text, re.MULTILINE):
        jobs = yaml.safe_load(block.text)["jobs"].values()
        return "\n".join(step["run"] for job in jobs for step in job["steps"] if "run" in step) + "\n"
    if block.language in ("text", "console", "") and COMMAND.search(block.text):
        lines = block.text.splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return "\n".join(lines) + "\n"
    return None


def typed_blocks(part):
    """The blocks of a part of a page that no other test runs, with the lines of each that are typed."""
    found = []
    for block in part.blocks:
        text = None if block.language in RUN_ELSEWHERE.get(part.page, ()) else script(block)
        lines = [line for line in logical_lines(text or "") if line.strip() not in BY_THE_MAINTAINERS]
        if any(line.strip() for line in lines):
            found.append((block, lines))
    return found


def examples(page):
    """The commands in the tables of a page that say what to type for a purpose."""
    rows = [row for table in tables(page) if table.head[:2] == ("to", "for example") for row in table.rows]
    return [bare(row[1]) for row in rows]
