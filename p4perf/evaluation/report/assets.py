"""The files that all pages of a site share: style sheet, script, and the script of Plotly."""

from __future__ import annotations

from importlib.resources import files

_OWN = ("site.css", "site.js")
PLOTLY = "plotly.min.js"


def assets() -> dict[str, bytes]:
    """Content by file name. Plotly's script (MIT licence) is the one that its Python package ships."""
    folder = files("p4perf.evaluation.report") / "site"
    found = {name: (folder / name).read_bytes() for name in _OWN}
    return found | {PLOTLY: (files("plotly") / "package_data" / PLOTLY).read_bytes()}
