"""Which of these machines can run this set of functions at this load? The question of an orchestrator (Baldi 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from p4perf.errors import UsageError
from p4perf.models.eo.hardware import Hardware, accesses_per_s
from p4perf.models.eo.mapping import RateEstimate, estimate
from p4perf.models.eo.operations import NetworkFunction


@dataclass(frozen=True, slots=True)
class Demand:
    """A function, or several in a row, and the load that it has to take.

    Attributes:
        frame_bytes: frame size with the FCS; None: that of the first function.
        remote: share of packets that come into the cache of another socket.
    """

    name: str
    functions: tuple[NetworkFunction, ...]
    load_mpps: float
    frame_bytes: int | None = None
    remote: float = 0.0


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that could run them, and how many of its cores are free for that."""

    name: str
    hardware: Hardware
    cores: int


@dataclass(frozen=True, slots=True)
class CoreNeed:
    """What one demand takes of a host: cores, and the estimate for one core."""

    demand: Demand
    cores: float
    estimate: RateEstimate


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a host can run all demands at once.

    Attributes:
        use: share of each resource that they take: ``cpu``, ``memory`` (accesses a second), ``link``, ``capacity``
            (bytes of tables). Above 1 it is not possible.
    """

    host: Host
    possible: bool
    bound: str
    use: dict[str, float]
    needs: tuple[CoreNeed, ...]
    reason: str = ""


def place(hosts: Sequence[Host], demands: Sequence[Demand], *, share_cores: bool = False) -> tuple[Verdict, ...]:
    """A verdict for each host, in order.

    Args:
        demands: all of them run on the host at the same time.
        share_cores: a core may run several demands; otherwise each gets whole cores of its own.

    Raises:
        UsageError: no hosts or demands, or a load that is none.
    """
    if not hosts or not demands:
        raise UsageError("placing takes at least one host and one function")
    for demand in demands:
        if not demand.load_mpps > 0 or math.isinf(demand.load_mpps):
            raise UsageError(f"{demand.name}: a load of {demand.load_mpps:g} Mpps is none", hint="give a positive rate")
    return tuple(_judge(host, demands, share_cores) for host in hosts)


def _judge(host: Host, demands: Sequence[Demand], share_cores: bool) -> Verdict:
    try:
        alone = [_estimate(host, demand, 0.0) for demand in demands]
        bytes_ = [e.breakdown.table_bytes for e in alone]
        needs = []
        for demand, own in zip(demands, bytes_, strict=True):
            found = _estimate(host, demand, sum(bytes_) - own)
            cores = demand.load_mpps / found.mpps_per_core
            needs.append(CoreNeed(demand, cores if share_cores else math.ceil(cores - 1e-9), found))
    except UsageError as error:
        return Verdict(host, False, "capacity" if "memory of" in error.message else "unknown", {}, (), error.message)
    use = _use(host, needs, sum(bytes_))
    bound = max(use, key=lambda resource: use[resource])
    possible = use[bound] <= 1 + 1e-9
    reason = "" if possible else f"{bound} is taken {100 * use[bound]:.0f} %"
    return Verdict(host, possible, bound, use, tuple(needs), reason)


def _estimate(host: Host, demand: Demand, others_bytes: float) -> RateEstimate:
    return estimate(
        demand.functions,
        host.hardware,
        frame_bytes=demand.frame_bytes,
        remote=demand.remote,
        others_bytes=others_bytes,
    )


def _use(host: Host, needs: Sequence[CoreNeed], table_bytes: float) -> dict[str, float]:
    hardware = host.hardware
    use = {"cpu": sum(need.cores for need in needs) / host.cores}
    accesses = sum(need.demand.load_mpps * 1e6 * need.estimate.breakdown.dram_accesses for need in needs)
    if accesses:
        sockets = math.ceil(host.cores / hardware.cores)
        use["memory"] = accesses / accesses_per_s(hardware.memory, host.cores, sockets)
    if hardware.links is not None:
        bits = sum(need.demand.load_mpps * 1e6 * 8 * need.estimate.wire_bytes for need in needs)
        use["link"] = bits / (hardware.links.ports * hardware.links.rate_bps)
    use["capacity"] = table_bytes / hardware.memory.size_bytes
    return use
