"""How harnesses and programs are compiled: commands as data, and the harness on DPDK, which is built once for all.

The compiler's time for the program alone is kept in the file :data:`COMPILE_TIME_FILE` beside the product, so that a
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
HARNESS_FILES = (
    *("clock.h", "harness.h", "options.h", "quantiles.h", "thread.h", "words.h"),
    *("main.c", "options.c", "words.c", "source.c", "verify.c", "measure.c"),
    *LOAD_FILES,
)
"""The harness itself, which knows nothing of how a program was made."""

HARNESS_HEADERS = tuple(name for name in HARNESS_FILES if name.endswith(".h"))

LIBRARY_FILES = ("fields.h", "hashes.h", "hashes.c", "tables.h", "tables.c", "prefixes.c")
OPERATORS_HEADER = "operators.h"
"""What operators are built on; programs without any do not get it."""

OWN_HEADER = "own_operator.h"
"""What a user's operator has to define, put before its text."""

DPDK_C = "dpdk-c"
GENERATOR = "load"
COMPILE_TIME_FILE = "compile-ns"
"""Nanoseconds that the compiler took for the program."""

NATIVE = "native"
PORTABLE = "x86-64-v3"
"""Without AVX-512, which valgrind does not know."""

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


def shell(script: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a script with ``$1``, ``$2`` ..."""
    return ("sh", "-c", script, *(("sh", *arguments) if arguments else ()))


def context_of(facts: NodeFacts, *keys: str) -> dict[str, str]:
    """What a build depends on besides its files: those facts; by default what a build with DPDK depends on."""
    keys = keys or ("cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine")
    return {key: facts.text(key) for key in keys}


def harness_text(names: Iterable[str]) -> dict[str, str]:
    """Files of the harness as text, by name, whichever of its folders they are in."""
    folders = [f for f in (package_files("p4perf.targets") / "harness").iterdir() if f.is_dir()]
    places = {file.name: file for folder in folders for file in folder.iterdir()}
    return {name: places[name].read_text(encoding="utf-8") for name in names}


def small_plan(product: str, *files: str) -> BuildPlan:
    """A program of the harness without DPDK and without measured code: the last file is its source."""
    command = f'exec "${{CC:-cc}}" -std=gnu11 -O2 -Wall -Wextra -o {product} {files[-1]}'
    return BuildPlan(harness_text(files), (shell(command),), product)


def _objects_plan(product: str, sources: Mapping[str, str], facts: NodeFacts, march: str) -> BuildPlan:
    """One object file of all ``.c`` files among the sources: what many programs link, built once."""
    compiled = [name for name in sources if name.endswith(".c")]
    return BuildPlan(sources, (shell(_PART, march, product, *compiled),), product, context_of(facts))


def harness_plan(facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """The harness and what generated C is built on, without any program."""
    return _objects_plan("harness.o", harness_text((*HARNESS_FILES, *LIBRARY_FILES)), facts, march)


def generator_plan(facts: NodeFacts) -> BuildPlan:
    """A load generator without a device of its own, whose device is another program: ``load``."""
    command = shell(_LINK, NATIVE, GENERATOR, "load_alone.c", "{harness}/harness.o")
    sources = {**_headers(), **harness_text(("load_alone.c",))}
    return BuildPlan(sources, (command,), GENERATOR, context_of(facts), {"harness": harness_plan(facts)})


def _headers() -> dict[str, str]:
    return harness_text(name for name in (*HARNESS_FILES, *LIBRARY_FILES) if name.endswith(".h"))


def dpdk_c_plan(generated: Mapping[str, str], facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """The build of ``program.c`` and ``baseline.c``, for the CPU of the node or for a named architecture."""

    def sources(name: str) -> dict[str, str]:
        operators = (OPERATORS_HEADER,) if f'#include "{OPERATORS_HEADER}"' in generated[name] else ()
        return {name: generated[name], **_headers(), **harness_text(operators)}

    program = sources("program.c")
    parts = {
        "harness": harness_plan(facts, march),
        "baseline": _objects_plan("baseline.o", sources("baseline.c"), facts, march),
    }
    objects = ["{harness}/harness.o", "{baseline}/baseline.o"]
    commands = []
    if OWN_OPERATOR in generated:
        program |= {OWN_OPERATOR: generated[OWN_OPERATOR]} | harness_text((OWN_HEADER,))
        commands.append(shell(_OWN, march))
        objects.append("own_operator.o")
    commands.append(shell(_BUILD, march, DPDK_C, *objects))
    return BuildPlan(program, tuple(commands), DPDK_C, context_of(facts), parts)


def calibration_job() -> Job:
    """Both calibrators on every CPU for 0.2 s, without DPDK."""
    return Job(("{build}/calibrate", "0.2"), 60.0, small_plan("calibrate", "clock.h", "calibrate.c"))
