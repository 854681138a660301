"""Target nfp4000: an Agilio CX (Netronome NFP-4000) whose firmware nfp4build makes of a program in P4.

Flags and names are those of public builds with SDK 6.1-preview; the SDK itself is proprietary.

The card forwards by itself: all that is measured of it comes from a load generator outside. **Nothing here was ever
run with a real card**; it is built on public programs, outputs and configurations for SDK 6.1-preview, and tested
with tools that do as those say.

There is no process of ours: the runtime (RTE, service ``nfp-sdk6-rte``) loads the firmware, and the card forwards by
itself then. The steps are verbs of ``harness/nfp4000.sh``. rtecli prints lists and dictionaries as Python does
(``pprint``), or as JSON with ``--json``; names of counters are those of the runtime. What cannot be read is kept as
text, and no number is made up.

Cycles are not among the metrics. A packet is worked on by one of many microengines with four or eight threads each,
which wait for memory while others run: neither is it known how many of them were busy, nor does the card tell. The rate
of an overload divided by clock and number of microengines would be a number, but no cost of the program.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.p4 import nfp
from p4perf.programs.capabilities import Capabilities, Limit, Quantity, both
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import Program, Workload
from p4perf.targets.base import BuildPlan, Job, JobResult, MetricValue, NodeFacts, PointPlan, Problem, point_key
from p4perf.targets.builds import context_of, shell
from p4perf.targets.link import PCI_ADDRESS
from p4perf.targets.roles import ServedProgram, Serves, Service, ServiceStep, step_failed

FIRMWARE = "firmware.nffw"
OUTPUT = "out"
"""Folder of a build for what nfp4build makes besides the firmware."""

DESIGN = f"{OUTPUT}/pif_design.json"
"""The description of the program that the runtime needs to load the firmware."""

COMPILE_TIME = "compile_ms"
"""File of a build with the time that nfp4build took, in milliseconds."""

BUILD_TIMEOUT_S = 3600.0
"""How long a build may take, in seconds: it compiles C for some fifty microengines."""

SDK_FOLDER = "/opt/netronome/p4"
"""Folder of the SDK, unless the path of nfp4build implies another."""

PORT_STRIDES = {"lithium": 1, "hydrogen": 4, "beryllium": 4, "carbon": 1, "starfighter1": 1}
"""Platforms of nfp4build (``-l``), and how far apart the numbers of neighbouring physical ports are.

A port of 40 Gbit/s takes four channels: rtecli lists ``p0`` and ``p4`` for a card with two of them. Only those and
lithium (two of 10 Gbit/s, ``p0`` and ``p1``) are known from public output; for the others it is assumed, and the ports
are looked for before a design is used.
"""

CARDS = {"AMDA0096-0001": "lithium", "AMDA0081-0001": "hydrogen"}
"""Part numbers of cards that public builds give beside their platform."""

DEFAULT_PLATFORM = "lithium"
"""What is planned for where no card is known; nothing can be measured there."""

_PART = re.compile(r"(AMDA\d{4}-\d{4})")

_BUILD = f"""mkdir -p {OUTPUT} || exit
start=$(date +%s%N)
"$@" >nfp4build.log 2>&1 || {{ status=$?; cat nfp4build.log >&2; exit "$status"; }}
end=$(date +%s%N)
for product in {FIRMWARE} {DESIGN}; do
	[ -s "$product" ] || {{ cat nfp4build.log >&2; echo "error: nfp4build left no $product" >&2; exit 1; }}
done
echo $(((end - start) / 1000000)) >{COMPILE_TIME}
cat nfp4build.log"""
"""nfp4build drives make and several compilers, which print to either output."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its platform, the flags of nfp4build for it, and the distance of its ports' numbers."""

    platform: str
    flags: tuple[str, ...]
    port_stride: int


def model_of(facts: NodeFacts) -> str:
    """What the card of a node is called, by platform or by part number; empty if that is not known."""
    return (facts.text("nfp_model") or facts.text("nfp_partno")).strip()


