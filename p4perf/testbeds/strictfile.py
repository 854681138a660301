"""Files that describe machines are read as all files of other people are: :mod:`p4perf.specs.strictfile`."""

from p4perf.specs.strictfile import read_strictly

__all__ = ["read_strictly"]
