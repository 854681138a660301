"""Elementary operations at the border: descriptions of machines and functions as YAML, and programs as functions."""

from p4perf.evaluation.papers.baldi2018.files import (
    function_names,
    hardware_names,
    load_function,
    load_hardware,
    read_function,
    read_hardware,
)

__all__ = [
    "function_names",
    "hardware_names",
    "load_function",
    "load_hardware",
    "read_function",
    "read_hardware",
]
