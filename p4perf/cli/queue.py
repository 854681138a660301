"""Latency and loss at a load from what a packet costs: estimate queue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer
from typer import Option

from p4perf.cli.app import Format, FormatOption, emit, estimate_app, say, share_option
from p4perf.errors import UsageError
from p4perf.records import Document, Record, doc

if TYPE_CHECKING:
    from p4perf.api.papers import QueueEstimate
    from p4perf.evaluation.load.queueing import MeasuredLoad, OperatingPoint


class _QueueRow(Record):
    arrivals: str = doc("arrivals, as they were given")
    rate_mpps: float = doc("offered load", "Mpps")
    interarrival_us: float = doc("mean time between packets", "us")
    moderation_us: float | None = doc("moderation interval; null in poll mode", "us")
    load: float | None = doc("offered work in a unit of time, interrupts or batches included", "ratio")
    utilisation: float | None = doc("share of the time in which the processor works", "ratio")
    loss: float | None = doc("share of the packets that are lost; below 1e-14 it is 0", "lost/sent")
    mean_us: float | None = doc("mean processing time", "us")
    std_us: float | None = doc("its standard deviation", "us")
    p50_us: float | None = doc("median", "us")
    p90_us: float | None = doc("90 % quantile", "us")
    p99_us: float | None = doc("99 % quantile", "us")
    p999_us: float | None = doc("99.9 % quantile", "us")
    mean_batch: float | None = doc("mean number of packets of a batch", "packets")
    simulated_mean_us: float = doc("the same by simulation", "us", optional=True)
    simulated_mean_ci_us: float = doc("half-width of its 95 % interval", "us", optional=True)
    simulated_p50_us: float = doc("median by simulation", "us", optional=True)
    simulated_p99_us: float = doc("99 % quantile by simulation", "us", optional=True)
    simulated_loss: float = doc("loss by simulation", "lost/sent", optional=True)
    simulated_loss_ci: float = doc("half-width of its 95 % interval", "lost/sent", optional=True)
    second_method: float = doc("largest difference of the distribution of the work by the second method", optional=True)
    measured_mean_us: float = doc("measured mean at this load", "us", optional=True)
    measured_mean_us_ci: float | None = doc("half-width of its 95 % interval over the repetitions", "us", optional=True)
    measured_p50_us: float = doc("measured median", "us", optional=True)
    measured_p50_us_ci: float | None = doc("half-width of its 95 % interval", "us", optional=True)
    measured_p99_us: float = doc("measured 99 % quantile", "us", optional=True)
    measured_p99_us_ci: float | None = doc("half-width of its 95 % interval", "us", optional=True)
    measured_loss: float = doc("measured loss", "lost/sent", optional=True)
    measured_loss_ci: float | None = doc("half-width of its 95 % interval", "lost/sent", optional=True)


class QueueDocument(Document, kind="queue"):
    """`p4perf estimate queue`: one row for each kind of arrivals, rate and moderation interval.

    Results are null where the analysis of a trace is not possible, and there is only its simulation.
    """

    mode: str = doc("`moderated` or `poll`")
    profile: str = doc("`exact` or `printed`")
    service: str = doc("service time, as it was given", of="service.text")
    service_us: float = doc("its mean", "us", of="service.mean_us")
    lattice_us: float = doc("step of the lattice", "us", of="step_us")
    overhead_us: float = doc("work of an interrupt", "us")
    buffer_us: float | None = doc("work that the buffer holds; null: it never overflows", "us")
    batch_cost_us: float = doc("poll: work for a batch", "us")
    idle_cost_us: float = doc("poll: additional work of a batch after an empty poll", "us")
    ring: int = doc("poll: packets that the ring holds")
    burst: int = doc("poll: most packets of a batch")
    plots: tuple[str, ...] = doc("paths of the plots")
    rows: tuple[_QueueRow, ...] = doc("")


class _QueueTuneRow(Record):
    arrivals: str = doc("arrivals, as they were given")
    rate_mpps: float = doc("offered load", "Mpps")
    moderation_us: float = doc("the best interval", "us")
    objective_us: float = doc("the objective there", "us")
    mean_us: float = doc("mean processing time there", "us")
    p99_us: float = doc("99 % quantile there", "us")
    loss: float = doc("loss there", "lost/sent")
    load: float = doc("offered work in a unit of time", "ratio")
    tried: int = doc("intervals that were tried")


class QueueTuneDocument(Document, kind="queue.tune"):
    """`p4perf estimate queue --tune`: one row for each kind of arrivals and rate."""

    objective: str = doc("what was made smallest: `mean`, or a percentile")
    max_loss: float = doc("largest loss that was allowed", "lost/sent")
    largest_us: float = doc("largest interval that was tried", "us")
    lattice_us: float = doc("step of the lattice", "us")
    rows: tuple[_QueueTuneRow, ...] = doc("")


Mode = Literal["moderated", "poll"]

_OTHER_MODE: dict[Mode, tuple[str, ...]] = {
    "moderated": ("batch_cost", "idle_cost", "ring", "burst", "empty_poll"),
    "poll": ("moderation", "overhead", "buffer", "profile", "check", "tune", "max_loss"),
}
"""Options that have no meaning in a mode."""


@estimate_app.command()
def queue(
    context: typer.Context,
    service: Annotated[
        str,
        Option(
            help="Service time: det:7us, exponential:7us, gamma:7us,0.4, run:DIR[x=1], model:FILE[x=1], .csv, .hlog."
        ),
    ],
    arrivals: Annotated[
        list[str] | None,
        Option(
            help="poisson (a process), det, geometric, nbin, poisson-pmf, pcap:FILE, spec:SPEC, "
            "a .csv. Repeatable; poisson by default."
        ),
    ] = None,
    rate: Annotated[list[str] | None, Option(help="Offered load, such as 0.5Mpps. Repeatable.")] = None,
    mode: Annotated[Mode, Option(help="Moderated interrupts, or polling.")] = "moderated",
    moderation: Annotated[
        list[str] | None, Option(help="Moderation interval, such as 100us. Repeatable; 100us by default.")
    ] = None,
    overhead: Annotated[str, Option(help="Work of an interrupt.")] = "0us",
    buffer: Annotated[str, Option(help="Size of the buffer: a time of work, a number of packets, or none.")] = "none",
    batch_cost: Annotated[str, Option(help="Poll: work per batch.")] = "0us",
    idle_cost: Annotated[str, Option(help="Poll: additional work of a batch after an empty poll.")] = "0us",
    ring: Annotated[int, Option(min=1, help="Poll: packets in the ring.")] = 1024,
    burst: Annotated[int, Option(min=1, help="Poll: most packets in a batch.")] = 32,
    empty_poll: Annotated[str | None, Option(help="Poll: time of an empty poll; default: one step.")] = None,
    lattice: Annotated[str | None, Option(help="Step of the lattice, such as 1us or 10ns; chosen by default.")] = None,
    frequency: Annotated[str | None, Option(help="Frequency of the core, to convert cycles to time.")] = None,
    profile: Annotated[
        Literal["exact", "printed"], Option(help="exact, or printed for the equations exactly as in the paper.")
    ] = "exact",
    check: Annotated[bool, Option("--check", help="Solve by a second method as well, and compare.")] = False,
    simulate: Annotated[int, Option(min=0, help="Also simulate N packets; 0: none.")] = 0,
    seed: Annotated[int, Option(min=0, help="Seed of the simulation.")] = 1,
    tune: Annotated[
        str | None, Option(help="Search for the moderation interval with the smallest mean, or percentile (p99).")
    ] = None,
    max_loss: Annotated[float, share_option("--max-loss", help="With --tune: largest loss allowed.")] = 0.0,
    measured: Annotated[Path | None, Option(help="A run with latency over load, or a .csv, to compare with.")] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="Folder for the plots.")] = None,
    fmt: FormatOption = Format.TABLE,
) -> None:
    """Predict latency and loss at a load from the cost of a packet."""
    from p4perf.api.papers import estimate_queue

    for name in _OTHER_MODE[mode]:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            other = next(each for each in get_args(Mode) if each != mode)
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} has no meaning with --mode {mode}", hint=f"leave it out, or give --mode {other}"
            )
    found = estimate_queue(
        service, arrivals=arrivals or (), rates=rate or (), mode=mode, moderations=moderation or (), overhead=overhead,
        buffer=buffer, batch_cost=batch_cost, idle_cost=idle_cost, ring=ring, burst=burst, empty_poll=empty_poll,
        lattice=lattice, frequency=frequency, profile=profile, check=check, simulate=simulate, seed=seed, tune=tune,
        max_loss=max_loss, measured=measured,
    )  # fmt: skip
    system, law = found.system, found.system.service
    origin = f" ({law.origin})" if law.origin else ""
    say(f"service time {law.mean_us:.5g} us{origin}, lattice {system.step_us:g} us")
    if tune is not None:
        _tuned(found, tune, max_loss, fmt)
        return
    if any(a.ordered for a in found.arrivals) and not simulate:
        say("note: gaps of a trace are taken as independent; --simulate N keeps their order")
    plots = _plots(output, found.points, found.measured)
    title = f"poll mode, up to {system.burst} of {system.ring} packets"
    if system.mode != "poll":
        held = "" if system.buffer_us is None else f", buffer {system.buffer_us:g} us"
        title = f"moderated interrupts{held}"
    emit(fmt, QueueDocument.read(system, profile=profile, plots=plots, rows=found.rows_of_table()), title=title)
    for plot in plots:
        say(f"plot: {plot}")


def _plots(output: Path | None, points: Sequence[OperatingPoint], compared: Sequence[MeasuredLoad]) -> Sequence[Path]:
    if output is None:
        return ()
    from p4perf.evaluation.plots.queue import queue_figures
    from p4perf.evaluation.plots.style import write_outputs

    figures = {f"queue-{name}": figure for name, figure in queue_figures(points, compared).items()}
    return write_outputs({}, figures, output, output)[1]


def _tuned(estimate: QueueEstimate, objective: str, max_loss: float, fmt: Format) -> None:
    system, most_us = estimate.system, max(estimate.moderations_us)
    asked = {"objective": objective, "max_loss": max_loss, "largest_us": most_us, "lattice_us": system.step_us}
    document = QueueTuneDocument.read(asked, rows=estimate.rows_of_table())
    emit(fmt, document, title=f"moderation interval up to {most_us:g} us, smallest {objective}")
