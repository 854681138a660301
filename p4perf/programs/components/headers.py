"""Headers: parsed, branched on, added and removed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field as Bounds
from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.builder import ProgramBuilder
from p4perf.programs.component import Component, ComponentParameters
from p4perf.programs.components.baseline import append_header, data_fields, pattern

NEXT_BITS = 8


class ParserHeaders(Component):
    """``headers`` headers of ``header_bits`` bits after Ethernet, one parser state each.

    Scaled: the number of states, extractions and emissions. Held: the frame, the control flow. Each header starts
    with an 8-bit field on which the parser selects the next state, so that no compiler can merge the states.
    """

    name = "parser_headers"
    summary = "a chain of parsed headers, one parser state and one select each"

    class Parameters(ComponentParameters):
        headers: int = Bounds(ge=0, le=64, description="headers parsed after Ethernet")
        header_bits: int = Bounds(32, ge=16, le=1024, multiple_of=8, description="width of each, in bits")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        fields = (ir.Field("next", NEXT_BITS), *data_fields((parameters.header_bits - NEXT_BITS) // 8))
        for n in range(parameters.headers):
            values = {"next": 0, "data_0": n}
            append_header(builder, f"chain_{n}", fields, values, select=("next", 1) if n else None)


class ParsedFields(Component):
    """One header of ``fields`` fields of ``field_bits`` bits, extracted by one state and emitted again.

    Scaled: the fields, and with them the bytes of the header. Held: one parser state, the frame, the control flow. No
    action touches a field, so a compiler that sees that may leave the header where it is in the packet; the cost is
    then that of one length check.
    """

    name = "parsed_fields"
    summary = "one header with a number of fields that is parsed and deparsed"

    class Parameters(ComponentParameters):
        fields: int = Bounds(ge=0, le=1400, description="fields of the header; 0: no header")
        field_bits: Literal[8, 16, 32, 48, 64] = Bounds(8, description="width of each field, in bits")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        if parameters.fields:
            fields = tuple(ir.Field(f"f{n}", parameters.field_bits) for n in range(parameters.fields))
            append_header(builder, "parsed", fields, pattern(fields))


TAG_BITS = 16
MAX_HEADERS = 1024


class ParserBranches(Component):
    """``depth`` selects of ``branches`` cases each; every case leads to a state that extracts a header of its own.

    Scaled: cases, selects, and with both the headers that the deparser has to ask for. Held: the bytes of the packets
    over ``branches``, the control flow. The packets take the last case of every select but the last one, where
    they choose among all cases evenly: that branch cannot be predicted. The other cases of the selects before end the
    parser. The bytes of a packet are the same whichever branch it takes, so a compiler that leaves unchanged headers
    where they are might merge the branches of the last select.
    """

    name = "parser_branches"
    summary = "parser states that select among a number of headers"

    class Parameters(ComponentParameters):
        branches: int = Bounds(ge=1, le=256, description="cases of each select")
        depth: int = Bounds(1, ge=0, le=64, description="selects in sequence")
        header_bits: int = Bounds(
            32, ge=16, le=1024, multiple_of=8, description="width of the header of each case, in bits"
        )

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        branches, depth = parameters.branches, parameters.depth
        if branches * depth > MAX_HEADERS:
            raise parameters.refusal(
                "depth",
                f"{depth} selects of {branches} cases lead to {branches * depth} headers, more than {MAX_HEADERS}",
                "use fewer selects or cases",
            )
        if not depth:
            return
        tag = ir.Field("tag", TAG_BITS)
        append_header(builder, "selector", [tag])
        rest = data_fields((parameters.header_bits - TAG_BITS) // 8)
        for level in range(depth):
            select = ir.FieldRef(builder.last_header.name, tag.name)
            cases = [(case, ir.Header(f"branch_{level}_{case}", (tag, *rest))) for case in range(branches)]
            builder.add_branches(tag.name, cases, pattern(rest, first=level), continued=level < depth - 1)
        builder.vary(select, branches)


class AddedHeaders(Component):
    """One action adds ``headers`` headers of ``header_bytes`` bytes each, every field of which it sets.

    Scaled: the headers that become valid and are emitted; the packet is sent with as many bytes more. Held: the
    packets that come in, the parser. The fields are constants, each byte another one; a compiler may merge neighbouring
    constants into wide stores.
    """

    name = "added_headers"
    summary = "an action that adds a number of headers"

    class Parameters(ComponentParameters):
        headers: int = Bounds(ge=0, le=256, description="headers added")
        header_bytes: int = Bounds(1, ge=1, le=256, description="size of each header, in bytes")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        body = []
        for n in range(parameters.headers):
            header = ir.Header(builder.unique("added"), data_fields(parameters.header_bytes))
            builder.headers.append(header)
            values = pattern(header.fields, first=1 + n * parameters.header_bytes)
            body.append(ir.AddHeader(header.name, tuple((f, ir.Const(v)) for f, v in values.items())))
        builder.call("add_headers", body)


class RemovedHeaders(Component):
    """The packets carry ``removed`` and ``kept`` headers, all of which are parsed; one action removes the first ones.

    Scaled: the headers that are removed; the packet is sent with as many bytes less. With ``kept`` at zero the parser
    grows as well, as published; sweep both so that their sum is constant to hold the parser. Each header is extracted
    by a state of its own; the states follow each other without a select, so a compiler may merge their length checks.
    """

    name = "removed_headers"
    summary = "an action that removes a number of parsed headers"

    class Parameters(ComponentParameters):
        removed: int = Bounds(ge=0, le=256, description="headers parsed and removed")
        kept: int = Bounds(0, ge=0, le=256, description="headers parsed after them and kept")
        header_bytes: int = Bounds(1, ge=1, le=256, description="size of each header, in bytes")

    @override
    def extend(self, builder: ProgramBuilder, parameters: Parameters) -> None:
        body = []
        for n in range(parameters.removed + parameters.kept):
            stem, fields = "removed" if n < parameters.removed else "kept", data_fields(parameters.header_bytes)
            header = append_header(builder, stem, fields, pattern(fields, first=1 + n * parameters.header_bytes))
            if n < parameters.removed:
                body.append(ir.RemoveHeader(header.name))
        builder.call("remove_headers", body)
