"""Results of other tools as trials: readers (path in, values with their places out), and what a run needs of them.

A reader is an :class:`Importer`, found by the entry point group ``p4perf.importers``. It names what it finds by the
names of its source, says what each is in the words of p4perf where that is certain, and what it leaves out. Nothing
here writes.
"""

from p4perf.evaluation.imports.assembly import Assembly, Point, Result, assemble, read_sources
from p4perf.evaluation.imports.base import Importer, ImportOptions, LeftOut, Named, Place, Reading, Trial, Value

__all__ = [
    "Assembly",
    "ImportOptions",
    "Importer",
    "LeftOut",
    "Named",
    "Place",
    "Point",
    "Reading",
    "Result",
    "Trial",
    "Value",
    "assemble",
    "read_sources",
]
