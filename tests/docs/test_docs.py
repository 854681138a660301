"""The pages hang together: links lead somewhere, commands run, specs load, files that are shown are read."""

import re
from urllib.parse import urlsplit

import pytest
from docs_pages import DOCS, PAGES, STAND_IN, anchors, blocks, prose
from support.command import p4perf

from p4perf.specs import load_experiment

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall("\n".join(prose(page))):
        url = urlsplit(target)
        if url.scheme:
            continue
        there = (page.parent / url.path).resolve() if url.path else page
        assert there.exists(), target
        if url.fragment:
            assert url.fragment in anchors(there), target


def test_the_index_names_every_page():
    links = set(LINK.findall((DOCS / "index.md").read_text()))
    assert {p.name for p in PAGES} - {"index.md"} <= links


def commands(block):
    """Pairs of arguments, expected exit code and expected lines of output."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ p4perf "):
            found.append([line.removeprefix("$ p4perf ").split(), 0, []])
        elif line == "$ echo $?":
            found[-1][1] = None
        elif line.startswith("$"):
            pytest.fail(f"not a command of p4perf: {line}")
        elif found[-1][1] is None:
            found[-1][1] = int(line)
        elif line.strip() != "...":
            found[-1][2].append(line)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_run_as_printed(page, tmp_path):
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        if block.language != "console":
            continue
        for arguments, code, lines in commands(block):
            if block.note == STAND_IN and arguments[0] == "run":
                arguments = [*arguments, "--target", "fake"]
            done = p4perf(*arguments, cwd=tmp_path)
            where = f"{page.name}:{block.line}: p4perf {' '.join(arguments)}\n{done.out[-2000:]}{done.err}"
            assert done.code == code, where
            printed = " ".join((done.out + done.err).split())
            for line in lines:
                assert " ".join(line.split()) in printed, f"{line!r} is not printed\n{where}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_specs_load(page, tmp_path):
    for block in blocks(page):
        if block.language == "yaml":
            path = tmp_path / (block.file or "spec.yaml")
            path.write_text(block.text)
            assert load_experiment(str(path)).points


def test_python_reads_a_model(tmp_path, monkeypatch):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + "\n".join(f"{n},{3 * n + 2}" for n in range(1, 20)))
    assert p4perf("fit", data, "--x", "x", "--y", "y", "-o", tmp_path).code == 0
    monkeypatch.chdir(tmp_path)
    (block,) = [b for b in blocks(DOCS / "models.md") if b.language == "python"]
    exec(compile(block.text, "models.md", "exec"), {})  # noqa: S102
