"""A conversation with a command on a node."""

from __future__ import annotations

from pathlib import Path

from p4perf.errors import P4PerfError, TestbedError
from p4perf.testbeds.processes import LocalConversation
from p4perf.testbeds.ssh.connection import ALIVE_S, Connection, Reply, exit_code, lost, new_mark, split_report
from p4perf.testbeds.ssh.workshop import refuse

_STEP = "conversing"


class RemoteConversation(LocalConversation):
    """Lines to and from a command, which runs in a session of its own on the node and ends when the input does.

    Args:
        connection: to the node.
        script: a script of this package that starts it.
        arguments: its arguments.
        command: the command, for messages.
    """

    patience_s = 10.0

    def __init__(
        self, connection: Connection, script: str, arguments: tuple[str, ...], command: tuple[str, ...]
    ) -> None:
        self._connection, self._mark, self._command = connection, new_mark(), command
        text = connection.command(_STEP, script, self._mark, *arguments)
        super().__init__(connection.opened().argv(text), Path("/"))

    def _ended(self, code: int | None, said: str) -> P4PerfError:
        """What the node tells of the end; if it tells nothing, the connection is lost."""
        words, report = split_report(said, self._mark)
        status = exit_code(report)
        if status is None:
            return lost(self._connection.node, _STEP, said)
        try:
            refuse(self._connection, _STEP, Reply(status, "", words, 0.0, report), self._command)
        except P4PerfError as error:
            return error
        return super()._ended(status, words)

    def _silent(self, timeout_s: float) -> P4PerfError:
        """A command that is silent is its own fault only if its node is there."""
        try:
            self._connection.call(_STEP, "exists.sh", "/", timeout_s=ALIVE_S)
        except TestbedError as error:
            return error
        return super()._silent(timeout_s)
