#!/usr/bin/env python3
"""A fake of the command line of pos and of its daemon; nodes are folders of this machine, their tools postools.py.

What is known of the real one: verbs, options and messages from published experiment scripts and from notes of a user;
the tree of results from published ones (zero padding by the number of runs, one time of launch for all of them, outputs
as Python prints bytes, ``.status`` without line end). What an unknown verb or a wrong option says is that of argparse.
"""

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from pos_state import Daemon, alive, combinations, jsonb, run_name, stamp

TOOLS = (
    *("pos_get_variable", "pos_set_variable", "pos_sync", "pos_run", "pos_kill", "pos_wait", "pos_upload"),
    *("pos_download", "pos_heartbeat", "pos_timesync"),
)


class Refused(Exception):  # noqa: N818 - it is no error of the fake
    """What pos says on stderr before it ends with 1."""


def allocate(daemon, options):
    with daemon.state() as state:
        for node in options.nodes:
            if node not in daemon.config["nodes"]:
                raise Refused(f"Node {node} does not exist")
            if daemon.allocation_of(state, node) is not None:
                raise Refused(f"Nodes are already allocated: {node}")
        if not daemon.config["calendar"] or state.get("calendar_used_up"):
            raise Refused("You have no calendar event for nodes")
        now = stamp()
        user = daemon.config["user"]
        name = f"{user}_{now[2:].replace('-', '').replace('_', '_', 1)}"
        folder = f"{user}/{options.result_folder or 'default'}/{now}"
        state["allocations"][name] = allocation = {
            "id": name,
            "created": now,
            "owner": user,
            "result_folder": folder,
            "nodes": options.nodes,
            "duration": options.duration,
            "variables": {"loop": {}, "global": {}} | {node: {} for node in options.nodes},
            "bootparameters": {},
            "token": "s3cr3t-t0k3n",
            "commands": {},
        }
        for node in options.nodes:
            state["nodes"].pop(node, None)
        daemon.note(allocation)
        for node in options.nodes:
            (daemon.results / folder / node).mkdir()
            inventory = {"name": node, "image": None}
            (daemon.results / folder / "config" / f"{node}.json").write_text(json.dumps(inventory))
    print(f"Allocation ID: {name}")
    print(f"Results in {daemon.results / folder}")


def free(daemon, options):
    with daemon.state() as state:
        allocation = daemon.allocation_of(state, options.what)
        if allocation is None:
            raise Refused("Resource is neither allocation nor node")
        for command in allocation["commands"].values():
            with contextlib.suppress(ProcessLookupError):
                if command["status"] is None and command["pid"]:
                    os.killpg(command["pid"], signal.SIGKILL)
        del state["allocations"][allocation["id"]]
        # One entry in the calendar holds for all that is allocated within it, until it is given back.
        state["calendar_used_up"] = daemon.config["calendar"] == "one entry" and not options.k
        state["log"].append(f"freed {allocation['id']}{' -k' if options.k else ''}")


def set_variables(daemon, options):
    sys.path.append(daemon.config["packages"])  # started without them: that is faster
    import yaml

    text = Path(options.file).read_text()
    values = json.loads(text) if getattr(options, "e", "yml") == "json" else yaml.safe_load(text)
    if not isinstance(values, dict):
        raise Refused(f"{options.file}: no mapping of variables")
    with daemon.state() as state:
        allocation = daemon.allocation_of(state, options.what)
        if allocation is None:
            raise Refused("Resource is neither allocation nor node")
        kind = "global" if options.as_global else "loop" if options.as_loop else options.what
        allocation["variables"].setdefault(kind, {}).update(values)
        daemon.note(allocation)


def show(daemon, options):
    with daemon.state() as state:
        allocation = daemon.allocation_of(state, options.what)
    if allocation is None:
        raise Refused("Resource is neither allocation nor node")
    print(json.dumps({key: jsonb(value) for key, value in allocation.items() if key != "commands"}))


def list_allocations(daemon, options):
    with daemon.state() as state:
        for allocation in state["allocations"].values():
            print(allocation["id"], *allocation["nodes"])


def owned(daemon, state, node):
    allocation = daemon.allocation_of(state, node)
    if allocation is None or node not in allocation["nodes"]:
        raise Refused(f"Node {node} is not allocated")
    return allocation


def image(daemon, options):
    with daemon.state() as state:
        allocation = owned(daemon, state, options.node)
        state["nodes"].setdefault(options.node, {})["image"] = options.image
        path = daemon.results / allocation["result_folder"] / "config" / f"{options.node}.json"
        path.write_text(json.dumps({"name": options.node, "image": f"default/{options.image}"}))


