"""What all figures have in common."""

import re

import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def _literal(monkeypatch):
    """No text of a figure is a formula of matplotlib: it would be shown as it is written."""
    drawn = Figure.savefig

    def savefig(figure, buffer, **options):
        drawn(figure, buffer, **options)
        if options["format"] == "svg":
            assert not re.search(rb"\\math|\$", buffer.getvalue())

    monkeypatch.setattr(Figure, "savefig", savefig)
