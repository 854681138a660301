"""Build of the compiled parts; all other metadata is in pyproject.toml."""

from setuptools import Extension, setup

ENGINE = "p4perf/evaluation/fitting/engine"
SOURCES = ("module", "search", "fit", "growing", "passes")
HEADERS = ("engine", "vector_math")
# Sums over samples may be taken in any order, so that they vectorise; NaN and infinity keep their meaning.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"]
WARNINGS = ["-Wall", "-Wextra"]
QUEUE = "p4perf/models/queue"

setup(
    ext_modules=[
        Extension(
            "p4perf.evaluation.fitting.engine._kernel",
            sources=[f"{ENGINE}/{name}.c" for name in SOURCES],
            depends=[f"{ENGINE}/{name}.h" for name in HEADERS],
            extra_compile_args=["-std=gnu11", "-pthread", *FLAGS, *WARNINGS],
            extra_link_args=["-pthread"],
        ),
        Extension(
            "p4perf.models.queue._events",
            sources=[f"{QUEUE}/{name}.c" for name in ("module", "events")],
            depends=[f"{QUEUE}/events.h"],
            extra_compile_args=["-std=gnu11", "-O3", *WARNINGS],
        ),
        Extension(
            "p4perf.models.queue._sums",
            sources=[f"{QUEUE}/{name}.c" for name in ("sums_module", "sums")],
            depends=[f"{QUEUE}/sums.h"],
            extra_compile_args=["-std=gnu11", "-O3", *WARNINGS],
        ),
    ]
)
