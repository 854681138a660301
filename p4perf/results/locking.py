"""One writer at a time: an advisory lock that the kernel releases when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from p4perf.errors import StorageError
from p4perf.results.files import storing


@contextlib.contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file ``path`` for the body; ``what`` names the locked thing in the message.

    The file stays where it is (removing it would let two processes lock two files of the same name); only its text,
    the holder, comes and goes. The lock is not re-entrant. A child made by ``fork`` without ``exec`` inherits it.

    Raises:
        StorageError: somebody holds the lock (the message names the process), or the file cannot be written.
    """
    with storing(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            raise StorageError(
                f"{what} is being written by {holder}", hint="wait until it has finished, or stop it"
            ) from error
        except OSError as error:
            raise StorageError(
                f"cannot lock {path}: {error.strerror}", hint="choose an output folder on a local disk"
            ) from error
        with storing(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)
