"""Single files of MoonGen: counters as CSV or as printed lines, and histograms of latencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from p4perf.errors import MeasurementError, UsageError
from p4perf.evaluation.imports.base import (
    ImportedTrial,
    ImportedValue,
    Importer,
    ImportOptions,
    LeftOut,
    Place,
    Reading,
    check_file,
    head_of,
    read_plain_text,
)
from p4perf.evaluation.load.histogram import LatencyHistogram, read_moongen_histogram
from p4perf.formats.moongen import DeviceCounter, is_counter_csv, is_counter_log, parse_counters
from p4perf.specs.metrics import PERCENTILES, at_load

UNFINISHED = "unfinished"
_HISTOGRAM = re.compile(r"[0-9.eE+]{1,40},[0-9.eE+]{1,40}")
NO_MEAN = "there are too few rows for a mean without the first second"
NO_ROWS = "is empty: MoonGen ended before its first row"


class MoonGenImporter(Importer):
    """A file of MoonGen. Exit codes play no part: MoonGen ends with 0 though a task of it died."""

    name: ClassVar[str] = "moongen"
    summary: ClassVar[str] = "MoonGen: CSV or printed lines of counters, histogram of latencies"

    @override
    def recognises(self, path: Path) -> bool:
        head = head_of(path)
        return is_counter_csv(head) or is_histogram(head) or is_counter_log(head)

    @override
    def read(self, path: Path, options: ImportOptions) -> Reading:
        facts, repetition, _ = options.facts_of(path.name)
        text = read_plain_text(path)
        if is_histogram(text):
            values, left_out = latency_values(path, path.stem)
            flags: tuple[str, ...] = ()
        else:
            counters = parse_counters(text, str(path))
            if text.strip() and not counters:
                raise Place(path).error("is not a file of MoonGen: it has neither counters nor a histogram")
            values, left_out, flags = counter_values(counters, path, options.device, name="rate")
        trial = ImportedTrial(facts, tuple(values), Place(path), repetition, flags)
        return Reading((trial,) if values else (), tuple(left_out), (path,))


def is_histogram(text: str) -> bool:
    """Whether a text begins as a histogram of MoonGen: lines ``latency,count``, no header."""
    return bool(_HISTOGRAM.fullmatch(text.split("\n", 1)[0]))


def counter_values(
    counters: Sequence[DeviceCounter],
    path: Path,
    device: str = "",
    *,
    name: str,
    metric: str = "packet_rate",
    fraction: float | None = None,
    sent: DeviceCounter | None = None,
) -> tuple[list[ImportedValue], list[LeftOut], tuple[str, ...]]:
    """Rate and loss of the counters of a file, what is left out, and flags.

    With a fraction, the share of the maximum that was offered, the metrics are those at that load.
    """
    if not counters:
        return [], [LeftOut(str(path), NO_ROWS)], ()
    received = one_counter(counters, "RX", path, device)
    sending = sent or one_counter(counters, "TX", path, device)
    if received is None:
        return [], [LeftOut(str(path), "has no counter of received packets")], ()
    values: list[ImportedValue] = []
    left_out: list[LeftOut] = []
    place = Place(path, received.line)
    if received.rate_mpps is None:
        left_out.append(LeftOut(str(place), NO_MEAN))
    else:
        why = "" if fraction is None else "is a rate at a share of the maximum, for which there is no metric"
        values.append(ImportedValue(name, received.rate_mpps, "Mpps", place, "" if why else metric, why))
    if sending is not None:
        loss = "loss_ratio" if fraction is None else at_load("loss_ratio", fraction)
        ratio, why = loss_ratio(sending, received)
        if ratio is None:
            left_out.append(LeftOut(str(place), why))
        else:
            values.append(ImportedValue("loss_ratio", ratio, "lost/sent", place, loss))
    return values, left_out, () if received.finished else (UNFINISHED,)


def loss_ratio(sent: DeviceCounter, received: DeviceCounter) -> tuple[float | None, str]:
    """Lost packets over sent packets; else None and why."""
    if not (sent.finished and received.finished) or sent.packets is None or received.packets is None:
        return None, "the loss is not known: a counter was not finished"
    if not sent.packets:
        return None, "the loss is not known: nothing was sent"
    if received.packets > sent.packets:
        return None, "the loss is not known: more packets came back than were sent"
    return 1 - received.packets / sent.packets, ""


def one_counter(
    counters: Sequence[DeviceCounter], direction: str, path: Path, device: str = ""
) -> DeviceCounter | None:
    of_direction = [counter for counter in counters if counter.direction == direction]
    named = [counter for counter in of_direction if counter.device == device]
    if len(named or of_direction) > 1:
        names = ", ".join(repr(counter.device) for counter in of_direction)
        raise UsageError(
            f"{path} has several {direction} counters: {names}", hint=f"--device {of_direction[0].device!r}"
        )
    return next(iter(named or of_direction), None)


def latency_values(path: Path, name: str, fraction: float | None = None) -> tuple[list[ImportedValue], list[LeftOut]]:
    check_file(path)
    try:
        histogram = read_moongen_histogram(path)
    except MeasurementError as error:
        return [], [LeftOut(str(path), error.message)]
    return histogram_values(histogram, Place(path), name, fraction)


def histogram_values(
    histogram: LatencyHistogram, place: Place, name: str, fraction: float | None = None
) -> tuple[list[ImportedValue], list[LeftOut]]:
    """Statistics and percentiles of a histogram of latencies [us]; percentiles only where the samples support them."""
    percentiles = histogram.percentiles(tuple(PERCENTILES.values()))
    numbers = {key: found for key, p in PERCENTILES.items() if (found := percentiles[p]) is not None}
    numbers |= {"min": histogram.min_us, "mean": histogram.mean_us, "max": histogram.max_us}
    numbers["stddev"] = histogram.stddev_us
    metrics = {key: f"latency_{key}" for key in numbers}
    if fraction is not None:
        metrics = {key: at_load(metric, fraction) for key, metric in metrics.items()}
    values = [ImportedValue(name, number, "us", place, metrics[key]) for key, number in numbers.items()]
    rare = ", ".join(f"p{p:g}" for p in PERCENTILES.values() if percentiles[p] is None)
    return values, [LeftOut(str(place), f"too few samples lie beyond {rare}")] if rare else []
