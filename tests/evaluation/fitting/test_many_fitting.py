"""Many series: the same results wherever they are computed, in order, whatever happens to some of them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from p4perf.errors import DataError, ExitCode, TestbedError, UsageError
from p4perf.evaluation.fitting import cluster as clusters
from p4perf.evaluation.fitting import many as working
from p4perf.evaluation.fitting.derivation import FitOptions
from p4perf.evaluation.fitting.many import NamedSamples, fingerprint, fit_many, label_text
from p4perf.evaluation.fitting.split_finders import DynamicProgramming
from p4perf.results.table import Samples

DEADLY, DEFECT, SLOW = 666.0, 667.0, 668.0
OPTIONS = FitOptions(max_segments=2, resamples=20)


@dataclass(frozen=True)
class Trap(DynamicProgramming):
    """A split finder that some series fall into, told by their first sample."""

    def candidates(self, x, y, segments, log_x):
        if y[0] == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        if y[0] == SLOW:
            time.sleep(1)
        if y[0] == DEFECT:
            raise TypeError("a plug-in with a defect")
        return super().candidates(x, y, segments, log_x)


TRAPPED = FitOptions(max_segments=1, resamples=0, split_finder=Trap())


def line(k: int, first: float | None = None, points: int = 12) -> NamedSamples:
    x = np.arange(1.0, points + 1)
    y = 10 + k + np.where(x > 6, 3.0 * k * (x - 6), 0) + 0.01 * np.sin(x * k)
    y[0] = y[0] if first is None else first
    return NamedSamples({"k": str(k)}, Samples.from_arrays(np.tile(x, 2), np.concatenate([y, y])))


BAD = NamedSamples({"k": "bad"}, DataError("cannot be read"))
SERIES = [*(line(k) for k in range(20)), BAD, *(line(k) for k in range(20, 30))]


def told(results):
    return [(r.labels, r.failure, r.exit_code, r.model and r.model.to_json(), r.derived) for r in results]


@pytest.fixture(scope="module")
def here():
    """The results of this process."""
    return told(fit_many(SERIES, OPTIONS, processes=1))


def cluster_command(module: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
    )


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A Dask scheduler without workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = cluster_command("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))
    yield f"tcp://127.0.0.1:{port}"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def workers() -> Iterator[str]:
    """A Dask scheduler with two workers that are started again when they die."""
    import dask
    from distributed import LocalCluster

    # A local cluster dismisses a worker for good that happens to be dead so long after it, or one before it, died.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
    ):
        yield cluster.scheduler_address


class TestHere:
    def test_results_are_those_of_the_series(self, here) -> None:
        assert [labels["k"] for labels, *_ in here] == [s.labels["k"] for s in SERIES]
        models = [model for *_, model, _ in here]
        assert [k for k, model in enumerate(models) if model is None] == [20]
        assert here[20][1:3] == ("cannot be read", ExitCode.USAGE)
        assert here[5][4].model.name == "5"
        assert len(here[5][4].model.fitting.segments) == 2

    def test_nothing_is_done_before_it_is_asked_for(self) -> None:
        taken = []
        results = fit_many((taken.append(k) or line(k) for k in range(9)), OPTIONS, processes=1)
        assert taken == []
        next(results)
        assert taken == [0]
        results.close()

    def test_no_series(self) -> None:
        assert list(fit_many([])) == []
        assert list(fit_many([], processes=2)) == []

    def test_a_series_has_options_of_its_own(self) -> None:
        (result,) = fit_many([NamedSamples({}, line(3).samples, options=FitOptions(segments=1, resamples=0))], OPTIONS)
        assert result.model is not None
        assert (len(result.model.fitting.segments), result.model.uncertainty) == (1, None)

    def test_progress(self) -> None:
        seen: list[int] = []
        list(fit_many(SERIES[:3], OPTIONS, progress=seen.append))
        assert seen == [1, 2, 3]


class TestProcesses:
    def test_the_same_in_order(self, here) -> None:
        seen: list[int] = []
        assert told(fit_many(SERIES, OPTIONS, processes=2, progress=seen.append)) == here
        assert seen == list(range(1, len(SERIES) + 1))

    @pytest.mark.thorough
    def test_some_series_are_bad(self) -> None:
        firsts = [None, SLOW, None, DEADLY, DEFECT, *[None] * 8]
        results = list(fit_many([line(k, first) for k, first in enumerate(firsts)], TRAPPED, processes=2))
        assert [r.labels["k"] for r in results] == [str(k) for k in range(len(firsts))]
        assert {k: r.exit_code for k, r in enumerate(results) if r.model is None} == {
            3: ExitCode.UNAVAILABLE, 4: ExitCode.INTERNAL,
        }  # fmt: skip
        assert "every process that worked on this series died" in results[3].failure
        assert "TypeError: a plug-in with a defect" in results[4].failure

    @pytest.mark.thorough
    def test_everything_is_bad(self) -> None:
        with pytest.raises(TestbedError, match="the processes that fit series die at once"):
            list(fit_many([line(k, DEADLY) for k in range(3)], TRAPPED, processes=2))

    @pytest.mark.thorough
    def test_memory_is_bounded(self) -> None:
        taken, most = 0, 0

        def many() -> Iterator[NamedSamples]:
            nonlocal taken
            for k in range(2000):
                taken += 1
                yield tiny if k else NamedSamples({}, line(0, SLOW).samples)

        tiny = line(1, points=4)
        for given, result in enumerate(fit_many(many(), TRAPPED, processes=2)):
            most = max(most, taken - given)
            assert result.model is not None
        assert taken == 2000
        assert most < 400

    def test_leaving_early_ends_the_processes(self) -> None:
        results = fit_many((line(k) for k in range(10**9)), OPTIONS, processes=2)
        assert next(results).labels == {"k": "0"}
        began = time.monotonic()
        results.close()
        assert time.monotonic() < began + 5
        assert not workers_of(os.getpid())


def workers_of(parent: int) -> list[int]:
    """Processes that fit for another one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent_id = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent_id) == parent and state != "Z" and b"spawn_main" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


