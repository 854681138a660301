"""What the page on generated programs says to do with each of them is done, as far as its tools are here."""

import re
import shlex
import shutil
import subprocess

import pytest
from docs_pages import DOCS, blocks
from docs_typed import script
from support.command import p4perf

from p4perf.plugins import plugin_names

PAGE = DOCS / "generated.md"
GENERATORS = [name for name in plugin_names("p4perf.generators") if name not in ("fake", "fake-adding")]

DEVICES = {
    "simple_switch": "runs until it is stopped, on interfaces that the page takes for granted",
    "simple_switch_CLI": "needs that switch",
    "./t4p4s.sh": "needs a checkout and two ports",
    "nfp4build": "needs the proprietary SDK",
    "rtecli": "needs an Agilio card",
    "MoonGen": "needs two ports",
}
"""Tools that work on devices. Those of them that can be had are used by the tests of the targets."""


def told():
    """The lines of the blocks below the heading of each generator, but those of p4perf itself."""
    found, lines = {}, PAGE.read_text().splitlines()
    for block in blocks(PAGE):
        if block.language == "text" and script(block) is None:
            (heading,) = re.findall(r"^## (.*)$", "\n".join(lines[: block.line]), re.MULTILINE)[-1:]
            for name in heading.split(" and "):
                found.setdefault(name, []).extend(line.removeprefix("$ ") for line in block.text.splitlines())
    return found


TOLD = told()


def test_every_block_belongs_to_a_generator():
    assert TOLD.keys() <= set(GENERATORS)
    assert {"v1model", "t4p4s", "nfp", "psa", "pna", "dpdk-c", "moongen"} <= TOLD.keys()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("generator", TOLD)
def test_what_is_told_of_a_generated_program_works(generator, tmp_path):
    done = p4perf("generate", "baseline/l2fwd", "--points", 1, "-g", generator, "-o", tmp_path)
    assert done.code == 0, done.err
    (folder,) = {path.parent for path in tmp_path.rglob("point.json")}
    left_out = {}
    for line in TOLD[generator]:
        tool = shlex.split(line)[0]
        if tool in DEVICES or shutil.which(tool) is None:
            left_out[tool] = DEVICES.get(tool, "is not on the path")
            continue
        line = line.replace("--arch psa", f"--arch {generator}")  # psa and pna share a line
        ran = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
    if left_out:
        pytest.skip("; ".join(f"{tool} {reason}" for tool, reason in left_out.items()))
