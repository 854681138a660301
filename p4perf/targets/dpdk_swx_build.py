"""How a pipeline of target dpdk-swx is built: by the interpreter of SWX at start, or from the C that SWX generates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4perf.generators.rendering import render
from p4perf.generators.swx import Pipeline
from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, HARNESS_FILES, harness_text
from p4perf.version import __version__

PRODUCT = "dpdk-swx"
COMMON_FILES = ("swx.h", "swx_port.c", "swx_tables.c")
INTERPRETER_FILES = ("swx_interpreter.c", "swx_spec.h", "swx_spec.c", "swx_check.c")
CODEGEN_FILES = ("swx_codegen.c", "swx_translate.c")

_CONTEXT = ("cc_version", "dpdk_version", "cpu_model", "cpu_id", "machine")

_FLAGS = """set -e
product=$1
shift
cc=${CC:-cc}
flags="-std=gnu11 -O3 -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=native"
libraries="$(pkg-config --libs libdpdk) -lm -ldl"
"""
"""``-march=native`` comes after the flags of pkg-config, which name an old CPU and would win."""

_INTERPRETER = (
    _FLAGS
    + f"""echo 0 >{COMPILE_TIME_FILE}
exec "$cc" $flags -Wall -Wextra -o "$product" "$@" $libraries"""
)

_CODEGEN = (
    _FLAGS
    + f"""case ${{XDG_CACHE_HOME:-}} in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
flags="$flags -I$cache/p4perf/dpdk-$(pkg-config --modversion libdpdk)"
"$cc" $flags -o swx_translate swx_translate.c $libraries
build() {{
    ./swx_translate "$1.spec" "$1.c"
    "$cc" $flags -fno-strict-aliasing -w -fpic -shared -o "$1.so" "$1.c"
}}
begin=$(date +%s%N)
build program
end=$(date +%s%N)
echo $((end - begin)) >{COMPILE_TIME_FILE}
build baseline
exec "$cc" $flags -Wall -Wextra -o "$product" "$@" $libraries"""
)
"""The code that SWX generates reads words of 64 bit where it wrote words of 16 bit; gcc may not assume otherwise.

The time of the compiler is that of both steps for the program: from the specification to C, from C to a library.
"""


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


def build_plan(specifications: Mapping[str, str], config: str, facts: NodeFacts, *, interpreted: bool) -> BuildPlan:
    """The build for the CPU of the node. What is interpreted does not depend on the specifications."""
    own = INTERPRETER_FILES if interpreted else CODEGEN_FILES
    sources = {**harness_text((*HARNESS_FILES, *COMMON_FILES, *own)), "config.c": config}
    compiled = [name for name in sources if name.endswith(".c") and name != "swx_translate.c"]
    if not interpreted:
        sources |= specifications
    context = {key: facts.text(key) for key in _CONTEXT}
    script = _INTERPRETER if interpreted else _CODEGEN
    return BuildPlan(sources, (("sh", "-c", script, "sh", PRODUCT, *compiled),), PRODUCT, context)
