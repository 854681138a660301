"""The files of cost models: how they are told from other files, and what a prediction needs of them."""

from __future__ import annotations

import json

from p4perf.evaluation.answer.prediction import TargetModel

SCHEMA = "p4perf/cost-model"


def is_cost_model(text: str) -> bool:
    """Whether a text says that it is a cost model of programs; what else is wrong with it is another matter."""
    if SCHEMA not in text:
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return True
    return isinstance(value, dict) and value.get("schema") == SCHEMA


def parse_cost_model(text: str, file: str) -> TargetModel:
    """A cost model.

    Raises:
        DataError: it is damaged, or of another version; with the key.
    """
    raise NotImplementedError
