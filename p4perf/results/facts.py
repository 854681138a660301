"""What a probe found out about the machine that runs the device under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

IDENTITY_FACTS = ("cpu_model", "cpu_id", "machine", "cc_version", "dpdk_version")
"""Facts in which two machines must agree to be the same for a measurement."""

COMPARED_FACTS = (
    *("cpu_model", "cpu_id", "microcode", "machine", "virtual_machine"),
    *("kernel", "dpdk_version", "cc_version"),
)
"""Facts of a machine that comparisons report; with them hugepages, the testbed and the version of p4perf."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts of the machine that runs the device under test. Sizes in bytes; ``None`` where unknown."""

    values: Mapping[str, str]
    """Facts as the probe printed them."""

    def text(self, key: str, default: str = "") -> str:
        return self.values.get(key, default)

    def number(self, key: str) -> int | None:
        """A fact as an integer, or None if it is absent or no integer."""
        value = self.values.get(key, "")
        return int(value) if value.lstrip("-").isdigit() else None

    @property
    def cache_bytes(self) -> dict[str, int]:
        """Data cache sizes that one core sees, by level: ``{"L1": ..., "L2": ..., "L3": ...}``."""
        sizes = {level: self.number(f"cache_{level.lower()}_bytes") for level in ("L1", "L2", "L3")}
        return {level: size for level, size in sizes.items() if size}

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that may be used, best first: the device gets the first one, the load generator the second.

        Isolated CPUs come first; of the others the last ones, because interrupts prefer CPU 0.
        """
        allowed = cpu_list(self.text("cpus_allowed"))
        isolated = [c for c in cpu_list(self.text("isolated_cpus")) if c in allowed]
        return (*isolated, *(c for c in reversed(allowed) if c not in isolated))


def cpu_list(text: str) -> list[int]:
    """CPUs of a list such as ``0-3,8``."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found += range(int(first), int(last or first) + 1)
    return found


def differences(began: NodeFacts, found: NodeFacts) -> str:
    """In which of :data:`IDENTITY_FACTS` two machines differ, in words; empty if they are the same."""
    changed = [f for f in IDENTITY_FACTS if began.text(f) != found.text(f)]
    return "; ".join(f"{f} was {began.text(f)!r}, is {found.text(f)!r}" for f in changed)


def machine_facts(node: NodeFacts, versions: Mapping[str, str], testbed: str, hugepages: bool | None) -> dict[str, str]:
    """What comparisons report of a machine, as text."""
    facts = {key: str(node.text(key, "unknown")) for key in COMPARED_FACTS}
    facts["hugepages"] = "unknown" if hugepages is None else "yes" if hugepages else "no"
    return {**facts, "testbed": testbed, "p4perf": str(versions.get("p4perf", "unknown"))}
