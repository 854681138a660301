"""The daemon of the fake pos: a folder with its state, and the result trees that it writes.

It follows what is known of pos from published result folders (2020), from the scripts of its users, and from notes of
one of them (2026): see the docstring of ``pos.py``.
"""

import contextlib
import datetime
import fcntl
import itertools
import json
import os
from pathlib import Path

DEFAULTS = {
    "generation": "new",
    "user": "alice",
    "nodes": ["cesis", "nida"],
    "calendar": True,
    "sync_timeout_s": 20.0,
    "python_loops": False,
    "raw_output": False,
    "hang": "",
    "fail": {},
    "lost_runs": [],
    "silent_runs": [],
    "full_runs": [],
    "always": False,
    "packages": "",
}
"""What a test may set.

``calendar``: whether there is an entry, or ``one entry``; ``hang``: a verb that never ends; ``fail``: what verbs say
before they fail; ``python_loops``, ``raw_output``: how files are written. Of the first loop of a state, or of all with
``always``: ``lost_runs`` leave nothing, ``silent_runs`` leave no status, in ``full_runs`` the disk is full.
"""


class Daemon:
    """The state in a folder, changed by one process at a time."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.results = self.folder / "results"
        self.config = DEFAULTS | json.loads((self.folder / "config.json").read_text())

    @contextlib.contextmanager
    def state(self):
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.folder / "state.json"
            content = json.loads(path.read_text()) if path.exists() else {"allocations": {}, "nodes": {}, "log": []}
            before = json.dumps(content)
            yield content
            if json.dumps(content) != before:
                path.with_suffix(".part").write_text(json.dumps(content, indent=1))
                path.with_suffix(".part").replace(path)

    def node_folder(self, node):
        return self.folder / "nodes" / node

    def allocation_of(self, state, name):
        """The allocation of that name, or the one that a node belongs to."""
        if name in state["allocations"]:
            return state["allocations"][name]
        for allocation in state["allocations"].values():
            if name in allocation["nodes"]:
                return allocation
        return None

    def note(self, allocation):
        """``config/allocation.json``, with the token that nobody may publish."""
        folder = self.results / allocation["result_folder"] / "config"
        folder.mkdir(parents=True, exist_ok=True)
        known = ("id", "created", "owner", "result_folder", "variables", "bootparameters", "token", "nodes")
        content = {key: jsonb(allocation[key]) for key in known}
        (folder / "allocation.json").write_text(json.dumps(content))


def jsonb(value):
    """A value as a jsonb column gives it back: keys by length, then by alphabet."""
    if isinstance(value, dict):
        return {key: jsonb(value[key]) for key in sorted(value, key=lambda k: (len(k), k))}
    return value


def combinations(loop):
    """The runs of a loop: the last key varies fastest."""
    loop = jsonb(loop)
    lists = [values if isinstance(values, list) else [values] for values in loop.values()]
    return [dict(zip(loop, values, strict=True)) for values in itertools.product(*lists)]


def stamp():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d_%H-%M-%S_%f")


def run_name(name, number, total):
    """``throughput.log`` becomes ``throughput_run07.log``: as many digits as the number of runs has."""
    path = Path(name)
    return f"{path.stem}_run{number:0{len(str(total))}}{path.suffix}"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
