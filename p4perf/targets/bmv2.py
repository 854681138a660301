"""Target bmv2: the behavioural model of v1model, ``simple_switch``, for which p4c-bm2-ss compiles.

The program is compiled to JSON, which the switch interprets; entries come through ``simple_switch_CLI``. The switch has
no packet source: packets come from the load generator of this machine through a veth pair, in trials as for loads. All
threads of the switch share one core, and have real-time priorities that rise along the path of a packet (see
``bmv2_threads.c``), so that under overload every packet that was begun is finished. A window is a segment of overload;
the cost of a packet is the CPU time of all threads over the packets that they finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError, MeasurementError
from p4perf.generators.p4.v1model import CAPABILITIES as V1MODEL
from p4perf.generators.p4.v1model import MAX_RANDOM_BITS, RuntimeV1Model
from p4perf.generators.p4.writer import p4_name, possibly_absent
from p4perf.programs import ir
from p4perf.programs.analysis import statements, used_actions
from p4perf.programs.capabilities import Capabilities, Limit
from p4perf.programs.component import TrafficPlan
from p4perf.programs.packets import frame
from p4perf.targets import base, windows
from p4perf.targets.bmv2_program import LANGUAGE, check_own, own_commands, own_states, own_verification, sending_ports
from p4perf.targets.builds import COMPILE_TIME_FILE, GENERATOR, context_of, generator_plan, harness_text, shell
from p4perf.targets.link import LinkPlan, check_frame_size, check_link, link_files, load_arguments
from p4perf.targets.oracle import frame_files, source_arguments, verification_file
from p4perf.targets.process import COMPILER, COMPILER_RUNS, REALTIME, HarnessTarget, Need, has, recorded
from p4perf.targets.roles import Connects

DEVICE = "bmv2"
COMMANDS = {"program": "commands.txt", "baseline": "baseline-commands.txt"}
DEVICE_FILES = (
    *("clock.h", "thread.h", "words.h", "words.c", "device.h", "expectation.h", "bmv2.h"),
    *("bmv2_main.c", "bmv2_switch.c", "bmv2_links.c", "bmv2_threads.c", "bmv2_verify.c", "bmv2_device.c"),
)

_COMPILE = f"""set -e
begin=$(date +%s%N)
"$1" --std p4-16 -o "$2.json" "$2.p4"
end=$(date +%s%N)
echo $((end - begin)) >{COMPILE_TIME_FILE}"""

_DEVICE = f'exec "${{CC:-cc}}" -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -o {DEVICE} words.c bmv2_*.c'

_TOGETHER = f'cp "$1/{DEVICE}" "$2/{GENERATOR}" "$3/baseline.json" .'


def compiler(facts: base.NodeFacts) -> str:
    return facts.text("tool_p4c_bm2_ss", "p4c-bm2-ss")


def build_plan(generated: Mapping[str, str], facts: base.NodeFacts) -> base.BuildPlan:
    """The build of a program; harness, load generator and baseline are built once for all programs.

    Args:
        generated: ``baseline.p4``, and ``program.p4`` or ``program.json``, which is compiled already.
    """
    context = {"p4c_version": facts.text("p4c_bm2_version")}
    native = context_of(facts, "cc_version", "machine")
    baseline = shell(_COMPILE, compiler(facts), "baseline")
    parts = {
        "device": base.BuildPlan(harness_text(DEVICE_FILES), (shell(_DEVICE),), DEVICE, native),
        "generator": generator_plan(facts),
        "baseline": base.BuildPlan({"baseline.p4": generated["baseline.p4"]}, (baseline,), "baseline.json", context),
    }
    together = shell(_TOGETHER, "{device}", "{generator}", "{baseline}")
    program = {name: text for name, text in generated.items() if name != "baseline.p4"}
    compiled = shell(f"echo 0 >{COMPILE_TIME_FILE}") if "program.json" in program else None
    return base.BuildPlan(
        program,
        (compiled or shell(_COMPILE, compiler(facts), "program"), together),
        GENERATOR,
        {**context, "bmv2_version": facts.text("bmv2_version")},
        parts,
    )


@dataclass(frozen=True, slots=True)
class Ports:
    """``generator`` is the port of the link; copies leave by ``sinks``, in ascending order, and are dropped there.

    Of a user's program the packets for other ports than that by which they come in leave by sinks, too.
    """

    generator: int
    sinks: tuple[int, ...] = ()


def ports_of(workload: ir.Workload) -> Ports:
    """The ports that program and baseline send by."""
    if workload.frames:
        port = workload.program.port
        return Ports(port, tuple(sorted(sending_ports(own_verification(workload)) - {port})))
    unicast = {*_unicast(workload.baseline), *_unicast(workload.program)}
    groups = [set(s.ports) for s in statements(workload.program) if isinstance(s, ir.Multicast) and s.ports]
    clones = {s.port for s in statements(workload.program) if isinstance(s, ir.Clone)}
    if len(unicast) != 1:
        raise CapabilityError(
            f"bmv2 is connected with the load generator by one port, and packets would leave by {len(unicast)}",
            key="program",
        )
    (port,) = unicast
    if any(port not in group for group in groups):
        raise CapabilityError(
            f"bmv2 is connected with the load generator by port {port}, which is not in all multicast groups",
            key="program",
        )
    return Ports(port, tuple(sorted(clones.union(*groups) - {port})))


def _unicast(program: ir.Program) -> set[int]:
    found = {s.port.value for s in statements(program) if isinstance(s, ir.SetEgress) and isinstance(s.port, ir.Const)}
    used = set(used_actions(program))
    for table in program.tables:
        action = program.action(table.rule.action)
        if action.name in used and any(
            isinstance(s, ir.SetEgress) and isinstance(s.port, ir.ParameterRef) for s in action.body
        ):
            found.add(table.rule.port)
    return found


LOAD_VERSION = 1
"""Of the load generator, whose lines these are."""

PROGRAMS = ("program", "baseline")
"""In the order in which windows take turns."""

CHAIN_CORE_CYCLES = 12
DRIFT_TOLERANCE = 0.05

LEAST_BUSY = 0.9
"""Under overload the switch has the core all the time; a window in which it had less of it does not count."""


def trial_record(result: base.JobResult) -> base.TrialRecord:
    """The record of a trial, with its windows as all local targets have them."""
    lines = list(_lines(result))
    for line in lines:
        if "error" in line:
            kind = str(line.get("kind", ""))
            raise MeasurementError(str(line["error"]), key=kind or None)
    if result.timed_out:
        raise MeasurementError(f"the program was stopped after {result.duration_s:.0f} s without a result")
    try:
        trial = next(line["trial"] for line in lines if "trial" in line)
        compile_ns = next(line["compile_ns"] for line in lines if "compile_ns" in line)
        about = {str(line["pipeline"]): line for line in lines if "pipeline" in line}
        resident = {name: int(line["resident_bytes"]) for name, line in about.items()}
        ready = next(line for line in lines if "ready" in line)
        answers = [line for line in lines if "segments" in line]
        if result.returncode != 0 or ready["load_version"] != LOAD_VERSION:
            raise MeasurementError(f"the load generator {base.ending(result.returncode)} or speaks another version")
        if len(answers) != trial["orders"]:
            raise MeasurementError(f"the load generator answered {len(answers)} of {trial['orders']} orders")
        measured = list(_windows(answers[trial["warmup"] :], float(ready["tsc_hz"]), own=bool(trial.get("own"))))
        record = {
            "harness_version": LOAD_VERSION,
            "programs": list(PROGRAMS),
            "tsc_hz": float(ready["tsc_hz"]),
            "chain_core_cycles": CHAIN_CORE_CYCLES,
            "gated": bool(trial["gated"]),
            "gate_ratio": _gate_ratio(measured, trial["gate_ratio"]),
            "gate_tolerance": windows.GATE_TOLERANCE,
            "drift_tolerance": DRIFT_TOLERANCE,
            "realtime": all(all(answer["realtime"]) for answer in answers),
            "verified_packets": int(ready["verified_packets"]),
            "compile_ms": float(compile_ns) / 1e6,
            "load_ms": float(about["program"]["load_ms"]),
            "memory_bytes": max(0, resident["program"] - resident["baseline"]),
            "windows": {"n": len(measured), **{key: [w[key] for w in measured] for key in measured[0]}},
        }
    except (StopIteration, KeyError, IndexError, TypeError, ValueError) as error:
        tail = result.tail[:300] or "no output"
        raise MeasurementError(
            f"the trial {base.ending(result.returncode)} and its output is no record: {tail}"
        ) from error
    windows.window_statistics(record)
    return record


def _lines(result: base.JobResult) -> Iterator[Mapping[str, Any]]:
    for text in result.stdout.splitlines():
        if text.startswith("{"):
            try:
                line = json.loads(text)
            except json.JSONDecodeError as error:
                raise MeasurementError(f"the load generator printed damaged JSON: {error}") from error
            yield line


def _windows(answers: Sequence[Mapping[str, Any]], tsc_hz: float, *, own: bool) -> Iterator[dict[str, float]]:
    """One window for each answer, programs in turn.

    Args:
        own: it is a user's program, of which any number of packets leaves by any port: what came in was finished.
    """
    for number, answer in enumerate(answers):
        if answer["segments"] != 1:
            raise ValueError(f"{answer['segments']} segments in a window")

        def of(name: str, answer: Mapping[str, Any] = answer) -> float:
            return float(answer[name][0])

        finished = of("device_sent") - of("device_copies") + of("device_dropped")
        if own and PROGRAMS[number % len(PROGRAMS)] == "program":
            finished = of("device_received")
        if finished <= 0 or of("device_busy_us") <= 0:
            raise MeasurementError(f"none of {of('sent'):.0f} packets was finished in a window")
        share = of("device_busy_us") / (of("sending_us") + of("draining_us"))
        yield {
            "program": number % len(PROGRAMS),
            "preemptions": of("switches") + of("device_switches") + (share < LEAST_BUSY),
            "tsc_per_packet": of("device_busy_us") * 1e-6 * tsc_hz / finished,
            "packets": finished,
            "busy_share": share,
            "sent": of("sent"),
            "returned": of("received"),
            **{f"{loop}_{when}_tsc": of(f"device_{loop}_{when}_tsc") for loop in ("chain", "mix") for when in _TIMES},
        }


_TIMES = ("before", "after")


def _gate_ratio(measured: Sequence[Mapping[str, float]], known: float | None) -> float:
    """The lowest ratio of the calibrators that is known: that of earlier trials, or of this one."""
    own = windows.lower_mode(sorted(w[f"mix_{when}_tsc"] / w[f"chain_{when}_tsc"] for w in measured for when in _TIMES))
    return min(own, known) if known else own


TRIAL_LINK = LinkPlan("af-packet")
MAX_FRAME_BYTES = 1522
"""A frame of Ethernet with a VLAN tag; the rings of the load generator have slots of 2048 B."""

MAX_ADDED_BYTES = 512
MAX_VARYING = 8
MAX_ENTRIES = 100_000
MAX_TERNARY_ENTRIES = 20_000

ENTRY_S = 1.5e-4
"""What simple_switch_CLI takes to add an entry, in seconds, roughly."""

ENTRY_BYTES = 1400
"""What an entry takes in simple_switch, roughly."""

SWITCH_BYTES = 64 << 20
"""What program and baseline take without entries, in two processes."""

PATIENCE = 5
"""How many times longer a busy machine takes."""

START_S = 30.0
WINDOW_MS = 20.0
WARMUP_MS = 100.0
REST_MS = 2.0

CAPABILITIES = Capabilities(
    "bmv2",
    missing=V1MODEL.missing,
    limits={
        "frame bytes": Limit(MAX_FRAME_BYTES, "Ethernet; slots of the rings of the load generator"),
        "bytes of added headers": Limit(MAX_ADDED_BYTES, "PacketBuffer in simple_switch.cpp: the length plus 512"),
        "varying fields": Limit(MAX_VARYING, "packet source of the harness"),
        "exact entries": Limit(MAX_ENTRIES, "simple_switch_CLI adds one at a time, some 8,000 in a second"),
        "lpm entries": Limit(MAX_ENTRIES, "as for exact entries"),
        "ternary entries": Limit(MAX_TERNARY_ENTRIES, "a list that is searched to its end for every packet"),
        "copies": Limit(500, "--max-port-count of simple_switch is 512"),
    },
    remarks={"random": f"bmv2 draws at most {MAX_RANDOM_BITS} bit"},
)
"""What simple_switch and p4c-bm2-ss can do. What depends on the whole program is refused by the generator v1model."""

_CONVERSE = f"""printf '%s\\n' "$1"
printf '{{"compile_ns": %s}}\\n' "$(cat "$2/{COMPILE_TIME_FILE}")"
orders=$3
shift 3
exec "$@" <"$orders\""""
"""A conversation with the load generator whose orders are known beforehand."""


