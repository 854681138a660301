"""The verification file: packets and their expected outcomes by the reference interpreter.

The packets are drawn as the load generator draws them (hits and misses). Some are cut short, so that the parser's
errors are checked too, and some are of another kind, so that no header after the first is extracted.

Layout, in host byte order: ``P4PVRFY2``; u32 packets, u32 tables, u32 states, u32 masks (0 or 1). Per packet: u16
length, u16 outputs and its bytes; per output, by ascending port: u16 port, u16 length, its bytes and, if ``masks`` is
1, as many bytes whose zero bits are random. At the end u64 hits of each table and u64 :func:`state_sum` of each counter
and register. Nothing is random in files for harnesses that set what
:func:`given_to` returns.

The packet source of the harness: the options that describe what it sends.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial

from p4perf.errors import CapabilityError
from p4perf.programs.component import TrafficPlan
from p4perf.programs.exercise import frames
from p4perf.programs.interpreter import RANDOM, Given, GivenBy, Interpreter, PacketOutcome, scattered, unknown
from p4perf.programs.ir import PACKET_TOO_SHORT, ApplyTable, HashAlgorithm, Workload
from p4perf.programs.operators import STANDARD_HASHES
from p4perf.programs.packets import field_offset_bits, frame, headers_size_bytes

PACKETS = 2048

LOOKUPS = 1 << 19
"""Lookups after which a file of packets ends: programs with very many tables get fewer of them."""

SHORT_SHARE = 16
"""Every so-many-th packet is cut short."""

ROUNDS = 16
"""As often packets of a program that was read are drawn anew where the target takes few of them."""

GIVEN = 32
"""Packets of a burst, which have the same timestamp and random bits."""


def given_to(number: int) -> Given:
    """Timestamp and random bits of a packet of the file, where the harness sets them, by its number."""
    bits = scattered(number // GIVEN)
    return Given(bits, bits)


Hashes = tuple[tuple[HashAlgorithm, Callable[[bytes], int]], ...]

STANDARD: Hashes = tuple(STANDARD_HASHES.items())
"""The algorithms as v1model has them."""

UNKNOWN_SUM = (1 << 64) - 1

SOURCE_FRAMES = "source.bin"
"""The frames of a workload that has them one by one: one after the other."""

_PREFIX = "<" if sys.byteorder == "little" else ">"


def state_sum(cells: Mapping[int, int]) -> int:
    """A number that stands for the contents of a counter or register: sum of (index + 1) * value, modulo 2**64.

    :data:`UNKNOWN_SUM` if something in it depends on a random number: harnesses do not compare it then.
    """
    if RANDOM in cells.values():
        return UNKNOWN_SUM
    return sum((index + 1) * value for index, value in cells.items()) & (1 << 64) - 1


def drawn_packets(
    workload: Workload,
    packets: int,
    seed: int,
    short_packets: bool,
    foreign_packets: bool,
    shortest: int = 0,
    hashes: Hashes = STANDARD,
    kind: type[Interpreter] = Interpreter,
    given: GivenBy = unknown,
) -> list[bytes]:
    """Packets that hit, miss, end too early or carry other headers than the program knows, in the order of the file."""
    if workload.frames:
        found: list[bytes] = []
        interpreter = kind(workload.program, dict(hashes), given=given)

        def is_kept(data: bytes) -> bool:
            if len(data) < shortest or (short_packets and kind is Interpreter):
                return len(data) >= shortest
            before = interpreter.snapshot()
            try:
                kept = PACKET_TOO_SHORT not in interpreter.run(data).errors or short_packets
            except (ValueError, RecursionError):
                kept = False
            if not kept:
                interpreter.restore(before)
            return kept

        for more in range(ROUNDS):
            own = () if more else workload.frames
            found += filter(is_kept, (*own, *frames(workload.program, packets, seed + more)))
            if len(found) >= packets:
                break
        return found[:packets]
    rng = random.Random(seed)  # noqa: S311
    program, spec = workload.program, workload.packets
    frame_of = cache(partial(frame, program, spec))
    headers_bytes = headers_size_bytes(program, spec)
    keys = min((v.count for v in spec.varying), default=1)
    widest = min((1 << (program.width_bits(v.field) - v.free_bits) for v in spec.varying), default=1)
    drawn_frames = []
    for n in range(packets):
        # Both ends of the table, then hits and misses at random.
        drawn = (0, keys - 1, keys)[n] if n < 3 else rng.randrange(min(2 * keys, widest))
        data = frame_of(min(drawn, widest - 1) if spec.varying else 0)
        if short_packets and n % SHORT_SHARE == SHORT_SHARE - 1:
            data = data[: rng.randrange(headers_bytes + 1)]
        elif foreign_packets and n % SHORT_SHARE == SHORT_SHARE // 2:
            # IPv4 in the last two bytes of the first header, which a component does not announce.
            first = program.header(spec.headers[0].header).size_bytes
            data = data[: first - 2] + b"\x08\x00" + data[first:]
        drawn_frames.append(data)
    return drawn_frames


@lru_cache(maxsize=256)
def verification_file(
    workload: Workload,
    *,
    hashes: Hashes = STANDARD,
    packets: int = PACKETS,
    seed: int = 1,
    short_packets: bool = True,
    foreign_packets: bool = True,
    counted: bool = True,
    shortest: int = 0,
    kind: type[Interpreter] = Interpreter,
    given: GivenBy = unknown,
) -> bytes:
    """Packets with expected outcomes, table hits and states, as the harnesses read them.

    Args:
        hashes: what the target's hash algorithms calculate, as pairs of name and function.
        short_packets: whether some are cut short; not for targets whose parser does not look at the length.
        foreign_packets: whether some lack the headers of the program; not where what these hold is undefined then.
        counted: whether table hits and states are in it; not for targets that show nothing but packets.
        shortest: bytes of a frame below which it is left out.
        kind: the interpreter; what it says nothing of is left out.
        given: timestamps and random bits.

    Raises:
        CapabilityError: a packet comes back without end, or its path depends on an unknown timestamp or random number.
    """
    program = workload.program
    interpreter = kind(program, dict(hashes), given=given)
    # Equal packets have equal outcomes unless something remembers, and many programs see few different packets.
    run: Callable[[bytes], PacketOutcome] = interpreter.run if interpreter.stateful else cache(interpreter.run)
    hits = dict.fromkeys((t.name for t in program.tables), 0)
    shown, names = (hits, program.states) if counted else ({}, ())
    lookups = sum(isinstance(node, ApplyTable) for node in program.control)
    packets = min(packets, LOOKUPS // max(lookups, 1))
    drawn = drawn_packets(workload, packets, seed, short_packets, foreign_packets, shortest, hashes, kind, given)
    packets = len(drawn)
    try:
        outcomes = [run(data) for data in drawn]
    except (ValueError, RecursionError) as error:
        raise CapabilityError(f"what becomes of a packet is not known: {error}") from error
    masks = any(sent.known is not None for outcome in outcomes for sent in outcome.sent)
    states = [state_sum(interpreter.state(name)) for name in names]
    out = [b"P4PVRFY2", struct.pack(_PREFIX + "IIII", packets, len(shown), len(states), masks)]
    for data, outcome in zip(drawn, outcomes, strict=True):
        for name in outcome.hits:
            hits[name] += 1
        out.append(struct.pack(_PREFIX + "HH", len(data), len(outcome.sent)) + data)
        for sent in outcome.sent:
            known = (sent.known or b"\xff" * len(sent.data)) if masks else b""
            out.append(struct.pack(_PREFIX + "HH", sent.port, len(sent.data)) + sent.data + known)
    out.append(struct.pack(_PREFIX + f"{len(shown) + len(states)}Q", *shown.values(), *states))
    return b"".join(out)


def source_arguments(workload: Workload, traffic: TrafficPlan, label: str, *, restored: bool) -> list[str]:
    """Options of the source of packets: a frame, and what changes in it from packet to packet."""
    program, packets = workload.program, workload.packets
    arguments = ["--frame", frame(program, packets).hex()]
    if workload.frames:
        return [*arguments, "--frames", "{folder}/" + SOURCE_FRAMES]
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
    return arguments + traffic_arguments(workload, traffic)


def frame_files(workload: Workload) -> dict[str, bytes]:
    """The files that :func:`source_arguments` name."""
    return {SOURCE_FRAMES: b"".join(workload.frames)} if workload.frames else {}


def traffic_arguments(workload: Workload, traffic: TrafficPlan) -> list[str]:
    """Options of the source of packets: how it draws keys, if any field varies."""
    if not workload.packets.varying:
        return []
    arguments = ["--hit-ratio", repr(traffic.hit_ratio), "--distribution", traffic.distribution]
    return [*arguments, "--zipf", repr(traffic.zipf_s)] if traffic.distribution == "zipf" else arguments
