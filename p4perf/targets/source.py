"""The packet source of the harness: the options that describe what it sends."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.base import TrafficPlan
from p4perf.generators.packets import field_offset_bits, frame, headers_size_bytes
from p4perf.generators.program import Workload


def source_arguments(workload: Workload, traffic: TrafficPlan, label: str, *, restored: bool) -> list[str]:
    """Options of the source of packets: a frame, and what changes in it from packet to packet.

    Args:
        workload: program and packets.
        traffic: how keys are drawn.
        label: the target, for messages.
        restored: the program changes headers, so that they are written anew for every packet.

    Raises:
        CapabilityError: a field that varies is not made of whole bytes.
    """
    program, packets = workload.program, workload.packets
    arguments = ["--frame", frame(program, packets).hex()]
    if restored:
        arguments += ["--restore", str(headers_size_bytes(program, packets))]
    for varying in packets.varying:
        offset = field_offset_bits(program, packets, varying.field)
        bits = program.width_bits(varying.field) - varying.free_bits
        if offset % 8 or bits % 8 or not bits:
            raise CapabilityError(
                f"{label} varies whole bytes from packet to packet, which {varying.field.header}.{varying.field.field} "
                "is not"
            )
        arguments += ["--key-offset", str(offset // 8), "--key-length", str(bits // 8), "--keys", str(varying.count)]
    if packets.varying:
        arguments += ["--hit-ratio", repr(traffic.hit_ratio), "--distribution", traffic.distribution]
        if traffic.distribution == "zipf":
            arguments += ["--zipf", repr(traffic.zipf_s)]
    return arguments
