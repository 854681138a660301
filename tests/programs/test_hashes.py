"""The hash algorithms: check values of the catalogue of CRC algorithms, RFC 1071, and properties."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from p4perf.programs import ir
from p4perf.programs.operators import STANDARD_HASHES, crc16, crc32, crc32c_raw, internet_checksum
from p4perf.programs.packet_state import NO_ARGUMENTS, PacketState
from p4perf.programs.reading.actions import first_bytes, folded

CHECK = b"123456789"


def test_check_values() -> None:
    assert crc16(CHECK) == 0xBB3D
    assert crc32(CHECK) == 0xCBF43926
    # CRC-32C is inverted before and after; its check value is 0xE3069283.
    assert crc32c_raw(CHECK, 0xFFFFFFFF) ^ 0xFFFFFFFF == 0xE3069283
    assert [crc16(b""), crc32(b""), crc32c_raw(b"")] == [0, 0, 0]


def test_the_example_of_rfc_1071() -> None:
    # Section 3: the sum of 00 01 f2 03 f4 f5 f6 f7 is ddf2.
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xDDF2 ^ 0xFFFF
    # An IPv4 header whose checksum is known to be b861.
    header = bytes.fromhex("4500007300004000401100 00c0a80001c0a800c7".replace(" ", ""))
    assert internet_checksum(header) == 0xB861
    assert internet_checksum(b"") == 0xFFFF
    assert internet_checksum(b"\xab") == internet_checksum(b"\xab\x00")


@given(st.binary(max_size=64))
def test_a_header_with_its_checksum_sums_to_zero(data: bytes) -> None:
    padded = data + b"\0" * (len(data) % 2)
    assert internet_checksum(internet_checksum(padded).to_bytes(2, "big") + padded) == 0


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_crcs_go_on_where_they_were(one: bytes, other: bytes) -> None:
    assert crc32(one + other) == zlib.crc32(other, zlib.crc32(one))
    assert crc32c_raw(one + other) == crc32c_raw(other, crc32c_raw(one))


@given(st.integers(1, 32).flatmap(lambda n: st.tuples(*[st.binary(min_size=n, max_size=n)] * 2)))
def test_crc16_is_linear(pair: tuple[bytes, bytes]) -> None:
    mixed = bytes(a ^ b for a, b in zip(*pair, strict=True))
    assert crc16(mixed) == crc16(pair[0]) ^ crc16(pair[1])


def test_the_standard_algorithms() -> None:
    assert {name: function(CHECK) for name, function in STANDARD_HASHES.items()} == {
        "crc16": 0xBB3D,
        "crc32": 0xCBF43926,
        "checksum16": internet_checksum(CHECK),
    }


@given(st.lists(st.tuples(st.sampled_from([1, 3, 8, 16, 24, 48, 64, 128]), st.booleans()), max_size=6), st.randoms())
def test_hashes_that_are_written_as_expressions(fields, rng) -> None:
    """The first eight bytes, and the words of 16 bit combined."""
    rest = -sum(width for width, _ in fields) % 8
    declared = tuple(ir.Field(f"f{n}", w, signed) for n, (w, signed) in enumerate([*fields, (rest or 8, False)]))
    packet = PacketState(ir.Program("p", (), declared, (), (), (), (), ()), b"", 0)
    refs = [ir.FieldRef(ir.METADATA, f.name) for f in declared]
    for ref, f in zip(refs, declared, strict=True):
        packet.write(ref, rng.getrandbits(f.width_bits))
    data, widths = packet.joined(refs), [f.width_bits for f in declared]
    found, _ = packet.evaluate(first_bytes(refs, widths), NO_ARGUMENTS)
    assert found & (1 << 64) - 1 == int.from_bytes(data[:8], "big")
    combined, words = 0, data + b"\0" * (len(data) % 2)
    for n in range(0, len(words), 2):
        combined ^= int.from_bytes(words[n : n + 2], "big")
    assert packet.evaluate(folded(refs, widths), NO_ARGUMENTS)[0] == combined
