"""What a worker does: several series come as bytes, their results go as bytes.

Everything is pickled one series at a time and by nobody else, so that one that cannot be sent or read fails alone, and
nothing depends on how a cluster serialises.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from p4perf.errors import TestbedError, UsageError
from p4perf.evaluation.fitting.component import FitOptions
from p4perf.evaluation.fitting.many.series import NamedSamples, SeriesResult, fit_series
from p4perf.version import __version__


@dataclass(frozen=True)
class Done:
    """What came back of a chunk.

    Args:
        seconds: time that the worker needed.
        results: one for each series, in their order, without labels.
    """

    seconds: float
    results: tuple[SeriesResult, ...]


def pack_options(options: FitOptions) -> bytes:
    """Options for workers, which use one thread each.

    Raises:
        UsageError: they cannot be sent to another process.
    """
    try:
        return pickle.dumps(replace(options, threads=1))
    except Exception as error:
        raise UsageError(
            f"the options cannot be sent to other processes: {error}",
            hint="templates and split finders must be instances of classes of a module, without lambdas; "
            "or use processes=1",
        ) from error


def pack_series(series: NamedSamples) -> bytes:
    """One series for a worker; its labels stay here."""
    return pickle.dumps(replace(series, labels={}, name=series.model_name))


def pack_chunk(options: bytes, series: Sequence[bytes]) -> bytes:
    """What :func:`fit_chunk` takes."""
    return pickle.dumps((__version__, options, list(series)))


def fit_chunk(chunk: bytes) -> bytes:
    """Fit several series; runs in a worker.

    Raises:
        TestbedError: this worker has another version of p4perf, or cannot read the options.
    """
    began = time.perf_counter()
    version, options_read, items = pickle.loads(chunk)  # noqa: S301 - from the process that we work for
    if version != __version__:
        raise TestbedError(f"a worker has p4perf {__version__}, but {version} is used here")
    try:
        options: FitOptions = pickle.loads(options_read)  # noqa: S301
    except Exception as error:
        raise TestbedError(
            f"the workers cannot read the options: {type(error).__name__}: {error}",
            hint="install the module with your templates or split finders where the workers run",
        ) from error
    results = [_packed(item, options) for item in items]
    return pickle.dumps((time.perf_counter() - began, results))


def _packed(item: bytes, options: FitOptions) -> bytes:
    try:
        series: NamedSamples = pickle.loads(item)  # noqa: S301
        return pickle.dumps(fit_series(series, options))
    except Exception as error:
        return pickle.dumps(SeriesResult.failed({}, error))


def unpack_results(answer: bytes) -> Done:
    """Read what :func:`fit_chunk` gave back."""
    seconds, results = pickle.loads(answer)  # noqa: S301 - from our own workers
    return Done(seconds, tuple(_unpacked(result) for result in results))


def _unpacked(result: bytes) -> SeriesResult:
    try:
        found: Any = pickle.loads(result)  # noqa: S301
    except Exception as error:
        return SeriesResult.failed({}, error)
    assert isinstance(found, SeriesResult)  # noqa: S101 - nothing else is packed
    return found
