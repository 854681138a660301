"""A node with an Agilio CX, made of the fakes in ``tests/fakes/netronome``."""

import json
import shutil
from pathlib import Path

from p4perf.targets.base import NodeFacts

FAKES = Path(__file__).parent.parent / "fakes" / "netronome"


class FakeCard:
    """Copies of the tools in a folder like that of the SDK, with a state of their own."""

    def __init__(self, folder):
        self.tools = folder / "p4" / "bin"
        shutil.copytree(FAKES, self.tools)

    def behave(self, **how):
        """How the tools fail from now on; see ``common.py``."""
        (self.tools / "behaviour.json").write_text(json.dumps(how))

    def facts(self, **changes):
        """What the probe tells of the node; a keyword sets a fact, None removes it."""
        known = {f"tool_{name}": str(self.tools / name) for name in ("nfp4build", "rtecli")}
        known |= {"nfp_model": "lithium", "nfp4build_checksum": "1-2", **changes}
        return NodeFacts({key: value for key, value in known.items() if value is not None})

    @property
    def state(self):
        """What the card and its runtime know."""
        path = self.tools / "state.json"
        return json.loads(path.read_text()) if path.exists() else {"calls": [], "loaded": None, "rules": {}}

    def calls(self, tool=None):
        """Commands that were run, oldest first: those of one tool without its name."""
        return [words if tool is None else words[1:] for words in self.state["calls"] if tool in (None, words[0])]
