"""The reference pages are what the code says today."""

import importlib.util
import sys

import pytest
from docs_pages import DOCS

SCRIPT = DOCS.parent / "tools" / "reference.py"


def reference():
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands.md", "specs.md", "json.md"])
def test_a_reference_page_is_current(name):
    page = reference().PAGES[name]()
    assert (DOCS / name).read_text() == page, "write it anew: python tools/reference.py"


def test_every_command_and_option_is_there():
    from typer.main import get_command

    from p4perf.cli import loaded

    page = (DOCS / "commands.md").read_text()
    common = page.partition("\n## Common options\n")[2].partition("\n## ")[0]
    known = []
    for name, command in get_command(loaded()).commands.items():
        inner = getattr(command, "commands", {})
        known += [(f"{name} {under}", each) for under, each in inner.items()] or [(name, command)]
    for name, command in known:
        section = page.partition(f"\n### p4perf {name}\n")[2].partition("\n##")[0]
        assert section, name
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}`" in section, (name, parameter.opts)
                assert all(f"`{option}`" in section + common for option in parameter.opts), (name, parameter.opts)
