"""What the page on operators says of quadrants, rules and keys is what the code does."""

import re

import pytest
import yaml
from docs_pages import DOCS, bare, tables
from support.command import p4perf

from p4perf.evaluation.papers.ren2025 import Rule
from p4perf.evaluation.papers.ren2025.costs import OperatorRow, PlatformFile, PlatformRow
from p4perf.evaluation.papers.ren2025.quadrants import STRATEGIES

PAGE = tables(DOCS / "operators.md")


def table(*head):
    (found,) = [t for t in PAGE if t.head[: len(head)] == head]
    return found


def test_quadrants_and_strategies():
    assert {row[0]: row[3] for row in table("quadrant").rows} == {q.value: s for q, s in STRATEGIES.items()}


def test_rules():
    assert {bare(row[0]) for row in table("rule").rows} == {rule.value for rule in Rule if rule is not Rule.NUMBER}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", table("options").rows, ids=lambda row: bare(row[0]))
def test_what_each_rule_makes_of_the_table(row, tmp_path):
    options, thresholds, arm, x86, agrees = row
    done = p4perf(
        "analyse", "opq", "--with", "ren2025", *bare(options).split(), "-o", tmp_path / "out", "--format", "csv"
    )
    assert done.code == 0, done.err
    lines = [line.split(",") for line in done.out.splitlines()]
    rows = [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]
    assert {float(r["threshold_cycles"]) for r in rows} == {float(n) for n in re.findall(r"[\d.]+", thresholds)}
    quadrants = {(r["platform"], r["operator"]): r["quadrant"] for r in rows}
    letter = {"high startup cost": "H", "ideal operator": "I"}
    for platform, said in (("Arm", arm), ("x86", x86)):
        names = ("htons", "Checksum", "hash", "rte_log")
        assert [letter[quadrants[platform, name]] for name in names] == said.split(", ")
        assert quadrants[platform, "CRC"] == "latent trap"
        assert quadrants[platform, "printf"] == "high startup cost"
    as_told = all(quadrants["Arm", name] == "high startup cost" for name in ("htons", "Checksum"))
    assert as_told is (agrees == "yes")


@pytest.mark.parametrize(
    ("head", "model"),
    [
        ("key of a platform file", PlatformFile),
        ("key of a platform", PlatformRow),
        ("key of an operator", OperatorRow),
    ],
)
def test_keys_of_platform_files(head, model):
    texts = {bare(row[0]): bare(row[1]) for row in table(head).rows}
    said = {key: ... if t == "required" else None if t == "-" else yaml.safe_load(t) for key, t in texts.items()}
    real = {
        name: ... if field.is_required() else list(field.default) if isinstance(field.default, tuple) else field.default
        for name, field in model.model_fields.items()
    }
    assert said == real
