"""MoonGen: two Lua scripts that send the packets of a workload and measure throughput and latency.

The scripts use the interface that MoonGen shares with libmoon, besides MoonGen's rate control in software. They hold
the frame, the fields that vary and how their values are drawn; devices, rate and duration are arguments.
"""

from __future__ import annotations

import textwrap
from dataclasses import asdict, replace

from typing_extensions import override

from p4perf.errors import CapabilityError
from p4perf.formats.moongen import COMPLETION_MARKER, TOKEN
from p4perf.generators.base import GeneratedFile, Generator, render
from p4perf.programs.component import TrafficPlan
from p4perf.programs.ir import PacketSpec, Program, Workload
from p4perf.programs.packets import FCS_BYTES, field_offset_bits, frame, headers_size_bytes
from p4perf.version import __version__

MIN_FRAME_BYTES = 64
MAX_FRAME_BYTES = 1518
"""Frame sizes with FCS that every device takes without further configuration."""

DISTRIBUTIONS = ("uniform", "sequential", "single", "zipf")
PATTERNS = ("cbr", "poisson", "burst")
MAX_BURST = 1_000_000
_SPACING = ("pattern", "burst_length", "burst_spacing_ns", "burst_gap_us")

MAX_COUNT = 1 << 52
"""Indices are Lua numbers, which are exact up to 2**53."""

RATE_TOLERANCE = 0.01
"""Largest deviation of the achieved from the requested rate that a script calls ok, as a fraction."""

DEFAULT_RUNTIME_S = 30
DEFAULT_WARMUP_S = 1
DEFAULT_QUEUES = {"max-load": 4, "latency": 1}

_HEX_LINE_DIGITS = 64


class MoonGen(Generator):
    """Renders ``max-load.lua`` and ``latency.lua``."""

    name = "moongen"
    summary = "Lua scripts for MoonGen: throughput, and latency with hardware timestamps"

    @override
    def generate(self, workload: Workload, traffic: TrafficPlan) -> tuple[GeneratedFile, ...]:
        # On a wire the FCS is the device's.
        context = _frames(workload.program, replace(workload.packets, keeps_fcs=False)) | _traffic(traffic)
        title, notes = workload.program.name, list(workload.notes)
        return (
            _script("max-load", context, title, notes),
            _script("latency", context, title, notes + _probe_notes(workload.program)),
        )


def _script(stem: str, context: dict[str, object], title: str, notes: list[str]) -> GeneratedFile:
    text = render(
        f"lua/{stem}.lua.j2",
        **context,
        script=f"{stem}.lua",
        stem=stem,
        title=title,
        notes=notes,
        version=__version__,
        token=TOKEN,
        marker=COMPLETION_MARKER,
        queues=DEFAULT_QUEUES[stem],
        runtime_s=DEFAULT_RUNTIME_S,
        warmup_s=DEFAULT_WARMUP_S,
        rate_tolerance=RATE_TOLERANCE,
    )
    return GeneratedFile(f"{stem}.lua", (text,))


def _frames(program: Program, packets: PacketSpec) -> dict[str, object]:
    if not MIN_FRAME_BYTES <= packets.frame_size_bytes <= MAX_FRAME_BYTES:
        raise CapabilityError(
            f"MoonGen sends frames of {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} B, not of {packets.frame_size_bytes} B",
            key="traffic.frame_size",
        )
    counts = {v.count for v in packets.varying}
    if len(counts) > 1:
        raise CapabilityError(
            f"fields vary over ranges of {', '.join(map(str, sorted(counts)))} values, but the scripts draw one number",
            hint="give all tables of the program the same number of entries",
        )
    entries = max(counts, default=0)
    if entries > MAX_COUNT:
        raise CapabilityError(f"{entries} values are more than a Lua number can count ({MAX_COUNT})")
    whole = frame(program, packets)
    headers = whole if packets.payload.strip(b"\0") else whole[: headers_size_bytes(program, packets)]
    return {
        "frame_bytes": packets.frame_size_bytes - FCS_BYTES,
        "header_lines": textwrap.wrap(headers.hex(), _HEX_LINE_DIGITS),
        "entries": entries,
        "byte_offsets": _byte_offsets(program, packets, max(0, 2 * entries - 1)),
    }


def _byte_offsets(program: Program, packets: PacketSpec, largest: int) -> list[list[int]]:
    """Where the bytes of an index stand in the frame: for each byte from the least significant, one offset a field.

    Only bytes that are not zero for all indices up to ``largest`` are listed. The free bits of a field stay as they
    are in the frame.
    """
    places = []
    for varying in packets.varying:
        offset, width = field_offset_bits(program, packets, varying.field), program.width_bits(varying.field)
        if offset % 8 or width % 8 or varying.free_bits % 8:
            name = f"{varying.field.header}.{varying.field.field}"
            raise CapabilityError(f"field {name} varies, but is not made of whole bytes")
        places.append((offset // 8, (width - varying.free_bits) // 8))
    needed = (largest.bit_length() + 7) // 8
    bytes_of = [[start + size - 1 - n for start, size in places if n < size] for n in range(needed)]
    return [offsets for offsets in bytes_of if offsets]


def _traffic(traffic: TrafficPlan) -> dict[str, object]:
    for what, value, known in (
        ("pattern", traffic.pattern, PATTERNS),
        ("distribution", traffic.distribution, DISTRIBUTIONS),
    ):
        if value not in known:
            raise CapabilityError(f"MoonGen knows no {what} {value!r}", hint=f"use {', '.join(known)}")
    if not 0 <= traffic.hit_ratio <= 1:
        raise CapabilityError(f"a hit ratio of {traffic.hit_ratio} is not between 0 and 1")
    if traffic.distribution == "zipf" and not 0 < traffic.zipf_s <= 10:
        raise CapabilityError(f"a Zipf exponent of {traffic.zipf_s} is not between 0 and 10")
    load = traffic.offered_load_mpps
    if load is not None and not 0 < load < float("inf"):
        raise CapabilityError(f"an offered load of {load} Mpps is not a rate")
    if not 1 <= traffic.burst_length <= MAX_BURST:
        raise CapabilityError(f"a burst has 1 to {MAX_BURST} packets, not {traffic.burst_length}")
    chosen = asdict(traffic)
    return {key: chosen[key] for key in (*_SPACING, "distribution", "zipf_s", "hit_ratio")} | {"load_mpps": load}


def _probe_notes(program: Program) -> list[str]:
    """A warning where probes, which are PTP frames, take another path than the load."""
    first = {name for state in program.parser if state.name == "start" for name in state.extracts}
    tables = [t.name for t in program.tables if any(k.field.header not in first for k in t.keys)]
    return [
        f"probes do not carry the key of table {name}; whether they come back is up to the target" for name in tables
    ]
