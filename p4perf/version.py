"""The version of p4perf; here, so that every room can know it without importing another."""

__version__ = "0.1.0"
