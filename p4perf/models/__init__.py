"""Models: function templates, fitted curves and component models. Needs numpy only.

>>> from p4perf.models import ComponentModel
>>> model = ComponentModel.from_json(text)  # doctest: +SKIP
>>> model.estimate([1000, 50_000]).value  # doctest: +SKIP
"""

from p4perf.models.component import ComponentModel, ConfidenceInterval, CurveEstimate, Quantity, Scale, Uncertainty
from p4perf.models.estimate import Estimate
from p4perf.models.export import ExportLanguage, export_model, function_name
from p4perf.models.fitting import Fitting, PiecewiseFitting
from p4perf.models.functions import FunctionTemplate
from p4perf.models.notation import Language, Notation, number
from p4perf.models.templates import (
    SCHOLZ2021_RANKS,
    Basis,
    BasisTemplate,
    FloatArray,
    Template,
    find_template,
    registered_templates,
    scholz2021_templates,
    standard_templates,
)

__all__ = [
    "SCHOLZ2021_RANKS",
    "Basis",
    "BasisTemplate",
    "ComponentModel",
    "ConfidenceInterval",
    "CurveEstimate",
    "Estimate",
    "ExportLanguage",
    "Fitting",
    "FloatArray",
    "FunctionTemplate",
    "Language",
    "Notation",
    "PiecewiseFitting",
    "Quantity",
    "Scale",
    "Template",
    "Uncertainty",
    "export_model",
    "find_template",
    "function_name",
    "number",
    "registered_templates",
    "scholz2021_templates",
    "standard_templates",
]
