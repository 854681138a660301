"""Verdicts as files: valid XML whatever the words are, Markdown without accidents."""

import xml.etree.ElementTree as ET

from p4perf.evaluation.comparison.gate import GateOptions, no_verdict
from p4perf.evaluation.report import markdown_cell
from p4perf.experiment.gate import GatedComponent, GateResult, counts, gate_document, junit_xml, summary_markdown

NASTY = "a<b>&\"'\x00\x1b|`*\n]]>"


def result(*names):
    components = tuple(GatedComponent(name, NASTY, "", "", no_verdict(NASTY)) for name in names)
    return GateResult(components, GateOptions(), False, (NASTY,))


def test_any_text_makes_valid_xml():
    root = ET.fromstring(junit_xml(result(NASTY)))  # noqa: S314 - our own text
    (case,) = root.iter("testcase")
    assert case.get("name").startswith("a<b>&\"'��|`*")
    assert "no verdict" in case.find("skipped").get("message")


def test_any_text_is_one_row_of_the_summary():
    text = summary_markdown(result(NASTY))
    assert len([line for line in text.splitlines() if line.startswith("| a")]) == 1
    assert markdown_cell("a|b *c* <d>\n[e](f)") == r"a\|b \*c\* \<d\> \[e\](f)"


def test_nothing_is_no_verdict():
    nothing = GateResult((), GateOptions(), False, ())
    document = gate_document(nothing)
    assert (document.verdict, document.exit_code) == ("no verdict", 6)
    assert document.rows == ()


def test_counts_are_by_outcome():
    assert counts(result("a", "b")) == "2 components: 2 no verdict"
