"""Nodes for tests: an sshd on loopback for each, with keys, a port and a work folder of its own.

Nothing of the system is changed. As root, sshd wants a user and a folder in /run: it gets them in its own namespace.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

UNPACKED = Path(__file__).parents[2] / "build" / "sshd"
"""Where ``tools/fetch-sshd.sh`` puts the server of a machine that has none."""
SSHD = next((path for path in (Path("/usr/sbin/sshd"), UNPACKED / "usr/sbin/sshd") if path.exists()), None)
LONG_S = 30.0
USER = pwd.getpwuid(os.geteuid()).pw_name


def why_not():
    """Why no sshd can be started here; None if one can."""
    if SSHD is None:
        return "there is no sshd (sh tools/fetch-sshd.sh build/sshd unpacks one)"
    if (
        os.geteuid() == 0
        and subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode
    ):
        return "no right to make a mount namespace, which sshd needs as root"
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        return "ssh is not installed (Debian: openssh-client)"
    return None


def wait_until(condition, seconds=LONG_S, what="it"):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} never happened"
        time.sleep(0.02)
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def key(path):
    """A new key pair without a passphrase."""
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@dataclass
class Sshd:
    """A node. ``settings`` are further lines of its configuration."""

    folder: Path
    name: str = "dut"
    settings: tuple[str, ...] = ()
    process: subprocess.Popen | None = field(default=None, init=False)

    def __post_init__(self):
        self.port = free_port()
        self.work = self.folder / "work"
        self.host_key = key(self.folder / "host_key")
        self.identity = key(self.folder / "identity")
        self.known_hosts = self.folder / "known_hosts"
        self.know(self.host_key)

    def know(self, host_key):
        """Let clients know this key of the host."""
        public = host_key.with_suffix(".pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}")

    def start(self):
        shutil.copy(self.identity.with_suffix(".pub"), self.folder / "authorized_keys")
        lines = [
            *(f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {self.host_key}", "PidFile none"),
            *("UsePAM no", "StrictModes no", "PermitRootLogin prohibit-password", "PasswordAuthentication no"),
            *("KbdInteractiveAuthentication no", f"AuthorizedKeysFile {self.folder / 'authorized_keys'}"),
            *self.settings,
        ]
        config = self.folder / "sshd_config"
        config.write_text("\n".join(lines) + "\n")
        self.log = self.folder / "sshd.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._placed(), str(SSHD), "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, UNPACKED.glob("**/*-linux-gnu")))},
            )  # fmt: skip
        wait_until(self.answers, what="the start of sshd")
        return self

    def _placed(self):
        """A command that runs sshd where root has what it wants: a folder in /run, and a user without rights."""
        if os.geteuid() != 0:
            return []
        users = self.folder / "passwd"
        known = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("sshd:")]
        users.write_text("\n".join([*known, "sshd:x:65534:65534::/run/sshd:/usr/sbin/nologin"]) + "\n")
        script = 'mount --bind "$0" /etc/passwd && mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, str(users)]

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connected:
            return connected.recv(4) == b"SSH-"
        return False

    def connections(self):
        """The processes of sshd that serve a connection, those with the rights of the user last."""
        found, parents = [], [self.process.pid]
        while parents:
            children = [int(c) for p in parents for c in self._of_process(p, f"task/{p}/children").split()]
            parents = [p for p in children if self._of_process(p, "comm").strip() == "sshd"]
            found += parents
        return found

    @staticmethod
    def _of_process(pid, name):
        """A file of a process, empty if the process has ended."""
        try:
            return Path(f"/proc/{pid}/{name}").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""

    def cut(self, number=signal.SIGKILL):
        """End all connections, as a node that loses its power does."""
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self):
        if self.process is not None:
            self.cut()
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self):
        self.stop()
        return self.start()

    def entry(self, **changes):
        """The node in a node file."""
        content = {
            "host": "127.0.0.1",
            "user": USER,
            "port": self.port,
            "identity": str(self.identity),
            "known_hosts": str(self.known_hosts),
            "work_folder": str(self.work),
            "connect_timeout_s": 5,
            **changes,
        }
        lines = [f"    {name}: {value}\n" for name, value in content.items() if value is not None]
        return f"  {self.name}:\n{''.join(lines)}"

    def node_file(self, path=None, **changes):
        """A node file with this node alone."""
        path = path or self.folder / "nodes.yaml"
        path.write_text(f"nodes:\n{self.entry(**changes)}")
        return path
