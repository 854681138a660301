"""What is built for target t4p4s on a node without a network card: libraries by its own script, and the harness.

``t4p4s.sh`` compiles every program in a copy of its checkout, see :mod:`p4perf.targets.t4p4s_files`. Where it would
take packets from network interfaces (variant ``std``) or from a test file (``test``), it is told of a variant of ours,
whose C file ``harness/t4p4s_ports.c`` takes them from the harness and gives them back; which files a variant has stands
in its file of options (``opts_dpdk.cfg``). Its variable for the C compiler names a script of ours around the compiler
that builds the harness, too: program and baseline have to be in one process, and so it links a shared library instead
of a program.
"""

from __future__ import annotations

from collections.abc import Mapping

from p4perf.generators.rendering import render
from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import (
    COMPILE_TIME_FILE,
    HARNESS_FILES,
    NATIVE,
    context_of,
    harness_plan,
    harness_text,
)
from p4perf.targets.t4p4s_files import ADDED_FILE, BUILT, CONTEXT, OPTIONS, PROGRAMS, script
from p4perf.version import __version__

PRODUCT = "t4p4s"
INTERFACE = "library.h"
PORTS = "t4p4s_ports.c"

VARIANT = "p4perf"
"""What ``t4p4s.sh`` is told as ``variant=``."""

BUILD_TIMEOUT_S = 1800.0
"""Its compiler takes one to two minutes for 1024 entries; and only one of them may work at a time."""

OMISSIONS = (
    "Warning: while",
    "Error: while",
    "[Nn]ot (currently )?supported",
    "syntax error",
    r"\[--Werror=",
    "^(Name|Type|Key|Value|Attribute|Index|NotImplemented)Error",
)
"""What its compiler prints where it leaves something out: extended regular expressions (POSIX).

It ends with status 0 after most of them (compiler_log_warnings_errors.py: warnings do not count).
"""

FAILURES = (
    "No space left on device",
    "ERROR: ",
    ": (fatal )?error: |undefined (symbol|reference)",
    "^[A-Za-z]+Error: ",
    "Error|Cannot ",
)
"""What tells best why there is no library, the best first: a full disk, meson, the C compiler and linker, Python, the
script itself."""

_LINK = """set -e
march=$1
shift
cc=${CC:-cc}
flags="-std=gnu11 -O3 -Wall -Wextra -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=$march"
exec "$cc" $flags -o "$@" $(pkg-config --libs libdpdk) -lrte_net_ring -lm -ldl"""

_TOGETHER = """for file; do
	test -e "${file##*/}" || cp -- "$file" . || exit
done"""


def build_plan(programs: Mapping[str, str], facts: NodeFacts) -> BuildPlan:
    """The harness and both libraries in one folder.

    Args:
        programs: P4 of ``program`` and ``baseline``.
        facts: of the node.
    """
    parts = {role: library_plan(role, text, facts) for role, text in programs.items()}
    return measured_plan(parts, facts)


def measured_plan(libraries: Mapping[str, BuildPlan], facts: NodeFacts) -> BuildPlan:
    """The harness with the libraries of ``program`` and ``baseline``, whoever makes them."""
    parts = {**libraries, "executable": _executable_plan(facts)}
    files = ["{executable}/" + PRODUCT, "{program}/" + COMPILE_TIME_FILE]
    files += [f"{{{role}}}/{role}.so" for role in libraries]
    return BuildPlan({}, (("sh", "-c", _TOGETHER, "sh", *files),), PRODUCT, context_of(facts), parts)


def _executable_plan(facts: NodeFacts) -> BuildPlan:
    """What loads the libraries: the same for all programs."""
    sources = harness_text((*(name for name in HARNESS_FILES if name.endswith(".h")), INTERFACE, "library.c"))
    link = ("sh", "-c", _LINK, "sh", NATIVE, PRODUCT, "library.c", "{harness}/harness.o")
    return BuildPlan(sources, (link,), PRODUCT, context_of(facts), {"harness": harness_plan(facts)})


def library_plan(role: str, text: str, facts: NodeFacts) -> BuildPlan:
    """The library of one program, and in the file :data:`COMPILE_TIME_FILE` how long ``t4p4s.sh`` took for it."""
    added = render("t4p4s/ports.cfg.j2", version=__version__, variant=VARIANT, ports=PORTS)
    compiler = render("t4p4s/cc.sh.j2", programs=PROGRAMS, compiler_file="cc.path")
    library = render(
        "t4p4s/library.sh.j2",
        built=BUILT,
        compiler_file="cc.path",
        failures=FAILURES,
        omissions="|".join(OMISSIONS),
        time_file=COMPILE_TIME_FILE,
    )
    files = {
        f"{role}.p4": text,
        "p4perf.cfg": render("t4p4s/examples.cfg.j2", version=__version__, programs=PROGRAMS),
        ADDED_FILE: added,
        "cc.sh": compiler,
        "library.sh": library,
        **{name: script(name) for name in ("isolate.sh", "environment.sh", "compile.sh")},
        **harness_text((INTERFACE, PORTS)),
    }
    checkout, p4c = facts.text("tool_t4p4s", "."), facts.text("tool_p4c", ".")
    told = (*OPTIONS, f"variant={VARIANT}")
    make = ("sh", "library.sh", role, p4c, facts.text("t4p4s_python", "python3"), *told)
    # t4p4s.sh has fixed names below /tmp. Its own file is what there is one of; the lock is not handed on to it.
    locked = ("flock", "-o", f"{checkout}/t4p4s.sh", *make)
    context = {key: facts.text(key) for key in CONTEXT} | context_of(facts)
    return BuildPlan(files, (("sh", "isolate.sh", checkout), locked), f"{role}.so", context, timeout_s=BUILD_TIMEOUT_S)
