"""Packets of IPv4 and UDP, and captures of them."""

from __future__ import annotations

import struct
from pathlib import Path


def ethernet(kind: int, rest: bytes) -> bytes:
    return bytes(12) + struct.pack(">H", kind) + rest


def ipv4(source: str, target: str, protocol: int = 17, rest: bytes = b"") -> bytes:
    addresses = bytes(int(part) for part in [*source.split("."), *target.split(".")])
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(rest), 0, 0, 64, protocol, 0) + addresses + rest


def udp(port: int) -> bytes:
    return struct.pack(">HHHH", 1000, port, 8, 0)


def capture(path: Path, frames: list[bytes]) -> Path:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for n, data_ in enumerate(frames):
        data += struct.pack("<IIII", 1, n, len(data_), len(data_)) + data_
    path.write_bytes(data)
    return path
