"""What the pages print for a shell is typed into one, page by page, as a reader would; nothing is left out.

Blocks marked ``<!-- stand-in target -->`` are typed as they are as well, but the targets that they name are stand-ins
of the same names (:mod:`support.stand_ins`): instant, with made-up numbers, few points a sweep, and no figures. What a
page takes for granted (machines, files of the reader, tools) is made by its scene, in :mod:`docs_scenes`.
"""

import re
import shutil
import subprocess

import pytest
from docs_pages import EXAMPLES, FRONT, PAGES, ROOT, STAND_IN, blocks, parts
from docs_scenes import SCENES, Scene
from docs_typed import BY_THE_MAINTAINERS, RUN_ELSEWHERE, examples, typed_blocks
from support.reader import Reader
from support.sampling import sampled

TYPED = [part for page in [*PAGES, *FRONT] for part in parts(page) if typed_blocks(part)]
STOOD_IN = "dpdk-c dpdk-swx xdp bmv2 t4p4s vio"


def expecting(line, codes):
    """A line that says which exit code is expected of it, if that is not 0."""
    code = next((c for start, c in codes.items() if line.startswith(start)), 0)
    return f"{{ {line.partition(' #')[0]}; }} && exit 99 || test $? -eq {code}" if code else line


@pytest.fixture
def reader(tmp_path):
    with Reader(tmp_path / "folder").listening() as reader:
        yield reader


SHORT = {"campaigns", "fitting", "specs", "generated"}
"""Parts that take a few seconds; ``make test-all`` types the others as well."""


@pytest.mark.parametrize("part", sampled(TYPED, *(p for p in TYPED if p.scene in SHORT)), ids=lambda p: p.id)
def test_what_is_printed_for_a_shell_runs(part, reader, request):
    (reader.folder / "examples").symlink_to(EXAMPLES)
    scene = SCENES.get(part.scene, Scene)(reader, request)

    def here(text):
        for old, new in scene.replaced.items():
            text = text.replace(old, new)
        return text

    for block in part.blocks:
        if block.file:
            (reader.folder / block.file).parent.mkdir(exist_ok=True)
            (reader.folder / block.file).write_text(here(block.text))
    left_out = []
    for block, lines in typed_blocks(part):
        reasons = {line: reason for line in lines if (reason := scene.leaves_out(line))}
        left_out += [f"line {block.line}: {reason}" for reason in dict.fromkeys(reasons.values())]
        if len(reasons) == len(lines):
            continue
        scene.before("\n".join(lines))
        script = "\n".join(expecting(here(line), scene.codes) for line in lines if line not in reasons)
        stand_ins = scene.stood_in or (STOOD_IN if block.note == STAND_IN else "")
        done = reader.type(reader.completed(script), stand_ins, **scene.variables)
        assert done.code == 0, f"{part.id}, line {block.line}:\n{script}\nended with {done.code}:\n{done.said}"
    typed = {line.partition(" #")[0].strip() for _, lines in typed_blocks(part) for line in lines}
    for line in examples(part.page):
        if line not in typed:
            done = reader.type(expecting(line, scene.codes), STOOD_IN, **scene.variables)
            assert done.code == 0, f"{part.id}, tables: {line} ended with {done.code}:\n{done.said}"
    if left_out:
        pytest.skip("; ".join(left_out))


SHELLS = re.compile(r"^(?:- run: )?(?:\w+=\S+ )*(?:\$ )?(?:\w+=\S+ )*p4perf ")
"""How a line of a fenced block begins that somebody types."""


def command_lines(page):
    """Lines of fenced blocks, whatever their language, that call p4perf."""
    found, inside = [], False
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside and SHELLS.match(line.strip()):
            found.append(line.strip().removeprefix("- run: ").removeprefix("$ ").removesuffix("\\").strip())
    return found


def run_lines(page):
    """Lines that this test types, or that ``test_docs.py`` runs with what they print."""
    typed = [line for part in parts(page) for _, lines in typed_blocks(part) for line in lines]
    languages = RUN_ELSEWHERE.get(page, ())
    printed = [line for block in blocks(page) if block.language in languages for line in block.text.splitlines()]
    return [*typed, *(line.removeprefix("$ ") for line in printed if line.startswith("$ "))]


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=lambda p: p.name)
def test_every_command_is_run(page):
    known = run_lines(page)
    left = [line for line in command_lines(page) if not any(other.strip().startswith(line) for other in known)]
    assert left == [], f"{page.name}: nobody runs these lines; see docs_typed.py"


@pytest.mark.parametrize("text", ["```ini\np4perf list\n```\n", "```text\n  CC=gcc p4perf list\n```\n"])
def test_a_command_that_nobody_runs_is_found(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(command_lines(page)) == 1
    assert "p4perf list" not in run_lines(page)


def test_the_examples_of_the_tables_are_found():
    assert len(examples(ROOT / "README.md")) >= 7
    assert all(line.startswith("p4perf ") for line in examples(ROOT / "README.md"))


@pytest.mark.parametrize(
    ("goal", "command"), [("install", "tools/make-environment.sh"), ("demo", "p4perf run demo/"), ("test", "pytest")]
)
def test_what_the_maintainers_run_is_there(goal, command):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    assert any(line.startswith(f"make {goal}") for line in BY_THE_MAINTAINERS)
    # -B: as if nothing was installed.
    told = subprocess.run(["make", "-nB", goal], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert command in told
