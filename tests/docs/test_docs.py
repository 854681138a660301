"""The pages hang together: links lead somewhere, commands and Python run as printed, specs load."""

import contextlib
import io
import re
import tomllib
from urllib.parse import urlsplit

import pytest
from docs_pages import (
    DOCS,
    EXAMPLES,
    FRONT,
    OUTPUT,
    PAGES,
    ROOT,
    STAND_IN,
    anchors,
    blocks,
    command_named,
    parts,
    prose,
)
from support.command import p4perf
from support.sampling import sampled
from typer.main import get_command

from p4perf.cli import loaded
from p4perf.specs import load_experiment

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=lambda p: p.name)
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


def test_every_image_is_shown():
    shown = {(page.parent / link).resolve() for page in [*PAGES, *FRONT] for link in LINK.findall(page.read_text())}
    assert set((DOCS / "images").iterdir()) <= shown


MENTIONED = re.compile(r"(?:^|[\s$])p4perf ([a-z][a-z-]*(?: .*)?)$", re.MULTILINE)


def mentioned(page):
    """Every command of p4perf that a page names: in blocks of any kind, and within the text."""
    found = []
    for block in blocks(page):
        if block.language in ("", "bash", "console", "sh", "text", "yml"):
            found += MENTIONED.findall(block.text)
    spans = re.findall(r"`([^`]+)`", " ".join(line for line in prose(page) if not line.startswith("<!--")))
    return found + [line for span in spans for line in MENTIONED.findall(span)]


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=lambda p: p.name)
def test_commands_that_are_mentioned_exist(page):
    """Those of the pages in blocks `console` are run as well, see below."""
    parser = get_command(loaded())
    for line in mentioned(page):
        command, arguments = command_named(parser, re.split(r"\s#|[|;>]", line)[0].split())
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help"}, line


def test_mentioned_commands_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Say `p4perf run x --oops`.\n\n```text\nCC=gcc-12 p4perf fit a.csv\n```\n\n```python\np4perf x\n```\n"
    )
    assert mentioned(page) == ["fit a.csv", "run x --oops"]


def commands(block):
    """Lists of arguments, expected exit code and expected lines of output."""
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
        else:
            found[-1][2].append(line)
    return found


def one_line(text):
    return " ".join(text.split())


def install(project, folder):
    """What pip would note of a package whose modules lie in the folder where commands are run."""
    described = tomllib.loads(project)
    about = described["project"]
    named = described["tool"]["setuptools"]
    for module in (*(f"{name}.py" for name in named.get("py-modules", ())), *named.get("packages", ())):
        assert (folder / module).exists()
    info = folder / f"{about['name']}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    groups = about["entry-points"].items()
    lines = [line for group, names in groups for line in (f"[{group}]", *(f"{n} = {o}" for n, o in names.items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def stand_in(arguments):
    """The arguments with a fake target for the one that is measured by default, and another one for any other."""
    if "--target" not in arguments:
        return [*arguments, "--target", "fake"]
    at = arguments.index("--target") + 1
    fake = "fake" if arguments[at] == "dpdk-c" else "fake-adding"
    return [*arguments[:at], fake, *arguments[at + 1 :]]


def run_commands(block, folder):
    for arguments, code, lines in commands(block):
        if block.note == STAND_IN and (arguments[0] == "run" or "--interleaved" in arguments):
            arguments = stand_in(arguments)
        done = p4perf(*arguments, cwd=folder)
        where = f"line {block.line}: p4perf {' '.join(arguments)}\n{done.out[-2000:]}{done.err}"
        assert done.code == code, where
        printed = one_line(done.out + done.err)
        for line in lines:
            for piece in line.split("..."):
                assert one_line(piece) in printed, f"{piece!r} is not printed\n{where}"


LONG = {"ARTIFACT", "campaigns", "commands", "comparing", "extending", "fitting", "gate", "predicting", "reproducing"}
"""Parts that take from five seconds to a minute."""
RUN = [part for page in [*PAGES, ROOT / "ARTIFACT.md"] for part in parts(page)]


@pytest.mark.parametrize("part", sampled(RUN, *(p for p in RUN if p.scene not in LONG)), ids=lambda p: p.id)
def test_commands_and_python_run_as_printed(part, tmp_path, monkeypatch):
    """From the top of the part to its end, in one folder; Python blocks share their names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    names, printed = {}, ""
    for block in part.blocks:
        if block.file:
            file = tmp_path / block.file
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text)
            if file.suffix == ".toml":
                install(block.text, tmp_path)
        elif block.language == "console":
            run_commands(block, tmp_path)
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, f"{part.id}:{block.line}", "exec"), names)  # noqa: S102
            printed = out.getvalue()
        elif block.note == OUTPUT:
            assert printed.splitlines() == block.text.splitlines(), f"{part.id}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_specs_load(page, tmp_path):
    for block in blocks(page):
        if block.language == "yaml":
            path = tmp_path / (block.file or "spec.yaml")
            path.write_text(block.text)
            assert load_experiment(str(path)).points
