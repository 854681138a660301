"""Target dpdk-swx: the P4 pipeline of DPDK (SWX) in one process, packets from memory, no NIC.

SWX is what p4c-dpdk compiles to. Its instructions are either interpreted or, by default, compiled: SWX generates C, gcc
makes a library of it, and the pipeline is built from that. Program and baseline are two pipelines in one process; each
works on up to 16 packets at once, one instruction of this and one of that, to hide the time that memory takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from p4perf.errors import UsageError
from p4perf.generators.base import render
from p4perf.generators.p4.dpdk import Pna
from p4perf.generators.p4.writer import p4_name
from p4perf.generators.swx.spec import CAPABILITIES, Pipeline
from p4perf.programs import ir
from p4perf.programs.capabilities import Capabilities, Limit, both
from p4perf.programs.component import TrafficPlan
from p4perf.programs.interpreter import Given, Interpreter, unknown
from p4perf.programs.operators import crc16, crc32c_raw, internet_checksum
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.swx import entries_text
from p4perf.targets import builds
from p4perf.targets.base import (
    BuildPlan,
    JobResult,
    MetricValue,
    NodeFacts,
    PointPlan,
    Problem,
    TrialRecord,
    TrialSummary,
)
from p4perf.targets.dpdk import HARNESS_LIMITS, HARNESS_VERSION, POOL_BYTES, DpdkTarget, LinkedDpdkTarget
from p4perf.targets.dpdk_swx_program import METER_BYTES, OnSwx, check_own, own_bytes, own_pipeline
from p4perf.targets.oracle import Hashes, frame_files, verification_file
from p4perf.targets.process import entries_arguments
from p4perf.version import __version__

WILDCARD_ENTRY_BYTES = 4096
"""Memory of an entry while rte_acl compiles its rules: 3,640 B were seen with 2e5 to 5e6 prefixes."""

COMPILED_TABLE_BYTES, COMPILED_ENTRY_BYTES, COMPILED_FIELD_BYTES = 12_000, 80, 32
"""Memory of a wildcard table afterwards: within 1 % of what was seen with 10 to 50,000 neighbouring prefixes of 32-bit
keys. How it is divided among entries and their fields is a guess."""

SWX = "swx"
"""The language of specifications."""

OF_SPECIFICATIONS = Capabilities(
    "dpdk-swx", {k: v for k, v in CAPABILITIES.missing.items() if k == "offered load"}, HARNESS_LIMITS
)
"""What limits the packets of a specification that runs as it is."""

HEADERS_HINT = "sh tools/fetch-dpdk-headers.sh fetches them; dpdk-swx:interpreter needs none"


PRODUCT = "dpdk-swx"
HASH_FILES = ("swx_hashes.c", "hashes.h")
COMMON_FILES = ("swx.h", "swx_code.h", "swx_port.c", "swx_setup.c", "swx_tables.c", *HASH_FILES)
SPECIFICATION_FILES = (
    *("swx_spec.h", "swx_spec.c", "swx_lines.h", "swx_lines.c"),
    *("swx_check.c", "swx_configure.c", "swx_code.h", "swx_code.c"),
)
INTERPRETER_FILES = ("swx_interpreter.c", *SPECIFICATION_FILES)
CODEGEN_FILES = ("swx_codegen.c",)
TRANSLATOR = "swx_translate"
TRANSLATOR_FILES = ("swx_translate.c", "plain_fail.c", "words.h", *SPECIFICATION_FILES, *HASH_FILES, "hashes.c")

_FLAGS = """set -e
cc=${CC:-cc}
case ${XDG_CACHE_HOME:-} in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
flags="-std=gnu11 -O3 -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=native"
flags="$flags -I$cache/p4perf/dpdk-$(pkg-config --modversion libdpdk)"
libraries="$(pkg-config --libs libdpdk) -lrte_net_ring -lm -ldl"
"""
"""``-march=native`` comes after the flags of pkg-config, which name an old CPU and would win."""

_OBJECTS = _FLAGS + 'exec "$cc" $flags -Wall -Wextra -r -nostdlib -o "$@"'

_TRANSLATE = _FLAGS + f'exec "$cc" $flags -Wall -Wextra -o {TRANSLATOR} "$@" $libraries'

_P4C = 'p4c-dpdk --arch pna -o "$2.spec" "$2.p4" || exit'
_LIBRARY = (
    _FLAGS
    + f"""begin=$(date +%s%N)
