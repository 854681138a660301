"""P4_16 as p4c-dpdk takes it, for the SWX pipeline of DPDK 22.11: PSA and PNA.

p4c-dpdk and DPDK compile some programs to something else than they say, or refuse each other's. What is done:

* A constant on the left of a comparison, ``~``, and arithmetic, comparisons or constants of more than 64 bit are in
  specs that DPDK refuses: constants stand on the right, the others are refused.
* Fields of headers that are not whole bytes are taken from the wrong bits (the first is taken for the lowest): programs
  that use one are refused. They may be there.
* ``reject`` is ``accept``, extraction knows no length, and ``parser_error`` does not compile: a frame that is too short
  is not dropped. No workload sends one.
* Metadata is not zero: fields that are read are set to zero first.
* Indices of counters, meters and registers are masked by the pipeline: the text does not do it again.
* CRC16 silently becomes crc32, and that is CRC-32C without inversion; the fields are hashed in the order of bytes of
  the processor where they do not follow each other in one header. crc16 is refused, crc32 has a note. The result of a
  hash is metadata, or DPDK refuses the spec.
* ``InternetChecksum`` is right over whole headers of 16-bit words only: that is what it is used for. The sum over a
  header that holds its checksum is tested against zero; a checksum of 0xffff, which is no result of RFC 1071, passes
  for zero.
* ``Meter`` needs ``dpdk_execute`` and a length that is no constant. There is no length of the packet, so it gets the
  input port: without rates a meter says green whatever the length. Of pna's colours only green is written as another
  number than one that means something else: see :attr:`DpdkWriter.other_colour`.
* const entries would go to a file in the current directory: entries stand in files of their own, as
  ``rte_swx_ctl_pipeline_table_entry_read`` takes them (value and mask; 256 words in a line). An action that several
  tables run on a hit has a copy for each, as p4c would name its own copies.
* ``Random`` does not compile. Resubmission, clones and multicast compile to nothing (psa) or do not exist.

* The packet starts as dropped, as PSA says; ``send_to_port`` takes a drop back: drops are kept in a flag where
  something after them can set the port. Either way the rest of the control runs.
* ``resubmit``, clones, multicast, recirculation and everything in egress compile, but metadata is written that nobody
  reads: all are refused.

* ``send_to_port`` takes a constant or a parameter of an action, nothing that is computed.
* There is no port at first, and none is no drop: where a packet can pass without one, a flag is kept and tested
  last.
* ``drop_packet`` ends the packet at once. Nothing that follows could undo that; but where something after it leaves
  something behind (a count, a register), drops are kept in a flag that is tested last.
* The colours of meters have wrong numbers: those of PNA, not DPDK's. ``YELLOW`` is 2 for p4c (red for DPDK), and would
  be 1 (yellow) if it were right: a packet that conforms is neither, so that is what is asked for.
* The number of the pass has 3 bit: comparisons with a larger number are refused.
* Recirculation works; it waits for the end where a packet can be dropped after it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.generators.base import GeneratedFile, render
from p4perf.generators.p4 import writer as p4
from p4perf.generators.p4.base import P4Generator, assigned_wide, unshared
from p4perf.generators.p4.writer import FlowFacts, Writer
from p4perf.programs import ir
from p4perf.programs.analysis import condition_operands, control_nodes, expressions, statements, written_fields
from p4perf.programs.capabilities import Capabilities, Construct, Limit, Quantity
from p4perf.programs.entries import entry_rows, key_masks

PORT_BITS = 32
MAX_PORT = (1 << 16) - 1
WIDEST_BITS = 64
"""Widest fields that DPDK calculates with, and that get constants."""

MAX_ROW_WORDS = 256
"""Words in a line of an entry file (``RTE_SWX_CTL_ENTRY_TOKENS_MAX``)."""

MAX_HEADERS = 64

LIMITS: Mapping[Quantity, Limit] = {
    "headers": Limit(MAX_HEADERS, "DPDK 22.11 answers more with a header configuration error"),
    "computed field bits": Limit(WIDEST_BITS, "DPDK 22.11 refuses wider operands"),
    "register bits": Limit(64, "cells of a register array of DPDK"),
    "lpm key bits": Limit(2024, "64 fields of rte_acl"),
    "ternary key bits": Limit(2024, "64 fields of rte_acl"),
}


class DpdkWriter(Writer):
    """Statements that psa and pna share."""

    masks_indices: ClassVar[bool] = False
    prefix: ClassVar[Literal["PSA", "PNA"]]
    other_colour: ClassVar[str]
    """A colour that no conforming packet has."""
    meter_arguments: ClassVar[str]
    """What a meter is executed with; the length has to be something that is no constant."""

    def __init__(self, program: ir.Program, flow: FlowFacts) -> None:
        super().__init__(unshared(program), flow)

    @property
    def sum(self) -> str:
        """The metadata field for a checksum that is verified."""
        return self.metadata_name("checksum_sum")

    @override
    def extra_metadata(self) -> Iterator[str]:
        yield from super().extra_metadata()
        if self.program.verified:
            yield f"bit<16> {self.sum}"
        if self.hashes:
            yield f"bit<32> {self.digest}"

    @property
    def hashes(self) -> bool:
        return any(isinstance(s, ir.Hash) for s in statements(self.program))

    @property
    def digest(self) -> str:
        """The metadata field for the result of a hash."""
        return self.metadata_name("digest")

    @property
    def hasher(self) -> str:
        taken = {x.name for group in (self.program.actions, self.program.tables) for x in group}
        return "crc32_unit" if "crc32_unit" not in taken else "crc32_unit_of_hashes"

    def epilogue(self) -> Iterator[str]:
        """What happens at the end of the control."""
        yield from p4.alternatives([(f"{self.drop_flag} == 1", (self.drop_now,))] if self.drop_flag else [])

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        match statement:
            case ir.Hash(ref, _, fields):
                to = self.scope[ref]
                data = ", ".join(self.field(f) for f in fields)
                yield f"meta.{self.digest} = {self.hasher}.get_hash({{ {data} }});"
                yield f"{to.text} = {p4.cast(p4.Typed(f'meta.{self.digest}', 32), to.width_bits)};"
            case ir.MeterPacket(ref, meter, index):
                at = self.index(scope, index, self.program.meter(meter).size)
                to, call = self.scope[ref], f"{p4.p4_name(meter)}.dpdk_execute({at}, {self.meter_arguments})"
                yield f"if ({call} == {self.prefix}_MeterColor_t.{self.other_colour}) {{"
                yield f"    {to.text} = {to.width_bits}w1;"
                yield "} else {"
                yield f"    {to.text} = {to.width_bits}w0;"
                yield "}"
            case ir.ReadRegister(ref, name, index):
                register, to = self.program.register(name), self.scope[ref]
                at = self.index(scope, index, register.size)
                read = p4.Typed(f"{p4.p4_name(name)}.read({at})", register.width_bits)
                yield f"{to.text} = {p4.cast(read, to.width_bits)};"
            case _:
                yield from super().effect(statement, position, action, scope)

    def entry_file(self, stem: str, table: ir.Table) -> str:
        return f"{'' if stem == 'program' else f'{stem}-'}entries-{table.name}.txt"

    @override
    def companions(self, stem: str) -> tuple[GeneratedFile, ...]:
        filled = [t for t in self.program.tables if t.entries.count]
        rows = [partial(entry_rows, self.program, t, partial(self._row, t)) for t in filled]
        return tuple(
            GeneratedFile(self.entry_file(stem, t), p4.Pieces(make), t.entries.count)
            for t, make in zip(filled, rows, strict=True)
        )

    def _row(self, table: ir.Table, keys: Sequence[str], parameters: Sequence[str]) -> str:
        """A line of an entry file; numbers of more than 64 bit have all of their digits."""
        texts = []
        for key, digits, known in zip(table.keys, keys, key_masks(self.program, table), strict=True):
            length = known.width_bits // 4 if known.width_bits > WIDEST_BITS else 0
            value = f"0x{digits.rjust(length, '0')}"
            mask = f"0x{known.mask:0{length}x}"
            texts.append(value if key.match_kind == "exact" else f"{value}/{mask}")
        names = [p4.p4_name(p.name) for p in self.program.action(table.rule.action).parameters]
        arguments = list(zip(names, parameters, strict=True))
        return render("p4/dpdk_row.j2", keys=texts, action=p4.p4_name(table.rule.action), parameters=arguments)


class DpdkGenerator(P4Generator):
    """Renders the programs for p4c-dpdk, and a file of entries for every table."""

    max_port = MAX_PORT

    @override
    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        owner = self.capabilities.owner
        # Checksums take whole headers, which are right.
        named = (*(state.select for state in program.parser), *expressions(program))
        refs = written_fields(program).union(e for e in named if isinstance(e, ir.FieldRef))
        for header in program.headers:
            offset = 0
            for f in header.fields:
                if (offset % 8 or f.width_bits % 8) and ir.FieldRef(header.name, f.name) in refs:
                    raise CapabilityError(
                        f"{owner} takes {header.name}.{f.name} from the wrong bits of its byte (p4c-dpdk 1.2.3.7)"
                    )
                offset += f.width_bits
        if (ref := assigned_wide(program, WIDEST_BITS)) is not None:
            raise CapabilityError(
                f"{owner}: DPDK 22.11 refuses constants for {ref.header}.{ref.field}, as for all "
                f"fields of more than {WIDEST_BITS} bit"
            )
        if wide := next((f.name for f in program.metadata if f.width_bits > WIDEST_BITS), None):
            raise CapabilityError(f"{owner} has metadata of at most {WIDEST_BITS} bit, and {wide} has more")
        for state in program.parser:
            if state.select is not None and program.width_bits(state.select) > WIDEST_BITS:
                raise CapabilityError(f"{owner} selects on at most {WIDEST_BITS} bit")
        for table in program.tables:
            self._check_table(program, table)
        for checksum in (*program.verified, *program.updated):
            if program.header(checksum.header).size_bytes % 2:
                raise CapabilityError(f"{owner} sums 16-bit words, and header {checksum.header} is no number of them")
        if (program.verified or program.updated) and len(program.headers) >= MAX_HEADERS:
            raise CapabilityError(f"{owner} needs a header of its own for checksums, and takes {MAX_HEADERS} in all")

    def _check_table(self, program: ir.Program, table: ir.Table) -> None:
        owner = self.capabilities.owner
        if sum(key.match_kind == "lpm" for key in table.keys) > 1:
            raise CapabilityError(f"{owner} takes one lpm key in a table, and {table.name} has more (p4c-dpdk)")
        words = 3 + len(table.keys) + 2 * len(program.action(table.rule.action).parameters)
        if words > MAX_ROW_WORDS:
            raise CapabilityError(
                f"an entry of table {table.name} has {words} words, and {owner} reads {MAX_ROW_WORDS} "
                "(RTE_SWX_CTL_ENTRY_TOKENS_MAX of DPDK 22.11)"
            )


_MISSING: Mapping[Construct, str] = {
    "hash crc16": "p4c-dpdk silently calculates crc32 instead",
    "hash checksum16": "InternetChecksum of p4c-dpdk is wrong over anything but whole headers",
    "random": "p4c-dpdk does not implement it",
}
_CRC32 = "CRC-32C, not inverted, and over bytes in the order of the processor where fields are copied"
_NOTHING = "p4c-dpdk writes metadata for it that the pipeline never reads"


class PsaWriter(DpdkWriter):
    prefix = "PSA"
    drop_now = "ingress_drop(ostd);"
    other_colour = "RED"
    meter_arguments = "PSA_MeterColor_t.GREEN, (bit<32>)(PortIdUint_t)istd.ingress_port"

    @override
    def keeps_drops(self) -> bool:
        return self.flow.revived

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        if isinstance(statement, ir.SetEgress):
            text = p4.expression_text(scope, statement.port, PORT_BITS)
            yield f"send_to_port(ostd, (PortId_t)(PortIdUint_t){f'({text})' if ' ' in text else text});"
        else:
            yield from super().effect(statement, position, action, scope)


class Psa(DpdkGenerator):
    name = "psa"
    summary = "P4_16 for psa as p4c-dpdk takes it"
    title = "psa (p4c-dpdk)"
    template = "p4/psa.p4.j2"
    capabilities = Capabilities(
        owner="psa",
        missing={**_MISSING, "recirculate": _NOTHING, "resubmit": _NOTHING, "clone": _NOTHING, "multicast": _NOTHING},
        limits=LIMITS,
        remarks={
            "hash crc32": _CRC32,
            "meter": "the length that it receives is the input port; without rates it says green",
        },
    )
    compilers = (("p4test", "{source}"), ("p4c-dpdk", "--arch", "psa", "-o", "{output}.spec", "{source}"))
    writer_class = PsaWriter


PASS_BITS = 3
"""Width of the number of the pass (``PassNumberUint_t`` in dpdk/pna.p4)."""


class PnaWriter(DpdkWriter):
    prefix = "PNA"
    drop_now = "drop_packet();"
    other_colour = "YELLOW"
    meter_arguments = "(bit<32>)(PortIdUint_t)istd.input_port"

    def __init__(self, program: ir.Program, flow: FlowFacts) -> None:
        super().__init__(program, flow)
        self.forwarded = self.flag("forwarded") if flow.may_lack_port else None
        waits = flow.recirculates and (flow.drop_after_again or flow.may_lack_port or self.drop_flag is not None)
        self.recirculated = self.flag("recirculated") if waits else None

    @override
    def keeps_drops(self) -> bool:
        return self.flow.lasting_after_drop

    @override
    def pass_number(self) -> p4.Typed | None:
        return p4.Typed("(PassNumberUint_t)istd.pass", PASS_BITS)

    @override
    def flags(self) -> Iterator[str]:
        yield from (flag for flag in (self.drop_flag, self.recirculated, self.forwarded) if flag)

    @override
    def epilogue(self) -> Iterator[str]:
        rows = (
            (self.drop_flag, 1, self.drop_now),
            (self.recirculated, 1, "recirculate();"),
            (self.forwarded, 0, self.drop_now),
        )
        yield from p4.alternatives([(f"{flag} == {value}", (call,)) for flag, value, call in rows if flag])

    @override
    def typed_ports(self, action: ir.Action) -> Mapping[str, tuple[str, p4.Typed]]:
        number = "(PortIdUint_t)"
        return {n: ("PortId_t", p4.Typed(f"{number}{p4.p4_name(n)}", PORT_BITS)) for n in p4.port_parameters(action)}

    @override
    def effect(self, statement: ir.Statement, position: int, action: ir.Action, scope: p4.Scope) -> Iterator[str]:
        told = f" {self.forwarded} = 1;" if self.forwarded else ""
        match statement:
            case ir.SetEgress(ir.Const(port)):
                yield f"send_to_port((PortId_t){p4.constant_text(port, PORT_BITS)});{told}"
            case ir.SetEgress(ir.ParameterRef(name)):
                yield f"send_to_port({p4.p4_name(name)});{told}"
            case ir.Recirculate():
                yield f"{self.recirculated} = 1;" if self.recirculated else "recirculate();"
            case _:
                yield from super().effect(statement, position, action, scope)


class Pna(DpdkGenerator):
    name = "pna"
    summary = "P4_16 for pna as p4c-dpdk takes it"
    title = "pna (p4c-dpdk)"
    template = "p4/pna.p4.j2"
    capabilities = Capabilities(
        owner="pna",
        missing={
            **_MISSING,
            "resubmit": "PNA does not have it",
            "clone": "mirror_packet of PNA copies the packet as it leaves, not as it came",
            "multicast": "PNA does not have it",
        },
        limits=LIMITS,
        remarks={
            "hash crc32": _CRC32,
            "meter": "the length that it receives is the input port; without rates it says green; colours other than "
            "green have other numbers",
        },
    )
    compilers = (("p4test", "{source}"), ("p4c-dpdk", "--arch", "pna", "-o", "{output}.spec", "{source}"))
    writer_class = PnaWriter

    @override
    def check(self, program: ir.Program, flow: FlowFacts) -> None:
        super().check(program, flow)
        for statement in statements(program):
            if isinstance(statement, ir.SetEgress) and not isinstance(statement.port, ir.Const | ir.ParameterRef):
                raise CapabilityError(
                    "pna sends to a constant port or to one from an entry, not to one that is computed (send_to_port)"
                )
        for node in control_nodes(program.control):
            sides = condition_operands(node.condition) if isinstance(node, ir.If) else ()
            large = [e.value for e in sides if isinstance(e, ir.Const) and e.value >> PASS_BITS]
            if large and any(isinstance(e, ir.PassNumber) for e in sides):
                raise CapabilityError(
                    f"pna counts passes in {PASS_BITS} bit, and {large[0]} is more (PassNumberUint_t in dpdk/pna.p4)"
                )
