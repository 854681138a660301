"""How many nodes of a trie of the kernel a lookup visits that searches the longest prefix.

A BPF_MAP_TYPE_LPM_TRIE is a binary trie with a node for each prefix, and one wherever two of them part (Morrison,
PATRICIA, Journal of the ACM 15(4), 1968). A lookup goes down from the root, bit by bit of its key, and ends at a whole
key, at a node that does not fit it any more, or where there is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise


class PrefixTrie:
    """The nodes of prefixes of one width.

    Args:
        prefixes: their values, in as many bits as keys have, and their lengths [bit].
    """

    def __init__(self, prefixes: Iterable[tuple[int, int]], width_bits: int) -> None:
        self._width = width_bits
        self._prefixes = sorted(set(prefixes))
        self._nodes = {(length, value >> width_bits - length) for value, length in self._prefixes}
        for (one, first), (other, second) in pairwise(self._prefixes):
            shared = min(first, second, width_bits - (one ^ other).bit_length())
            self._nodes.add((shared, one >> width_bits - shared))
        self._lengths = sorted({length for length, _ in self._nodes})

    def visited(self, key: int) -> int:
        """How many nodes the lookup of a key visits."""
        fitting = [n for n in self._lengths if (n, key >> self._width - n) in self._nodes]
        below = fitting[-1] + 1 if fitting else 0
        return len(fitting) + (below <= self._width and self._continues(key, below))

    def _continues(self, key: int, length: int) -> bool:
        """Whether a prefix begins like a key."""
        left = self._width - length
        at = bisect_left(self._prefixes, (key >> left << left, length))
        return at < len(self._prefixes) and self._prefixes[at][0] >> left == key >> left


def visited_of_rule(count: int) -> Mapping[int, int]:
    """How many of the prefixes 0, 1, ..., ``count - 1`` of one length are found after each number of nodes."""
    if count == 1:
        return {1: 1}
    half = 1 << (count - 1).bit_length() - 1
    found = Counter({nodes + 1: number for nodes, number in visited_of_rule(half).items()})
    found.update({nodes + 1: number for nodes, number in visited_of_rule(count - half).items()})
    return found
