"""Functions that measure: experiments, programs, both sides of a gate, prices of a machine, claims of papers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, overload

from p4perf.api import arguments as given
from p4perf.api.arguments import Changes, Count, Duration, PathLike, Paths, Share, Texts, checked
from p4perf.api.views import LearntModel, OpenRun, Reproduced, RunList, list_runs
from p4perf.errors import NoVerdictError, UsageError
from p4perf.plugins import DEFAULT_TARGET
from p4perf.results import RunDirectory, find_run
from p4perf.results.campaign import CampaignDirectory
from p4perf.results.files import write_text_atomically
from p4perf.results.names import FOLDER

if TYPE_CHECKING:
    from p4perf.evaluation.papers.baldi2018.calibration import MachineCalibration
    from p4perf.experiment.recorder import Progress, SweepOutcome
    from p4perf.experiment.reproduction import Watcher
    from p4perf.testbeds.base import Testbed


# fmt: off
@overload
def run(
    specs: PathLike, targets: str = ..., *, testbed: str | Testbed = ..., set: Changes = ...,
    points: Count | None = ..., accuracy: Share | None = ..., budget: None = ..., skip_impossible: bool = ...,
    output: PathLike = ..., progress: Progress | None = ...,
) -> OpenRun: ...


@overload
def run(
    specs: Paths, targets: Texts = ..., *, testbed: str | Testbed = ...,
    set: Changes = ..., points: Count | None = ..., accuracy: Share | None = ..., budget: Duration | None = ...,
    skip_impossible: bool = ..., output: PathLike = ..., progress: Progress | None = ...,
) -> OpenRun | RunList: ...
# fmt: on


@checked
def run(
    specs: Paths,
    targets: Texts = DEFAULT_TARGET,
    *,
    testbed: str | Testbed = "local",
    set: Changes = (),
    points: Count | None = None,
    accuracy: Share | None = None,
    budget: Duration | None = None,
    skip_impossible: bool = False,
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> OpenRun | RunList:
    """Measure an experiment on a target and derive its model: the run, with its plots on disk.

    Several experiments or targets, or a budget, make a campaign: the list of its runs.

    >>> import p4perf
    >>> run = p4perf.run("demo/exact-entries", "dpdk-c", set={"entries": [10, 1000]})  # doctest: +SKIP
    >>> run.points()  # a table: median and interval of each point  # doctest: +SKIP

    Args:
        specs: name of an experiment of the catalogue or path of a spec, or several.
        targets: name of a target with its variants (``dpdk-c:acl``), or several.
        testbed: where to measure: ``local``, ``netns``, ``ssh:FILE``, or one that is open.
        set: changes of the spec, such as ``{"entries": 1000, "trials.repetitions": 5}``.
        points: most values that are kept of every swept variable.
        accuracy: measure only the points that are needed for this relative error, such as 0.03 or ``"3%"``.
        budget: time for everything, in seconds or such as ``"30m"``.
        skip_impossible: leave out the points that the target cannot do, with a warning.
        output: folder that gets the run directory, or that of the campaign.
        progress: called with the steps of the measurement.

    Raises:
        UsageError: an argument is wrong, or there is no such experiment, target or testbed.
        SpecError, CapabilityError: the spec is wrong, or beyond what the target can do.
        TestbedError, TargetUnavailableError: the testbed or the target cannot be used.
        MeasurementError: the target computes something wrong.
    """
    from p4perf.experiment import measure_anew, open_target, open_testbed

    wanted = given.share(accuracy, "accuracy")
    if not (isinstance(specs, PathLike) and isinstance(targets, str) and budget is None):
        from p4perf.experiment.campaign import measure_campaign, new_campaign

        if not isinstance(testbed, str):
            raise UsageError("several experiments or targets take the address of a testbed")
        folder = new_campaign(
            given.listed(specs), given.listed(targets), testbed, Path(output),
            budget_s=given.seconds(budget), accuracy=wanted, points=points,
            overrides=given.overrides(set, skip=skip_impossible),
        )  # fmt: skip
        measure_campaign(folder, lambda line: None)
        return list_runs(folder.path)
    experiment = given.experiment(specs, set, points, skip=skip_impossible)
    place = open_testbed(testbed) if isinstance(testbed, str) else testbed
    chosen = open_target(targets)
    directory, plan, outcome = measure_anew(experiment, chosen, place, Path(output), progress, accuracy=wanted)
    _warn(f"{point.label} is left out: {point.reason}" for point in plan.refused)
    return _concluded(directory, outcome)


@checked
def resume(
    run: PathLike = "latest", *, all_points: bool = False, progress: Progress | None = None
) -> OpenRun | RunList | tuple[OpenRun, OpenRun]:
    """Continue an interrupted run or campaign: the run, the runs of the campaign, or both runs of a pair.

    Args:
        run: path or name of a run, or folder of a campaign.
        all_points: complete the sweep of a run that chose its points.

    Raises: as :func:`run`, and DataError where this machine would measure something else than the run began with.
    """
    from p4perf.experiment import resume_run
    from p4perf.experiment.campaign import measure_campaign
    from p4perf.experiment.interleaved import pair_of, resume_pair

    path = find_run(run)
    if CampaignDirectory.is_one(path):
        measure_campaign(CampaignDirectory.open(path), lambda line: None)
        return list_runs(path)
    opened = OpenRun.open(path)
    if pair_of(opened.directory.manifest())[0]:
        old, new = (OpenRun(found) for found, _ in resume_pair(path, progress))
        return old, new
    return _concluded(*resume_run(path, progress, all_points=all_points))


def _concluded(directory: RunDirectory, outcome: SweepOutcome) -> OpenRun:
    """The run with its model, if it has one; with warnings of what it lacks."""
    from p4perf.experiment.evaluate import evaluate_run

    _conclude(outcome)
    measured = OpenRun(directory)
    if not outcome.waiting:
        with suppress(NoVerdictError):
            evaluate_run(measured)
    return measured


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _conclude(outcome: SweepOutcome) -> None:
    """Warn of what a run lacks."""
    _warn(f"{label} failed: {reason}" for label, reason in outcome.failed)
    _warn(f"{label} has no accepted trial" for label in outcome.starved)
    if outcome.waiting:
        _warn([f"waiting: {outcome.waiting}"])


@checked
def measure(
    program: PathLike,
    target: str = DEFAULT_TARGET,
    *,
    entries: PathLike | None = None,
    p4info: PathLike | None = None,
    arch: str | None = None,
    std: str | None = None,
    defines: Changes = (),
    includes: Paths = (),
    fill: Changes = (),
    default_fill: int = 64,
    miss: Changes = (),
    zipf: float = 0.0,
    probabilities: PathLike | None = None,
    packets: Count = 256,
    capture: PathLike | None = None,
    port: int = 0,
    frame_size: Count = 128,
    sizes: Sequence[int] = (),
    repetitions: Count = 3,
    testbed: str | Testbed = "local",
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> OpenRun:
    """Measure a program of your own on a target: a run with one point, or of an operator in C one for each size.

    Programs are verified packet by packet before they are measured: what the target does with packets that take all
    paths of the program is compared with the reference interpreter.

    >>> import p4perf
    >>> run = p4perf.measure("router.json", "dpdk-c", fill={"ipv4_lpm": 1000})  # doctest: +SKIP
    >>> run.points("cycles_per_packet")  # doctest: +SKIP

    Args:
        program: JSON of p4c-bm2-ss, a specification of SWX, P4 where p4c is installed, or an operator in C.
        target: name of a target with its variants.
        entries, p4info: file of table entries, and P4Info as text for entries with numeric ids.
        arch, std, defines, includes: of a .p4: architecture (by default from its include), ``p4-14`` or ``p4-16``,
            macros such as ``{"SIZE": 64}``, and folders of include files.
        fill: entries that are made up, such as ``{"ipv4_lpm": 1000}``; other tables without entries get
            ``default_fill``.
        miss: share of packets that miss in each table, such as ``{"ipv4_lpm": 0.1}``.
        zipf: exponent of the popularity of entries; 0 is uniform.
        probabilities: YAML file of branch probabilities and traffic shares.
        packets: number of different packets; or ``capture``, a pcap file of them.
        port: ingress port of all packets.
        frame_size: with FCS [bytes].
        sizes: packet sizes of an operator in C [bytes]; by default some from 64 to 1500.
        repetitions: starts of the process.
        testbed: ``local``, ``ssh:FILE``, or one that is open.
        output: folder that gets the run directory.

    Raises:
        UsageError: an argument is wrong, or there is no such target or testbed.
        DataError: a file cannot be read, or the program uses what is not supported; with the place.
        CapabilityError: the target cannot run the program.
        TestbedError, TargetUnavailableError: the testbed or the target cannot be used.
        MeasurementError: the target computes something wrong.
    """
    from p4perf.experiment import open_target, open_testbed
    from p4perf.experiment.own import measure_own, own_experiment

    path, place = Path(program), open_testbed(testbed) if isinstance(testbed, str) else testbed
    experiment = own_experiment(
        path, entries=given.path(entries), p4info=given.path(p4info), arch=arch, std=std, defines=given.texts(defines),
        includes=list(map(Path, given.listed(includes))), fill=given.texts(fill), default_fill=default_fill,
        miss=given.texts(miss), zipf=zipf, shares=given.path(probabilities), packets=packets,
        capture=given.path(capture), port=port, frame_size_bytes=frame_size, repetitions=repetitions, sizes=sizes,
    )  # fmt: skip
    measured, outcome = measure_own(path, experiment, open_target(target), place, Path(output), progress)
    _conclude(outcome)
    return OpenRun(measured)


@checked
def measure_sides(
    spec: PathLike,
    baseline: PathLike | None = None,
    *,
    target: str = DEFAULT_TARGET,
    baseline_target: str | None = None,
    set: Changes = (),
    baseline_set: Changes = (),
    baseline_env: Mapping[str, str] | None = None,
    baseline_tree: PathLike | None = None,
    points: Count | None = None,
    pairs: Count | None = None,
    testbed: str | Testbed = "local",
    output: PathLike = FOLDER,
    progress: Progress | None = None,
) -> tuple[OpenRun, OpenRun]:
    """Measure a spec or program in turns with its baseline, for a gate without drift: the baseline and the new run.

    >>> import p4perf
    >>> old, new = p4perf.api.measure_sides("demo/exact-entries", baseline_target="dpdk-c:acl")  # doctest: +SKIP
    >>> p4perf.gate(new, old).verdict  # doctest: +SKIP

    Args:
        baseline: another spec or program.
        set: changes of the spec on both sides; ``baseline_set`` only on that of the baseline.
        baseline_env: variables such as ``{"CC": "gcc-12"}``.
        baseline_tree: checkout of p4perf that generates the baseline.
        pairs: pairs of starts of each point; by default as many as ``p4perf gate --interleaved`` begins with.

    Raises:
        As :func:`run`.
    """
    from p4perf.experiment import open_testbed
    from p4perf.experiment.interleaved import PAIRS
    from p4perf.experiment.interleaved import measure_sides as measure_both

    place = open_testbed(testbed) if isinstance(testbed, str) else testbed
    (old, first), (new, second) = measure_both(
        str(spec), None if baseline is None else str(baseline), target, baseline_target, place, Path(output),
        overrides=given.pairs(set), baseline_overrides=given.pairs(baseline_set, "--baseline-set"),
        baseline_environment=baseline_env, baseline_tree=given.path(baseline_tree), points=points,
        pairs=pairs or PAIRS, progress=progress,
    )  # fmt: skip
    for outcome in (first, second):
        _conclude(outcome)
    return OpenRun(old), OpenRun(new)


@checked
def learn(
    runs: Paths = (),
    target: str | None = None,
    *,
    testbed: str = "local",
    folder: PathLike = FOLDER,
    resume: bool = False,
    catalogue: PathLike | None = None,
    quick: bool = False,
    budget: Duration | None = None,
    set: Changes = (),
    output: PathLike | None = None,
    told: Callable[[str], object] = lambda text: None,
    reached: Callable[[str, float], object] = lambda what, left_s: None,
) -> LearntModel:
    """Learn what programs cost on a target of this machine: the cost model, for :func:`predict`.

    Args:
        runs: runs to learn from; without any, fixtures are measured on ``target`` for a few minutes.
        folder: gets the runs of the fixtures; with ``resume``, the newest ones there are continued.
        catalogue: folder with runs of the catalogue on that target, to learn prices anew.
        quick: measure few fixtures, and take the rest from the model that ships.
        budget: the same in this time for measuring, in seconds or such as ``"1m"``.
        output: file for the model.

    Raises:
        UsageError: there are neither runs nor a target, or no such target.
        NoVerdictError: the runs say too little.
    """
    from p4perf.experiment.learning import QUICK_S
    from p4perf.experiment.learning import learn as learn_model

    limit_s = given.seconds(budget)
    if limit_s is None:
        limit_s = QUICK_S if quick else math.inf
    paths = [find_run(path, Path(folder)) for path in given.listed(runs)]
    model = LearntModel.of(
        learn_model(
            paths, target, testbed, Path(folder), resume=resume, catalogue=given.path(catalogue),
            limit_s=limit_s, overrides=given.pairs(set), told=told, reached=reached,
        )
    )  # fmt: skip
    if output is not None:
        model.save(Path(output))
    return model


@checked
def learn_operations(
    name: str = "",
    *,
    testbed: str = "local",
    starts: Count = 3,
    plain: bool = False,
    output: PathLike | None = None,
    told: Callable[[str], object] = lambda text: None,
) -> MachineCalibration:
    """Learn what elementary operations cost on a machine: its description, for ``p4perf estimate eo``.

    Args:
        name: of the machine; by default that of its processor.
        starts: accepted starts of each benchmark.
        plain: on an isolated core: without the gate and without real-time bursts.
        output: YAML file for the description.

    Raises:
        TestbedError, TargetUnavailableError: the machine cannot be used.
        MeasurementError: a benchmark has no accepted start.
    """
    from p4perf.evaluation.papers.baldi2018.files import parse_hardware
    from p4perf.experiment import open_testbed
    from p4perf.experiment.operations import calibrate

    mode = "plain" if plain else "gated"
    found = calibrate(open_testbed(testbed), name=name, starts=starts, mode=mode, told=told)
    text = found.text()
    parse_hardware(text.encode(), str(output or "the description"))
    if output is not None:
        write_text_atomically(Path(output), text)
    return found


@checked
def reproduce(
    claims: Texts = (),
    *,
    all: bool = False,
    quick: bool = False,
    only: Texts = (),
    testbed: str = "local",
    budget: Duration | None = None,
    output: PathLike | None = None,
    watcher: Watcher | None = None,
) -> Reproduced:
    """Compute or measure again what published papers claim, and write a report.

    >>> import p4perf
    >>> p4perf.reproduce("scholz2021", only="analytic").to_frame()  # a row for each claim  # doctest: +SKIP

    Args:
        claims: papers (``scholz2021``), their figures and tables (``scholz2021:fig2``), single claims, or files.
        all: the claims of all papers, which takes hours; other choices alone are of all papers, too.
        quick: measure few points.
        only: kinds of claims: ``analytic``, ``published``, ``measured``.
        budget: time in seconds or such as ``"5m"``; claims that do not fit are not run.
        testbed: where to measure.
        output: folder of a new or an earlier reproduction; by default a new one.
        watcher: called with the claims that are checked.

    Raises:
        UsageError: nothing is chosen, there is no such claim, or the folder has something else in it.
        TestbedError: the testbed cannot be used.
    """
    from p4perf.evaluation.papers import chosen_claims, shipped_papers
    from p4perf.experiment.recorder import Silent
    from p4perf.experiment.reproduction import Reproduction, ReproductionFolder, exit_code

    names, kinds, limit_s = given.listed(claims), given.listed(only), given.seconds(budget)
    if names and all:
        raise UsageError("name claims or write --all, not both")
    if not (names or all or quick or kinds or output or budget):
        known = ", ".join(paper.key for paper in shipped_papers())
        raise UsageError("no claim is chosen", hint=f"name papers ({known}), or choose --all")
    chosen = chosen_claims(names, kinds)
    folder = ReproductionFolder.at(given.path(output), datetime.now(UTC))
    session = Reproduction(
        folder, watcher or Silent(), testbed=testbed, quick=quick, budget_s=math.inf if limit_s is None else limit_s
    )
    findings = session.check(chosen)
    code = exit_code(findings)
    papers = tuple({paper.key: paper for paper, _ in chosen}.values())
    return Reproduced(findings, papers, folder.path, code, folder.report(findings, papers, code))
