from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4perf.errors import SpecError
from p4perf.generators.rendering import comment, environment, identifier


@pytest.mark.parametrize("name", ["a", "_", "ether_type", "A9", "x" * 64])
def test_identifiers_pass(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize("name", ["", "9a", "a b", "a;", "a\n", "é", "x" * 65, "a.b", "*/"])
def test_what_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="identifier"):
        identifier(name)


@given(st.text(st.sampled_from("*/]=[a\\\n\r\u2028\0 ") | st.characters(), max_size=30))
def test_no_text_breaks_out_of_a_comment(text: str) -> None:
    line = comment(text)
    assert len(line.splitlines()) <= 1
    assert not any(token in line for token in ("*/", "/*", "]]", "]=", "\0"))
    assert not line.rstrip().endswith("\\")


@given(st.text(st.characters(categories=["L", "N"]), max_size=30))
def test_plain_text_stays_what_it_is(text: str) -> None:
    assert comment(text) == text


def test_an_undefined_name_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_templates_reach_no_internals() -> None:
    with pytest.raises(jinja2.exceptions.SecurityError):
        environment().from_string("{{ x.__class__.__mro__ }}").render(x=1)
