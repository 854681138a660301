"""What is built for target t4p4s on a node without a network card: the harness, around libraries that exist already.

A program of t4p4s is compiled by its user, outside of p4perf, into one shared library that offers the interface of
``harness/library.h``. The folder of these libraries is a fact of the node. Libraries are found by the text of the P4
program that they were made of: ``<first 16 digits of its SHA-256>.so``.

Where the facts name checkouts of t4p4s and p4c, t4p4s' own compiler is asked first whether it takes the program. It
writes beside its sources, so it runs in a copy of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import HARNESS_FILES, NATIVE, context_of, harness_plan, harness_text

PRODUCT = "t4p4s"
INTERFACE = "library.h"

OMISSIONS = (
    "Warning: while",
    "Error: while",
    "[Nn]ot (currently )?supported",
    "syntax error",
    r"\[--Werror=",
    "^(Name|Type|Key|Value|Attribute|Index|NotImplemented)Error",
)
"""What the compiler prints where it leaves something out: extended regular expressions (POSIX).

It ends with status 0 after most of them (compiler_log_warnings_errors.py: warnings do not count).
"""

_ACCEPT = """set -e
checkout=$1 p4c=$2 python=$3 program=$4 omissions=$5
if [ ! -f "$checkout/src/hlir16/hlir.py" ]; then
	echo "error: src/hlir16 is empty in the checkout of t4p4s: git submodule update --init fetches it" >&2
	exit 1
fi
mkdir overlay
cp -R "$checkout/src" overlay/src
cp "$program.p4" overlay/
status=0
(
	cd overlay
	PYTHONDONTWRITEBYTECODE=1 exec "$python" src/compiler.py --multi 1 -p "$p4c" -g build/srcgen "$program.p4"
) >"$program.log" 2>&1 || status=$?
rm -rf overlay
why=$(grep -m 1 -E -e "$omissions" "$program.log" || :)
if [ "$status" != 0 ] && [ -z "$why" ]; then
	why=$(grep . "$program.log" | tail -n 1)
	why="status $status: ${why:-no message}"
fi
if [ -n "$why" ]; then
	echo "error: t4p4s does not take this program: $why" >&2
	exit 1
fi"""
"""Asks the compiler; its exit status alone says little."""

_TAKE = """if [ ! -f "$1" ]; then
	echo "error: there is no library of this $2: $1" >&2
	exit 1
fi
exec cp -- "$1" "$2.so\""""
"""Takes the library of a program out of the folder of libraries."""

_LINK = """set -e
march=$1
shift
cc=${CC:-cc}
flags="-std=gnu11 -O3 -Wall -Wextra -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API $(pkg-config --cflags libdpdk) -march=$march"
exec "$cc" $flags -o "$@" $(pkg-config --libs libdpdk) -lrte_net_ring -lm -ldl"""

_TOGETHER = """for file; do
	test -e "${file##*/}" || cp -- "$file" . || exit
done"""

_CONTEXT = ("t4p4s_commit", "hlir16_commit", "p4test_version")
_DIGITS = 16
_BUILT = re.compile(rf"[0-9a-f]{{{_DIGITS}}}:[0-9]+")


def library_name(text: str) -> str:
    """The file name of the library of a program, by the text of the program."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS] + ".so"


def built_libraries(facts: NodeFacts) -> Mapping[str, str]:
    """The libraries of the node: their checksums, by file name."""
    pairs = (word.partition(":") for word in facts.text("t4p4s_built").split() if _BUILT.fullmatch(word))
    return {f"{name}.so": checksum for name, _, checksum in pairs}


def build_plan(programs: Mapping[str, str], facts: NodeFacts) -> BuildPlan:
    """The harness and both libraries in one folder.

    Args:
        programs: P4 of ``program`` and ``baseline``.
        facts: of the node.
    """
    parts = {role: _library_plan(role, text, facts) for role, text in programs.items()}
    parts["executable"] = _executable_plan(facts)
    files = ("{executable}/" + PRODUCT, *(f"{{{role}}}/{role}.so" for role in programs))
    return BuildPlan({}, (("sh", "-c", _TOGETHER, "sh", *files),), PRODUCT, context_of(facts), parts)


def _executable_plan(facts: NodeFacts) -> BuildPlan:
    """What loads the libraries: the same for all programs."""
    sources = harness_text((*(name for name in HARNESS_FILES if name.endswith(".h")), INTERFACE, "library.c"))
    link = ("sh", "-c", _LINK, "sh", NATIVE, PRODUCT, "library.c", "{harness}/harness.o")
    return BuildPlan(sources, (link,), PRODUCT, context_of(facts), {"harness": harness_plan(facts)})


def _library_plan(role: str, text: str, facts: NodeFacts) -> BuildPlan:
    """The library of one program, after t4p4s' compiler was asked, if it is there."""
    name = library_name(text)
    context = {key: facts.text(key) for key in _CONTEXT} | {"library": built_libraries(facts).get(name, "")}
    place = f"{facts.text('t4p4s_libraries', '.')}/{name}"
    commands: list[tuple[str, ...]] = [("sh", "-c", _TAKE, "sh", place, role)]
    checkout, p4c = facts.text("tool_t4p4s"), facts.text("tool_p4c")
    if checkout and p4c:
        python = facts.text("t4p4s_python", "python3")
        commands.insert(0, ("sh", "-c", _ACCEPT, "sh", checkout, p4c, python, role, "|".join(OMISSIONS)))
    return BuildPlan({f"{role}.p4": text}, tuple(commands), f"{role}.so", context)
