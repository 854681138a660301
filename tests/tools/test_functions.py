"""The network functions that ``p4perf learn`` measures are those of the examples."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "functions.py"


def test_the_spec_has_the_programs_of_the_examples():
    spec = importlib.util.spec_from_file_location("functions", SCRIPT)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.SPEC.read_text(encoding="utf-8") == tool.text(), "write it anew: python tools/functions.py"
    assert tool.text().count("xz:") == 14
