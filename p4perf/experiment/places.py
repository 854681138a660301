"""Which of the places that a run knows a testbed is: runs go from one machine to several, and back."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from p4perf.testbeds.base import Testbed
from p4perf.testbeds.local import LocalTestbed

Place = Mapping[str, Any]
"""What a manifest notes of a place: ``address``, ``host``, and ``node`` where a node file names it."""

OWN = "name"
"""Key of the place of a run: what the cluster calls the device on which it was begun."""


def place_of(testbed: Testbed) -> dict[str, Any]:
    """What a run notes of the testbed on which it is begun."""
    host = {"host": socket.gethostname()} if isinstance(testbed, LocalTestbed) else {}
    return {**host, **testbed.record}


def same_place(one: Place, other: Place) -> bool:
    """Whether two places are the same testbed on the same machine. Node files may lie in different folders."""
    if not one.get("host") or one.get("host") != other.get("host"):
        return False
    kinds = [str(place.get("address", "")).partition(":")[0] for place in (one, other)]
    return kinds[0] == kinds[1] and one.get("node") == other.get("node")


def only_same(places: Mapping[str, Place], wanted: Place) -> str | None:
    """The name of the only place that is the same as that one; None if there is none, or if it cannot be told."""
    names = [name for name, place in places.items() if same_place(place, wanted)]
    return names[0] if len(names) == 1 else None


def tag_of(manifest: Mapping[str, Any], testbed: Testbed) -> str | None:
    """How trials on a testbed name it: the name that a cluster gave it, None if it is the run's own or unknown."""
    here = place_of(testbed)
    return None if same_place(manifest.get("place", {}), here) else only_same(manifest.get("places", {}), here)
