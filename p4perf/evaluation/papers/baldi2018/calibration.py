"""From micro-benchmarks to the description of a machine: constants with intervals, rules, caches, memory.

Every constant is the cost of one operation, measured alone; intervals are the range over starts of the process, and of
differences the widest that these allow. No program that is estimated with them takes part.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from p4perf.errors import MeasurementError
from p4perf.generators.base import render
from p4perf.models.estimate import Estimate
from p4perf.records import counted
from p4perf.targets.base import NodeFacts
from p4perf.targets.eo_bench import CURVE_BYTES, LIST_ENTRIES, MANY_ENTRIES, Case
from p4perf.targets.windows import lower_mode, undisturbed


def median_and_range(values: Sequence[float]) -> Estimate:
    """Median of some values, at least one, between the lowest and the highest."""
    return Estimate(statistics.median(values), min(values), max(values))


def _positive(cycles: Estimate) -> Estimate:
    """Nothing below zero: no operation gives cycles back."""
    return cycles.map(lambda x: max(x, 0.0))


HASH_ACCESSES = 3
"""Lines of the entries of the hash table of the micro-benchmarks: bucket, key, action data."""

HASH_ENTRY_BYTES = 32 + 64 + 13
"""What such an entry takes, as the rule of the description has it."""

KEY_WORDS, ENTRY_WORDS = 2, 10
"""Words of the key and of an entry with its key, in these."""

ARRAY_CELL_BYTES = 8


@dataclass(frozen=True, slots=True)
class CaseCycles:
    """Core cycles of a packet with the operation (``program``) and without (``baseline``), a pair for each start."""

    case: Case
    pairs: tuple[tuple[float, float], ...]

    @property
    def cost(self) -> Estimate:
        return median_and_range([(program - baseline) / self.case.per for program, baseline in self.pairs])

    @property
    def total(self) -> Estimate:
        return median_and_range([program for program, _ in self.pairs])


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    value: Estimate
    what: str


def constants(measured: Mapping[str, CaseCycles], caches: Mapping[str, int]) -> tuple[Constant, ...]:
    return _Constants(measured, caches).all()


class _Constants:
    def __init__(self, measured: Mapping[str, CaseCycles], caches: Mapping[str, int]) -> None:
        self._measured = measured
        self._caches = caches
        self._found: dict[str, Constant] = {}

    def _case(self, name: str) -> CaseCycles:
        if name not in self._measured:
            raise MeasurementError(f"the micro-benchmark {name} is missing")
        return self._measured[name]

    def _cost(self, name: str) -> Estimate:
        return self._case(name).cost

    def _set(self, name: str, value: Estimate, what: str) -> Estimate:
        self._found[name] = Constant(name, _positive(value), what)
        return self._found[name].value

    def all(self) -> tuple[Constant, ...]:
        io = self._set("io", self._case("io").total, "receive a packet, look at it, send it")
        for size in (8, 16):
            extra = self._case(f"draw_{size}").total - io
            self._set(f"draw_{size}", extra, f"the local source writes a key of up to {size} B")
        for size in (16, 256):
            extra = self._case(f"restore_{size}").total - io
            self._set(f"restore_{size}", extra, f"the local source writes {size} B of headers")
        parse = self._set("parse_word", self._cost("parse_8"), "read a field of up to 8 B")
        deparse = self._set("deparse_word", self._cost("deparse_8"), "write a field of up to 8 B")
        for name, what in (
            ("increase", "increase a word in a register"),
            ("sum", "add two words in registers, the next needs the result"),
            ("extract", "check the length for a header"),
            ("branch", "a branch that is predicted"),
        ):
            self._set(name, self._cost(name), what)
        missed = (self._cost("miss") - parse - self._found["branch"].value) * 2
        self._set("branch_miss", missed, "a branch that is predicted wrong")
        for name in ("checksum", "crc16", "crc32"):
            for size in CURVE_BYTES:
                self._set(f"{name}_{size}", self._cost(f"{name}_{size}"), f"{name} of {size} B")
        self._arrays()
        self._tables(parse, deparse)
        for size in (1, 8, 64):
            self._set(f"move_{size}", self._cost(f"move_{size}"), f"copy a header of {size} B out and back")
        self._set("resize", self._cost("resize"), "make room in front of a packet or cut it off")
        self._set("meter", self._cost("meter"), "colour a packet, the meter in L1")
        self._set("random", self._cost("random"), "draw a number")
        for size in (64, 1024):
            self._set(f"clone_{size}", self._cost(f"clone_{size}"), f"copy and send a packet of {size} B")
        self._set("multicast", self._cost("multicast"), "send a further packet that shares the bytes")
        return tuple(self._found.values())

    def _arrays(self) -> None:
        self._set("array", self._cost("array_L1"), "read a cell of 8 B in L1")
        excess = {
            level: (self._cost(f"array_{level}") - self._cost("array_L1"), self._case(f"array_{level}").case.cells)
            for level in ("L2", "L3", "DRAM")
            if f"array_{level}" in self._measured
        }
        sizes = {level: ARRAY_CELL_BYTES * cells for level, (_, cells) in excess.items()}
        for level, stall in self._stalls({level: e for level, (e, _) in excess.items()}, sizes).items():
            self._set(f"array_{level}", stall, f"what it takes more in {level}")

    def _tables(self, parse: Estimate, deparse: Estimate) -> None:
        entry = (self._cost("hash_data_256") - self._cost("hash_data_8")) / 31
        entry = self._set("entry_word", entry, "read 8 B of an entry")
        word = (self._cost("hash_key_64") - self._cost("hash_key_8")) / 7 - parse - deparse - entry
        word = self._set("hash_word", word, "hash and compare 8 B of a key")
        whole = self._cost("hash")
        one = self._cost("hash_1")
        base = one - (parse + deparse + word) * KEY_WORDS - entry * ENTRY_WORDS
        self._set("hash", base, "look up the only entry, in L1, without its key and its data")
        any_ = (whole - one) / (1 - 1 / MANY_ENTRIES)
        self._set("hash_any", any_, "what it takes more if every packet finds another entry")
        levels = [level for level in ("L2", "L3", "DRAM") if f"hash_{level}" in self._measured]
        excess = {level: (self._cost(f"hash_{level}") - whole) / HASH_ACCESSES for level in levels}
        sizes = {level: HASH_ENTRY_BYTES * self._case(f"hash_{level}").case.entries for level in levels}
        for level, stall in self._stalls(excess, sizes).items():
            self._set(f"hash_{level}", stall, f"what a line of the table takes more in {level}")
        renew = self._cost("ct") - (whole - entry * (ENTRY_WORDS - KEY_WORDS))
        self._set("ct_renew", renew, "renew the timestamp of an entry")
        lpm = self._cost("lpm") - parse - entry * (ENTRY_WORDS - KEY_WORDS)
        lpm = self._set("lpm", lpm, "find a prefix of up to 24 bits in L1")
        longer = self._cost("lpm6") - self._cost("lpm") - parse - deparse * KEY_WORDS
        self._set("lpm_byte", longer / 5, "each further byte of a prefix")
        few, many = LIST_ENTRIES
        for bits, size in ((32, 8), (128, 32)):
            slope = (self._cost(f"list_{bits}_{many}") - self._cost(f"list_{bits}_{few}")) / ((many - few) / 2)
            each = self._set(f"list_{size}", slope, f"try an entry of {size} B (value and mask)")
            if bits == 32:
                missed = self._found["branch_miss"].value * (1 - 1 / few)
                base = self._cost(f"list_{bits}_{few}") - each * ((few + 1) / 2) - parse - missed
                self._set("list", base, "begin and end a list, without leaving it at an unexpected entry")

    def _stalls(self, excess: Mapping[str, Estimate], sizes: Mapping[str, int]) -> dict[str, Estimate]:
        """What an access takes more in each level, where a working set lies in several: each has its share."""
        found: dict[str, Estimate] = {}
        for level, more in excess.items():
            shares = cache_shares(self._caches, sizes[level])
            rest = more
            for other, stall in found.items():
                rest = rest - stall * shares.get(other, 0.0)
            share = shares.get(level, 0.0)
            found[level] = _positive(rest / share) if share > 0.05 else Estimate(0.0, 0.0, 0.0)
        return found


def cache_shares(caches: Mapping[str, int], size_bytes: float) -> dict[str, float]:
    """Share of random accesses to a working set that each level serves, as fit ``share`` has it."""
    shares, served = {}, 0.0
    for level in ("L1", "L2", "L3"):
        if level in caches:
            reached = min(1.0, caches[level] / size_bytes)
            if reached > served:
                shares[level], served = reached - served, reached
    if served < 1:
        shares["DRAM"] = 1 - served
    return shares


@dataclass(frozen=True, slots=True)
class Chase:
    """Core cycles of one load in a working set, with one chain of loads or several at once."""

    size_bytes: int
    chains: int
    cycles: Estimate


def read_chase(lines: Sequence[Mapping[str, Any]]) -> tuple[Chase, ...]:
    """What the pointer chase printed, by the windows in which the core was undisturbed."""
    try:
        ratios = sorted(
            float(m) / float(c) for line in lines for m, c in zip(line["mix_after"], line["chain_after"], strict=True)
        )
        gate_ratio = lower_mode(ratios)
        return tuple(_chase(line, gate_ratio) for line in lines)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise MeasurementError(f"the pointer chase printed something else than it should: {error}") from error


def _chase(line: Mapping[str, Any], gate_ratio: float) -> Chase:
    keys = ("tsc", "chain_before", "mix_before", "chain_after", "mix_after")
    tsc, chain0, mix0, chain1, mix1 = (np.asarray(line[key], dtype=float) for key in keys)
    cycles = tsc * float(line["chain_core_cycles"]) * 2 / (chain0 + chain1)
    calm = undisturbed(mix0, chain0, gate_ratio) & undisturbed(mix1, chain1, gate_ratio)
    chosen = cycles[calm] if calm.sum() >= 5 else cycles
    low, value, high = np.percentile(chosen, [10, 50, 90])
    return Chase(int(line["size_bytes"]), int(line["chains"]), Estimate(float(value), float(low), float(high)))


@dataclass(frozen=True, slots=True)
class MachineCalibration:
    name: str
    facts: NodeFacts
    clock_hz: float
    measured: Mapping[str, CaseCycles]
    chases: Mapping[tuple[str, int], Chase]
    """By level and number of chains."""
    starts: int
    hugepages: bool
    made: str
    version: str

    @override
    def __repr__(self) -> str:
        return f"<MachineCalibration {self.name}: {counted(len(self.measured), 'benchmark')}>"

    def text(self) -> str:
        """The description of the machine, as YAML."""
        caches = self.facts.cache_bytes
        memory = self.chases.get(("DRAM", 16))
        return render(
            "eo/hardware.yaml.j2",
            name=self.name,
            title=self.facts.text("cpu_model", "unknown processor"),
            made=self.made,
            version=self.version,
            starts=self.starts,
            pages="2 MiB" if self.hugepages else "4 KiB",
            dpdk=self.facts.text("dpdk_version", "unknown"),
            compiler=self.facts.text("cc_version", "unknown"),
            clock_hz=round(self.clock_hz),
            cores=self.facts.number("cpus") or 1,
            caches=caches,
            latencies={level: chase.cycles for (level, chains), chase in self.chases.items() if chains == 1},
            memory_bytes=self.facts.number("memory_total_bytes") or 1 << 30,
            accesses_per_s=None if memory is None else round(self.clock_hz / memory.cycles.value),
            constants=constants(self.measured, caches),
            levels=[level for level in ("L2", "L3", "DRAM") if f"hash_{level}" in self.measured],
            curve=CURVE_BYTES,
        )
