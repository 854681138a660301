"""A device under test with a known capacity, as the function that a throughput search measures with."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from p4perf.experiment.search import LoadTrial


@dataclass
class SimulatedDevice:
    """Forwards ``capacity_pps``, and what its queue holds besides; each call is a trial.

    Args:
        capacity_pps: packets per second that it forwards for ever.
        queue_packets: that it takes over its capacity in a trial and forwards after it.
        single_losses: probability of each packet to be lost by chance; a trial loses one such packet or none.
        degraded: as soon as the queue is full, it forwards this share of its capacity.
        disturbed: probability that a trial is preempted; it is not valid then and half of them lose a tenth.
        overhead_s: that a trial takes besides its traffic.
        generator_pps: the generator sends no more than that.
        seed: of everything random.
    """

    capacity_pps: float
    queue_packets: int = 0
    single_losses: float = 0.0
    degraded: float = 1.0
    disturbed: float = 0.0
    overhead_s: float = 0.0
    generator_pps: float = float("inf")
    seed: int = 0
    calls: int = 0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def __call__(self, load_pps: float, duration_s: float) -> LoadTrial:
        self.calls += 1
        intended = round(load_pps * duration_s)
        sent = int(min(intended, self.generator_pps * duration_s))
        room = int(self.capacity_pps * duration_s) + self.queue_packets
        forwarded = sent if sent <= room else min(sent, int(room * self.degraded))
        if self.random.random() >= (1 - self.single_losses) ** forwarded:
            forwarded -= 1
        valid = self.random.random() >= self.disturbed
        if not valid and self.random.random() < 0.5:
            forwarded -= forwarded // 10
        return LoadTrial(load_pps, duration_s, sent, intended - forwarded, duration_s + self.overhead_s, valid)

    def hidden_pps(self, duration_s: float) -> float:
        """Load above the capacity at which trials of that duration lose nothing, rounding of packets included."""
        return (self.queue_packets + 1) / duration_s


def random_capacity(seed: int) -> float:
    """10 kpps to 20 Mpps, even on a logarithmic scale."""
    return 10_000 * 2000 ** Random(seed).random()


def single_losses(device: SimulatedDevice, trial_s: float, share: float) -> SimulatedDevice:
    """The same device, which loses a packet by chance in this share of the trials of that duration at its capacity."""
    device.single_losses = 1 - (1 - share) ** (1 / (device.capacity_pps * trial_s))
    return device
