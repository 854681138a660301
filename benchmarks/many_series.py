"""How many series does p4perf fit in a second: in one process, in one for each processor, on a local Dask cluster?

Everybody fits the same series, one after the other in one run; that the models are the same is checked. Printed:

series/s  of the whole run, with starting and ending the processes (the cluster is there before)
after     the same from the first result on: what a run of thousands of series comes to
speed-up  ``after`` as a multiple of that of one process with one thread
CPU ms    processor time for a series, with everything that was started for it

A machine that is busy with something else shows no speed-up: look at the load first. The processor time tells what
sending series to other processes costs even then.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.engine import threads_available
from p4perf.evaluation.fitting.many import NamedSamples, fit_many
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.results.table import Samples


@dataclass(frozen=True)
class Row:
    """One way to fit all series.

    Args:
        name: what the table calls it.
        whole_s: from the call to the last result.
        after_s: from the first result to the last.
        cpu_s: processor time of this process and of those that it started, or of the workers of a cluster.
        models: what came out.
    """

    name: str
    whole_s: float
    after_s: float
    cpu_s: float
    models: tuple[str, ...]


def series(count: int, points: int) -> Iterator[NamedSamples]:
    """Series of one to three segments with one percent of noise."""
    for k in range(count):
        made = piecewise_series(k + 1, points, 1 + k % 3)
        yield NamedSamples({"series": str(k)}, Samples.from_arrays(made.x, made.y))


def run(name: str, given: list[NamedSamples], options: FitOptions, **where: Any) -> Row:
    """Fit all series."""
    models = []
    cpu_s = used_cpu(where.get("scheduler"))
    begin = first = time.perf_counter()
    for result in fit_many(given, options, **where):
        assert result.model is not None, result.failure
        models.append(result.model.to_json())
        if len(models) == 1:
            first = time.perf_counter()
    end = time.perf_counter()
    return Row(name, end - begin, end - first, used_cpu(where.get("scheduler")) - cpu_s, tuple(models))


def used_cpu(scheduler: str | None) -> float:
    """Processor time so far in seconds: of this process and those that it started and that ended, and of a cluster."""
    total = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    if scheduler is not None:
        from distributed import Client

        with Client(scheduler, set_as_default=False) as client:
            total += sum(client.run(time.process_time).values())
    return total


@contextlib.contextmanager
def local_cluster(workers: int) -> Iterator[str | None]:
    """Address of a cluster of processes; None if Dask is not installed."""
    try:
        from distributed import LocalCluster
    except ImportError:
        yield None
        return
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def main() -> None:
    """Fit, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=200, help="number of series")
    parser.add_argument("--points", type=int, default=65, help="samples of each")
    parser.add_argument("--resamples", type=int, default=200, help="bootstrap resamples; 0 for none")
    wanted = parser.parse_args()
    processors = threads_available()
    given = list(series(wanted.series, wanted.points))
    options = FitOptions(resamples=wanted.resamples)
    load = os.getloadavg()[0]
    print(f"{wanted.series} series of {wanted.points} samples, {processors} processors, load {load:.1f}\n")
    rows = [
        run("1 process, 1 thread", given, FitOptions(resamples=wanted.resamples, threads=1), processes=1),
        run(f"1 process, {processors} threads", given, options, processes=1),
        run(f"{processors} processes", given, options, processes=processors),
    ]
    with local_cluster(processors) as scheduler:
        if scheduler is None:
            print("no cluster: pip install distributed")
        else:
            rows.append(run(f"cluster, {processors} workers", given, options, scheduler=scheduler))
    assert all(row.models == rows[0].models for row in rows), "the models differ"
    print(f"{'':24} {'series/s':>9} {'after':>9} {'speed-up':>9} {'CPU ms':>9}")
    for row in rows:
        rest = wanted.series - 1
        print(
            f"{row.name:24} {wanted.series / row.whole_s:9.2f} {rest / row.after_s:9.2f} "
            f"{rows[0].after_s / row.after_s:8.2f}x {1000 * row.cpu_s / wanted.series:9.1f}"
        )


if __name__ == "__main__":
    main()
