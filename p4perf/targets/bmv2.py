"""Target bmv2: the behavioural model of v1model, ``simple_switch``, which p4c-bm2-ss compiles for.

The program is compiled to JSON, which the switch interprets; entries come through ``simple_switch_CLI``. The switch has
no packet source: packets come from the load generator of this machine through a veth pair, in trials as for loads. All
threads of the switch share one core, and have real-time priorities that rise along the path of a packet (see
``bmv2_threads.c``), so that under overload every packet is finished that was begun. The CPU time of the switch over the
packets that it finished is the cost of a packet then.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, TrafficPlan
from p4perf.generators.capabilities import Capabilities, Limit
from p4perf.generators.p4.flow import possibly_absent
from p4perf.generators.p4.names import p4_name
from p4perf.generators.p4.v1model import CAPABILITIES as V1MODEL
from p4perf.generators.p4.v1model import MAX_RANDOM_BITS, RuntimeV1Model
from p4perf.generators.packets import frame
from p4perf.generators.program import Program, Workload
from p4perf.targets.base import (
    Job,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    Target,
    TrialOptions,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.bmv2_build import COMMANDS, DEVICE, build_plan, switch_commands
from p4perf.targets.bmv2_ports import ports_of
from p4perf.targets.bmv2_record import LOAD_VERSION, PROGRAMS, trial_record
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, GENERATOR
from p4perf.targets.link import LinkPlan, cpus, link_files, load_arguments, no_port
from p4perf.targets.oracle import verification_file
from p4perf.targets.source import source_arguments
from p4perf.targets.summary import cost_metrics, packet_rate, program_and_baseline, trial_summary
from p4perf.targets.windows import gate_ratio_of

TRIAL_LINK = LinkPlan("af-packet")
"""What trials use."""

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
"""A busy machine takes so many times longer."""

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


class Bmv2Target(Target):
    """simple_switch on one core, behind a veth pair."""

    name = "bmv2"
    summary = "simple_switch (bmv2) with what p4c-bm2-ss compiles, all of its threads on one core, behind a veth pair"
    metrics = (
        "cycles_per_packet",
        "tsc_cycles_per_packet",
        "baseline_cycles_per_packet",
        "cost_cycles_per_packet",
        "packet_rate",
        "memory_bytes",
        "compile_time",
        "load_time",
    )
    capabilities: ClassVar[Capabilities] = CAPABILITIES
    links: ClassVar[tuple[str, ...]] = ("af-packet",)

    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        """The switch, its CLI and compiler, the load generator's needs, and the right to make namespaces."""
        found = []
        hint = "build the behavioral-model of p4lang (1.15.0 or newer) and put it on the PATH"
        for fact, tool in (("tool_simple_switch", "simple_switch"), ("tool_simple_switch_cli", "simple_switch_CLI")):
            if not facts.text(fact):
                found.append(Problem(f"no {tool} on the PATH", hint))
        if facts.text("tool_simple_switch") and not facts.text("bmv2_version"):
            found.append(Problem("simple_switch does not tell its version", "run simple_switch --version to see why"))
        if not facts.text("tool_p4c_bm2_ss"):
            found.append(Problem("no p4c-bm2-ss on the PATH", "build p4c with its backend bmv2"))
        if not facts.text("cc_version"):
            found.append(Problem("no C compiler (cc) on the PATH", "install gcc"))
        if not facts.text("dpdk_version"):
            found.append(Problem("no DPDK for the load generator: pkg-config does not find it", "install libdpdk-dev"))
        if not facts.text("tool_ip"):
            found.append(Problem("no ip on the PATH", "install the package iproute2"))
        if facts.text("namespaces") != "yes":
            found.append(Problem("no right to make network namespaces", "run as root or grant CAP_SYS_ADMIN"))
        if len(cpus(facts)) < 2:
            found.append(Problem("load generator and device need a CPU each", "allow this process two CPUs (taskset)"))
        if facts.text("realtime") != "yes":
            found.append(Problem("no right to real-time scheduling", "run as root or grant CAP_SYS_NICE", fatal=False))
        return tuple(found)

    def plan(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> PointPlan:
        """Generate the P4 text, check the limits, estimate the memory."""
        self.capabilities.check(workload.program, workload.packets, traffic)
        if traffic.pattern != "cbr" or traffic.offered_load_mpps is not None:
            raise CapabilityError(
                "trials of bmv2 offer as much as the load generator can",
                key="traffic",
                hint="use pattern: cbr and offered_load: max, or ask for metrics of a load generator",
            )
        ports_of(workload)
        generated = {f.path: f for f in RuntimeV1Model().generate(workload, traffic)}
        build = build_plan({name: generated[name].text() for name in ("program.p4", "baseline.p4")}, facts)
        identity = [build.key, self._source(workload, traffic), _tables(workload.program), LOAD_VERSION]
        identity += [facts.text("cpu_model"), facts.text("cpu_id"), facts.text("kernel")]
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        entries = sum(t.entries.count for t in workload.program.tables)
        memory = SWITCH_BYTES + ENTRY_BYTES * entries
        return PointPlan(key, build, workload, traffic, memory, ENTRY_S * entries)

    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        """One start of generator and both switches, and overload of program and baseline in turns."""
        orders = [_order(WARMUP_MS, program, options.seed) for program in PROGRAMS]
        warmup = len(orders)
        orders += [_order(WINDOW_MS, program, options.seed + n) for n in range(options.windows) for program in PROGRAMS]
        gated = options.mode != "plain"
        trial = {"orders": len(orders), "warmup": warmup, "gated": gated, "gate_ratio": options.gate_ratio}
        # Only the switch counts, so that frames need no room for a stamp.
        conversation = self._conversation(plan, TRIAL_LINK, facts, "stamped=0")
        head = ("sh", "-c", _CONVERSE, "sh", json.dumps({"trial": trial}), "{build}", "{folder}/orders.txt")
        files = {**conversation.files, "orders.txt": "".join(f"{order}\n" for order in orders).encode()}
        # A window is followed by the packets that wait in the ring of the switch then.
        timeout_s = conversation.timeout_s + len(orders) * 1.0
        return Job((*head, *conversation.argv), timeout_s, plan.build, files)

    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        """A generator on DPDK at one end of a veth pair, both switches at the other one."""
        if link.kind not in self.links:
            raise no_port(self, link)
        largest = max((plan.traffic.frame_size_bytes, *link.sizes_bytes))
        if largest > MAX_FRAME_BYTES:
            raise CapabilityError(
                f"the link to bmv2 takes frames of at most {MAX_FRAME_BYTES} B, not {largest} B",
                key="traffic.frame_size",
            )
        return self._conversation(plan, link, facts)

    def _conversation(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts, *more_words: str) -> Job:
        workload, ports = plan.workload, ports_of(plan.workload)
        entries = sum(t.entries.count for t in workload.program.tables)
        start_s = START_S + PATIENCE * ENTRY_S * entries
        commands = _commands(workload, plan.traffic)
        switch, cli = switch_commands(facts)
        device = ["{build}/" + DEVICE, "--switch", switch, "--cli", cli, "--folder", "{build}"]
        device += ["--port", str(ports.generator), *(w for port in ports.sinks for w in ("--sink", str(port)))]
        device += ["--frame", frame(workload.program, workload.packets).hex(), "--verify", "{folder}/verify.bin"]
        device += [word for table in _tables(workload.program) for word in ("--table", table)]
        for name, option in ((COMMANDS["program"], "--commands"), (COMMANDS["baseline"], "--baseline-commands")):
            if name in commands:
                device += [option, f"{{folder}}/{name}"]
        if plan.traffic.hit_ratio < 1:
            device.append("--drops")
        words = load_arguments(link, 0, _with_two_cpus(facts), device)
        words[-1:-1] = [f"start_ms={round(1e3 * start_s)}", *more_words]
        argv = ("{build}/" + GENERATOR, "load", *words, *self._source(workload, plan.traffic))
        # Fields of absent headers are undefined in P4.
        expected = verification_file(workload, foreign_packets=not possibly_absent(workload.program))
        files = {"verify.bin": expected, **link_files(link, MAX_FRAME_BYTES)}
        files |= {name: file.text().encode() for name, file in commands.items()}
        return Job(argv, start_s + 10, plan.build, files)

    def _source(self, workload: Workload, traffic: TrafficPlan) -> list[str]:
        return source_arguments(workload, traffic, self.name, restored=False)

    def parse(self, result: JobResult) -> TrialRecord:
        """The lines of the load generator as windows. What the oracle or the switch refuses will not be tried again."""
        return trial_record(result)

    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        """Medians over the counted windows, cost as program minus baseline of the same start."""
        program, baseline = program_and_baseline(record, gate_ratio)
        circumstances = {"no_realtime": not record["realtime"], "ungated": not record["gated"]}
        values = (
            *cost_metrics(program, baseline),
            packet_rate("packet_rate", record, program),
            MetricValue("memory_bytes", float(record["memory_bytes"]), "B"),
            MetricValue("compile_time", float(record["compile_ms"]), "ms"),
            MetricValue("load_time", float(record["load_ms"]), "ms"),
        )
        return trial_summary((program, baseline), values, {f for f, present in circumstances.items() if present})

    def gate_ratio(self, record: TrialRecord) -> float | None:
        """The ratio of a gated trial."""
        return gate_ratio_of(record)


def _order(duration_ms: float, program: str, seed: int) -> str:
    """One segment of overload."""
    words: dict[str, Any] = {"rate_pps": 0, "duration_ms": duration_ms, "segment_ms": duration_ms, "rest_ms": REST_MS}
    words |= {"seed": seed, "device": program}
    return " ".join(["offer", *(f"{key}={value}" for key, value in words.items())])


def _tables(program: Program) -> list[str]:
    """Names of the tables in simple_switch with their numbers of entries."""
    return [f"MainIngress.{p4_name(t.name)}={t.entries.count}" for t in program.tables]


def _commands(workload: Workload, traffic: TrafficPlan) -> dict[str, GeneratedFile]:
    """The files of commands that program and baseline need, by name."""
    return {f.path: f for f in RuntimeV1Model().generate(workload, traffic) if f.path in COMMANDS.values()}


def _with_two_cpus(facts: NodeFacts) -> NodeFacts:
    """Where CPUs are not known or too few, the command names the first two; the problems of the target say why."""
    return facts if len(cpus(facts)) >= 2 else NodeFacts({**facts.values, "cpus_allowed": "0-1"})
