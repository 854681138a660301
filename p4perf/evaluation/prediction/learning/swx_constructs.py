"""What packets meet on SWX: instruction by instruction of the specification that is generated for a program.

Programs that others wrote for SWX are priced by their instructions, so prices have to be those of instructions, too.
The specification goes through the reader of all specifications (:mod:`p4perf.evaluation.prediction.reading.swx`),
and the packets of the workload through its machine; the reference interpreter says which lookups find an entry.
"""

from __future__ import annotations

from collections.abc import Iterator

from p4perf.evaluation.prediction.learning.constructs import PacketPath, Tally, without
from p4perf.evaluation.prediction.operations import drawn_packets
from p4perf.evaluation.prediction.reading.swx import swx_flow
from p4perf.evaluation.prediction.reading.swx_run import Found, SwxMachine
from p4perf.formats.swx_spec import Specification, read_specification
from p4perf.generators.swx.spec import Pipeline
from p4perf.programs.component import TrafficPlan
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import ApplyTable, Program, Workload
from p4perf.programs.packets import FCS_BYTES, frame

OTHER_DATA = 1
"""Action data besides the port. No decision of a generated program depends on them."""


def swx_increment(workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet meets on SWX beyond the baseline, in constructs of its instructions.

    Raises:
        CapabilityError: SWX cannot express the program.
        UnknownDecisionError: a decision depends on what the machine does not know.
    """
    whole = swx_path(workload.program, workload, traffic)
    return without(whole, swx_path(workload.baseline, workload, traffic))


def swx_path(program: Program, workload: Workload, traffic: TrafficPlan) -> PacketPath:
    """What an average packet of a workload meets in a program on SWX."""
    packet_bytes = workload.packets.frame_size_bytes - FCS_BYTES
    spec = read_specification(Pipeline(program, "program", packet_bytes).specification(), program.name)
    flow = swx_flow(spec, program.name, program.name, {}, packet_bytes)
    tally = Tally()
    for drawn, weight in drawn_packets(workload, traffic):
        data = frame(workload.program, workload.packets, drawn)
        outcomes = iter(_lookups(program, data))

        def found(table: str, _keys: object, left: Iterator[tuple[str, bool]] = outcomes) -> Found:
            hit = next((hit for name, hit in left if name == table), False)
            return _entry(program, table, spec) if hit else None

        for passed in SwxMachine(spec, flow, lookup=found).walk(data):
            tally.count(passed, passed.step.name, weight)
    return PacketPath(tally.met(), tally.mispredicted())


def _lookups(program: Program, data: bytes) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []

    def watch(met: object, outcome: str | bool | None) -> None:
        if isinstance(met, ApplyTable):
            found.append((met.table, bool(outcome)))

    Interpreter(program, watch=watch).run(data)
    return found


def _entry(program: Program, table: str, spec: Specification) -> Found:
    entries = program.table(table).entries
    fields = spec.structs.get(spec.arguments(entries.action), ())
    return entries.action, {name: OTHER_DATA if n else entries.port for n, (name, _) in enumerate(fields)}
