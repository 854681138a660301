"""A Dask scheduler and workers as users start them: processes of their own, with the fake targets as plug-ins."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.command import environment


class DaskCluster:
    """A scheduler, without workers at first. Each worker that is started has a device, which is a file."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self._folder = folder
        self._processes = [self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))]

    def worker(self, name: str, *, dut: int = 1, **env: str) -> subprocess.Popen[bytes]:
        """A worker without a nanny: killed, it stays away."""
        options = ["--nthreads", "1", "--no-nanny", "--resources", f"dut={dut}", "--name", name]
        self._processes.append(
            self._start(
                "dask_worker",
                self.address,
                *options,
                P4PERF_FAKE_DEVICE=str(self._folder / name.partition("=")[0]),
                P4PERF_FAKE_SLEEP_S="0.05",
                **env,
            )
        )
        return self._processes[-1]

    def _start(self, module: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
            cwd=self._folder,
            stderr=subprocess.DEVNULL,
            env=environment(**env),
        )

    def stop(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@contextlib.contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """A scheduler for the body."""
    cluster = DaskCluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
