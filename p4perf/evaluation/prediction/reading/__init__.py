"""Third-party programs, read into the graph that cost models price.

:func:`read_program` takes the JSON that p4c-bm2-ss writes for bmv2, the ``.spec`` that p4c-dpdk writes for DPDK's SWX
pipeline, P4 (if p4c is installed), and p4perf's own specs. :func:`read_shares` reads what users know of their traffic,
:func:`shares_of_trace` counts it in a capture. :func:`read_instructions` reads a program as the instructions that are
generated for SWX.
"""

from p4perf.evaluation.prediction.reading.program import ReadOptions as ReadOptions
from p4perf.evaluation.prediction.reading.program import read_instructions as read_instructions
from p4perf.evaluation.prediction.reading.program import read_program as read_program
from p4perf.evaluation.prediction.reading.program import shares_of_trace as shares_of_trace
from p4perf.programs.reading.shares import Shares as Shares
from p4perf.programs.reading.shares import read_shares as read_shares
