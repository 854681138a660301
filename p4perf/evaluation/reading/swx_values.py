"""Values of one packet in an SWX pipeline, as far as they are known: fields, headers, registers.

Metadata lie in the order of the processor (little endian), headers in that of the network, as in DPDK 22.11
(rte_swx_pipeline_internal.h). What is not known is None, and so is what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.evaluation.reading.swx_text import Line, Specification, number


class UnknownDecisionError(Exception):
    """What a packet does next is not known; the text says on what it depends."""


@dataclass
class Values:
    """Fields of a packet, of its metadata, and of the entry whose action runs.

    Args:
        spec: what the specification declares.
        frame: bytes of the packet.
        registers: cells that were written, of all packets.
    """

    spec: Specification
    frame: bytes
    registers: dict[tuple[str, int], int | None]
    at: int = 0
    fields: dict[str, int | None] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    data: Mapping[str, int | None] = field(default_factory=dict)
    hit: bool = False
    ran: str = ""
    again: bool = False

    def read(self, operand: str) -> int | None:
        """The value of an operand; metadata that nobody wrote are zero."""
        constant = number(operand)
        if constant is not None:
            return constant
        if operand.startswith("t."):
            return self.data.get(operand[2:])
        return self.fields.get(operand, 0)

    def write(self, operand: str, value: int | None, line: Line) -> None:
        """Write a field, cut to its width; a whole header field by field."""
        parts = operand.split(".")
        if parts[0] == "h" and len(parts) == 2:
            for name, _ in self.header(parts[1]):
                self.fields[f"{operand}.{name}"] = None
            return
        bits = self.spec.bits(operand, line)
        self.fields[operand] = None if value is None else value & ((1 << bits) - 1)

    def header(self, name: str) -> tuple[tuple[str, int], ...]:
        """Fields of a header."""
        return self.spec.structs[self.spec.headers[name]]

    def extract(self, header: str, *, keep: bool = False) -> None:
        """Take a header from the packet; with ``keep`` it is only looked at.

        Raises:
            UnknownDecisionError: the packet is too short.
        """
        at = self.at
        total = sum(bits for _, bits in self.header(header))
        if at + total > 8 * len(self.frame):
            raise UnknownDecisionError("packets that are too short for their headers")
        for name, bits in self.header(header):
            end = at + bits
            chunk = int.from_bytes(self.frame[at // 8 : -(-end // 8)], "big")
            self.fields[f"h.{header}.{name}"] = chunk >> (-end % 8) & ((1 << bits) - 1)
            at = end
        self.valid.add(header)
        if not keep:
            self.at = at

    def header_bytes(self, header: str) -> bytes | None:
        """A header as it lies in memory; None if something of it is not known."""
        value = bits_before = 0
        for name, bits in self.header(header):
            part = self.fields.get(f"h.{header}.{name}", 0)
            if part is None:
                return None
            value, bits_before = value << bits | part, bits_before + bits
        return value.to_bytes(-(-bits_before // 8), "big")

    def span(self, first: str, last: str) -> bytes | None:
        """All fields of a structure from one to another one, as they lie in memory; None if one is not known."""
        prefix = first.rpartition(".")[0]
        fields = self.spec.structs[self.spec.metadata] if prefix == "m" else self.header(prefix[2:])
        names = [name for name, _ in fields]
        begin, end = names.index(first.rpartition(".")[2]), names.index(last.rpartition(".")[2])
        found = b""
        for name, bits in fields[min(begin, end) : max(begin, end) + 1]:
            value = self.fields.get(f"{prefix}.{name}", 0)
            if value is None:
                return None
            found += value.to_bytes(-(-bits // 8), "little" if prefix == "m" else "big")
        return found

    def _stored(self, operand: str, line: Line) -> int | None:
        """A field as a number of the processor that is loaded from memory."""
        value = self.read(operand)
        if value is None or not operand.startswith("h."):
            return value
        return int.from_bytes(value.to_bytes(-(-self.spec.bits(operand, line) // 8), "big"), "little")

    def checksum(self, target: str, source: str, line: Line, *, subtract: bool) -> None:
        """Add something to an internet checksum, or take it away (RFC 1624)."""
        words: list[int | None]
        if source.startswith("h.") and source.count(".") == 1:
            data = self.header_bytes(source[2:])
            words = (
                [None] if data is None else [int.from_bytes(data[n : n + 2], "little") for n in range(0, len(data), 2)]
            )
        else:
            words = [self._stored(source, line)]
        old = self._stored(target, line)
        if old is None or None in words:
            self.write(target, None, line)
            return
        total = sum(word for word in words if word is not None)
        result = (old ^ 0xFFFF) + (-total % 0xFFFF if subtract else total)
        while result > 0xFFFF:
            result = (result & 0xFFFF) + (result >> 16)
        result = (result ^ 0xFFFF) or 0xFFFF
        stored = int.from_bytes(result.to_bytes(2, "little"), "big") if target.startswith("h.") else result
        self.write(target, stored, line)