def bootparameter(daemon, options):
    with daemon.state() as state:
        allocation = owned(daemon, state, options.node)
        allocation["bootparameters"][options.node] = options.parameters
        daemon.note(allocation)


def reset(daemon, options):
    """Boot the node: its disk is new, and it keeps the variables that it has now."""
    with daemon.state() as state:
        allocation = owned(daemon, state, options.node)
        if "image" not in state["nodes"].get(options.node, {}):
            raise Refused(f"Node {options.node} has no image")
        state["nodes"][options.node]["booted"] = True
        folder = daemon.node_folder(options.node)
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        (folder / "bin").mkdir()
        variables = {"global": allocation["variables"]["global"], "local": allocation["variables"][options.node]}
        (folder / "tmp" / "pos_variables.json").write_text(json.dumps(variables))
        for tool in TOOLS:
            script = folder / "bin" / tool
            script.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" -S -E "{Path(__file__).parent}/postools.py" {tool} "$@"\n'
            )
            script.chmod(0o755)
        results = daemon.results / allocation["result_folder"] / options.node
        for name in ("bootstrap", "bootstrap.stdout", "bootstrap.stderr"):
            (results / name).write_text("")


def booted(daemon, state, node):
    allocation = owned(daemon, state, node)
    if not state["nodes"].get(node, {}).get("booted"):
        raise Refused(f"Node {node} is not bootstrapped")
    return allocation


