"""The frequency of cores, on a tree of files as that of cpufreq."""

import pytest

from p4perf.errors import TestbedError
from p4perf.testbeds.local import LocalTestbed

BOUNDS = {"policy0": (800_000, 3_000_000), "policy2": (1_000_000, 2_000_000)}


@pytest.fixture
def cpus(tmp_path):
    """Two cores share the first policy, one has its own."""
    for name, (lowest, highest) in BOUNDS.items():
        policy = tmp_path / "cpufreq" / name
        policy.mkdir(parents=True)
        (policy / "scaling_min_freq").write_text(f"{lowest}\n")
        (policy / "scaling_max_freq").write_text(f"{highest}\n")
    for cpu, policy in enumerate(("policy0", "policy0", "policy2")):
        (tmp_path / f"cpu{cpu}").mkdir()
        (tmp_path / f"cpu{cpu}" / "cpufreq").symlink_to(tmp_path / "cpufreq" / policy)
    return tmp_path


def bounds(cpus):
    return {
        policy.name: tuple(int((policy / f"scaling_{end}_freq").read_text()) for end in ("min", "max"))
        for policy in sorted((cpus / "cpufreq").iterdir())
    }


@pytest.fixture
def held(cpus, tmp_path):
    testbed = LocalTestbed(tmp_path / "cache")
    return lambda ghz: testbed.at_frequency(ghz, cpus)


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """What is read of a bound, which is not always what was written: a shell expression over ``$value``."""

    def reads(expression):
        folder = tmp_path / "bin"
        folder.mkdir()
        script = f'value=$(/bin/cat "$@" 2>/dev/null || echo 2000000)\necho "$(({expression}))"\n'
        (folder / "cat").write_text(f"#!/bin/sh\n{script}")
        (folder / "cat").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")

    return reads


@pytest.mark.parametrize("ghz", [0.5, 0.8, 1.5, 2.0, 3.0, 4.0])
def test_all_cores_are_held_and_set_back(cpus, held, ghz):
    with held(ghz):
        assert set(bounds(cpus).values()) == {(round(ghz * 1e6), round(ghz * 1e6))}
    assert bounds(cpus) == BOUNDS


@pytest.mark.parametrize(("ghz", "first"), [(4.0, "max"), (0.5, "min")])
def test_the_bound_that_would_cross_the_other_comes_second(cpus, held, ghz, first):
    with held(ghz):
        times = {end: (cpus / "cpufreq/policy0" / f"scaling_{end}_freq").stat().st_mtime_ns for end in ("min", "max")}
        assert times[first] == min(times.values())


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_set_back_after_an_exception(cpus, held, kind):
    with pytest.raises(kind), held(1.5):
        raise kind
    assert bounds(cpus) == BOUNDS


def test_nested(cpus, held):
    with held(1.5):
        with held(1.2):
            assert set(bounds(cpus).values()) == {(1_200_000, 1_200_000)}
        assert set(bounds(cpus).values()) == {(1_500_000, 1_500_000)}
    assert bounds(cpus) == BOUNDS


def test_a_policy_that_refuses_sets_the_others_back(cpus, held, kernel):
    kernel("value")
    highest = cpus / "cpufreq" / "policy2" / "scaling_max_freq"
    highest.unlink()
    highest.mkdir()  # cannot be written, not even by root
    with pytest.raises(TestbedError, match=rf"local, setting the frequency: cannot set {highest} .*root"), held(1.5):
        pytest.fail("the body is not run")
    highest.rmdir()
    highest.write_text("2000000\n")
    assert bounds(cpus) == BOUNDS


def test_a_kernel_that_takes_another_frequency(held, kernel):
    kernel("value < 2000000 ? value : 2000000")
    with pytest.raises(TestbedError, match=r"cannot run at 2500000 kHz: .* became 2000000"), held(2.5):
        pytest.fail("the body is not run")
    with held(2.001):
        pass


@pytest.mark.parametrize("end", ["min", "max"])
def test_a_frequency_that_changes_meanwhile(cpus, held, end):
    bound = cpus / "cpufreq" / "policy2" / f"scaling_{end}_freq"
    with pytest.raises(TestbedError, match=r"local: somebody else changed the frequency .* measured"), held(1.5):
        bound.write_text("1600000\n")
    assert bounds(cpus) == BOUNDS
    with pytest.raises(TestbedError, match="changed the frequency"), held(1.5):
        bound.unlink()  # the core went offline


def test_a_machine_without_cpufreq(tmp_path):
    with pytest.raises(TestbedError, match="has no cpufreq"), LocalTestbed().at_frequency(1.0, tmp_path / "none"):
        pytest.fail("the body is not run")
