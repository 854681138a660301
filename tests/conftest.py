"""What the tests of all rooms share."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.sshd import Sshd, why_not

# Tests run side by side; threads of BLAS that wait for each other would take the processors from them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Machines are shared: how long an example takes says nothing of the code. Temporary folders may be shared by examples.
settings.register_profile(
    "shared", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
settings.load_profile("shared")


def pytest_configure() -> None:
    # A test run that was started in the background ignores SIGINT, and so would all commands that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked as sampled(n), all cases but n, spread evenly, are marked as thorough."""
    cases: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            cases.setdefault((item.nodeid.partition("[")[0], mark.args[0]), []).append(item)
    for (_, count), group in cases.items():
        kept = {round((number + 0.5) * len(group) / count - 0.5) for number in range(count)}
        for number, item in enumerate(group):
            if number not in kept:
                item.add_marker(pytest.mark.thorough)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with ``golden/<name>`` beside the test file, or writes it there with ``--update-golden``."""

    def compare(name: str, text: str) -> None:
        path = Path(request.path).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden"
        assert text == path.read_text(), f"{path.name} differs: look at it, then run pytest --update-golden"

    return compare


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of builds for all workers: equal plans are compiled once in a run of the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "builds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """A node for testbed ssh, shared by all tests that do it no harm."""
    with _nodes(tmp_path_factory.mktemp("node")) as new:
        yield new()


@pytest.fixture
def new_node(tmp_path):
    """Starts nodes for testbed ssh that one test has for itself."""
    with _nodes(tmp_path) as new:
        yield new


@contextlib.contextmanager
def _nodes(folder: Path) -> Iterator[Callable[..., Sshd]]:
    if reason := why_not():
        pytest.skip(reason)
    started: list[Sshd] = []

    def new(name: str = "dut", *settings: str) -> Sshd:
        (folder / name).mkdir()
        started.append(Sshd(folder / name, name, settings))
        return started[-1].start()

    try:
        yield new
    finally:
        for each in started:
            each.stop()


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What p4perf notes of this machine stays out of the home of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
