"""A device that is up for a load generator of its own: :class:`~p4perf.targets.roles.Service`, carried out."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from p4perf.errors import MeasurementError, P4PerfError
from p4perf.targets.base import Job, JobResult, NodeFacts, PointPlan, ending
from p4perf.targets.roles import ServedProgram, Serves, Service, ServiceStep
from p4perf.testbeds.base import Conversation, Testbed

ANSWER_S = 30.0
"""How long an answer may take beyond what the service allows itself, in seconds."""

SCRIPT = "serve.sh"

_WHY = {-1: "it says that it will not forward packets", -2: "it was not ready within {limit:g} s"}


class ServedDevice:
    """The device of a point, which runs its program or the baseline. A context manager: it is down in the end."""

    def __init__(self, target: Serves, plan: PointPlan, testbed: Testbed, facts: NodeFacts, folder: Path) -> None:
        self._target, self._plan, self._testbed, self._facts, self._folder = target, plan, testbed, facts, folder
        self._up = contextlib.ExitStack()
        self._program: ServedProgram | None = None
        self._service = Service()
        self._main: Conversation | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: object) -> None:
        self._down(failure)

    def switch(self, program: ServedProgram) -> None:
        """Bring the device up with a program, unless it runs it already.

        Raises:
            BuildError, TestbedError: see :meth:`p4perf.testbeds.base.Testbed.run`.
            CapabilityError: the target has no ports.
            MeasurementError: it does not come up; with the last lines of what it printed.
        """
        if program == self._program:
            return
        self._down()
        self._service = self._target.service(self._plan, program, self._facts)
        with contextlib.ExitStack() as up:
            up.push(self._release)
            for step in self._service.prepare:
                self._step(step)
            if self._service.main is not None:
                self._main = up.enter_context(self._started(self._service))
            self._up = up.pop_all()
        self._program = program
        time.sleep(self._service.settle_s)

    def evidence(self, results: Mapping[str, JobResult]) -> Mapping[str, Any]:
        """What the results of commands around a trial say, as JSON data."""
        return self._target.evidence(results)

    def check(self) -> None:
        if self._main is not None:
            self._answer(self._main, "state", ANSWER_S)

    @contextlib.contextmanager
    def watched(self) -> Iterator[dict[str, JobResult]]:
        """Run the commands around a trial, which is the body; all of their results are there behind it.

        Errors as in :meth:`switch`.
        """
        service = self._service
        results = {step.what: self._step(step) for step in service.before}
        with ThreadPoolExecutor(max_workers=max(1, len(service.during))) as pool:
            begun = {step.what: pool.submit(self._step, step) for step in service.during}
            yield results
            results |= {what: future.result() for what, future in begun.items()}
        results |= {step.what: self._step(step) for step in service.after}
        self.check()

    def _step(self, step: ServiceStep) -> JobResult:
        result = self._testbed.run(step.job, self._folder)
        self._target.check_step(step, result)
        return result

    def _release(self, kind: object, failure: BaseException | None, trace: object) -> None:
        """Run all steps of the release, even if one fails; the first failure is raised."""
        failed: P4PerfError | None = None
        for step in self._service.release:
            try:
                self._step(step)
            except P4PerfError as error:
                failed = failed or error
        if failed is not None and failure is None:
            raise failed

    def _down(self, failure: BaseException | None = None) -> None:
        """Bring it down; a failure that was there before is not hidden by one of the release."""
        self._program, self._main = None, None
        up, self._up = self._up, contextlib.ExitStack()
        up.__exit__(type(failure) if failure else None, failure, failure.__traceback__ if failure else None)

    @contextlib.contextmanager
    def _started(self, service: Service) -> Iterator[Conversation]:
        main = service.main
        assert main is not None  # noqa: S101 - the caller looked
        script = (files("p4perf.testbeds") / SCRIPT).read_bytes()
        words = (service.ready, service.broken, str(round(service.ready_timeout_s)))
        argv = ("sh", f"{{folder}}/{SCRIPT}", *words, *main.argv)
        job = Job(argv, main.timeout_s, main.build, {**main.files, SCRIPT: script})
        with self._testbed.converse(job, self._folder) as conversation:
            self._answer(conversation, None, service.ready_timeout_s + ANSWER_S)
            yield conversation
            with contextlib.suppress(P4PerfError):
                conversation.ask("stop", ANSWER_S)

    def _answer(self, conversation: Conversation, word: str | None, timeout_s: float) -> None:
        line = conversation.answer(timeout_s) if word is None else conversation.ask(word, timeout_s)
        check_answer(line, self._target.label, self._service, coming_up=word is None)


def check_answer(line: str, label: str, service: Service, *, coming_up: bool) -> None:
    """Judge an answer of ``serve.sh``.

    Raises:
        MeasurementError: the device is not up; with the last lines of what it printed.
    """
    try:
        said: Mapping[str, Any] = json.loads(line)
        if said.get("up"):
            return
        status, log = int(said["down"]), base64.b64decode(said["log"]).decode(errors="replace")
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise MeasurementError(f"{label}: unreadable answer: {line[:100]!r}") from error
    # A shell reports 128 and the number of the signal.
    ended = ending(128 - status if status > 128 else status)
    why = _WHY.get(status, f"it {ended}").format(limit=service.ready_timeout_s)
    lines = " / ".join(log.strip().splitlines()[-3:])
    raise MeasurementError(
        f"{label} {'failed to start' if coming_up else 'is down'}: {why}{f': {lines}' if lines else ''}"
    )
