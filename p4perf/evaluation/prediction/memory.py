"""Memory of a predicted program: from measured tables where there are such, else by the layouts that a target knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from p4perf.errors import P4PerfError, UsageError
from p4perf.evaluation.prediction.reading.names import SWX
from p4perf.evaluation.prediction.reading.points import parameters_of
from p4perf.models.program import Construct, ProgramGraph
from p4perf.models.program.costs import CostModel
from p4perf.models.program.graph import Size
from p4perf.models.program.memory import (
    TABLE,
    MemoryItem,
    ProgramMemory,
    measured_entries,
    measured_table,
    scale_of,
)
from p4perf.plugins import load_plugin
from p4perf.programs import ir
from p4perf.programs.component import build_workload
from p4perf.programs.reading.flow import base_name
from p4perf.targets.roles import SizesMemory

ARRAYS = ("counter", "meter", "register read", "register write")
TRIES = (SWX, "xdp")
"""Targets whose tables that are not exact are tries: what listed entries take depends on what they have in common."""

FRAME_BYTES = 9000
"""Frames in which the headers of any program fit: what is built here is never sent."""


@dataclass(frozen=True)
class MemoryModel:
    """What a cost model and its target know of memory."""

    model: CostModel

    @cached_property
    def target(self) -> SizesMemory | None:
        """What knows the layouts of tables and arrays; None if it is not installed, or knows none."""
        name, _, variants = self.model.target.partition(":")
        try:
            target = load_plugin("p4perf.targets", name)([v for v in variants.split("+") if v])
        except UsageError:
            return None
        return target if isinstance(target, SizesMemory) else None

    def _sizes(self, program: ir.Program) -> Mapping[str, float]:
        return {} if self.target is None else self.target.memory(program)

    def _item(self, what: str, size_bytes: float | None) -> MemoryItem:
        if size_bytes is None or self.target is None:
            return MemoryItem(what, None, "unknown")
        return MemoryItem(what, size_bytes, "formula", f"layout of {self.target.layout}")

    def __call__(self, graph: ProgramGraph) -> ProgramMemory:
        """Memory of a program: all of its tables and arrays, whichever path a packet takes, and its code."""
        whats = [(node.name, what) for node in graph.nodes.values() for what in node.constructs]
        components = [parameters_of(what) for _, what in whats if what.kind == "component"]
        return ProgramMemory(self._built(components) if components else self._constructs(whats))

    def _built(self, components: Sequence[tuple[str, Mapping[str, Size]]]) -> tuple[MemoryItem, ...]:
        try:
            program = build_workload(components, frame_size_bytes=FRAME_BYTES).program
        except P4PerfError as error:
            return (MemoryItem(f"tables ({error.message})", None, "unknown"),)
        sizes = self._sizes(program)
        tables = tuple(self._table(program, table, f"table {table.name}") for table in program.tables)
        names = (*program.states, *(meter.name for meter in program.meters))
        return (*tables, *(self._item(f"array {name}", sizes.get(name)) for name in names))

    def _constructs(self, whats: Sequence[tuple[str, Construct]]) -> tuple[MemoryItem, ...]:
        """Tables and arrays that constructs look up; a table that is looked up at several places is one."""
        found: dict[str, MemoryItem] = {}
        for node, what in whats:
            name = what.where.partition(",")[0] or base_name(node)
            if what.kind == "lookup" and name not in found:
                program = _program_of(what)
                found[name] = self._table(program, program.tables[0], name)
            elif what.kind in ARRAYS and (label := f"{name}: {_array(what)}") not in found:
                found[label] = self._item(label, self._sizes(_program_of(what)).get(_ARRAY))
        return tuple(found.values())

    def _table(self, program: ir.Program, table: ir.Table, name: str) -> MemoryItem:
        """A table: as it was measured, between measured numbers of entries, or by its layout."""
        tables = self.model.tables
        if self.target is not None and program.match_kind(table) in self.target.half_measured:
            tables = ()
        if table.listing and self.model.target.partition(":")[0] in TRIES and program.match_kind(table) != "exact":
            return MemoryItem(name, None, "unknown")
        table = _by_rule(program, table)
        sizes: dict[str, Size] = {
            "match_kind": program.match_kind(table),
            "entries": table.entries.count,
            "key_bits": program.key_bits(table),
            "action_data_bytes": program.action(table.rule.action).data_bits // 8,
        }
        point = measured_table(tables, sizes)
        if point is not None:
            return MemoryItem(name, point.memory_bytes, "measured", TABLE)

        def by_layout(count: float) -> float | None:
            other = replace(table, entries=replace(table.rule, count=int(count)))
            return self._sizes(replace(program, tables=(other,))).get(table.name)

        item = self._item(name, by_layout(table.entries.count))
        known = {count: size for count in measured_entries(tables, sizes) if (size := by_layout(count)) is not None}
        scale = scale_of(tables, sizes, known)
        if item.size_bytes is None or scale is None:
            return item
        return replace(item, size_bytes=scale * item.size_bytes, basis="interpolated", source=f"{TABLE}, {item.source}")


def _by_rule(program: ir.Program, table: ir.Table) -> ir.Table:
    """A table with as many entries that follow a rule: layouts are known for such."""
    if not table.listing:
        return table
    action = max(table.listed, key=lambda name: program.action(name).data_bits)
    masks = [sum(match.mask.bit_count() for match in entry.matches) for entry in table.listing]
    free = program.key_bits(table) - max(masks) if program.match_kind(table) == "lpm" else 0
    return replace(table, entries=ir.EntrySet(table.entries.count, action, free_bits=free))


def _array(what: Construct) -> str:
    kind = what.kind.partition(" ")[0]
    return f"{kind} of {what.number('cells'):g}"


_ARRAY, _HEADER = "array", "key"

PREFIX_FREE_BITS = 8
"""Free bits of lpm prefixes of unknown length: prefixes of 24 bits with keys of IPv4, as in measured tables."""


def _program_of(what: Construct) -> ir.Program:
    """A program with nothing but the table or the array of a construct, for its layout."""
    empty = ir.Program("memory", (), (), (), (), (), (), ())
    if what.kind != "lookup":
        cells = max(int(what.number("cells")), 1)
        match what.kind:
            case "counter":
                return replace(empty, counters=(ir.Counter(_ARRAY, cells),))
            case "meter":
                return replace(empty, meters=(ir.Meter(_ARRAY, cells),))
            case _:
                return replace(empty, registers=(ir.Register(_ARRAY, cells, int(what.number("bits"))),))
    bits, data = max(int(what.number("key_bits")), 1), int(what.number("action_data_bytes"))
    kind = str(what.size("match_kind"))
    matches = kind if kind in ("exact", "lpm", "ternary") else "ternary"
    parameters = tuple(ir.Field(f"data_{n}", 8 * min(4, data - 4 * n)) for n in range(-(-data // 4)))
    actions = (ir.Action("hit", parameters, (ir.SetEgress(ir.Const(0)),)), ir.Action("miss"))
    header = ir.Header(_HEADER, (ir.Field("key", bits),))
    free = PREFIX_FREE_BITS if matches == "lpm" and bits > PREFIX_FREE_BITS else 0
    entries = ir.EntrySet(max(int(what.number("entries")), 1), "hit", free_bits=free)
    table = ir.Table("table", (ir.Key(ir.FieldRef(_HEADER, "key"), matches),), ("hit", "miss"), "miss", entries)  # type: ignore[arg-type]
    return replace(empty, headers=(header,), actions=actions, tables=(table,))
