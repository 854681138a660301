"""Trials with a load generator in batches: what is offered is known before, and what came of it is told afterwards.

Both are :class:`~p4perf.experiment.load.LoadMeasurement` itself, which first asks a session that only notes the loads,
and then one that answers with what was measured. So a record of a batch is that of a trial that was run alone. What
cannot be so is a search, whose loads follow from what was seen before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from p4perf.errors import MeasurementError, UsageError
from p4perf.experiment.bench import with_served
from p4perf.experiment.load import LoadMeasurement
from p4perf.experiment.load_plan import LoadPlan, load_plan
from p4perf.experiment.planning import PlannedPoint
from p4perf.plugins import load_plugin
from p4perf.specs import Experiment
from p4perf.targets.base import JobResult, NodeFacts, Target
from p4perf.targets.service import ServedProgram
from p4perf.testbeds.batch.base import BatchTestbed, LoadJob, LoadOutcome, LoadPart
from p4perf.testbeds.batch.roles import NamedOffer, NamedPart, NamedStep, named_parts
from p4perf.testbeds.loadgen.base import Account, Load, LoadGenerator, LoadOffers, LoadSession
from p4perf.testbeds.serving import check_answer


class LoadTrials:
    """Trials of points with a load generator, as commands of two nodes.

    Args:
        target: the device.
        facts: of its node.
        testbed: where both nodes are.
    """

    def __init__(self, target: Target, facts: NodeFacts, testbed: BatchTestbed) -> None:
        self._target, self._facts, self._testbed = target, facts, testbed

    def job(self, name: str, planned: PlannedPoint) -> LoadJob:
        """A trial of a point.

        Raises:
            UsageError: its load generator answers between trials.
            CapabilityError: target or load generator cannot do it.
            TestbedError: there is no load generator.
        """
        plan = _plan(planned)
        offers = self._offers(planned)
        parts = [
            LoadPart(self._target.service(planned.plan, program, self._facts), tuple(map(offers.offer, loads)))
            for program, loads in _by_program(asked_loads(plan, offers))
        ]
        return LoadJob(name, tuple(parts), planned.label)

    def record(self, planned: PlannedPoint, name: str, outcome: LoadOutcome) -> dict[str, Any]:
        """The record of a trial, as :meth:`p4perf.experiment.load.LoadMeasurement.measure` returns it.

        Raises:
            MeasurementError: the device did not come up or went down, or a load was not offered; with node and step.
        """
        plan, offers = _plan(planned), self._offers(planned)
        loads = asked_loads(plan, offers)
        reader = _Reader(self._target, offers, outcome)
        accounts = reader.accounts(named_parts(self.job(name, planned)), loads)
        ready = {"generator": plan.generator, "node": f"{self._testbed.name}:{outcome.nodes['loadgen']}"}
        session = _Replayed(offers, ready, list(zip(loads, accounts, strict=True)))
        record = LoadMeasurement(session, plan, 0, None, attempts=1).measure()
        return with_served(record, self._target, self._facts) if plan.served else record

    def _offers(self, planned: PlannedPoint) -> LoadOffers:
        plan = _plan(planned)
        generator: LoadGenerator = load_plugin("p4perf.load_generators", plan.generator)()
        return generator.offers(planned.plan, plan.link, self._testbed.generator_facts())


def _plan(planned: PlannedPoint) -> LoadPlan:
    assert planned.load is not None  # noqa: S101 - nobody asks for others
    return planned.load


def asked_loads(plan: LoadPlan, offers: LoadOffers) -> tuple[Load, ...]:
    """All loads of a repetition, in order, where none depends on what was seen before."""
    asking = _Asking(offers)
    LoadMeasurement(asking, plan, 0, None, attempts=1).measure()
    return tuple(asking.asked)


def _by_program(loads: Sequence[Load]) -> Iterator[tuple[ServedProgram, tuple[Load, ...]]]:
    """Loads in a row that go through the same program."""
    at = 0
    while at < len(loads):
        program = loads[at].device
        assert program in ("program", "baseline")  # noqa: S101 - there are no others behind interfaces
        end = next((n for n in range(at, len(loads)) if loads[n].device != program), len(loads))
        yield program, tuple(loads[at:end])
        at = end


class _Asking(LoadSession):
    """Notes what is asked for."""

    def __init__(self, offers: LoadOffers) -> None:
        self.devices, self.shortest_s = offers.devices, offers.shortest_s
        self.ready: Mapping[str, Any] = {}
        self.asked: list[Load] = []

    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        self.asked.append(load)
        return Account(load.rate_pps, 1, 1, 1, 0, 0, 0, 0, 1.0, 1.0, (), None, {})


class _Replayed(LoadSession):
    """Answers with what was measured."""

    def __init__(self, offers: LoadOffers, ready: Mapping[str, Any], known: list[tuple[Load, Account]]) -> None:
        self.devices, self.shortest_s = offers.devices, offers.shortest_s
        self.ready = ready
        self._known = known

    def offer(self, load: Load, gate_ratio: float | None = None) -> Account:
        expected, account = self._known.pop(0)
        assert expected == load  # noqa: S101 - it is the same measurement
        return account


class _Reader:
    """Judges what two nodes did as the live testbeds do it: every step by the target, every load by the generator."""

    def __init__(self, target: Target, offers: LoadOffers, outcome: LoadOutcome) -> None:
        self._target, self._offers, self._outcome = target, offers, outcome
        self._dut, self._sender = (f"node {outcome.nodes[role]}" for role in ("dut", "loadgen"))

    def accounts(self, parts: Sequence[NamedPart], loads: Sequence[Load]) -> list[Account]:
        """What became of every load, in order."""
        found: list[Account] = []
        for part in parts:
            for step in part.prepare:
                self._step(step)
            self._answer(part, 0)
            for number, offer in enumerate(part.offers):
                found.append(self._load(part, offer, loads[len(found)], number))
            for step in part.release:
                self._step(step)
        return found

    def _load(self, part: NamedPart, named: NamedOffer, load: Load, number: int) -> Account:
        seen = {each.step.what: self._step(each) for each in (*named.before, *named.during, *named.after)}
        self._answer(part, number + 1)
        result = self._result(named.name, self._sender)
        texts = {name: self._outcome.left.get((named.name, name)) for name in named.offer.leaves}
        left = {name: text for name, text in texts.items() if text is not None}
        return self._offers.account(load, result, left, self._target.evidence(seen), self._sender)

    def _step(self, named: NamedStep) -> JobResult:
        result = self._result(named.name, f"{self._dut}, {named.step.what}")
        try:
            self._target.check_step(named.step, result)
        except MeasurementError as error:
            raise MeasurementError(f"{self._dut}, {error.message}", key=error.key, hint=error.hint) from error
        return result

    def _result(self, name: str, where: str) -> JobResult:
        result = self._outcome.results.get(name)
        if result is None:
            raise MeasurementError(f"{where}: {name} was not run, because something before it failed")
        return result

    def _answer(self, part: NamedPart, number: int) -> None:
        """What the device said of itself: when it came up, and after each load."""
        if part.service.main is None:
            return
        lines = self._outcome.said.get(part.main, ())
        if number >= len(lines):
            raise MeasurementError(f"{self._dut}, {self._target.label}: it did not say whether it is up ({part.main})")
        try:
            check_answer(lines[number], self._target.label, part.service, coming_up=number == 0)
        except MeasurementError as error:
            raise MeasurementError(f"{self._dut}: {error.message}", hint=error.hint) from error


def refuse_what_needs_answers(experiment: Experiment, target: Target, testbed: BatchTestbed) -> None:
    """Refuse experiments that cannot be measured in batches.

    Raises:
        UsageError: they need a load generator that is not there or that searches, or another frequency of the cores.
    """
    if target.is_served(NodeFacts({"load_generator": testbed.load_generator})):
        _refuse_searches(experiment, target, testbed)
    elif target.links and experiment.spec.asks_load:
        raise UsageError(
            f"testbed {testbed.label} measures the device alone, as its own source of packets: offered loads, "
            "throughput, loss and latency need a load generator that answers between trials",
            hint="use testbed local or ssh, or an experiment without load",
        )
    if any(point.cpu_frequency_ghz is not None for point in experiment.points):
        raise UsageError(
            f"testbed {testbed.label} does not set the frequency of cores", hint="use testbed local or ssh"
        )


def _refuse_searches(experiment: Experiment, target: Target, testbed: BatchTestbed) -> None:
    if not testbed.load_generator:
        raise UsageError(
            f"target {target.label} is loaded from outside, and testbed {testbed.label} has no load generator",
            hint="testbeds pos and ssh have one where their file has a node with the role loadgen and a load_generator",
        )
    plans = [load_plan(experiment.spec, point, (), experiment.capture, served=True) for point in experiment.points]
    if any(plan.searches for plan in plans):
        raise UsageError(
            f"testbed {testbed.label} cannot search a throughput (throughput_ndr, throughput_pdr, and loads that are a "
            "fraction of it): each load of a search follows from the one before, and nobody answers between trials",
            hint="sweep fixed rates (traffic.offered_load: {rate_mpps: ...}), or ask for receive_rate, that of an "
            "overload; testbed ssh searches",
        )
