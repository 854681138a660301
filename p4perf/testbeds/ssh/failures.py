"""What ssh and a node say when something is wrong, in one sentence with what to do about it."""

from __future__ import annotations

import re

RESUME = "p4perf resume goes on with a run once the node can be reached"

_KNOWN = (
    ("No space left on device|Disk quota exceeded", "its disk is full", "make room in work_folder"),
    ("taskset: ", "it cannot be held on its cores", "see to cores in the node file, and to taskset on the node"),
    (
        "Session open refused|session request failed",
        "it takes no more sessions in a connection",
        "set MaxSessions in its sshd_config to 10 or more",
    ),
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed",
        "its host key is not the one in known_hosts",
        "if it was installed anew, replace the key (ssh-keygen -R); if not, something stands between you and it",
    ),
    (
        "host key is known for|Host key verification failed",
        "its host key is not known",
        "get it with ssh-keyscan, compare its fingerprint with the node's own, and put it into known_hosts",
    ),
    (
        "UNPROTECTED PRIVATE KEY FILE",
        "ssh does not take the identity, because others may read it",
        "chmod 600 the file",
    ),
    (
        "invalid format|error in libcrypto|incorrect passphrase",
        "ssh cannot use the identity",
        "name a private key; one with a passphrase has to be in ssh-agent",
    ),
    (
        r"Permission denied \(|Too many authentication failures",
        "it does not let this user in with this key",
        "see to user and identity in the node file and to authorized_keys on the node; nothing is asked for",
    ),
    ("Could not resolve hostname", "there is no such host", "see to host in the node file"),
    ("Connection refused", "nothing listens on that port", "see to port in the node file; does sshd run there?"),
    ("No route to host|Network is unreachable", "there is no way to it in the network", "see to host, and to routes"),
    (
        "[Tt]imed out|Timeout, server .* not responding",
        "it does not answer",
        "is it up? see to host and port in the node file",
    ),
    (
        "kex_exchange_identification|banner|Connection closed by|Connection reset|Broken pipe|read from master failed",
        "the connection was closed",
        RESUME,
    ),
)


def reason(said: str, otherwise: str) -> tuple[str, str | None]:
    """What is wrong, and a hint.

    Args:
        said: what ssh said on stderr.
        otherwise: what is wrong if that is not known; the last line that ssh said is added.
    """
    for pattern, what, hint in _KNOWN:
        if re.search(pattern, said):
            return what, hint
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{otherwise}: {printable(lines[-1])}" if lines else otherwise, None


def printable(text: str) -> str:
    """A line of a node without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)[:300]
