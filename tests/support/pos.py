"""A pos testbed for tests: the fake of tests/fakes, with a state of its own and a site file."""

import json
import shlex
import sys
from pathlib import Path

import yaml

from p4perf.testbeds.local import LocalTestbed

FAKES = Path(__file__).parents[1] / "fakes"


class FakePos:
    """The command line, the daemon and two nodes of pos, in a folder.

    ``more_facts`` is what a known site says of its node besides what this machine is.
    """

    def __init__(self, folder, **config):
        self.folder, self.more_facts = folder, {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure(**config)

    def configure(self, **config):
        packages = str(Path(yaml.__file__).parents[1])
        (self.folder / "config.json").write_text(json.dumps({"packages": packages, **config}))

    @property
    def cli(self):
        return [sys.executable, "-S", "-E", str(FAKES / "pos.py"), "--state", str(self.folder)]

    def disk(self, node):
        """Folder of a node that p4perf may have."""
        return str(self.folder / "nodes" / node / "disk" / "p4perf")

    def site(self, *, node=None, generator=None, **keys):
        """A site file with one device under test and one load generator."""
        content = {
            "nodes": {
                "cesis": {"image": "debian-bookworm", "folder": self.disk("cesis"), **(node or {})},
                "nida": {"image": "debian-bookworm", "roles": ["loadgen"], **(generator or {})},
            },
            "cli": self.cli,
            "results_root": str(self.folder / "results"),
            **keys,
        }
        path = self.folder / "site.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    def known_site(self):
        """A site file with the facts of the node, which is this machine: nothing is allocated to ask for them."""
        facts = {**LocalTestbed().facts().values, **self.more_facts}
        (self.folder / "facts.txt").write_text("".join(f"{key}={value}\n" for key, value in facts.items()))
        return self.site(facts="facts.txt")

    def loaded_site(self, moongen, **node):
        """A known site whose load generator is a MoonGen."""
        self.known_site()
        generator = {"load_generator": "moongen", "tools": {"moongen": str(moongen)}, "folder": self.disk("nida")}
        generator["interfaces"] = {"tx": "0000:04:00.0", "rx": "0000:04:00.1"}
        return self.site(facts="facts.txt", node=node, generator=generator)

    def shim(self):
        """A folder with a command ``pos``, for scripts."""
        folder = self.folder / "path"
        folder.mkdir(exist_ok=True)
        (folder / "pos").write_text(f'#!/bin/sh\nexec {shlex.join(self.cli)} "$@"\n')
        (folder / "pos").chmod(0o755)
        return folder

    @property
    def state(self):
        return json.loads((self.folder / "state.json").read_text())

    @property
    def log(self):
        """Commands that were given, and what was freed."""
        return self.state["log"] if (self.folder / "state.json").exists() else []

    @property
    def freed(self):
        """Whether something was allocated, and nothing is any more."""
        return not self.state["allocations"] and any(line.startswith("freed") for line in self.log)

    @property
    def trees(self):
        return sorted(path.parent.parent for path in self.folder.glob("results/**/config/allocation.json"))
