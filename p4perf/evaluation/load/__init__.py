"""Latency: histograms of what a load generator measured, and files of histograms that other tools read.

A latency is the time from sending to receiving a frame (compare RFC 1242, section 3.8), kept in nanoseconds and
reported in microseconds. Percentiles never come from means of percentiles: histograms are merged first.
"""

from p4perf.evaluation.load.histogram import SUPPORT as SUPPORT
from p4perf.evaluation.load.histogram import LatencyHistogram as LatencyHistogram
from p4perf.evaluation.load.histogram import Layout as Layout
from p4perf.evaluation.load.histogram import LoggedHistogram as LoggedHistogram
from p4perf.evaluation.load.histogram import hlog_text as hlog_text
from p4perf.evaluation.load.histogram import read_hlog as read_hlog
from p4perf.evaluation.load.histogram import read_moongen_histogram as read_moongen_histogram