def card_of(facts: NodeFacts) -> Card:
    """The card of a node.

    ``nfp_model`` is what nfp-hwinfo calls ``assembly.model``, the platform; a part number is understood too.
    """
    model = model_of(facts) or DEFAULT_PLATFORM
    for platform, stride in PORT_STRIDES.items():
        if model.lower().startswith(platform):
            return Card(platform, ("-l", platform), stride)
    part = _PART.match(model)
    if part is not None and part[1] in CARDS:
        platform = CARDS[part[1]]
        return Card(platform, ("--sku", f"{part[1]}:0", "-l", platform), PORT_STRIDES[platform])
    known = ", ".join((*PORT_STRIDES, *CARDS))
    message = f"unknown card {model[:40]!r} (assembly.model of nfp-hwinfo; supported: {known})"
    raise CapabilityError(message, key="target")


def firmware_plan(source: str, card: Card, variants: Collection[str], facts: NodeFacts) -> BuildPlan:
    """The build of a program in P4.

    What stands before its first line of code is left out: equal programs are built once, whatever they are called.
    """
    tool = facts.text("tool_nfp4build", "nfp4build")
    command = shell(_BUILD, tool, *_flags(card, variants, tool))
    context = context_of(facts, "nfp_sdk_version", "nfp4build_checksum")
    return BuildPlan({"program.p4": _bare(source)}, (command,), FIRMWARE, context, timeout_s=BUILD_TIMEOUT_S)


def _flags(card: Card, variants: Collection[str], tool: str) -> list[str]:
    """Which of two modes is the default of nfp4build is not documented: one of them is always named."""
    flags = ["-o", FIRMWARE, "-p", OUTPUT, "-4", "program.p4", *card.flags]
    flags += ["--nfp4c_p4_version", "16", "--nfp4c_p4_compiler", "p4c-nfp", "--no-debug-info"]
    flags.append("--reduced-thread-usage" if "reduced-threads" in variants else "--no-reduced-thread-usage")
    flags.append("--shared-codestore" if "shared-codestore" in variants else "--no-shared-codestore")
    if "flowcache" not in variants:
        # Its headers are included even where it is disabled.
        include = f"{_sdk_folder(tool)}/components/flowcache/me/lib/flowcache"
        flags += ["--disable-component", "flowcache", "-D", "PIF_GLOBAL_FLOWCACHE_DISABLED", "-I", include]
    return flags


def _sdk_folder(tool: str) -> str:
    path = PurePosixPath(tool)
    return str(path.parent.parent) if path.is_absolute() and path.parent.name == "bin" else SDK_FOLDER


def _bare(source: str) -> str:
    lines = source.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    return "".join(lines[first:])


MAX_ENTRIES = 1 << 18
"""Entries of a table: rules go to the runtime in one file, 150 to 600 B each. How many the card takes is not known."""

LOADING_S = 120.0
"""What loading a design takes, in seconds, roughly."""

_ENTRIES = Limit(MAX_ENTRIES, "all rules go to the runtime in one file; what the card takes is not known")
_QUANTITIES: tuple[Quantity, ...] = ("exact entries", "lpm entries", "ternary entries")

CAPABILITIES = both(Capabilities("nfp4000", limits=dict.fromkeys(_QUANTITIES, _ENTRIES)), nfp.CAPABILITIES)


LOAD_TIMEOUT_S = 900.0
"""How long loading a design without rules may take, in seconds; it takes minutes."""

RULE_S = 0.01
"""How much longer it may take for each rule, in seconds."""

STEP_TIMEOUT_S = 120.0
SETTLE_S = 2.0
"""Pause before the first packet, in seconds: the MAC blocks are enabled last."""

SCRIPT = "nfp4000.sh"
RULES = "rules.p4cfg"

LOG = "/var/log/nfp-sdk6-rte.log"

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

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")

_START = f"start it: systemctl start nfp-sdk6-rte; its log is {LOG}"

_KNOWN = {
    "incompatible firmware": (
        "the card holds a firmware that the runtime does not know",
        "unload it with nfp-nffw unload -n 0, then start the runtime: systemctl start nfp-sdk6-rte",
    ),
    r"load\w* (is )?(already )?in progress|already loading|\bbusy\b": (
        "somebody else is loading a design",
        "wait until rtecli status reports that it is loaded, and leave the card to one user at a time",
    ),
    r"connection refused|could not connect|cannot connect|ttransport": ("the runtime does not answer", _START),
}
"""Patterns of failures, their meaning, and what to do. None of them is the fault of the point."""


