"""How the queues of target vio are built: what does not depend on their sizes once, then the two processes."""

from __future__ import annotations

from p4perf.errors import CapabilityError
from p4perf.generators.program import Workload
from p4perf.generators.vio_c import CONFIGURATION, configuration
from p4perf.generators.virtual_io import VirtualIo
from p4perf.targets.base import BuildPlan, NodeFacts
from p4perf.targets.dpdk_c_build import NATIVE, harness_text

PRODUCT = "vio"
HARNESS_FILES = ("clock.h", "thread.h", "words.h", "vio.h", "words.c", "vio_main.c", "vio_process.c", "vio_measure.c")
QUEUE_FILES = ("clock.h", "vio.h", "vio_queue.h", "vio_pool.h", "vio_host.c", "vio_function.c")

_CONTEXT = ("cc_version", "cpu_model", "cpu_id", "machine")

_FLAGS = 'exec "${CC:-cc}" -std=gnu11 -O3 -Wall -Wextra -Wno-type-limits -D_GNU_SOURCE "-march=$1"'
_TRACED = "-O1"
"""Counts need no speed, and compile in half of the time."""

_HARNESS = f"{_FLAGS} -r -nostdlib -o harness.o words.c vio_main.c vio_process.c vio_measure.c"
_BUILD = f'{_FLAGS} "-DVIO_TRACE=$2" "$4" -o {PRODUCT} vio_host.c vio_function.c "$3/harness.o"'


def queues_of(workload: Workload) -> VirtualIo:
    """The queues of a workload.

    Raises:
        CapabilityError: it has none.
    """
    if workload.program.virtual_io is None:
        raise CapabilityError("vio measures nothing but virtual I/O", key="program.component", hint="use component vio")
    return workload.program.virtual_io


def build_plan(workload: Workload, facts: NodeFacts, *, march: str = NATIVE, trace: bool = False) -> BuildPlan:
    """The build of one set of sizes.

    Args:
        workload: with queues.
        facts: of the node.
        march: architecture, as the compiler names it.
        trace: with a directory of cache lines instead of speed.

    Raises:
        CapabilityError: see :func:`~p4perf.generators.vio_c.configuration`.
    """
    queues = queues_of(workload)
    context = {key: facts.text(key) for key in _CONTEXT}
    harness = BuildPlan(harness_text(HARNESS_FILES), (("sh", "-c", _HARNESS, "sh", march),), "harness.o", context)
    files = {CONFIGURATION: configuration(queues, workload.packets.frame_size_bytes), **harness_text(QUEUE_FILES)}
    command = ("sh", "-c", _BUILD, "sh", march, str(int(trace)), "{harness}", _TRACED if trace else "-O3")
    return BuildPlan(files, (command,), PRODUCT, context, {"harness": harness})
