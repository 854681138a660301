"""What tells runs apart: short names for them, and what differs between their specs and machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p4perf.specs import ExperimentSpec
from p4perf.specs.schema import IMPORTED

COSMETIC = {"title", "description", "source", "extends", "spec_version"}
"""Keys of a spec that influence no measurement."""

MACHINE = ("cpu_model", "cpu_id", "microcode", "machine", "virtual_machine", "kernel", "dpdk_version", "cc_version")
"""Facts of a node that are compared; hugepages and the version of p4perf as well."""

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """Something in which runs differ.

    Args:
        kind: ``spec`` or ``machine``.
        key: dotted key of the spec, or name of the fact.
        values: text of the value by label.
    """

    kind: str
    key: str
    values: Mapping[str, str]

    def text(self) -> str:
        """Such as ``trials.repetitions is 3 (a), 5 (b)``."""
        return f"{self.key} is {', '.join(f'{value} ({label})' for label, value in self.values.items())}"


def run_labels(groups: Sequence[Sequence[Manifest]]) -> list[list[str]]:
    """Short names, unique within each group, and of the same kind in all groups.

    The target; where a group has several runs of a target, with the testbed; or else with the processor; or else with
    a number, in the order in which they are given.

    Args:
        groups: manifests of runs, by experiment.
    """
    kinds: tuple[Callable[[Manifest], str], ...] = (
        lambda m: str(m["target"]),
        lambda m: f"{m['target']}@{m['testbed']}",
        lambda m: f"{m['target']} on {m['node'].get('cpu_model') or 'unknown processor'}",
    )
    for kind in kinds:
        named = [[kind(manifest) for manifest in group] for group in groups]
        if all(len(set(names)) == len(names) for names in named):
            return named
    return [_numbered([str(manifest["target"]) for manifest in group]) for group in groups]


def _numbered(names: Sequence[str]) -> list[str]:
    return [
        f"{name} #{list(names[: at + 1]).count(name)}" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]


def spec_differences(specs: Mapping[str, ExperimentSpec]) -> tuple[Difference, ...]:
    """Keys in which the specs of runs differ, cosmetic ones left out. What the spec of an import omits is unknown."""
    leaves = {label: _leaves(spec.model_dump(mode="json", exclude=COSMETIC)) for label, spec in specs.items()}
    keys = {key for known in leaves.values() for key in known}
    for label, spec in specs.items():
        if spec.program.component == IMPORTED:
            said = _leaves(spec.model_dump(mode="json", exclude=COSMETIC, exclude_unset=True))
            leaves[label] = dict.fromkeys(sorted(keys), "unknown") | said
    return _differences("spec", leaves)


def machine_differences(manifests: Mapping[str, Manifest]) -> tuple[Difference, ...]:
    """Facts in which the machines of runs differ."""
    return _differences("machine", {label: machine_facts(manifest) for label, manifest in manifests.items()})


def machine_facts(manifest: Manifest) -> dict[str, str]:
    """What is compared of a machine, as text."""
    facts = {key: str(manifest["node"].get(key, "unknown")) for key in MACHINE}
    facts["hugepages"] = {True: "yes", False: "no"}.get(manifest["hugepages"], "unknown")
    return {**facts, "testbed": str(manifest["testbed"]), "p4perf": str(manifest["versions"].get("p4perf", "unknown"))}


def _differences(kind: str, leaves: Mapping[str, Mapping[str, str]]) -> tuple[Difference, ...]:
    keys = list(dict.fromkeys(key for values in leaves.values() for key in values))
    found = []
    for key in keys:
        values = {label: known.get(key, "absent") for label, known in leaves.items()}
        if len(set(values.values())) > 1:
            found.append(Difference(kind, key, values))
    return tuple(found)


def _leaves(value: Any, key: str = "") -> dict[str, str]:
    """Dotted keys of a tree, with their values as text; lists are values."""
    if isinstance(value, dict) and value:
        return {
            name: leaf
            for child, inner in value.items()
            for name, leaf in _leaves(inner, f"{key}.{child}" if key else child).items()
        }
    return {key: json.dumps(value)}
