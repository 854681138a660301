"""What integration tests need of the machine, and the target as its users have it."""

import shutil
import subprocess

import pytest

from p4perf.targets.dpdk_c import DpdkCTarget
from p4perf.testbeds.local import LocalTestbed


def missing():
    """Why nothing can be built with DPDK here; None if it can."""
    for tool in ("cc", "pkg-config"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if subprocess.run(["pkg-config", "--exists", "libdpdk"], check=False).returncode != 0:
        return "libdpdk is not installed"
    return None


@pytest.fixture(scope="session")
def dpdk():
    """Skips the test where there is no DPDK."""
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def testbed(dpdk, builds):
    """A testbed that all tests share."""
    return LocalTestbed(builds)


@pytest.fixture(scope="session")
def facts(testbed):
    return testbed.facts()


@pytest.fixture(scope="session")
def target():
    return DpdkCTarget()
