"""A machine with t4p4s, made of the stand-ins of ``tests/fakes``: checkout, p4c, interfaces, hugepages, tools."""

import os
import shutil
import stat
from pathlib import Path

from p4perf.targets.t4p4s_files import TOOLS

FAKES = Path(__file__).parents[1] / "fakes"
SUDO = '#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac do shift; done\nexec "$@"\n'
INGRESS, EGRESS = "0000:03:00.0", "0000:03:00.1"


def write(path, text, *, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


class FakeT4P4S:
    """All of it in a folder; its tools are on the PATH."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.checkout = folder, folder / "t4p4s"
        write(self.checkout / "src/compiler.py", "")
        write(self.checkout / "src/hlir16/hlir.py", "")
        write(self.checkout / "src/utils/codegen.sugar.py", "")
        shutil.copy(FAKES / "t4p4s.sh", self.checkout)
        write(self.checkout / "colours.cfg", "COLOUR_red 31\n")
        write(self.checkout / "meson.build.base", "fs = import('fs')\n")
        write(self.checkout / "examples.cfg", "program  @nic ctr=l2fwd\n@nic  hugemb=4096\n")
        lines = ["; options", "cores=1 -> ealopts += -c 0x1 -n 4", "ports=1x2 -> cmdopts += -p 0x3 --config (7,0,0)"]
        write(self.checkout / "opts_dpdk.cfg", "\n".join([*lines, "variant=std -> include-hdrs += dpdk_nicon.h", ""]))
        write(folder / "p4c/build/p4test", "#!/bin/sh\nexit 0\n", executable=True)
        for address in (INGRESS, EGRESS):
            (folder / "sys/bus/pci/devices" / address).mkdir(parents=True)
            (folder / "sys/bus/pci/devices" / address / "driver").symlink_to("../../drivers/vfio-pci")
        write(folder / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512\n")
        tools = folder / "bin"
        write(tools / "sudo", SUDO, executable=True)
        shutil.copy(FAKES / "perf", tools)
        for tool in TOOLS:
            if tool != "sudo" and shutil.which(tool) is None:
                write(tools / tool, "#!/bin/sh\nexit 1\n", executable=True)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        self.fakes()

    def fakes(self, *words):
        """What goes wrong."""
        write(self.checkout / "lights.cfg", f"light 1\n; fake {' '.join(words)}\n")
