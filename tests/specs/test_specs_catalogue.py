from importlib.resources import files

import pytest

from p4perf.errors import SpecError
from p4perf.specs import load_experiment
from p4perf.specs.catalogue import BASE, catalogue_names, list_catalogue, read_catalogue

EXPERIMENTS = [entry.name for entry in list_catalogue()]


def test_the_experiments():
    assert EXPERIMENTS == [
        "action/header-field-writes",
        "baseline/l2fwd",
        "demo/exact-entries",
        "mat/exact-entries",
        "parser/headers",
    ]
    assert all(entry.title for entry in list_catalogue())


def test_specs_to_extend_are_no_experiments():
    assert "base/common" in catalogue_names()
    assert not any(name.startswith(BASE) for name in EXPERIMENTS)


@pytest.mark.parametrize("name", catalogue_names())
def test_every_file_is_named_as_it_lies_and_points_editors_to_the_schema(name):
    assert read_catalogue(name).child("name").content == name
    text = files("p4perf.specs").joinpath("catalogue", *f"{name}.yaml".split("/")).read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../../schemas/experiment.json\n")


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("action/header-field-writes", 17),
        ("baseline/l2fwd", 6),
        ("demo/exact-entries", 33),
        ("mat/exact-entries", 65),
        ("parser/headers", 11),
    ],
)
def test_the_points(name, points):
    experiment = load_experiment(name)
    assert len(experiment.points) == points
    assert experiment.spec.name == name
    assert experiment.spec.model is not None


def test_the_published_sweep():
    experiment = load_experiment("mat/exact-entries")
    published = [m * 10**k for k in range(7) for m in range(1, 10)] + [10_000_000, 20_000_000]
    assert [p.values["entries"] for p in experiment.points] == published
    name, parameters = experiment.points[-1].components[0]
    assert name == "match_action_table"
    assert parameters == {
        "match_kind": "exact",
        "entries": 20_000_000,
        "key_bits": 128,
        "action_data_bytes": 64,
        "hit_ratio": 1.0,
    }


def test_an_unknown_name_has_the_nearest():
    with pytest.raises(SpecError, match="there is no experiment mat/exact-entires in the catalogue") as caught:
        read_catalogue("mat/exact-entires")
    assert caught.value.hint == "did you mean mat/exact-entries?"
