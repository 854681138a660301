"""What the tests of all rooms share."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_configure() -> None:
    # A test run that was started in the background ignores SIGINT, and so would all commands that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