def script_text() -> bytes:
    return (files("p4perf.targets") / "harness" / SCRIPT).read_bytes()


def _interfaces(facts: NodeFacts) -> list[str]:
    found = []
    for key, address in sorted(facts.values.items()):
        name = key.removeprefix("interface_")
        if name != key and _NAME.fullmatch(name) and PCI_ADDRESS.fullmatch(address):
            found.append(f"{name}={address}")
    return found


MAX_TEXT_BYTES = 1 << 20
KEPT_CHARACTERS = 2000
"""How much of an output that cannot be read is kept."""

_LONG = re.compile(r"(?<=[\s:\[(,])(-?\d+)L(?=\s*[,}\])])")
"""An integer as Python 2 writes it."""

_STATISTIC = re.compile(r"\s*(\S[^:]*?)\s*:\s*(\d+)\s*")
_DROPS = re.compile(r"drop|discard|lost|loss|overflow|no_?buf|error", re.IGNORECASE)

Counters = Mapping[str, int]


def _read(results: Mapping[str, JobResult], name: str, reader: Any) -> Any:
    return reader(results[name].stdout) if name in results else None


def _compared(before: Counters | None, after: Counters | None) -> dict[str, Any]:
    known = {name: counts for name, counts in (("before", before), ("after", after)) if counts is not None}
    if before is None or after is None:
        return known
    numbers = {n: after[n] - before[n] for n in after if _is_number(after[n]) and _is_number(before.get(n))}
    return {**known, "difference": numbers}


def _of_drops(difference: Counters) -> dict[str, int]:
    return {name: n for name, n in difference.items() if _DROPS.search(name)}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def plain(text: str) -> Any:
    """What rtecli printed: JSON, or a literal of Python 2 or 3; None if it is neither."""
    if len(text) > MAX_TEXT_BYTES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(_LONG.sub(r"\1", text.strip()))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def counters_of(text: str) -> Mapping[str, Any]:
    """System counters of ``rtecli counters list-system``, name and value of each; ``unread``: unreadable text."""
    rows = plain(text)
    if isinstance(rows, dict):
        rows = [{"name": name, "value": value} for name, value in rows.items()]
    if not isinstance(rows, list):
        return {"unread": text[:KEPT_CHARACTERS]}
    found: dict[str, Any] = {}
    for row in rows:
        name, value = (row.get("name"), row.get("value")) if isinstance(row, dict) else (None, None)
        if isinstance(name, str) and _is_number(value):
            found[name] = value
    return found if found or not rows else {"unread": text[:KEPT_CHARACTERS]}


def interfaces_of(text: str) -> dict[str, dict[str, int]]:
    """What ``ethtool -S`` prints for each interface."""
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "interface":
            current = found.setdefault(words[1], {})
        elif match := _STATISTIC.fullmatch(line):
            current[match[1]] = int(match[2])
    return found


def firmware_of(text: str) -> dict[str, Any]:
    """The literal content of the files that nfp4build left.

    Returns:
        ``firmware_bytes``, ``compile_ms``; of ``build_info.json``: ``sku``, ``worker_mes`` (how many microengines run
        the program) and ``reduced_thread_usage``; of ``pif_design.json``: for each table ``max_entries`` (one of them
        is the default rule) and ``data_bytes`` (action data of one entry). What is not there is left out.
    """
    lines = dict(line.partition(" ")[::2] for line in text.splitlines())
    found: dict[str, Any] = {
        name: int(lines[name]) for name in ("firmware_bytes", "compile_ms") if lines.get(name, "").strip().isdigit()
    }
    info = _object(lines.get("build_info", ""))
    if isinstance(info.get("sku"), str):
        found["sku"] = info["sku"]
    if isinstance(info.get("worker_mes"), list):
        found["worker_mes"] = len(info["worker_mes"])
    if isinstance(info.get("reduced_thread_usage"), bool):
        found["reduced_thread_usage"] = info["reduced_thread_usage"]
    vendor = _object(lines.get("pif_design", "")).get("vendor")
    tables = vendor.get("tables_info") if isinstance(vendor, dict) else None
    if isinstance(tables, dict):
        found["tables"] = {str(name): _table(table) for name, table in tables.items() if isinstance(table, dict)}
    return found


