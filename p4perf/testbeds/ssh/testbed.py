"""Testbed ssh: a node that is reached by the system's OpenSSH.

Files and builds on the node are stored by their content, made beside, and renamed when they are whole.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from typing_extensions import override

from p4perf.errors import BuildError, P4PerfError, StorageError, TestbedError
from p4perf.results.files import write_atomically
from p4perf.targets.base import BuildPlan, Job, JobResult, NodeFacts, Problem, placed
from p4perf.testbeds.base import FILE_NAME, SUM, Builder, Conversation, Role, Testbed, files_key, says_disk_full
from p4perf.testbeds.local import facts_of, write_files
from p4perf.testbeds.nodes import RemoteNode, file_and_node, read_node
from p4perf.testbeds.processes import LocalConversation, printable
from p4perf.testbeds.ssh import connection as ssh
from p4perf.testbeds.ssh.connection import CALL_S, Connection, Reply

COPY_BYTES_PER_S = 250_000
"""Slowest copying that is waited for, beyond the time that every call gets."""

_NO_PRODUCT = 3


def storage_failure(connection: Connection, step: str, reply: Reply) -> P4PerfError:
    """Why the node could not write. When a connection ends, its folders go first."""
    if connection.ends_within(ssh.LOSS_S):
        return ssh.lost(connection.node, step, reply.stderr)
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

    def _final(self, plan: BuildPlan) -> Path:
        return self._connection.opened().work / "builds" / plan.key

    @override
    def finished(self, plan: BuildPlan) -> Path | None:
        final = self._final(plan)
        if plan.key not in self._known:
            if self._connection.call("building", "whole.sh", str(final), plan.product, SUM).code != 0:
                return None
            self._known.add(plan.key)
        return final

    @override
    def begin(self, plan: BuildPlan) -> Path:
        work = self._connection.opened().new_folder()
        self._store.copy({name: text.encode() for name, text in plan.files.items()}, work)
        return work

    @override
    def step(self, command: tuple[str, ...], work: Path, limit_s: float) -> JobResult:
        return supervised(self._connection, "building", "step", work, None, limit_s, command)[0]

    @override
    def finish(self, plan: BuildPlan, work: Path, log: str) -> Path:
        final = self._final(plan)
        reply = self._connection.call(
            "building", "finish.sh", *(str(work), str(final), plan.product, SUM), stdin=log, timeout_s=CALL_S
        )
        if reply.code == _NO_PRODUCT:
            raise BuildError(f"the build{self.where} made no {plan.product}")
        if reply.code != 0:
            raise storage_failure(self._connection, "building", reply)
        self._known.add(plan.key)
        return final

    @override
    def keep(self, work: Path, log: str) -> Path:
        kept = self._connection.opened().work / "failed-build"
        self._connection.call("building", "finish.sh", str(work), str(kept), "", stdin=log)
        return kept

    @override
    def discard(self, work: Path) -> None:
        if self._connection.is_open:
            self._connection.call("building", "remove.sh", str(work))


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


_STEP = "conversing"


class RemoteConversation(LocalConversation):
    """Lines to and from a command, which runs in a session of its own on the node and ends when the input does."""

    patience_s = 10.0

    def __init__(self, connection: Connection, arguments: tuple[str, ...], command: tuple[str, ...]) -> None:
        self._connection, self._mark, self._command = connection, ssh.new_mark(), command
        text = connection.command(_STEP, "supervise.sh", self._mark, *arguments)
        super().__init__(connection.opened().argv(text), Path("/"))

    @override
    def _ended(self, code: int | None, said: str) -> P4PerfError:
        words, report = ssh.split_report(said, self._mark)
        status = ssh.exit_code(report)
        if status is None:
            return ssh.lost(self._connection.node, _STEP, said)
        try:
            refuse(self._connection, _STEP, Reply(status, "", words, 0.0, report), self._command)
        except P4PerfError as error:
            return error
        return super()._ended(status, words)

    @override
    def _silent(self, timeout_s: float) -> P4PerfError:
        try:
            self._connection.call(_STEP, "exists.sh", "/", timeout_s=ssh.ALIVE_S)
        except TestbedError as error:
            return error
        return super()._silent(timeout_s)


FETCHED = "fetched"
"""Folder beside the files of a job that gets what the job left on the node."""

MAX_FETCH_BYTES = 256 << 20
"""Most that one job may leave to be fetched, in bytes."""


class SshTestbed(Testbed):
    """Runs everything on one node of a node file, below the work folder that the file names.

    Jobs run in folders of their own, with copies of their files, and leave nothing behind. A status of a command above
    128 is taken for death by a signal, because the shell on the node makes no difference.
    """

    name = "ssh"
    summary = "a node of a node file, by OpenSSH: ssh:FILE, or ssh:FILE:NODE"

    def __init__(self, node: RemoteNode, file: Path, connection: Connection | None = None) -> None:
        self._node, self._file = node, file.absolute()
        self._connection = connection or Connection(node)
        self._store = Store(self._connection)
        self._builder = RemoteBuilder(self._connection, self._store)
        self._beside: SshTestbed | None = None

    @classmethod
    @override
    def at(cls, place: str) -> Self:
        file, name = file_and_node(place, cls.name, "node", "nodes.yaml")
        return cls(read_node(file, name), file)

    @property
    @override
    def label(self) -> str:
        return f"{self.name}:{self._node.name}"

    @property
    @override
    def record(self) -> Mapping[str, str]:
        address = f"{self.name}:{self._file}:{self._node.name}"
        record = {"address": address, "node": self._node.name, "host": self._node.spec.host}
        sender = self._node.generator_node
        return record if sender is None else {**record, "load_generator_node": sender}

    @override
    def node(self, role: Role) -> Testbed:
        if role in self._node.spec.roles:
            return self
        if role != "loadgen" or self._node.generator_node is None:
            raise self._node.error("sending load", f"no node has the role {role}", f"see to roles in {self._file}")
        if self._beside is None:
            self._beside = type(self)(read_node(self._file, self._node.generator_node), self._file)
        return self._beside

    def close(self) -> None:
        """End the connections, and what runs on the nodes; the next use connects again."""
        self._connection.close()
        if self._beside is not None:
            self._beside.close()

    @override
    def problems(self) -> tuple[Problem, ...]:
        if shutil.which("ssh") is None:
            return (Problem("no ssh on the PATH", "install the client of OpenSSH"),)
        found = []
        if "dut" not in self._node.spec.roles:
            found.append(Problem(f"node {self._node.name} has not the role dut", f"see to roles in {self._file}"))
        try:
            reply = self._connection.call("looking", "needs.sh", *self._node.spec.interfaces.values())
        except P4PerfError as error:
            return (*found, Problem(error.message, error.hint or "see p4perf doctor"))
        absent = reply.stdout.split()
        for name, address in self._node.spec.interfaces.items():
            if address in absent:
                what = f"node {self._node.name} has no interface {name} at {address}"
                found.append(Problem(what, f"see to interfaces in {self._file}", fatal=False))
        return tuple(found)

    @override
    def facts(self) -> NodeFacts:
        reply = self._connection.call("reading its facts", "probe.sh")
        facts = facts_of(reply.stdout)
        if reply.code != 0 or not facts.values:
            raise self._node.error("reading its facts", f"the probe failed: {reply.stderr.strip() or 'no output'}")
        return NodeFacts({**facts.values, **self._node.spec.as_facts()})

    @override
    def build(self, plan: BuildPlan) -> Path:
        return self._builder.build(plan)

    @override
    def run(self, job: Job, folder: Path) -> JobResult:
        """Run the job in a folder of the node; what it leaves there comes into ``folder / "fetched"``.

        The duration of the result has the way there and back in it.
        """
        argv, there, files = self._prepared(job, folder)
        step = "running"
        result, reply = supervised(self._connection, step, "job", there, files, job.timeout_s, argv)
        self._fetch(reply, there, folder)
        return result

    @override
    def artifact_path(self, folder: Path, name: str) -> Path:
        return folder / FETCHED / name

    @override
    def converse(self, job: Job, folder: Path) -> contextlib.AbstractContextManager[Conversation]:
        argv, there, files = self._prepared(job, folder)
        words = ("talk", str(there), str(files or ""), "0", *argv)
        return RemoteConversation(self._connection, words, argv)

    def _prepared(self, job: Job, folder: Path) -> tuple[tuple[str, ...], Path, Path | None]:
        """Build what the job needs and copy its files; the command, its folder on the node, and that of its files."""
        places = {"build": str(self.build(job.build))} if job.build is not None else {}
        write_files(job, folder)
        files = self._store.put(job.files) if job.files else None
        # Last: what is before may have had to connect again, and the folder goes with the connection.
        there = self._connection.opened().new_folder()
        places["folder"] = str(there)
        return placed(job.argv, places), there, files

    def _fetch(self, reply: Reply, there: Path, folder: Path) -> None:
        left = [
            (words[1], int(words[0]))
            for words in reply.report.get("file", [])
            if len(words) == 2 and re.fullmatch("[0-9]+", words[0]) and FILE_NAME.fullmatch(words[1])
        ]
        if not left:
            return
        step = "fetching files"
        if sum(size for _, size in left) > MAX_FETCH_BYTES:
            self._connection.call(step, "remove.sh", str(there))
            raise self._node.error(step, f"the job left more than {MAX_FETCH_BYTES >> 20} MiB")
        for name, size in left:
            limit_s = CALL_S + size / COPY_BYTES_PER_S
            fetched = self._connection.call(step, "fetch.sh", str(there), name, timeout_s=limit_s)
            try:
                data = base64.b64decode(fetched.stdout)
            except binascii.Error as error:
                raise self._node.error(step, f"{name} arrived damaged") from error
            if fetched.code != 0 or len(data) != size:
                raise self._node.error(step, f"{name} did not arrive whole")
            write_atomically(folder / FETCHED / name, (data,))
        self._connection.call(step, "remove.sh", str(there))
