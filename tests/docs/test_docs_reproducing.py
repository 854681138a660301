"""The tables of claims on the page are those of the files, and every claim names a command that there is."""

import re
import shlex

import pytest
from docs_pages import DOCS, command_named
from typer.main import get_command

from p4perf.cli import loaded
from p4perf.evaluation.papers import shipped_papers
from p4perf.evaluation.report import render_markdown

PAGE = DOCS / "reproducing.md"
BEGIN, END = "<!-- claims -->\n", "<!-- end of claims -->"


def test_the_tables_are_current(request):
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    shown, tail = rest.split(END)
    made = "\n" + render_markdown("claims.md.j2", papers=shipped_papers()).strip() + "\n\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(head + BEGIN + made + END + tail)
        return
    assert shown == made, "run pytest --update-golden on this file"


@pytest.mark.parametrize("paper", shipped_papers(), ids=lambda paper: paper.key)
def test_commands_of_claims_exist(paper):
    parser = get_command(loaded())
    for claim in paper.claims:
        command, arguments = command_named(parser, shlex.split(claim.command)[1:])
        known = {option for parameter in command.params for option in parameter.opts}
        given = {word for word in arguments if re.match(r"--?[a-z]", word)}
        assert given <= known, claim.command
