"""A packet filter of a user that p4c-ebpf compiles, for the harness of target xdp: what stands around it, its entries.

The filter itself is what p4c-ebpf makes of the P4. Keys and values of its maps are C structs of p4c-ebpf; their layout
is left to the compiler of C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p4perf.errors import CapabilityError
from p4perf.generators.base import render
from p4perf.generators.c.writer import WORD_BITS
from p4perf.generators.c.xdp import frames_stream
from p4perf.programs import ir
from p4perf.programs.capabilities import standing_at
from p4perf.programs.reading.ebpf import PORT, filter_control
from p4perf.version import __version__

FILTER = "P4perfIngress.filter."
"""What the names of a filter begin with in the program for v1model that was made of it."""

LPM_BITS = 32


@dataclass(frozen=True, slots=True)
class FilterMap:
    """A map of a filter: its name, the table that it belongs to, its type of keys, and rows of key and value."""

    name: str
    table: str
    key_type: str
    rows: tuple[tuple[str, str], ...]


def filter_files(workload: ir.Workload) -> dict[str, str]:
    """The sources of a filter: ``filter.p4`` is for p4c-ebpf, which makes ``filter.c`` and ``filter.h`` of it.

    Raises:
        CapabilityError: the program is no filter, or a table has keys that are not supported.
    """
    text = workload.text("p4") or ""
    control = filter_control(text)
    if control is None:
        raise CapabilityError(
            "xdp:p4c runs packet filters (ebpfFilter) for ebpf_model.p4, and there is no P4 of one",
            hint="measure the .p4, with p4c-ebpf and p4c-bm2-ss on the PATH; or leave out :p4c",
        )
    maps = [m for table in workload.program.tables if table.keys for m in _maps(workload.program, table, control)]
    stream = frames_stream(workload)
    return {
        "filter.p4": text,
        "program.bpf.c": render("xdp/filter.bpf.c.j2", version=__version__, stream=stream, port=PORT),
        "layout.c": render("xdp/filter_layout.c.j2", version=__version__, maps=maps),
    }


def _maps(program: ir.Program, table: ir.Table, control: str) -> Iterator[FilterMap]:
    name = f"{control}_{table.label.removeprefix(FILTER)}".replace(".", "_")
    with standing_at(table.place):
        rows = tuple((_key(program, table, e), _value(program, name, control, e.action, e.data)) for e in table.listing)
    if rows:
        yield FilterMap(name, name, f"struct {name}_key", rows)
    default = _value(program, name, control, table.default_action, table.default_data)
    yield FilterMap(f"{name}_defaultAction", name, "struct { __u32 zero; }", (("0", default),))


def _key(program: ir.Program, table: ir.Table, entry: ir.Entry) -> str:
    kinds = [key.match_kind for key in table.keys]
    widths = [program.width_bits(key.field) for key in table.keys]
    if kinds == ["lpm"] and widths == [LPM_BITS]:
        (match,) = entry.matches
        return f".prefixlen = {match.mask.bit_count()}, .field0 = NETWORK_32({match.low:#x})"
    if set(kinds) != {"exact"} or max(widths) > WORD_BITS:
        raise CapabilityError(
            f"xdp:p4c fills tables of p4c-ebpf with exact keys of at most {WORD_BITS} bit, or one lpm key of {LPM_BITS}"
        )
    return ", ".join(f".field{n} = {match.low:#x}" for n, match in enumerate(entry.matches))


def _value(program: ir.Program, table: str, control: str, name: str, data: tuple[int, ...]) -> str:
    label = program.action(name).label
    if label in ("", "NoAction"):
        return ".action = 0"
    member = f"{control}_{label.removeprefix(FILTER)}" if label.startswith(FILTER) else f"_{label}"
    values = ", ".join(f"{value:#x}" for value in data)
    return f".action = {table.upper()}_ACT_{member.upper()}, .u = {{.{member} = {{{values}}}}}"
