"""Reference cases for model derivation: data with known parts. They live beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "fitcases"


class FitCases:
    """The cases by name."""

    @staticmethod
    def load(name: str) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
        """Truth, x and y of one case."""
        truth = json.loads((FOLDER / f"{name}.json").read_text())
        data = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1)
        return truth, data[:, 0], data[:, 1]

    @staticmethod
    def names(prefix: str) -> list[str]:
        """Cases whose name begins so."""
        return [name for name in json.loads((FOLDER / "index.json").read_text()) if name.startswith(prefix)]

    @staticmethod
    def family(template: str) -> str:
        """Name of a template as the cases spell it."""
        return {"log_shift": "log"}.get(template, template)


@pytest.fixture
def fitcases() -> FitCases:
    """The cases; skips the test where they are not there."""
    if not (FOLDER / "index.json").exists():
        pytest.skip("the fit cases (shared/data/fitcases beside the repository) are not here")
    return FitCases()
