"""Latency: histograms of what a load generator measured, and files of histograms that other tools read.

A latency is the time from sending to receiving a frame (compare RFC 1242, section 3.8), kept in nanoseconds and
reported in microseconds. Percentiles never come from means of percentiles: histograms are merged first.
"""

from p4perf.evaluation.load.histogram import PERCENTILES, SUPPORT, LatencyHistogram, Layout
from p4perf.evaluation.load.histogram_files import (
    LoggedHistogram,
    hlog_text,
    parse_hlog,
    read_hlog,
    read_moongen_histogram,
)

__all__ = [
    "PERCENTILES",
    "SUPPORT",
    "LatencyHistogram",
    "Layout",
    "LoggedHistogram",
    "hlog_text",
    "parse_hlog",
    "read_hlog",
    "read_moongen_histogram",
]
