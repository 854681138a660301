"""Your own P4 program as an experiment of one point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from p4perf.errors import DataError, Location, UsageError
from p4perf.programs.component import OWN, component_parameters
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.control_plane import read_control_plane
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.text import parse_program, read_program
from p4perf.programs.reading.tree import read_text
from p4perf.specs import Experiment, load_experiment
from p4perf.specs.experiment import spec_yaml

_NOT_OF_A_NAME = re.compile(r"[^a-z0-9]+")


def own_experiment(
    path: Path,
    *,
    entries: Path | None,
    p4info: Path | None,
    fill: Sequence[str],
    default_fill: int,
    miss: Sequence[str],
    zipf: float,
    packets: int,
    port: int,
    frame_size_bytes: int,
    repetitions: int,
) -> Experiment:
    """The experiment that measures a program: JSON of p4c-bm2-ss, a .spec, or P4 where p4c is installed.

    Raises:
        DataError: a file cannot be read, or the program uses what is not supported; with the place.
        UsageError: it is neither JSON, .spec nor P4, or too large.
        TargetUnavailableError: it is P4, and the compiler is not installed.
    """
    program = _text_of(path)
    # What is wrong with a file is said with its name.
    parsed = parse_program(program, str(path))
    read_program(parsed, ControlPlane() if entries is None else read_control_plane(entries, parsed, p4info))
    parameters: dict[str, object] = {
        "program": program,
        "entries": "" if entries is None else read_text(entries),
        "p4info": "" if p4info is None else read_text(p4info),
        "fill": ",".join(fill),
        "default_fill": default_fill,
        "miss": ",".join(miss),
        "zipf": zipf,
        "packets": packets,
        "port": port,
    }
    name = _NOT_OF_A_NAME.sub("-", path.stem.lower()).strip("-") or "program"
    spec = {
        "spec_version": 1,
        "extends": "base/common",
        "name": f"program/{name}",
        "title": f"The program {path.name}",
        "program": {"component": OWN, "parameters": parameters},
        "traffic": {"frame_size": frame_size_bytes},
        "metrics": {
            "collect": ["cycles_per_packet", "packet_rate", "cost_cycles_per_packet", "baseline_cycles_per_packet"]
        },
        "trials": {"repetitions": repetitions},
    }
    with TemporaryDirectory(prefix="p4perf-") as temporary:
        file = Path(temporary, "spec.yaml")
        file.write_text(spec_yaml(spec))
        try:
            return load_experiment(str(file), parameters_of=component_parameters)
        except DataError as error:
            error.location = error.location or Location(str(path))
            raise


def _text_of(path: Path) -> str:
    if path.suffix in (".json", ".spec"):
        return read_text(path)
    if path.suffix != ".p4":
        raise UsageError(f"{path} is neither P4, nor JSON of p4c-bm2-ss, nor a .spec of p4c-dpdk")
    return compile_p4(path, None, (), ())[1]
