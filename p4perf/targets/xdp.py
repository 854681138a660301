"""Target xdp: generated eBPF programs in the kernel of this machine, run by ``BPF_PROG_TEST_RUN``, no NIC.

What is measured is the program as the JIT compiled it, on a packet in memory: no driver, no descriptor ring, no
redirect. The program draws the keys of its packet stream itself, and takes the time itself (see ``xdp_program.h``), so
that windows of 0.5 ms are resolved inside of runs whose system call takes tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.c.xdp import XDP_CAPABILITIES, Xdp
from p4perf.generators.c.xdp_filter import filter_files
from p4perf.generators.c.xdp_layout import data_bytes, key_bytes
from p4perf.programs.capabilities import Capabilities, Construct
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import EntryList, Program, Table, Workload
from p4perf.programs.packets import frame
from p4perf.targets import process
from p4perf.targets.base import BuildPlan, Job, MetricValue, NodeFacts, PointPlan, Problem, TrialOptions, TrialRecord
from p4perf.targets.bmv2_program import OnBmv2
from p4perf.targets.builds import GENERATOR, context_of, generator_plan, harness_text, shell
from p4perf.targets.link import PAGE_MTU, LinkPlan, check_frame_size, check_link, link_files, load_arguments
from p4perf.targets.oracle import given_to, source_arguments, traffic_arguments, verification_file
from p4perf.targets.process import HarnessTarget
from p4perf.targets.roles import Connects, SizesMemory
from p4perf.targets.windows import COST_METRICS, WindowStatistics, core_frequency, cost_metrics, packet_rate

HARNESS_FILES = (
    *("clock.h", "quantiles.h", "thread.h", "words.h", "device.h", "expectation.h"),
    *("xdp.h", "xdp_shared.h", "xdp_program.h", "ebpf_kernel.h"),
    *("words.c", "xdp_main.c", "xdp_options.c", "xdp_load.c", "xdp_verify.c", "xdp_measure.c", "xdp_device.c"),
)
HARNESS_VERSION = 2

MIN_KERNEL = (5, 19)
"""``bpf_loop`` came with 5.17 and is inlined by the verifier since 5.19."""

COMPILE = """set -e
include=/usr/include/$("${CC:-cc}" -print-multiarch 2>/dev/null || true)
start=$(date +%s%N)
compile() { clang -O2 -g -Wall -fno-strict-aliasing -target bpf -mcpu=v3 -I"$include" "$@"; }
compile -c "$1.bpf.c" -o "$1.o" 2>errors || {
	grep -q "call to built-in function" errors && compile -fno-builtin -c "$1.bpf.c" -o "$1.o" 2>errors
} || { cat errors >&2; exit 1; }
cat errors >&2
end=$(date +%s%N)
echo $((end - start)) >compile_ns"""
"""``-mcpu=v3`` has 32-bit arithmetic and jumps (kernel 5.1).

