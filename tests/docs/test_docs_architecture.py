"""The picture of the packages is drawn from the code of today, and its arrows lead down."""

import importlib.util

from docs_pages import DOCS, ROOT


def architecture():
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tools" / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_current():
    picture = (DOCS / "images" / "architecture.svg").read_text()
    assert picture == architecture().drawing(), "draw it anew: python tools/architecture.py"


def test_every_import_leads_down():
    tool = architecture()
    level = {name: number for number, names in enumerate(tool.floors()) for name in names}
    edges = [(name, end) for name, ends in tool.imports().items() for end in ends]
    assert len(edges) > 30
    assert [(name, end) for name, end in edges if level[end] <= level[name]] == []


def test_arrows_that_follow_from_others_are_left_out():
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert architecture().reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
