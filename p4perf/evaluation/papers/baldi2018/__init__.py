"""Baldi and Sapio 2018: elementary operations, machines and functions as YAML."""

from p4perf.evaluation.papers.baldi2018.files import function_names as function_names
from p4perf.evaluation.papers.baldi2018.files import hardware_names as hardware_names
from p4perf.evaluation.papers.baldi2018.files import load_function as load_function
from p4perf.evaluation.papers.baldi2018.files import load_hardware as load_hardware
