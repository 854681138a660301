"""What the pages take for granted of the reader: machines, files, tools. One scene a page.

Addresses and paths of a page that are not of this machine are replaced in what is typed and in the files of the page:
every such replacement stands in ``replaced`` of a scene. Nothing else of a page is changed.
"""

import math
import shutil
import subprocess

import pytest
from docs_pages import EXAMPLES
from support import moongen
from support.captures import capture, ethernet, ipv4, udp
from support.imports import make_pos
from support.netronome import FakeCard
from support.pos import FakePos
from support.reader import free_port
from support.runs import make_run
from support.sshd import USER
from support.t4p4s import FakeT4P4S

WITHOUT_STAND_INS = "-"
"""In the place of their names: real targets, and few points all the same."""

ONE_TRIAL = {"P4PERF_TEST_POINTS": "1", "P4PERF_TEST_STARTS": "1"}
SUCCEEDS = "#!/bin/sh\nexit 0\n"


class Scene:
    """Nothing is taken for granted.

    Attributes:
        replaced: text of the page, and what stands for it here.
        codes: beginnings of commands that end with another code than 0, and the code.
        variables: of the environment.
        stood_in: names of targets, where they differ from those of other pages.
        needs: programs without which nothing is typed.
    """

    needs = ()

    def __init__(self, reader, request):
        self.reader, self.request = reader, request
        self.folder = reader.folder
        self.replaced, self.codes, self.variables, self.stood_in = {}, {}, {}, None
        self.begin()

    def begin(self):
        """Before the page is read."""

    def before(self, text):
        """Before a script is typed."""

    def leaves_out(self, line):
        """Why a line is not typed here; empty if it is."""
        missing = [tool for tool in self.needs if shutil.which(tool) is None]
        return f"{', '.join(missing)} is not installed" if missing else ""

    def types(self, *lines):
        """Type what the page says nothing of."""
        done = self.reader.type("\n".join(lines), "dpdk-c")
        assert done.code == 0, done.said

    def dask(self):
        """Let Dask be on loopback, on a port that is free, with workers without a nanny."""
        port = str(free_port())
        self.reader.dask["scheduler"] = ["--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        self.reader.dask["worker"] = ["--no-nanny", "--no-dashboard"]
        self.replaced["10.0.0.1:8786"] = f"127.0.0.1:{port}"
        self.worker = f"dask worker tcp://127.0.0.1:{port} --nthreads 1 --resources dut=1 --name"

    def node(self, name, *settings):
        """A node that is reached by ssh; skips the test where there can be none."""
        return self.request.getfixturevalue("new_node")(name, *settings)

    def reach(self, node, page_host):
        """Let the host of a node file of the page be that node."""
        lines = [f"host: {page_host}", f"    port: {node.port}", f"    identity: {node.identity}"]
        lines += [f"    known_hosts: {node.known_hosts}", f"    work_folder: {node.work}"]
        self.replaced[f"host: {page_host}"] = "\n".join(lines).replace(page_host, "127.0.0.1", 1)
        self.replaced["user: p4\n"] = self.replaced["user: root\n"] = f"user: {USER}\n"
        self.replaced["cores: [2, 3]"] = "cores: [0, 1]"  # this machine may have no more


def router(folder):
    """A specification, its entries, and a packet that it forwards."""
    shutil.copy(EXAMPLES / "swx" / "router.spec", folder)
    (folder / "router.txt").write_text("table routes\nmatch 0xc0a80000/16 action send port 0x1 dst 0x020000000002\n")
    capture(folder / "router.pcap", [ethernet(0x0800, ipv4("10.0.0.1", "192.168.0.1", rest=udp(53) + bytes(26)))])


class Artifact(Scene):
    """Nothing. Made-up numbers do not bear out what papers say of measurements: code 1 says so."""

    def begin(self):
        self.codes = {"p4perf reproduce ": 1}


class Cluster(Scene):
    """A scheduler on loopback, on a port that is free; workers without a nanny. The second pair is reached by ssh."""

    def begin(self):
        self.dask()
        self.replaced["/etc/p4perf/pair2.yaml"] = str(self.node("dut").node_file(self.folder / "pair2.yaml"))

    def before(self, text):
        if "'xeon-*'" in text:
            self.types(f"{self.worker} xeon-1", f"{self.worker} epyc-1")


class Readme(Scene):
    """Files of the reader's own, runs with the names A, B and C, a node, and a cluster when it comes to that."""

    def begin(self):
        self.dask()
        router(self.folder)
        (self.folder / "router.spec").rename(self.folder / "my.spec")
        shutil.copy(EXAMPLES / "programs" / "ipv4_router" / "ipv4_router.json", self.folder / "my.json")
        self.node("dut").node_file(self.folder / "lab.yaml")
        shutil.copy(EXAMPLES / "data" / "lookups.csv", self.folder / "data.csv")
        series = (EXAMPLES / "data" / "tables.csv").read_text().splitlines()
        (self.folder / "all.csv").write_text("\n".join(["table,n,cost", *series[1:]]) + "\n")
        found = make_pos(self.folder.parent, [({"pkt_sz": size}, 10 - size / 256) for size in (64, 128, 256, 512)])
        found.rename(self.folder / "results")
        for name, target in zip("ABC", ("dpdk-c", "dpdk-swx", "xdp"), strict=True):
            made = make_run(self.folder / "runs", math.sqrt, target="dpdk-c" if name < "C" else target, seed=ord(name))
            made.rename(made.with_name(name))
        self.types("p4perf run operator/all --quiet")
        for tool in ("p4test", "p4c-bm2-ss", "p4c-dpdk"):
            self.reader.tool(tool, SUCCEEDS)  # thousands of programs; generated.md has a few compiled by real ones
        self.codes = {"p4perf reproduce ": 1}

    def before(self, text):
        if "--scheduler" in text:
            self.types("dask scheduler", f"{self.worker} dut")


class Gate(Scene):
    """A runner of GitHub with two versions of gcc."""

    def begin(self):
        for name in ("gcc-12", "gcc-13"):
            (self.reader.tools / name).symlink_to(shutil.which("cc") or "/usr/bin/cc")
        self.variables = {"GITHUB_STEP_SUMMARY": str(self.folder / "step.md")}


class Moongen(Scene):
    """t4p4s on one node, the double of MoonGen on another; one point, for it sends packet by packet."""

    def begin(self):
        if reason := moongen.why_not():
            pytest.skip(reason)
        device = FakeT4P4S(self.folder.parent / "device", self.request.getfixturevalue("monkeypatch"))
        (device.folder / "capacity").write_text("500")
        double = moongen.moongen(device.folder / "MoonGen", device.folder / "capacity", link_mbit=1)
        path = f"SetEnv PATH={device.tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.reach(self.node("dut", path), "10.0.0.2")
        self.reach(self.node("generator"), "10.0.0.3")
        self.replaced |= {"/root/t4p4s": str(device.checkout), "/root/p4c": str(device.p4c)}
        self.replaced["/root/MoonGen/build/MoonGen"] = str(double)
        self.stood_in = WITHOUT_STAND_INS
        self.variables = {**ONE_TRIAL, "P4PERF_TEST_SYSFS": str(device.folder / "sys")}


class Pos(Scene):
    """A testbed pos, and a machine to which a folder is carried: this one."""

    def begin(self):
        pos = FakePos(self.folder.parent / "pos")
        self.reader.tool("pos", (pos.shim() / "pos").read_text())
        self.reader.tool("apt-get", SUCCEEDS)  # packages of nodes
        image = "image: debian-bookworm\n"
        self.replaced = {
            f"cesis:\n    {image}": f"cesis:\n    folder: {pos.disk('cesis')}\n    {image}",
            "duration_min": f"results_root: {pos.folder / 'results'}\nduration_min",
        }
        self.codes = {"p4perf run mat/exact-entries --testbed manual:": 7}

    def before(self, text):
        there = self.folder / "for-the-lab"
        if "import" in text:
            subprocess.run(["sh", "run.sh"], cwd=there, check=True, capture_output=True)
        elif "probe.sh" in text:
            shutil.copy(there / "dut" / "probe.sh", self.folder)
        else:
            shutil.rmtree(there, ignore_errors=True)


class Generated(Scene):
    """Compilers of P4, or none."""

    needs = ("p4test",)

    def leaves_out(self, line):
        return super().leaves_out(line) if "--verify" in line else ""


class Predicting(Scene):
    """The specification of the page with entries and a packet."""

    def begin(self):
        router(self.folder)


class Programs(Scene):
    """The compiler of DPDK's pipeline, or none."""

    needs = ("p4c-dpdk",)

    def leaves_out(self, line):
        return "" if "make.py" in line else super().leaves_out(line)


class Own(Programs):
    """The compiler of bmv2, or none, and a router in P4."""

    needs = ("p4c-bm2-ss",)

    def begin(self):
        shutil.copytree(EXAMPLES / "programs" / "include", self.folder.parent / "include")
        shutil.copy(EXAMPLES / "programs" / "ipv4_router" / "ipv4_router.p4", self.folder / "router.p4")

    def leaves_out(self, line):
        return Scene.leaves_out(self, line) if line.startswith("p4c") or ".p4 " in line else ""


class Ssh(Scene):
    """A node."""

    def begin(self):
        self.reach(self.node("dut"), "10.0.0.2")
        self.replaced |= {"    identity: keys/lab\n": "", "    known_hosts: known_hosts\n": ""}


class Targets(Scene):
    """An Agilio card on one node, the double of MoonGen on another."""

    def begin(self):
        if reason := moongen.why_not():
            pytest.skip(reason)
        card = FakeCard(self.folder.parent / "sdk")
        (self.folder.parent / "capacity").write_text("500")
        double = moongen.moongen(self.folder.parent / "MoonGen", self.folder.parent / "capacity", link_mbit=1)
        path = f"SetEnv PATH={card.tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        dut, sender = self.node("dut", path), self.node("sender")
        interfaces = "{tx: '0000:04:00.0', rx: '0000:04:00.1'}"
        more = {"load_generator": "moongen", "tools": f"{{moongen: {double}}}", "interfaces": interfaces}
        entries = dut.entry(roles="[dut]") + sender.entry(roles="[loadgen]", **more)
        (self.folder / "nodes.yaml").write_text(f"nodes:\n{entries}")

    def before(self, text):
        if "nfp4000" in text:
            self.stood_in, self.variables = WITHOUT_STAND_INS, ONE_TRIAL


SCENES = {
    "ARTIFACT": Artifact,
    "README": Readme,
    "cluster": Cluster,
    "gate": Gate,
    "generated": Generated,
    "moongen": Moongen,
    "own": Own,
    "pos": Pos,
    "predicting": Predicting,
    "programs": Programs,
    "ssh": Ssh,
    "targets": Targets,
}
