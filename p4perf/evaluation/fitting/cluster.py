"""The connection to a Dask scheduler and its workers (https://distributed.dask.org), for whoever gives them work."""

from __future__ import annotations

import asyncio
import pkgutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from p4perf.errors import P4PerfError, TestbedError, UsageError
from p4perf.version import __version__

INSTALL = "pip install distributed"
ANSWER_S = 10.0
"""How long to wait for the scheduler, and for its first worker."""
ALONE_S = 30.0
"""How long to wait for workers to come back when all have gone."""
SILENT_S = 60.0
"""How long the scheduler may be silent once it has answered."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker as its scheduler lists it; ``name`` is its address unless it was given one."""

    address: str
    name: str
    resources: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Task:
    future: Future[bytes]
    drop: Callable[[], Any]


class Scheduler:
    """A Dask scheduler that has answered and has workers with this version of p4perf.

    Args:
        options: what ``dask worker`` has to be told besides, for the hint.
        tls: a folder with ``ca.pem``, ``cert.pem`` and ``key.pem``; None for what the configuration of Dask says.

    Raises:
        UsageError: the package ``distributed`` is missing, this is no address, or a file of TLS is missing or unusable.
        TestbedError: the scheduler does not answer, has no workers, or they have another version of p4perf.
    """

    def __init__(self, address: str, options: str = "", tls: Path | None = None) -> None:
        require_distributed()
        from distributed import Client

        security = None if tls is None else _security(address, tls)

        self.address = address
        self.hint = f"start workers where p4perf {__version__} is installed, with: dask worker {address}{options}"
        client: Any = Client
        try:
            _call(address, security)
            self._client = client(address, timeout=ANSWER_S, set_as_default=False, name="p4perf", security=security)
        except (ValueError, TypeError) as error:
            message = f"invalid address of a scheduler: {address!r}"
            raise UsageError(message, hint="such as tcp://10.0.0.1:8786") from error
        except OSError as error:
            hint = "start one with: dask scheduler"
            raise TestbedError(f"there is no answer from a Dask scheduler at {address}", hint=hint) from error
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise
        self._seen = time.monotonic()
        self._client.subscribe_topic("all", self._hear)

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=ANSWER_S)
            versions = self._client.run(pkgutil.resolve_name, "p4perf:__version__", on_error="return")
        except OSError as error:
            raise TestbedError(f"the Dask scheduler at {self.address} has no workers", hint=self.hint) from error
        for worker, version in versions.items():
            if isinstance(version, Exception):
                raise TestbedError(f"p4perf cannot be used on the worker {worker}: {version}", hint=self.hint)
            if version != __version__:
                message = f"the worker {worker} has p4perf {version}, but {__version__} is used here"
                raise TestbedError(message, hint=self.hint)

    def threads(self) -> int:
        """Number of threads of all workers.

        Raises:
            TestbedError: the scheduler is gone or silent, or all workers have been gone for some time.
        """
        try:
            threads = int(sum(self._client.nthreads(callback_timeout=SILENT_S).values()))
        except OSError as error:
            raise self.lost() from error
        now = time.monotonic()
        if threads:
            self._seen = now
        elif now > self._seen + ALONE_S:
            raise TestbedError(f"all workers of the Dask scheduler at {self.address} have gone")
        return threads

    def workers(self) -> dict[str, WorkerInfo]:
        """The workers that there are at the moment, by address."""
        try:
            identity = self._client.sync(self._client.scheduler.identity, callback_timeout=SILENT_S)
        except (OSError, CancelledError, asyncio.CancelledError) as error:
            raise self.lost() from error
        return {
            address: WorkerInfo(address, str(worker["name"]), dict(worker.get("resources") or {}))
            for address, worker in identity["workers"].items()
        }

    def submit(self, function: Callable[[bytes], bytes], data: bytes, **where: Any) -> Task:
        """Have work done; ``where`` are arguments of ``Client.submit`` that say by whom."""
        # Not by the executor of the client: its futures wait for ever if a result is lost with its worker on the way
        # here and cannot be had again, or if the connection breaks meanwhile.
        task = self._client.submit(function, data, pure=False, **where)
        result = self._client.gather(task, asynchronous=True)
        return Task(asyncio.run_coroutine_threadsafe(result, self._client.loop.asyncio_loop), task.cancel)

    def killed_worker(self, error: BaseException, what: str) -> bool:
        """Whether work failed because several workers that had it died, not necessarily because of it."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return True
        if isinstance(error, P4PerfError):
            return False
        if isinstance(error, CancelledError | OSError):
            raise self.lost() from error
        raise TestbedError(f"the workers cannot {what}: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._client.close(timeout=2)

    def lost(self) -> TestbedError:
        return TestbedError(f"the connection to the Dask scheduler at {self.address} is lost")

    def _hear(self, event: Any) -> None:
        """Learn what happens on the cluster: some workers live too briefly to be counted."""
        match event:
            case (_, {"action": "add-worker"}):
                self._seen = time.monotonic()


def is_encrypted(address: str) -> bool:
    return address.startswith("tls://")


def _security(address: str, tls: Path) -> Any:
    """What a client of Dask shows and checks."""
    from distributed.security import Security

    if not is_encrypted(address):
        raise UsageError(f"{address} is not an address with TLS", hint="such as tls://10.0.0.1:8786")
    files = {name: tls / f"{name}.pem" for name in ("ca", "cert", "key")}
    if missing := [str(path) for path in files.values() if not path.is_file()]:
        raise UsageError(
            f"{', '.join(missing)}: there is no such file", hint="--tls FOLDER has ca.pem, cert.pem, key.pem"
        )
    security: Any = Security
    ca, cert, key = map(str, files.values())
    found = security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
    try:
        found.get_connection_args("client")
    except OSError as error:
        raise UsageError(f"the certificates in {tls} cannot be used: {error}") from error
    return found


def _call(address: str, security: Any) -> None:
    """Shake hands with a scheduler: the client of Dask would wait for ever for one that is silent."""
    from distributed.comm.core import connect
    from distributed.security import Security

    default: Any = Security
    shake: Any = connect
    answer: Future[None] = Future()

    async def shake_hands() -> None:
        arguments = (security or default()).get_connection_args("client")
        comm = await asyncio.wait_for(shake(address, timeout=ANSWER_S, **arguments), ANSWER_S)
        comm.abort()

    def run() -> None:
        try:
            answer.set_result(asyncio.run(shake_hands()))
        except BaseException as error:
            answer.set_exception(error)

    # A thread, because the caller may be a notebook, where a loop runs already.
    threading.Thread(target=run, name="p4perf-call", daemon=True).start()
    answer.result(ANSWER_S + 1)


def require_distributed() -> None:
    """Raise a UsageError if the package ``distributed`` is missing."""
    if find_spec("distributed") is None:
        raise UsageError("a cluster needs the package distributed, which is not installed", hint=INSTALL)
