"""P4 text of a user as target t4p4s compiles it: with its entries, in the manner of t4p4s.

The control plane of t4p4s has no messages for keys of any kind, so the entries of a table become ``const entries`` of
the text, and its default action is written anew. t4p4s reads ``egress_port`` and ignores ``egress_spec``: the former
takes the place of the latter. All else stays as p4c prints the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from p4perf.errors import CapabilityError
from p4perf.generators.base import render
from p4perf.programs import ir
from p4perf.programs.capabilities import Capabilities, Construct, standing_at
from p4perf.targets.dpdk_swx_program import OnSwx
from p4perf.targets.oracle import verification_file
from p4perf.targets.process import refuse_larger_tables

LANGUAGE = "p4"

OFFERED: frozenset[Construct] = frozenset(
    {
        *("entries one by one", "control flow by table result", "exit", "branch in an action", "general expression"),
        *("compound condition", "parser computation", "noted parser error", "intrinsic metadata", "egress"),
    }
)
"""What its compiler takes of the text of a user, or says that it does not."""

_EGRESS_SPEC = re.compile(r"\.egress_spec\b")
_INCLUDE = re.compile(r"^#include <v1model\.p4>", re.MULTILINE)
_ENTRIES = re.compile(r"^ +(const )?entries = \{.*?^ {8}\}\n", re.MULTILINE | re.DOTALL)
_DEFAULT = re.compile(r"^ +(const )?default_action = .*\n", re.MULTILINE)


def check_own(workload: ir.Workload, capabilities: Capabilities) -> None:
    """Refuse a program that was read but that t4p4s does not compile, or compiles to something else.

    Raises:
        CapabilityError: it is one.
    """
    replace(capabilities, offers=OFFERED).check(workload.program, workload.packets)
    if not _INCLUDE.search(workload.text(LANGUAGE) or ""):
        raise CapabilityError(
            "t4p4s compiles P4 for v1model itself, and there is no such text",
            hint="measure the .p4, with p4c-bm2-ss on the PATH",
        )
    if workload.program.port:
        raise CapabilityError("packets of t4p4s come in by port 0", hint="leave out --port")
    refuse_larger_tables("t4p4s", workload.program)
    if not int.from_bytes(own_verification(workload)[8:12], "little"):
        raise CapabilityError("what t4p4s does with each of the packets depends on what earlier packets left")


def own_verification(workload: ir.Workload) -> bytes:
    """The verification file: as of SWX, metadata and absent headers hold anything, and it parses whatever there is."""
    return verification_file(workload, short_packets=False, counted=False, kind=OnSwx)


def own_text(workload: ir.Workload) -> str:
    """The text with the entries of all tables.

    Raises:
        CapabilityError: a table is not found in it.
    """
    text = _EGRESS_SPEC.sub(".egress_port", workload.text(LANGUAGE) or "")
    for table in workload.program.tables:
        if table.keys:
            with standing_at(table.place):
                text = _with_entries(text, workload.program, table)
    return text


def _with_entries(text: str, program: ir.Program, table: ir.Table) -> str:
    control, _, name = (table.label or table.name).rpartition(".")
    body = rf"(^control {re.escape(control)}\(.*?^ +(?:@.*)?table {re.escape(name)} \{{\n)(.*?)(^    \}}\n)"
    found = re.search(body, text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise CapabilityError(f"table {table.label} is not where its name says, in control {control} of the program")
    rows = "".join(_rows(program, table))
    default = f"        default_action = {_called(program, table.default_action)}(" + ", ".join(
        f"{value:#x}" for value in table.default_data
    )
    kept = _ENTRIES.sub("", found[2])
    if program.action(table.default_action).label:
        kept = f"{_DEFAULT.sub('', kept)}{default});\n"
    const = f"        const entries = {{\n{rows}        }}\n" if rows else ""
    return f"{text[: found.start()]}{found[1]}{kept}{const}{found[3]}{text[found.end() :]}"


def _called(program: ir.Program, action: str) -> str:
    return (program.action(action).label or action).rpartition(".")[2]


def _rows(program: ir.Program, table: ir.Table) -> Iterator[str]:
    widths = [program.width_bits(key.field) for key in table.keys]
    for entry in table.listing:
        keys = [
            f"{m.low:#x}" if key.match_kind == "exact" else f"{m.low:#x} &&& {m.mask & ((1 << bits) - 1):#x}"
            for m, key, bits in zip(entry.matches, table.keys, widths, strict=True)
        ]
        data = [f"{value:x}" for value in entry.data]
        yield render("p4/entry_row.j2", action=_called(program, entry.action), keys=keys, parameters=data) + "\n"
