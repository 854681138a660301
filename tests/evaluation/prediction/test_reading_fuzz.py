"""Programs that were cut and changed at random: they are read or refused, never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from p4perf.errors import P4PerfError
from p4perf.evaluation.prediction.reading import read_program
from p4perf.models.program.paths import analyse
from p4perf.programs.reading.shares import read_shares

PROGRAMS = Path(__file__).parent / "programs"
STRANGE: tuple[Any, ...] = (None, -1, 0, 1 << 70, 1.5, "", "0x", "start", "ipv4", True, [], {}, [[]], ["ipv4", "ttl"])


def survives(path: Path) -> bool:
    """Whether a program is read; if it is not, it is refused in a sentence."""
    try:
        graph = read_program(path)
        analyse(graph, lambda node, _edge: float(len(node.constructs)))
    except P4PerfError as error:
        return not error.message
    return True


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with every key of it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in [(value, key), *places(inner)]]


@pytest.mark.parametrize("seed", range(4))
def test_changed_json(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text = (PROGRAMS / "router.json").read_text()
    path = tmp_path / "program.json"
    outcomes = set()
    for _ in range(40):
        document = json.loads(text)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            container, key = rng.choice(places(document))
            if rng.random() < 0.3:
                del container[key]
            elif rng.random() < 0.3:
                other, name = rng.choice(places(document))
                container[key] = json.loads(json.dumps(other[name]))
            else:
                container[key] = rng.choice(STRANGE)
        path.write_text(json.dumps(document))
        outcomes.add(survives(path))
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", ["router.json", "tunnel.spec"])
def test_cut_and_scrambled_text(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    text = (PROGRAMS / name).read_text()
    path = tmp_path / name
    assert survives(PROGRAMS / name)
    for _ in range(100):
        at = rng.randrange(len(text))
        changed = text[:at] if rng.random() < 0.3 else text[:at] + rng.choice('{}:,."0xé\n\t[]#;a ') + text[at + 1 :]
        path.write_text(changed)
        survives(path)


def test_lines_of_a_specification_in_disorder(tmp_path: Path) -> None:
    rng = random.Random(7)
    lines = (PROGRAMS / "tunnel.spec").read_text().splitlines()
    path = tmp_path / "program.spec"
    for _ in range(120):
        changed = list(lines)
        for _ in range(rng.choice([1, 1, 3])):
            a, b = rng.randrange(len(changed)), rng.randrange(len(changed))
            words = changed[a].split()
            if rng.random() < 0.4 and words:
                words.pop(rng.randrange(len(words)))
                changed[a] = " ".join(words)
            elif rng.random() < 0.5:
                changed[a], changed[b] = changed[b], changed[a]
            else:
                del changed[a]
        path.write_text("\n".join(changed))
        survives(path)


def test_scrambled_shares(tmp_path: Path) -> None:
    rng = random.Random(3)
    graph = read_program(PROGRAMS / "router.json")
    text = "tables:\n  routes: {hit: 0.5, actions: {next_hop: 1.0}}\nparser:\n  start: {0x800: 0.8}\n"
    path = tmp_path / "shares.yaml"
    refused: list[str] = []
    for _ in range(120):
        at = rng.randrange(len(text))
        path.write_text(text[:at] + rng.choice("{}:,.0a \n-") + text[at + rng.randrange(3) :])
        try:
            read_shares(path, graph).apply(graph)
        except P4PerfError as error:
            refused.append(error.message)
    assert all(refused)
