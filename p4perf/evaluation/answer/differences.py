"""What a change of a program does to its cost: the difference, with its interval, and where it comes from.

Both bills come of the same prices, so what is the same in both cancels, with its errors. The errors of what differs
count as independent of one another: half widths are added as squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from p4perf.evaluation.answer.lines import Line
from p4perf.evaluation.answer.prediction import PathName, Prediction
from p4perf.evaluation.answer.rates import Band
from p4perf.evaluation.reading.flow import base_name
from p4perf.models.program import Charge, Construct


@dataclass(frozen=True, slots=True)
class LineDifference:
    """One line that differs: what it was, what it is, None where it is not there."""

    node: str
    part: str
    before: Charge | None
    after: Charge | None

    @property
    def what(self) -> Construct:
        """The construct, as it is now if it is there."""
        charge = self.after or self.before
        assert charge is not None  # noqa: S101 - one of both is there
        return charge.what

    @property
    def cycles(self) -> Band:
        """After less before [cycles]. What is only met more or less often has the same error in both."""
        old, new = _ends(self.before), _ends(self.after)
        a, b = self.before, self.after
        if a is not None and b is not None and a.what.sizes == b.what.sizes and a.times > 0:
            more = b.times / a.times - 1
            return Band(new[0] - old[0], *sorted((more * old[1], more * old[2])))
        value = new[0] - old[0]
        down = math.hypot(new[0] - new[1], old[2] - old[0])
        up = math.hypot(new[2] - new[0], old[0] - old[1])
        return Band(value, value - down, value + up)


@dataclass(frozen=True)
class Difference:
    """Two predictions of the same target beside each other.

    Args:
        before: of the program as it is.
        after: of the changed one.
        cycles: after less before [cycles].
        mpps: of one core, after less before.
        lines: what differs, the largest difference first.
        context: difference of what constructs cost beside one another [cycles].
    """

    before: Prediction
    after: Prediction
    cycles: Band
    mpps: Band
    lines: tuple[LineDifference, ...]
    context: float


def difference(before: Prediction, after: Prediction, path: PathName = "expected") -> Difference:
    """What a change does to the cost of a way."""
    old, new = before.bills[path], after.bills[path]
    lines = _differing(_grouped(old.lines), _grouped(new.lines))
    context = new.bill.context - old.bill.context
    value = new.bill.cycles - old.bill.cycles
    bands = [line.cycles for line in lines]
    down = math.sqrt(sum((b.value - b.low) ** 2 for b in bands))
    up = math.sqrt(sum((b.high - b.value) ** 2 for b in bands))
    cycles = Band(value, value - down, value + up)
    return Difference(before, after, cycles, _rates(before, cycles, path), lines, context)


def _rates(before: Prediction, cycles: Band, path: PathName) -> Band:
    """The difference of the rate of one core [Mpps]; the unchanged cost is taken as it is."""
    old, mhz = before.cycles(path).value, before.clock_hz / 1e6
    ends = [mhz / max(old + d, 1e-9) - mhz / old for d in (cycles.value, cycles.high, cycles.low)]
    return Band(*ends)


def _ends(charge: Charge | None) -> tuple[float, float, float]:
    return (0.0, 0.0, 0.0) if charge is None else (charge.cycles, charge.low, charge.high)


_Key = tuple[str, str, str, int]


def _grouped(lines: tuple[Line, ...]) -> Mapping[_Key, Charge]:
    """Charges by node, part, kind of construct, and their number among these; the copies of a node are one."""
    found: dict[_Key, Charge] = {}
    numbers: dict[tuple[str, str], int] = {}
    for line in lines:
        kind = line.charge.what.kind
        number = numbers.get((line.node, kind), 0)
        numbers[line.node, kind] = number + 1
        key = (base_name(line.node), line.part, kind, number)
        found[key] = _together(found[key], line.charge) if key in found else line.charge
    return found


def _together(one: Charge, other: Charge) -> Charge:
    """The same construct in two copies of a node: its errors are the same, too."""
    sums = {name: getattr(one, name) + getattr(other, name) for name in ("times", "cycles", "low", "high")}
    return replace(one, **sums)


def _differing(old: Mapping[_Key, Charge], new: Mapping[_Key, Charge]) -> tuple[LineDifference, ...]:
    found = []
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key), new.get(key)
        if a is None or b is None or (a.what.sizes, a.times, a.cycles) != (b.what.sizes, b.times, b.cycles):
            found.append(LineDifference(key[0], key[1], a, b))
    return tuple(sorted(found, key=lambda line: -abs(line.cycles.value)))
