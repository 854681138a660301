"""Frames built by hand, run through the program of one component."""

from __future__ import annotations

from typing import Any

from p4perf.programs.component import build_workload
from p4perf.programs.interpreter import Interpreter, PacketOutcome, unknown
from p4perf.programs.ir import Program, Workload
from p4perf.programs.packets import frame

ETHERNET = bytes.fromhex("02000000000202000000000188b5")
"""The Ethernet header that announces the headers of a component."""

OTHER = ETHERNET[:12] + b"\x08\x00"
"""One that announces something else: no header of a component follows."""


def workload_of(component: str, /, **parameters: Any) -> Workload:
    return build_workload([(component, parameters)], frame_size_bytes=1518)


def program_of(component: str, /, **parameters: Any) -> Program:
    return workload_of(component, **parameters).program


def through(component: str, headers: bytes, /, **parameters: Any) -> PacketOutcome:
    """What becomes of a packet with these bytes after Ethernet; random numbers are unknown."""
    return Interpreter(program_of(component, **parameters), given=unknown).run(ETHERNET + headers)


def sent(outcome: PacketOutcome) -> list[tuple[int, bytes]]:
    """Ports and the bytes after Ethernet, which must be there unchanged."""
    assert all(s.data[:14] == ETHERNET for s in outcome.sent)
    return [(s.port, s.data[14:]) for s in outcome.sent]


def generated(workload: Workload, drawn: int = 0) -> bytes:
    """The bytes after Ethernet of the packet that a load generator sends."""
    data = frame(workload.program, workload.packets, drawn)
    assert data[:14] == ETHERNET
    return data[14:]
