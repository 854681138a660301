"""JSON of FD.io CSIT: the model of a test case (unified test interface), one file for each test.

Rates are sums of both directions. NDR and PDR are lower bounds; the loss of PDR is 0.5 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from p4perf.errors import DataError, MeasurementError, UsageError
from p4perf.evaluation.imports.base import Importer, LeftOut, Place, Reading, Trial, Value
from p4perf.evaluation.imports.files import files_below, head_of, read_json
from p4perf.evaluation.imports.json_values import Node, checked_number
from p4perf.evaluation.imports.moongen import histogram_values
from p4perf.evaluation.imports.options import Fact, ImportOptions
from p4perf.evaluation.latency.hdr import decode
from p4perf.evaluation.latency.histogram import LatencyHistogram
from p4perf.specs.metrics import at_load

MAJOR = "1"
"""Major version of the model that is read."""

_TEST = re.compile(
    r"(?P<size>[0-9]+)b-(?:(?P<threads>[0-9]+)t)?(?P<cores>[0-9]+)c-(?P<rest>.+?)(?:-(?:ndrpdr|mrr|soak|reconf))?$"
)
_NIC = re.compile(r"([^-]+)-[0-9a-z_]+b-")
_PERCENTILE = re.compile(r"latency_p[0-9]")
_LOADS = {"pdr_10": 0.1, "pdr_50": 0.5, "pdr_90": 0.9}


class CsitImporter(Importer):
    """A file of a test case, or a folder with such files (``*.json``) at any depth."""

    name: ClassVar[str] = "csit"
    summary: ClassVar[str] = "FD.io CSIT: test cases with NDR and PDR, MRR, and latencies"

    def recognises(self, path: Path) -> bool:
        """Whether it is a test case, or a folder of them."""
        if path.is_dir():
            first = next(iter(sorted(path.rglob("*.json"))[:1]), None)
            return first is not None and self.recognises(first)
        if not head_of(path).lstrip().startswith("{"):
            return False
        try:
            content = read_json(path)
        except DataError:
            return False
        return "test_id" in content and "result" in content

    def read(self, path: Path, options: ImportOptions) -> Reading:
        """The trials of every test case that passed.

        Raises:
            DataError: a file is damaged or of another version of the model; with the key.
            UsageError: the name of a test does not fit.
        """
        files = [p for p in files_below(path) if p.suffix == ".json"] if path.is_dir() else [path]
        if not files:
            raise Place(path).error("has no JSON files")
        trials: list[Trial] = []
        left_out: list[LeftOut] = []
        used, duts = [], set()
        for file in files:
            try:
                root = Node(read_json(file), file)
                found = list(_trials(root, options, left_out))
            except DataError as error:
                if not options.skip_damaged:
                    raise
                left_out.append(LeftOut(str(file), f"is damaged: {error.message}"))
                continue
            if found:
                used.append(file)
                duts.add(root.text("dut_type").lower())
            trials += found
        return Reading(tuple(trials), tuple(left_out), tuple(used), duts.pop() if len(duts) == 1 else "", "csit")


def _trials(root: Node, options: ImportOptions, left_out: list[LeftOut]) -> Iterator[Trial]:
    version = root.text("version")
    if version.split(".")[0] != MAJOR:
        raise root.place("version").error(f"is {version!r:.40}, but versions {MAJOR}.x of the model are read")
    place = root.place("result")
    if root.get("passed") is not True:
        message = root.get("message")
        left_out.append(LeftOut(str(root.path), f"the test failed: {message!s:.200}".replace("\n", " ")))
        return
    facts, repetition = _facts(root, options)
    result = root.child("result")
    kind = result.text("type")
    if kind == "ndrpdr":
        values = [*_bound(result, "ndr", left_out), *_bound(result, "pdr", left_out), *_latency(result, left_out)]
        if values:
            yield Trial(facts, tuple(values), place, repetition)
    elif kind == "mrr":
        rate = result.child("receive_rate").child("rate")
        numbers = rate.get("values")
        if not isinstance(numbers, list) or not numbers:
            raise rate.place("values").error("is not a list of numbers")
        if not _is_packet_rate(rate, left_out):
            return
        for index, number in enumerate(numbers):
            where = rate.place(f"values[{index}]")
            value = Value("receive_rate", checked_number(number, where), "pps", where, "receive_rate")
            yield Trial(facts, (value,), where, repetition if len(numbers) == 1 else None)
    else:
        left_out.append(LeftOut(str(place), f"there is no metric for results of the type {kind!r:.40}"))


def _bound(result: Node, name: str, left_out: list[LeftOut]) -> Iterator[Value]:
    rate = result.child(name).child("lower").child("rate")
    if _is_packet_rate(rate, left_out):
        yield Value(f"{name}.lower", rate.number("value"), "pps", rate.place("value"), f"throughput_{name}")


def _is_packet_rate(rate: Node, left_out: list[LeftOut]) -> bool:
    unit = rate.text("unit")
    if unit != "pps":
        left_out.append(LeftOut(str(rate.place("unit")), f"is {unit!r:.20}, not a rate of packets"))
    return unit == "pps"


def _latency(result: Node, left_out: list[LeftOut]) -> Iterator[Value]:
    """Smallest, mean and largest latency forward and its percentiles, at shares of the PDR."""
    if result.get("latency_reverse") is not None:
        left_out.append(LeftOut(str(result.place("latency_reverse")), "is the other direction of the same trial"))
    forward = result.maybe("latency_forward")
    if forward is None:
        return
    left_out.append(LeftOut(str(forward.place("pdr_0")), "is at a fixed small load, not at a share of the maximum"))
    for name, share in _LOADS.items():
        node = forward.maybe(name)
        if node is None or not node.number("max"):
            left_out.append(LeftOut(str(forward.place(name)), "no latency was sampled"))
            continue
        unit = node.text("unit")
        for key, statistic in (("min", "min"), ("avg", "mean"), ("max", "max")):
            metric = at_load(f"latency_{statistic}", share)
            yield Value(f"latency_forward.{name}.{key}", node.number(key), unit, node.place(key), metric)
        yield from _percentiles(node, name, share, left_out)


def _percentiles(node: Node, name: str, share: float, left_out: list[LeftOut]) -> Iterator[Value]:
    """Percentiles of a histogram whose values are microseconds; a damaged one is left out, for CSIT lacks some."""
    place = node.place("hdrh")
    try:
        layout, counts = decode(node.text("hdrh"))
        high_us = [high for _, high in layout.edges([index for index, _ in counts])]
        histogram = LatencyHistogram.from_values([1000.0 * us for us in high_us], [count for _, count in counts])
    except (DataError, MeasurementError, UsageError) as error:
        left_out.append(LeftOut(str(place), error.message))
        return
    values, rare = histogram_values(histogram, place, f"latency_forward.{name}.hdrh", share)
    left_out += rare
    yield from (value for value in values if _PERCENTILE.match(value.metric))


def _facts(root: Node, options: ImportOptions) -> tuple[dict[str, Fact], int | None]:
    """Frame size, cores, threads, network card, test, device and its version."""
    name = root.text("test_id").rsplit(".", 1)[-1]
    try:
        told, repetition, rest = options.facts_of(name)
    except UsageError as error:
        raise UsageError(f"{root.path}: {error.message}", hint=error.hint) from error
    facts: dict[str, Fact] = {}
    if match := _TEST.search(name):
        facts = {"frame_size": int(match["size"]), "cores": int(match["cores"])}
        if match["threads"]:
            facts["threads"] = int(match["threads"])
    if match := _NIC.match(root.text("test_name_long")):
        facts["nic"] = match[1]
    short = _TEST.search(rest)
    facts["test"] = short["rest"] if short else rest
    facts |= {"dut": root.text("dut_type").lower(), "dut_version": root.text("dut_version")}
    return {**facts, **told}, repetition
