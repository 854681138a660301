"""The frequency of processor cores, through the cpufreq files of Linux, set back afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from p4perf.errors import TestbedError

CPUS = Path("/sys/devices/system/cpu")

TOLERANCE = 0.01
"""Share by which the frequency that the kernel takes may differ from the one that was asked for."""

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
    policies = sorted({policy.resolve() for policy in cpus.glob("cpu[0-9]*/cpufreq")})
    if not policies:
        raise TestbedError("the frequency of this machine cannot be set: it has no cpufreq")
    wanted = str(round(frequency_ghz * 1e6))
    with contextlib.ExitStack() as restore:
        for policy in policies:
            restore.callback(_hold, policy, _read(policy / _LOWEST), _read(policy / _HIGHEST))
            _hold(policy, wanted, wanted)
            _check(policy, int(wanted))
        yield


def _check(policy: Path, wanted_khz: int) -> None:
    """The kernel takes the nearest that it can do; that has to be near."""
    for name in (_LOWEST, _HIGHEST):
        taken_khz = int(_read(policy / name))
        if abs(taken_khz - wanted_khz) > TOLERANCE * wanted_khz:
            raise TestbedError(
                f"the cores cannot run at {wanted_khz / 1e6:g} GHz: {policy / name} became {taken_khz / 1e6:g} GHz"
            )


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
