"""The site file: what is read, what is refused and where."""

import re

import pytest
import yaml

from p4perf.errors import DataError, UsageError
from p4perf.testbeds.nodes import PosNode, PosNodeSpec, SiteFile, read_site
from p4perf.testbeds.pos.experiment import experiment_files
from p4perf.testbeds.pos.testbed import PosTestbed

WHOLE = """
nodes:
  cesis:
    roles: [dut]
    image: debian-bookworm@2026-01-01T00:00:00+00:00
    boot_parameters: [isolcpus=1-7, intel_pstate=disable, quiet]
    folder: /root/p4perf
    packages: [gcc, libdpdk-dev, g++=4:12.2.0-3]
    setup: [[sysctl, -w, vm.nr_hugepages=1024]]
  nida: {roles: [loadgen], image: debian-bookworm}
cli: [ssh, management, pos]
duration_min: 120
result_folder: mine/p4perf
results_root: /srv/testbed/results
free_before: true
keep_calendar: false
reset_timeout_s: 600
setup_timeout_s: 600
facts: facts.txt
"""


def write(folder, text):
    path = folder / "site.yaml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path):
    node = read_site(write(tmp_path, WHOLE), None)
    assert (node.name, node.spec.image) == ("cesis", "debian-bookworm@2026-01-01T00:00:00+00:00")
    assert node.site.cli == ("ssh", "management", "pos")
    assert node.facts == tmp_path / "facts.txt"
    assert read_site(write(tmp_path, WHOLE), "nida").spec.roles == ("loadgen",)


def test_a_short_file(tmp_path):
    node = read_site(write(tmp_path, "nodes: {a: {image: debian-bookworm}}"), None)
    assert (node.site.cli, node.site.duration_min, node.spec.folder) == (("pos",), None, "/root/p4perf")
    assert node.site.keep_calendar


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("nodes: {}", "1:8", "nodes"),
        ("nodes: {a: {}}", "1:9", "image"),
        ("nodes: {a: {image: x}}\ncolour: red", "2:1", "colour"),
        ("nodes: {a: {image: x, colour: red}}", "1:23", "colour"),
        ("nodes: {a: {image: '--help'}}", "1:20", "image"),
        ("nodes: {a: {image: 'x; reboot'}}", "1:20", "image"),
        ("nodes: {-a: {image: x}}", "1:9", "nodes"),
        ("nodes: {'a b': {image: x}}", "1:9", "nodes"),
        ("nodes: {'$(reboot)': {image: x}}", "1:9", "nodes"),
        ("nodes: {a: {image: x, boot_parameters: [--delete]}}", "1:41", "boot_parameters"),
        ("nodes: {a: {image: x, boot_parameters: ['a=b c']}}", "1:41", "boot_parameters"),
        ("nodes: {a: {image: x, boot_parameters: [\"a='b'\"]}}", "1:41", "boot_parameters"),
        ("nodes: {a: {image: x, packages: [-oAPT::x]}}", "1:34", "packages"),
        ("nodes: {a: {image: x, folder: p4perf}}", "1:31", "folder"),
        ("nodes: {a: {image: x, folder: /}}", "1:31", "folder"),
        ("nodes: {a: {image: x, folder: /root/../etc}}", "1:31", "folder"),
        ("nodes: {a: {image: x, folder: '/root/$(reboot)'}}", "1:31", "folder"),
        ("nodes: {a: {image: x}}\nresult_folder: ../../other", "2:16", "result_folder"),
        ("nodes: {a: {image: x}}\nresult_folder: -x", "2:16", "result_folder"),
        ("nodes: {a: {image: x}}\ncli: []", "2:6", "cli"),
        ("nodes: {a: {image: x}}\ncli: pos", "2:6", "cli"),
        ("nodes: {a: {image: x}}\ncli: [--pos]", "2:6", "cli"),
        ("nodes: {a: {image: x}}\nduration_min: 1.5", "2:15", "duration_min"),
        ("nodes: {a: {image: x}}\nduration_min: 0", "2:15", "duration_min"),
        ("nodes: {a: {image: x, roles: [switch]}}", "1:31", "roles"),
        ("nodes: {a: !!python/object:os.system {image: x}}", "1:12", ""),
        ("nodes: [", None, "YAML"),
    ],
)
def test_a_wrong_file(tmp_path, text, where, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_site(path, None)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{where}" if where else str(path)), str(caught.value)


def test_which_node(tmp_path):
    path = write(tmp_path, "nodes: {a: {image: x}, b: {image: x}}")
    with pytest.raises(UsageError, match="2 nodes with the role dut"):
        read_site(path, None)
    with pytest.raises(UsageError, match="has no node c"):
        read_site(path, "c")
    assert PosTestbed.at(f"{path}:b").label == "pos:b"
    with pytest.raises(UsageError, match="needs a site file"):
        PosTestbed.at("")
    with pytest.raises(DataError, match="there is no such site file"):
        PosTestbed.at(str(tmp_path / "other.yaml"))


def test_what_is_missing(tmp_path):
    path = write(tmp_path, "nodes: {a: {image: x, roles: [loadgen]}}\ncli: [no-such-pos]")
    problems = PosTestbed.at(f"{path}:a").problems()
    assert ["role dut" in problems[0].what, "no-such-pos" in problems[1].what, len(problems)] == [True, True, 2]


class TestScripts:
    """Text that a user of pos reads and can run; everything in it is quoted."""

    def files(self, title="mat/exact-entries on dpdk-c", name=None, **more):
        site, spec = SiteFile.model_construct(nodes={}), PosNodeSpec.model_construct(**more)
        node = None if name is None else PosNode(name, spec, site, None)
        return {name: data.decode() for name, data in experiment_files([], title, node).items()}

    def test_names_that_a_user_of_pos_knows(self):
        assert set(self.files()) >= {
            *("experiment.sh", "global-variables.yml", "loop-variables.yml"),
            *("dut/variables.yml", "dut/setup.sh", "dut/measurement.sh", "loadgen/README.md"),
        }

    def test_variables_are_set_before_the_reset(self):
        script = re.sub("^#.*", "", self.files(name="cesis", image="x")["experiment.sh"], flags=re.MULTILINE)
        order = ["allocations allocate", "loop-variables.yml", "nodes image", "nodes reset", "nodes copy", "launch"]
        places = [script.index(f"{words}") for words in order]
        assert places == sorted(places)
        assert script.index("setup.sh --name") < script.index("measurement.sh --name") < script.rindex("await")

    @pytest.mark.parametrize("evil", ["a'b", "$(touch harm)", "`touch harm`", 'a"b', "a\ntouch harm", "-x", "a; b"])
    def test_nothing_leaves_its_quotes(self, evil):
        """Whatever the site file let through would be one word still."""
        files = self.files(title=evil, name=evil, image=evil, folder=evil, setup=[["echo", evil]], packages=[evil])
        assert yaml.safe_load(files["global-variables.yml"]) == {"experiment": evil}
        assert yaml.safe_load(files["dut/variables.yml"]) == {"folder": evil}
        for name in ("experiment.sh", "dut/setup.sh"):
            for line in files[name].splitlines():
                assert not line.startswith("touch harm") or "'" in line or name == "x", line
        for line in files["experiment.sh"].splitlines()[:3]:
            assert line.startswith("#")
