"""What hash algorithms and the operators of data planes on DPDK compute: references in Python, not implementations.

Against the operators here the C functions of ``operators.h`` are checked before they are timed. An operator takes the
bytes of a packet and gives one number, which goes into the packet: so nothing of it can be left out by a compiler.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from p4perf.programs.ir import HashAlgorithm, Operator, entry_data_word

HashFunctions = Mapping[HashAlgorithm, Callable[[bytes], int]]
"""What each algorithm calculates. A target whose algorithm of that name is another one has its own mapping."""

HASH_BITS: Mapping[HashAlgorithm, int] = MappingProxyType({"crc16": 16, "crc32": 32, "checksum16": 16})

CRC_POLYNOMIALS = {"crc16": 0xA001, "crc32": 0xEDB88320}
"""Polynomials of CRC-16/ARC (x^16 + x^15 + x^2 + 1) and CRC-32/ISO-HDLC, lowest bit first."""

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


_TABLE_16 = crc_table(CRC_POLYNOMIALS["crc16"])
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


KEY_OFFSET, KEY_BYTES = 6, 8
"""Source address and EtherType: what lookups take for the key of the flow."""

FLOW_BITS = 48
"""The flow is the source address."""

LINE = "packet of %4u bytes\n"
LOG_PREFIX = "USER1: "

WORD = (1 << 64) - 1
MULTIPLIER = 3

_GOLDEN = 0xDEADBEEF
_U32 = 0xFFFFFFFF


def jhash(data: bytes, initial: int = 0) -> int:
    """The hash that ``rte_jhash`` computes: ``hashlittle`` of Jenkins' lookup3 (2006, public domain), word by word."""
    a = b = c = (_GOLDEN + len(data) + initial) & _U32
    if not data:
        return c
    words = struct.unpack(f"<{-(-len(data) // 12) * 3}I", data.ljust(-(-len(data) // 12) * 12, b"\0"))
    for at in range(0, len(words), 3):
        a, b, c = (a + words[at]) & _U32, (b + words[at + 1]) & _U32, (c + words[at + 2]) & _U32
        if at + 3 == len(words):
            break
        a, c = (a - c & _U32) ^ _rotated(c, 4), (c + b) & _U32
        b, a = (b - a & _U32) ^ _rotated(a, 6), (a + c) & _U32
        c, b = (c - b & _U32) ^ _rotated(b, 8), (b + a) & _U32
        a, c = (a - c & _U32) ^ _rotated(c, 16), (c + b) & _U32
        b, a = (b - a & _U32) ^ _rotated(a, 19), (a + c) & _U32
        c, b = (c - b & _U32) ^ _rotated(b, 4), (b + a) & _U32
    for by in (14, 11, 25, 16, 4, 14, 24):
        # Words take turns: c is mixed with b, then a with c, then b with a, and again.
        c = ((c ^ b) - _rotated(b, by)) & _U32
        a, b, c = b, c, a
    return b


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> 32 - by) & _U32


def flow_of(packet: bytes, flows: int) -> int | None:
    key = packet[KEY_OFFSET : KEY_OFFSET + KEY_BYTES]
    flow = int.from_bytes(key[: FLOW_BITS // 8], "big")
    return flow if flow < flows and key[FLOW_BITS // 8 :] == _ETHERTYPE else None


_ETHERTYPE = b"\x88\xb5"
"""IEEE 802 local experimental EtherType 1, as the baseline has it."""


def _lookup(packet: bytes, operator: Operator) -> int:
    flow = flow_of(packet, operator.flows)
    return 0 if flow is None else entry_data_word(flow, 1)


def _words(packet: bytes, _: Operator) -> int:
    return sum(struct.unpack_from(f">{len(packet) // 2}H", packet))


def _printed(prefix: str) -> Callable[[bytes, Operator], int]:
    return lambda packet, _: len(prefix + LINE % len(packet))


def _chain(packet: bytes, operator: Operator) -> int:
    return len(packet) * pow(MULTIPLIER, operator.multiplications, 1 << 64) & WORD


OPERATORS: Mapping[str, Callable[[bytes, Operator], int]] = MappingProxyType(
    {
        "rte_hash_crc": lambda packet, _: crc32c_raw(packet),
        "rte_net_crc": lambda packet, _: crc32(packet),
        "checksum": lambda packet, _: internet_checksum(packet),
        "jhash": lambda packet, _: jhash(packet),
        "hash_lookup": _lookup,
        "hash_insert": lambda packet, _: 1,
        "htons": lambda packet, _: int.from_bytes(packet[12:14], "big"),
        "htons_words": _words,
        "printf_file": _printed(""),
        "printf_null": _printed(""),
        "rte_log": _printed(LOG_PREFIX),
        "rte_log_suppressed": lambda packet, _: 0,
        "memcpy": lambda packet, _: int.from_bytes(packet[-8:], "big"),
        "multiply_chain": _chain,
    }
)
"""The number (64 bit) that each built-in operator gives for a packet; docs/operators.md says what they do."""
