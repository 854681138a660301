"""Testbeds that carry out many jobs at once, on nodes where nothing of p4perf runs."""
