"""Programs in the JSON of bmv2, as p4c-bm2-ss (v1model) and p4c-bm2-psa (PSA) write it.

The path of a packet is that of simple_switch: parser, checksums that are verified, ingress; a packet that was dropped
there ends; egress, likewise; checksums that are updated, deparser. In PSA ingress and egress each have a parser and a
deparser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from p4perf.models.program.graph import Construct, Edge, construct
from p4perf.programs.reading import bmv2_types as types
from p4perf.programs.reading.bmv2_parser import DROPPED, ParserReader, Primitives
from p4perf.programs.reading.flow import FULL, OTHERS, Assigned, Effect, Flow, Instruction, Step, Valid, steps_of
from p4perf.programs.reading.tree import Tree

MEMBER_BITS = 32
"""Width of the number of a member of an action profile (bmv2's mbr_hdl_t)."""


@dataclass(frozen=True)
class Actions:
    """The actions of a program."""

    by_id: Mapping[int, Tree]
    by_name: Mapping[str, Tree]
    primitives: Primitives

    def of(self, tree: Tree) -> Tree:
        """The action that an object names by its id."""
        number = tree.whole("action_id")
        if number not in self.by_id:
            raise tree.at("action_id").error("there is no action of this id")
        return self.by_id[number]

    def data_bytes(self, name: str) -> int:
        tree = self.by_name.get(name)
        return -(-sum(p.whole("bitwidth") for p in tree.each("runtime_data")) // 8) if tree else 0

    def steps(self, tree: Tree, name: str, end: str, exit_to: str, taken: Mapping[str, Step]) -> list[Step]:
        where = types.located(f"action {tree.text('name')}", tree)
        widths = tuple(p.whole("bitwidth") for p in tree.each("runtime_data"))
        own = replace(self.primitives, runtime_bits=widths)
        calls = list(tree.each("primitives"))
        code = [self._instruction(own, where, call, n, len(calls), exit_to) for n, call in enumerate(calls)]
        return steps_of(name, code, end, where=where, taken=taken)

    @staticmethod
    def _instruction(own: Primitives, where: str, call: Tree, number: int, count: int, exit_to: str) -> Instruction:
        op = call.text("op")
        if types.place(call):
            where = types.located(where.split(", ")[0], call)
        if op == "exit":
            return Instruction(jumps=(("", exit_to),), falls=None)
        if op == "_jump":
            return Instruction(jumps=(("", _target(call, 0, number, count)),), falls=None)
        if op == "_jump_if_zero":
            asked = call.at("parameters").item(0)
            constructs = tuple(own.values.conditions(asked, where))
            to = _target(call, 1, number, count)
            test, inverted = own.values.fact(asked)
            jumps: tuple[tuple[str, int | str], ...] = (("false", to),)
            return Instruction(constructs, (), jumps, "true", test=test, inverted=inverted, where=where)
        met, effects = own.translate(call, where)
        return Instruction(tuple(met), tuple(effects))


def _target(call: Tree, parameter: int, number: int, count: int) -> int:
    offset = call.at("parameters").item(parameter).at("value").number()
    if not number < offset <= count:
        raise call.error(f"jumps to primitive {offset}, not to one after it")
    return offset


@dataclass
class PipelineReader:
    """Reads one pipeline.

    Args:
        entries: how many entries tables hold, where that is known.
        end: name of the step after it.
        taken: steps of the program so far; those of this pipeline are added.
    """

    tree: Tree
    actions: Actions
    entries: Mapping[str, int]
    end: str
    remark: Callable[[str], None]
    taken: dict[str, Step]
    names: dict[str, str] = field(default_factory=dict)

    def read(self) -> str:
        """Add its steps; the name of the first one."""
        groups = ("tables", "conditionals", "action_calls")
        nodes = types.check_unique(t for group in groups for t in self.tree.each(group))
        for name in nodes:
            taken = name in self.taken
            self.names[name] = f"{self.tree.text('name')}/{name}" if taken else name
        profiles = {p.text("name"): p for p in self.tree.each("action_profiles")}
        for condition in self.tree.each("conditionals"):
            self._add([self._condition(condition)])
        for call in self.tree.each("action_calls"):
            self._call(call)
        for table in self.tree.each("tables"):
            self._table(table, profiles)
        return self._next(self.tree, "init_table")

    def _add(self, steps: list[Step]) -> str:
        self.taken.update((step.name, step) for step in steps)
        return steps[0].name

    def _next(self, tree: Tree, key: str) -> str:
        if not tree.has(key):
            return self.end
        name = tree.text(key)
        if name not in self.names:
            raise tree.at(key).error(f"there is no table or condition {name!r}")
        return self.names[name]

    def _condition(self, tree: Tree) -> Step:
        text = types.fragment(tree)
        name = tree.text("name")
        where = types.located(f"condition {text or name}", tree)
        values = self.actions.primitives.values
        asked = tree.at("expression")
        test, inverted = values.fact(asked)
        constructs = tuple(values.conditions(asked, where))
        edges = (Edge("true", self._next(tree, "true_next")), Edge("false", self._next(tree, "false_next")))
        return Step(self.names[name], "condition", constructs, edges, where, test=test, inverted=inverted)

    def _call(self, tree: Tree) -> None:
        action, name = self.actions.of(tree), self.names[tree.text("name")]
        self._add(self.actions.steps(action, name, self._next(tree, "next_node"), self.end, self.taken))

    def _table(self, tree: Tree, profiles: Mapping[str, Tree]) -> None:
        name = tree.text("name")
        step_name = self.names[name]
        where = types.located(f"table {name}", tree)
        actions = [a.text() for a in tree.each("actions")]
        for n, action in enumerate(actions):
            if action not in self.actions.by_name:
                raise tree.at("actions").item(n).error(f"there is no action {action!r}")
        default, constant = self._default(tree)
        keys = list(tree.each("key"))
        entries = list(tree.each("entries"))
        hits = self._possible(tree, actions, default, entries)
        reached: dict[tuple[str, str], str] = {}

        def edge(label: str, action: str | None, hit: bool) -> Edge:
            return Edge(label, self._action(tree, step_name, action, hit, reached))

        def found_edge(action: str) -> Edge:
            if action != default or entries:
                return edge(action, action, True)
            self.remark(OTHERS)
            return replace(edge(action, action, True), probability=0.0)

        if not keys:
            # Without a key there are no entries: only the default action runs, whichever that is.
            possible: list[str | None] = [*actions] or [default]
            if default is not None and (constant or len(actions) < 2):
                possible = [default]
            edges = tuple(edge(action or "", action, False) for action in possible)
            self._add([Step(step_name, "table", self._beside(tree, where), edges, where)])
            return
        if len(hits) == 1:
            hit = edge("hit", hits[0], True)
        else:
            found = Step(f"{step_name} hit", "block", (), tuple(map(found_edge, hits)), where)
            hit = Edge("hit", self._add([found]) if hits else self._action(tree, step_name, None, True, reached))
        miss = edge("miss", default, False)
        constructs = (*self._lookup(tree, profiles, keys, len(entries), where), *self._beside(tree, where))
        self._add([Step(step_name, "table", constructs, (hit, miss), where)])

    def _default(self, tree: Tree) -> tuple[str | None, bool]:
        """The default action, and whether it cannot be changed."""
        if not tree.has("default_entry"):
            return None, False
        entry = tree.at("default_entry")
        return self.actions.of(entry).text("name"), entry.flag("action_const")

    def _possible(self, tree: Tree, actions: list[str], default: str | None, entries: list[Tree]) -> list[str]:
        """Actions that entries may have: those of constant entries, or all but a default that does nothing."""
        if entries:
            numbers = [e.at("action_entry").whole("action_id") for e in entries]
            names = dict.fromkeys(self.actions.by_id[n].text("name") for n in numbers if n in self.actions.by_id)
            return list(names)
        idle = default is not None and not self.actions.by_name[default].value.get("primitives")
        return [a for a in actions if a != default or not idle] or actions

    def _action(
        self, tree: Tree, table: str, action: str | None, hit: bool, reached: dict[tuple[str, str], str]
    ) -> str:
        """The first step of an action that a table runs."""
        to = self._next(*types.following(tree, action or "", hit=hit))
        if action is None:
            return to
        if (action, to) not in reached:
            name = f"{table}:{action}" if not any(a == action for a, _ in reached) else f"{table}:{action} on miss"
            steps = self.actions.steps(self.actions.by_name[action], name, to, self.end, self.taken)
            reached[action, to] = self._add(steps)
        return reached[action, to]

    def _lookup(
        self, tree: Tree, profiles: Mapping[str, Tree], keys: list[Tree], constant: int, where: str
    ) -> list[Construct]:
        name = tree.text("name")
        known = self.actions.primitives.known
        bits = sum(self.actions.primitives.values.key_bits(key) for key in keys)
        size = tree.whole("max_size") if tree.has("max_size") else 0
        entries = self.entries.get(name, constant or size)
        if name not in self.entries and not constant:
            self.remark(FULL)
        data = max((self.actions.data_bytes(a.text()) for a in tree.each("actions")), default=0)
        profile = tree.optional("action_profile") if tree.optional("type") not in (None, "simple") else None
        found = [
            construct(
                "lookup",
                where,
                match_kind=tree.text("match_type"),
                entries=entries,
                key_bits=bits,
                action_data_bytes=data if profile is None else MEMBER_BITS // 8,
                hit=0.5,
            )
        ]
        if profile is None:
            return found
        if profile not in profiles:
            raise tree.at("action_profile").error(f"there is no action profile {profile!r}")
        declared = profiles[profile]
        if declared.has("selector"):
            selector = declared.at("selector")
            size = types.calculation_bytes(known, selector)
            found.append(construct("hash", where, algorithm=selector.text("algo"), bytes=size))
        members = declared.whole("max_size") if declared.has("max_size") else size
        found.append(
            construct(
                "lookup",
                f"{where}, action profile {profile}",
                match_kind="exact",
                entries=min(members, entries) if entries else members,
                key_bits=MEMBER_BITS,
                action_data_bytes=data,
                hit=1.0,
            )
        )
        return found

    def _beside(self, tree: Tree, where: str) -> tuple[Construct, ...]:
        """What a table does for each packet beside its lookup."""
        cells = tree.whole("max_size") if tree.has("max_size") else 1
        found = []
        if tree.flag("with_counters"):
            found.append(construct("counter", where, cells=cells))
        if tree.has("direct_meters"):
            found.append(construct("meter", where, cells=cells))
        if tree.flag("support_timeout"):
            found.append(construct("unknown", where, name="idle timeout"))
        return tuple(found)


SENT, LOST = "sent", "dropped"
"""Names of the nodes with which paths end."""

CLONE_BYTES = 60

CLEAN = ("instance_type", "parser_error", "checksum_error")
"""Standard metadata that is zero for packets from a port that are as they should be."""


def read_bmv2(root: Tree, name: str, entries: Mapping[str, int], clone_bytes: int | None = None) -> Flow:
    """The steps of a program, with the numbers of entries that are known of its tables, and the size of cloned packets.

    Raises:
        DataError: the document is not a program for bmv2, or an empty one.
    """
    reader = _Reader(root, name, types.declarations(root), entries, clone_bytes or CLONE_BYTES)
    return reader.read()


@dataclass
class _Reader:
    root: Tree
    name: str
    known: types.Declarations
    entries: Mapping[str, int]
    clone_bytes: int
    steps: dict[str, Step] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    def read(self) -> Flow:
        parsers, pipelines = list(self.root.each("parsers")), list(self.root.each("pipelines"))
        deparsers = list(self.root.each("deparsers"))
        if not parsers or not pipelines:
            raise self.root.error("is an empty program: it has no parser or no pipeline")
        actions = {a.whole("id"): a for a in self.root.each("actions")}
        by_name: dict[str, Tree] = {}
        for action in actions.values():
            by_name.setdefault(action.text("name"), action)
        table = Actions(actions, by_name, self.primitives)
        self._unknown_tables(pipelines)
        self.steps |= {name: Step(name, "end") for name in (SENT, LOST)}
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
                end = self._parser(parsers[n], end, psa=len(parsers) > 1)
        if self.known.undeclared:
            names = ", ".join(list(self.known.undeclared)[:3])
            self._remark(f"fields that the program does not declare are counted with {types.FIELD_BITS} bit: {names}")
        return Flow(self.name, self.steps, end, "bmv2", tuple(self.remarks))

    @cached_property
    def primitives(self) -> Primitives:
        externs = {e.text("name"): e for e in self.root.each("extern_instances")}
        return Primitives(self.known, externs, self.clone_bytes, self._remark)

    def _remark(self, text: str) -> None:
        self.remarks[text] = None

    def _unknown_tables(self, pipelines: list[Tree]) -> None:
        names = {t.text("name") for p in pipelines for t in p.each("tables")}
        for name in self.entries:
            if name not in names:
                raise self.root.error(f"there is no table {name!r}")

    def _parser(self, tree: Tree, accept: str, *, psa: bool) -> str:
        found = ParserReader(tree, self.primitives, accept).steps()
        for step in found:
            if step.name in self.steps:
                raise tree.error(f"two things are called {step.name!r}")
            self.steps[step.name] = step
        start = f"{tree.text('name')} begin"
        effects: list[Effect] = [Valid(h, False) for h in self.known.headers if h not in self.known.metadata]
        # PSA drops packets that are not sent (psa_ingress_output_metadata.drop is true at the start of ingress).
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
        where = types.located(f"checksum {name}", checksum)
        if types.takes_payload(calculation):
            self._remark(f"checksum {name} goes over the payload, which is not counted")
        size = types.calculation_bytes(self.known, calculation)
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
        values = types.Expressions(self.known)
        condition = checksum.at("if_cond")
        test, inverted = values.fact(condition)
        if isinstance(condition.value, dict) and condition.optional("type") == "bool":
            if condition.value.get("value") is not True:
                return after
            self.steps[name] = asked
            return name
        if test is not None and not inverted:
            self.steps[name] = Step(name, "block", (), (Edge("", after),), what.where, present=((test, what),))
            return name
        self.steps[name] = asked
        edges = (Edge("true", name), Edge("false", after))
        decision = f"{name}?"
        constructs = tuple(values.conditions(condition, what.where))
        self.steps[decision] = Step(decision, "condition", constructs, edges, what.where, (), test, inverted)
        return decision

    def _deparser(self, tree: Tree, after: str) -> str:
        name = tree.text("name")
        where = types.located(f"deparser {name}", tree)
        emitted = []
        for item in tree.each("order"):
            header = self.known.header(item)
            emitted.append((item.text(), construct("emit", f"{where}, {item.text()}", bytes=-(-header.bits // 8))))
        calls = tuple(c for call in tree.each("primitives") for c in self.primitives.translate(call, where)[0])
        start = name if name not in self.steps else f"{name} deparser"
        self.steps[start] = Step(start, "deparser", calls, (Edge("", after),), where, present=tuple(emitted))
        if after == SENT:
            for checksum, calculation in reversed(self._checksums("update")):
                start = self._conditional(checksum, self._checksum(checksum, calculation, update=True), start)
        return start
