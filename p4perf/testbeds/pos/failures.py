"""What the command line of pos says when something is wrong, in one sentence with what to do about it."""

from __future__ import annotations

import re

from p4perf.testbeds.ssh.failures import printable

_KNOWN = (
    (
        "Nodes are already allocated",
        "it is allocated already",
        "pos allocations free NODE if the allocation is yours and not needed, or wait; free_before in the site file",
    ),
    (
        "no calendar event for node",
        "there is no entry in the calendar for it at this time",
        "make one with pos calendar create, and run again",
    ),
    (
        "Maximum number of future entries",
        "there are too many entries of this user in the calendar",
        "remove one of them (pos calendar)",
    ),
    (
        "neither allocation nor node|[Nn]o such node|[Uu]nknown node|[Nn]ode .* does not exist",
        "pos knows no such node",
        "see to nodes in the site file and to pos nodes list",
    ),
    ("[Ii]mage .*(not found|does not exist|unknown)|[Nn]o such image", "pos has no such image", "pos images list"),
    (
        "not (yet )?(bootstrapped|booted|reset)|has to be reset|needs (a )?reset",
        "it is not booted",
        "pos nodes reset NODE, and look at its console",
    ),
    (
        "Connection refused|Max retries exceeded|ConnectionError|Failed to establish a new connection",
        "the daemon of pos does not answer",
        "is this the management host? pos nodes list tells",
    ),
    (
        "No space left on device|Disk quota exceeded",
        "a disk is full",
        "make room on the node or on the management host",
    ),
)


def reason(said: str, otherwise: str) -> tuple[str, str | None]:
    """What is wrong, and a hint.

    Args:
        said: what pos said on stderr.
        otherwise: what is wrong if that is not known; the last line that pos said is added.
    """
    lines = [printable(line.strip()) for line in said.splitlines() if line.strip()]
    for pattern, what, hint in _KNOWN:
        if re.search(pattern, said):
            quoted = next((line for line in lines if re.search(pattern, line)), "")
            return f"{what} ({quoted})" if quoted else what, hint
    return f"{otherwise}: {lines[-1]}" if lines else otherwise, None
