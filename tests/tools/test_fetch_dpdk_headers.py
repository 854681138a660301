"""The script that fetches headers of DPDK, run against an apt that only writes down what it is told."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "fetch-dpdk-headers.sh"

FAKES = {
    "dpkg-query": 'printf "%s" "$FAKE_VERSION"',
    "pkg-config": "echo 22.11.99",
    "apt-config": 'echo "list=$FAKE_ETC/sources.list"; echo "parts=$FAKE_ETC/sources.list.d"',
    "apt-get": """
for option; do
    case $option in
    Dir::Etc::sourceparts=*) cat "${option#*=}"/* >"$FAKE_ETC/asked" ;;
    update) [ -z "$FAKE_OFFLINE" ] || { echo "E: there is no network" >&2; exit 100; } ;;
    dpdk=*) [ "$option" = "dpdk=$FAKE_ARCHIVE" ] || { echo "E: Can not find version" >&2; exit 100; } && touch a.dsc ;;
    esac
done
""",
    "dpkg-source": """
for folder; do :; done
mkdir -p "$folder/lib/pipeline"
for header in internal spec; do
    echo "/* SPDX-License-Identifier: BSD-3-Clause" >"$folder/lib/pipeline/rte_swx_pipeline_$header.h"
    echo " * Copyright(c) 2022 Somebody" >>"$folder/lib/pipeline/rte_swx_pipeline_$header.h"
done
""",
}

ONE_LINE = """
# deb mirror:/commented {codename} main
deb [arch=amd64 signed-by=/key] mirror:/debian {codename} main contrib # here
deb mirror:/debian-security {codename}-security main
deb-src mirror:/sources {codename} main
deb mirror:/foreign cloud-{codename} main
deb mirror:/foreign {codename} stable
"""

PARAGRAPHS = """
# A comment
Types: deb
URIs: mirror:/paragraph
Suites: {codename} {codename}-updates
Components: main
Architectures: amd64
Signed-By:
 -----BEGIN KEY-----
 .
 -----END KEY-----

Types: deb
URIs: mirror:/elsewhere
Suites: nodistro
Components: main

Enabled: no
Types: deb
URIs: mirror:/disabled
Suites: {codename}
Components: main
"""


@pytest.fixture
def codename():
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    names = [line.split("=")[1].strip('"') for line in release.splitlines() if line.startswith("VERSION_CODENAME=")]
    return names[0] if names else "stable"


@pytest.fixture
def fetch(tmp_path, codename):
    """Runs the script; its result, and the sources that apt was given."""
    etc, tools, cache = tmp_path / "etc", tmp_path / "tools", tmp_path / "cache"
    for folder in (etc / "sources.list.d", tools):
        folder.mkdir(parents=True)
    for name, text in FAKES.items():
        path = tools / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(one_line="", paragraphs="", installed="22.11.99-1", archive="22.11.99-1", offline=""):
        (etc / "sources.list").write_text(one_line.format(codename=codename))
        (etc / "sources.list.d" / "debian.sources").write_text(paragraphs.format(codename=codename))
        (etc / "asked").unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(cache),
            "FAKE_ETC": str(etc),
            "FAKE_VERSION": installed,
            "FAKE_ARCHIVE": archive,
            "FAKE_OFFLINE": offline,
        }
        done = subprocess.run(["sh", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        asked = (etc / "asked").read_text() if (etc / "asked").exists() else ""
        return done, asked, cache / "p4perf" / "dpdk-22.11.99"

    return run


def test_sources_of_one_line(fetch, codename):
    _, asked, folder = fetch(one_line=ONE_LINE)
    assert asked.splitlines() == [
        f"deb-src [ signed-by=/key] mirror:/debian {codename} main",
        f"deb-src mirror:/debian-security {codename}-security main",
    ]
    assert sorted(p.name for p in folder.iterdir()) == [
        "NOTE",
        "rte_swx_pipeline_internal.h",
        "rte_swx_pipeline_spec.h",
    ]
    note = (folder / "NOTE").read_text()
    assert note.startswith("Version: 22.11.99-1\n")
    assert "BSD-3-Clause" in note
    assert "Copyright(c) 2022 Somebody" in note


def test_sources_in_paragraphs(fetch, codename):
    _, asked, _ = fetch(paragraphs=PARAGRAPHS)
    assert asked.startswith("Types: deb-src\nURIs: mirror:/paragraph\n")
    assert f"Suites: {codename} {codename}-updates" in asked
    assert " -----END KEY-----" in asked
    for missing in ("Architectures", "elsewhere", "disabled", "nodistro"):
        assert missing not in asked


def test_nothing_is_fetched_twice(fetch):
    fetch(one_line=ONE_LINE)
    done, asked, _ = fetch(one_line=ONE_LINE)
    assert done.stdout == ""
    assert asked == ""


def test_another_version_is_fetched_again(fetch):
    fetch(one_line=ONE_LINE)
    _, asked, folder = fetch(one_line=ONE_LINE, installed="22.11.99-2", archive="22.11.99-2")
    assert asked
    assert (folder / "NOTE").read_text().startswith("Version: 22.11.99-2\n")


@pytest.mark.parametrize(
    ("situation", "why"),
    [
        ({"installed": ""}, "libdpdk-dev is not installed"),
        ({"one_line": ""}, "names no Debian suite"),
        ({"offline": "yes"}, "there is no network"),
        ({"archive": "22.11.98-1"}, "Can not find version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_say_why_and_stop_nothing(fetch, situation, why):
    done, _, folder = fetch(**{"one_line": ONE_LINE, **situation})
    assert why in done.stderr
    assert "dpdk-swx:interpreter works without them" in done.stderr
    assert not folder.exists()
    assert not list(folder.parent.glob(".dpdk-*"))


def test_no_address_is_written_down():
    assert "://" not in SCRIPT.read_text()
