"""A fake of postools, the commands that scripts find on a node of pos."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from pos_state import Daemon, run_name

CONTEXT = json.loads(Path(os.environ["FAKE_POS_CONTEXT"]).read_text())
TEMPORARY = Path(os.environ["FAKE_POS_CONTEXT"]).parent


def number(options, name):
    """The name with that of the run, if it is asked for."""
    if not options.loop:
        return name
    if CONTEXT["run"] is None:
        sys.exit("there is no loop")
    return run_name(name, CONTEXT["run"], CONTEXT["total"])


def pos_get_variable(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("-g", "--from-global", action="store_true")
    parser.add_argument("-l", "--from-loop", action="store_true")
    parser.add_argument("-r", "--remote", action="store_true")
    options = parser.parse_args(words)
    known = json.loads((TEMPORARY / "pos_variables.json").read_text())
    kind = "global" if options.from_global else "local"
    value = (CONTEXT["loop"] or {}) if options.from_loop else known[kind]
    for part in options.key.split("/"):
        if not isinstance(value, dict) or part not in value:
            sys.exit(f"variable {options.key} unknown")
        value = value[part]
    print(value)


def pos_set_variable(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("key")
    parser.add_argument("value")
    parser.add_argument("-g", dest="as_global", action="store_true")
    options = parser.parse_args(words)
    path = TEMPORARY / "pos_variables.json"
    known = json.loads(path.read_text())
    known["global" if options.as_global else "local"][options.key] = options.value
    path.write_text(json.dumps(known))


def pos_sync(words):
    """A barrier: the n-th arrival of a node waits for the n-th of all others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", "--tag", default="default")
    parser.add_argument("-l", "--loop", action="store_true")
    parser.add_argument("role", nargs="?")
    options = parser.parse_args(words)
    daemon = Daemon(CONTEXT["state"])
    with daemon.state() as state:
        allocation = state["allocations"][CONTEXT["allocation"]]
        nodes = state.get("roles", {}).get(options.role, allocation["nodes"]) if options.role else allocation["nodes"]
    tag = f"{options.tag}.{CONTEXT['run']}" if options.loop else options.tag
    folder = daemon.folder / "sync" / CONTEXT["allocation"] / tag.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / CONTEXT["node"]).open("a") as mine:
        mine.write("here\n")
    arrivals = len((folder / CONTEXT["node"]).read_text().splitlines())
    deadline = time.monotonic() + daemon.config["sync_timeout_s"]
    while not all(
        (folder / node).exists() and len((folder / node).read_text().splitlines()) >= arrivals for node in nodes
    ):
        if time.monotonic() > deadline:
            sys.exit(f"pos_sync: not all nodes reached {options.tag}")
        time.sleep(0.05)


def pos_run(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--upload", action="store_true")
    parser.add_argument("name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    # ``pos_run NAME --loop -- COMMAND`` is how it is used: argparse leaves options behind the name to the command.
    while command and command[0] in ("--loop", "--upload", "--"):
        setattr(options, command[0].strip("-") or "ignored", True)
        command = command[1:]
    name, results = number(options, options.name), Path(CONTEXT["results"])
    (results / name).write_text(repr(command))
    with (results / f"{name}.stdout").open("w") as out, (results / f"{name}.stderr").open("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
    (TEMPORARY / f"{name}.pid").write_text(str(process.pid))
    process.returncode = 0  # it goes on without this one


def running(name):
    path = TEMPORARY / f"{name}.pid"
    if not path.exists():
        sys.exit(f"{name} is not running")
    return int(path.read_text())


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def pos_kill(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("name")
    options = parser.parse_args(words)
    os.kill(running(number(options, options.name)), signal.SIGTERM)


def pos_wait(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("-l", "--loop", action="store_true")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("name")
    options = parser.parse_args(words)
    pid, deadline = running(number(options, options.name)), time.monotonic() + options.timeout
    while not ended(pid):
        if time.monotonic() > deadline:
            sys.exit(f"{options.name} is still running")
        time.sleep(0.02)


def pos_upload(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("-l", "--loop", action="store_true")
    parser.add_argument("--outfile")
    parser.add_argument("-r", action="store_true")
    parser.add_argument("-f", action="store_true")
    options = parser.parse_args(words)
    source = Path(options.file)
    if not source.is_file():
        sys.exit(f"{source} does not exist")
    target = Path(CONTEXT["results"]) / number(options, options.outfile or source.name)
    if CONTEXT["full"]:
        target.write_bytes(source.read_bytes()[:10])
        sys.exit("OSError: [Errno 28] No space left on device")
    shutil.copy(source, target)


def nothing(words):
    """``pos_heartbeat``, ``pos_timesync`` and ``pos_download`` do nothing here."""


if __name__ == "__main__":
    known = {name: value for name, value in list(globals().items()) if name.startswith("pos_") and callable(value)}
    known.get(sys.argv[1], nothing)(sys.argv[2:])
