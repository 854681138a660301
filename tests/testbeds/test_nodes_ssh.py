"""Node files: strict, with the place of every mistake, and nothing in them that a shell or ssh would obey."""

import pytest

from p4perf.errors import DataError, ExitCode, TestbedError, UsageError
from p4perf.experiment import open_testbed
from p4perf.testbeds.nodes import read_node
from p4perf.testbeds.ssh.connection import WATCH, Connection, _first_argv

WHOLE = """\
nodes:
  dut:
    host: 10.0.0.2
    user: p4
    port: 2222
    identity: keys/lab
    known_hosts: known_hosts
    roles: [dut]
    cores: [2, 3]
    interfaces: {left: 0000:03:00.0, right: "0000:03:00.1"}
    work_folder: ~/p4perf/
    connect_timeout_s: 3
  generator: {host: lab-2, roles: [loadgen]}
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "lab").write_text("")
    (tmp_path / "known_hosts").write_text("")

    def file(text=WHOLE):
        path = tmp_path / "nodes.yaml"
        path.write_text(text)
        return path

    return file


def test_every_key(file, tmp_path):
    node = read_node(file(), None)
    assert (node.name, node.spec.host, node.spec.user, node.spec.port) == ("dut", "10.0.0.2", "p4", 2222)
    spec = node.spec
    assert (spec.identity, spec.known_hosts) == (str(tmp_path / "keys" / "lab"), str(tmp_path / "known_hosts"))
    assert (spec.roles, spec.cores, spec.work_folder) == (("dut",), (2, 3), "~/p4perf")
    assert spec.interfaces == {"left": "0000:03:00.0", "right": "0000:03:00.1"}


def test_defaults(file):
    node = read_node(file("nodes: {a: {host: lab}}"), None).spec
    assert (node.user, node.port, node.identity, node.known_hosts, node.cores) == (None, None, None, None, ())
    assert node.roles == ("dut", "loadgen")
    assert node.work_folder == "~/.cache/p4perf"


def test_which_node(file):
    assert read_node(file(), "generator").name == "generator"
    two = file("nodes: {a: {host: x}, b: {host: y}}")
    with pytest.raises(UsageError, match="2 nodes with the role dut") as caught:
        read_node(two, None)
    assert caught.value.hint.endswith(":a")
    with pytest.raises(UsageError, match="has no node c"):
        read_node(two, "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: {}", "at least 1"),
        ("nodes: {a: {}}", "'host' is missing"),
        ("node: {a: {host: x}}", "unknown key 'node'"),
        ("nodes: {a: {host: x, passwort: y}}", "unknown key 'passwort'"),
        ("nodes: {a: {host: x, port: '22'}}", "expected a whole number"),
        ("nodes: {a: {host: x, port: 0}}", "at least 1"),
        ("nodes: {a: {host: x, port: true}}", "expected a whole number"),
        ("nodes: {a: {host: x, roles: [router]}}", "not one of dut, loadgen"),
        ("nodes: {a: {host: x, cores: [-1]}}", "at least 0"),
        ("nodes: {a: {host: x, interfaces: {left: eth0}}}", "does not match the pattern"),
        ("nodes: {a: {host: '-oProxyCommand=reboot'}}", "does not match the pattern"),
        ("nodes: {a: {host: 'x; reboot'}}", "does not match the pattern"),
        ("nodes: {a: {host: 'user@x'}}", "does not match the pattern"),
        ("nodes: {a: {host: x, user: '-l'}}", "does not match the pattern"),
        ("nodes: {a: {host: x, user: 'a b'}}", "does not match the pattern"),
        ("nodes: {'../a': {host: x}}", "does not match the pattern"),
        ("nodes: {a: {host: x, work_folder: relative}}", "absolute path"),
        ("nodes: {a: {host: x, work_folder: /tmp/../etc}}", "absolute path"),
        ("nodes: {a: {host: x, work_folder: /}}", "absolute path"),
        ("nodes: {a: {host: x, work_folder: '/tmp/$(reboot)'}}", "a path without"),
        ("nodes: {a: {host: x, identity: 'a%h'}}", "a path without"),
        ("nodes: {a: {host: x, identity: missing}}", "there is no file"),
        ("nodes: {a: {host: x, known_hosts: missing}}", "there is no file"),
        ("nodes: !!python/object/apply:os.system [reboot]", "tag"),
        ("nodes: {a: {host: x}, a: {host: y}}", "a"),
        ("nodes: [", "not YAML"),
    ],
)
def test_mistakes_have_a_place(file, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_node(file(text), None)
    assert caught.value.location.line == 1
    assert caught.value.exit_code == ExitCode.USAGE
    assert "spec" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="there is no such node file"):
        read_node(tmp_path / "nodes.yaml", None)
    with pytest.raises(DataError, match="there is no such node file"):
        read_node(tmp_path, None)


def test_addresses_of_testbeds(file, tmp_path, monkeypatch):
    path = file()
    monkeypatch.chdir(tmp_path)
    for address in ("ssh:nodes.yaml", "ssh:nodes.yaml:dut", f"ssh:{path}"):
        testbed = open_testbed(address)
        assert testbed.label == "ssh:dut"
        there = {"address": f"ssh:{path}:dut", "node": "dut", "host": "10.0.0.2"}
        assert testbed.record == {**there, "load_generator_node": "generator"}
    assert open_testbed(testbed.record["address"]).record == testbed.record
    with pytest.raises(UsageError, match="needs a node file"):
        open_testbed("ssh")
    with pytest.raises(UsageError, match="testbed local takes no 'nodes"):
        open_testbed("local:nodes.yaml")
    assert open_testbed("local").record == {"address": "local"}


def test_ssh_asks_nothing_and_trusts_nobody(file, tmp_path):
    argv = _first_argv(read_node(file(), None).spec, tmp_path / "socket")
    options = dict(word.split("=", 1) for word in argv[2::2] if "=" in word)
    assert options["BatchMode"] == "yes"
    assert options["StrictHostKeyChecking"] == "yes"
    assert options["IdentitiesOnly"] == "yes"
    assert options["UserKnownHostsFile"] == f'"{tmp_path}/known_hosts"'
    assert (options["User"], options["Port"], options["ForwardAgent"]) == ("p4", "2222", "no")
    assert argv[-1] == "10.0.0.2"


def test_commands_are_quoted_and_pinned(file):
    connection = Connection(read_node(file(), None))
    assert connection.command("connecting", WATCH, "mark").startswith("exec sh -c '")
    text = connection.command("running", "exists.sh", "mark", "a; reboot", "$(reboot)")
    assert text.startswith("exec taskset -c 2,3 sh -c '")
    assert text.endswith(" mark 'a; reboot' '$(reboot)'")
    with pytest.raises(TestbedError, match="node dut, running: the command has"):
        connection.command("running", "exists.sh", "mark", "x" * 200_000)
