"""Write composition/functions of the catalogue anew: the network functions of examples/programs, for p4perf learn."""

from pathlib import Path

from p4perf.programs.own import compressed

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "p4perf" / "specs" / "catalogue" / "composition" / "functions.yaml"

HEAD = """\
# yaml-language-server: $schema=../../schemas/experiment.json
#
# Network functions in P4, as whole programs: what a cost model learns of programs that people write. Their JSON of
# p4c-bm2-ss is compressed; the sources are in examples/programs. tools/functions.py writes this file, `p4perf learn`
# measures it.
spec_version: 1
extends: base/composition
name: composition/functions
title: Network functions, for the cost model of a machine

traffic:
  frame_size: 128

variants:
"""

TAIL = """\
sweep:
  skip_impossible: true
  multiplex:
    each_of:
"""


def text() -> str:
    """The spec, as the examples are now."""
    files = sorted((ROOT / "examples" / "programs").glob("*/*.json"))
    variants = [
        f"  {file.stem}:\n    set:\n      program.component:\n        - p4:\n            program: "
        f'"{compressed(file.read_text(encoding="utf-8"))}"\n'
        for file in files
    ]
    return HEAD + "".join(variants) + TAIL + "".join(f"      - {file.stem}\n" for file in files)


if __name__ == "__main__":
    SPEC.write_text(text(), encoding="utf-8")
