"""Verdicts as files: valid XML whatever the words are, Markdown without accidents."""

import xml.etree.ElementTree as ET

from p4perf.evaluation.comparison.gate import no_verdict
from p4perf.evaluation.report import markdown_cell
from p4perf.experiment.gate import GateRow, append_summary, counts, gate_document, junit_xml

NASTY = "a<b>&\"'\x00\x1b|`*\n]]>"


def result(*names):
    known = dict.fromkeys(("baseline_program_ratio", "relative_ratio"))
    known |= {"target": NASTY, "metric": "", "unit": "", "against": "runs"}
    known |= {"starts": 0, "baseline_starts": 0, "differences": ()}
    rows = [GateRow.read(no_verdict(NASTY), experiment=name, **known) for name in names]
    return gate_document(rows, margin=0.05, relative=False, warnings=(NASTY,))


def test_any_text_makes_valid_xml():
    root = ET.fromstring(junit_xml(result(NASTY)))  # noqa: S314 - our own text
    (case,) = root.iter("testcase")
    assert case.get("name").startswith("a<b>&\"'��|`*")
    assert "no verdict" in case.find("skipped").get("message")


def test_any_text_is_one_row_of_the_summary(tmp_path):
    append_summary(result(NASTY), tmp_path / "summary.md")
    text = (tmp_path / "summary.md").read_text()
    assert len([line for line in text.splitlines() if line.startswith("| a")]) == 1
    assert markdown_cell("a|b *c* <d>\n[e](f)") == r"a\|b \*c\* \<d\> \[e\](f)"


def test_nothing_is_no_verdict():
    document = result()
    assert (document.verdict, document.exit_code) == ("no verdict", 6)
    assert document.rows == ()


def test_counts_are_by_outcome():
    assert counts(result("a", "b")) == "2 components: 2 no verdict"
