"""Cost models by ``target@machine``: files, those of a folder, and those that ship with p4perf."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path

from typing_extensions import override

from p4perf.errors import DataError, Location, P4PerfError, SpecError, TargetUnavailableError, UsageError
from p4perf.evaluation.prediction.answer import SHIPPED, TargetModel
from p4perf.evaluation.prediction.learning.constructs import PacketPath, workload_increment
from p4perf.evaluation.prediction.memory import MemoryModel
from p4perf.evaluation.prediction.reading.names import SWX
from p4perf.evaluation.prediction.reading.points import components_workload, tables_for
from p4perf.evaluation.prediction.reading.swx_packets import UnknownDecisionError
from p4perf.models.program import Charge, Construct, CostBreakdown
from p4perf.models.program.costs import NOTHING, Basis, CostModel
from p4perf.models.program.costs_storage import SCHEMA, read_cost_model
from p4perf.models.program.prices import weaker
from p4perf.models.program.primitives import PrimitiveCosts
from p4perf.results.files import read_text
from p4perf.specs.messages import nearest
from p4perf.specs.units import parse_quantity

CLOCK = "core_frequency"
"""Fact of a machine: how fast its cores are, such as ``2.9 GHz``."""

UNDER_WAY = 2
"""How many packets are under way at a time: lookups of 100 to 200 instructions in a processor with room for 300 to 500.
SWX divides each packet among its threads, which wait by turns."""

_NOISE = re.compile(r"\((?:r|tm)\)|@.*|\b(?:cpu|processor|intel|amd|\d+-core)\b", re.IGNORECASE)


class ProgramParts(PrimitiveCosts):
    """Prices of primitives and of what is made of them, asked for once only: programs meet the same again and again."""

    @cached_property
    def _known(self) -> dict[tuple[object, ...], Charge]:
        return {}

    @cached_property
    def _paths(self) -> dict[tuple[object, ...], PacketPath | str]:
        return {}

    @override
    def charge(self, what: Construct, times: float = 1.0) -> Charge:
        key = (what.kind, what.sizes, times)
        if key not in self._known:
            one = self._component(what, times) if what.kind == "component" else super().charge(what, times)
            self._known[key] = one
        return replace(self._known[key], what=what)

    def composed(self, met: Sequence[tuple[Construct, float]], baseline: float) -> CostBreakdown:
        """The price of a program of components."""
        charges = tuple(self.charge(what, times) for what, times in met)
        each = [(str(what.size("name")), self._path(what), times) for what, times in met if what.kind == "component"]
        paths = [(name, path, times) for name, path, times in each if not isinstance(path, str)]
        once = len(paths) == len(met) and all(times == 1 for *_, times in paths)
        whole = self._path(*(what for what, _ in met)) if once else ""
        if isinstance(whole, str):
            parts = [(part, times * n) for _, path, times in paths for part, n in path]
            return self.summed(charges, parts, baseline)
        if self.composition is not None:
            return self.beside([(name, path) for name, path, _ in paths], whole, charges, self.composition)
        apart = sum((charge.cycles for charge in charges), NOTHING)
        return self.summed(charges, whole, baseline, apart.value - self.added(whole).value)

    def _path(self, *components: Construct) -> PacketPath | str:
        """What an average packet meets in components beyond the baseline, or why that cannot be said."""
        key = tuple(what.sizes for what in components)
        if key not in self._paths:
            try:
                found: PacketPath | str = workload_increment(self.target, *components_workload(components))
            except P4PerfError as error:
                found = error.message
            except UnknownDecisionError as error:
                found = str(error)
            self._paths[key] = found
        return self._paths[key]

    def _component(self, what: Construct, times: float) -> Charge:
        """The price of a component as the sum of its primitives; of basis ``unknown`` if one of them has none."""
        if like := tables_for(what):
            return self._mixed(what, times, [(self.charge(one), share) for one, share in like])
        path = self._path(what)
        if isinstance(path, str):
            return Charge(what, times, NOTHING, basis="unknown", remark=path)
        charges, cycles = self.priced(path), self.alone(path)
        basis: Basis = "measured"
        for charge in charges:
            basis = weaker(basis, charge.basis)
        sources = ", ".join(dict.fromkeys(s for c in charges for s in c.source.split(", ") if s))
        remarks = [c.remark for c in charges if c.remark and c.basis in ("extrapolated", "bounded", "unknown")]
        return Charge(what, times, cycles * times, sources, basis, "; ".join(dict.fromkeys(remarks)))

    def _mixed(self, what: Construct, times: float, each: Sequence[tuple[Charge, float]]) -> Charge:
        """The price of a component whose packets are as different as these, in their shares.

        A processor is at several packets at a time, and those that wait for memory decide how long these take. Equally
        slow ones wait together, which is in their price; so a mixture costs the mean of the slowest of as many.
        """
        together = 1 if self.target.partition(":")[0] == SWX else UNDER_WAY
        each = sorted(each, key=lambda part: part[0].cycles.value)
        reached = [0.0, *(share**together for share in accumulate(share for _, share in each))]
        cycles = sum(
            (charge.cycles * (b - a) for (charge, _), (a, b) in zip(each, pairwise(reached), strict=True)), NOTHING
        )
        return replace(each[-1][0], what=what, times=times, cycles=cycles * times)


def is_cost_model(text: str) -> bool:
    """Whether a text says that it is a cost model of programs; what else is wrong with it is another matter."""
    if SCHEMA not in text:
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return True
    return isinstance(value, dict) and value.get("schema") == SCHEMA


def parse_cost_model(text: str, file: str) -> TargetModel:
    """The model that a text is; its machine is called as its processor is."""
    return _priced(_unpriced(text, file))


def _unpriced(text: str, file: str, machine: str = "") -> TargetModel:
    """What is known of a model without its prices, which take time to read; its machine may have another name."""
    model = read_cost_model(text, file=file)
    named = machine_name(model.machine.get("cpu_model", ""))
    called = machine or GENERATIONS.get(model.machine.get("cpu_id", "").rpartition("-")[0], named)
    here = _here(model)
    return TargetModel(
        model, called, _clock_hz(model, file), file, called if here == named else here, batches=model.batches
    )


def _priced(found: TargetModel) -> TargetModel:
    assert isinstance(found.pricing, CostModel)  # noqa: S101 - it was read here
    model = replace(found.pricing, parts=ProgramParts.from_record(dict(found.pricing.primitives), file=found.origin))
    return replace(found, pricing=model, memory=MemoryModel(model))


@cache
def this_machine() -> tuple[str, str, str]:
    """The name of this machine, as :func:`machine_name` makes it, its processor, and its last-level cache [bytes].

    The processor is its family, model and stepping. Each is empty where Linux does not say.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "", "", ""
    try:
        cache_kib = int(
            Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text(encoding="utf-8").rstrip("K\n")
        )
    except (OSError, ValueError):
        cache_kib = 0
    keys = ("model name", "cpu family", "model", "stepping")
    found = [re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE) for key in keys]
    name, *numbers = ("" if match is None else match[1].strip() for match in found)
    return machine_name(name) if name else "", "-".join(numbers) if all(numbers) else "", str(1024 * cache_kib or "")


