"""Gate ratios that this machine has shown in earlier sessions.

A neighbour on the other hyperthread of a core may stay for minutes. A session that begins meanwhile sees no undisturbed
core, and without what earlier ones saw it would take the disturbed one for it: all of its numbers would be too high,
and agree with one another.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p4perf.errors import P4PerfError
from p4perf.results.files import read_text, write_text_atomically
from p4perf.targets.base import NodeFacts
from p4perf.targets.windows import Undisturbed, lower_mode
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.local import LocalTestbed, state_folder

FILE = "gate-ratios.json"
KEPT = 16
"""Lowest ratios that are kept of each processor and clock."""

AGREEING, NEAR = 4, 1.005
"""So many of them must be this near to the lowest of these."""

CLOCK_STEP = 1.05
"""Ratios are kept apart for clocks that differ by as much."""

_SENSIBLE = (0.01, 100.0)


def known_before(seen: Sequence[Undisturbed], testbed: Testbed, facts: NodeFacts) -> list[Undisturbed]:
    """What earlier calibrations of this machine agree on, for every clock; what this one saw is noted with it.

    Nothing of other machines is known.
    """
    if type(testbed) is not LocalTestbed:
        return []
    path = state_folder() / FILE
    machine = " ".join(facts.values.get(key, "") for key in ("cpu_id", "cpu_model"))
    content = _content(path)
    clocks = content.setdefault(machine, {})
    for each in (each for each in seen if each.chain_tsc > 0):
        kept = clocks.setdefault(str(_step(each.chain_tsc)), [])
        kept[:] = sorted((*kept, round(each.gate_ratio, 5)))[:KEPT]
    with contextlib.suppress(OSError, P4PerfError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    agreed = ((clock, _agreed(kept)) for clock, kept in clocks.items())
    return [Undisturbed(ratio, CLOCK_STEP ** int(clock)) for clock, ratio in agreed if ratio is not None]


def _step(chain_tsc: float) -> int:
    return round(math.log(chain_tsc) / math.log(CLOCK_STEP))


def _agreed(ratios: Sequence[float]) -> float | None:
    if len(ratios) < AGREEING:
        return None
    ratio = lower_mode(ratios)
    return ratio if sum(ratio <= each <= NEAR * ratio for each in ratios) >= AGREEING else None


def _content(path: Path) -> dict[str, dict[str, list[float]]]:
    """What the file holds; nothing if it is not there or damaged."""
    try:
        content = json.loads(read_text(path))
        return {
            str(machine): {str(int(c)): _ratios(r) for c, r in clocks.items()} for machine, clocks in content.items()
        }
    except (P4PerfError, OSError, ValueError, TypeError, AttributeError):
        return {}


def _ratios(found: Any) -> list[float]:
    low, high = _SENSIBLE
    return sorted(ratio for ratio in map(float, found) if low < ratio < high)[:KEPT]
