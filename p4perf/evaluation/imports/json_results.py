"""JSON of FD.io CSIT (unified test interface) and of TRex in stateless mode.

Rates are sums of both directions. NDR and PDR are lower bounds; the loss of PDR is 0.5 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override

from p4perf.errors import DataError, MeasurementError, UsageError
from p4perf.evaluation.imports import base
from p4perf.evaluation.imports.moongen import histogram_values
from p4perf.evaluation.load.histogram import LatencyHistogram, decode
from p4perf.models.component import Reader
from p4perf.specs.metrics import at_load


class JsonNode(Reader):
    """An object of a JSON file; all its numbers are zero at least."""

    def place(self, *names: str) -> base.Place:
        return base.Place(Path(self.file), None, (self.path + ".".join(names)).removesuffix("."))

    def get(self, name: str) -> Any:
        return self.data.get(name)

    def maybe(self, name: str) -> Self | None:
        """An object below; None if there is nothing."""
        return None if self.get(name) is None else self.child(name)

    @override
    def value(self, key: str, value: object, hint: Any) -> Any:
        found = super().value(key, value, hint)
        if hint is float and found < 0:
            self.fail(key, f"must be zero or more, not {value!r}")
        return found


MAJOR = "1"
"""Major version of the model that is read."""

_TEST = re.compile(
    r"(?P<size>[0-9]+)b-(?:(?P<threads>[0-9]+)t)?(?P<cores>[0-9]+)c-(?P<rest>.+?)(?:-(?:ndrpdr|mrr|soak|reconf))?$"
)
_NIC = re.compile(r"([^-]+)-[0-9a-z_]+b-")
_PERCENTILE = re.compile(r"latency_p[0-9]")
_LOADS = {"pdr_10": 0.1, "pdr_50": 0.5, "pdr_90": 0.9}


class CsitImporter(base.Importer):
    """A file of a test case, or a folder with such files (``*.json``) at any depth."""

    name: ClassVar[str] = "csit"
    summary: ClassVar[str] = "FD.io CSIT: test cases with NDR and PDR, MRR, and latencies"

    @override
    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            first = next(iter(sorted(path.rglob("*.json"))[:1]), None)
            return first is not None and self.recognises(first)
        return {"test_id", "result"} <= base.json_of(path).keys()

    @override
    def read(self, path: Path, options: base.ImportOptions) -> base.Reading:
        files = [p for p in base.files_below(path) if p.suffix == ".json"] if path.is_dir() else [path]
        if not files:
            raise base.Place(path).error("has no JSON files")
        trials: list[base.ImportedTrial] = []
        left_out: list[base.LeftOut] = []
        used, duts = [], set()
        for file in files:
            try:
                root = JsonNode(base.read_json(file), str(file))
                found = list(_trials(root, options, left_out))
            except DataError as error:
                if not options.skip_damaged:
                    raise
                left_out.append(base.LeftOut(str(file), f"is damaged: {error.message}"))
                continue
            if found:
                used.append(file)
                duts.add(root.string("dut_type").lower())
            trials += found
        return base.Reading(tuple(trials), tuple(left_out), tuple(used), duts.pop() if len(duts) == 1 else "", "csit")


def _trials(root: JsonNode, options: base.ImportOptions, left_out: list[base.LeftOut]) -> Iterator[base.ImportedTrial]:
    version = root.string("version")
    if version.split(".")[0] != MAJOR:
        raise root.place("version").error(f"is {version!r:.40}, but versions {MAJOR}.x of the model are read")
    place = root.place("result")
    if root.get("passed") is not True:
        message = root.get("message")
        left_out.append(base.LeftOut(root.file, f"the test failed: {message!s:.200}".replace("\n", " ")))
        return
    facts, repetition = _facts(root, options)
    result = root.child("result")
    kind = result.string("type")
    if kind == "ndrpdr":
        values = [*_bound(result, "ndr", left_out), *_bound(result, "pdr", left_out), *_latency(result, left_out)]
        if values:
            yield base.ImportedTrial(facts, tuple(values), place, repetition)
    elif kind == "mrr":
        rate = result.child("receive_rate").child("rate")
        numbers = rate.get("values")
        if not isinstance(numbers, list) or not numbers:
            raise rate.place("values").error("is not a list of numbers")
        if not _is_packet_rate(rate, left_out):
            return
        for index, number in enumerate(numbers):
            where = rate.place(f"values[{index}]")
            rate_pps = rate.value(f"values[{index}]", number, float)
            value = base.ImportedValue("receive_rate", rate_pps, "pps", where, "receive_rate")
            yield base.ImportedTrial(facts, (value,), where, repetition if len(numbers) == 1 else None)
    else:
        left_out.append(base.LeftOut(str(place), f"there is no metric for results of the type {kind!r:.40}"))


def _bound(result: JsonNode, name: str, left_out: list[base.LeftOut]) -> Iterator[base.ImportedValue]:
    rate = result.child(name).child("lower").child("rate")
    if _is_packet_rate(rate, left_out):
        yield base.ImportedValue(
            f"{name}.lower", rate.number("value"), "pps", rate.place("value"), f"throughput_{name}"
        )


def _is_packet_rate(rate: JsonNode, left_out: list[base.LeftOut]) -> bool:
    unit = rate.string("unit")
    if unit != "pps":
        left_out.append(base.LeftOut(str(rate.place("unit")), f"is {unit!r:.20}, not a rate of packets"))
    return unit == "pps"


def _latency(result: JsonNode, left_out: list[base.LeftOut]) -> Iterator[base.ImportedValue]:
    """Smallest, mean and largest latency forward and its percentiles, at shares of the PDR."""
    if result.get("latency_reverse") is not None:
        left_out.append(base.LeftOut(str(result.place("latency_reverse")), "is the other direction of the same trial"))
    forward = result.maybe("latency_forward")
    if forward is None:
        return
    left_out.append(
        base.LeftOut(str(forward.place("pdr_0")), "is at a fixed small load, not at a share of the maximum")
    )
    for name, share in _LOADS.items():
        node = forward.maybe(name)
        if node is None or not node.number("max"):
            left_out.append(base.LeftOut(str(forward.place(name)), "no latency was sampled"))
            continue
        unit = node.string("unit")
        for key, statistic in (("min", "min"), ("avg", "mean"), ("max", "max")):
            metric = at_load(f"latency_{statistic}", share)
            yield base.ImportedValue(f"latency_forward.{name}.{key}", node.number(key), unit, node.place(key), metric)
        yield from _percentiles(node, name, share, left_out)


def _percentiles(node: JsonNode, name: str, share: float, left_out: list[base.LeftOut]) -> Iterator[base.ImportedValue]:
    """Percentiles of a histogram whose values are microseconds; a damaged one is left out, for CSIT lacks some."""
    place = node.place("hdrh")
    try:
        layout, counts = decode(node.string("hdrh"))
        high_us = [high for _, high in layout.edges([index for index, _ in counts])]
        histogram = LatencyHistogram.from_values([1000.0 * us for us in high_us], [count for _, count in counts])
    except (DataError, MeasurementError, UsageError) as error:
        left_out.append(base.LeftOut(str(place), error.message))
        return
    values, rare, _ = histogram_values(histogram, place, f"latency_forward.{name}.hdrh", share)
    left_out += rare
    yield from (value for value in values if _PERCENTILE.match(value.metric))


def _facts(root: JsonNode, options: base.ImportOptions) -> tuple[dict[str, base.Fact], int | None]:
    """Frame size, cores, threads, network card, test, device and its version."""
    name = root.string("test_id").rsplit(".", 1)[-1]
    try:
        told, repetition, rest = options.facts_of(name)
    except UsageError as error:
        raise UsageError(f"{root.file}: {error.message}", hint=error.hint) from error
    facts: dict[str, base.Fact] = {}
    if match := _TEST.search(name):
        facts = {"frame_size": int(match["size"]), "cores": int(match["cores"])}
        if match["threads"]:
            facts["threads"] = int(match["threads"])
    if match := _NIC.match(root.string("test_name_long")):
        facts["nic"] = match[1]
    short = _TEST.search(rest)
    facts["test"] = short["rest"] if short else rest
    facts |= {"dut": root.string("dut_type").lower(), "dut_version": root.string("dut_version")}
    return {**facts, **told}, repetition


PDR_PERCENT = 0.5
"""Loss at which a throughput is ``throughput_pdr``, in per cent of the sent packets."""

FILTERED = "latency.average is smoothed by TRex and no mean; its histogram has buckets too wide for percentiles"


class TrexImporter(base.Importer):
    """What ``get_stats()`` of a client returns, or what ``ndr_bench`` writes, as a JSON file."""

    name: ClassVar[str] = "trex"
    summary: ClassVar[str] = "TRex: statistics of the stateless mode, results of ndr_bench"

    @override
    def recognises(self, path: Path) -> bool:
        content = base.json_of(path)
        return _is_bench(content) or _is_statistics(content)

    @override
    def read(self, path: Path, options: base.ImportOptions) -> base.Reading:
        """One trial. Facts are those of the file name, and of a benchmark its title, cores and tunables."""
        facts, repetition, _ = options.facts_of(path.name)
        root = JsonNode(base.read_json(path), str(path))
        left_out: list[base.LeftOut] = []
        if _is_bench(root.data):
            facts = {**_facts_of_bench(root.child("config")), **facts}
            values = _bench(root, left_out)
        elif _is_statistics(root.data):
            values = _statistics(root, left_out)
        else:
            message = "is not JSON of TRex: it has neither total and global, nor results and config"
            hint = "json.dump(client.get_stats(), file), or stl_ndr_bench_tool.py --output"
            raise base.Place(path).error(message, hint=hint)
        trials = (base.ImportedTrial(facts, tuple(values), base.Place(path), repetition),) if values else ()
        return base.Reading(trials, tuple(left_out), (path,))


def _is_bench(content: Mapping[str, object]) -> bool:
    results = content.get("results")
    return isinstance(content.get("config"), Mapping) and isinstance(results, Mapping) and "tx_pps" in results


def _is_statistics(content: Mapping[str, object]) -> bool:
    total = content.get("total")
    return isinstance(total, Mapping) and "opackets" in total


def _facts_of_bench(config: JsonNode) -> dict[str, base.Fact]:
    facts: dict[str, base.Fact] = {}
    given = {**(config.get("tunables") or {}), "cores": config.get("cores"), "title": config.get("title")}
    for name, value in given.items():
        if isinstance(value, str):
            facts[name] = base.fact(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            facts[name] = base.tidy_number(value)
    return facts


def _bench(root: JsonNode, left_out: list[base.LeftOut]) -> list[base.ImportedValue]:
    """Sent and received rate and loss at the highest load that the benchmark accepted."""
    results, config = root.child("results"), root.child("config")
    accepted_percent, loss_percent = config.number("pdr"), results.number("drop_rate_percentage")
    if loss_percent > accepted_percent:
        why = f"the benchmark found no load: {loss_percent:g} % are lost at the last, {accepted_percent:g} % may be"
        left_out.append(base.LeftOut(str(results.place("drop_rate_percentage")), why))
        return []
    metric = {0.0: "throughput_ndr", PDR_PERCENT: "throughput_pdr"}.get(accepted_percent, "")
    why = f"up to {accepted_percent:g} % were lost: neither NDR (0 %) nor PDR ({PDR_PERCENT:g} %)"
    sent, received = results.place("tx_pps"), results.place("rx_pps")
    return [
        base.ImportedValue("tx_pps", results.number("tx_pps"), "pps", sent, metric, why),
        base.ImportedValue("rx_pps", results.number("rx_pps"), "pps", received, "packet_rate"),
        base.ImportedValue("loss_ratio", loss_percent, "%", results.place("drop_rate_percentage"), "loss_ratio"),
        *_latency_values({key: results.child("latency").child(key) for key in results.get("latency") or {}}, left_out),
    ]


def _statistics(root: JsonNode, left_out: list[base.LeftOut]) -> list[base.ImportedValue]:
    """Received rate at the moment of reading, loss since the counters were cleared, smallest and largest latency."""
    total = root.child("total")
    values = []
    if rate_pps := total.number("rx_pps"):
        values.append(base.ImportedValue("rx_pps", rate_pps, "pps", total.place("rx_pps"), "packet_rate"))
    else:
        left_out.append(base.LeftOut(str(total.place("rx_pps")), "is 0: the traffic had stopped when it was read"))
    sent, received = total.number("opackets"), total.number("ipackets")
    if not sent or received > sent:
        what = f"{received:.0f} packets came back of {sent:.0f} that were sent"
        left_out.append(base.LeftOut(str(total.place("ipackets")), f"the loss is not known: {what}"))
    else:
        why = "packets that were under way when the counters were read would count as lost" if rate_pps else ""
        metric, place = "" if why else "loss_ratio", total.place("ipackets")
        values.append(base.ImportedValue("loss_ratio", 1 - received / sent, "lost/sent", place, metric, why))
    streams = root.maybe("latency")
    if streams is not None:
        found = {key: streams.child(key) for key in streams.data if key.isdigit()}
        values += _latency_values({key: node.child("latency") for key, node in found.items()}, left_out)
    return values


def _latency_values(streams: Mapping[str, JsonNode], left_out: list[base.LeftOut]) -> list[base.ImportedValue]:
    """Smallest and largest latency over all streams [us]."""
    seen = [node for node in streams.values() if node.number("total_max") > 0]
    if not seen:
        if streams:
            left_out.append(base.LeftOut(str(next(iter(streams.values())).place()), "no latency was sampled"))
        return []
    low = min(seen, key=lambda node: node.number("total_min"))
    high = max(seen, key=lambda node: node.number("total_max"))
    left_out.append(base.LeftOut(str(seen[0].place("average")), FILTERED))
    return [
        base.ImportedValue("total_min", low.number("total_min"), "us", low.place("total_min"), "latency_min"),
        base.ImportedValue("total_max", high.number("total_max"), "us", high.place("total_max"), "latency_max"),
    ]
