"""Models: function templates, fitted curves and component models. Needs numpy only.

>>> from p4perf.models import ComponentModel
>>> model = ComponentModel.from_json(text)  # doctest: +SKIP
>>> model.estimate([1000, 50_000]).value  # doctest: +SKIP
"""

from p4perf.models.component import ComponentModel as ComponentModel
from p4perf.models.component import Fitting as Fitting
from p4perf.models.component import PiecewiseFitting as PiecewiseFitting
from p4perf.models.component import Quantity as Quantity
from p4perf.models.templates import FunctionTemplate as FunctionTemplate
from p4perf.models.templates import Template as Template
from p4perf.models.templates import registered_templates as registered_templates
from p4perf.models.templates import standard_templates as standard_templates
