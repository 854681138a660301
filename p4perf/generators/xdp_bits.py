"""C text that reads and writes bits of a packet, up to 64 at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WORD_BITS = 64


def number(value: int) -> str:
    """A C constant of 64 bit."""
    return f"0x{value:x}ull" if value > 9 else f"{value}ull"


def mask(width_bits: int) -> str:
    """A C constant with the lowest ``width_bits`` bits set."""
    return number((1 << width_bits) - 1)


def load_sub(base: str, offset: int, width: int) -> str:
    """Up to 64 bit, ``offset`` bits behind an address."""
    first, last = offset // 8, (offset + width - 1) // 8
    if last - first >= 8:
        low = width // 2
        return f"({load_sub(base, offset, width - low)} << {low} | {load_sub(base, offset + width - low, low)})"
    shift = (last + 1) * 8 - (offset + width)
    text = f"load_be({base} + {first}, {last - first + 1})"
    if shift:
        text = f"({text} >> {shift})"
    return text if offset % 8 == 0 else f"({text} & {mask(width)})"


def store_sub(base: str, offset: int, width: int, value: str) -> Iterator[str]:
    """Store the lowest ``width`` (up to 64) bits of a value, ``offset`` bits behind an address."""
    first, last = offset // 8, (offset + width - 1) // 8
    if last - first >= 8:
        low = width // 2
        yield from store_sub(base, offset, width - low, f"(({value}) >> {low})")
        yield from store_sub(base, offset + width - low, low, value)
        return
    size, shift = last - first + 1, (last + 1) * 8 - (offset + width)
    if offset % 8 == 0 and shift == 0:
        yield f"store_be({base} + {first}, {size}, {value});"
        return
    others = mask(8 * size).replace("ull", "") if size < 8 else "0xffffffffffffffff"
    keep = int(others, 16) & ~(((1 << width) - 1) << shift)
    yield (
        f"store_be({base} + {first}, {size}, (load_be({base} + {first}, {size}) & {number(keep)})"
        f" | (({value}) & {mask(width)}) << {shift});"
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Bits of one source, most significant first: a header field, a number in a C variable, or zeros."""

    width: int
    base: str = ""
    offset: int = 0
    valid: str = ""
    variable: str = ""

    def bits(self, start: int, width: int) -> str:
        """C text of ``width`` (up to 64) bits from ``start`` on."""
        if self.variable:
            shift = self.width - start - width
            text = f"({self.variable} >> {shift})" if shift else self.variable
            return text if start == 0 else f"({text} & {mask(width)})"
        if not self.base:
            return "0ull"
        text = load_sub(self.base, self.offset + start, width)
        return f"({self.valid} ? {text} : 0)" if self.valid else text