SCRIPT = """
import itertools
from p4perf.evaluation.fitting.many import NamedSamples, fit_many
from p4perf.results.table import Samples
if __name__ == "__main__":
    print("begins", flush=True)
    x = list(range(60))
    series = (NamedSamples({}, Samples.from_arrays(x, [v + 1 for v in x])) for _ in itertools.count())
    for result in fit_many(series, processes=2):
        print("result", flush=True)
"""


class TestScript:
    """A script whose processes are not left behind."""

    @pytest.fixture
    def script(self, tmp_path):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT)
        process = subprocess.Popen(
            [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        yield process
        process.kill()
        process.communicate()

    @pytest.mark.thorough
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_no_process_is_left_behind(self, script, how) -> None:
        assert [script.stdout.readline() for _ in range(3)] == ["begins\n", "result\n", "result\n"]
        workers = workers_of(script.pid)
        assert len(workers) == 2
        if how == signal.SIGINT:
            os.killpg(script.pid, how)  # as a terminal does
        else:
            script.send_signal(how)
        _, err = script.communicate(timeout=20)
        assert script.returncode != 0
        assert err.count("Traceback") == (how == signal.SIGINT)
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @pytest.mark.thorough
    def test_a_script_that_is_not_guarded(self, tmp_path) -> None:
        path = tmp_path / "script.py"
        path.write_text(SCRIPT.replace('if __name__ == "__main__"', "if True"))
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert 'below if __name__ == "__main__":' in done.stderr.rpartition("TestbedError")[2]


class TestCluster:
    def test_a_local_cluster(self, here, workers) -> None:
        assert told(fit_many(SERIES, OPTIONS, scheduler=workers)) == here

    @pytest.mark.thorough
    @pytest.mark.parametrize(("series", "deadly"), [(3, {1}), (12, {3, 7})])
    def test_only_what_kills_workers_is_given_up(self, workers, series, deadly) -> None:
        """Although the scheduler blames what it gave to the same workers, too, and results are lost with them."""
        given = [line(k, DEADLY if k in deadly else None) for k in range(series)]
        results = list(fit_many(given, TRAPPED, scheduler=workers))
        assert [r.labels["k"] for r in results] == [str(k) for k in range(series)]
        assert {k: r.exit_code for k, r in enumerate(results) if r.exit_code} == dict.fromkeys(
            deadly, ExitCode.UNAVAILABLE
        )

    @pytest.mark.thorough
    def test_no_workers_then_wrong_ones(self, scheduler, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(clusters, "ANSWER_S", 6.0)
        with pytest.raises(TestbedError, match=f"the Dask scheduler at {scheduler} has no workers") as caught:
            list(fit_many(SERIES, OPTIONS, scheduler=scheduler))
        assert f"dask worker {scheduler}" in str(caught.value)
        monkeypatch.setattr(clusters, "ANSWER_S", 20.0)
        (tmp_path / "p4perf").mkdir()
        (tmp_path / "p4perf" / "__init__.py").write_text("__version__ = '0.0.7'\n")
        worker = cluster_command("dask_worker", scheduler, "--no-nanny", PYTHONPATH=str(tmp_path))
        try:
            with pytest.raises(TestbedError, match=r"has p4perf 0\.0\.7, but .* is used here"):
                list(fit_many(SERIES, OPTIONS, scheduler=scheduler))
        finally:
            worker.kill()
            worker.wait()

    @pytest.mark.thorough
    def test_the_workers_leave_for_good(self, scheduler, monkeypatch) -> None:
        monkeypatch.setattr(clusters, "ANSWER_S", 20.0)
        monkeypatch.setattr(clusters, "ALONE_S", 1.0)
        monkeypatch.setattr(working, "LOOK_S", 0.2)
        worker = cluster_command("dask_worker", scheduler, "--no-nanny")
        try:
            results = fit_many((line(k) for k in range(10**9)), OPTIONS, scheduler=scheduler)
            assert next(results).labels == {"k": "0"}
        finally:
            worker.kill()
            worker.wait()
        with pytest.raises(TestbedError, match=f"all workers of the Dask scheduler at {scheduler} have gone"):
            list(results)

    @pytest.mark.thorough
    def test_what_waits_behind_the_deadly_one_is_not_given_up(self, scheduler, monkeypatch) -> None:
        monkeypatch.setattr(clusters, "ANSWER_S", 20.0)
        # Where the workers find this module, and what is tested.
        here = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        worker = cluster_command("dask_worker", scheduler, "--nthreads", "1", PYTHONPATH=here)
        try:
            results = list(fit_many([line(0, DEADLY), line(1), line(2)], TRAPPED, scheduler=scheduler))
        finally:
            worker.kill()
            worker.wait()
        assert [r.exit_code for r in results] == [ExitCode.UNAVAILABLE, ExitCode.OK, ExitCode.OK]

    def test_a_worker_that_came_later_has_another_version(self) -> None:
        chunk = working.packed_chunk(working.pack_options(OPTIONS), [working.pack_series(line(1))])
        assert len(list(working.results_of(working.fit_chunk(chunk)))) == 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(working, "__version__", "9.9")
            with pytest.raises(TestbedError, match=r"a worker has p4perf 9\.9, but"):
                working.fit_chunk(chunk)

    @pytest.mark.parametrize("silent", [True, False])
    def test_a_scheduler_that_does_not_answer(self, silent, monkeypatch) -> None:
        monkeypatch.setattr(clusters, "ANSWER_S", 0.5)
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            if silent:
                server.listen()
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            with pytest.raises(TestbedError, match=f"no answer from a Dask scheduler at {address}"):
                list(fit_many(SERIES, OPTIONS, scheduler=address))

    @pytest.mark.parametrize("address", ["", "nonsense", "foo://host:1"])
    def test_no_address(self, address) -> None:
        with pytest.raises(UsageError, match="invalid address of a scheduler"):
            list(fit_many(SERIES, OPTIONS, scheduler=address))

    def test_the_package_is_missing(self, monkeypatch) -> None:
        monkeypatch.setattr(clusters, "find_spec", lambda name: None)
        with pytest.raises(UsageError, match=r"pip install distributed"):
            fit_many(SERIES, OPTIONS, scheduler="tcp://127.0.0.1:1")


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (FitOptions(error="smap"), "unknown error metric 'smap'"),
            (FitOptions(profile="paper"), "there is no profile 'paper'"),
            (FitOptions(split_finder="dynamo"), "unknown split finder 'dynamo'"),
            (FitOptions(max_segments=0), "must be at least 1"),
            (FitOptions(min_points=0), "must be at least 1"),
            (FitOptions(level=1.0), "the level must lie between 0 and 1"),
        ],
    )
    def test_wrong_for_every_series(self, options, message) -> None:
        with pytest.raises(UsageError, match=message):
            fit_many(SERIES, options)

    def test_right_for_some(self) -> None:
        FitOptions(segments=7, min_points=50, max_segments=9).check()

    def test_that_cannot_be_sent(self) -> None:
        @dataclass(frozen=True)
        class Local(DynamicProgramming):
            pass

        options = FitOptions(split_finder=Local(), resamples=0)
        with pytest.raises(UsageError, match="cannot be sent to other processes") as caught:
            fit_many(SERIES, options, processes=2)
        assert "processes=1" in str(caught.value)
        assert [r.failure for r in fit_many(SERIES[:2], options)] == ["", ""]

    def test_where_to_fit(self) -> None:
        with pytest.raises(UsageError, match="not both"):
            fit_many(SERIES, processes=2, scheduler="tcp://127.0.0.1:1")
        with pytest.raises(UsageError, match="at least one process"):
            fit_many(SERIES, processes=0)


def test_fingerprints() -> None:
    same = fingerprint(line(1), OPTIONS)
    assert same == fingerprint(line(1), FitOptions(max_segments=2, resamples=20, threads=3))
    assert same != fingerprint(line(1), FitOptions(max_segments=3, resamples=20))
    assert same != fingerprint(line(2), OPTIONS)
    assert same != fingerprint(NamedSamples({"k": "1"}, line(1).samples, x_scale="log"), OPTIONS)


def test_labels_for_people() -> None:
    assert label_text({"target": "t4p4s", "metric": "cycles"}) == "target=t4p4s, metric=cycles"
