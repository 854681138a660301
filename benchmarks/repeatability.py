"""Does the interval of a point hold what the point costs, whenever it is measured?

A point is measured completely, as ``p4perf run`` does it, again and again over a long time: quiet, beside a busy loop
on one CPU, quiet, beside a busy loop that may run on any. Each measurement is one line of a file, so that it can be
stopped and continued at any time. Of what is in the file it prints how many intervals hold the median of all
measurements, how wide they are, and how far the medians are apart (CV).

``--once`` makes the next measurement only, so that a loop of a shell decides when, and what else waits meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from p4perf.errors import DataError, MeasurementError, TargetUnavailableError
from p4perf.experiment import open_target, open_testbed
from p4perf.experiment.session import measure_run, new_run
from p4perf.programs.component import component_parameters
from p4perf.records import counted
from p4perf.results import Run
from p4perf.results.table import STARTS_DISAGREE, summarise
from p4perf.specs import load_experiment
from p4perf.targets.windows import window_statistics

METRICS = ("cost_cycles_per_packet", "cycles_per_packet", "baseline_cycles_per_packet")
LOADS = ("quiet", "busy on one CPU", "quiet", "busy anywhere")
WANTED = 0.90
"""Share of the intervals that is to hold the median of all."""


def main() -> None:
    """Measure as often as asked, and print what the file holds."""
    options = _options()
    begun = 0.0
    while not options.show and (number := len(recorded(options.output))) < options.count:
        time.sleep(max(0.0, begun + options.every - time.monotonic()))
        begun = time.monotonic()
        load = LOADS[number % len(LOADS)]
        try:
            entry = measured(options, load)
        except TargetUnavailableError as error:
            raise SystemExit(f"skipped: {error}") from error
        except (DataError, MeasurementError) as error:  # no start was accepted
            entry = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load": load, "failure": str(error)}
        append(options.output, entry)
        if options.once:
            return
    every = recorded(options.output)
    done = [entry for entry in every if "failure" not in entry]
    for metric in METRICS:
        print(judged(metric, done))
    flagged = sum(STARTS_DISAGREE in entry["flags"] for entry in done)
    print(f"of {len(every)} measurements {flagged} have starts that disagree, {len(every) - len(done)} failed")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", default="mat/exact-entries", help="experiment of the catalogue")
    parser.add_argument("--set", nargs="*", default=["entries=1000"], help="changes to its spec that leave one point")
    parser.add_argument("--target", default="dpdk-c")
    parser.add_argument("--count", type=int, default=8, help="number of measurements in the file; hours need 50")
    parser.add_argument("--every", type=float, default=0.0, help="seconds from the start of one to that of the next")
    parser.add_argument("--once", action="store_true", help="make the next measurement only")
    parser.add_argument("--show", action="store_true", help="measure nothing, print what the file holds")
    parser.add_argument("--output", type=Path, help="file of the measurements, one a line; without it they are lost")
    options = parser.parse_args()
    options.output = options.output or Path(tempfile.mkdtemp(prefix="p4perf-bench-"), "repeatability.jsonl")
    return options


def measured(options: argparse.Namespace, load: str) -> dict[str, Any]:
    """One complete measurement of the point beside a load: its starts, and the median and interval of each metric."""
    overrides = [(key, value) for key, _, value in (each.partition("=") for each in options.set)]
    experiment = load_experiment(options.experiment, overrides=overrides, parameters_of=component_parameters)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder, beside(load):
        target, testbed = open_target(options.target), open_testbed("local")
        directory, plan = new_run(experiment, target, testbed, Path(folder))
        measure_run(experiment, plan.points, target, testbed, directory)
        run = Run.open(directory.path)
        ratio = run.manifest.gate_ratio
        trials = [entry["record"] for entry in directory.trials(plan.points[0].key) if "record" in entry]
        rows = [summarise(run.table, metric, run.columns).iloc[0] for metric in METRICS]
        if not rows[0]["n"]:
            raise MeasurementError(f"no start was accepted ({rows[0]['flags']})")
        accepted = run.table[run.table["accepted"].astype(bool)]
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "load": load,
            "load_average": os.getloadavg()[0],
            "duration_s": round(time.monotonic() - began, 1),
            "estimates": {
                metric: [row["median"], row["low"], row["high"]] for metric, row in zip(METRICS, rows, strict=True)
            },
            "flags": rows[0]["flags"],
            "starts": {m: accepted[accepted["metric"] == m]["value"].tolist() for m in METRICS},
            "windows": [
                {
                    name: [of.core_cycles, of.standard_error, of.spread, of.counted, of.tried]
                    for name, of in window_statistics(record, ratio).items()
                }
                for record in trials
            ],
        }


@contextlib.contextmanager
def beside(load: str) -> Iterator[None]:
    """A busy loop for the body, where the load says so."""
    if load == "quiet":
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=_burn, args=(load == "busy on one CPU",), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _burn(pinned: bool) -> None:
    if pinned:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    table = list(range(200_000))
    while True:
        table.sort(key=lambda v: v * 7919 % 10007)


def recorded(file: Path) -> list[dict[str, Any]]:
    """The measurements in a file; a line that was cut off is left out."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def append(file: Path, entry: dict[str, Any]) -> None:
    """Add a measurement as one write, on disk when this returns."""
    whole = not file.exists() or not file.stat().st_size or file.read_bytes().endswith(b"\n")
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, (("" if whole else "\n") + json.dumps(entry) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def judged(metric: str, done: list[dict[str, Any]]) -> str:
    """How well the intervals of a metric hold the median of all measurements, as text."""
    estimates = [entry["estimates"][metric] for entry in done]
    if len(estimates) < 2:
        return f"{metric}: {counted(len(estimates), 'measurement')}"
    medians = [value for value, _, _ in estimates]
    middle = statistics.median(medians)
    held = sum(low <= middle <= high for _, low, high in estimates)
    width = statistics.fmean((high - low) / value for value, low, high in estimates)
    cv = statistics.stdev(medians) / statistics.fmean(medians)
    return (
        f"{metric}: median {middle:.2f}, CV {100 * cv:.1f} %, mean width {100 * width:.1f} %; "
        f"{held} of {len(estimates)} intervals hold the median ({100 * held / len(estimates):.0f} %; "
        f"wanted {100 * WANTED:.0f} %)"
    )


if __name__ == "__main__":
    main()
