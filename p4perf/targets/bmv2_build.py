"""How a program of target bmv2 is built: p4c-bm2-ss, and beside its JSON the harness and the load generator."""

from __future__ import annotations

from collections.abc import Mapping

from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import COMPILE_TIME_FILE, GENERATOR, generator_plan, harness_text

DEVICE = "bmv2"
COMMANDS = {"program": "commands.txt", "baseline": "baseline-commands.txt"}
"""What simple_switch_CLI is told, by program."""

DEVICE_FILES = (
    *("clock.h", "thread.h", "words.h", "words.c", "device.h", "expectation.h", "bmv2.h"),
    *("bmv2_main.c", "bmv2_switch.c", "bmv2_links.c", "bmv2_threads.c", "bmv2_verify.c", "bmv2_device.c"),
)

_COMPILE = f"""set -e
begin=$(date +%s%N)
"$1" --std p4-16 -o "$2.json" "$2.p4"
end=$(date +%s%N)
echo $((end - begin)) >{COMPILE_TIME_FILE}"""

_DEVICE = f'exec "${{CC:-cc}}" -std=gnu11 -O2 -Wall -Wextra -D_GNU_SOURCE -o {DEVICE} words.c bmv2_*.c'

_TOGETHER = f'cp "$1/{DEVICE}" "$2/{GENERATOR}" "$3/baseline.json" .'
"""Program, baseline, harness and load generator in one folder."""


def compiler(facts: NodeFacts) -> str:
    """The compiler of a node, by its path where that is known."""
    return facts.text("tool_p4c_bm2_ss", "p4c-bm2-ss")


def switch_commands(facts: NodeFacts) -> tuple[str, str]:
    """simple_switch and simple_switch_CLI of a node, by their paths where these are known."""
    return facts.text("tool_simple_switch", "simple_switch"), facts.text("tool_simple_switch_cli", "simple_switch_CLI")


def build_plan(generated: Mapping[str, str], facts: NodeFacts) -> BuildPlan:
    """The build of a program; harness, load generator and baseline are built once for all programs.

    Args:
        generated: ``program.p4`` and ``baseline.p4``.
        facts: of the node.
    """
    context = {"p4c_version": facts.text("p4c_bm2_version")}
    compile_one = ("sh", "-c", _COMPILE, "sh", compiler(facts))
    native = {key: facts.text(key) for key in ("cc_version", "machine")}
    parts = {
        "device": BuildPlan(harness_text(DEVICE_FILES), (("sh", "-c", _DEVICE),), DEVICE, native),
        "generator": generator_plan(facts),
        "baseline": BuildPlan(
            {"baseline.p4": generated["baseline.p4"]}, ((*compile_one, "baseline"),), "baseline.json", context
        ),
    }
    together = ("sh", "-c", _TOGETHER, "sh", "{device}", "{generator}", "{baseline}")
    return BuildPlan(
        {"program.p4": generated["program.p4"]},
        ((*compile_one, "program"), together),
        GENERATOR,
        {**context, "bmv2_version": facts.text("bmv2_version")},
        parts,
    )
