"""Measurements in the input formats of Extra-P (https://github.com/extra-p/extrap), read and written.

>>> from p4perf.evaluation.extrap import read_extrap, select_series
>>> samples = select_series(read_extrap(path), region="main").samples  # doctest: +SKIP

Read are the text format, the JSON format in both of its forms, and JSON Lines; written is the text format. Not read are
what only profilers write (Cube), and what only Extra-P itself does (``.extra-p``, Extra-P 3).
"""

from p4perf.evaluation.extrap.files import parse_extrap, read_extrap, write_extrap_text
from p4perf.evaluation.extrap.series import ExtrapSeries, select_series
from p4perf.evaluation.extrap.textformat import extrap_text

__all__ = ["ExtrapSeries", "extrap_text", "parse_extrap", "read_extrap", "select_series", "write_extrap_text"]
