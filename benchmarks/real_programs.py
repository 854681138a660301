"""What do whole programs cost? The example programs through p4c-dpdk on target dpdk-swx, compiled and interpreted.

Every program of ``examples/programs`` is compiled, gets its entries, is checked with packets of its main path, and is
measured in as many starts as ``--repetitions`` says: cycles per packet, those of the baseline beside it, and their
difference. The packets touch the entries of a table at random (``vary`` in the data of each program), or are all the
same with ``--single``. Nothing is measured without p4c-dpdk and DPDK. ``--output`` keeps the records of all starts.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from p4perf.cli.program import varying_bytes
from p4perf.errors import P4PerfError
from p4perf.experiment.program import ProgramInput, measure_program

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "programs"
TARGETS = ("dpdk-swx", "dpdk-swx:interpreter")


def example_programs() -> ModuleType:
    """``examples/programs/make.py`` as a module."""
    spec = importlib.util.spec_from_file_location("example_programs", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def specification(name: str) -> str:
    """What p4c-dpdk makes of a program.

    Raises:
        subprocess.CalledProcessError: it refuses the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{name}.spec"
        command = ["p4c-dpdk", "--arch", "pna", "-DPNA", "-o", str(made), str(FOLDER / name / f"{name}.p4")]
        subprocess.run(command, capture_output=True, text=True, check=True)
        return made.read_text(encoding="utf-8")


def measured(
    names: list[str], targets: list[str], repetitions: int, folder: Path, *, single: bool
) -> Iterator[dict[str, Any]]:
    """A row for each program and target, or what went wrong."""
    make = example_programs()
    for name in names:
        data = make.load(name)
        entries, frame = make.swx_entries(data), bytes.fromhex(data["frame"])
        varying = None if single else varying_bytes(data["vary"])
        given = ProgramInput(name, specification(name), frame, entries, varying, make.expectation(data))
        for target in targets:
            row: dict[str, Any] = {"program": name, "target": target}
            try:
                found = measure_program(given, target, "local", folder, repetitions=repetitions)
            except P4PerfError as error:
                yield {**row, "error": error.message}
                continue
            values = {r["metric"]: r for r in found.rows}
            row |= {m: values[m]["median"] for m in ("cycles_per_packet", "baseline_cycles_per_packet")}
            row["cost_cycles_per_packet"] = values["cost_cycles_per_packet"]["median"]
            yield {**row, "starts": f"{found.accepted} of {found.tried}", "flags": ", ".join(found.flags)}


def main() -> int:
    """Measure and print."""
    known = example_programs().names()
    parser = argparse.ArgumentParser(description="Cost of the example programs through p4c-dpdk on dpdk-swx.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    parser.add_argument("--target", action="append", help="default: compiled and interpreted")
    parser.add_argument("--repetitions", type=int, default=3, help="accepted starts of each")
    parser.add_argument("--single", action="store_true", help="all packets are the same")
    parser.add_argument("--output", type=Path, help="keep the records in this folder")
    options = parser.parse_args()
    if unknown := set(options.programs) - set(known):
        parser.error(f"no program {min(unknown)}; there are {', '.join(known)}")
    if shutil.which("p4c-dpdk") is None:
        print("p4c-dpdk is not on the PATH: nothing to measure")
        return 0
    print(f"{'program':20} {'target':22} {'cycles/packet':>13} {'baseline':>9} {'cost':>8}  starts  flags")
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        chosen, targets = options.programs or known, options.target or list(TARGETS)
        for row in measured(chosen, targets, options.repetitions, place, single=options.single):
            print(_line(row), flush=True)
    return 0


def _line(row: dict[str, Any]) -> str:
    head = f"{row['program']:20} {row['target']:22}"
    if "error" in row:
        return f"{head} {row['error']}"
    whole, baseline = row["cycles_per_packet"], row["baseline_cycles_per_packet"]
    cost = row["cost_cycles_per_packet"]
    return f"{head} {whole:13.1f} {baseline:9.1f} {cost:8.1f}  {row['starts']:6}  {row['flags']}"


if __name__ == "__main__":
    sys.exit(main())
