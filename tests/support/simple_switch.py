"""simple_switch of the behavioral-model: it gets the entries of a program, and packets one at a time.

Packets come through a pipe that it takes for a capture, and leave to one file for each port. A packet is done when all
threads of the switch sleep.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from p4perf.programs import ir
from p4perf.programs.reading.commands import entry_commands
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.v1model import ControlPlane

MISSING = next(
    (f"no {tool} on the PATH" for tool in ("simple_switch", "simple_switch_CLI") if not shutil.which(tool)), ""
)
"""Why it cannot be asked; empty if it can."""

FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
RECORD = struct.Struct("<IIII")
TIMEOUT_S = 60
POLLS = 3


class SimpleSwitch:
    """A running switch with one program, whose ports are those given."""

    def __init__(self, program: Path, folder: Path, ports: Sequence[int], commands: Sequence[str]) -> None:
        self._outputs = {port: folder / f"p{port}_out.pcap" for port in ports}
        self._read = dict.fromkeys(ports, len(FILE_HEADER))
        for port in ports:
            (folder / f"p{port}_in.pcap").write_bytes(FILE_HEADER)
        pipe = folder / f"p{ports[0]}_in.pcap"
        pipe.unlink()
        os.mkfifo(pipe)
        with socket.create_server(("127.0.0.1", 0)) as free:
            thrift = str(free.getsockname()[1])
        interfaces = [word for port in ports for word in ("-i", f"{port}@p{port}")]
        words = ["simple_switch", "--use-files", "0", *interfaces, "--thrift-port", thrift, str(program.absolute())]
        self._pipe = pipe.open("r+b", buffering=0)  # to write only would wait for a switch that has ended
        self._pipe.write(FILE_HEADER)
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
        try:
            self._await_server(int(thrift))
            if commands:
                self._configure(thrift, commands)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SimpleSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def _await_server(self, port: int) -> None:
        end = time.monotonic() + TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        raise RuntimeError("simple_switch does not start")

    def _configure(self, thrift: str, commands: Sequence[str]) -> None:
        text = "".join(f"{command}\n" for command in commands)
        words = ["simple_switch_CLI", "--thrift-port", thrift]
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        wrong = [line for line in done.stdout.splitlines() if "Error" in line or "Invalid" in line or "Unknown" in line]
        if wrong:
            raise RuntimeError(f"simple_switch_CLI: {wrong[0]}")

    def send(self, frame: bytes) -> list[tuple[int, bytes]]:
        """What leaves for a frame: port and bytes, by ascending port."""
        self._pipe.write(RECORD.pack(0, 0, len(frame), len(frame)) + frame)
        self._rest()
        return [(port, data) for port in sorted(self._outputs) for data in self._left(port)]

    def _rest(self) -> None:
        """Wait until all threads sleep and none has run meanwhile."""
        end = time.monotonic() + TIMEOUT_S
        last, same = "", 0
        while same < POLLS:
            if self._process.poll() is not None:
                raise RuntimeError(f"simple_switch ended with {self._process.returncode}")
            if time.monotonic() > end:
                raise TimeoutError("simple_switch does not come to rest")
            time.sleep(0.002)
            threads = [line.rpartition(")")[2].split() for line in self._threads()]
            now = "" if any(t[0] not in "SI" for t in threads) else repr([t[11:13] for t in threads])
            same = same + 1 if now and now == last else 0
            last = now

    def _threads(self) -> list[str]:
        return [path.read_text() for path in Path(f"/proc/{self._process.pid}/task").glob("*/stat")]

    def _left(self, port: int) -> Iterator[bytes]:
        data = self._outputs[port].read_bytes()
        while self._read[port] < len(data):
            begin = self._read[port] + RECORD.size
            self._read[port] = begin + RECORD.unpack_from(data, self._read[port])[2]
            yield data[begin : self._read[port]]


def commands(root: Tree, program: ir.Program, plane: ControlPlane, compiled: ir.Program) -> list[str]:
    """What simple_switch_CLI must be told of a program; ``compiled`` is that with the entries of the JSON only."""
    return [*plane.commands(), *entry_commands(root, program, compiled)]
