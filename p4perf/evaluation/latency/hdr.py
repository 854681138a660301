"""What touches the package hdrhistogram: the layout of the counts, and the compressed encoding (V2).

HdrHistogram (Tene 2012, hdrhistogram.org) counts values in buckets whose width is a fixed share of the value: with
three significant digits, no value is off by more than 0.1 %. All its implementations share the layout and the encoding.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hdrh.codec import HdrCookieException, HdrLengthException  # type: ignore[import-untyped]
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from p4perf.errors import DataError, MeasurementError, UsageError

Counts = tuple[tuple[int, int], ...]
"""Index and count of every bucket that is not empty, ascending."""

LARGEST = 2**62
"""Counts and values stay below: the encoding has 64 bits with sign."""
_DAMAGED = (
    ArithmeticError, AssertionError, AttributeError, HdrCookieException, HdrLengthException, LookupError, MemoryError,
    TypeError, UsageError, ValueError, zlib.error,
)  # fmt: skip
"""What the package raises for an encoding that is none."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which bucket counts which values.

    Args:
        lowest: smallest difference between values [ns], at least 1.
        highest: largest value that must be countable [ns], at least twice the lowest.
        digits: significant decimal digits, 1 to 5.

    Raises:
        UsageError: a number is out of its range.
    """

    lowest: int = 1
    highest: int = 10_000_000_000
    digits: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= 5:
            raise UsageError(f"a histogram has 1 to 5 significant digits, not {self.digits}")
        if self.lowest < 1 or not 2 * self.lowest <= self.highest < LARGEST:
            raise UsageError(
                f"the lowest value must be 1 at least and the highest twice that, not {self.lowest} and {self.highest}"
            )

    def histogram(self, counts: Iterable[tuple[int, int]] = ()) -> Any:
        """A histogram of the package with these counts.

        Raises:
            IndexError: there is no such bucket.
        """
        made = HdrHistogram(self.lowest, self.highest, self.digits)
        filled = [(index, count) for index, count in counts if count]
        for index, count in filled:
            if not 0 <= index < made.counts_len:
                raise IndexError(f"there is no bucket {index}: the last one is {made.counts_len - 1}")
            made.counts[index] = count
        if filled:
            occupied = [index for index, _ in filled]
            # The package wants the smallest index that is not 0, and -1 where there is none.
            smallest = min((index for index in occupied if index), default=-1)
            made.set_internal_tacking_values(smallest, max(occupied), sum(count for _, count in filled))
        return made

    def largest_ns(self) -> int:
        """Largest value that can be counted [ns]; at least :attr:`highest`."""
        return self.edges([self.buckets() - 1])[0][1]

    def buckets(self) -> int:
        """Number of buckets."""
        return int(HdrHistogram(self.lowest, self.highest, self.digits).counts_len)

    def index_of(self, values_ns: Iterable[int]) -> list[int]:
        """The bucket of each value.

        Args:
            values_ns: values [ns], zero at least.

        Raises:
            MeasurementError: a value is larger than what can be counted.
        """
        layout = HdrHistogram(self.lowest, self.highest, self.digits)
        found = []
        for value in values_ns:
            index = int(layout.get_counts_array_index(value))
            if index >= layout.counts_len:
                raise MeasurementError(f"a latency of {value} ns is more than the histogram can count")
            found.append(index)
        return found

    def edges(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Smallest and largest value of each bucket [ns]."""
        layout = HdrHistogram(self.lowest, self.highest, self.digits)
        starts = [int(layout.get_value_from_index(index)) for index in indices]
        return [(start, int(layout.get_highest_equivalent_value(start))) for start in starts]


def encode(layout: Layout, counts: Counts) -> str:
    """The counts in HdrHistogram's compressed encoding V2, in base64."""
    return str(layout.histogram(counts).encode().decode("ascii"))


def decode(text: str) -> tuple[Layout, Counts]:
    """Layout and counts of an encoded histogram (V2, base64).

    Raises:
        DataError: it is damaged, of another version, or a histogram whose values were shifted or scaled.
    """
    try:
        base64.b64decode(text, validate=True)  # the package lets characters pass that are none
        found = HdrHistogram.decode(text)
        header = found.encoder.payload.payload
        shifted = int(header.normalizing_index_offset) != 0 or float(header.conversion_ratio_bits) != 1.0
        layout = Layout(
            int(found.lowest_trackable_value), int(found.highest_trackable_value), int(found.significant_figures)
        )
        counts = tuple((index, int(count)) for index, count in enumerate(found.counts) if count)
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"the histogram is not in the encoding V2 of HdrHistogram: {reason}") from error
    if shifted:
        raise DataError("the values of the histogram are shifted or scaled, which cannot be read")
    return layout, counts
