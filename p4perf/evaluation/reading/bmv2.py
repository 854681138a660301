"""Programs in the JSON of bmv2, as p4c-bm2-ss (v1model) and p4c-bm2-psa (PSA) write it.

The way of a packet is that of simple_switch: parser, checksums that are verified, ingress; a packet that was dropped
there ends; egress, again so; checksums that are updated, deparser. In PSA ingress and egress each have a parser and a
deparser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.evaluation.reading.bmv2_parser import ParserReader
from p4perf.evaluation.reading.bmv2_pipeline import Actions, PipelineReader
from p4perf.evaluation.reading.bmv2_primitives import DROPPED, Primitives
from p4perf.evaluation.reading.bmv2_types import (
    FIELD_BITS,
    Declarations,
    calculation_bytes,
    declarations,
    located,
    place,
    takes_payload,
)
from p4perf.evaluation.reading.flow import Assigned, Effect, Flow, Step, Valid
from p4perf.evaluation.reading.tree import Tree
from p4perf.models.program.constructs import Construct, construct
from p4perf.models.program.graph import Edge

SENT, LOST = "sent", "dropped"
"""Names of the nodes with which ways end."""

CLONE_BYTES = 60

CLEAN = ("instance_type", "parser_error", "checksum_error")
"""Standard metadata that is zero for packets from a port that are as they should be."""


def is_bmv2(root: Tree) -> bool:
    """Whether a JSON document looks like a program for bmv2."""
    return isinstance(root.value, dict) and {"header_types", "parsers", "pipelines"} <= set(root.value)


def read_bmv2(root: Tree, name: str, entries: Mapping[str, int], clone_bytes: int | None = None) -> Flow:
    """The steps of a program.

    Args:
        root: the document.
        name: of the program.
        entries: how many entries tables hold, where that is known.
        clone_bytes: size of cloned packets.

    Raises:
        DataError: the document is not a program for bmv2, or an empty one.
    """
    if not is_bmv2(root):
        raise root.error(
            "is JSON, but no program for bmv2: it has no header_types, parsers and pipelines",
            hint="p4c-bm2-ss PROGRAM.p4 -o PROGRAM.json makes one",
        )
    reader = _Reader(root, name, declarations(root), entries, clone_bytes or CLONE_BYTES)
    return reader.read()


@dataclass
class _Reader:
    root: Tree
    name: str
    known: Declarations
    entries: Mapping[str, int]
    clone_bytes: int
    steps: dict[str, Step] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    def read(self) -> Flow:
        parsers, pipelines = list(self.root.each("parsers")), list(self.root.each("pipelines"))
        deparsers = list(self.root.each("deparsers"))
        if not parsers or not pipelines:
            raise self.root.error("is an empty program: it has no parser or no pipeline")
        externs = {e.text("name"): e for e in self.root.each("extern_instances")}
        primitives = Primitives(self.known, externs, "", self.clone_bytes, self._remark)
        actions = {a.whole("id"): a for a in self.root.each("actions")}
        by_name: dict[str, Tree] = {}
        for action in actions.values():
            by_name.setdefault(action.text("name"), action)
        table = Actions(actions, by_name, primitives)
        self._unknown_tables(pipelines)
        self.steps[SENT] = Step(SENT, "end")
        self.steps[LOST] = Step(LOST, "end")
        end = SENT
        # Backwards, so that every part knows what comes after it.
        for n in reversed(range(len(pipelines))):
            pipeline = pipelines[n]
            if n < len(deparsers) and (len(deparsers) > 1 or n == len(pipelines) - 1):
                end = self._deparser(deparsers[n], end)
            elif n == len(pipelines) - 1 and deparsers:
                end = self._deparser(deparsers[0], end)
            end = self._gate(pipeline.text("name"), end)
            end = PipelineReader(pipeline, table, self.entries, end, self._remark, self.steps).read()
            if n == 0:
                end = self._verified(end)
            if n < len(parsers):
                end = self._parser(parsers[n], primitives, end, psa=len(parsers) > 1)
        if self.known.undeclared:
            names = ", ".join(list(self.known.undeclared)[:3])
            self._remark(f"fields that the program does not declare are counted with {FIELD_BITS} bit: {names}")
        remarks = tuple(self.remarks)
        return Flow(self.name, self.steps, end, "bmv2", remarks)

    def _remark(self, text: str) -> None:
        self.remarks[text] = None

    def _unknown_tables(self, pipelines: list[Tree]) -> None:
        names = {t.text("name") for p in pipelines for t in p.each("tables")}
        for name in self.entries:
            if name not in names:
                raise self.root.error(f"there is no table {name!r}")

    def _parser(self, tree: Tree, primitives: Primitives, accept: str, *, psa: bool) -> str:
        found = ParserReader(tree, primitives, accept, self._remark).steps()
        for step in found:
            if step.name in self.steps:
                raise tree.error(f"two things are called {step.name!r}")
            self.steps[step.name] = step
        start = f"{tree.text('name')} begin"
        effects: list[Effect] = [Valid(h, False) for h in self.known.headers if h not in self.known.metadata]
        # PSA drops what nobody sends (psa_ingress_output_metadata.drop is true at the start of ingress).
        effects.append(Assigned(DROPPED, int(psa and tree.text("name").startswith("ingress"))))
        # bmv2 sets metadata of the program to zero (docs/simple_switch.md). Packets are counted as ones that come from
        # a port, so that their instance type is 0, and without errors.
        own = [h for h in self.known.metadata if h != "standard_metadata" and not h.startswith("psa_")]
        effects += [Assigned(f"{h}.{name}", 0) for h in sorted(own) for name, _ in self.known.headers[h].fields]
        effects += [Assigned(f"standard_metadata.{name}", 0) for name in CLEAN]
        self.steps[start] = Step(start, "block", (), (Edge("", found[0].name),), effects=tuple(effects))
        return start

    def _gate(self, pipeline: str, after: str) -> str:
        """Where packets end that a pipeline dropped."""
        name = f"{pipeline} end"
        self.steps[name] = Step(name, "condition", (), (Edge("true", LOST), Edge("false", after)), test=(DROPPED, 1))
        return name

    def _checksums(self, key: str) -> list[tuple[Tree, Tree]]:
        found = []
        for checksum in self.root.each("checksums"):
            if checksum.flag(key, default=True):
                name = checksum.text("calculation")
                if name not in self.known.calculations:
                    raise checksum.at("calculation").error(f"there is no calculation {name!r}")
                found.append((checksum, self.known.calculations[name]))
        return found

    def _checksum(self, checksum: Tree, calculation: Tree, *, update: bool) -> Construct:
        name = checksum.text("name")
        where = located(f"checksum {name}", place(checksum))
        if takes_payload(calculation):
            self._remark(f"checksum {name} goes over the payload, which is not counted")
        size = calculation_bytes(self.known, calculation)
        return construct("checksum update" if update else "checksum verify", where, bytes=size)

    def _verified(self, after: str) -> str:
        found = self._checksums("verify")
        if found:
            self._remark("checksums are counted as right ones")
        for checksum, calculation in reversed(found):
            after = self._conditional(checksum, self._checksum(checksum, calculation, update=False), after)
        return after

    def _conditional(self, checksum: Tree, what: Construct, after: str) -> str:
        """A checksum that is only calculated where its condition holds."""
        name = f"{checksum.text('name')} {what.kind.split()[1]}"
        asked = Step(name, "block", (what,), (Edge("", after),), what.where)
        if not checksum.has("if_cond"):
            self.steps[name] = asked
            return name
        values = Primitives(self.known, {}, "", self.clone_bytes, self._remark).values
        condition = checksum.at("if_cond")
        fact = values.fact(condition)
        if isinstance(condition.value, dict) and condition.optional("type") == "bool":
            if condition.value.get("value") is not True:
                return after
            self.steps[name] = asked
            return name
        if fact is not None and fact[1]:
            self.steps[name] = Step(name, "block", (), (Edge("", after),), what.where, present=((fact[0], what),))
            return name
        self.steps[name] = asked
        test, inverted = (None, False) if fact is None else (fact[0], not fact[1])
        edges = (Edge("true", name), Edge("false", after))
        decision = f"{name}?"
        constructs = tuple(values.conditions(condition, what.where))
        self.steps[decision] = Step(decision, "condition", constructs, edges, what.where, (), test, inverted)
        return decision

    def _deparser(self, tree: Tree, after: str) -> str:
        name = tree.text("name")
        where = located(f"deparser {name}", place(tree))
        emitted = []
        for item in tree.each("order"):
            header = self.known.header(item)
            emitted.append((item.text(), construct("emit", f"{where}, {item.text()}", bytes=-(-header.bits // 8))))
        calls = []
        own = Primitives(
            self.known, {e.text("name"): e for e in self.root.each("extern_instances")}, where, 0, self._remark
        )
        for call in tree.each("primitives"):
            calls += own.translate(call, where)[0]
        unique = name if name not in self.steps else f"{name} deparser"
        self.steps[unique] = Step(unique, "deparser", tuple(calls), (Edge("", after),), where, present=tuple(emitted))
        start = unique
        if after == SENT:
            for checksum, calculation in reversed(self._checksums("update")):
                start = self._conditional(checksum, self._checksum(checksum, calculation, update=True), start)
        return start
