"""Pipelines of bmv2 as steps: tables with their actions, conditions, calls of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from p4perf.evaluation.reading.blocks import Instruction, steps_of
from p4perf.evaluation.reading.bmv2_primitives import Primitives
from p4perf.evaluation.reading.bmv2_types import calculation_bytes, check_unique, fragment, located, place
from p4perf.evaluation.reading.flow import FULL, OTHERS, Step
from p4perf.evaluation.reading.tree import Tree
from p4perf.models.program.constructs import Construct, construct
from p4perf.models.program.graph import Edge

MEMBER_BITS = 32
"""Width of the number of a member of an action profile (bmv2's mbr_hdl_t)."""


@dataclass(frozen=True)
class Actions:
    """The actions of a program."""

    by_id: Mapping[int, Tree]
    by_name: Mapping[str, Tree]
    primitives: Primitives

    def data_bytes(self, name: str) -> int:
        """Bytes of the parameters of an action."""
        tree = self.by_name.get(name)
        return -(-sum(p.whole("bitwidth") for p in tree.each("runtime_data")) // 8) if tree else 0

    def steps(self, tree: Tree, name: str, end: str, exit_to: str, taken: Mapping[str, Step]) -> list[Step]:
        """Steps of an action, the first one first.

        Raises:
            DataError: the action is not what it should be.
        """
        where = located(f"action {tree.text('name')}", place(tree))
        widths = tuple(p.whole("bitwidth") for p in tree.each("runtime_data"))
        own = replace(self.primitives, where=where, runtime_bits=widths)
        calls = list(tree.each("primitives"))
        code = [self._instruction(own, call, n, len(calls), exit_to) for n, call in enumerate(calls)]
        return steps_of(name, code, end, where=where, taken=taken)

    def _instruction(self, own: Primitives, call: Tree, number: int, count: int, exit_to: str) -> Instruction:
        op = call.text("op")
        where = located(own.where.split(", ")[0], place(call)) if place(call) else own.where
        if op == "exit":
            return Instruction(jumps=(("", exit_to),), falls=None)
        if op == "_jump":
            return Instruction(jumps=(("", _target(call, 0, number, count)),), falls=None)
        if op == "_jump_if_zero":
            asked = call.at("parameters").item(0)
            constructs = tuple(own.values.conditions(asked, where))
            to = _target(call, 1, number, count)
            fact = own.values.fact(asked)
            test, inverted = (None, False) if fact is None else (fact[0], not fact[1])
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
        tree: the pipeline.
        actions: of the program.
        entries: how many entries tables hold, where that is known.
        end: name of the step after it.
        remark: is told what a reader should know.
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
        """Add its steps; the name of the first one.

        Raises:
            DataError: the pipeline is not what it should be.
        """
        groups = ("tables", "conditionals", "action_calls")
        nodes = check_unique(t for group in groups for t in self.tree.each(group))
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
        text = fragment(tree)
        name = tree.text("name")
        where = located(f"condition {text or name}", place(tree))
        values = self.actions.primitives.values
        asked = tree.at("expression")
        fact = values.fact(asked)
        constructs = tuple(values.conditions(asked, where))
        edges = (Edge("true", self._next(tree, "true_next")), Edge("false", self._next(tree, "false_next")))
        test, inverted = (None, False) if fact is None else (fact[0], not fact[1])
        return Step(self.names[name], "condition", constructs, edges, where, test=test, inverted=inverted)

    def _call(self, tree: Tree) -> None:
        number = tree.whole("action_id")
        if number not in self.actions.by_id:
            raise tree.at("action_id").error("there is no action of this id")
        name = self.names[tree.text("name")]
        self._add(
            self.actions.steps(self.actions.by_id[number], name, self._next(tree, "next_node"), self.end, self.taken)
        )

    def _table(self, tree: Tree, profiles: Mapping[str, Tree]) -> None:
        name = tree.text("name")
        step_name = self.names[name]
        where = located(f"table {name}", place(tree))
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
        number = entry.whole("action_id")
        if number not in self.actions.by_id:
            raise entry.at("action_id").error("there is no action of this id")
        return self.actions.by_id[number].text("name"), entry.flag("action_const")

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
        following = tree.at("next_tables")
        marker = "__HIT__" if hit else "__MISS__"
        key = marker if following.names(marker) else action or ""
        to = self._next(following, key) if following.names(key) else self._next(tree, "base_default_next")
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
        bits = 0
        for key in keys:
            target = key.at("target")
            if key.optional("match_type") == "valid":
                bits += 1
            elif isinstance(target.value, dict):
                bits += self.actions.primitives.values.bits(target)
            else:
                bits += known.field_bits(target)
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
            size = calculation_bytes(known, selector)
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
