"""Files and builds on a node: stored by their content, made beside, and renamed when they are whole."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from p4perf.errors import P4PerfError, StorageError
from p4perf.targets.base import BuildPlan, JobResult
from p4perf.testbeds.builds import FILE_NAME, Builder, files_key, no_product, says_disk_full
from p4perf.testbeds.processes import printable
from p4perf.testbeds.ssh.connection import CALL_S, LOSS_S, Connection, Reply, lost

COPY_BYTES_PER_S = 250_000
"""Slowest copying that is waited for, beyond the time that every call gets."""

_NO_PRODUCT = 3


def storage_failure(connection: Connection, step: str, reply: Reply) -> P4PerfError:
    """Why the node could not write. When a connection ends, its folders go first."""
    if connection.ends_within(LOSS_S):
        return lost(connection.node, step, reply.stderr)
    lines = [line for line in reply.stderr.splitlines() if line.strip()]
    if says_disk_full(reply.stderr):
        return StorageError(
            f"node {connection.node.name}, {step}: the disk is full",
            hint=f"make room for {connection.opened().work} on the node",
        )
    return StorageError(f"node {connection.node.name}, {step}: {printable(lines[-1]) if lines else 'no reason given'}")


class Store:
    """Files on a node."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: set[str] = set()

    def put(self, files: Mapping[str, bytes]) -> Path:
        """A folder of the node with these files, copied once for equal ones; they are not to be written to."""
        final = self._connection.opened().work / "files" / files_key(files)
        if str(final) not in self._known:
            self.copy(files, self._connection.opened().new_folder(), final)
            self._known.add(str(final))
        return final

    def copy(self, files: Mapping[str, bytes], folder: Path, final: Path | None = None) -> None:
        """Make a folder with these files, which becomes ``final`` when it is complete; errors as in :meth:`put`."""
        for name in files:
            if FILE_NAME.fullmatch(name) is None:
                raise self._connection.node.error("copying files", f"{name!r} is no name for a file")
        data = b"".join(files.values())
        sizes = [word for name, content in files.items() for word in (name, str(len(content)))]
        reply = self._connection.call(
            "copying files",
            "store.sh",
            *(str(folder), str(final or ""), hashlib.sha256(data).hexdigest(), *sizes),
            stdin=base64.b64encode(data).decode("ascii"),
            timeout_s=CALL_S + len(data) / COPY_BYTES_PER_S,
        )
        if reply.code != 0:
            raise storage_failure(self._connection, "copying files", reply)


class RemoteBuilder(Builder):
    """The builds of a node, in the same folders as those of its own local runs."""

    def __init__(self, connection: Connection, store: Store) -> None:
        self._connection, self._store = connection, store
        self.where = f" on node {connection.node.name}"
        self._known: set[str] = set()
        self._begun: set[Path] = set()
        self._lock = threading.Lock()

    def _final(self, plan: BuildPlan) -> Path:
        return self._connection.opened().work / "builds" / plan.key

    @override
    def finished(self, plan: BuildPlan) -> Path | None:
        final = self._final(plan)
        if plan.key not in self._known:
            if self._connection.call("building", "exists.sh", str(final / plan.product)).code != 0:
                return None
            self._known.add(plan.key)
        return final

    @override
    def begin(self, plan: BuildPlan) -> Path:
        work = self._connection.opened().new_folder()
        self._store.copy({name: text.encode() for name, text in plan.files.items()}, work)
        with self._lock:
            self._begun.add(work)
        return work

    @override
    def step(self, command: tuple[str, ...], work: Path, limit_s: float) -> JobResult:
        return supervised(self._connection, "building", "step", work, None, limit_s, command)[0]

    @override
    def finish(self, plan: BuildPlan, work: Path, log: str) -> Path:
        final = self._final(plan)
        reply = self._connection.call(
            "building", "finish.sh", *(str(work), str(final), plan.product), stdin=log, timeout_s=CALL_S
        )
        self._forget(work)
        if reply.code == _NO_PRODUCT:
            raise no_product(plan, self.where)
        if reply.code != 0:
            raise storage_failure(self._connection, "building", reply)
        self._known.add(plan.key)
        return final

    @override
    def keep(self, work: Path, log: str) -> Path:
        kept = self._connection.opened().work / "failed-build"
        self._connection.call("building", "finish.sh", str(work), str(kept), "", stdin=log)
        self._forget(work)
        return kept

    @override
    def discard(self, work: Path) -> None:
        if work in self._begun and self._connection.is_open:
            self._connection.call("building", "remove.sh", str(work))
        self._forget(work)

    def _forget(self, work: Path) -> None:
        with self._lock:
            self._begun.discard(work)


def supervised(
    connection: Connection,
    step: str,
    mode: str,
    folder: Path,
    files: Path | None,
    limit_s: float,
    argv: tuple[str, ...],
) -> tuple[JobResult, Reply]:
    """Run a command on the node.

    Args:
        mode: ``job`` or ``step``, see ``supervise.sh``.
        folder: its working directory; a job gets a new one.
        files: a folder with files that a job finds copies of in its own.
    """
    words = (mode, str(folder), str(files or ""), f"{limit_s:.3f}", *argv)
    reply = connection.call(step, "supervise.sh", *words, held=True, timeout_s=limit_s + CALL_S)
    refuse(connection, step, reply, argv)
    late = "late" in reply.report
    return JobResult(reply.code, reply.stdout, reply.stderr, reply.duration_s, late), reply


def refuse(connection: Connection, step: str, reply: Reply, argv: tuple[str, ...]) -> None:
    """Raise the error of a command that could not be started; errors as in :func:`supervised`."""
    if "absent" in reply.report:
        raise connection.node.error(step, f"cannot start {argv[0]}: there is no such command on the node")
    if "failed" in reply.report:
        raise storage_failure(connection, step, reply)
