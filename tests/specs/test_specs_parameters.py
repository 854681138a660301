"""Parameters of components are checked where the places of a spec are known."""

import pytest

from p4perf.errors import SpecError
from p4perf.programs.component import component_parameters
from p4perf.specs import load_experiment

SPEC = """\
name: mine/tables
program:
  component: match_action_table
  parameters:
    entries: $entries
    key_bits: 64
sweep:
  entries: [1, 10, 100]
"""

SEVERAL = """\
name: mine/several
program:
  component:
    - parser_headers: {headers: 3}
    - match_action_table: {entries: $entries}
    - match_action_table
  parameters:
    match_action_table: {entries: 7, key_bits: 32}
sweep: {entries: [10, 100]}
"""


@pytest.fixture
def load(tmp_path):
    def of(text, **more):
        path = tmp_path / "spec.yaml"
        path.write_text(text)
        return load_experiment(str(path), parameters_of=component_parameters, **more)

    return of


def test_parameters_that_a_component_takes_pass(load):
    assert len(load(SPEC).points) == 3
    assert len(load(SEVERAL).points) == 2


@pytest.mark.parametrize(
    ("text", "place", "key", "said", "hint"),
    [
        (
            SPEC.replace("entries: $", "entires: $"),
            (5, 5),
            "program.parameters.entires",
            "component match_action_table has no parameter 'entires'",
            "did you mean entries?",
        ),
        (SPEC.replace("key_bits: 64", "key_bits: 0"), (6, 15), "program.parameters.key_bits", "must be at least", None),
        (SPEC.replace("key_bits: 64", "key_bits: wide"), (6, 15), None, "expected a whole number, got 'wide'", None),
        (SPEC.replace("100]", "-5]"), (5, 14), None, "must be at least 1, got -5", "at the point entries = -5"),
        (SPEC.replace("action_table", "action_tabel"), (3, 14), "program.component", "'match_action_tabel'", "table?"),
        (SPEC.replace("entries: $entries", "match_kind: $entries"), (3, 14), None, "needs entries", "match_kind, entr"),
        (
            SEVERAL.replace("key_bits", "key_bit"),
            (8, 38),
            "program.parameters.match_action_table.key_bit",
            "no",
            "bits?",
        ),
        (
            SEVERAL.replace("{headers", "{heads"),
            (4, 24),
            "program.component.0.parser_headers.heads",
            "heads",
            "headers?",
        ),
        (SEVERAL.replace("headers: {headers", "heads: {headers"), (4, 7), None, "'parser_heads'", "headers?"),
        (SEVERAL.replace("- parser_headers: {headers: 3}", "- parser_headers"), (4, 7), None, "needs headers", None),
        (SPEC.replace("program:", "program:\n  baseline: l2fwt"), (3, 13), "program.baseline", "'l2fwt'", "l2fwd?"),
    ],
)
def test_what_a_component_does_not_take_is_blamed_at_its_place(load, text, place, key, said, hint):
    with pytest.raises(SpecError) as refused:
        load(text)
    error = refused.value
    assert (error.location.line, error.location.column) == place
    assert key is None or error.key == key
    assert said in error.message
    assert hint is None or hint in error.hint
    assert "^" in str(error)


def test_a_value_from_the_command_line_is_blamed_there(load):
    with pytest.raises(SpecError, match=r"--set key_bits: program\.parameters\.key_bits: .* must be at least"):
        load(SPEC, overrides=[("key_bits", "0")])


def test_a_parameter_that_a_variant_sets_is_blamed_in_the_variant(load):
    text = SPEC + "  multiplex: [narrow]\nvariants:\n  narrow:\n    set: {program.parameters.key_bit: 32}\n"
    with pytest.raises(SpecError) as refused:
        load(text)
    assert refused.value.location.line == 12
    assert refused.value.hint == "did you mean key_bits?"


def test_a_spec_is_loaded_unchecked_for_runs_whose_component_is_not_installed(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("match_action_table", "gone"))
    assert len(load_experiment(str(path)).points) == 3
