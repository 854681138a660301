"""Results of other tools as trials: readers (path in, values with their places out), and what a run needs of them.

A reader is an :class:`Importer`, found by the entry point group ``p4perf.importers``. It names what it finds by the
names of its source, says what each is in the words of p4perf where that is certain, and what it leaves out. Nothing
here writes.
"""

from p4perf.evaluation.imports.assembly import Assembly as Assembly
from p4perf.evaluation.imports.assembly import assemble as assemble
from p4perf.evaluation.imports.assembly import read_sources as read_sources
from p4perf.evaluation.imports.base import ImportedValue as ImportedValue
from p4perf.evaluation.imports.base import Importer as Importer
from p4perf.evaluation.imports.base import ImportOptions as ImportOptions
from p4perf.evaluation.imports.base import LeftOut as LeftOut
from p4perf.evaluation.imports.base import Named as Named
from p4perf.evaluation.imports.base import Place as Place
from p4perf.evaluation.imports.base import Reading as Reading