"$1/{TRANSLATOR}" "$2.spec" "$2.c"
"$cc" $flags -fno-strict-aliasing -w -fpic -shared -o "$2.so" "$2.c"
end=$(date +%s%N)
echo $((end - begin)) >{builds.COMPILE_TIME_FILE}"""
)
"""The time of the compiler is that of both steps: from the specification to C, from C to a library.

The code that SWX generates reads words of 64 bit where it wrote words of 16 bit; gcc may not assume otherwise.
"""

_LINK = _FLAGS + 'exec "$cc" $flags -Wall -Wextra -o "$@" config.c $libraries'


def config_text(pipelines: Sequence[Mapping[str, object]]) -> str:
    """The C file that describes the pipelines to the harness."""
    return render("swx/config.c.j2", version=__version__, pipelines=pipelines)


def build_plan(
    specifications: Mapping[str, str], config: str, facts: NodeFacts, *, interpreted: bool, march: str = builds.NATIVE
) -> BuildPlan:
    """The build for the CPU of the node, or another. What is interpreted does not depend on the specifications.

    The harness, the translator and the compiled baseline are built once for all programs. P4 (PNA) in the place of the
    specifications, ``program.p4`` and ``baseline.p4``, is compiled by p4c-dpdk first.
    """
    context = builds.context_of(facts)
    suffix = "p4" if "program.p4" in specifications else "spec"
    compiler: tuple[str, ...] = ()
    if suffix == "p4":
        context["p4c_version"] = facts.text("p4c_version")
        compiler = (_P4C,)

    def command(script: str, *arguments: str) -> tuple[str, ...]:
        return builds.shell(script.replace(f"-march={builds.NATIVE}", f"-march={march}"), *arguments)

    own = builds.harness_text(
        (*builds.HARNESS_HEADERS, *COMMON_FILES, *(INTERPRETER_FILES if interpreted else CODEGEN_FILES))
    )
    compiled = [name for name in own if name.endswith(".c")]
    swx = BuildPlan(own, (command(_OBJECTS, "swx.o", *compiled),), "swx.o", context)
    parts = {"harness": builds.harness_plan(facts, march), "swx": swx}
    sources = {**builds.harness_text((*builds.HARNESS_HEADERS, "swx.h")), "config.c": config}
    link = command(_LINK, PRODUCT, "{harness}/harness.o", "{swx}/swx.o")
    if interpreted:
        return BuildPlan(sources, (builds.shell(f"echo 0 >{builds.COMPILE_TIME_FILE}"), link), PRODUCT, context, parts)
    translating = builds.harness_text(TRANSLATOR_FILES)
    compiled = [name for name in translating if name.endswith(".c")]
    translator = BuildPlan(translating, (command(_TRANSLATE, *compiled),), TRANSLATOR, context)
    library = "\n".join((*compiler, _LIBRARY))
    baseline = BuildPlan(
        {f"baseline.{suffix}": specifications[f"baseline.{suffix}"]},
        (command(library, "{translator}", "baseline"),),
        "baseline.so",
        context,
        {"translator": translator},
    )
    parts |= {"translator": translator, "baseline": baseline}
    sources[f"program.{suffix}"] = specifications[f"program.{suffix}"]
    beside = builds.shell('test -e baseline.so || cp "$1/baseline.so" .', "{baseline}")
    return BuildPlan(sources, (command(library, "{translator}", "program"), beside, link), PRODUCT, context, parts)


def swx_checksum(data: bytes) -> int:
    """The internet checksum as ckadd of SWX has it: 0xFFFF where RFC 1071 says 0, which is the same number to it."""
    return internet_checksum(data) or 0xFFFF


HASHES: Hashes = (("crc16", crc16), ("crc32", crc32c_raw), ("checksum16", swx_checksum))
"""What the hash functions of SWX calculate: its crc32 is ``rte_hash_crc``, CRC-32C that starts with zero; crc16 is the
harness's own (swx_hashes.c).
"""


class DpdkSwxTarget(LinkedDpdkTarget):
    name = PRODUCT
    summary = "the SWX pipeline of DPDK, compiled from the C that it generates, memory to memory on one core"
    metrics: ClassVar[tuple[str, ...]] = (*DpdkTarget.metrics, "program_instructions")
    variants: ClassVar[Mapping[str, str]] = {
        "interpreter": "SWX interprets the instructions; needs no headers of DPDK's source package",
        "p4c": "P4 (PNA) that p4c-dpdk compiles, instead of specifications of p4perf's own",
    }
    capabilities: ClassVar[Capabilities] = replace(CAPABILITIES, limits={**CAPABILITIES.limits, **HARNESS_LIMITS})

    def __init__(self, variants: Sequence[str] = ()) -> None:
        """Choose variants; with ``p4c`` a program has to be within what both P4 and SWX can do."""
        super().__init__(variants)
        self.from_p4, self.interpreted = "p4c" in self.chosen, "interpreter" in self.chosen
        if self.from_p4:
            vars(self)["capabilities"] = p4c_capabilities(self.capabilities)
        if self.interpreted:
            vars(self)["metrics"] = tuple(m for m in type(self).metrics if m != "code_bytes")
        if self.from_p4 and self.interpreted:
            raise UsageError("what p4c-dpdk compiles is compiled further: p4c and interpreter exclude each other")

    @override
    def problems(self, facts: NodeFacts) -> tuple[Problem, ...]:
        found = list(super().problems(facts))
        if not self.interpreted and facts.text("dpdk_version") and not facts.text("dpdk_source_headers"):
            found.append(Problem("two headers of the source package of DPDK are missing", HEADERS_HINT))
        if self.from_p4 and not facts.text("tool_p4c_dpdk"):
            found.append(Problem("no p4c-dpdk on the PATH", "build p4c, release 1.2.3.7 or another of early 2023"))
        return tuple(found)

    @override
    def runs_text(self, workload: ir.Workload) -> bool:
        return workload.text(SWX) is not None

    @override
    def check(self, workload: ir.Workload, traffic: TrafficPlan) -> None:
        # What a specification has, SWX has.
        text = workload.text(SWX)
        if text is None:
            super().check(workload, traffic)
        else:
            OF_SPECIFICATIONS.check(workload.baseline, workload.packets, traffic)
            check_own(workload, text)

    @override
    def memory_bytes(self, workload: ir.Workload) -> int:
        text = workload.text(SWX)
        return POOL_BYTES + (program_bytes(workload.program) if text is None else own_bytes(workload.program, text))

    @override
    def build(self, workload: ir.Workload, traffic: TrafficPlan, facts: NodeFacts) -> tuple[BuildPlan, Sequence[Any]]:
        specifications, build = self._texts_and_build(workload, traffic, facts, builds.NATIVE)
        entries = [t.entries.count for t in workload.program.tables]
        return build, (build.key, specifications, self.traffic_arguments(workload, traffic), entries, HARNESS_VERSION)

    @override
    def build_for(self, workload: ir.Workload, traffic: TrafficPlan, facts: NodeFacts, march: str) -> BuildPlan:
        return self._texts_and_build(workload, traffic, facts, march)[1]

    def _texts_and_build(
        self, workload: ir.Workload, traffic: TrafficPlan, facts: NodeFacts, march: str
    ) -> tuple[Mapping[str, str], BuildPlan]:
        text = workload.text(SWX)
        if text is not None:
            (baseline,) = _pipelines(workload)
            texts = {"program.spec": text, **_specifications([baseline])}
            config = config_text([own_pipeline(workload.program, text), baseline.config()])
        elif self.from_p4:
            source = replace(workload, program=unnumbered(workload.program))
            texts = {f.path: f.text() for f in Pna().generate(source, traffic) if f.path.endswith(".p4")}
            config = config_text([as_p4c_names_it(p) for p in _pipelines(source)])
        else:
            pipelines = _pipelines(workload)
            texts, config = _specifications(pipelines), config_text([p.config() for p in pipelines])
        return texts, build_plan(texts, config, facts, interpreted=self.interpreted, march=march)

    @override
    def point_arguments(self, plan: PointPlan) -> list[str]:
        return super().point_arguments(plan) + entries_arguments(plan.workload.program)

    @override
    def job_files(self, workload: ir.Workload) -> dict[str, bytes]:
        # What fields of absent headers hold is up to the compiler of P4.
        text = workload.text(SWX)
        kind = Interpreter if text is None else OnSwx
        expected = verification_file(
            workload,
            hashes=HASHES,
            short_packets=False,
            foreign_packets=not self.from_p4,
            kind=kind,
            given=_never if text is None and not self.from_p4 else unknown,
        )
        pipelines = _pipelines(workload)
        texts = _specifications(pipelines) if self.interpreted else {}
        texts |= {f"{p.role}.entries": entries for p in pipelines if (entries := p.entries())}
        if text is not None:
            texts |= {"program.spec": text} if self.interpreted else {}
            texts |= {"program.entries": entries} if (entries := entries_text(workload.program)) else {}
        files = {name: text.encode() for name, text in texts.items()}
        return {"verify.bin": expected, **files, **frame_files(workload)}

    @override
    def population_s(self, program: ir.Program) -> float:
        """As for others, and rte_acl compiles its rules."""
        exact = sum(t.entries.count for t in program.tables if program.match_kind(t) == "exact")
        return 4e-6 * exact + 1e-4 * (sum(t.entries.count for t in program.tables) - exact)

    @override
    def parse(self, result: JobResult) -> TrialRecord:
        record = dict(super().parse(result))
        lines = [line for line in result.stdout.splitlines() if line.startswith('{"pipeline"')]
        record["pipelines"] = {p["pipeline"]: p for p in map(json.loads, lines)}
        return record

    @override
    def summarise(self, record: TrialRecord, gate_ratio: float | None) -> TrialSummary:
        pipeline = record["pipelines"]["program"]
        summary = super().summarise({**record, "code_bytes": pipeline.get("code_bytes", 0)}, gate_ratio)
        given = tuple(m for m in summary.metrics if m.metric != "code_bytes" or not self.interpreted)
        if given and "instructions" in pipeline:
            given += (MetricValue("program_instructions", float(pipeline["instructions"]), "instructions"),)
        return replace(summary, metrics=given)

    @override
    def memory(self, program: ir.Program) -> Mapping[str, float]:
        return item_bytes(program)

    @override
    def bytes_per_exact_entry(self, program: ir.Program, table: ir.Table) -> float:
        big = 1 << 20
        return 32 * _power_of_two(-(-big // 4)) / big + _key_bytes(program, table) + _data_bytes(program, table)


def _never(number: int) -> Given:
    """Timestamps of SWX, which has no clock."""
    return Given(0, 0)


def _pipelines(workload: ir.Workload) -> tuple[Pipeline, ...]:
    """The pipelines that are written for a workload: program and baseline, or the latter alone."""
    size = workload.packets.frame_size_bytes - FCS_BYTES
    baseline = Pipeline(workload.baseline, "baseline", size)
    return (baseline,) if workload.text(SWX) is not None else (Pipeline(workload.program, "program", size), baseline)


def _specifications(pipelines: Sequence[Pipeline]) -> dict[str, str]:
    """Specifications by file name.

    The tables are made anew when they are filled. The specification states one entry for all of them, so that what was
    compiled of it serves tables of all sizes.
    """
    return {f"{p.role}.spec": p.specification(table_size=1) for p in pipelines}


def program_bytes(program: ir.Program) -> int:
    """Memory of tables, registers and meters in bytes, from the layout of the tables of SWX in DPDK 22.11."""
    wildcards = [t for t in program.tables if program.match_kind(t) != "exact"]
    compiling = sum(table_bytes(program, t) for t in wildcards) - sum(_compiled_bytes(program, t) for t in wildcards)
    return sum(item_bytes(program).values()) + max(compiling, 0)


def item_bytes(program: ir.Program) -> dict[str, int]:
    """Memory of each table, counter, register and meter in bytes, by its name, once the tables are filled."""
    exact = {t.name for t in program.tables if program.match_kind(t) == "exact"}
    found = {
        t.name: table_bytes(program, t) if t.name in exact else _compiled_bytes(program, t) for t in program.tables
    }
    found |= {c.name: 8 * c.size for c in program.counters} | {r.name: 8 * r.size for r in program.registers}
    return found | {m.name: METER_BYTES * m.size for m in program.meters}


def table_bytes(program: ir.Program, table: ir.Table) -> int:
    """Memory of one table in bytes. That of a wildcard table is what rte_acl takes while it compiles its rules."""
    count = max(table.entries.count, 1)
    if program.match_kind(table) != "exact":
        return count * (WILDCARD_ENTRY_BYTES + _data_bytes(program, table))
    buckets = 2 * 36 * _power_of_two(-(-count // 4))
    return buckets + count * (4 + _key_bytes(program, table) + _data_bytes(program, table))


def _compiled_bytes(program: ir.Program, table: ir.Table) -> int:
    """Memory of a wildcard table in bytes, after rte_acl has compiled its rules."""
    fields = 1 + -(-program.key_bits(table) // 32)
    entry = COMPILED_ENTRY_BYTES + COMPILED_FIELD_BYTES * fields + _data_bytes(program, table)
    return COMPILED_TABLE_BYTES + max(table.entries.count, 1) * entry


def _key_bytes(program: ir.Program, table: ir.Table) -> int:
    return _power_of_two(-(-program.key_bits(table) // 8))


def _data_bytes(program: ir.Program, table: ir.Table) -> int:
    sizes = (sum(-(-p.width_bits // 8) for p in program.action(name).parameters) for name in table.listed)
    return _power_of_two(8 + max(sizes, default=0))


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


_NUMBERED = re.compile(r"_(\d+)$")


def p4c_capabilities(swx: Capabilities) -> Capabilities:
    """The common capabilities of dialect and pipeline, without hashes that give other results."""
    chain = both(swx, Pna.capabilities)
    reason = "p4c-dpdk hashes copies of the fields in metadata, which have the byte order of the processor"
    passes = Limit(7, "PNA counts passes in 3 bit, PassNumberUint_t in dpdk/pna.p4")
    return replace(chain, missing={**chain.missing, "hash crc32": reason}, limits={**chain.limits, "passes": passes})


def unnumbered(program: ir.Program) -> ir.Program:
    """The same program, in which no counter, meter or register has a name that ends with a number.

    p4c-dpdk numbers such names anew.
    """
    arrays = (*(m.name for m in program.meters), *program.states)
    names = {name: _NUMBERED.sub(r"_nr\1", name) for name in arrays}

    def renamed(statement: ir.Statement) -> ir.Statement:
        match statement:
            case ir.CountPacket(name, _):
                return replace(statement, counter=names[name])
            case ir.MeterPacket(_, name, _):
                return replace(statement, meter=names[name])
            case ir.ReadRegister(_, name, _) | ir.WriteRegister(name, _, _):
                return replace(statement, register=names[name])
            case _:
                return statement

    return replace(
        program,
        actions=tuple(replace(a, body=tuple(renamed(s) for s in a.body)) for a in program.actions),
        counters=tuple(replace(c, name=names[c.name]) for c in program.counters),
        meters=tuple(replace(m, name=names[m.name]) for m in program.meters),
        registers=tuple(replace(r, name=names[r.name]) for r in program.registers),
    )


def as_p4c_names_it(pipeline: Pipeline) -> Mapping[str, Any]:
    """What the harness has to know of a pipeline that p4c-dpdk made of the same program.

    Its fields are whole where specifications of our own have words of 64 bit, and arrays have a number behind their
    name.
    """
    program, config = pipeline.program, pipeline.config()
    arrays = {kind: [replace(a, name=f"{p4_name(a.name)}_0") for a in config[kind]] for kind in ("states", "meters")}
    tables = []
    for table in config["tables"]:
        keys = program.table(table["name"]).keys
        parameters = program.action(table["action"]).parameters
        tables.append(
            {
                **table,
                "name": p4_name(table["name"]),
                "action": p4_name(table["action"]),
                "key_bits": [program.width_bits(key.field) for key in keys],
                "arguments": [(p4_name(p.name), p.width_bits, n, 0) for n, p in enumerate(parameters)],
            }
        )
    return {**config, **arrays, "tables": tables}
