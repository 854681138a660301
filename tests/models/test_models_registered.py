"""Template sets of other packages stand beside those of the paper."""

import numpy as np
import pytest

from p4perf.evaluation.fitting.derivation import FitOptions, derive
from p4perf.models import templates
from p4perf.models.templates import Polynomial


@pytest.fixture
def _another_set(monkeypatch):
    cube = templates._template("only_sixth", "poly", Polynomial(6))
    monkeypatch.setattr(templates, "plugin_names", lambda group: ["mine", "standard"])
    sets = {"mine": lambda: (cube,), "standard": templates.standard_templates}
    monkeypatch.setattr(templates, "load_plugin", lambda group, name: sets[name])


def test_without_plug_ins_the_templates_are_the_standard_ones():
    assert templates.registered_templates() == templates.standard_templates()


@pytest.mark.usefixtures("_another_set")
def test_another_set_comes_after_the_standard_one():
    names = [t.name for t in templates.registered_templates()]
    assert names == [*(t.name for t in templates.standard_templates()), "only_sixth"]
    assert templates.find_template("only_sixth").name == "only_sixth"


@pytest.mark.usefixtures("_another_set")
def test_the_exact_profile_derives_with_it_and_the_profile_of_the_paper_does_not():
    x = np.linspace(-1, 1, 60)
    y = 3 + (x - 0.9) * (x - 0.5) * (x - 0.1) * (x + 0.3) * (x + 0.6) * (x + 0.95) * 40
    assert derive(x, y, FitOptions(max_segments=1)).best.segments[0].template.name == "only_sixth"
    assert derive(x, y, FitOptions(max_segments=1, profile="scholz2021")).best.segments[0].template.name != "only_sixth"
