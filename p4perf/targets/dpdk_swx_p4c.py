"""Pipelines that p4c-dpdk makes of P4 (PNA): what the harness has to know of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from p4perf.generators.capabilities import Capabilities, Limit, both
from p4perf.generators.p4.names import p4_name
from p4perf.generators.p4.pna import Pna
from p4perf.generators.program import CountPacket, MeterPacket, Program, ReadRegister, Statement, WriteRegister
from p4perf.generators.swx import Pipeline

_NUMBERED = re.compile(r"_(\d+)$")


def p4c_capabilities(swx: Capabilities) -> Capabilities:
    """What both the dialect and the pipeline can do, and the hashes that come out otherwise."""
    chain = both(swx, Pna.capabilities)
    reason = "p4c-dpdk hashes copies of the fields in metadata, which have the byte order of the processor"
    passes = Limit(7, "PNA counts passes in 3 bit, PassNumberUint_t in dpdk/pna.p4")
    return replace(chain, missing={**chain.missing, "hash crc32": reason}, limits={**chain.limits, "passes": passes})


def unnumbered(program: Program) -> Program:
    """The same program, in which no counter, meter or register has a name that ends with a number.

    p4c-dpdk numbers such names anew.
    """
    arrays = (*(m.name for m in program.meters), *program.states)
    names = {name: _NUMBERED.sub(r"_nr\1", name) for name in arrays}

    def renamed(statement: Statement) -> Statement:
        match statement:
            case CountPacket(name, _):
                return replace(statement, counter=names[name])
            case MeterPacket(_, name, _):
                return replace(statement, meter=names[name])
            case ReadRegister(_, name, _) | WriteRegister(name, _, _):
                return replace(statement, register=names[name])
            case _:
                return statement

    return replace(
        program,
        actions=tuple(replace(a, body=tuple(renamed(s) for s in a.body)) for a in program.actions),
        counters=tuple(replace(c, name=names[c.name]) for c in program.counters),
        meters=tuple(replace(m, name=names[m.name]) for m in program.meters),
        registers=tuple(replace(r, name=names[r.name]) for r in program.registers),
    )


def as_p4c_names_it(pipeline: Pipeline) -> Mapping[str, Any]:
    """What the harness has to know of a pipeline that p4c-dpdk made of the same program.

    Its fields are whole where specifications of our own have words of 64 bit, and arrays have a number behind their
    name.
    """
    program, config = pipeline.program, pipeline.config()
    arrays = {kind: [replace(a, name=f"{p4_name(a.name)}_0") for a in config[kind]] for kind in ("states", "meters")}
    tables = []
    for table in config["tables"]:
        keys = program.table(table["name"]).keys
        parameters = program.action(table["action"]).parameters
        tables.append(
            {
                **table,
                "name": p4_name(table["name"]),
                "action": p4_name(table["action"]),
                "key_bits": [program.width_bits(key.field) for key in keys],
                "arguments": [(p4_name(p.name), p.width_bits, n, 0) for n, p in enumerate(parameters)],
            }
        )
    return {**config, **arrays, "tables": tables}
