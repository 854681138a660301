"""The verification file: packets and what the reference interpreter says of them, for a program to be checked against.

The packets are drawn as the load generator draws them (hits and misses). Some are cut short, so that the parser's
errors are checked too, and some are of another kind, so that no header after the first is extracted.
Layout: see ``harness/verify.c``.
"""

from __future__ import annotations

import random
import struct
import sys
from functools import cache, lru_cache, partial

from p4perf.generators.interpreter import Interpreter
from p4perf.generators.packets import frame, headers_size_bytes
from p4perf.generators.program import Workload

PACKETS = 2048
SHORT_SHARE = 16
"""Every so-many-th packet is cut short."""

_PREFIX = "<" if sys.byteorder == "little" else ">"


@lru_cache(maxsize=256)
def verification_file(workload: Workload, *, packets: int = PACKETS, seed: int = 1) -> bytes:
    """Packets with expected outcomes and table hits, as the harness reads them."""
    rng = random.Random(seed)  # noqa: S311
    program, spec = workload.program, workload.packets
    # Equal packets have equal outcomes, and many programs see few different packets.
    run = cache(Interpreter(program).run)
    frame_of = cache(partial(frame, program, spec))
    headers_bytes = headers_size_bytes(program, spec)
    hits = dict.fromkeys((t.name for t in program.tables), 0)
    keys = min((v.count for v in spec.varying), default=1)
    widest = min((1 << program.width_bits(v.field) for v in spec.varying), default=1)
    out = [b"P4PVRFY1", struct.pack(_PREFIX + "II", packets, len(program.tables))]
    for n in range(packets):
        # Both ends of the table, then hits and misses at random.
        drawn = (0, keys - 1, keys)[n] if n < 3 else rng.randrange(min(2 * keys, widest))
        data = frame_of(min(drawn, widest - 1) if spec.varying else 0)
        if n % SHORT_SHARE == SHORT_SHARE - 1:
            data = data[: rng.randrange(headers_bytes + 1)]
        elif n % SHORT_SHARE == SHORT_SHARE // 2:
            data = _foreign(data, program.header(spec.headers[0].header).size_bytes)
        outcome = run(data)
        for name in outcome.hits:
            hits[name] += 1
        port = -1 if outcome.port is None else outcome.port
        out.append(struct.pack(_PREFIX + "HHi", len(data), len(outcome.data), port) + data + outcome.data)
    out.append(struct.pack(_PREFIX + f"{len(hits)}Q", *hits.values()))
    return b"".join(out)


def _foreign(data: bytes, first_header_bytes: int) -> bytes:
    """The packet with 0x0800 (IPv4) in the last two bytes of its first header, which a component does not announce."""
    return data[: first_header_bytes - 2] + b"\x08\x00" + data[first_header_bytes:]
