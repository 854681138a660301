"""Models: function templates, fitted curves and component models. Needs numpy only.

>>> from p4perf.models import ComponentModel
>>> model = ComponentModel.from_json(text)  # doctest: +SKIP
>>> model.estimate([1000, 50_000]).value  # doctest: +SKIP
"""

from p4perf.models.component import ComponentModel, Estimate, Interval, Quantity, Uncertainty
from p4perf.models.fitting import Fitting, PiecewiseFitting
from p4perf.models.templates import Template, find_template, registered_templates, scholz2021_templates

__all__ = [
    "ComponentModel",
    "Estimate",
    "Fitting",
    "Interval",
    "PiecewiseFitting",
    "Quantity",
    "Template",
    "Uncertainty",
    "find_template",
    "registered_templates",
    "scholz2021_templates",
]
