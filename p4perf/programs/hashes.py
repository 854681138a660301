"""The hash algorithms of a :class:`~p4perf.programs.ir.Program`, bit by bit: references, not implementations."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from p4perf.programs.ir import HashAlgorithm

HashFunctions = Mapping[HashAlgorithm, Callable[[bytes], int]]
"""What each algorithm calculates. A target whose algorithm of that name is another one has its own mapping."""

HASH_BITS: Mapping[HashAlgorithm, int] = MappingProxyType({"crc16": 16, "crc32": 32, "checksum16": 16})

_CRC16_ARC = 0xA001
"""Polynomial x^16 + x^15 + x^2 + 1, lowest bit first."""

_CRC32_C = 0x82F63B78
"""Castagnoli's polynomial, lowest bit first."""


def crc_table(polynomial: int) -> tuple[int, ...]:
    """What the eight bits of each byte do to a CRC, whose polynomial has its lowest bit first."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE_16 = crc_table(_CRC16_ARC)
_TABLE_32_C = crc_table(_CRC32_C)


def crc16(data: bytes) -> int:
    """CRC-16/ARC: reflected, initially zero; check value 0xBB3D for ``123456789``. What bmv2 calls crc16."""
    value = 0
    for byte in data:
        value = value >> 8 ^ _TABLE_16[(value ^ byte) & 0xFF]
    return value


def crc32(data: bytes) -> int:
    """CRC-32/ISO-HDLC, the one of Ethernet: check value 0xCBF43926 for ``123456789``. What bmv2 calls crc32."""
    return zlib.crc32(data)


def crc32c_raw(data: bytes, initial: int = 0) -> int:
    """CRC-32 with Castagnoli's polynomial, neither inverted before nor after: what ``rte_hash_crc`` of DPDK returns."""
    value = initial
    for byte in data:
        value = value >> 8 ^ _TABLE_32_C[(value ^ byte) & 0xFF]
    return value


def internet_checksum(data: bytes) -> int:
    """RFC 1071: complement of the one's complement sum of the 16-bit words; an odd byte is padded with zero."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[n : n + 2], "big") for n in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


STANDARD_HASHES: HashFunctions = MappingProxyType({"crc16": crc16, "crc32": crc32, "checksum16": internet_checksum})
"""The algorithms as v1model and bmv2 have them."""