def _table(table: Mapping[str, Any]) -> dict[str, int]:
    numbers = {"max_entries": table.get("max_entries"), "data_bytes": table.get("data_size")}
    return {name: value for name, value in numbers.items() if isinstance(value, int) and _is_number(value)}


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Nfp4000Target(Serves):
    name = "nfp4000"
    summary = "Netronome Agilio CX (NFP-4000, SDK 6.1), loaded from outside; never run with a real card"
    metrics = ("packet_rate", "compile_time")
    served_gives: ClassVar[tuple[str, ...]] = metrics
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    variants: ClassVar[Mapping[str, str]] = {
        "flowcache": "the first lookups of a flow are cached, as by default of the SDK",
        "reduced-threads": "four threads a microengine instead of eight, with more memory each",
        "shared-codestore": "two microengines share their code store",
    }

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = []
        for tool, what in (("nfp4build", "hosted toolchain"), ("rtecli", "runtime environment")):
            if not facts.text(f"tool_{tool}"):
                hint = (
                    f"install the {what} of Netronome's SDK 6.1; p4perf also searches /opt/netronome/p4/bin for {tool}"
                )
                found.append(Problem(f"no {tool}", hint))
        if not model_of(facts):
            found.append(Problem("no Agilio CX: nfp-hwinfo reports no assembly.model", "run as root on the node of it"))
            return tuple(found)
        try:
            card_of(facts)
        except CapabilityError as error:
            found.append(Problem(error.message, "use a card with an NFP-4000"))
        return tuple(found)

    @override
    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """The firmware of the program; that of the baseline is planned with it.

        The memory of the tables is that of the card.
        """
        self.capabilities.check(workload.program, workload.packets)
        programs = [self._firmware(program, facts) for program in (workload.program, workload.baseline)]
        entries = [
            [(t.name, asdict(t.entries)) for t in program.tables] for program in (workload.program, workload.baseline)
        ]
        key = point_key([p.key for p in programs], entries, asdict(traffic), repr(workload.packets), self.chosen)
        return PointPlan(key, programs[0], workload, traffic, memory_bytes=0, setup_s=LOADING_S)

    def _firmware(self, program: Program, facts: NodeFacts) -> BuildPlan:
        card = card_of(facts)
        source, *_ = nfp.Nfp().files("program", nfp.with_ports(program, card.port_stride))
        return firmware_plan(source.text(), card, self.chosen, facts)

    @override
    def service(self, plan: PointPlan, program: ServedProgram, facts: NodeFacts) -> Service:
        workload = plan.workload
        build = plan.build if program == "program" else self._firmware(workload.baseline, facts)
        chosen = nfp.with_ports(getattr(workload, program), card_of(facts).port_stride)
        _, *rules = nfp.Nfp().files("program", chosen)
        rtecli = facts.text("tool_rtecli", "rtecli")
        carried = {SCRIPT: script_text()}
        loaded = carried | {RULES: "".join(rules[0].pieces).encode("ascii")} if rules else carried
        rule_words = (f"{{folder}}/{RULES}",) if rules else ()

        def step(
            what: str, *words: str, limit_s: float = STEP_TIMEOUT_S, build: BuildPlan | None = None
        ) -> ServiceStep:
            files = loaded if what == LOADING else carried
            return ServiceStep(what, Job(("sh", f"{{folder}}/{SCRIPT}", *words), limit_s, build, files))

        def counters(what: str) -> ServiceStep:
            return ServiceStep(what, Job((rtecli, "counters", "list-system"), STEP_TIMEOUT_S))

        ports = [f"p{port}" for port in nfp.ports_of(chosen)]
        interfaces = _interfaces(facts)
        before, after = [counters(COUNTERS_BEFORE)], [counters(COUNTERS_AFTER)]
        if interfaces:
            before.insert(0, step(INTERFACES_BEFORE, "interfaces", "/sys", *interfaces))
            after.append(step(INTERFACES_AFTER, "interfaces", "/sys", *interfaces))
        limit_s = LOAD_TIMEOUT_S + RULE_S * sum(t.entries.count for t in chosen.tables)
        unload = step(UNLOADING, "unload", rtecli, limit_s=LOAD_TIMEOUT_S)
        return Service(
            prepare=(
                step(REACHING, "status", rtecli, LOG),
                unload,
                step(LOADING, "load", rtecli, "{build}", *rule_words, limit_s=limit_s, build=build),
                *([step(PORTS, "ports", rtecli, *ports)] if ports else []),
                ServiceStep(CLEARING, Job((rtecli, "counters", "clear-all-system"), STEP_TIMEOUT_S)),
            ),
            settle_s=SETTLE_S,
            before=(step(BUILT, "built", "{build}", build=build), *before),
            after=tuple(after),
            release=(unload,),
        )

    @override
    def check_step(self, step: ServiceStep, result: JobResult) -> None:
        """By status and by ``error:`` on stderr."""
        complaint = re.search(r"^error:", result.stderr, re.MULTILINE)
        if not result.timed_out and result.returncode == 0 and complaint is None:
            return
        said = f"{result.stderr}\n{result.stdout}"
        for pattern, (meaning, hint) in _KNOWN.items():
            if re.search(pattern, said, re.IGNORECASE):
                raise MeasurementError(step_failed(step, result, meaning).message, hint=hint)
        silent = result.timed_out or result.returncode == 124
        if silent and step.what not in (BUILT, INTERFACES_BEFORE, INTERFACES_AFTER):
            why = "" if result.timed_out else "the runtime does not answer"
            raise MeasurementError(step_failed(step, result, why).message, hint=_START)
        why = "it complained" if result.returncode == 0 else ""
        message = step_failed(step, result, why).message
        if step.what == REACHING:
            raise MeasurementError(message, hint=_START)
        if step.what in (LOADING, PORTS):
            raise MeasurementError(message, key="refused", hint=f"the log of the runtime, {LOG}, may hold more details")
        raise MeasurementError(message)

    @override
    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        """Evidence of the steps around a trial.

        Returns:
            ``counters`` (of the runtime) and ``interfaces`` (of the driver, by the name of the node file), each with
            ``before``, ``after`` and ``difference``; ``drops``: the differences of all that count drops or errors;
            ``firmware``, see :func:`firmware_of`.
        """
        found: dict[str, Any] = {}
        drops: dict[str, int] = {}
        before, after = (_read(results, name, counters_of) for name in (COUNTERS_BEFORE, COUNTERS_AFTER))
        if before is not None or after is not None:
            found["counters"] = _compared(before, after)
            drops |= _of_drops(found["counters"].get("difference", {}))
        earlier, later = (_read(results, name, interfaces_of) or {} for name in (INTERFACES_BEFORE, INTERFACES_AFTER))
        interfaces = {name: _compared(earlier.get(name), later.get(name)) for name in sorted({*earlier, *later})}
        if interfaces:
            found["interfaces"] = interfaces
        for name, compared in interfaces.items():
            drops |= {f"{name}.{counter}": n for counter, n in _of_drops(compared.get("difference", {})).items()}
        found["drops"] = drops
        if (firmware := _read(results, BUILT, firmware_of)) is not None:
            found["firmware"] = firmware
        return found

    @override
    def served_metrics(self, overload: Mapping[str, Any], facts: Mapping[str, str]) -> tuple[MetricValue, ...]:
        program = overload.get("program") or {}
        found = []
        rate = program.get("receive_rate_pps")
        if isinstance(rate, int | float) and math.isfinite(rate) and rate > 0:
            found.append(MetricValue("packet_rate", rate / 1e6, "Mpps"))
        evidence = program.get("evidence") or (program.get("raw") or {}).get("evidence") or {}
        compile_ms = (evidence.get("firmware") or {}).get("compile_ms")
        if isinstance(compile_ms, int | float):
            found.append(MetricValue("compile_time", float(compile_ms), "ms"))
        return tuple(found)
