"""The frequency of processor cores, through the cpufreq files of Linux, set back afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from p4perf.errors import TestbedError

CPUS = Path("/sys/devices/system/cpu")

_LOWEST, _HIGHEST = "scaling_min_freq", "scaling_max_freq"


@contextlib.contextmanager
def fixed_frequency(frequency_ghz: float, cpus: Path = CPUS) -> Iterator[None]:
    """Hold all cores at a frequency for the body: both bounds of the governor are set to it, and set back.

    Args:
        frequency_ghz: the frequency.
        cpus: the folder of the cores.

    Raises:
        TestbedError: there is no cpufreq, it cannot be written (no root), or it does not take that frequency.
    """
    policies = sorted(cpus.glob("cpu[0-9]*/cpufreq"))
    if not policies:
        raise TestbedError("the frequency of this machine cannot be set: it has no cpufreq")
    before = [(policy, _read(policy / _LOWEST), _read(policy / _HIGHEST)) for policy in policies]
    wanted = str(round(frequency_ghz * 1e6))
    try:
        for policy in policies:
            _hold(policy, wanted, wanted)
        yield
    finally:
        for policy, lowest, highest in before:
            _hold(policy, lowest, highest)


def _hold(policy: Path, lowest: str, highest: str) -> None:
    """Set both bounds; whichever would cross the other comes second."""
    order = [(_LOWEST, lowest), (_HIGHEST, highest)]
    if int(lowest) > int(_read(policy / _HIGHEST)):
        order.reverse()
    for name, value in order:
        try:
            (policy / name).write_text(value, encoding="ascii")
        except OSError as error:
            raise TestbedError(
                f"cannot set {policy / name} to {value}: {error.strerror}", hint="run as root"
            ) from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TestbedError(f"cannot read {path}: {error.strerror}") from error