_SWITCH_HINT = "build the behavioral-model of p4lang (1.15.0 or newer) and put it on the PATH"


class Bmv2Target(HarnessTarget, Connects):
    name = "bmv2"
    summary = "simple_switch (bmv2) with what p4c-bm2-ss compiles, all of its threads on one core, behind a veth pair"
    metrics = (*windows.COST_METRICS, "packet_rate", "memory_bytes", "compile_time", "load_time")
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    links: ClassVar[tuple[str, ...]] = ("af-packet",)
    harness_version = LOAD_VERSION
    needs: ClassVar[tuple[Need, ...]] = (
        Need(has("tool_simple_switch"), "no simple_switch on the PATH", _SWITCH_HINT),
        Need(has("tool_simple_switch_cli"), "no simple_switch_CLI on the PATH", _SWITCH_HINT),
        Need(
            lambda facts: bool(facts.text("bmv2_version") or not facts.text("tool_simple_switch")),
            "simple_switch does not report its version",
            "run simple_switch --version to see why",
        ),
        Need(has("tool_p4c_bm2_ss"), "no p4c-bm2-ss on the PATH", "build p4c with its backend bmv2"),
        COMPILER,
        COMPILER_RUNS,
        Need(has("dpdk_version"), "no DPDK for the load generator: pkg-config does not find it", "install libdpdk-dev"),
        Need(has("tool_ip"), "no ip on the PATH", "install the package iproute2"),
        Need(
            lambda facts: facts.text("namespaces") == "yes",
            "no right to make network namespaces",
            "run as root or grant CAP_SYS_ADMIN",
        ),
        Need(
            lambda facts: len(facts.cpus) >= 2,
            "load generator and device need a CPU each",
            "allow this process two CPUs (taskset)",
        ),
        REALTIME,
    )
    no_load = "trials of bmv2 offer as much as the load generator can"
    no_load_hint = "use pattern: cbr and offered_load: max, or ask for metrics of a load generator"

    @override
    def runs_text(self, workload: ir.Workload) -> bool:
        return bool(workload.frames)

    @override
    def check(self, workload: ir.Workload, traffic: TrafficPlan) -> None:
        super().check(workload, traffic)
        if workload.frames:
            check_own(workload)
        ports_of(workload)

    @override
    def memory_bytes(self, workload: ir.Workload) -> int:
        return SWITCH_BYTES + ENTRY_BYTES * _entries(workload.program)

    @override
    def build(
        self, workload: ir.Workload, traffic: TrafficPlan, facts: base.NodeFacts
    ) -> tuple[base.BuildPlan, Sequence[Any]]:
        own = workload.text(LANGUAGE)
        written = workload if own is None else replace(workload, program=workload.baseline)
        texts = {f.path: f.text() for f in RuntimeV1Model().generate(written, traffic) if f.path.endswith(".p4")}
        build = build_plan(texts if own is None else {"program.json": own, "baseline.p4": texts["baseline.p4"]}, facts)
        machine = [facts.text(key) for key in ("cpu_model", "cpu_id", "kernel")]
        source = self._source(workload, traffic)
        return build, (build.key, source, _tables(workload.program), LOAD_VERSION, *machine)

    @override
    def setup_s(self, program: ir.Program) -> float:
        return ENTRY_S * _entries(program)

    @override
    def trial(self, plan: base.PointPlan, options: base.TrialOptions, facts: base.NodeFacts) -> base.Job:
        orders = [_order(WARMUP_MS, program, options.seed) for program in PROGRAMS]
        warmup = len(orders)
        orders += [_order(WINDOW_MS, program, options.seed + n) for n in range(options.windows) for program in PROGRAMS]
        gated = options.mode != "plain"
        trial = {"orders": len(orders), "warmup": warmup, "gated": gated, "gate_ratio": options.gate_ratio}
        trial |= {"own": True} if plan.workload.frames else {}
        # Only the switch counts, so that frames need no room for a stamp.
        conversation = self._conversation(plan, TRIAL_LINK, facts, "stamped=0")
        head = shell(_CONVERSE, json.dumps({"trial": trial}), "{build}", "{folder}/orders.txt")
        files = {**conversation.files, "orders.txt": "".join(f"{order}\n" for order in orders).encode()}
        # A window is followed by the packets that wait in the ring of the switch then.
        timeout_s = conversation.timeout_s + len(orders) * 1.0
        return base.Job((*head, *conversation.argv), timeout_s, plan.build, files)

    @override
    def load(self, plan: base.PointPlan, link: LinkPlan, facts: base.NodeFacts) -> base.Job:
        check_link(self.label, self.links, link)
        largest = max((plan.traffic.frame_size_bytes, *link.sizes_bytes))
        check_frame_size("the link to bmv2", largest, MAX_FRAME_BYTES)
        return self._conversation(plan, link, facts)

    def _conversation(self, plan: base.PointPlan, link: LinkPlan, facts: base.NodeFacts, *more_words: str) -> base.Job:
        workload, ports = plan.workload, ports_of(plan.workload)
        start_s = START_S + PATIENCE * ENTRY_S * _entries(workload.program)
        commands = _commands(workload, plan.traffic)
        switch = facts.text("tool_simple_switch", "simple_switch")
        cli = facts.text("tool_simple_switch_cli", "simple_switch_CLI")
        device = ["{build}/" + DEVICE, "--switch", switch, "--cli", cli, "--folder", "{build}"]
        device += ["--port", str(ports.generator), *(w for port in ports.sinks for w in ("--sink", str(port)))]
        first = workload.frames[0] if workload.frames else frame(workload.program, workload.packets)
        device += ["--frame", first.hex(), "--verify", "{folder}/verify.bin"]
        device += [word for table in _tables(workload.program) for word in ("--table", table)]
        if workload.frames:
            device += ["--baseline-port", str(*_unicast(workload.baseline)), *own_states(workload)]
        for name, option in ((COMMANDS["program"], "--commands"), (COMMANDS["baseline"], "--baseline-commands")):
            if name in commands:
                device += [option, f"{{folder}}/{name}"]
        if plan.traffic.hit_ratio < 1 or workload.frames:
            device.append("--drops")
        words = load_arguments(link, 0, _with_two_cpus(facts), device)
        words[-1:-1] = [f"start_ms={round(1e3 * start_s)}", *more_words]
        argv = ("{build}/" + GENERATOR, "load", *words, *self._source(workload, plan.traffic))
        if workload.frames:
            expected = own_verification(workload)
        else:
            # Fields of absent headers are undefined in P4.
            expected = verification_file(workload, foreign_packets=not possibly_absent(workload.program))
        files = {"verify.bin": expected, **link_files(link, MAX_FRAME_BYTES), **frame_files(workload)}
        files |= {name: text.encode() for name, text in commands.items()}
        return base.Job(argv, start_s + 10, plan.build, files)

    def _source(self, workload: ir.Workload, traffic: TrafficPlan) -> list[str]:
        return source_arguments(workload, traffic, self.name, restored=False)

    @override
    def parse(self, result: base.JobResult) -> base.TrialRecord:
        return trial_record(result)

    @override
    def summarise(self, record: base.TrialRecord, gate_ratio: float | None) -> base.TrialSummary:
        summary = super().summarise(record, gate_ratio)
        # Without real-time priorities of its threads a switch under overload drops what it began, gated or not.
        flags = {*summary.flags, *(() if record["realtime"] else ("no_realtime",))}
        return replace(summary, flags=tuple(sorted(flags)))

    @override
    def values(self, record: base.TrialRecord, *statistics: windows.WindowStatistics) -> Sequence[base.MetricValue]:
        program, baseline = statistics
        return (
            *windows.cost_metrics(program, baseline),
            windows.packet_rate("packet_rate", record, program),
            *recorded(record, "memory_bytes", "compile_time", "load_time"),
        )


