"""How a prediction is shown to people: the answer in a line, the ways, the rates, the bill, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p4perf.cli.output import Format, emit, say

if TYPE_CHECKING:
    from p4perf.evaluation.answer.answers import Answers
    from p4perf.evaluation.answer.differences import Difference
    from p4perf.evaluation.answer.measured import Measured
    from p4perf.evaluation.answer.prediction import PathName, Prediction
    from p4perf.evaluation.answer.rates import Band

MOST_STEPS = 12
MOST_BILLS = 4
MOST_LINES = 60


def print_answers(found: Answers, path: PathName, *, quiet: bool) -> None:
    """Print everything for people: tables on stdout, what is said of them on stderr."""
    changed = any(each.changes for each in found.predictions)
    rows = [_answer_row(each, changed=changed) for each in found.predictions]
    emit(Format.TABLE, "", rows, title="the answer")
    shown = found.changed
    if len(shown) <= MOST_BILLS:
        for each in shown:
            _print_one(each, path, several=len(shown) > 1)
    elif not quiet:
        say(f"{len(shown)} predictions: --format json, or fewer of them, shows their bills")
    for difference in found.differences:
        _print_difference(difference)
    if found.measured:
        emit(Format.TABLE, "", [_measured_row(each) for each in found.measured], title="prediction and measurement")
    for refusal in found.refusals:
        at = ", ".join(f"{k}={v}" for k, v in refusal.values)
        say(f"refused: {refusal.program}{f' at {at}' if at else ''} on {refusal.target}: {refusal.reason}")
    for measured in found.measured:
        say(_verdict(measured))
    for text in dict.fromkeys(_warning(each, text, found) for each in found.changed for text in each.warnings):
        say(text)


def _warning(each: Prediction, text: str, found: Answers) -> str:
    several = len({p.model.name for p in found.predictions}) > 1
    return f"warning: {each.model.name}: {text}" if several else f"warning: {text}"


def _answer_row(each: Prediction, *, changed: bool) -> dict[str, Any]:
    """The answer in a line; intervals in one cell."""
    latency = each.latency
    quantiles = {} if latency is None else dict(latency.quantiles_us)
    row: dict[str, Any] = {
        "program": each.graph.name,
        **({"change": "; ".join(each.changes) or "none"} if changed else {}),
        **each.values,
        "target": each.model.target,
        "machine": each.model.machine,
        "cycles": interval(each.cycles(), at_least=each.open_above),
        "best": f"{each.cycles('best').value:.4g}",
        "worst": f"{each.cycles('worst').value:.4g}",
        "Mpps/core": interval(each.core_mpps),
        f"Mpps, {_cores(each.conditions.cores)}, {each.frame_bytes} B": interval(each.rate.mpps),
        "Gbit/s": f"{each.rate.gbps.value:.4g}",
        "bound": each.rate.bound,
    }
    if latency is not None:
        row |= {"p50 us": f"{quantiles['p50_us'].value:.4g}", "p99 us": f"{quantiles['p99_us'].value:.4g}"}
        row["loss"] = f"{latency.loss.value:.3g}"
    return row


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"


def interval(band: Band, *, at_least: bool = False) -> str:
    """``221 (204 .. 240)``; behind ``>=`` if the upper end is open."""
    return f"{'>= ' if at_least else ''}{band.value:.4g} ({band.low:.4g} .. {band.high:.4g})"


def _print_one(each: Prediction, path: PathName, *, several: bool) -> None:
    from p4perf.evaluation.answer.record import bill_rows, memory_rows, node_rows, rate_rows, sources, steps

    name = _name(each) if several else each.graph.name
    say(f"{_name(each)}: {_origin(each)}")
    for each_path in ("best", "worst"):
        way = each.way("best" if each_path == "best" else "worst")
        band = each.cycles("best" if each_path == "best" else "worst")
        say(f"{each_path} way, {interval(band)} cycles: {_shortened(steps(way))}")
    if each.analysis.ways > 1:
        way = each.way("expected")
        say(f"{_count(each.analysis.ways)} ways; the most probable ({way.probability:.3g}): {_shortened(steps(way))}")
    rows = rate_rows(each.sizes, each.conditions.line_rate_bps)
    emit(Format.TABLE, "", rows, title=f"{name}: rate over frame size, {_cores(each.conditions.cores)}")
    say(_line_text(each))
    _say_latency(each)
    itemised = each.bills[path]
    nodes = [{k: v for k, v in row.items() if v is not None or k != "low"} for row in node_rows(itemised)]
    emit(Format.TABLE, "", nodes[:MOST_LINES], title=f"{name}: bill of the {path} way [cycles/packet]")
    if len(itemised.lines) <= MOST_LINES:
        emit(Format.TABLE, "", bill_rows(itemised), title=f"{name}: every construct [cycles/packet]")
    else:
        say(f"{len(itemised.lines)} constructs: --format json has all of them")
    if memory := memory_rows(each):
        emit(Format.TABLE, "", memory[:MOST_LINES], title=f"{name}: memory")
    if itemised.bill.memory_bytes is not None:
        say(f"memory: {itemised.bill.memory_bytes:.4g} B")
    if names := sources(each):
        say(f"component models: {', '.join(names)}")


def _name(each: Prediction) -> str:
    values = ", ".join(f"{k}={v}" for k, v in each.values.items())
    changes = "; ".join(each.changes)
    inside = ", ".join(text for text in (values, changes) if text)
    return f"{each.graph.name}{f' ({inside})' if inside else ''} on {each.model.name}"


def _origin(each: Prediction) -> str:
    return f"model {each.model.origin}, machine {each.model.machine}, cores at {each.clock_hz / 1e9:.4g} GHz"


def _count(ways: int) -> str:
    return str(ways) if ways < 1_000_000 else f"{float(ways):.2g}"


def _shortened(steps: Sequence[str]) -> str:
    """The steps of a way, of a long one the first and the last."""
    if len(steps) <= MOST_STEPS:
        return " -> ".join(steps)
    half = MOST_STEPS // 2
    left = f"... {len(steps) - 2 * half} more ..."
    return " -> ".join([*steps[:half], left, *steps[-half:]])


def _line_text(each: Prediction) -> str:
    value, low, high = each.line_rate_from
    rate = f"{each.conditions.line_rate_bps / 1e9:g} Gbit/s"
    if value is None:
        return f"no frame size of Ethernet fills {rate} with {_cores(each.conditions.cores)}"
    ends = " .. ".join("more than 1518" if end is None else str(end) for end in (high, low))
    return f"{rate} is full from frames of {value} B on ({ends}); Gbit/s count preamble and gap"


def _say_latency(each: Prediction) -> None:
    latency = each.latency
    if latency is None:
        return
    quantiles = ", ".join(f"{name.removesuffix('_us')} {interval(band)}" for name, band in latency.quantiles_us)
    say(
        f"at {latency.rate_mpps:.4g} Mpps (load {interval(latency.load)}), Poisson arrivals, polled: "
        f"{quantiles} us; loss {interval(latency.loss)}"
    )


def _print_difference(found: Difference) -> None:
    rows: list[Mapping[str, Any]] = [
        {
            "part": line.part,
            "node": line.node,
            "construct": _construct(line.what),
            "before": None if line.before is None else line.before.cycles,
            "after": None if line.after is None else line.after.cycles,
            "difference": interval(line.cycles),
        }
        for line in found.lines[:MOST_LINES]
    ]
    if found.context:
        rows.append({"part": "context", "node": "", "construct": "", "difference": f"{found.context:.4g}"})
    changes = "; ".join(found.after.changes)
    emit(Format.TABLE, "", rows, title=f"{changes} on {found.after.model.name}: what differs [cycles/packet]")
    say(f"{changes} on {found.after.model.name}: {interval(found.cycles)} cycles, {interval(found.mpps)} Mpps a core")


def _construct(what: Any) -> str:
    from p4perf.evaluation.answer.lines import describe

    return describe(what)


def _measured_row(each: Measured) -> dict[str, Any]:
    return {
        "program": each.prediction.graph.name,
        **each.prediction.values,
        "target": each.prediction.model.target,
        "predicted": interval(each.prediction.cycles()),
        "measured": interval(each.cycles),
        "error": f"{100 * each.error:+.1f} %",
        "interval holds it": each.holds,
        "starts": each.starts,
        "flags": list(each.flags),
    }


def _verdict(each: Measured) -> str:
    held = "the interval holds it" if each.holds else "the interval does NOT hold it"
    return (
        f"{_name(each.prediction)}: predicted {each.prediction.cycles().value:.4g} cycles, measured "
        f"{each.cycles.value:.4g}: {100 * each.error:+.1f} %, {held} ({each.folder})"
    )
