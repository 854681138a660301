"""The frequency of cores, on a tree of files that behaves as cpufreq does: no bound crosses the other."""

from pathlib import Path

import pytest

from p4perf.errors import TestbedError
from p4perf.testbeds.local import LocalTestbed
from p4perf.testbeds.tuning import fixed_frequency

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
def written(monkeypatch, cpus):
    """All writes, in order; one that crosses the other bound fails, as the kernel's does."""
    log = []
    real = Path.write_text

    def write(path, text, *arguments, **more):
        if path.name.startswith("scaling_"):
            lowest, highest = (int((path.parent / f"scaling_{end}_freq").read_text()) for end in ("min", "max"))
            new = (int(text), highest) if path.name == "scaling_min_freq" else (lowest, int(text))
            if new[0] > new[1]:
                raise OSError(22, "Invalid argument")
            log.append((path.parent.name, path.name))
        return real(path, text, *arguments, **more)

    monkeypatch.setattr(Path, "write_text", write)
    return log


@pytest.mark.parametrize("ghz", [0.5, 0.8, 1.5, 2.0, 3.0, 4.0])
def test_all_cores_are_held_and_set_back(cpus, written, ghz):
    with fixed_frequency(ghz, cpus):
        assert set(bounds(cpus).values()) == {(round(ghz * 1e6), round(ghz * 1e6))}
    assert bounds(cpus) == BOUNDS
    assert len(written) == 8, "a policy that cores share is set once"


def test_the_bound_that_would_cross_the_other_comes_second(cpus, written):
    with fixed_frequency(4.0, cpus):
        assert written[:2] == [("policy0", "scaling_max_freq"), ("policy0", "scaling_min_freq")]
    written.clear()
    with fixed_frequency(0.5, cpus):
        assert written[:2] == [("policy0", "scaling_min_freq"), ("policy0", "scaling_max_freq")]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_set_back_after_an_exception(cpus, written, kind):
    with pytest.raises(kind), fixed_frequency(1.5, cpus):
        raise kind
    assert bounds(cpus) == BOUNDS


def test_nested(cpus, written):
    with fixed_frequency(1.5, cpus):
        with fixed_frequency(1.2, cpus):
            assert set(bounds(cpus).values()) == {(1_200_000, 1_200_000)}
        assert set(bounds(cpus).values()) == {(1_500_000, 1_500_000)}
    assert bounds(cpus) == BOUNDS


def test_a_policy_that_refuses_sets_the_others_back(cpus, written, monkeypatch):
    real = Path.write_text

    def write(path, text, *arguments, **more):
        if path.parent.name == "policy2" and text == "1500000":
            raise PermissionError(13, "Permission denied")
        return real(path, text, *arguments, **more)

    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(TestbedError, match="Permission denied") as caught, fixed_frequency(1.5, cpus):
        pytest.fail("the body is not run")
    assert caught.value.hint == "run as root"
    assert bounds(cpus) == BOUNDS


def test_a_kernel_that_takes_another_frequency(cpus, monkeypatch):
    real = Path.write_text

    def clamped(path, text, *arguments, **more):
        return real(path, str(min(int(text), 2_000_000)), *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", clamped)
        with pytest.raises(TestbedError, match=r"cannot run at 2\.5 GHz: .* became 2 GHz"), fixed_frequency(2.5, cpus):
            pytest.fail("the body is not run")
        with fixed_frequency(2.001, cpus):
            pass


def test_a_machine_without_cpufreq(tmp_path):
    with pytest.raises(TestbedError, match="has no cpufreq"), fixed_frequency(1.0, tmp_path):
        pytest.fail("the body is not run")


def test_a_trial_at_a_frequency(cpus, written, monkeypatch, tmp_path):
    testbed = LocalTestbed(tmp_path / "cache")
    monkeypatch.setattr("p4perf.testbeds.local.fixed_frequency", lambda ghz: fixed_frequency(ghz, cpus))
    with testbed.at_frequency(1.5):
        assert set(bounds(cpus).values()) == {(1_500_000, 1_500_000)}
    assert bounds(cpus) == BOUNDS
