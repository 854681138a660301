"""The control flow of a program as a graph of constructs, the vocabulary of cost models.

Front ends (p4perf's own programs, the JSON of bmv2, specifications of SWX) translate into it; cost models give each
construct a price. :data:`KINDS` says which sizes every kind has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar, get_args

from p4perf.errors import UsageError

Kind = Literal[
    "component", "extract", "select", "emit", "lookup", "write", "compute", "condition", "hash", "checksum verify",
    "checksum update", "counter", "meter", "register read", "register write", "random", "add header", "remove header",
    "recirculate", "resubmit", "clone", "multicast", "set egress", "drop", "jump", "call", "overlap", "clock",
    "mispredicted branch", "level", "reuse", "kept header", "unknown",
]  # fmt: skip

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
        "call": (),  # of a table without keys, which is its action
        # A read that waits for a write to some of its bytes. ``code``: compiled or interpreted code of SWX, with
        # the number of waits before it, and 1 if the bytes of a field are turned around to compute with it;
        # gathered: a key that is put together of several places; copied: a header that was written in pieces and is
        # copied in words; stored: a field of a header that was just written.
        "overlap": ("code", "earlier", "swaps"),
        # A decision that goes otherwise than for most packets; ``after``: lookup, if it waits for one; prefix, if it is
        # made within one, of a longest prefix; turn, if it is where the next packet goes on; or start.
        "mispredicted branch": ("after",),
        "level": (),  # beyond the first at which a longest prefix is searched
        # A step of a lookup in a table that is in use beyond the nearest cache; ``of``: its kind of match, or branch,
        # if a branch that waits for it goes otherwise than for most packets. So many bytes are touched in between.
        "reuse": ("of", "reuse_bytes"),
        # A header that is kept apart from the packet. ``step``: cleared, when a pass begins; read from the packet; or
        # written to it.
        "kept header": ("step",),
        "clock": (),  # a time stamp
        "unknown": ("name",),
    }
)
"""The sizes of every kind. ``entries`` are those in the table; ``hit`` is the share of packets that find one."""


@dataclass(frozen=True, slots=True)
class Construct:
    """One thing that a packet meets.

    Args:
        sizes: its sizes, in the order of :data:`KINDS`; of a component its name and then its parameters.
        where: its place in the program, for people: ``table ipv4_lpm``, ``action set_nhop, router.p4:53``.
    """

    kind: Kind
    sizes: tuple[tuple[str, Size], ...] = ()
    where: str = ""

    def size(self, name: str) -> Size:
        """One size."""
        return dict(self.sizes)[name]

    def number(self, name: str) -> float:
        """One size that is a number."""
        value = self.size(name)
        if isinstance(value, str):
            raise KeyError(name)
        return float(value)


OPTIONAL: Mapping[Kind, tuple[str, ...]] = MappingProxyType({"lookup": ("masks", "nodes", "astray", "extended")})
"""Sizes that a construct may have. ``masks``: as how many combinations of masks, equally frequent, its entries have are
as diverse: ``n^2 / sum n_m^2`` of n entries, n_m of which have the combination m (Simpson, Nature 163, 1949).
``nodes``: of a trie of the kernel, that the search of a longest prefix visits. ``astray``: share of the packets whose
entry is found at another place, of a bucket or a trie, than that of most. ``extended``: extensions of a bucket of SWX
that the search of an entry goes through, on average."""


def construct(kind: Kind, where: str = "", /, **sizes: Size) -> Construct:
    """A construct, checked.

    Raises:
        UsageError: there is no such kind, or it has other sizes.
    """
    if kind not in get_args(Kind):
        raise UsageError(f"there is no construct {kind!r}")
    names = (*KINDS[kind], *(n for n in OPTIONAL.get(kind, ()) if n in sizes))
    if kind == "component":
        names = (*names, *(n for n in sizes if n not in names))
    if set(sizes) != set(names):
        raise UsageError(f"a construct {kind!r} has {', '.join(names) or 'no sizes'}, not {', '.join(sizes) or 'none'}")
    return Construct(kind, tuple((n, sizes[n]) for n in names), where)


def mispredicted_branch(after: Literal["start", "lookup", "prefix", "turn"]) -> Construct:
    """A decision that a processor predicts wrong; see :data:`KINDS`."""
    return construct("mispredicted branch", after=after)


DIFFERING = 0.05
"""Variance of the turns of packets from which on no place is expected."""


def out_of_step(mean: float, variance: float) -> float:
    """How often a processor is wrong about where the next packet goes on, where packets take turns.

    If all packets take as many turns, they are all at the same place, or at places that follow each other. If some take
    more, which place is next depends on all that were before.

    Args:
        mean: turns of a packet, one more than it looks up tables.
        variance: of that number.
    """
    return mean * min(1.0, variance / DIFFERING)


NodeKind = Literal["parser state", "table", "action", "condition", "block", "deparser", "end"]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge to a following node.

    Args:
        label: what decides for it: ``hit``, ``miss``, the name of an action, ``true``, ``false``, a value of a select,
            ``default``, or nothing.
        to: name of the next node; empty where the packet's path ends (it is sent or dropped).
        probability: branch probability, None if unknown.
    """

    label: str
    to: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One step: what it is made of, and where it leads. Without edges the path of a packet ends here."""

    name: str
    kind: NodeKind
    constructs: tuple[Construct, ...] = ()
    edges: tuple[Edge, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class ProgramGraph:
    """A program, as far as costs are concerned. It has no cycles: loops of parsers are unrolled or refused.

    Args:
        nodes: by their names, in the order of the program.
        source: what it was read from: ``p4perf``, ``bmv2``, ``swx``, ``p4c``.
        frame_bytes: frame size that belongs to it, with FCS; None if unknown.
        assumed: names of the nodes with unknown branch probabilities, at which packets take the usual path.
        packets: what packets it is asked for, where these are known one by one; for people.
    """

    name: str
    nodes: Mapping[str, Node]
    start: str
    source: str
    remarks: tuple[str, ...] = field(default=())
    frame_bytes: int | None = None
    assumed: tuple[str, ...] = field(default=())
    packets: str = ""


class Leading(Protocol):
    """What has a name and leads on by edges; an edge to the empty name leads nowhere."""

    @property
    def name(self) -> str:
        """Under which others lead to it."""

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Where it leads."""


L = TypeVar("L", bound=Leading)


class LoopError(ValueError):
    """Steps lead back to where they came from: the names along the loop, the first one at the end again."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(" -> ".join(names))


class NowhereError(LookupError):
    """A name that something leads to, but that is not there; ``source``: what leads to it; empty: it is the start."""

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name)
        self.name, self.source = name, source


def in_order(start: str, steps: Mapping[str, L]) -> list[L]:
    """The steps that can be reached from one of them, each before those that its edges lead to.

    Raises:
        LoopError: there is a cycle.
        NowhereError: there is no such start, or an edge leads to a name that is not there.
    """
    if start not in steps:
        raise NowhereError(start, "")
    found: list[L] = []
    finished: dict[str, bool] = {start: False}  # False: on the way
    stack = [(steps[start], 0)]
    while stack:
        step, position = stack.pop()
        if position == len(step.edges):
            finished[step.name] = True
            found.append(step)
            continue
        stack.append((step, position + 1))
        to = step.edges[position].to
        if not to or finished.get(to):
            continue
        if to in finished:
            names = [s.name for s, _ in stack]
            raise LoopError([*names[names.index(to) :], to])
        if to not in steps:
            raise NowhereError(to, step.name)
        finished[to] = False
        stack.append((steps[to], 0))
    return found[::-1]
