"""What a gate says as data and as files: rows and JSON values, JUnit XML, and a summary in Markdown."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p4perf.errors import ExitCode
from p4perf.evaluation.comparison.ratios import Ratio
from p4perf.evaluation.report import render_markdown
from p4perf.experiment.gate import GatedComponent, GateResult
from p4perf.results.files import storing, write_atomically
from p4perf.results.tables import interval_columns, json_number

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
VERDICTS = {ExitCode.OK: "passed", ExitCode.VERDICT_FAILED: "failed", ExitCode.NO_VERDICT: "no verdict"}


def rows(found: GateResult) -> list[dict[str, Any]]:
    """One row for each component."""
    return [_row(component) for component in found.components]


def record(found: GateResult) -> dict[str, Any]:
    """Everything but the rows, as JSON values."""
    return {
        "verdict": VERDICTS[ExitCode(found.exit_code)],
        "exit_code": int(found.exit_code),
        "margin": found.options.margin,
        "level": found.options.level,
        "relative": found.relative,
        "warnings": list(found.warnings),
    }


def _row(component: GatedComponent) -> dict[str, Any]:
    said = component.verdict
    local = said.local
    return {
        "experiment": component.experiment,
        "target": component.target,
        "metric": component.metric,
        "unit": component.unit,
        "verdict": str(said.outcome),
        "regression": said.worse,
        **interval_columns("ratio", said.ratio),
        "detectable": json_number(said.detectable),
        "detectable_at_a_point": json_number(said.detectable_at_a_point),
        "p_value": json_number(said.p_value),
        "points": said.points,
        "starts": component.starts,
        "baseline_starts": component.baseline_starts,
        "against": component.against,
        "local_first": None if local is None else local.first,
        "local_last": None if local is None else local.last,
        "local_points": None if local is None else local.points,
        **interval_columns("local_ratio", None if local is None else local.ratio),
        **interval_columns("baseline_program_ratio", component.drift),
        **interval_columns("relative_ratio", component.relative),
        "differences": [{"kind": d.kind, "key": d.key, "values": dict(d.values)} for d in component.differences],
        "reason": said.reason,
    }


def counts(found: GateResult) -> str:
    """Such as ``30 components: 29 same, 1 slower``."""
    outcomes = [str(c.verdict.outcome) for c in found.components]
    parts = [f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes)]
    return f"{len(outcomes)} {'component' if len(outcomes) == 1 else 'components'}: {', '.join(parts)}"


def junit_xml(found: GateResult) -> bytes:
    """The result as JUnit XML: a regression is a failure, a component without a verdict is skipped."""
    total, failed, skipped = len(found.components), len(found.worse), len(found.undecided)
    numbers = {"tests": str(total), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    suites = ET.Element("testsuites", {"name": "p4perf gate", **numbers})
    suite = ET.SubElement(suites, "testsuite", {"name": "p4perf gate", **numbers})
    properties = ET.SubElement(suite, "properties")
    for name, value in record(found).items():
        if name != "warnings":
            ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    for component in found.components:
        said = component.verdict
        case = ET.SubElement(
            suite, "testcase", {"classname": _text(component.target), "name": _text(component.experiment)}
        )
        if said.worse:
            failure = ET.SubElement(case, "failure", {"type": str(said.outcome), "message": _text(headline(component))})
            failure.text = _text(said.reason)
        elif component in found.undecided:
            ET.SubElement(case, "skipped", {"message": _text(f"no verdict: {said.reason}")})
        else:
            ET.SubElement(case, "system-out").text = _text(headline(component))
    if found.warnings:
        ET.SubElement(suite, "system-err").text = _text("\n".join(found.warnings))
    ET.indent(suites)
    return bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _text(value: object) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("�", str(value))


def headline(component: GatedComponent) -> str:
    """Such as ``cycles_per_packet slower: 1.052 [1.04, 1.064]``."""
    ratio = component.verdict.ratio
    said = "" if ratio is None else f": {with_interval(ratio)}"
    return f"{component.metric} {component.verdict.outcome}{said}"


def with_interval(ratio: Ratio | None) -> str:
    """Such as ``1.052 [1.040, 1.064]``."""
    if ratio is None:
        return ""
    return f"{ratio.value:.3f}" if ratio.low is None or ratio.high is None else f"{ratio.value:.3f} {interval(ratio)}"


def interval(ratio: Ratio | None) -> str:
    """Such as ``[1.040, 1.064]``."""
    return "" if ratio is None or ratio.low is None or ratio.high is None else f"[{ratio.low:.3f}, {ratio.high:.3f}]"


def percent(share: float | None) -> str:
    """Such as ``2.3 %``."""
    return "" if share is None else f"{100 * share:.2g} %"


def short_rows(found: GateResult) -> list[dict[str, str]]:
    """The rows as people read them."""
    return [
        {
            "experiment": c.experiment,
            "target": c.target,
            "verdict": str(c.verdict.outcome),
            "ratio": "" if c.verdict.ratio is None else f"{c.verdict.ratio.value:.3f}",
            "interval": interval(c.verdict.ratio),
            "detectable": percent(c.verdict.detectable),
            "reason": c.verdict.reason,
        }
        for c in found.components
    ]


def summary_markdown(found: GateResult) -> str:
    """The result for the page of a continuous integration job."""
    context: Mapping[str, Any] = {
        "verdict": VERDICTS[ExitCode(found.exit_code)],
        "counts": counts(found),
        "margin": percent(found.options.margin),
        "relative": found.relative,
        "rows": short_rows(found),
        "warnings": found.warnings,
    }
    return render_markdown("gate.md.j2", **context)


def write_junit(found: GateResult, path: Path) -> None:
    """Write the JUnit XML; a file that is there is replaced.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomically(path, (junit_xml(found),))


def append_summary(found: GateResult, path: Path) -> None:
    """Append the summary to a file, which is made if need be: several steps write to the same one.

    Raises:
        StorageError: it cannot be written.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(summary_markdown(found))