LLVM makes a call of memset of many stores of zeros, and then has none for eBPF; without built-in functions it does not.
"""

_P4C = r"""p4c-ebpf --target kernel -o filter.c filter.p4
sed -i -e '/_license/d' -e '/^SEC("prog")$/d' -e 's/^int ebpf_filter(/static __always_inline &/' filter.c
"""
"""The filter becomes a function of our own program."""

_OBJECTS = 'exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -r -nostdlib -o harness.o words.c xdp_*.c'

_LINK = """set -e
test -e baseline.o || cp "$2/baseline.o" .
exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -o xdp layout.c "$1/harness.o" -lbpf -lm"""

_TOGETHER = f'cp "$1/xdp" "$1"/*.o "$2/{GENERATOR}" .'
MAX_FRAME_BYTES = PAGE_MTU + 18
"""With header and FCS."""

MIN_FRAME_BYTES = 14
"""Without FCS; the kernel hands no shorter frame to an XDP program."""

ENTRY_S, PREFIX_S = 1e-6, 6e-6
"""What an entry of a hash map and of a trie takes to be added, in seconds, roughly."""

HASH_ELEMENT_BYTES = 48
"""``struct htab_elem`` of the kernel before its key."""

MAP_BYTES = {"exact": 1168, "ternary": 312}
"""What the kernel accounts for a map beside its entries, by the kind of its table: seen with Linux 6.18, two CPUs."""

METER_BYTES = 32
"""``struct meter`` of the generated program: a lock and three words."""

TRIE_NODE_BYTES = 48
"""``struct lpm_trie_node`` before its key; every second node of a full trie holds no entry."""


class XdpTarget(HarnessTarget, Connects, SizesMemory):
    name = "xdp"
    summary = "generated eBPF for XDP in this kernel (BPF_PROG_TEST_RUN, JIT), memory to memory on one core"
    metrics = (
        *COST_METRICS,
        "packet_rate",
        "core_frequency",
        "memory_bytes",
        "program_instructions",
        "code_bytes",
        "compile_time",
        "load_time",
    )
    capabilities: ClassVar[Capabilities] = XDP_CAPABILITIES
    links: ClassVar[tuple[str, ...]] = ("af-packet",)
    queue_packets: ClassVar[int | None] = 256
    """``VETH_RING_SIZE`` in drivers/net/veth.c of Linux."""
    harness_version = HARNESS_VERSION
    needs: ClassVar[tuple[process.Need, ...]] = (
        process.COMPILER,
        process.COMPILER_RUNS,
        process.Need(process.has("clang_version"), "no clang on the PATH", "install clang"),
        process.Need(process.has("libbpf_version"), "no libbpf with headers", "install libbpf-dev"),
        process.Need(
            lambda facts: _kernel(facts.text("kernel")) >= MIN_KERNEL,
            "kernel {kernel} is too old",
            "use Linux 5.19 or newer (bpf_loop)",
        ),
        process.Need(
            lambda facts: facts.text("bpf_jit") != "0",
            "the JIT compiler of eBPF is off",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        process.Need(
            lambda facts: facts.text("bpf_allowed") == "yes",
            "no right to load eBPF programs",
            "run as root or grant CAP_BPF and CAP_NET_ADMIN",
        ),
        process.REALTIME,
    )
    variants: ClassVar[Mapping[str, str]] = {"p4c": "a packet filter for ebpf_model.p4 that p4c-ebpf compiles"}
    no_load = "xdp runs the program on a packet in memory as fast as it goes: it has no offered load"
    memory_noun = "maps"

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; with ``p4c`` there have to be filters of users."""
        super().__init__(variants)
        if self.chosen:
            needed: Mapping[Construct, str] = {
                "noted parser error": "variant p4c runs packet filters of users, which drop what their parser rejects"
            }
            vars(self)["capabilities"] = replace(XDP_CAPABILITIES, requires=needed)

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = super().problems(facts)
        if self.chosen and not facts.text("tool_p4c_ebpf"):
            found += (Problem("no p4c-ebpf on the PATH", "build p4c with its backend ebpf"),)
        return found

    @override
    def memory_bytes(self, workload: Workload) -> int:
        return sum(table_bytes(workload.program, table) for table in workload.program.tables)

    @override
    def build(self, workload: Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        generated = {f.path: f.text() for f in Xdp().generate(workload, traffic)}
        generated |= filter_files(workload) if self.chosen else {}
        build = _build_plan(generated, facts)
        machine = [facts.text(key) for key in ("kernel", "cpu_model", "cpu_id")]
        entries = [table.entries.count for table in workload.program.tables]
        return build, (build.key, _traffic_arguments(workload, traffic), entries, machine, HARNESS_VERSION)

    @override
    def setup_s(self, program: Program) -> float:
        kinds = ((table.entries.count, program.match_kind(table)) for table in program.tables)
        return sum(count * (PREFIX_S if kind == "lpm" else ENTRY_S) for count, kind in kinds)

    @override
    def trial(self, plan: PointPlan, options: TrialOptions, facts: NodeFacts) -> Job:
        entries = process.most_entries(plan.workload.program)
        argv = [*self._point_arguments(plan), "--seed", str(options.seed)]
        argv += process.window_arguments(
            options, "--warmup-packets", str(process.warmup_packets(entries)), warmup=False
        )
        timeout_s = _start_s(plan) + 4e-3 * options.timeout_ms
        return Job(tuple(argv), timeout_s, plan.build, {"verify.bin": self._verification(plan.workload)})

    @override
    def load(self, plan: PointPlan, link: LinkPlan, facts: NodeFacts) -> Job:
        check_link(self.label, self.links, link)
        if not facts.text("dpdk_version"):
            raise CapabilityError(
                "the load generator is a program on DPDK, which pkg-config does not find",
                key="load",
                hint="install the package libdpdk-dev",
            )
        largest = max((plan.traffic.frame_size_bytes, *link.sizes_bytes))
        check_frame_size("native XDP on veth", largest, MAX_FRAME_BYTES)
        source = source_arguments(plan.workload, plan.traffic, self.name, restored=False)
        argv = ("{build}/" + GENERATOR, "load", *load_arguments(link, 0, facts, self._point_arguments(plan)), *source)
        parts = {"device": plan.build, "generator": generator_plan(facts)}
        build = BuildPlan({}, (shell(_TOGETHER, "{device}", "{generator}"),), GENERATOR, {}, parts)
        files = {"verify.bin": self._verification(plan.workload), **link_files(link, MAX_FRAME_BYTES)}
        return Job(argv, _start_s(plan), build, files)

    def _verification(self, workload: Workload) -> bytes:
        """The verification file; of a program that was read without frames that the kernel refuses."""
        if self.chosen:  # a filter counts no hits, and headers that are not there hold anything
            return verification_file(workload, shortest=MIN_FRAME_BYTES, counted=False, kind=OnBmv2)
        shortest = MIN_FRAME_BYTES if workload.frames else 0
        return verification_file(workload, shortest=shortest, given=given_to)

    def _point_arguments(self, plan: PointPlan) -> list[str]:
        """The harness with the point: its program, packets and tables."""
        arguments = ["{build}/xdp", "--folder", "{build}", *_traffic_arguments(plan.workload, plan.traffic)]
        arguments += [] if self.chosen else process.entries_arguments(plan.workload.program)
        return [*arguments, "--verify", "{folder}/verify.bin"]

    @override
    def values(self, record: TrialRecord, *statistics: WindowStatistics) -> Sequence[MetricValue]:
        program, baseline = statistics
        return (
            *cost_metrics(program, baseline),
            packet_rate("packet_rate", record, program),
            core_frequency(record, program),
            *process.recorded(
                record, "memory_bytes", "program_instructions", "code_bytes", "compile_time", "load_time"
            ),
        )

    layout: ClassVar[str] = "maps of Linux"
    half_measured: ClassVar[frozenset[str]] = frozenset({"lpm"})
    """The kernel accounts for the entries of a trie, but not for the nodes between them."""

    @override
    def memory(self, program: Program) -> Mapping[str, float]:
        arrays = {r.name: 8 * r.size for r in program.registers}
        arrays |= {m.name: METER_BYTES * m.size for m in program.meters}
        beside = {t.name: MAP_BYTES.get(program.match_kind(t), 0) for t in program.tables}
        return {t.name: table_bytes(program, t) + beside[t.name] for t in program.tables} | arrays

    @override
    def bytes_per_exact_entry(self, program: Program, table: Table) -> float:
        return 1.5 * 16 + _hash_element_bytes(program, table)


def _start_s(plan: PointPlan) -> float:
    """Time limit for loading, verifying and population: about 0.5 us an entry, several times that if busy."""
    return 30 + 8e-6 * sum(t.entries.count for t in plan.workload.program.tables)


def _traffic_arguments(workload: Workload, traffic: TrafficPlan) -> list[str]:
    first = workload.frames[0] if workload.frames else frame(workload.program, workload.packets)
    arguments = ["--frame", first.hex()]
    for varying in workload.packets.varying:
        arguments += ["--keys", str(varying.count)]
    return arguments + traffic_arguments(workload, traffic)


def table_bytes(program: Program, table: Table) -> int:
    """Memory of one map in bytes, about, from the layout of the kernel's maps."""
    entries = max(table.entries.count, 1)
    data = _data_bytes(program, table)
    kind = program.match_kind(table)
    if kind == "exact":
        return 16 * (1 << (entries - 1).bit_length()) + entries * _hash_element_bytes(program, table)
    if kind == "lpm":
        return 2 * entries * (TRIE_NODE_BYTES + key_bytes(program, table) + data)
    return entries * (2 * _eights(key_bytes(program, table)) + _eights(data))


def _hash_element_bytes(program: Program, table: Table) -> int:
    data = _data_bytes(program, table)
    return HASH_ELEMENT_BYTES + _eights(key_bytes(program, table)) + _eights(data)


def _data_bytes(program: Program, table: Table) -> int:
    """Action data of an entry; of those one by one with the number of the action."""
    most = max((data_bytes(program.action(name)) for name in table.listed), default=0)
    return most + 8 if isinstance(table.entries, EntryList) else most


def _eights(size: int) -> int:
    return -(-size // 8) * 8


def _kernel(release: str) -> tuple[int, int]:
    numbers = [int(part) if part.isdigit() else 0 for part in release.replace("-", ".").split(".")[:2]]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _build_plan(generated: Mapping[str, str], facts: NodeFacts) -> BuildPlan:
    """The build of the generated files; harness and baseline are built once for all programs."""
    harness = harness_text(HARNESS_FILES)
    headers = {name: text for name, text in harness.items() if name.endswith(".h")}
    context = context_of(facts, "cc_version", "clang_version", "libbpf_version", "machine")
    baseline = headers | {"baseline.bpf.c": generated["baseline.bpf.c"]}
    parts = {
        "harness": BuildPlan(harness, (shell(_OBJECTS),), "harness.o", context),
        "baseline": BuildPlan(baseline, (shell(COMPILE, "baseline"),), "baseline.o", context),
    }
    sources = headers | {name: text for name, text in generated.items() if name != "baseline.bpf.c"}
    link = shell(_LINK, "{harness}", "{baseline}")
    compiling = COMPILE
    if "filter.p4" in generated:
        context = {**context, "p4c_version": facts.text("p4c_ebpf_version")}
        compiling = COMPILE.replace("clang ", f"{_P4C}clang ", 1)
    return BuildPlan(sources, (shell(compiling, "program"), link), "xdp", context, parts)
