"""Reading takes no more memory and time than a limit, and leaves the limits of the process as they were."""

import resource
import signal
import threading

import pytest

from p4perf.errors import DataError
from p4perf.evaluation.prediction.reading.program import read_program
from p4perf.experiment.imports import read_import
from p4perf.experiment.own import own_experiment
from p4perf.formats import plain
from p4perf.formats.plain import bounded


@pytest.fixture(autouse=True)
def _as_before():
    before = resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGVTALRM)
    yield
    assert (resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGVTALRM)) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


def grow():
    pieces = []
    while True:
        pieces.append(bytearray(16 << 20))


def turn():
    while True:
        pass


@pytest.mark.parametrize(("act", "what"), [(grow, "64 MiB of memory"), (turn, "of processor time")])
def test_a_limit_that_is_reached(monkeypatch, act, what):
    monkeypatch.setattr(plain, "MAX_MEMORY_BYTES", 64 << 20)
    monkeypatch.setattr(plain, "MAX_PROCESSOR_S", 0.5)
    with pytest.raises(DataError, match=what):
        bounded()(act)()


def test_memory_is_limited_in_threads_too(monkeypatch):
    monkeypatch.setattr(plain, "MAX_MEMORY_BYTES", 64 << 20)
    found = []

    def read():
        with pytest.raises(DataError, match="of memory") as caught:
            bounded()(grow)()
        found.append(caught.value)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(found) == 1


def test_what_is_within_the_limits_is_returned():
    assert bounded()(lambda: len(bytearray(8 << 20)))() == 8 << 20


@pytest.mark.parametrize("door", [read_program, own_experiment, read_import])
def test_the_doors_of_readers_have_limits(monkeypatch, door):
    entered = []
    monkeypatch.setattr(plain, "_data_bytes", lambda: entered.append(door) or 1 << 34)
    with pytest.raises(TypeError):
        door()
    assert entered == [door]


def test_a_file_that_is_not_there_is_looked_for_nearby(tmp_path):
    (tmp_path / "examples" / "more").mkdir(parents=True)
    (tmp_path / "examples" / "more" / "a.json").touch()
    for wrong in ("exmaples/more/a.json", "examples/mor/a.json", "examples/more/b.json"):
        assert plain.near_path(tmp_path / wrong) == f"did you mean {tmp_path / 'examples' / 'more' / 'a.json'}?"
    assert plain.near_path(tmp_path / "examples" / "mor") is None, "a folder is no file"
    assert plain.near_path(tmp_path / "nothing" / "x.csv") is None
