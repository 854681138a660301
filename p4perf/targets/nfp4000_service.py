"""How an Agilio CX comes up with a design, is watched, and goes down again: steps with rtecli, and what they say.

There is no process of ours: the runtime (RTE, service ``nfp-sdk6-rte``) loads the firmware, and the card forwards by
itself then. The steps are verbs of ``harness/nfp4000.sh``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from p4perf.errors import MeasurementError
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, step_failed
from p4perf.targets.service import Service, Step

LOAD_TIMEOUT_S = 900.0
"""How long loading a design without rules may take, in seconds; it takes minutes."""

RULE_S = 0.01
"""How much longer it may take for each rule, in seconds."""

STEP_TIMEOUT_S = 120.0
"""How long any other step may take, in seconds."""

SETTLE_S = 2.0
"""Pause before the first packet, in seconds: the MAC blocks are enabled last."""

SCRIPT = "nfp4000.sh"
RULES = "rules.p4cfg"

LOG = "/var/log/nfp-sdk6-rte.log"
"""The log of the runtime."""

REACHING: Final = "asking the runtime of the card (rtecli status)"
LOADING: Final = "loading the design (rtecli design-load)"
UNLOADING: Final = "unloading the design (rtecli design-unload)"
PORTS: Final = "looking for the ports of the card (rtecli ports list)"
CLEARING: Final = "clearing the counters (rtecli counters clear-all-system)"
COUNTERS_BEFORE: Final = "counters before"
COUNTERS_AFTER: Final = "counters after"
INTERFACES_BEFORE: Final = "interfaces before"
INTERFACES_AFTER: Final = "interfaces after"
BUILT: Final = "what was built"

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")

_START = f"start it: systemctl start nfp-sdk6-rte; its log is {LOG}"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "incompatible firmware",
        "the card holds a firmware that the runtime does not know",
        "unload it with nfp-nffw unload -n 0, then start the runtime: systemctl start nfp-sdk6-rte",
    ),
    (
        r"load\w* (is )?(already )?in progress|already loading|\bbusy\b",
        "somebody else is loading a design",
        "wait until rtecli status tells that it is loaded, and leave the card to one at a time",
    ),
    (r"connection refused|could not connect|cannot connect|ttransport", "the runtime does not answer", _START),
)
"""What a failure says, what that means, what to do. None of them is a fault of the point."""


@dataclass(frozen=True, slots=True)
class Design:
    """What the card is to run: firmware, rules, and the physical ports that it sends by."""

    build: BuildPlan
    rules: bytes | None
    rule_count: int
    ports: Sequence[int]


def service_of(design: Design, facts: NodeFacts) -> Service:
    """The steps around a design."""
    rtecli = facts.text("tool_rtecli", "rtecli")
    script = script_text()
    carried = {SCRIPT: script} if design.rules is None else {SCRIPT: script, RULES: design.rules}

    def step(what: str, *words: str, limit_s: float = STEP_TIMEOUT_S, build: BuildPlan | None = None) -> Step:
        named = carried if what == LOADING else {SCRIPT: script}
        return Step(what, Job(("sh", f"{{folder}}/{SCRIPT}", *words), limit_s, build, named))

    def counters(what: str) -> Step:
        return Step(what, Job((rtecli, "counters", "list-system"), STEP_TIMEOUT_S))

    rules = () if design.rules is None else (f"{{folder}}/{RULES}",)
    ports = [f"p{port}" for port in design.ports]
    interfaces = _interfaces(facts)
    before, after = [counters(COUNTERS_BEFORE)], [counters(COUNTERS_AFTER)]
    if interfaces:
        before.append(step(INTERFACES_BEFORE, "interfaces", "/sys", *interfaces))
        after.append(step(INTERFACES_AFTER, "interfaces", "/sys", *interfaces))
    limit_s = LOAD_TIMEOUT_S + RULE_S * design.rule_count
    unload = step(UNLOADING, "unload", rtecli, limit_s=LOAD_TIMEOUT_S)
    return Service(
        prepare=(
            step(REACHING, "status", rtecli, LOG),
            unload,
            step(LOADING, "load", rtecli, "{build}", *rules, limit_s=limit_s, build=design.build),
            *([step(PORTS, "ports", rtecli, *ports)] if ports else []),
            Step(CLEARING, Job((rtecli, "counters", "clear-all-system"), STEP_TIMEOUT_S)),
        ),
        settle_s=SETTLE_S,
        before=(step(BUILT, "built", "{build}", build=design.build), *reversed(before)),
        after=tuple(after),
        release=(unload,),
    )


def script_text() -> bytes:
    """The script that the steps are verbs of."""
    return (files("p4perf.targets") / "harness" / SCRIPT).read_bytes()


def _interfaces(facts: NodeFacts) -> list[str]:
    """``name=address`` of the interfaces that the node file names."""
    found = []
    for key, address in sorted(facts.values.items()):
        name = key.removeprefix("interface_")
        if name != key and _NAME.fullmatch(name) and _ADDRESS.fullmatch(address):
            found.append(f"{name}={address}")
    return found


def judge(step: Step, result: JobResult) -> None:
    """Judge a step by its status and by ``error:`` on stderr.

    Raises:
        MeasurementError: it failed; the key is ``refused`` if the design itself is to blame.
    """
    complaint = re.search(r"^error:", result.stderr, re.MULTILINE)
    if not result.timed_out and result.returncode == 0 and complaint is None:
        return
    said = f"{result.stderr}\n{result.stdout}"
    for pattern, meaning, hint in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            raise MeasurementError(step_failed(step, result, meaning).message, hint=hint)
    if step.what not in (BUILT, INTERFACES_BEFORE, INTERFACES_AFTER) and (result.timed_out or result.returncode == 124):
        why = "" if result.timed_out else "the runtime does not answer"
        raise MeasurementError(step_failed(step, result, why).message, hint=_START)
    why = "it complained" if result.returncode == 0 else ""
    message = step_failed(step, result, why).message
    if step.what == REACHING:
        raise MeasurementError(message, hint=_START)
    if step.what in (LOADING, PORTS):
        raise MeasurementError(message, key="refused", hint=f"the log of the runtime, {LOG}, may tell more")
    raise MeasurementError(message)
