"""How a program of target dpdk-c is built: the generated C and the harness, by one compiler call each for two parts.

The compiler's time for ``program.c`` alone is kept in the file :data:`COMPILE_TIME_FILE` beside the product, so that a
build that is used again still knows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files as package_files

from p4perf.targets.base import BuildPlan, NodeFacts

HARNESS_FILES = ("clock.h", "harness.h", "options.h", "main.c", "options.c", "source.c", "verify.c", "measure.c")
"""The harness itself, which knows nothing of how a program was made."""

LIBRARY_FILES = {
    "fields.h": ("fields.h",),
    "hashes.h": ("hashes.h", "hashes.c"),
    "tables.h": ("tables.h", "tables.c", "prefixes.c"),
}
"""What generated C is built on, by the header that it includes if it needs it."""

PRODUCT = "dpdk-c"
COMPILE_TIME_FILE = "compile-ns"
"""Nanoseconds that the compiler took for ``program.c``."""

NATIVE = "native"
PORTABLE = "x86-64-v3"
"""Without AVX-512, which valgrind does not know."""

_CONTEXT = ("cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine")

_BUILD = """set -e
product=$1 march=$2
shift 2
cc=${CC:-cc}
warnings="-Wall -Wextra -Wno-maybe-uninitialized -Wno-type-limits"
flags="-std=gnu11 -O3 $warnings -D_GNU_SOURCE $(pkg-config --cflags libdpdk) -march=$march"
begin=$(date +%s%N)
"$cc" $flags -c -o program.o program.c
end=$(date +%s%N)
echo $((end - begin)) >compile-ns
exec "$cc" $flags -o "$product" program.o "$@" $(pkg-config --libs libdpdk) -lm"""
"""``-march`` comes after the flags of pkg-config, which name an old CPU and would win."""


def harness_text(names: Iterable[str]) -> dict[str, str]:
    """Files of the harness as text, by name."""
    folder = package_files("p4perf.targets") / "harness"
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def build_plan(generated: Mapping[str, str], facts: NodeFacts, march: str = NATIVE) -> BuildPlan:
    """The build of generated files, for the CPU of the node or for a named architecture."""
    text = "".join(generated.values())
    included = [header for header in LIBRARY_FILES if f'#include "{header}"' in text]
    library = [name for header in included for name in LIBRARY_FILES[header]]
    sources = {**generated, **harness_text((*HARNESS_FILES, *library))}
    compiled = [name for name in sources if name.endswith(".c") and name != "program.c"]
    context = {key: facts.text(key) for key in _CONTEXT}
    return BuildPlan(sources, (("sh", "-c", _BUILD, "sh", PRODUCT, march, *compiled),), PRODUCT, context)