GENERATIONS = {
    "6-79": "broadwell", "6-106": "ice-lake", "6-143": "sapphire-rapids", "6-207": "emerald-rapids",
    "6-173": "granite-rapids", "23-1": "naples", "23-49": "rome", "25-1": "milan", "25-17": "genoa", "26-2": "turin",
}  # fmt: skip
"""What people call processors of servers, by family and model: their own names may say less, as in virtual machines."""


ALIKE = 1.5
"""Last-level caches are alike up to this factor: neighbours leave an unknown share of them anyway."""


def _here(model: CostModel) -> str:
    """What this machine is called beside that of a model: processors of several generations have the same name."""
    name, *ours = this_machine()
    theirs = [model.machine.get(key, "") for key in ("cpu_id", "cache_l3_bytes")]
    other = [bool(known and own and known != own) for known, own in zip(theirs, ours, strict=True)]
    if other[1]:
        sizes = sorted((int(theirs[1]), int(ours[1])))
        other[1] = sizes[1] > ALIKE * sizes[0]
    if not any(other):
        return name
    called = GENERATIONS.get(ours[0].rpartition("-")[0], f"{name}, family, model and stepping {ours[0]}")
    if not other[1]:
        return called
    own_mib, known_mib = (f"{int(size) / 2**20:.3g} MiB" for size in (ours[1], theirs[1]))
    return f"{called} with {own_mib} of L3 cache, not {known_mib}"


def is_of_this_machine(model: CostModel) -> bool:
    """Whether the processor of a model is the one here, as far as both are known."""
    return _here(model) == machine_name(model.machine.get("cpu_model", ""))


def machine_name(cpu_model: str) -> str:
    """A word for a machine: ``xeon-gold-6142`` for ``Intel(R) Xeon(R) Gold 6142 CPU @ 2.60GHz``."""
    words = re.findall(r"[a-z0-9.]+", _NOISE.sub(" ", cpu_model).lower())
    return "-".join(words) or "unknown"


def _clock_hz(model: CostModel, file: str) -> float | None:
    text = model.machine.get(CLOCK)
    if text is None:
        return None
    try:
        return float(parse_quantity(text, "frequency", "Hz"))
    except SpecError as error:
        raise DataError(error.message, location=Location(file), key=f"machine.{CLOCK}", hint=error.hint) from error


FOLDER = Path("models")
"""Where models of one's own are looked for."""

REFERENCE = "reference"
"""Origin of the models that ship with p4perf."""


