from __future__ import annotations

import subprocess

import jinja2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from p4perf.errors import SpecError
from p4perf.generators.base import comment, environment, identifier, shell, shell_command, yaml_scalar


@pytest.mark.parametrize("name", ["a", "_", "ether_type", "A9", "x" * 255])
def test_identifiers_pass(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize("name", ["", "9a", "a b", "a;", "a\n", "é", "x" * 256, "a.b", "*/"])
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


WORDS = st.text(
    st.sampled_from("'\"$`\\\n;&|<>*?~#!{}() -=a") | st.characters(exclude_characters="\0", codec="utf-8"), max_size=12
)


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_shell_takes_words_as_they_are(words: list[str]) -> None:
    script = f"place='$x'\n{shell_command(['printf', '%s|', *words], {'place': 'place'})}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == "".join(f"{word}|" for word in words).replace("{place}", "$x")


@pytest.mark.parametrize(
    ("word", "said"),
    [("{a}/x y", "\"${v}\"'/x y'"), ("{a}", '"${v}"'), ("", "''"), ("{b}", "'{b}'"), ("x{a}{a}", 'x"${v}""${v}"')],
)
def test_places_are_variables_of_the_shell(word: str, said: str) -> None:
    assert shell_command([word], {"a": "v"}) == said


def test_what_no_shell_takes() -> None:
    with pytest.raises(SpecError, match="zero byte"):
        shell("a\0b")
    with pytest.raises(SpecError, match="identifier"):
        shell_command(["{a}"], {"a": "v;reboot"})


@given(st.text(max_size=20) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_yaml_reads_a_scalar_back(value: object) -> None:
    try:
        written = yaml_scalar(value)  # type: ignore[arg-type]
    except SpecError:
        assert isinstance(value, str)
        assert any(ord(c) > 0xFFFF or 0xD800 <= ord(c) < 0xE000 for c in value)
        return
    assert "\n" not in written
    if not isinstance(value, float):  # 1e+16 is a word in YAML 1.1
        assert yaml.safe_load(f"key: {written}\n") == {"key": value}


def test_what_is_no_scalar_of_yaml() -> None:
    for value in ([1], {"a": 1}, float("nan"), object()):
        with pytest.raises(SpecError, match="no scalar"):
            yaml_scalar(value)  # type: ignore[arg-type]
