"""How a pipeline of target dpdk-swx is built: by the interpreter of SWX at start, or from the C that SWX generates.

Pipelines that p4c-dpdk makes of P4 (PNA): what the harness has to know of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from p4perf.generators.p4.dpdk import Pna
from p4perf.generators.p4.writer import p4_name
from p4perf.generators.rendering import render
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs import ir
from p4perf.programs.capabilities import Capabilities, Limit, both
from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import (
    COMPILE_TIME_FILE,
    HARNESS_FILES,
    NATIVE,
    context_of,
    harness_plan,
    harness_text,
)
from p4perf.version import __version__

PRODUCT = "dpdk-swx"
HARNESS_HEADERS = tuple(name for name in HARNESS_FILES if name.endswith(".h"))
COMMON_FILES = ("swx.h", "swx_code.h", "swx_port.c", "swx_setup.c", "swx_tables.c")
INTERPRETER_FILES = (
    "swx_interpreter.c",
    "swx_code.c",
    "swx_spec.h",
    "swx_spec.c",
    "swx_lines.h",
    "swx_lines.c",
    "swx_check.c",
)
CODEGEN_FILES = ("swx_codegen.c",)
TRANSLATOR = "swx_translate"
TRANSLATOR_SOURCES = ("swx_translate.c", "swx_code.c")

_FLAGS = """set -e
cc=${CC:-cc}
case ${XDG_CACHE_HOME:-} in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
flags="-std=gnu11 -O3 -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=native"
flags="$flags -I$cache/p4perf/dpdk-$(pkg-config --modversion libdpdk)"
libraries="$(pkg-config --libs libdpdk) -lrte_net_ring -lm -ldl"
"""
"""``-march=native`` comes after the flags of pkg-config, which name an old CPU and would win."""

_OBJECTS = _FLAGS + 'exec "$cc" $flags -Wall -Wextra -r -nostdlib -o "$@"'

_TRANSLATE = _FLAGS + f'exec "$cc" $flags -Wall -Wextra -o {TRANSLATOR} {" ".join(TRANSLATOR_SOURCES)} $libraries'

_P4C = 'p4c-dpdk --arch pna -o "$2.spec" "$2.p4" || exit'
"""From P4 to a specification."""

_LIBRARY = (
    _FLAGS
    + f"""begin=$(date +%s%N)
"$1/{TRANSLATOR}" "$2.spec" "$2.c"
"$cc" $flags -fno-strict-aliasing -w -fpic -shared -o "$2.so" "$2.c"
end=$(date +%s%N)
echo $((end - begin)) >{COMPILE_TIME_FILE}"""
)
"""The time of the compiler is that of both steps: from the specification to C, from C to a library.

The code that SWX generates reads words of 64 bit where it wrote words of 16 bit; gcc may not assume otherwise.
"""

_LINK = _FLAGS + 'exec "$cc" $flags -Wall -Wextra -o "$@" config.c $libraries'


def config_text(pipelines: Sequence[Mapping[str, object]]) -> str:
    """The C file that tells the harness of the pipelines."""
    return render("swx/config.c.j2", version=__version__, pipelines=pipelines)


def pipeline_files(pipelines: Sequence[Pipeline]) -> tuple[dict[str, str], str]:
    """Specifications by file name, and the C file that tells the harness of them.

    The tables are made anew when they are filled. The specification says one entry for all of them, so that what was
    compiled of it serves tables of all sizes.
    """
    specifications = {f"{p.role}.spec": p.specification(table_size=1) for p in pipelines}
    return specifications, config_text([p.config() for p in pipelines])


def build_plan(
    specifications: Mapping[str, str], config: str, facts: NodeFacts, *, interpreted: bool, march: str = NATIVE
) -> BuildPlan:
    """The build for the CPU of the node, or another. What is interpreted does not depend on the specifications.

    The harness, the translator and the compiled baseline are built once for all programs. P4 (PNA) in the place of the
    specifications, ``program.p4`` and ``baseline.p4``, is compiled by p4c-dpdk first.
    """
    context = context_of(facts)
    suffix = "p4" if "program.p4" in specifications else "spec"
    compiler: tuple[str, ...] = ()
    if suffix == "p4":
        context["p4c_version"] = facts.text("p4c_version")
        compiler = (_P4C,)

    def shell(script: str) -> tuple[str, ...]:
        return ("sh", "-c", script.replace(f"-march={NATIVE}", f"-march={march}"), "sh")

    def part(product: str, sources: Mapping[str, str], script: str, *arguments: str) -> BuildPlan:
        return BuildPlan(sources, ((*shell(script), *arguments),), product, context)

    own = harness_text((*HARNESS_HEADERS, *COMMON_FILES, *(INTERPRETER_FILES if interpreted else CODEGEN_FILES)))
    swx = part("swx.o", own, _OBJECTS, "swx.o", *(name for name in own if name.endswith(".c")))
    parts = {"harness": harness_plan(facts, march), "swx": swx}
    sources = {**harness_text((*HARNESS_HEADERS, "swx.h")), "config.c": config}
    link = (*shell(_LINK), PRODUCT, "{harness}/harness.o", "{swx}/swx.o")
    if interpreted:
        no_compiler = ("sh", "-c", f"echo 0 >{COMPILE_TIME_FILE}")
        return BuildPlan(sources, (no_compiler, link), PRODUCT, context, parts)
    translator = part(TRANSLATOR, harness_text((*TRANSLATOR_SOURCES, "swx_code.h")), _TRANSLATE)
    compiled = (*shell("\n".join((*compiler, _LIBRARY))), "{translator}")
    baseline = BuildPlan(
        {f"baseline.{suffix}": specifications[f"baseline.{suffix}"]},
        ((*compiled, "baseline"),),
        "baseline.so",
        context,
        {"translator": translator},
    )
    parts |= {"translator": translator, "baseline": baseline}
    sources[f"program.{suffix}"] = specifications[f"program.{suffix}"]
    beside = ("sh", "-c", 'test -e baseline.so || cp "$1/baseline.so" .', "sh", "{baseline}")
    return BuildPlan(sources, ((*compiled, "program"), beside, link), PRODUCT, context, parts)


_NUMBERED = re.compile(r"_(\d+)$")


def p4c_capabilities(swx: Capabilities) -> Capabilities:
    """What both the dialect and the pipeline can do, and the hashes that come out otherwise."""
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
