"""How a program of target dpdk-c is built: the harness and the baseline once for all programs, then the program.

The compiler's time for ``program.c`` alone is kept in the file :data:`COMPILE_TIME_FILE` beside the product, so that a
build that is used again still knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files as package_files

from p4perf.generators.c.dpdk import OWN_OPERATOR
from p4perf.targets.base import BuildPlan, Job, NodeFacts

LOAD_FILES = (
    *("device.h", "load.h", "load_schedule.h", "load_histogram.h"),
    *("load_main.c", "load_generator.c", "load_device.c", "load_link.c", "load_veth.c"),
)
"""The load generator."""

HARNESS_FILES = (
    *("clock.h", "harness.h", "options.h", "quantiles.h", "thread.h", "words.h"),
    *("main.c", "options.c", "words.c", "source.c", "verify.c", "measure.c"),
    *LOAD_FILES,
)
"""The harness itself, which knows nothing of how a program was made."""

LIBRARY_FILES = ("fields.h", "hashes.h", "hashes.c", "tables.h", "tables.c", "prefixes.c")
"""What generated C is built on."""

OPERATORS_HEADER = "operators.h"
"""What operators are built on; programs without any do not get it."""

OWN_HEADER = "own_operator.h"
"""What a user's operator has to define, put before its text."""

PRODUCT = "dpdk-c"
GENERATOR = "load"
COMPILE_TIME_FILE = "compile-ns"
"""Nanoseconds that the compiler took for ``program.c``."""

NATIVE = "native"
PORTABLE = "x86-64-v3"
"""Without AVX-512, which valgrind does not know."""

_CONTEXT = ("cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine")

_FLAGS = """set -e
march=$1
shift
cc=${CC:-cc}
warnings="-Wall -Wextra -Wno-maybe-uninitialized -Wno-type-limits"
flags="-std=gnu11 -O3 $warnings -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=$march"
"""
"""``-march`` comes after the flags of pkg-config, which name an old CPU and would win."""

_PART = (
    _FLAGS
    + """product=$1
shift
exec "$cc" $flags -r -nostdlib -o "$product" "$@\""""
)
"""One object file of several sources."""

_BUILD = (
    _FLAGS
    + f"""[ -e own_operator.o ] && lto=-flto || lto=
begin=$(date +%s%N)
"$cc" $flags $lto -c -o program.o program.c
end=$(date +%s%N)
echo $((end - begin)) >{COMPILE_TIME_FILE}
exec "$cc" $flags $lto -o "$@" program.o $(pkg-config --libs libdpdk) -lrte_net_ring -lm"""
)

_OWN = _FLAGS + f"""exec "$cc" $flags -flto -include {OWN_HEADER} -c -o own_operator.o {OWN_OPERATOR}"""
"""A user's operator is inlined like any other, but its names are its own: hence link-time optimisation."""

_LINK = _FLAGS + 'exec "$cc" $flags -o "$@" $(pkg-config --libs libdpdk) -lrte_net_ring -lm'


def harness_text(names: Iterable[str]) -> dict[str, str]:
    """Files of the harness as text, by name, whichever of its folders they are in."""
    folders = [f for f in (package_files("p4perf.targets") / "harness").iterdir() if f.is_dir()]
    places = {file.name: file for folder in folders for file in folder.iterdir()}
    return {name: places[name].read_text(encoding="utf-8") for name in names}


def objects_plan(product: str, sources: Mapping[str, str], facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """One object file of all ``.c`` files among the sources: what many programs link, built once."""
    compiled = [name for name in sources if name.endswith(".c")]
    return BuildPlan(sources, (("sh", "-c", _PART, "sh", march, product, *compiled),), product, context_of(facts))


def harness_plan(facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """The harness and what generated C is built on, without any program."""
    return objects_plan("harness.o", harness_text((*HARNESS_FILES, *LIBRARY_FILES)), facts, march)


def generator_plan(facts: NodeFacts) -> BuildPlan:
    """A load generator without a device of its own, whose device is another program: ``load``."""
    headers = (name for name in (*HARNESS_FILES, *LIBRARY_FILES) if name.endswith(".h"))
    command = ("sh", "-c", _LINK, "sh", NATIVE, GENERATOR, "load_alone.c", "{harness}/harness.o")
    sources = harness_text((*headers, "load_alone.c"))
    return BuildPlan(sources, (command,), GENERATOR, context_of(facts), {"harness": harness_plan(facts)})


def context_of(facts: NodeFacts) -> dict[str, str]:
    """What a build depends on besides its files."""
    return {key: facts.text(key) for key in _CONTEXT}


def build_plan(generated: Mapping[str, str], facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """The build of ``program.c`` and ``baseline.c``, for the CPU of the node or for a named architecture."""
    headers = harness_text(name for name in (*HARNESS_FILES, *LIBRARY_FILES) if name.endswith(".h"))
    program, baseline = (
        {name: generated[name]} | headers | _operator_headers(generated[name]) for name in ("program.c", "baseline.c")
    )
    parts = {
        "harness": harness_plan(facts, march),
        "baseline": objects_plan("baseline.o", baseline, facts, march),
    }
    command = ("sh", "-c", _BUILD, "sh", march)
    objects = ("{harness}/harness.o", "{baseline}/baseline.o")
    if OWN_OPERATOR not in generated:
        return BuildPlan(program, ((*command, PRODUCT, *objects),), PRODUCT, context_of(facts), parts)
    program |= {OWN_OPERATOR: generated[OWN_OPERATOR]} | harness_text((OWN_HEADER,))
    commands = (
        ("sh", "-c", _OWN, "sh", march),
        (*command, PRODUCT, *objects, "own_operator.o"),
    )
    return BuildPlan(program, commands, PRODUCT, context_of(facts), parts)


def _operator_headers(text: str) -> dict[str, str]:
    """What a program includes if it has operators."""
    return harness_text((OPERATORS_HEADER,)) if f'#include "{OPERATORS_HEADER}"' in text else {}


def calibration_job() -> Job:
    """Both calibrators on every CPU for 0.2 s, without DPDK."""
    sources = harness_text(("clock.h", "calibrate.c"))
    command = ("sh", "-c", 'exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -o calibrate calibrate.c')
    return Job(("{build}/calibrate", "0.2"), 60.0, BuildPlan(sources, (command,), "calibrate"))