def _entries(program: ir.Program) -> int:
    return sum(t.entries.count for t in program.tables)


def _order(duration_ms: float, program: str, seed: int) -> str:
    words: dict[str, Any] = {"rate_pps": 0, "duration_ms": duration_ms, "segment_ms": duration_ms, "rest_ms": REST_MS}
    words |= {"seed": seed, "device": program}
    return " ".join(["offer", *(f"{key}={value}" for key, value in words.items())])


def _tables(program: ir.Program) -> list[str]:
    """Names of the tables in simple_switch with their numbers of entries."""
    return [f"{t.label or f'MainIngress.{p4_name(t.name)}'}={t.entries.count}" for t in program.tables]


def _commands(workload: ir.Workload, traffic: TrafficPlan) -> dict[str, str]:
    """The files of commands that program and baseline need, by name."""
    written = replace(workload, program=workload.baseline) if workload.frames else workload
    files = RuntimeV1Model().generate(written, traffic)
    found = {f.path: f.text() for f in files if f.path in COMMANDS.values()}
    own = own_commands(workload) if workload.frames else ""
    return {**found, COMMANDS["program"]: own} if own else found


def _with_two_cpus(facts: base.NodeFacts) -> base.NodeFacts:
    """Facts with the first two CPUs where they are unknown or too few, which the problems of the target report."""
    return facts if len(facts.cpus) >= 2 else base.NodeFacts({**facts.values, "cpus_allowed": "0-1"})
