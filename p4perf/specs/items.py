"""The 141 evaluation items of EIVU as data: what each changes, and how component ``vio`` says it.

Source: evaluation.html of https://github.com/sdnnitech/EIVUv1 (1e75188) for numbers, categories and the values before
and after; the wording is ours. Item 001 is the base. Items 002 to 084 change one thing each; 085 to 141 combine whole
factors of a (023), b (007), c (014), d (012, 020), e (044, 045) and f (047, 052, 056, 059, 061, 067, 073, 079), and
are all their subsets of two and more. d, e and f alone were never measured.

Batches of 256, 512 and 1024 packets come with queues of 512, 1024 and 2048 entries, since a batch has to fit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from p4perf.errors import UsageError
from p4perf.specs.messages import nearest
from p4perf.specs.metrics import METRICS
from p4perf.specs.source import Scalar, read_plain
from p4perf.specs.variants import PARAMETERS

BASE_ITEM = "001"

_OPTIONAL = (
    *("cycles_per_packet", "host_l1_misses", "function_l1_misses"),
    *("simulated_host_line_requests", "simulated_function_line_requests"),
)

FACTORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "a": ("no virtio header", ("023",)),
    "b": ("queue entries of 4 B", ("007",)),
    "c": ("no buffer header", ("014",)),
    "d": ("small buffers", ("012", "020")),
    "e": ("zero-copy", ("044", "045")),
    "f": ("long batches", ("047", "052", "056", "059", "061", "067", "073", "079")),
}
"""Title and items of each factor."""


@dataclass(frozen=True, slots=True)
class Item:
    """One evaluation item.

    Args:
        process: whose behaviour it changes: rx, nf, tx (several with commas) or all.
        parents: items that it inherits from.
        factors: the factors that it consists of; in brackets the factor that it is a part of.
        settings: parameters of component ``vio``, of the item without its parents.
    """

    number: str
    name: str
    category: str
    group: str
    process: str
    parents: tuple[str, ...]
    factors: str
    change: str
    settings: Mapping[str, Scalar]
    not_run_because: str

    @property
    def runs(self) -> bool:
        return not self.not_run_because

    @property
    def variant(self) -> str:
        return f"item_{self.number}"


def read_items() -> tuple[Item, ...]:
    text = files("p4perf.specs").joinpath("eivu_items.csv").read_text(encoding="utf-8")
    return tuple(
        Item(
            row["item"],
            row["name"],
            row["category"],
            " / ".join(part for part in (row["class"], row["subclass"]) if part),
            row["process"],
            tuple(row["parents"].split()),
            row["factors"],
            row["change"],
            dict(_setting(text) for text in row["settings"].split()),
            row["not_run_because"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def _setting(text: str) -> tuple[str, Scalar]:
    name, _, word = text.partition("=")
    value = read_plain(word)
    return name, word if value is None else value


def items_of(numbers: Iterable[str]) -> tuple[Item, ...]:
    """Some of the items, in the order that is asked for.

    Raises:
        UsageError: there is no such item.
    """
    known = {item.number: item for item in read_items()}
    wanted = list(numbers)
    for number in wanted:
        if number not in known:
            hint = nearest(number, known, "items")
            raise UsageError(f"there is no item {number!r}", hint=hint)
    return tuple(known[number] for number in wanted)


def items_spec(items: Iterable[Item] | None = None) -> dict[str, Any]:
    """A spec in which items are variants that inherit from each other, as plain data.

    All items that run are variants, and so are the factors a to f, each of which inherits its items. The sweep has the
    items asked for one after another; ``sweep.multiplex: [a, b, c, d, e, f]`` would have all 64 combinations.

    Raises:
        UsageError: one of them does not run.
    """
    every = [item for item in read_items() if item.runs]
    swept = every if items is None else list(items)
    for item in swept:
        if not item.runs:
            raise UsageError(f"item {item.number} ({item.name}) cannot be run: {item.not_run_because}")
    variants: dict[str, Any] = {}
    for item in every:
        inherits = [f"item_{parent}" for parent in item.parents if parent != BASE_ITEM]
        variants[item.variant] = {
            "title": item.name,
            **({"inherits": inherits} if inherits else {}),
            **({"set": {".".join((*PARAMETERS, k)): v for k, v in item.settings.items()}} if item.settings else {}),
        }
    for factor, (title, numbers) in FACTORS.items():
        variants[factor] = {"title": title, "inherits": [f"item_{number}" for number in numbers]}
    return {
        "spec_version": 1,
        "name": "vio/items",
        "title": "Evaluation items of EIVU",
        "source": {"paper": "takeya2024"},
        "metrics": {"collect": ["packet_rate"], "optional": [name for name in _OPTIONAL if name in METRICS]},
        "program": {"component": "vio", "parameters": {}},
        "variants": variants,
        "sweep": {"multiplex": {"each_of": [item.variant for item in swept]}},
    }
