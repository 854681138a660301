"""The compiled segment as a guest of the interpreter: memory, threads, signals, callbacks."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import p4perf
from p4perf.evaluation.fitting import engine
from p4perf.evaluation.fitting.engine import _kernel, chosen_templates, fitted_templates
from p4perf.evaluation.fitting.selection import ExactRule
from p4perf.evaluation.fitting.synthetic import piecewise_series
from p4perf.models import standard_templates

TEMPLATES = standard_templates()
SOURCES = Path(engine.__file__).parent
SCRIPT = Path(__file__).resolve().parents[2] / "support" / "sanitized_engine.py"
PACKAGE = Path(p4perf.__file__).resolve().parents[1]


def runtime(name: str) -> str:
    """Where gcc has this library of its sanitizers; skips the test if it has not."""
    try:
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no gcc")
    if not Path(found.strip()).is_absolute():
        pytest.skip(f"gcc has no {name}")
    return found.strip()


@pytest.mark.thorough
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    libraries = [runtime("libasan.so"), runtime("libubsan.so")]
    headers = sysconfig.get_paths()["include"]
    if not (Path(headers) / "Python.h").exists():
        pytest.skip("the headers of Python are not here")
    kernel = tmp_path / "_kernel.so"
    # Without __gnu_linux__ there is one version of each function only: versions are picked before a sanitizer is ready.
    build = [
        "gcc", "-shared", "-fPIC", "-g", "-O1", "-std=gnu11", "-pthread", "-U__gnu_linux__", f"-I{headers}",
        "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all",
        "-o", kernel, *sorted(SOURCES.glob("*.c")),
    ]  # fmt: skip
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    run = subprocess.run(
        [sys.executable, SCRIPT, kernel],
        env={
            **os.environ,
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself leaks at its end
            "PYTHONPATH": str(PACKAGE),
            "PYTHONWARNINGS": "ignore",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr[-5000:]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
def test_memory_is_given_back() -> None:
    x, one = np.arange(400.0), np.array([0])
    rows = np.ones((8, 400)) + x
    wrong = np.array([[99.0, 1, 0, 0, 1, 1]])

    def call(times: int) -> None:
        for _ in range(times):
            fitted_templates(x, rows, one, one + 2, TEMPLATES, row=one, threads=1)
            chosen_templates(x, rows, one, one + 2, TEMPLATES, ExactRule().choice("smape"), threads=2)
            with pytest.raises(ValueError, match="unknown templates"):
                run_kernel(x, rows, wrong)

    call(100)
    before = resident_bytes()
    call(400)
    # One forgotten table of a single call is 300 kB, one block of rows 50 kB.
    assert resident_bytes() - before < 4_000_000


def run_kernel(x: np.ndarray, y: np.ndarray, templates: np.ndarray) -> None:
    runs, ends = np.array([[0, 0, 0, 1]]), np.array([2])
    results = np.empty(1), np.empty(1, dtype=np.int64), np.empty(0), np.empty(0)
    _kernel.run(x, y, templates, runs, ends, True, 0, 0.0, 0.0, 1.0, 0.1, 2, 0.0, False, 1, None, *results)


def test_arguments_are_given_back() -> None:
    x, y, templates = np.arange(9.0), np.ones(9), engine._rows(TEMPLATES, [1.0] * len(TEMPLATES))
    held = x, y, templates, None
    before = [sys.getrefcount(one) for one in held[:3]]
    for _ in range(50):
        run_kernel(x, y, templates)
        with pytest.raises(ValueError, match="unknown templates"):
            run_kernel(x, y, templates * 0 + 77)
        with pytest.raises(TypeError):
            _kernel.run(x, y)  # type: ignore[call-arg]
    assert [sys.getrefcount(one) for one in held[:3]] == before
    x.resize(3, refcheck=False)  # fails while somebody still looks at the buffer


# --- long computations


class EnoughError(Exception):
    """What the callback below raises."""


def long_task(progress) -> None:
    series = piecewise_series(1, 900, 3)
    starts, ends = np.triu_indices(900, k=4)
    chosen_templates(series.x, series.y, starts, ends, TEMPLATES, ExactRule().choice("smape"), progress=progress)


def test_progress_ascends_and_what_it_raises_comes_out() -> None:
    shares: list[float] = []

    def watch(share: float) -> None:
        shares.append(share)
        if len(shares) >= 4 and share > shares[0]:
            raise EnoughError

    before = sys.getrefcount(watch)
    with pytest.raises(EnoughError):
        long_task(watch)
    assert len(shares) >= 4
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 0.9
    assert sys.getrefcount(watch) == before


INTERRUPTED = """
import signal
from p4perf.api import FitOptions, derive
from p4perf.evaluation.fitting.synthetic import piecewise_series

signal.signal(signal.SIGINT, signal.default_int_handler)
series = piecewise_series(1, 1500, 4)
try:
    options = FitOptions(max_segments=4, search="exact")
    derive(series.x, series.y, options, progress=lambda share: print(share, flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.thorough
def test_an_interrupt_ends_a_long_computation() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        cwd=PACKAGE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        share = float(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    *shares, last = [str(share), *out.split()]
    assert (last, err) == ("interrupted", "")
    assert float(shares[-1]) < 0.2


def test_an_interrupt_that_is_handled_does_not_end_it() -> None:
    heard: list[int] = []
    shares: list[float] = []

    def watch(share: float) -> None:
        shares.append(share)
        if len(shares) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        if len(shares) == 4:
            raise EnoughError

    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with pytest.raises(EnoughError):
            long_task(watch)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]
    assert len(shares) == 4
