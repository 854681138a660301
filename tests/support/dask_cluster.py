"""A Dask scheduler and workers as users start them: processes of their own, with the fake targets as plug-ins."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.command import environment


class DaskCluster:
    """A scheduler, without workers at first. Each worker that is started has a device, which is a file."""

    def __init__(self, folder: Path, pki: Path | None = None) -> None:
        names = {"--tls-ca-file": "ca", "--tls-cert": "cert", "--tls-key": "key"}
        self._tls = [word for option, name in names.items() for word in (option, f"{pki}/{name}.pem")] if pki else []
        kind = "tls" if pki else "tcp"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"{kind}://127.0.0.1:{port}"
        self._folder = folder
        self._processes = [
            self._start("dask_scheduler", "--protocol", kind, "--host", "127.0.0.1", "--port", str(port))
        ]

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
            [sys.executable, "-P", "-m", f"distributed.cli.{module}", *arguments, *self._tls, "--no-dashboard"],
            cwd=self._folder,
            stderr=subprocess.DEVNULL,
            env=environment(**env),
        )

    def stop(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()


def certificates(folder: Path) -> Path:
    """A folder with a key, a certificate and the authority that signed it, itself."""
    folder.mkdir()
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", *words, *files], check=True, capture_output=True)
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


@contextlib.contextmanager
def dask_cluster(folder: Path, pki: Path | None = None) -> Iterator[DaskCluster]:
    """A scheduler for the body; ``pki`` is a folder of :func:`certificates` for TLS."""
    cluster = DaskCluster(folder, pki)
    try:
        yield cluster
    finally:
        cluster.stop()
