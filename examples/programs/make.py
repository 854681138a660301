#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what a program of this folder is measured with: entries, commands, a capture.

    python3 examples/programs/make.py nat -o work

writes, of ``nat/nat.yaml``,

* ``nat.entries``: the entries of all tables for ``p4perf measure nat.spec --entries``;
* ``nat.commands``: the same as commands of bmv2's ``simple_switch_CLI``;
* ``nat.pcap``: the packet of the main path.

``--json`` compiles the programs by p4c-bm2-ss and writes the JSON beside them. Only the standard library and PyYAML are
needed.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CONTROL = "MainControl"


def names() -> list[str]:
    """The programs of this folder."""
    return sorted(path.parent.name for path in HERE.glob("*/*.yaml") if path.stem == path.parent.name)


def load(name: str) -> dict[str, Any]:
    """The data of a program."""
    return dict(yaml.safe_load((HERE / name / f"{name}.yaml").read_text(encoding="utf-8")))


def rows(table: dict[str, Any], most: int | None = None) -> Iterator[tuple[list[str], str, dict[str, int]]]:
    """Matches, action and arguments of every entry: those that stand for themselves, then those that are counted.

    Args:
        table: a table of the data.
        most: at most so many that are counted.
    """
    for entry in table["entries"]:
        yield entry["match"], entry["action"], entry.get("arguments", {})
    if filler := table.get("filler"):
        given = filler.get("arguments", {})
        for number in range(filler["count"] if most is None else min(most, filler["count"])):
            match = [counted(text, number, key) for text, key in zip(filler["match"], table["keys"], strict=True)]
            arguments = {k: v if isinstance(v, int) else int(counted(v, number), 16) for k, v in given.items()}
            yield match, filler["action"], arguments


def counted(text: str, number: int, key: str = "") -> str:
    """A match or argument of entry ``number``: what stands before a ``+`` is counted up, by 1 or what stands behind it.

    A prefix is counted up by its last bit.
    """
    found = re.fullmatch(r"(0x[0-9a-f]+)\+(\d*)(.*)", text)
    if not found:
        return text
    kind, _, width = key.partition("/")
    step = 1 << (int(width) - int(found[3][1:])) if kind == "lpm" else int(found[2] or 1)
    return f"{int(found[1], 16) + number * step:#x}{found[3]}"


def swx_entries(data: dict[str, Any], most: int | None = None) -> str:
    """All entries in the format of DPDK's pipeline application, with a line for each table."""
    lines = []
    for name, table in data["tables"].items():
        lines.append(f"table {name}")
        for priority, (match, action, arguments) in enumerate(rows(table, most)):
            words = [swx_match(text, key) for text, key in zip(match, table["keys"], strict=True)]
            rank = ["priority", str(priority)] if has_priority(table) else []
            given = [word for key, value in arguments.items() for word in (key, f"{value:#x}")]
            lines.append(" ".join(["match", *words, *rank, "action", action, *given]))
    return "\n".join(lines) + "\n"


def swx_match(text: str, key: str) -> str:
    """A match as DPDK writes it: value, or value/mask."""
    kind, width = key.split("/")
    if kind == "lpm":
        value, _, prefix = text.partition("/")
        mask = ((1 << int(prefix)) - 1) << (int(width) - int(prefix))
        return f"{value}/0x{mask:0{int(width) // 4}x}"
    return text.replace("&&&", "/")


def bmv2_commands(data: dict[str, Any], most: int | None = None) -> str:
    """All entries as commands of simple_switch_CLI."""
    lines = []
    for name, table in data["tables"].items():
        for priority, (match, action, arguments) in enumerate(rows(table, most), 1):
            given = [f"{value:#x}" for value in arguments.values()]
            rank = [str(priority)] if has_priority(table) else []
            words = ["table_add", f"{CONTROL}.{name}", f"{CONTROL}.{action}", *match, "=>", *given, *rank]
            lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def has_priority(table: dict[str, Any]) -> bool:
    """Whether entries of a table have priorities: one of its keys is ternary."""
    return any(key.startswith("ternary") for key in table["keys"])


def outcome(data: dict[str, Any], dialect: str) -> tuple[int, bytes]:
    """Port and frame that come out, in a dialect: ``v1model`` or ``pna``."""
    known = {**data["outcome"], **data["outcome"].get(dialect, {})}
    return known["port"], bytes.fromhex(known["frame"])


def varied(data: dict[str, Any], number: int) -> bytes:
    """The packet with another number in the bytes that change from packet to packet."""
    offset, length, _ = (int(part) for part in data["vary"].split(":"))
    frame = bytearray.fromhex(data["frame"])
    frame[offset : offset + length] = number.to_bytes(length, "big")
    return bytes(frame)


def capture(data: dict[str, Any]) -> bytes:
    """The packet of the main path in the classic format of libpcap."""
    frame = bytes.fromhex(data["frame"])
    head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame


def bmv2_json(name: str, compiler: str = "p4c-bm2-ss") -> str:
    """The JSON that p4c-bm2-ss makes of a program, without paths of this machine, and with the compiler's version."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version\s+(\S+)", said)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "program.json"
        source = f"{name}/{name}.p4"
        subprocess.run([compiler, source, "-o", str(out)], cwd=HERE, capture_output=True, text=True, check=True)
        program = json.loads(out.read_text(encoding="utf-8"))
    program["program"] = source
    program["__meta__"]["compiler"] = f"p4c-bm2-ss {found[1] if found else 'unknown'}"
    return json.dumps(program, separators=(",", ":")) + "\n"


def write(name: str, folder: Path, most: int | None = None) -> None:
    """Write the files of a program into a folder."""
    data = load(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.entries").write_text(swx_entries(data, most), encoding="utf-8")
    (folder / f"{name}.commands").write_text(bmv2_commands(data, most), encoding="utf-8")
    (folder / f"{name}.pcap").write_bytes(capture(data))


def main() -> int:
    """Write what was asked for."""
    parser = argparse.ArgumentParser(description="Entries, commands and packet of example programs.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder for the files")
    parser.add_argument("--most", type=int, help="at most so many counted entries of a table")
    parser.add_argument("--json", action="store_true", help="compile to JSON of bmv2, beside the programs, instead")
    options = parser.parse_args()
    if unknown := set(options.programs) - set(names()):
        parser.error(f"no program {min(unknown)}; there are {', '.join(names())}")
    for name in options.programs or names():
        if options.json:
            (HERE / name / f"{name}.json").write_text(bmv2_json(name), encoding="utf-8")
        else:
            write(name, options.output, options.most)
    return 0


if __name__ == "__main__":
    sys.exit(main())
