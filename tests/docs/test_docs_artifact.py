"""The artefact appendix has its headings and no wrong figures; the citation can be read; the workflow exists."""

import re
import tomllib

import yaml
from docs_pages import DOCS, ROOT, blocks, headings, tables
from typer.main import get_command

from p4perf.cli import loaded
from p4perf.specs import list_catalogue
from p4perf.version import __version__

HEADINGS = (
    "Abstract",
    "Check-list (meta-information)",
    "Description",
    "Installation",
    "Experiment workflow",
    "Kick the tyres",
    "Evaluation and expected results",
    "Experiment customisation",
)


def test_the_headings_are_those_of_an_artefact_appendix():
    found = headings(ROOT / "ARTIFACT.md")
    assert [h for h in found if h in HEADINGS] == list(HEADINGS)


def test_named_benchmarks_and_experiments_exist():
    text = (ROOT / "ARTIFACT.md").read_text()
    assert all((ROOT / name).exists() for name in re.findall(r"benchmarks/\w+\.py", text))
    (table,) = [t for t in tables(ROOT / "ARTIFACT.md") if t.head == ("experiment", "expected")]
    names = {n for row in table.rows for n in re.findall(r"^`([a-z0-9]+/[a-z-]+)`", row[0])}
    assert len(names) >= 4
    assert names <= {entry.name for entry in list_catalogue()}


def test_the_claims_of_the_papers_are_among_the_results():
    text = "\n".join(block.text for block in blocks(ROOT / "ARTIFACT.md"))
    assert "p4perf reproduce --quick" in text
    assert "Claims of the papers" in headings(ROOT / "ARTIFACT.md")


def test_the_citation_can_be_read():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors", "type", "abstract", "keywords"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == __version__
    assert cited["license"] == project["license"]
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]
    for reference in cited["references"]:
        assert {"type", "title", "authors", "year"} <= reference.keys()
        assert re.fullmatch(r"10\.\d{4,9}/\S+", reference["doi"])


def test_commands_of_the_workflow_exist():
    parser = get_command(loaded())
    (text,) = [block.text for block in blocks(DOCS / "comparing.md") if block.language == "yml"]
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    lines = [step["run"] for step in steps if "p4perf" in step.get("run", "")]
    assert len(lines) == 1
    for line in lines:
        name, *arguments = line.partition("p4perf ")[2].split()
        known = {option for parameter in parser.commands[name].params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= known, line
