"""What the fakes share: a state that lasts, and how they are to fail.

``behaviour.json`` may have:

* ``runtime``: ``down`` (nobody listens: refused), ``silent`` (waits for ever), ``incompatible`` (the service did not
  start because of the firmware that is loaded; its log says so);
* ``load``: ``busy`` (another load is in progress), ``fails`` (the firmware cannot be loaded), ``slow`` (for ever);
* ``print``: ``python2`` (long integers, unicode strings), ``damaged``;
* ``build``: ``fails``, ``dies``, ``empty`` (status 0 and no product), ``no-design``, ``slow``;
* ``metadata``: ``bare`` (the compiler puts no control before ``scalars``);
* ``model``, ``ports`` (list of numbers): of the card.
"""

import json
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIRST = {"loaded": None, "counters": {}, "rules": {}, "calls": []}


def behaviour(key, default=""):
    path = HERE / "behaviour.json"
    return json.loads(path.read_text()).get(key, default) if path.exists() else default


def state():
    path = HERE / "state.json"
    return {**FIRST, **(json.loads(path.read_text()) if path.exists() else {})}


def keep(new):
    temporary = HERE / ".state"
    temporary.write_text(json.dumps(new))
    temporary.replace(HERE / "state.json")


def called(tool, words):
    known = state()
    known["calls"].append([tool, *words])
    keep(known)


def wait_for_ever():
    while True:
        time.sleep(1)
