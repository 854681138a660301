"""Captures in the classic format of libpcap, as packets that were given."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path


def capture(
    path: Path, frames: Iterable[bytes], *, times_us: Sequence[int] | None = None, link: int = 1, order: str = "<"
) -> Path:
    """Write a capture of whole frames; its path.

    Args:
        path: of the file.
        frames: without FCS.
        times_us: when each came; None: a microsecond apart.
        link: type of the link; 1 is Ethernet.
        order: of bytes, as of :mod:`struct`.
    """
    data = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for n, frame in enumerate(frames):
        seconds, us = divmod(n if times_us is None else times_us[n], 1_000_000)
        data += struct.pack(order + "IIII", seconds, us, len(frame), len(frame)) + frame
    path.write_bytes(data)
    return path