def _available(targets: Sequence[str] = ()) -> tuple[TargetModel, ...]:
    """The models of :data:`FOLDER`, then those that ship with p4perf, with another name if the folder has theirs.

    Files of the folder that are no cost models of programs are passed over.

    Args:
        targets: only those that ship of these, by their file names; none: all.
    """
    texts = {str(file): read_text(file) for file in sorted(FOLDER.glob("*.json")) if file.is_file()}
    own = [_unpriced(text, file) for file, text in texts.items() if is_cost_model(text)]
    found: dict[str, TargetModel] = {}
    for model in own:
        found.setdefault(model.name, model)
    for model in _shipped(targets):
        other = replace(model, machine=f"{model.machine}{SHIPPED}") if model.name in found else model
        found[other.name] = other
    return tuple(found.values())


def _shipped(targets: Sequence[str]) -> list[TargetModel]:
    wanted = tuple(f"{target.replace(':', '-')}@" for target in targets) or ""
    folder = files("p4perf.models") / REFERENCE
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".json"))
    return [
        _unpriced((folder / name).read_text(encoding="utf-8"), REFERENCE, Path(name).stem.partition("@")[2])
        for name in names
        if name.startswith(wanted)
    ]


def reference_model(target: str) -> CostModel | None:
    """The model of a target that ships, of the nearest machine; None if there is none."""
    ours = _nearest([m for m in _shipped([target]) if m.target == target])
    return ours[0].pricing if ours and isinstance(ours[0].pricing, CostModel) else None


def open_models(
    given: Sequence[str], targets: Sequence[str] = (), *, limit: Callable[[str], str] = lambda target: ""
) -> tuple[TargetModel, ...]:
    """The models that are asked for.

    Args:
        given: files, or names such as ``dpdk-c@turin``; none: all of the folder, or if it has none, of those that ship
            one for each target: that of this machine if there is one.
        targets: only models of these targets, with their variants as in ``dpdk-swx:interpreter``.
        limit: why a model of a target cannot be learned; empty if nothing prevents it.

    Raises:
        UsageError: there is no such model.
        DataError: a model is damaged or of another version.
        TargetUnavailableError: there is no model for a target.
    """
    models = tuple(_given(text, targets) for text in given) or _available(targets)
    if not targets:
        if not models:
            raise TargetUnavailableError("there is no cost model", hint=_LEARN)
        own = tuple(m for m in models if m.origin != REFERENCE)
        return tuple(map(_priced, models if given else own or _chosen(models)))
    found: dict[str, TargetModel] = {}
    for target in dict.fromkeys(targets):
        if not (matching := _chosen([m for m in models if m.target == target])):
            others = ", ".join(sorted({m.target for m in (models if given else _available())}))
            if given:
                hint = "leave out one of the two options"
                raise UsageError(f"--model is for {others}, and --target asks for {target}", hint=hint)
            hint = _LEARN.replace("TARGET", target)
            if why := limit(target):
                hint = f"choose another target; p4perf learn cannot make one: {why}"
            raise TargetUnavailableError(f"there is no cost model for target {target}, only for {others}", hint=hint)
        found |= {m.name: _priced(m) for m in matching}
    return tuple(found.values())


def known_models() -> tuple[tuple[TargetModel, bool], ...]:
    """The models that a name may mean, and whether predictions use them for their target; without prices."""
    models = _available()
    chosen = {model.name for model in _chosen(models)}
    return tuple((model, model.name in chosen) for model in models)


def _chosen(models: Sequence[TargetModel]) -> tuple[TargetModel, ...]:
    """The models of one's own, and one that ships for each target without any."""
    own = [m for m in models if m.origin != REFERENCE]
    targets = {m.target for m in own}
    return (*own, *_nearest([m for m in models if m.target not in targets]))


def _nearest(models: Sequence[TargetModel]) -> tuple[TargetModel, ...]:
    """One model for each target, that of this machine if there is one, else of one whose processor has its name."""
    found: dict[str, TargetModel] = {}
    own = this_machine()[0]

    def distance(model: TargetModel) -> tuple[bool, bool]:
        named = isinstance(model.pricing, CostModel) and machine_name(model.pricing.machine.get("cpu_model", "")) == own
        return bool(model.elsewhere), not named

    for model in sorted(models, key=distance):
        found.setdefault(model.target, model)
    return tuple(found[target] for target in dict.fromkeys(m.target for m in models))


_LEARN = "p4perf learn --target TARGET measures one"


def _given(text: str, targets: Sequence[str]) -> TargetModel:
    path = Path(text)
    if path.is_file():
        content = read_text(path)
        if not is_cost_model(content):
            raise DataError(
                "is not a cost model of programs", location=Location(text), hint="p4perf learn makes such models"
            )
        return _unpriced(content, text)
    known = _available()
    matching = [m for m in known if text in (m.name, m.machine)]
    matching = [m for m in matching if m.target in targets] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(m.name for m in matching)
        raise UsageError(f"{text} is the machine of several models: {names}", hint="name one of them")
    hint = nearest(text, [m.name for m in known], "there are")
    raise UsageError(f"there is no model {text!r}, and no such file", hint=hint)
