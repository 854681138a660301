"""Tables of generated programs: their keys, and their entries as a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from p4perf.generators.statements import FieldRef

MatchKind = Literal["exact", "lpm", "ternary"]
"""Match kinds of the P4 core library that a :class:`Table` may use."""


@dataclass(frozen=True, slots=True)
class Key:
    """One match key of a table."""

    field: FieldRef
    match_kind: MatchKind = "exact"


@dataclass(frozen=True, slots=True)
class EntrySet:
    """The entries of a table, as a rule.

    Entry ``i`` of ``0 .. count-1`` has as key the integer ``i << free_bits``, in as many bits as the table's keys have
    together (the first key is the most significant). The lowest ``free_bits`` bits match whatever a packet has there:
    an lpm key has a prefix of its width minus ``free_bits``, ternary keys have ones in their mask above these bits,
    exact keys have none of them. No two entries match the same packet, so they need no order of priority.

    The action is ``action``; its parameter number ``j`` is ``port`` for ``j == 0`` and :func:`entry_data_word`
    ``(i, j)``, cut to the parameter's width, for the others.
    """

    count: int
    action: str
    port: int = 1
    free_bits: int = 0


ENTRY_MULTIPLIER = 0x9E3779B1
"""Odd multiplier (2**32 over the golden ratio) of :func:`entry_data_word`."""


def entry_data_word(entry: int, parameter: int) -> int:
    """Action data parameter ``parameter`` (from 1) of entry ``entry``: ``(i * 0x9E3779B1 + j) mod 2**32``."""
    return (entry * ENTRY_MULTIPLIER + parameter) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Table:
    """A match-action table. ``default_action`` takes no parameters and runs on a miss."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[str, ...]
    default_action: str
    entries: EntrySet
