"""The notebooks run from top to bottom, with stand-in targets; they are stored without output."""

import asyncio
import json
import os
import re
import shlex
import sys
import warnings

import pytest
from docs_pages import DOCS
from support.command import environment

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))

STAND_IN = {"dpdk-c": "fake", "dpdk-swx": "fake-adding"}
"""Fake targets for the real ones that the cell of parameters names."""


def cells(path):
    return json.loads(path.read_text())["cells"]


def is_parameters(cell):
    return "parameters" in cell["metadata"].get("tags", [])


def test_there_are_notebooks_and_the_index_names_them():
    text = (DOCS / "index.md").read_text()
    assert len(NOTEBOOKS) >= 3
    assert all(f"(notebooks/{path.name})" in text for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_has_no_output(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert [is_parameters(cell) for cell in code].count(True) == 1


def with_stand_ins(notebook):
    """The notebook with fake targets in its cell of parameters."""
    (cell,) = [cell for cell in notebook.cells if is_parameters(cell)]
    names = set(re.findall(r'"([^"]+)"', cell.source))
    assert names <= STAND_IN.keys(), cell.source
    for name in names:
        cell.source = cell.source.replace(f'"{name}"', f'"{STAND_IN[name]}"')
    return notebook


def put_p4perf_on_the_path(folder):
    """A command of that name, which is the code under test; returns the PATH."""
    folder.mkdir()
    script = folder / "p4perf"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m p4perf "$@"\n')
    script.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path, tmp_path):
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Jupyter are not ours
        nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
        nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
        notebook = with_stand_ins(nbformat.read(path, as_version=4))
        source = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))
        variables = environment(
            PATH=put_p4perf_on_the_path(tmp_path / "bin"),
            IPYTHONDIR=str(tmp_path / "ipython"),
            MPLBACKEND="module://matplotlib_inline.backend_inline",
        )
        variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], source])
        client = nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        )
        asyncio.run(client.async_execute(env=variables))
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and not is_parameters(cell)]
    assert all("Traceback" not in str(cell.outputs) for cell in code)
    pictures = [out for cell in code for out in cell.outputs if "image/png" in out.get("data", {})]
    tables = [out for cell in code for out in cell.outputs if "text/html" in out.get("data", {})]
    assert pictures
    assert tables
