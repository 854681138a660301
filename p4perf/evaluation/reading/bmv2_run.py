"""Packets through a program for bmv2: which decisions they meet. A part of what simple_switch does, and no more.

Executed are the parser, tables with exact, lpm, ternary, range and optional keys, conditions, and what actions do to
fields and headers. Not known, and None from then on, is what comes from registers, meters, hashes, random numbers and
externs; a decision that depends on it ends the way of a packet here. Clones, copies and further passes are not
followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4perf.evaluation.reading.bmv2_expressions import Expressions
from p4perf.evaluation.reading.bmv2_parser import label_of
from p4perf.evaluation.reading.bmv2_primitives import BINARY, DROP_PORT, EGRESS
from p4perf.evaluation.reading.bmv2_types import Declarations, declarations
from p4perf.evaluation.reading.bmv2_values import State
from p4perf.evaluation.reading.commands import Commands, Entry, constant_entries
from p4perf.evaluation.reading.tree import Tree

MAX_STEPS = 10_000
"""A packet that takes more steps than this is given up."""

Decision = tuple[str, str]
"""Name of a node without the number of its copy, and label of the edge that a packet takes there."""


class UnknownDecisionError(Exception):
    """What a packet does next is not known; the text says on what it depends."""


@dataclass
class Machine:
    """One program with its entries.

    Args:
        root: the program.
        commands: entries and default actions that were added at run time.
    """

    root: Tree
    commands: Commands
    known: Declarations = field(init=False)

    def __post_init__(self) -> None:
        root = self.root
        self.known = declarations(root)
        self._actions = {a.text("name"): a for a in root.each("actions")}
        by_id = {a.whole("id"): a.text("name") for a in root.each("actions")}
        self._by_id = by_id
        self._parser = next(root.each("parsers"))
        self._states = {s.text("name"): s for s in self._parser.each("parse_states")}
        self._pipelines = list(root.each("pipelines"))
        self._tables: dict[str, list[Entry]] = {}
        for pipeline in self._pipelines:
            for table in pipeline.each("tables"):
                name = table.text("name")
                self._tables[name] = constant_entries(table, root, by_id) + self.commands.entries.get(name, [])
        self._vsets = {v.text("name") for v in root.each("parse_vsets")}

    def run(self, frame: bytes, port: int = 0) -> tuple[list[Decision], str]:
        """Send one packet, without FCS, through the program.

        Returns:
            The decisions in order, and why there are no more of them; empty if its way has ended.

        Raises:
            DataError: the program is not what it should be.
        """
        state = State(self.known, frame)
        state.fields["standard_metadata", "ingress_port"] = port
        state.fields["standard_metadata", "packet_length"] = len(frame)
        made: list[Decision] = []
        try:
            self._parse(state, made)
            for pipeline in self._pipelines:
                # simple_switch: egress starts with the port that ingress chose, and drops by a new choice only.
                state.fields["standard_metadata", "egress_port"] = state.read("standard_metadata", "egress_spec")
                state.fields["standard_metadata", "egress_spec"] = 0
                self._run(pipeline, state, made)
                dropped = self._dropped(state)
                made.append((f"{pipeline.text('name')} end", "true" if dropped else "false"))
                if dropped:
                    break
        except UnknownDecisionError as reason:
            return made, str(reason)
        return made, ""

    def _dropped(self, state: State) -> bool:
        port = state.read("standard_metadata", "egress_spec")
        if port is None:
            raise UnknownDecisionError("the egress port")
        return port == DROP_PORT

    # The parser

    def _parse(self, state: State, made: list[Decision]) -> None:
        name: str | None = self._parser.text("init_state")
        for _ in range(MAX_STEPS):
            if name is None:
                return
            tree = self._states.get(name)
            if tree is None:
                raise self._parser.error(f"there is no parser state {name!r}")
            node = f"{self._parser.text('name')}.{name}"
            for op in tree.each("parser_ops"):
                outcome = self._parser_op(op, state)
                if outcome:
                    made.append((node, outcome))
                    return
            label, name = self._transition(tree, state, node)
            made.append((node, label))
        raise UnknownDecisionError("a parser that does not end")

    def _parser_op(self, op: Tree, state: State) -> str:
        """Run an operation; not empty if the parser ends with it: the label of the edge."""
        kind = op.text("op")
        parameters = op.at("parameters")
        if kind in ("extract", "extract_VL"):
            return self._extract(op, state)
        if kind == "set":
            state.write(parameters.item(0), state.value(parameters.item(1)))
        elif kind == "primitive":
            self._primitive(parameters.item(0), state)
        elif kind in ("advance", "shift"):
            bits = state.value(parameters.item(0)) if kind == "advance" else 8 * parameters.item(0).whole()
            if bits is None:
                raise UnknownDecisionError("a length in the packet")
            state.at += bits
        elif kind == "verify":
            if state.value(parameters.item(0)) == 0:
                raise UnknownDecisionError("a failed verify of the parser")
        else:
            raise UnknownDecisionError(f"the parser operation {kind}")
        return ""

    def _extract(self, op: Tree, state: State) -> str:
        target = op.at("parameters").item(0)
        kind, value = target.text("type"), target.at("value")
        if kind == "stack":
            stack = value.text()
            names = self.known.stacks.get(stack, ())
            at = state.filled.get(stack, 0)
            if at >= len(names):
                state.fields["standard_metadata", "parser_error"] = None
                return "stack full"
            state.filled[stack] = at + 1
            header: str | None = names[at]
        else:
            header = state.header_of(target)
        if header is None or header not in self.known.headers:
            raise UnknownDecisionError("the header that is extracted")
        varying = 0
        if op.text("op") == "extract_VL":
            length = state.value(op.at("parameters").item(1))
            if length is None or length < 0:
                raise UnknownDecisionError("the length of a header")
            varying = length
        layout = self.known.headers[header]
        at = 0
        for name, bits in layout.fields:
            width = varying if name == layout.varying else bits
            found = state.bits(at, width)
            if found is None:
                raise UnknownDecisionError("packets that are too short for their headers")
            state.fields[header, name] = found
            at += width
        state.at += at
        state.valid.add(header)
        return ""

    def _transition(self, tree: Tree, state: State, node: str) -> tuple[str, str | None]:

        keys = list(tree.each("transition_key"))
        widths = [self._key_bits(key) for key in keys]
        value: int | None = 0
        for key, bits in zip(keys, widths, strict=True):
            part = state.value(key)
            value = None if value is None or part is None else value << 8 * -(-bits // 8) | part
        for transition in tree.each("transitions"):
            kind = transition.optional("type") or "default"
            following = transition.optional("next_state")
            if kind == "default" or transition.value.get("value") == "default":
                return ("default" if keys else ""), following
            if kind == "parse_vset":
                continue  # value sets are empty until somebody fills them
            if value is None:
                raise UnknownDecisionError(f"what {node} selects on")
            mask = transition.at("mask").number() if transition.has("mask") else -1
            if value & mask == transition.at("value").number() & mask:
                return label_of(transition, widths), following
        return ("default" if keys else ""), None

    def _key_bits(self, key: Tree) -> int:

        return Expressions(self.known).bits(key)

    # Pipelines

    def _run(self, pipeline: Tree, state: State, made: list[Decision]) -> None:
        groups = ("tables", "conditionals", "action_calls")
        nodes = {t.text("name"): (group, t) for group in groups for t in pipeline.each(group)}
        name = pipeline.optional("init_table")
        for _ in range(MAX_STEPS):
            if name is None:
                return
            if name not in nodes:
                raise pipeline.error(f"there is no table or condition {name!r}")
            group, tree = nodes[name]
            if group == "conditionals":
                holds = state.value(tree.at("expression"))
                if holds is None:
                    raise UnknownDecisionError(f"condition {name}")
                made.append((name, "true" if holds else "false"))
                name = tree.optional("true_next" if holds else "false_next")
            elif group == "action_calls":
                action = self._by_id.get(tree.whole("action_id"), "")
                if self._act(action, (), name, state, made):
                    return
                name = tree.optional("next_node")
            else:
                left, name = self._apply(tree, name, state, made)
                if left:
                    return
        raise UnknownDecisionError("a pipeline that does not end")

    def _apply(self, tree: Tree, name: str, state: State, made: list[Decision]) -> tuple[bool, str | None]:
        keys = list(tree.each("key"))
        entry = self._lookup(tree, name, keys, state) if keys else None
        action, data = (entry.action, entry.data) if entry else self._default(tree, name)
        if keys:
            made.append((name, "hit" if entry else "miss"))
            made.append((f"{name} hit", action))
        else:
            made.append((name, action))
        left = self._act(action, data, f"{name}:{action}", state, made) if action else False
        following = tree.at("next_tables")
        marker = "__HIT__" if entry else "__MISS__"
        if following.names(marker):
            return left, following.optional(marker)
        if following.names(action):
            return left, following.optional(action)
        return left, tree.optional("base_default_next")

    def _default(self, tree: Tree, name: str) -> tuple[str, tuple[int, ...]]:
        if name in self.commands.defaults:
            return self.commands.defaults[name]
        if not tree.has("default_entry"):
            return "", ()
        entry = tree.at("default_entry")
        return self._by_id.get(entry.whole("action_id"), ""), tuple(d.number() for d in entry.each("action_data"))

    def _lookup(self, tree: Tree, name: str, keys: list[Tree], state: State) -> Entry | None:
        entries = self._tables[name]
        if not entries:
            return None
        values = []
        for key in keys:
            target = key.at("target")
            if key.text("match_type") == "valid":
                value: int | None = int(target.text() in state.valid)
            elif isinstance(target.value, dict):
                value = state.value(target)
            else:
                value = state.read(target.item(0).text(), target.item(1).text())
            if value is None:
                raise UnknownDecisionError(f"a key of table {name}")
            if key.has("mask"):
                value &= key.at("mask").number()
            values.append(value)
        fitting = [entry for entry in entries if entry.fits(values)]
        if not fitting:
            return None
        if tree.text("match_type") == "lpm":
            return max(fitting, key=lambda entry: entry.prefix)
        return min(fitting, key=lambda entry: entry.priority)

    # Actions

    def _act(self, action: str, data: tuple[int, ...], node: str, state: State, made: list[Decision]) -> bool:
        """Run an action; whether it leaves the pipeline."""
        if action not in self._actions:
            return False
        state.data = data
        calls = list(self._actions[action].each("primitives"))
        at = steps = 0
        while at < len(calls) and steps < MAX_STEPS:
            steps += 1
            call = calls[at]
            op = call.text("op")
            if op == "exit":
                return True
            if op == "_jump":
                at = call.at("parameters").item(0).at("value").number()
                continue
            if op == "_jump_if_zero":
                holds = state.value(call.at("parameters").item(0))
                if holds is None:
                    raise UnknownDecisionError(f"a condition in action {action}")
                made.append((f"{node}@{at}", "true" if holds else "false"))
                at = at + 1 if holds else call.at("parameters").item(1).at("value").number()
                continue
            self._primitive(call, state)
            at += 1
        return False

    def _primitive(self, call: Tree, state: State) -> None:
        op, given = call.text("op"), list(call.each("parameters"))
        if op in ("assign", "modify_field", "assign_VL") and len(given) > 1:
            state.write(given[0], state.value(given[1]))
        elif op in ("mark_to_drop", "drop"):
            state.fields["standard_metadata", "egress_spec"] = DROP_PORT
        elif op in ("add_header", "add_header_fast", "remove_header") and given:
            header = state.header_of(given[0])
            if header is not None:
                (state.valid.discard if op == "remove_header" else state.valid.add)(header)
        elif op in ("assign_header", "copy_header", "assign_union", "assign_header_stack") and len(given) > 1:
            self._copy(given[0], given[1], state)
        elif (op in BINARY and len(given) > 2) or op in ("add_to_field", "subtract_from_field"):
            self._compute(op, given, state)
        else:
            # Whatever else it does: fields that it may write are not known any more.
            for tree in given[:1] if op != "execute_meter" else given[2:]:
                if tree.optional("type") == "field":
                    state.write(tree, None)

    def _compute(self, op: str, given: list[Tree], state: State) -> None:
        sources = given[1:] if op in BINARY else [given[0], *given[1:]]
        values = [state.value(source) for source in sources]
        sign = {"add_to_field": "+", "subtract_from_field": "-"}.get(op) or BINARY[op]
        left, right = values[0], values[-1]
        if left is None or right is None:
            return state.write(given[0], None)
        functions: Mapping[str, int] = {
            "+": left + right,
            "-": left - right,
            "^": left ^ right,
            "|": left | right,
            "&": left & right,
            "<<": left << min(max(right, 0), 4096),
            ">>": left >> min(max(right, 0), 4096),
        }
        return state.write(given[0], functions[sign])

    def _copy(self, target: Tree, source: Tree, state: State) -> None:
        to, of = state.header_of(target), state.header_of(source)
        if to is None or of is None:
            return
        for a, b in zip(self.known.members(to), self.known.members(of), strict=False):
            (state.valid.add if b in state.valid or b in self.known.metadata else state.valid.discard)(a)
            for name, _ in self.known.headers[b].fields if b in self.known.headers else ():
                state.fields[a, name] = state.read(b, name)


def standard_port(root: Tree) -> bool:
    """Whether a program is for v1model: only its architecture can be run."""
    return any(h.text("name") == EGRESS[0].split(".")[0] for h in root.each("headers"))
