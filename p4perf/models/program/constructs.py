"""The vocabulary in which programs are described to cost models: one construct is one thing that a packet meets.

Front ends (p4perf's own programs, the JSON of bmv2, specifications of SWX) translate into it; cost models give each
construct a price. :data:`KINDS` says which sizes every kind has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from p4perf.errors import UsageError

Kind = Literal[
    "component",
    "extract",
    "select",
    "emit",
    "lookup",
    "write",
    "compute",
    "condition",
    "hash",
    "checksum verify",
    "checksum update",
    "counter",
    "meter",
    "register read",
    "register write",
    "random",
    "add header",
    "remove header",
    "recirculate",
    "resubmit",
    "clone",
    "multicast",
    "set egress",
    "drop",
    "jump",
    "overlap",
    "unknown",
]

Size = float | str | bool

KINDS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "component": ("name",),  # and its parameters, by their names in a spec
        "extract": ("bytes",),
        "select": ("cases", "key_bits"),
        "emit": ("bytes",),
        "lookup": ("match_kind", "entries", "key_bits", "action_data_bytes", "hit"),
        "write": ("bits", "to"),  # to: header or metadata
        "compute": ("operator", "bits"),
        "condition": ("bits",),
        "hash": ("algorithm", "bytes"),
        "checksum verify": ("bytes",),
        "checksum update": ("bytes",),
        "counter": ("cells",),
        "meter": ("cells",),
        "register read": ("cells", "bits"),
        "register write": ("cells", "bits"),
        "random": ("bits",),
        "add header": ("bytes",),
        "remove header": ("bytes",),
        "recirculate": (),
        "resubmit": (),
        "clone": ("bytes",),
        "multicast": ("ports",),
        "set egress": (),
        "drop": (),
        "jump": (),  # to another place of the program, whatever the packet is
        # Compiled or interpreted: a read that waits for a write to some of its bytes. So many have waited before, and
        # whether it turns the bytes of a field around to compute with it.
        "overlap": ("code", "earlier", "swaps"),
        "unknown": ("name",),
    }
)
"""The sizes of every kind. ``entries`` are those in the table; ``hit`` is the share of packets that find one."""


@dataclass(frozen=True, slots=True)
class Construct:
    """One thing that a packet meets.

    Args:
        kind: what it is.
        sizes: its sizes, in the order of :data:`KINDS`; of a component its name and then its parameters.
        where: where it stands, for people: ``table ipv4_lpm``, ``action set_nhop, router.p4:53``.
    """

    kind: Kind
    sizes: tuple[tuple[str, Size], ...] = ()
    where: str = ""

    def size(self, name: str) -> Size:
        """One size.

        Raises:
            KeyError: there is none of that name.
        """
        return dict(self.sizes)[name]

    def number(self, name: str) -> float:
        """One size that is a number.

        Raises:
            KeyError: there is none of that name.
        """
        value = self.size(name)
        if isinstance(value, str):
            raise KeyError(name)
        return float(value)


def construct(kind: Kind, where: str = "", /, **sizes: Size) -> Construct:
    """A construct, checked.

    Raises:
        UsageError: there is no such kind, or it has other sizes.
    """
    if kind not in get_args(Kind):
        raise UsageError(f"there is no construct {kind!r}")
    names = KINDS[kind]
    if kind == "component":
        names = (*names, *(n for n in sizes if n not in names))
    if set(sizes) != set(names):
        raise UsageError(f"a construct {kind!r} has {', '.join(names) or 'no sizes'}, not {', '.join(sizes) or 'none'}")
    return Construct(kind, tuple((n, sizes[n]) for n in names), where)
