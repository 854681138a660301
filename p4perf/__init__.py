"""p4perf: what will this data-plane program cost on that target?"""

__version__ = "0.1.0"
