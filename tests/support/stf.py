"""Packet tests of p4c (STF): what they add to the tables of a program, send and expect."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from p4perf.programs import ir
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.reading.commands import RuntimeEntry
from p4perf.programs.reading.tree import Tree, match_name, parse_json
from p4perf.programs.reading.v1model import ControlPlane, read_v1model

_PAIR = re.compile(r"\s*([^:()\s,]+)\s*:\s*([^,()\s]+(?:\s*&&&\s*\S+)?)")
_ACTION = re.compile(r"([\w.$\[\]]+)\s*\(([^)]*)\)\s*$")


@dataclass
class PacketTest:
    plane: ControlPlane = field(default_factory=ControlPlane)
    packets: list[tuple[int, bytes]] = field(default_factory=list)
    expected: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    any_at: set[int] = field(default_factory=set)


def read(path: Path, root: Tree) -> PacketTest:
    found, nodes = PacketTest(), []
    for raw in path.read_text().splitlines():
        line = raw.split("#")[0].strip()
        word, _, rest = line.partition(" ")
        match word:
            case "packet":
                port, *data = rest.split()
                if data:  # no frame without bytes goes over a wire
                    found.packets.append((int(port), bytes.fromhex("".join(data))))
            case "expect":
                port, *data = rest.split()
                if data:
                    found.expected[int(port)].append("".join(data).lower())
                else:
                    found.any_at.add(int(port))
            case "add":
                _add(found.plane, rest, root)
            case "mirroring_add":
                session, port = rest.split()
                found.plane.sessions[int(session)] = int(port)
            case "mc_mgrp_create":
                found.plane.groups[int(rest)] = ()
            case "mc_node_create":
                number, *ports = map(int, rest.split())
                nodes.append(tuple((port, number) for port in ports))
            case "mc_node_associate":
                group, node = map(int, rest.split())
                found.plane.groups[group] += nodes[node]
            case "" | "wait":
                pass
            case _:
                raise ValueError(f"{word} is not known")
    return found


def _add(plane: ControlPlane, rest: str, root: Tree) -> None:
    name, rest = rest.split(maxsplit=1)
    tables = {t.text("name"): t for p in root.each("pipelines") for t in p.each("tables")}
    table = match_name(name, tables, "table", None)
    action = _ACTION.search(rest)
    words = rest[: action.start()].split()
    # p4c's runner turns the priorities of these files round: there, the larger one wins.
    priority = -int(words.pop(0)) if words[0].isdecimal() else 0
    given = dict(_PAIR.match(word).groups() for word in words)
    matches = [_match(key, _of(given, key.text("name")), root) for key in tables[table].each("key")]
    actions = {a.text("name"): a for a in root.each("actions")}
    called = match_name(action[1], [a.text() for a in tables[table].each("actions")], "action", None)
    values = {k: _number(v) for k, v in _PAIR.findall(action[2])}
    data = tuple(values[p.text("name")] for p in actions[called].each("runtime_data"))
    plane.tables.setdefault(table, []).append(RuntimeEntry(tuple(matches), called, data, priority))


def _of(given: dict[str, str], key: str) -> str:
    plain = re.sub(r"\[(\d+)\]", r"$\1", key)
    return next(v for k, v in given.items() if plain == k or plain.endswith(f".{k}") or k.endswith(f".{plain}"))


def _match(key: Tree, text: str, root: Tree) -> ir.Match:
    types = {t.text("name"): t for t in root.each("header_types")}
    header = next(h for h in root.each("headers") if h.text("name") == key.at("target").item(0).text())
    fields = types[header.text("header_type")].each("fields")
    name = key.at("target").item(1).text()
    bits = 1 if name == "$valid$" else next(f.item(1).whole() for f in fields if f.item(0).text() == name)
    ones = (1 << bits) - 1
    if "&&&" in text:
        value, mask = (int(part, 0) for part in text.split("&&&"))
        return ir.Match.masked(value, mask)
    if "/" in text:
        value, length = text.split("/")
        return ir.Match.masked(int(value, 0), ones >> bits - int(length) << bits - int(length))
    if "*" in text:
        digits = text.removeprefix("0x")
        return ir.Match.masked(
            int(digits.replace("*", "0"), 16), int("".join("0" if d == "*" else "f" for d in digits), 16) & ones
        )
    return ir.Match.masked(_number(text), ones)


def _number(text: str) -> int:
    return int(text, 0)


def differences(json_path: Path) -> list[str]:
    """What a program does otherwise than its packet test says."""
    root = parse_json(json_path.read_text(), str(json_path))
    test = read(json_path.with_suffix(".stf"), root)
    interpreter = Interpreter(read_v1model(root, test.plane))
    sent = defaultdict(list)
    for port, data in test.packets:
        for copy in interpreter.run(data, port).sent:
            sent[copy.port].append(copy)
    found = []
    for port in sorted({*sent, *test.expected} - test.any_at):
        if len(sent[port]) != len(test.expected[port]):
            found.append(f"port {port}: {len(sent[port])} packets for {len(test.expected[port])}")
        for got, wanted in zip(sent[port], test.expected[port], strict=False):
            digits = got.data.hex()
            exact = wanted.endswith("$")
            wanted = wanted.removesuffix("$")
            same = len(digits) == len(wanted) if exact else len(digits) >= len(wanted)
            if not same or any(w not in ("*", d) for w, d in zip(wanted, digits, strict=False)):
                found.append(f"port {port}: {digits} for {wanted}")
    return found
