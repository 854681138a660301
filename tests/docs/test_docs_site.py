"""The pages are a site: every page is in its menu, and no link or anchor is lost."""

import os
import subprocess
import sys

import pytest
import yaml
from docs_pages import DOCS, PAGES

ROOT = DOCS.parent


def test_every_page_is_in_the_menu():
    text = (ROOT / "mkdocs.yml").read_text()
    menu = yaml.safe_load(text)["nav"]
    listed = [page for part in menu for pages in part.values() for page in pages]
    assert sorted(listed) == sorted(p.name for p in PAGES)


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "index.html").exists()
