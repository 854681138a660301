"""The network functions that ``p4perf learn`` measures are those of the examples."""

from pathlib import Path

from p4perf.programs.own import unpacked
from p4perf.specs import load_experiment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "programs"


def test_the_spec_has_the_programs_of_the_examples():
    points = load_experiment("composition/functions").points
    found = {str(p.values["variant"]): unpacked(str(dict(p.components[0][1])["program"])) for p in points}
    wanted = {file.stem: file.read_text(encoding="utf-8") for file in EXAMPLES.glob("*/*.json")}
    assert len(wanted) == 14
    assert found == wanted, "write it anew: python tools/functions.py"
