"""Any specification of an SWX pipeline (.spec) as something that target dpdk-swx measures.

Entries come from a text in the format of DPDK's own example application, with a line ``table NAME`` before those of
each table. There is one frame, of which one field may change from packet to packet. ``parse`` and ``summarise`` of
:class:`~p4perf.targets.dpdk_swx.DpdkSwxTarget` read the result of a trial; the baseline is that of all experiments.
There is no oracle for such a program: what it computes is only checked with a file of packets and expected outcomes, as
:mod:`p4perf.targets.oracle` describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from p4perf.errors import UsageError
from p4perf.formats.swx_spec import Specification, read_specification, words_of
from p4perf.generators.c.dpdk import MAX_FRAME_BYTES
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs.component import build_workload
from p4perf.programs.packets import FCS_BYTES
from p4perf.targets.base import BuildPlan, Job, NodeFacts, TrialOptions, point_key
from p4perf.targets.dpdk import HARNESS_VERSION, POOL_BYTES, eal_arguments, trial_arguments
from p4perf.targets.dpdk_swx import METER_BYTES, PRODUCT, DpdkSwxTarget, build_plan, config_text

N_PORTS = 257
"""Output ports of the pipeline, the last of which drops. SWX does not check that a port exists."""

RESTORED_BYTES = 128
"""So much of every frame is written anew before it is used again: a program may have changed it."""

ENTRY_BYTES = 4096
"""Memory that an entry of a wildcard table takes at most, a generous guess."""

SLOT_BYTES = 640
"""Memory of a slot of a table that is found twice while it is filled, a generous guess."""

WARMUP_PACKETS = 20_000

_FILE = "program.spec"


@dataclass(frozen=True, slots=True)
class VaryingBytes:
    """Bytes of the frame that change from packet to packet: the number of a key, from 0 to ``keys - 1``."""

    offset: int
    length: int
    keys: int


@dataclass(frozen=True, slots=True)
class SpecificationPlan:
    """All that is needed to measure one specification, and the hash that names it. Sizes in bytes."""

    key: str
    build: BuildPlan
    files: tuple[tuple[str, bytes], ...]
    arguments: tuple[str, ...]
    memory_bytes: int


def plan_specification(
    target: DpdkSwxTarget,
    text: str,
    frame: bytes,
    facts: NodeFacts,
    *,
    entries: str = "",
    varying: VaryingBytes | None = None,
    expectation: bytes | None = None,
) -> SpecificationPlan:
    """Plan the measurement of a specification, without running anything.

    Args:
        frame: the packet, without FCS.
        expectation: a file of packets and outcomes that the program is checked with; by default it is not checked.

    Raises:
        DataError: the text is no specification; with the line.
        UsageError: the frame is empty, too long, or too short for what changes in it; an entry stands before the first
            ``table NAME``; or the specification has no table of that name.
    """
    _check_frame(frame, varying)
    specification = read_specification(text, _FILE)
    tables = list(specification.tables)
    count = _check_entries(entries, tables)
    baseline = Pipeline(
        build_workload([], frame_size_bytes=max(len(frame) + FCS_BYTES, 64)).program, "baseline", len(frame)
    )
    program: dict[str, Any] = {
        "role": "program",
        "n_ports": N_PORTS,
        "mirrors": [],
        "states": [],
        "in_order": bool(specification.registers),
        "meters": [],
        "entries": bool(entries.strip()),
        "tables": [{"name": name, "action": None} for name in tables],
    }
    specifications = {_FILE: text, "baseline.spec": baseline.specification(table_size=1)}
    config = config_text([program, baseline.config()])
    build = build_plan(specifications, config, facts, interpreted=target.interpreted)
    files = {"program.entries": entries.encode()} if program["entries"] else {}
    if target.interpreted:
        files |= {name: s.encode() for name, s in specifications.items()}
    if expectation is not None:
        files["verify.bin"] = expectation
    arguments = ["--frame", frame.hex(), "--restore", str(min(len(frame), RESTORED_BYTES))]
    arguments += [item for _ in tables for item in ("--entries", "0")]
    if varying is not None:
        arguments += ["--key-offset", str(varying.offset), "--key-length", str(varying.length)]
        arguments += ["--keys", str(varying.keys)]
    if expectation is not None:
        arguments += ["--verify", "{folder}/verify.bin"]
    return SpecificationPlan(
        point_key(build.key, text, entries, arguments, HARNESS_VERSION),
        build,
        tuple(files.items()),
        tuple(arguments),
        POOL_BYTES + ENTRY_BYTES * count + _table_bytes(specification),
    )


def trial_of_specification(plan: SpecificationPlan, options: TrialOptions, facts: NodeFacts) -> Job:
    """The command of one trial of a planned specification. It runs in the folder of its files."""
    argv = ["{build}/" + PRODUCT, *eal_arguments(plan.memory_bytes, facts, hugepages=options.hugepages)]
    argv += [*plan.arguments, *trial_arguments(options, WARMUP_PACKETS)]
    timeout_s = 60 + plan.memory_bytes * 1e-7 + 4e-3 * options.timeout_ms
    return Job(tuple(argv), timeout_s, plan.build, dict(plan.files))


def frame_from_hex(text: str) -> bytes:
    """A frame from hexadecimal digits; blanks and colons between them do not count."""
    try:
        return bytes.fromhex(re.sub(r"[\s:]", "", text))
    except ValueError as error:
        raise UsageError("the frame is not made of pairs of hexadecimal digits") from error


def _table_bytes(specification: Specification) -> int:
    """Memory of the tables, registers and meters of a specification, before any entry."""
    sizes = (t.inner("size") for t in (*specification.tables.values(), *specification.learners.values()))
    slots = SLOT_BYTES * sum(size.number_at(1) for size in sizes if size is not None)
    return slots + 8 * sum(specification.registers.values()) + METER_BYTES * sum(specification.meters.values())


def _check_frame(frame: bytes, varying: VaryingBytes | None) -> None:
    if not 14 <= len(frame) <= MAX_FRAME_BYTES - FCS_BYTES:
        raise UsageError(f"the frame has {len(frame)} B, not 14 to {MAX_FRAME_BYTES - FCS_BYTES}")
    if varying is not None and (varying.keys < 1 or varying.offset + varying.length > len(frame)):
        raise UsageError("what changes from packet to packet does not lie in the frame")


def _check_entries(entries: str, tables: Iterable[str]) -> int:
    known, table, count = set(tables), None, 0
    for number, line in enumerate(entries.splitlines(), 1):
        words = words_of(line)
        if len(words) == 2 and words[0] == "table":
            table = words[1]
            if table not in known:
                raise UsageError(f"line {number} of the entries: the specification has no table {table}")
        elif words:
            count += 1
            if table is None:
                raise UsageError(
                    f"line {number} of the entries stands before the first table",
                    hint="put a line 'table NAME' before the entries of each table",
                )
    return count
