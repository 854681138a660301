"""Pages for people: HTML and Markdown from templates, with all content escaped."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from p4perf.models.notation import size_text


@cache
def _environment(escape: bool = True) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=PackageLoader("p4perf.evaluation.report", "."),
        undefined=StrictUndefined,
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(number=number, size=size_text, exact=exact, explain_flag=explanation)
    environment.filters["cell"] = markdown_cell
    return environment


def number(value: float | None, digits: int = 4) -> str:
    """A number for people with that many significant digits; a dash for None or NaN.

    Up to a thousand million, it has no exponent: 14890, not 1.489e+04.
    """
    if value is None or value != value:
        return "–"
    text = f"{value:.{digits}g}"
    if "e+" in text and abs(value) < 1e9:
        text = f"{float(text):.0f}"
    return re.sub(r"e([-+])0?", r"e\1", text).replace("e+", "e").replace("-", "−")


def exact(value: float | None) -> str:
    """A number for programs, as precise as any measurement; empty for None or NaN."""
    return "" if value is None or value != value else f"{value:.9g}"


def render_page(template: str, **context: object) -> str:
    return _environment().get_template(template).render(**context)


def markdown_cell(value: object) -> str:
    """Text for a cell of a Markdown table: one line, and nothing in it is markup."""
    text = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in text)


def render_markdown(template: str, **context: object) -> str:
    """Render a template of this folder to Markdown; it escapes with the filter ``cell``."""
    return _environment(escape=False).get_template(template).render(**context)


EXPLANATIONS = {
    "few_windows": "Too few windows count. The trial is rejected; wait for a quieter time, or free some CPUs.",
    "low_acceptance": "Less than 20 % of the windows count. The trial is rejected; see what else uses the machine.",
    "high_spread": "The spread of the counted windows is 15 % or more. The trial is rejected; repeat it.",
    "timed_out": "The time limit was reached before all required windows counted. The trial can still be accepted.",
    "hopped": "The harness moved to another CPU during the trial.",
    "no_realtime": "Real-time scheduling was not granted: run as root or grant CAP_SYS_NICE.",
    "no_hugepages": "Memory is in 4 KiB pages; compare large tables with care.",
    "starts_disagree": "The starts differ by more than their windows explain; the interval covers all of them.",
    "ungated": "Plain mode: the calibrators did not decide which windows count. Make sure that the core is isolated.",
    "moved": "The device was lost, and the point was measured again on another one. The trial is rejected.",
    "no_accepted_rows": "The point has no accepted trial; its flags are those of the rejected ones.",
    "preempted": "Another thread ran on the core of generator or device: loss may not be the device's.",
    "disturbed_core": "Another thread shared the device's core.",
    "drift": "The clock of a core changed by more than 5 % during the traffic.",
    "clock_unknown": "The processor does not guarantee a constant TSC rate: rates and latencies may be off.",
    "few_samples": "p99 of an offered load is left out: fewer than ten latencies lie beyond it.",
    "rate_off_target": "A constant rate was missed by more than 0.1 %, or packets were left over.",
    "foreign_packets": "Packets came back without a stamp of their segment.",
    "generator_bound": "The result is close to what the generator can do without a device: it is a lower bound.",
    "lost_at_offered_load": "Packets were lost at an offered load; latencies are those of the others.",
    "latency_overflow": "Packets took longer than 10 s and are in no percentile.",
    "at_maximum": "The highest load of the search meets the goal: there is no upper bound.",
    "below_minimum": "Even the lowest load exceeds the goal. The trial is rejected.",
    "not_converged": "The search ended before its bounds were close enough; they still hold.",
    "no_lower_bound": "The search ended before any load met the goal. The trial is rejected.",
    "disturbed": "The bounds depend on losses in disturbed trials: repeat at a quieter time.",
    "ndr_far_below_pdr": "The NDR is far below the PDR: packets are lost at all loads.",
}


def explanation(flag: str) -> str:
    """The meaning of a flag; a plug-in may have others, which are unknown here."""
    return EXPLANATIONS.get(flag, "Not a flag of p4perf itself: see the documentation of the target or testbed.")
