"""Specifications of SWX as they are, compared with what the interpreter makes of the programs that are read of them."""

from __future__ import annotations

import copy
import struct
from dataclasses import fields, is_dataclass, replace

from p4perf.formats.swx_spec import read_specification
from p4perf.programs import ir
from p4perf.programs.analysis import written_fields
from p4perf.programs.exercise import frames
from p4perf.programs.fill import filled
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.operators import STANDARD_HASHES, crc32c_raw
from p4perf.programs.reading.swx import entries_text, read_swx

UNKNOWN = ir.Intrinsic("unknown")
HASHES = {**STANDARD_HASHES, "crc32": crc32c_raw}
PORTS = 256
"""Those that the pipeline has for such a program."""


def _with_unknown(value, program):
    """An expression, statement or node in which fields of headers that are not valid are unknown."""
    match value:
        case ir.FieldRef(header):
            return value if header == ir.METADATA else ir.Conditional(ir.IsValid(header), value, UNKNOWN)
        case ir.AddHeader(header, given):
            names = (f.name for f in program.header(header).fields)
            return ir.AddHeader(header, tuple((n, _with_unknown(dict(given).get(n, UNKNOWN), program)) for n in names))
        case tuple():
            return tuple(_with_unknown(v, program) for v in value)
    if not is_dataclass(value):
        return value
    kept = ("destination", "fields", "keep", "cases")
    new = {f.name: _with_unknown(getattr(value, f.name), program) for f in fields(value) if f.name not in kept}
    if isinstance(value, ir.ApplyTable):
        new["cases"] = tuple((name, _with_unknown(nodes, program)) for name, nodes in value.cases)
    return replace(value, **new)


def unsettled(program):
    """The program as SWX has it: what nothing was written to holds what an earlier packet left there."""
    begin = {a.destination: a for a in program.initial}
    for f in program.metadata:
        ref = ir.FieldRef(ir.METADATA, f.name)
        if ref in written_fields(program):
            begin.setdefault(ref, ir.Assign(ref, UNKNOWN))
    parser = (
        replace(s, body=_with_unknown(s.body, program), selected=_with_unknown(s.selected, program))
        for s in program.parser
    )
    return replace(
        program,
        initial=tuple(begin.values()),
        control=_with_unknown(program.control, program),
        actions=tuple(replace(a, body=_with_unknown(a.body, program)) for a in program.actions),
        parser=tuple(parser),
    )


class OnSwx(Interpreter):
    """Raises a ValueError where a packet goes to a port that is not there, or its outcome depends on other packets."""

    def __init__(self, program, *, settled):
        super().__init__(program if settled else unsettled(program), HASHES)
        self._settled = settled

    def _present(self, ref, packet):
        return self._settled or ref.header in (ir.METADATA, *packet.valid)

    def _execute(self, statement, arguments, packet):
        sends = isinstance(statement, ir.Branch) and isinstance((statement.then or [None])[-1], ir.SetEgress)
        if sends and packet.evaluate(statement.condition.left, arguments)[0] >= PORTS:
            raise ValueError("there is no such port")
        written = getattr(statement, "destination", None)
        if written is not None and not self._present(written, packet):
            raise ValueError("writes to a header that is not there")
        super()._execute(statement, arguments, packet)

    def _apply(self, node, table, packet):
        if not all(self._present(key.field, packet) for key in table.keys):
            raise ValueError("looks a field up that is not there")
        super()._apply(node, table, packet)


def cleared(text):
    """A specification that clears its memory when a packet comes in, and drops nothing before it knows why.

    So all of its packets have an outcome, and most are sent.
    """
    spec = read_specification(text, "program.spec")
    rx = spec.apply.lines[0]
    found = [f"mov m.{n} 0x0" for n, bits in spec.structs[spec.metadata] if bits <= 64 and f"m.{n}" != rx.words[1]]
    for header, kind in spec.headers.items():
        if kind not in spec.varying:
            zeroes = (f"mov h.{header}.{n} 0x0" for n, bits in spec.structs[kind] if bits <= 64)
            found += [f"validate h.{header}", *zeroes, f"invalidate h.{header}"]
    lines = text.splitlines()
    lines[rx.number - 1] = "\n".join([lines[rx.number - 1], *found])
    drop = "mov m.psa_ingress_output_metadata_drop "
    return "\n".join(lines).replace(f"{drop}0x1", f"{drop}0x0").replace(f"{drop}1\n", f"{drop}0\n") + "\n"


def wide(program, table):
    """Whether DPDK 22.11 reads no entries of a table from text: it has a field of more than 64 bit."""
    widths = [program.width_bits(key.field) for key in table.keys]
    widths += [p.width_bits for name in table.actions for p in program.action(name).parameters]
    return max(widths, default=0) > 64


def expected(text, packets, *, settled=False):
    """Entries and verification file of a specification, and how many packets are in that.

    Args:
        settled: it clears its memory itself.

    Raises:
        DataError: it is not read.
    """
    spec = read_specification(text, "program.spec")
    program = read_swx(spec)
    empty = {t.name for t in program.tables if t.label in spec.selectors or wide(program, t)}
    program = filled(program, dict.fromkeys(empty, 0), default=16)
    names = [t.name for t in program.tables if t.label in spec.tables]
    interpreter = OnSwx(program, settled=settled)
    outcomes = []
    for frame in frames(program, packets):
        saved = copy.deepcopy(interpreter._state)
        try:
            outcome = interpreter.run(frame)
        except (ValueError, RecursionError):
            outcome = None
        if outcome is None or outcome.errors:
            interpreter._state = saved
        else:
            outcomes.append((frame, outcome))
    return entries_text(program), verification(outcomes, names), len(outcomes)


def verification(outcomes, tables):
    data = [b"P4PVRFY2", struct.pack("<IIII", len(outcomes), len(tables), 0, 1)]
    for frame, outcome in outcomes:
        data.append(struct.pack("<HH", len(frame), len(outcome.sent)) + frame)
        for sent in outcome.sent:
            known = sent.known or b"\xff" * len(sent.data)
            data.append(struct.pack("<HH", sent.port, len(sent.data)) + sent.data + known)
    hits = [sum(outcome.hits.count(name) for _, outcome in outcomes) for name in tables]
    return b"".join([*data, struct.pack(f"<{len(hits)}Q", *hits)])
