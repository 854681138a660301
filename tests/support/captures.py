"""Captures in the classic format of libpcap, of packets that are given, and a few packets."""

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


def ethernet(kind: int, rest: bytes) -> bytes:
    return bytes(12) + struct.pack(">H", kind) + rest


def ipv4(source: str, target: str, protocol: int = 17, rest: bytes = b"") -> bytes:
    addresses = bytes(int(part) for part in [*source.split("."), *target.split(".")])
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(rest), 0, 0, 64, protocol, 0) + addresses + rest


def udp(port: int) -> bytes:
    return struct.pack(">HHHH", 1000, port, 8, 0)


def tagged(tags: int, rest: bytes) -> bytes:
    """An IPv4 packet behind VLAN tags."""
    kinds = [0x8100] * (tags - 1) + [0x0800]
    return ethernet(0x8100, b"".join(struct.pack(">HH", 1, kind) for kind in kinds) + rest)
