"""The example programs, and simple_switch run on one packet from a file."""

import importlib.util
import json
import struct
import subprocess
import time
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "programs"


def tool() -> ModuleType:
    """``examples/programs/make.py`` as a module."""
    spec = importlib.util.spec_from_file_location("example_programs", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PORTS = 8


def with_entries(program: dict[str, Any], data: dict[str, Any], rows: Any) -> dict[str, Any]:
    """A program of bmv2 with the entries in its tables, so that nobody has to add them."""
    tables = {t["name"].rpartition(".")[2]: t for p in program["pipelines"] for t in p["tables"]}
    for name, table in data["tables"].items():
        known = dict(zip(tables[name]["actions"], tables[name]["action_ids"], strict=True))
        entries = []
        for priority, (match, action, arguments) in enumerate(rows(table), 1):
            key = [_key(text, kind) for text, kind in zip(match, table["keys"], strict=True)]
            chosen = {"action_id": known[f"MainControl.{action}"], "action_data": [hex(v) for v in arguments.values()]}
            entries.append({"match_key": key, "action_entry": chosen, "priority": priority})
        tables[name]["entries"] = entries
    return program


def _key(text: str, key: str) -> dict[str, Any]:
    kind, width = key.split("/")

    def number(value: str) -> str:
        return f"0x{int(value, 16):0{(int(width) + 7) // 8 * 2}x}"

    if kind == "lpm":
        value, _, prefix = text.partition("/")
        return {"match_type": "lpm", "key": number(value), "prefix_length": int(prefix)}
    if kind == "ternary":
        value, _, mask = text.partition("&&&")
        return {"match_type": "ternary", "key": number(value), "mask": number(mask)}
    return {"match_type": "exact", "key": number(text)}


def frames_of(path: Path) -> list[bytes]:
    """Frames of a capture, those that are complete."""
    data = path.read_bytes() if path.exists() else b""
    found, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from("=I", data, at + 8)[0]
        if at + 16 + length > len(data):
            break
        found.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return found


def run_switch(
    switch: str, program: dict[str, Any], capture: bytes, folder: Path, timeout_s: float
) -> dict[int, bytes]:
    """Frames that leave simple_switch by port, when one comes in at port 0."""
    (folder / "program.json").write_text(json.dumps(program))
    empty = capture[:24]
    interfaces = []
    for port in range(PORTS):
        (folder / f"p{port}_in.pcap").write_bytes(empty if port else capture)
        interfaces += ["-i", f"{port}@{folder}/p{port}"]
    command = [switch, "--use-files", "0", "--log-level", "off", "--thrift-port", "0"]
    command += ["--notifications-addr", f"ipc://{folder}/n.ipc", *interfaces, str(folder / "program.json")]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline and process.poll() is None:
            sent = {port: frames[0] for port in range(PORTS) if (frames := frames_of(folder / f"p{port}_out.pcap"))}
            if sent:
                return sent
            time.sleep(0.02)
    finally:
        process.kill()
        said = process.communicate()[0]
    raise AssertionError(f"nothing came out: {said.decode(errors='replace')[-500:]}")