def copy(daemon, options):
    """As scp does: into a folder that is there, or to a new name."""
    with daemon.state() as state:
        booted(daemon, state, options.node)
    source, dest = Path(options.source), Path(options.dest)
    if source.is_dir() and not options.recursive:
        raise Refused(f"{source} is a directory (not copied)")
    target = dest / source.name if dest.is_dir() else dest
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def launch(daemon, options):
    if not options.infile:
        raise Refused("this fake launches scripts only")
    text = Path(options.infile).read_text()
    if not text.startswith("#!"):
        raise Refused("Exec format error")
    with daemon.state() as state:
        allocation = booted(daemon, state, options.node)
        name = options.name or "unknown"
        command = f"{stamp()}_{name}"
        runs = combinations(allocation["variables"]["loop"]) if options.loop else None
        allocation["commands"][command] = {
            "node": options.node,
            "script": text,
            "runs": runs,
            "status": None,
            "pid": None,
            "stdout": "",
            "first_loop": options.loop and not state.get("looped"),
        }
        state["looped"] = state.get("looped", False) or options.loop
        allocation_name = allocation["id"]
    words = [sys.executable, "-S", "-E", __file__, "--state", str(daemon.folder), "execute", allocation_name, command]
    process = subprocess.Popen(
        words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with daemon.state() as state:
        entry = state["allocations"].get(allocation_name, {}).get("commands", {}).get(command)
        if entry is not None:
            entry["pid"] = process.pid
    process.returncode = 0  # it goes on without this one
    if options.queued:
        print(command)
    else:
        wait(daemon, command)


def execute(daemon, options):
    """What the daemon and the node do with a launched command: one after the other, run by run."""
    with daemon.state() as state:
        allocation = state["allocations"][options.allocation]
        entry = allocation["commands"][options.command]
    node, folder = entry["node"], daemon.node_folder(entry["node"])
    results = daemon.results / allocation["result_folder"] / node
    ended, printed = "finished", b""
    first = daemon.config["always"] or entry.get("first_loop", False)
    lost, silent, full = (daemon.config[key] if first else [] for key in ("lost_runs", "silent_runs", "full_runs"))
    with (folder / "queue").open("w") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        runs = entry["runs"] if entry["runs"] is not None else [None]
        for number, values in enumerate(runs):
            stem = options.command
            if values is not None:
                stem = run_name(stem, number, len(runs))
                if number in lost:
                    continue
                said = repr(values) if daemon.config["python_loops"] else json.dumps(values)
                (results / f"{stem}.loop").write_text(said)
            (results / f"{stem}.file").write_text(entry["script"])
            context = {
                "state": str(daemon.folder),
                "allocation": options.allocation,
                "node": node,
                "results": str(results),
                "loop": values,
                "run": None if values is None else number,
                "total": len(runs),
                "full": values is not None and number in full,
            }
            code, out, err = on_node(folder, entry["script"], context)
            if values is not None and number in silent:
                continue
            keep = (lambda data: data.decode()) if daemon.config["raw_output"] else repr
            (results / f"{stem}.stdout").write_text(keep(out))
            (results / f"{stem}.stderr").write_text(keep(err))
            (results / f"{stem}.status").write_text("finished" if code == 0 else "error")
            ended, printed = ("error" if code else ended), out
    with daemon.state() as state:
        entry = state["allocations"].get(options.allocation, {}).get("commands", {}).get(options.command)
        if entry is not None:
            entry["status"], entry["stdout"] = ended, printed.decode(errors="replace")


def on_node(folder, script, context):
    """Run a script of a launch in the temporary folder of its node."""
    temporary = folder / "tmp"
    (temporary / "context.json").write_text(json.dumps(context))
    path = temporary / "launched"
    path.write_text(script)
    path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    environment["FAKE_POS_CONTEXT"] = str(temporary / "context.json")
    done = subprocess.run([str(path)], cwd=temporary, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def wait(daemon, command):
    while True:
        with daemon.state() as state:
            found = [a["commands"][command] for a in state["allocations"].values() if command in a["commands"]]
        if not found:
            raise Refused(f"Command {command} does not exist")
        if found[0]["status"] is not None or (found[0]["pid"] and not alive(found[0]["pid"])):
            return found[0]
        time.sleep(0.05)


def await_(daemon, options):
    entry = wait(daemon, options.command)
    if options.verbose:
        code = 0 if entry["status"] == "finished" else 1
        said = {"status": entry["status"], "exit_status": code, "queued": True, "type": "execfile"}
        print(json.dumps(said | {"owner": daemon.config["user"], "node": entry["node"]}))
    else:
        sys.stdout.write(entry["stdout"])


def parser(generation):
    main = argparse.ArgumentParser(prog="pos")
    main.add_argument("--state", required=True)
    groups = main.add_subparsers(required=True)

    def verb(group, name, function, *arguments):
        new = group.add_parser(name)
        new.set_defaults(function=function, verb=name)
        for words, options in arguments:
            new.add_argument(*words, **options)

    def argument(*words, **options):
        return words, options

    def group(name):
        return groups.add_parser(name).add_subparsers(required=True)

    flag = {"action": "store_true"}
    allocations, nodes, commands = group("allocations"), group("nodes"), group("commands")
    verb(
        allocations,
        "allocate",
        allocate,
        argument("nodes", nargs="+"),
        argument("--result-folder"),
        argument("--duration", type=int),
    )
    verb(
        allocations,
        "free",
        free,
        argument("what"),
        argument("-f", **flag),
        argument("-k", **flag),
        argument("-s", **flag),
    )
    verb(allocations, "show", show, argument("what"))
    verb(allocations, "list", list_allocations)
    if generation == "new":
        verb(
            allocations,
            "set_variables",
            set_variables,
            argument("-e", choices=["yml", "json"], default="yml"),
            argument("-g", dest="as_global", **flag),
            argument("-l", dest="as_loop", **flag),
            argument("-p", **flag),
            argument("what"),
            argument("file"),
        )
    else:
        verb(
            allocations,
            "variables",
            set_variables,
            argument("what"),
            argument("file"),
            argument("--as-global", **flag),
            argument("--as-loop", **flag),
        )
    verb(nodes, "image", image, argument("node"), argument("image"))
    verb(nodes, "bootparameter", bootparameter, argument("node"), argument("parameters", nargs="+"))
    verb(nodes, "reset", reset, argument("node"), argument("--non-blocking", **flag))
    verb(
        nodes,
        "copy",
        copy,
        argument("node"),
        argument("source"),
        argument("--dest", default="/tmp"),
        argument("--recursive", **flag),
    )
    verb(
        commands,
        "launch",
        launch,
        argument("--infile"),
        argument("--name"),
        argument("--blocking", **flag),
        argument("--non-blocking", **flag),
        argument("--queued", **flag),
        argument("--loop", **flag),
        argument("-v", **flag),
        argument("node"),
    )
    verb(commands, "await", await_, argument("command"), argument("--verbose"))
    hidden = groups.add_parser("execute")
    hidden.add_argument("allocation")
    hidden.add_argument("command")
    hidden.set_defaults(function=execute, verb="execute")
    return main


def main():
    state = sys.argv[sys.argv.index("--state") + 1]
    daemon = Daemon(state)
    options = parser(daemon.config["generation"]).parse_args()
    if options.verb != "execute":
        with daemon.state() as content:
            content["log"].append(" ".join(sys.argv[3:]))
        if daemon.config["hang"] == options.verb:
            time.sleep(600)
        if (said := daemon.config["fail"].get(options.verb)) is not None:
            raise Refused(said)
    options.function(daemon, options)


if __name__ == "__main__":
    try:
        main()
    except Refused as refusal:
        sys.exit(str(refusal))
