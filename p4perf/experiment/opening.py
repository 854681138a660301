"""Targets and testbeds by the words with which users name them."""

from __future__ import annotations

from p4perf.plugins import load_plugin
from p4perf.targets.base import Target
from p4perf.testbeds.base import Testbed


def open_target(label: str) -> Target:
    """The registered target of that name, with variants behind a colon: ``dpdk-swx:interpreter``, ``dpdk-c:acl+fib``.

    Raises:
        UsageError: there is no such target, or it has no such variant.
    """
    name, _, variants = label.partition(":")
    target: Target = load_plugin("p4perf.targets", name)([v for v in variants.split("+") if v])
    return target


def open_testbed(address: str) -> Testbed:
    """The registered testbed of that name, with its place behind a colon where it needs one: ``ssh:nodes.yaml``.

    Raises:
        UsageError: there is no such testbed or place.
        DataError: what describes the place is damaged.
    """
    name, _, place = address.partition(":")
    testbed: Testbed = load_plugin("p4perf.testbeds", name).at(place)
    return testbed
