"""A checkout of t4p4s with a stand-in for its script, a p4c, and the commands that the script calls."""

import os
import shutil
import stat
from pathlib import Path

from p4perf.targets.t4p4s_service import TOOLS

FAKES = Path(__file__).parents[1] / "fakes"
INGRESS, EGRESS = "0000:03:00.0", "0000:03:00.1"
SUDO = """#!/bin/sh
while case $1 in -*) ;; *) false ;; esac do shift; done
exec env "$@"
"""
OPTIONS = """; options
cores=1 -> ealopts += -c 0x1 -n 4
ports=1x2 -> cmdopts += -p 0x3 --config (7,0,0)
variant=std -> include-hdrs += dpdk_nicon.h
variant=std -> include-srcs += hdep/'dpdk/dpdk_nicon.c'
ctr=off -> cflags += -DT4P4S_NO_CONTROL_PLANE
"""


def write(path, text, *, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def tree(folder):
    """All files of a folder with what is in them."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Checkouts:
    """Of t4p4s and p4c, below a folder."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.checkout, self.p4c = folder, folder / "t4p4s", folder / "p4c"
        write(self.checkout / "src/compiler.py", "")
        write(self.checkout / "src/hlir16/hlir.py", "")
        write(self.checkout / "src/utils/codegen.sugar.py", "")
        shutil.copytree(FAKES / "t4p4s_src", self.checkout / "src", dirs_exist_ok=True)
        shutil.copy(FAKES / "t4p4s.sh", self.checkout)
        write(self.checkout / "colours.cfg", "COLOUR_red 31\n")
        write(self.checkout / "meson.build.base", "fs = import('fs')\n")
        write(self.checkout / "examples.cfg", "program  @nic ctr=l2fwd\n@nic  hugemb=4096\n")
        write(self.checkout / "opts_dpdk.cfg", OPTIONS)
        write(self.p4c / "build/p4test", "#!/bin/sh\nexit 0\n", executable=True)
        self.tools = folder / "bin"
        write(self.tools / "sudo", SUDO, executable=True)
        write(self.tools / "ccache", '#!/bin/sh\nexec "$@"\n', executable=True)
        for tool in TOOLS:
            if shutil.which(tool) is None and not (self.tools / tool).exists():
                write(self.tools / tool, "#!/bin/sh\nexit 1\n", executable=True)
        monkeypatch.setenv("PATH", f"{self.tools}:{os.environ['PATH']}")
        self.fakes()

    def fakes(self, *words):
        """What goes wrong."""
        write(self.checkout / "lights.cfg", f"light 1\n; fake {' '.join(words)}\n")

    @property
    def known(self):
        """What the probe says of them."""
        return {"tool_t4p4s": str(self.checkout), "tool_p4c": str(self.p4c), "t4p4s_commit": "7cd5bac"}


class FakeT4P4S(Checkouts):
    """Checkouts on a machine with network interfaces, hugepages and perf."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, monkeypatch)
        for address in (INGRESS, EGRESS):
            (folder / "sys/bus/pci/devices" / address).mkdir(parents=True)
            (folder / "sys/bus/pci/devices" / address / "driver").symlink_to("../../drivers/vfio-pci")
        write(folder / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512\n")
        shutil.copy(FAKES / "perf", self.tools)
