"""The environment that other people's packages run in: made on first use, in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = ("extrap==4.2.5", "pwlf==2.7.0", "ruptures==1.1.10")
NEEDED = (
    "contourpy==1.3.2",
    "cycler==0.12.1",
    "fonttools==4.58.4",
    "kiwisolver==1.4.8",
    "marshmallow==3.26.1",
    "matplotlib==3.10.3",
    "numpy==1.26.4",
    "packaging==25.0",
    "pillow==11.2.1",
    "pyparsing==3.2.3",
    "python-dateutil==2.9.0.post0",
    "scipy==1.15.3",
    "six==1.17.0",
    "tqdm==4.67.1",
)
"""What the peers import here; what only their graphical interfaces need is left out."""


def peer_python() -> Path:
    """The interpreter of the environment that has all peers; it is made first if it is not there or not the same.

    Raises:
        SystemExit: the packages cannot be installed.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "p4perf" / "bench-peers"
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join((sys.version, *PEERS, *NEEDED))
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing {', '.join(PEERS)} in {folder} (once)", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    install = (str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PEERS, *NEEDED)
    for command in ((sys.executable, "-m", "venv", str(folder)), install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no reason given")
            raise SystemExit(f"skipped: the peers cannot be installed: {reason}")
    stamp.write_text(wanted)
    return python
