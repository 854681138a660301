"""The pieces of pages: escaped data, marked words, numbers."""

import json
import re

import pytest

from p4perf.evaluation.report import EXPLANATIONS, explanation, number
from p4perf.evaluation.report.figures import assets, highlighted, rounded, script_json


def test_json_in_a_script_cannot_end_it_and_reads_back() -> None:
    value = {"text": "</script><!-- & \u2028", "n": [1.0, 2, True, None]}
    text = str(script_json(value))
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text) == {"text": "</script><!-- & \u2028", "n": [1, 2, True, None]}


def test_numbers_are_short_and_always_numbers() -> None:
    assert rounded([1 / 3, 1e20 / 3, float("nan"), float("inf"), 20000000.0, True]) == [
        0.33333, 3.3333e19, None, None, 20000000, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (14890.2, "14890"),
        (-14896.0, "−14900"),
        (0.0, "0"),
        (12.3456, "12.35"),
        (None, "–"),
        (2e9, "2e9"),
        (-2.5e-5, "−2.5e−5"),
    ],
)
def test_numbers_have_no_exponent_where_people_do_not_expect_one(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("name", ["x.p4", "x.spec", "x.bpf.c", "x.lua", "x.yaml", "x.unknown"])
def test_marked_text_is_the_text(name: str) -> None:
    text = '#define A "<b>"\nif (a < b && c > 0x1f) { return "</pre>"; } // <i> &amp;\n; -- end\n\ttrailing  \n'
    html = str(highlighted(text, name))
    plain = re.sub(r"</?i(?: class=[a-z])?>", "", html)
    assert "<" not in plain
    from html import unescape

    assert unescape(plain) == text


def test_p4_has_keywords_types_numbers_and_comments() -> None:
    html = str(highlighted("control c(inout bit<9> x) { /* no */ apply { x = 9w0x1F; } }\n", "a.p4"))
    assert "<i class=k>control</i>" in html
    assert "<i class=t>bit</i>" in html
    assert "<i class=m>9w0x1F</i>" in html
    assert "<i class=c>/* no */</i>" in html


def test_flags_are_explained_and_unknown_ones_are_said_to_be() -> None:
    assert "4 KiB" in explanation("no_hugepages")
    assert "documentation" in explanation("of_a_plug_in")


def test_the_flags_of_the_documentation_are_all_explained() -> None:
    from pathlib import Path

    docs = Path(__file__).parents[3] / "docs"
    for page in ("measuring.md", "load.md"):
        section = (docs / page).read_text().split("## Quality flags")[1].split("\n## ")[0]
        flags = re.findall(r"^\| `([a-z_]+)` \|", section, flags=re.M)
        assert flags
        assert set(flags) <= set(EXPLANATIONS), page


def test_the_assets_are_whole() -> None:
    found = assets()
    assert sorted(found) == ["figures.js", "plotly.min.js", "site.css", "tables.js"]
    assert b"plotly.js v" in found["plotly.min.js"][:400]


def _luminance(colour: str) -> float:
    full = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(full[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_of_wcag_aa() -> None:
    """4.5 for text, 3 for lines and marks (WCAG 2.1, success criteria 1.4.3 and 1.4.11), in every theme."""
    css = assets()["site.css"].decode()
    themes = [dict(re.findall(r"(--\w+): (#\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", css)]
    assert len(themes) == 3
    for theme in themes:
        for ground in ("--paper", "--soft"):
            for ink in ("--ink", "--grey", "--link", "--bad"):
                assert _contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground, theme)
        assert _contrast(theme["--mark"], theme["--paper"]) >= 4.5
        for at in range(6):
            assert _contrast(theme[f"--c{at}"], theme["--paper"]) >= 3, (at, theme)
    words = re.findall(r"\.code \.(\w)[^{]*\{ color: (#\w+)", css)
    assert len(words) == 21
    for at, (name, colour) in enumerate(words):
        ground = themes[1 if 7 <= at < 14 else 0]["--soft"]
        assert _contrast(colour, ground) >= 4.5, (name, colour)
