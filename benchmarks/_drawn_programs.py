"""Random programs of weighted kinds of components, with which composed experiments and predictions are checked."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

ComponentList = tuple[tuple[str, Mapping[str, int | str]], ...]

FRAME_BYTES = 1024
"""Frames in which the headers of all drawn programs fit; what is compared has frames of one size."""

HEADER_BYTES = 1000
"""Most bytes of headers behind Ethernet."""

MOST_HEADERS = 60
"""Most headers; SWX knows 64."""


@dataclass(frozen=True)
class DrawnKinds:
    """What programs are drawn from: weights of the kinds, and values that are equally likely.

    ``prefixes`` is the share of lpm tables among tables; their keys have 32 bit, their prefixes 24.
    """

    components: tuple[int, int] = (3, 8)
    tables: float = 0.5
    parsers: float = 0.2
    writes: float = 0.2
    hashes: float = 0.1
    entries: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)
    headers: tuple[int, ...] = tuple(range(1, 11))
    fields_written: tuple[int, ...] = tuple(range(1, 13))
    hashed_bytes: tuple[int, ...] = (32, 64, 96, 128)
    prefixes: float = 0.0
    prefix_entries: tuple[int, ...] = (10, 100, 1_000, 10_000)


def draw_programs(seed: int, count: int, kinds: DrawnKinds | None = None) -> tuple[ComponentList, ...]:
    """``count`` different programs; the same for the same seed.

    Exact tables have keys of 128 bit, all tables 64 B of action data; hashes are CRC-32; written headers have 16
    fields.
    """
    kinds = kinds or DrawnKinds()
    source = random.Random(seed)  # noqa: S311 - nothing secret
    found: list[ComponentList] = []
    while len(found) < count:
        length = source.randint(*kinds.components)
        program = tuple(_component(source, kinds) for _ in range(length))
        if program not in found and _fits(program):
            found.append(program)
    return tuple(found)


def _component(source: random.Random, kinds: DrawnKinds) -> tuple[str, Mapping[str, int | str]]:
    weights = (kinds.tables, kinds.parsers, kinds.writes, kinds.hashes)
    match source.choices(("table", "parser", "write", "hash"), weights)[0]:
        case "table":
            if kinds.prefixes and source.random() < kinds.prefixes:
                entries = source.choice(kinds.prefix_entries)
                return "match_action_table", {"match_kind": "lpm", "entries": entries, "key_bits": 32}
            return "match_action_table", {"entries": source.choice(kinds.entries)}
        case "parser":
            return "parser_headers", {"headers": source.choice(kinds.headers)}
        case "write":
            return "header_field_writes", {"writes": source.choice(kinds.fields_written)}
        case _:
            return "hash", {"size_bytes": source.choice(kinds.hashed_bytes)}


def _fits(program: ComponentList) -> bool:
    headers, size = 0, 0
    for name, parameters in program:
        match name:
            case "parser_headers":
                headers += int(parameters["headers"])
                size += 4 * int(parameters["headers"])
                continue
            case "match_action_table":
                size += 20
            case "header_field_writes":
                size += 64
            case _:
                size += int(parameters["size_bytes"])
        headers += 1
    return headers <= MOST_HEADERS and size <= HEADER_BYTES
