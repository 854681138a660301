"""Energy."""

from p4perf.specs.metrics import Metric


def metrics():
    return (Metric("joules_per_packet", "J/packet", "energy that the program takes for a packet"),)
