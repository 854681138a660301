"""JSON of TRex in stateless mode: its statistics, and the results of its benchmark ``ndr_bench``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from p4perf.errors import DataError
from p4perf.evaluation.imports.base import Importer, LeftOut, Place, Reading, Trial, Value
from p4perf.evaluation.imports.files import head_of, read_json
from p4perf.evaluation.imports.json_values import Node
from p4perf.evaluation.imports.options import Fact, ImportOptions, fact, tidy_number

PDR_PERCENT = 0.5
"""Loss at which a throughput is ``throughput_pdr``, in per cent of the sent packets."""

FILTERED = "latency.average is smoothed by TRex and no mean; its histogram has buckets too wide for percentiles"


class TrexImporter(Importer):
    """What ``get_stats()`` of a client returns, or what ``ndr_bench`` writes, as a JSON file."""

    name: ClassVar[str] = "trex"
    summary: ClassVar[str] = "TRex: statistics of the stateless mode, results of ndr_bench"

    def recognises(self, path: Path) -> bool:
        """Whether it is a JSON file with the objects of one of both."""
        if not head_of(path).lstrip().startswith("{"):
            return False
        try:
            content = read_json(path)
        except DataError:
            return False
        return _is_bench(content) or _is_statistics(content)

    def read(self, path: Path, options: ImportOptions) -> Reading:
        """One trial. Facts are those of the file name, and of a benchmark its title, cores and tunables.

        Raises:
            DataError: it is damaged or something else; with the key.
            UsageError: the name of the file does not fit.
        """
        facts, repetition, _ = options.facts_of(path.name)
        root = Node(read_json(path), path)
        left_out: list[LeftOut] = []
        if _is_bench(root.content):
            facts = {**_facts_of_bench(root.child("config")), **facts}
            values = _bench(root, left_out)
        elif _is_statistics(root.content):
            values = _statistics(root, left_out)
        else:
            raise Place(path).error(
                "is not JSON of TRex: it has neither total and global, nor results and config",
                hint="json.dump(client.get_stats(), file), or stl_ndr_bench_tool.py --output",
            )
        trials = (Trial(facts, tuple(values), Place(path), repetition),) if values else ()
        return Reading(trials, tuple(left_out), (path,))


def _is_bench(content: Mapping[str, object]) -> bool:
    results = content.get("results")
    return isinstance(content.get("config"), Mapping) and isinstance(results, Mapping) and "tx_pps" in results


def _is_statistics(content: Mapping[str, object]) -> bool:
    total = content.get("total")
    return isinstance(total, Mapping) and "opackets" in total


def _facts_of_bench(config: Node) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    given = {**(config.get("tunables") or {}), "cores": config.get("cores"), "title": config.get("title")}
    for name, value in given.items():
        if isinstance(value, str):
            facts[name] = fact(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            facts[name] = tidy_number(value)
    return facts


def _bench(root: Node, left_out: list[LeftOut]) -> list[Value]:
    """Sent and received rate and loss at the highest load that the benchmark accepted."""
    results, config = root.child("results"), root.child("config")
    accepted_percent, loss_percent = config.number("pdr"), results.number("drop_rate_percentage")
    if loss_percent > accepted_percent:
        why = f"the benchmark found no load: {loss_percent:g} % are lost at the last, {accepted_percent:g} % may be"
        left_out.append(LeftOut(str(results.place("drop_rate_percentage")), why))
        return []
    metric = {0.0: "throughput_ndr", PDR_PERCENT: "throughput_pdr"}.get(accepted_percent, "")
    why = f"up to {accepted_percent:g} % were lost: neither NDR (0 %) nor PDR ({PDR_PERCENT:g} %)"
    sent, received = results.place("tx_pps"), results.place("rx_pps")
    return [
        Value("tx_pps", results.number("tx_pps"), "pps", sent, metric, why),
        Value("rx_pps", results.number("rx_pps"), "pps", received, "packet_rate"),
        Value("loss_ratio", loss_percent, "%", results.place("drop_rate_percentage"), "loss_ratio"),
        *_latency({key: results.child("latency").child(key) for key in results.get("latency") or {}}, left_out),
    ]


def _statistics(root: Node, left_out: list[LeftOut]) -> list[Value]:
    """Received rate at the moment of reading, loss since the counters were cleared, smallest and largest latency."""
    total = root.child("total")
    values = []
    if rate_pps := total.number("rx_pps"):
        values.append(Value("rx_pps", rate_pps, "pps", total.place("rx_pps"), "packet_rate"))
    else:
        left_out.append(LeftOut(str(total.place("rx_pps")), "is 0: the traffic had stopped when it was read"))
    sent, received = total.number("opackets"), total.number("ipackets")
    if not sent or received > sent:
        what = f"{received:.0f} packets came back of {sent:.0f} that were sent"
        left_out.append(LeftOut(str(total.place("ipackets")), f"the loss is not known: {what}"))
    elif rate_pps:
        why = "packets that were under way when the counters were read would count as lost"
        values.append(Value("loss_ratio", 1 - received / sent, "lost/sent", total.place("ipackets"), "", why))
    else:
        values.append(Value("loss_ratio", 1 - received / sent, "lost/sent", total.place("ipackets"), "loss_ratio"))
    streams = root.maybe("latency")
    if streams is not None:
        found = {key: streams.child(key) for key in streams.content if key.isdigit()}
        values += _latency({key: node.child("latency") for key, node in found.items()}, left_out)
    return values


def _latency(streams: Mapping[str, Node], left_out: list[LeftOut]) -> list[Value]:
    """Smallest and largest latency over all streams [us]."""
    seen = [node for node in streams.values() if node.number("total_max") > 0]
    if not seen:
        if streams:
            left_out.append(LeftOut(str(next(iter(streams.values())).place()), "no latency was sampled"))
        return []
    low = min(seen, key=lambda node: node.number("total_min"))
    high = max(seen, key=lambda node: node.number("total_max"))
    left_out.append(LeftOut(str(seen[0].place("average")), FILTERED))
    return [
        Value("total_min", low.number("total_min"), "us", low.place("total_min"), "latency_min"),
        Value("total_max", high.number("total_max"), "us", high.place("total_max"), "latency_max"),
    ]
