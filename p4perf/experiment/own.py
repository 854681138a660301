"""Your own P4 program as an experiment of one point, and how it is measured; an operator in C is measured like it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from p4perf.errors import BuildError, DataError, Location, MeasurementError, SpecError, UsageError
from p4perf.experiment.bench import refuse_batches
from p4perf.experiment.operator import SIZES_BYTES, build_operator, operator_experiment
from p4perf.experiment.planning import plan_sweep
from p4perf.experiment.recorder import Progress, SweepOutcome
from p4perf.experiment.session import measure_anew, require_usable
from p4perf.formats.pcap import read_capture
from p4perf.formats.plain import bounded
from p4perf.programs.component import OWN, component_parameters
from p4perf.programs.decisions import Branches
from p4perf.programs.own import OwnParameters, packed, read_own
from p4perf.programs.reading.p4c import compile_p4
from p4perf.programs.reading.shares import read_shares
from p4perf.programs.reading.tree import read_text
from p4perf.results import RunDirectory
from p4perf.results.files import temporary_folder
from p4perf.specs import Experiment, load_experiment
from p4perf.specs.experiment import spec_yaml
from p4perf.targets.base import Target, TrialOptions
from p4perf.targets.dpdk_swx import DpdkSwxTarget
from p4perf.testbeds.base import Testbed

FRAME_SIZE_BYTES = 128
"""FCS included."""

CAPTURE = "packets.pcap"
"""The capture in a run directory."""

_IN_TURN = {"replay": {"pcap": CAPTURE}, "flows": {"distribution": "sequential"}}
"""Packets of a capture come in its order."""

_NOT_OF_A_NAME = re.compile(r"[^a-z0-9]+")


@bounded()
def own_experiment(
    path: Path,
    *,
    entries: Path | None = None,
    p4info: Path | None = None,
    arch: str | None = None,
    std: str | None = None,
    defines: Sequence[str] = (),
    includes: Sequence[Path] = (),
    fill: Sequence[str] = (),
    default_fill: int | None = None,
    miss: Sequence[str] = (),
    zipf: float | None = None,
    shares: Path | None = None,
    packets: int | None = None,
    capture: Path | None = None,
    port: int | None = None,
    frame_size_bytes: int | None = None,
    repetitions: int = 3,
    sizes: Sequence[int] = (),
) -> Experiment:
    """The experiment that measures a program: JSON of p4c-bm2-ss, a specification of SWX, or P4 where p4c is installed.

    What is None is the default of :class:`~p4perf.programs.own.OwnParameters`. Of an operator in C, ``sizes`` are those
    of packets [bytes]; by default some from 64 to 1500.

    Raises:
        DataError: a file cannot be read, or the program uses what is not supported; with the place.
        UsageError: it is none of these, or an option is not for it.
        TargetUnavailableError: it is P4, and the compiler is not installed.
    """
    options = {
        "--entries": entries, "--p4info": p4info, "--fill": fill, "--miss": miss, "--probabilities": shares,
        "--capture": capture, "--include": includes, "--define": defines, "--arch": arch, "--std": std, "--zipf": zipf,
    }  # fmt: skip
    if path.suffix == ".c":
        _refuse(options, f"is for P4 programs, and {path} is none")
        return operator_experiment(path, sizes or SIZES_BYTES, repetitions)
    _refuse({"--sizes": sizes}, f"is for operators in C, and {path} is none")
    if capture is not None:
        made = {name: options[name] for name in ("--miss", "--zipf", "--probabilities")}
        _refuse(made, "is of packets that are made", "leave out --capture")
    program, p4 = _texts_of(path, arch, std, defines, includes)
    files = {"entries": entries, "p4info": p4info, "shares": shares}
    texts = {name: "" if file is None else read_text(file) for name, file in files.items()}
    # What is wrong with them is said with their names.
    read, _ = read_own(program, str(path), (texts["entries"], str(entries)), (texts["p4info"], str(p4info)))
    if shares is not None:
        read_shares(shares, Branches(read).graph())
    shape = {"default_fill": default_fill, "zipf": zipf, "packets": packets, "port": port}
    parameters: dict[str, object] = {
        "program": packed(program, str(path)),
        **{name: packed(text, str(files[name])) for name, text in texts.items() if text},
        **({"p4": packed(p4, str(path))} if p4 else {}),
        "fill": ",".join(fill),
        "miss": ",".join(miss),
        **{name: OwnParameters.model_fields[name].default if n is None else n for name, n in shape.items()},
    }
    name = _NOT_OF_A_NAME.sub("-", path.stem.lower()).strip("-") or "program"
    spec = {
        "spec_version": 1,
        "extends": "base/common",
        "name": f"program/{name}",
        "title": f"The program {path.name}",
        "program": {"component": OWN, "parameters": parameters},
        "traffic": {"frame_size": frame_size_bytes or FRAME_SIZE_BYTES} | (_IN_TURN if capture else {}),
        "metrics": {
            "collect": ["cycles_per_packet", "packet_rate", "cost_cycles_per_packet", "baseline_cycles_per_packet"]
        },
        "trials": {"repetitions": repetitions},
    }
    with temporary_folder() as folder:
        file = folder / "spec.yaml"
        file.write_text(spec_yaml(spec))
        if capture is not None:
            (folder / CAPTURE).write_bytes(read_capture(capture).raw)
        try:
            return replace(load_experiment(str(file), parameters_of=component_parameters), source=str(path), root=None)
        except SpecError as error:
            if error.location is None or error.location.file == str(file):  # that spec is ours, and gone
                error.location = Location(str(path))
            raise
        except DataError as error:
            error.location = error.location or Location(str(path))
            raise


def _refuse(options: Mapping[str, object], why: str, hint: str | None = None) -> None:
    if wrong := next((name for name, given in options.items() if given), None):
        raise UsageError(f"{wrong} {why}", hint=hint)


def _texts_of(
    path: Path, arch: str | None, std: str | None, defines: Sequence[str], includes: Sequence[Path]
) -> tuple[str, str]:
    """JSON of p4c-bm2-ss or a specification of SWX, and the P4 that it was compiled of, if it was compiled here."""
    if path.suffix == ".p4":
        return compile_p4(path, arch, defines, includes, std)[1:]
    if path.suffix not in (".json", ".spec"):
        raise UsageError(
            f"{path} is not a program", hint="JSON of p4c-bm2-ss (.json), P4 (.p4), .spec of SWX, or C (.c)"
        )
    of_text = {"--arch": arch, "--std": std, "-D": defines, "-I": includes}
    _refuse(of_text, f"is for P4 text, and {path} is compiled already")
    return read_text(path), ""


def measure_own(
    path: Path, experiment: Experiment, target: Target, testbed: Testbed, parent: Path, progress: Progress | None = None
) -> tuple[RunDirectory, SweepOutcome]:
    """Measure a program, or an operator in C, of which an experiment was made, as soon as it is known that it builds.

    Raises:
        DataError: the compiler or SWX refuses it; with the line.
        Others as :func:`p4perf.experiment.measure_anew`.
    """
    refuse_batches(testbed, "what is your own is built before it is measured")
    if path.suffix == ".c":
        if target.name != "dpdk-c":
            raise UsageError(f"--target is for P4 programs, and {path} is none")
        plan = plan_sweep(experiment, target, require_usable(target, testbed))
        build_operator(path, plan.points[0].plan.build, testbed)
    else:
        try_specification(path, experiment, target, testbed)
    run, _, outcome = measure_anew(experiment, target, testbed, parent, progress)
    return run, outcome


def try_specification(path: Path, experiment: Experiment, target: Target, testbed: Testbed) -> None:
    """Build a specification of SWX that runs as it is and verify it, so that its errors come before anything else.

    Raises:
        DataError: SWX does not take it; with the line.
        BuildError, MeasurementError: the compiler does not take what SWX generates, or packets have other outcomes.
    """
    if path.suffix == ".json" or not isinstance(target, DpdkSwxTarget):
        return
    facts = require_usable(target, testbed)
    (point,) = plan_sweep(experiment, target, facts).points
    if point.plan.workload.text("swx") is None:
        return
    try:
        testbed.build(point.plan.build)
        with temporary_folder() as folder:
            target.parse(testbed.run(target.trial(point.plan, _SHORT, facts), folder))
    except (BuildError, MeasurementError) as error:
        found = _IN_SPECIFICATION.search(error.message)
        if found is None:
            raise
        where = Location(str(path), int(found[1]) or None if path.suffix == ".spec" else None)
        raise DataError(found[2], location=where) from error


_SHORT = TrialOptions(mode="plain", windows=1, window_us=100, timeout_ms=500, warmup_ms=0)

_IN_SPECIFICATION = re.compile(r"program\.spec:(\d+): (.*)")
