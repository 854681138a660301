"""Hashes and checksums in XDP programs: C text that folds words of 64 bit into ``hash``."""

from __future__ import annotations

from collections.abc import Container, Iterator

from p4perf.generators.analysis import statements
from p4perf.generators.program import Hash, Program
from p4perf.generators.xdp_bits import WORD_BITS, Run, load_sub

MAX_WRITTEN_OUT_BYTES = 512
"""Bytes that a program hashes word after word. Of much more than that clang loads all words first, and keeps them on
the stack of 512 B; and it takes half a minute for a CRC."""

CHECKSUM = "checksum16"
BLOCK_WORDS = {"crc16": 1, "crc32": 1, CHECKSUM: 16}
"""Words in the body of a loop over what is hashed. One at a time a checksum costs a quarter more; a CRC does not."""


def _words(runs: list[Run]) -> Iterator[tuple[str, int]]:
    """Runs of bits one after another, cut into words of 64 bit: C text and width of each."""
    total = sum(run.width for run in runs)
    for start in range(0, total, WORD_BITS):
        width = min(WORD_BITS, total - start)
        parts, at = [], 0
        for run in runs:
            low, high = max(start, at), min(start + width, at + run.width)
            if low < high and (run.base or run.variable):
                text, shift = run.bits(low - at, high - low), start + width - high
                parts.append(f"{text} << {shift}" if shift else text)
            at += run.width
        yield " | ".join(parts) or "0ull", width


def hash_lines(algorithm: str, runs: list[Run], *, loops: bool) -> Iterator[str]:
    """Lines that leave the hash of runs of bits in ``hash``.

    Args:
        algorithm: its name.
        runs: bits one after another.
        loops: whether many words of one header are folded in a loop.
    """
    if algorithm == CHECKSUM:
        yield from sum_lines(runs, loops=loops)
        return
    yield f"__u32 hash = {'~0u' if algorithm == 'crc32' else '0'};"
    yield ""
    yield from _folded(algorithm, runs, loops)
    if algorithm == "crc32":
        yield "hash = ~hash;"


def sum_lines(runs: list[Run], *, loops: bool) -> Iterator[str]:
    """Lines that leave the internet checksum in ``hash``."""
    yield "__u64 hash = 0;"
    yield ""
    yield from _folded(CHECKSUM, runs, loops)
    yield "hash = sum16_end(hash);"


def _folded(algorithm: str, runs: list[Run], loops: bool) -> Iterator[str]:
    """Lines that fold word after word into ``hash``, many words of one header in a loop."""
    words, n = list(_words(runs)), 0
    while n < len(words):
        run, start = _at(runs, n * WORD_BITS)
        rounds = (run.width - start) // (WORD_BITS * BLOCK_WORDS[algorithm])
        if loops and rounds > 1:
            yield from _loop(algorithm, run, start, rounds)
            n += rounds * BLOCK_WORDS[algorithm]
        else:
            yield _fold(algorithm, *words[n])
            n += 1


def hashed_bytes(program: Program, algorithms: Container[str] = BLOCK_WORDS) -> int:
    """Bytes that a program hashes or adds up in one pass, if all of its actions run."""
    hashes = (s for s in statements(program) if isinstance(s, Hash) and s.algorithm in algorithms)
    bits = [program.width_bits(ref) for s in hashes for ref in s.fields]
    if CHECKSUM in algorithms:
        bits += [program.header(checksum.header).width_bits for checksum in (*program.verified, *program.updated)]
    return sum(bits) // 8


def _at(runs: list[Run], bit: int) -> tuple[Run, int]:
    """The run that a bit of all runs is in, and where in it."""
    for run in runs:
        if bit < run.width:
            return run, bit
        bit -= run.width
    raise IndexError(bit)


def _fold(algorithm: str, text: str, width: int) -> str:
    """Statement that takes a word into ``hash``."""
    if algorithm == CHECKSUM:
        return f"hash = sum16(hash, ({text}){' << 8' if width % 16 else ''});"
    return f"hash = {algorithm}_word(hash, {text}, {width // 8});"


def _loop(algorithm: str, run: Run, start: int, rounds: int) -> Iterator[str]:
    """A loop over words of one run.

    The verifier walks it round by round, and has to see an index for that: it cannot tell two pointers into a packet
    apart. What comes behind tests anew whether the header is there, as clang would keep the answer but not the pointer.
    """
    offsets = [run.offset + start + n * WORD_BITS for n in range(BLOCK_WORDS[algorithm])]
    words = [load_sub(f"{run.base} + i", offset, WORD_BITS) for offset in offsets] if run.base else []
    if not run.valid:
        yield from _rounds(algorithm, rounds, words)
        return
    yield f"if ({run.valid}) {{"
    yield from (f"\t{line}" for line in _rounds(algorithm, rounds, words))
    if algorithm != CHECKSUM:
        yield "} else {"
        yield from (f"\t{line}" for line in _rounds(algorithm, rounds, []))
    yield "}"
    if "NULL" in run.valid:
        yield f"HIDE({run.base});"


def _rounds(algorithm: str, rounds: int, words: list[str]) -> Iterator[str]:
    """The loop itself, over zeros if there are no words; a sum of zeros is left out."""
    if algorithm == CHECKSUM and not words:
        return
    step = BLOCK_WORDS[algorithm] * WORD_BITS // 8
    yield "#pragma clang loop unroll(disable)"
    yield f"for (__u64 i = 0; i < {rounds * step}; i += {step}) {{"
    yield "\tHIDE(i);"
    yield from (f"\t{_fold(algorithm, word, WORD_BITS)}" for word in words or ["0ull"] * BLOCK_WORDS[algorithm])
    yield "}"
