"""Specifications of the SWX pipeline of DPDK: what p4c-dpdk makes of P4, written directly.

One line is one instruction of SWX. DPDK 22.11 either interprets it or generates C for it (target ``dpdk-swx``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import OFFERED, GeneratedFile, Generator, render
from p4perf.generators.swx.code import Assembler, number
from p4perf.generators.swx.control import Control
from p4perf.generators.swx.layout import SCRATCH, WORD_BITS, Model, StructField, StructLayout, whole_bytes
from p4perf.generators.swx.statements import Statements
from p4perf.programs import ir
from p4perf.programs.analysis import masked_values, used_actions
from p4perf.programs.capabilities import Capabilities, Limit, places
from p4perf.programs.component import TrafficPlan
from p4perf.programs.packets import FCS_BYTES
from p4perf.version import __version__

MAX_HEADERS = 64
MAX_STRUCT_BYTES = 255
MAX_METADATA_BYTES = 236
"""What is left of the structure for the fields of a program, beside ports, drop flag and temporaries."""
MAX_NAME = 63
MAX_TABLES = 256
MAX_COPIES = 64
MAX_ROWS = 4096
"""Most entries that ranges of one entry are made of."""

CAPABILITIES = Capabilities(
    "dpdk-swx",
    missing={
        "offered load": "it reads packets from memory as fast as the program takes them",
        "random": "it has no instruction that draws numbers (DPDK 22.11, enum instruction_type)",
        "byte counter": "it does not know how long a packet is: no instruction says it",
        "truncation": "no instruction cuts a packet off",
        "resubmit": "a packet that comes back is the one that was deparsed (DPDK 22.11, instruction recirculate)",
    },
    limits={
        "headers": Limit(
            MAX_HEADERS, "one bit of a 64-bit mask each, DPDK 22.11, rte_swx_pipeline_packet_header_register"
        ),
        "header bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold sizes and offsets in one byte, DPDK 22.11, struct instr_io"
        ),
        "metadata bytes": Limit(
            MAX_METADATA_BYTES,
            "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand; ports and more",
        ),
        "action data bytes": Limit(
            MAX_STRUCT_BYTES, "instructions hold offsets in one byte, DPDK 22.11, struct instr_operand"
        ),
        "tables": Limit(MAX_TABLES, "instructions hold the table in one byte, DPDK 22.11, struct instr_table"),
        "exact entries": Limit(1 << 30, "sizes of 32 bit, DPDK 22.11, rte_swx_table_em.c"),
        "lpm key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "ternary key bits": Limit(8 * 253, "64 fields of rte_acl, DPDK 22.11, rte_swx_table_wm.c"),
        "register bits": Limit(64, "cells of 64 bit, DPDK 22.11, rte_swx_pipeline_regarray_config"),
        "copies": Limit(MAX_COPIES, "mirroring slots are bits of a 64-bit mask, DPDK 22.11, struct thread"),
    },
    offers=OFFERED - {"action selector", "counter of entries", "byte counter", "truncation"},
    remarks={
        "noted parser error": "that a packet is too short goes unnoticed, and what lies behind it in memory is parsed",
        "hash crc16": "DPDK 22.11 has no such function (hash_funcs_register): p4perf registers one with its pipelines",
        "hash crc32": "it is CRC-32C that starts with zero (rte_hash_crc), not that of Ethernet; the oracle knows",
        "hash checksum16": "it says 0xFFFF where RFC 1071 says 0 (ckadd); the oracle knows",
        "checksum verify": "a checksum that should be 0 is taken for wrong: ckadd makes it 0xFFFF",
        "checksum update": "a checksum that should be 0 becomes 0xFFFF (ckadd)",
        "clone": "a clone is made when the packet is sent, so only programs that change no header have clones",
        "lpm": "SWX matches prefixes by rte_acl, as it does ternary keys",
    },
)
"""Constructs that are missing and limits. Offsets in metadata and action data are checked when they are known."""


class Swx(Generator):
    """Renders ``program.spec`` and ``baseline.spec``."""

    name = "swx"
    summary = "specifications of the SWX pipeline of DPDK 22.11"

    @override
    def generate(self, workload: ir.Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        packet_bytes = workload.packets.frame_size_bytes - FCS_BYTES
        CAPABILITIES.check(workload.program, workload.packets, traffic)
        return (
            GeneratedFile("program.spec", (Pipeline(workload.program, "program", packet_bytes).specification(),)),
            GeneratedFile("baseline.spec", (Pipeline(workload.baseline, "baseline", packet_bytes).specification(),)),
        )


class Pipeline:
    """One program as a pipeline of SWX; meters get the size of its packets in memory."""

    def __init__(self, program: ir.Program, role: str, packet_bytes: int) -> None:
        self.program = program
        self.role = role
        self._model = Model(program, packet_bytes)
        # Actions first: the control flow looks at the flags that they set.
        run = {n for t in program.tables for n in t.taken}
        names = (a.name for a in program.actions if a.name in run)
        self._actions = [self._action(name, n) for n, name in enumerate(names)]
        self._apply = Control(self._model).lines()
        self._tables = [self._table(t) for t in program.tables]
        # An instruction reads eight bytes where its field begins, also at the end of the metadata.
        self._model.layout.metadata.append("swx_end", WORD_BITS)
        self._structs = self._all_structs()
        self._check()

    def specification(self, *, table_size: int | None = None) -> str:
        """The whole text; the size of a table is by default the number of its entries."""
        tables = [t | ({} if table_size is None else {"size": table_size}) for t in self._tables]
        return render(
            "swx/program.spec.j2",
            version=__version__,
            program=self.program,
            drop_port=self._model.drop_port,
            registers_crc16="hash crc16" in places(self.program),
            structs=self._structs,
            headers=list(self._headers()),
            registers=self._arrays(),
            meters=self.program.meters,
            actions=self._actions,
            tables=tables,
            apply=self._apply,
        )

    def config(self) -> dict[str, Any]:
        """What the harness has to know, for the template of its configuration."""
        return {
            "role": self.role,
            "n_ports": self._model.n_ports,
            "mirrors": self._model.mirrors,
            "states": self._arrays(),
            "meters": list(self.program.meters),
            "entries": bool(self.entries()),
            "in_order": bool(self.program.states),
            "tables": [
                {"name": t.name, "action": None}
                if isinstance(t.entries, ir.EntryList)
                else {
                    "name": t.name,
                    "action": t.rule.action,
                    "port": t.rule.port,
                    "free_bits": t.rule.free_bits,
                    "key_bits": [bits for _, bits in self._model.match_fields(t)[0]],
                    "arguments": self._model.arguments(t.rule.action),
                }
                for t in self.program.tables
            ],
        }

    def entries(self) -> str:
        """The entries that are one by one, in the format of DPDK, with a line ``table NAME`` before those of each."""
        listed = [t for t in self.program.tables if t.listing and t.keys]
        return "".join(f"{line}\n" for t in listed for line in self._entries(t))

    def _entries(self, table: ir.Table) -> Iterator[str]:
        yield f"table {table.name}"
        exact, seen = self.program.match_kind(table) == "exact", set()
        for priority, entry in enumerate(table.listing):
            fields = []
            for key, match in zip(table.keys, entry.matches, strict=True):
                masks = list(masked_values(match, self.program.width_bits(key.field)))
                for p in self._model.layout.places(key.field):
                    low, ones = p.word * WORD_BITS, (1 << p.bits) - 1
                    fields.append([(n, (v >> low) & ones, (m >> low) & ones) for n, (v, m) in enumerate(masks)])
            if prod(len({n for n, _, _ in f}) for f in fields) > MAX_ROWS:
                raise CapabilityError(f"table {table.name} has ranges of more than {MAX_ROWS} prefixes")
            for row in product(*fields):
                words = [f"0x{v & m:x}" if exact else f"0x{v & m:x}/0x{m:x}" for _, v, m in row]
                if exact and tuple(words) in seen:
                    continue
                seen.add(tuple(words))
                order = [] if exact else ["priority", str(priority)]
                data = self._data_words(entry.action, entry.data)
                yield " ".join(["match", *words, *order, "action", entry.action, *data])

    def _data_words(self, action: str, data: tuple[int, ...]) -> list[str]:
        """Names and values of the data of an action."""
        names = [name for name, *_ in self._model.arguments(action)]
        values = map(number, self.data_values(action, data))
        return [word for pair in zip(names, values, strict=True) for word in pair]

    def data_values(self, action: str, data: tuple[int, ...]) -> tuple[int, ...]:
        """The values of the data of an action in the fields of its structure, in order."""
        return tuple(data[n] >> low & ((1 << bits) - 1) for _, bits, n, low in self._model.arguments(action))

    def _arrays(self) -> list[ir.Counter | ir.Register]:
        """Counters and registers; SWX takes the index modulo a power of two."""
        arrays: list[ir.Counter | ir.Register] = [*self.program.counters, *self.program.registers]
        return [replace(a, size=1 << (a.size - 1).bit_length()) if self._model.general else a for a in arrays]

    def _action(self, name: str, position: int) -> dict[str, Any]:
        code = Assembler(f"A{position}")
        if name in used_actions(self.program):
            Statements(self._model, code, name).action(self.program.action(name))
        if not code.ended:
            code.op("return")
        arguments = self._model.arguments(name)
        return {"name": name, "struct": f"{name}_args_t" if arguments else None, "lines": code.lines()}

    def _table(self, table: ir.Table) -> dict[str, Any]:
        kind = self.program.match_kind(table)
        operands, _ = self._model.match_fields(table)
        matches = [key.match_kind for key in table.keys for _ in self._model.layout.places(key.field)]
        masked = isinstance(table.entries, ir.EntryList) and kind != "exact"
        one_prefix = kind == "lpm" and not masked and sum(match != "exact" for match in matches) == 1
        other = "lpm" if one_prefix else "wildcard"
        data = self._data_words(table.default_action, table.default_data) if table.default_data else ["none"]
        return {
            "name": table.name,
            "fields": [
                (operand, "exact" if match == "exact" and not masked else other)
                for (operand, _), match in zip(operands, matches, strict=True)
            ],
            "actions": table.taken,
            "default": table.default_action,
            "data": " ".join(data),
            "size": max(table.entries.count, 1),
        }

    def _headers(self) -> dict[str, Sequence[StructField]]:
        layout = self._model.layout
        scratch = {SCRATCH: layout.scratch.fields} if layout.scratch.fields else {}
        return {**{name: s.fields for name, s in layout.headers.items()}, **scratch, **self._model.ahead}

    def _all_structs(self) -> list[tuple[str, Sequence[StructField]]]:
        """Names and fields."""
        structs = [(f"{name}_t", fields) for name, fields in self._headers().items()]
        structs.append(("metadata_t", self._model.layout.metadata.fields))
        for action in self._actions:
            arguments = StructLayout("t")
            for name, bits, _, _ in self._model.arguments(action["name"]):
                arguments.append(name, whole_bytes(bits))
            if arguments.fields:
                structs.append((action["struct"], arguments.fields))
        return structs

    def _check(self) -> None:
        """Refuse what instructions of SWX cannot name: it would be cut without a word."""
        for name, fields in self._structs:
            last = fields[-1]
            end = last.first + last.bits if name[:-2] in self._model.layout.headers else last.first
            if end // 8 > MAX_STRUCT_BYTES:
                raise CapabilityError(
                    f"{name} takes more than {MAX_STRUCT_BYTES} B: instructions of SWX hold offsets in one byte "
                    "(DPDK 22.11, struct instr_operand)"
                )
        if len(self._headers()) > MAX_HEADERS:
            raise CapabilityError(f"SWX has {MAX_HEADERS} headers, and one of them is needed to hash or sum fields")
        lines = (*self._apply, *(line for action in self._actions for line in action["lines"]))
        words = {part for line in lines for word in line.split() for part in word.split(".")}
        names = {
            *words,
            *(a["name"] for a in self._actions),
            *(name for name, _ in self._structs),
            *(f.name for _, fields in self._structs for f in fields),
        }
        if too_long := sorted(n for n in names if len(n) > MAX_NAME):
            raise CapabilityError(f"SWX takes names of up to {MAX_NAME} characters, {too_long[0]} is longer")
