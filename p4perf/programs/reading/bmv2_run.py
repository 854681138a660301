"""Packets through a program for bmv2: the decisions that they meet.

Arithmetic is that of JSON_format.md: without limits, cut to the width of a field where it is written. A value that is
not known is None, and so is what is computed from it.

Executed are the parser, tables with exact, lpm, ternary, range and optional keys, conditions, and what actions do to
fields and headers. Not known, and None from then on, is what comes from registers, meters, hashes, random numbers and
externs; a decision that depends on it ends the path of a packet here. Clones, copies and further passes are not
followed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from p4perf.programs.analysis import COMPARE, OPERATE
from p4perf.programs.packets import bits_of
from p4perf.programs.reading.bmv2_parser import BINARY, DROP_PORT, EGRESS, IN_PLACE, OPERATORS, label_of
from p4perf.programs.reading.bmv2_types import VALID, Declarations, Expressions, declarations, following, unwrapped
from p4perf.programs.reading.commands import Data, Entries, RuntimeEntry, constant_entries
from p4perf.programs.reading.tree import MAX_DEPTH, Tree

MAX_SHIFT = 4096
"""Shifts are not followed further than this."""

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    **{str(sign): function for sign, function in (*OPERATE.items(), *COMPARE.items())},
    "*": operator.mul,
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << min(b, MAX_SHIFT) if b >= 0 else 0,
    ">>": lambda a, b: a >> min(b, MAX_SHIFT) if b >= 0 else 0,
}


@dataclass
class State:
    """A packet inside the program.

    Args:
        at: bits that the parser has taken.
        fields: values; those that are missing are zero, those that are None not known.
        filled: how many elements of stacks are filled.
    """

    known: Declarations
    frame: bytes
    at: int = 0
    fields: dict[tuple[str, str], int | None] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    filled: dict[str, int] = field(default_factory=dict)
    data: Data = ()

    def read(self, header: str, name: str) -> int | None:
        if name == VALID:
            return int(header in self.valid)
        return self.fields.get((header, name), 0)

    def value(self, tree: Tree, depth: int = 0) -> int | None:
        """The value of an expression, None if it is not known."""
        kind, inner = unwrapped(tree, depth)
        if kind == "field":
            target = self.field_of(tree, depth)
            return None if target is None else self.read(*target)
        if kind == "hexstr":
            return inner.number()
        if kind == "bool":
            return int(bool(inner.value))
        if kind in ("runtime_data", "local"):
            number = inner.whole()
            return self.data[number] if number < len(self.data) else None
        if kind == "lookahead":
            return bits_of(self.frame, self.at + inner.item(0).whole(), inner.item(1).whole())
        if kind == "stack_field":
            stack = inner.item(0).text()
            members = [m for m in self.known.members(stack) if m in self.valid]
            return self.read(members[-1], inner.item(1).text()) if members else None
        if kind == "header":
            return int(inner.text() in self.valid)
        if kind != "expression":
            return None
        return self._operation(inner, depth + 1)

    def _operation(self, tree: Tree, depth: int) -> int | None:
        if depth > MAX_DEPTH:
            raise tree.error(f"is nested more than {MAX_DEPTH} times")
        op = tree.text("op")
        if op == "access_field":
            target = self.field_of(tree, depth)
            return None if target is None else self.read(*target)
        if op == "last_stack_index" or op == "size_stack":
            stack = unwrapped(tree.at("right") if tree.has("right") else tree.at("left"))[1]
            names = self.known.members(stack.text())
            last = max((n for n, name in enumerate(names) if name in self.valid), default=-1)
            return last if op == "last_stack_index" else len(names)
        if op == "valid":
            header = self.header_of(tree.at("right"), depth)
            return None if header is None else int(header in self.valid)
        right = self.value(tree.at("right"), depth) if tree.has("right") else None
        if op in ("d2b", "b2d", "usat_cast", "sat_cast", "two_comp_mod"):
            source = self.value(tree.at("left"), depth) if tree.has("left") else right
            if op == "d2b":
                return None if source is None else int(source != 0)
            return source if op == "b2d" or tree.value.get("left") is None else self._cast(op, source, right)
        if op == "not":
            return None if right is None else int(not right)
        if op == "~":
            return None if right is None else ~right
        if op == "?":
            condition = self.value(tree.at("cond"), depth)
            return None if condition is None else self.value(tree.at("left" if condition else "right"), depth)
        left = self.value(tree.at("left"), depth) if tree.has("left") else 0
        if op in ("and", "or"):
            decided = 0 if op == "and" else 1
            if any(side is not None and int(side != 0) == decided for side in (left, right)):
                return decided
            return None if left is None or right is None else 1 - decided
        found = OPERATIONS.get(op)
        return None if found is None or left is None or right is None else int(found(left, right))

    @staticmethod
    def _cast(op: str, value: int | None, width: int | None) -> int | None:
        if value is None or width is None or not 0 < width <= MAX_SHIFT:
            return None
        if op == "usat_cast":
            return min(max(value, 0), (1 << width) - 1)
        half = 1 << width - 1
        return min(max(value, -half), half - 1) if op == "sat_cast" else (value + half) % (2 * half) - half

    def header_of(self, tree: Tree, depth: int = 0) -> str | None:
        """The header that is meant, None if that is not known."""
        kind, inner = unwrapped(tree, depth)
        if kind == "stack_field":  # the last element
            members = [m for m in self.known.members(inner.item(0).text()) if m in self.valid]
            return members[-1] if members else None
        if kind != "expression":
            return inner.value if isinstance(inner.value, str) else None
        if inner.text("op") != "dereference_header_stack":
            return None
        stack, number = unwrapped(inner.at("left"))[1], self.value(inner.at("right"), depth + 1)
        names = self.known.members(stack.text())
        return names[number] if number is not None and 0 <= number < len(names) else None

    def field_of(self, tree: Tree, depth: int = 0) -> tuple[str, str] | None:
        """The field that is meant, None if that is not known."""
        kind, inner = unwrapped(tree, depth)
        if kind == "field":
            first, name = inner.item(0), inner.item(1).text()
            header = first.value if isinstance(first.value, str) else self.header_of(first, depth + 1)
            return None if header is None else (header, name)
        if kind == "stack_field":
            header = self.header_of(tree, depth)
            return None if header is None else (header, inner.item(1).text())
        if kind == "expression" and inner.text("op") == "access_field":
            header = self.header_of(inner.at("left"), depth + 1)
            number = inner.at("right").whole()
            fields = self.known.headers[header].fields if header in self.known.headers else ()
            return (str(header), fields[number][0]) if number < len(fields) else None
        return None

    def write(self, tree: Tree, value: int | None) -> None:
        """Write a field, cut to its width. Of a field that is not known all may have changed: that is not followed."""
        target = self.field_of(tree)
        if target is None:
            return
        header = self.known.headers.get(target[0])
        width = next((bits for name, bits in header.fields if name == target[1]), 0) if header else 0
        self.fields[target] = None if value is None else value & ((1 << width) - 1)


MAX_STEPS = 10_000
"""A packet that takes more steps than this is given up."""

Decision = tuple[str, str]
"""Name of a node without the number of its copy, and label of the edge that a packet takes there."""


class UnknownDecisionError(Exception):
    """The next step of a packet is unknown; the text names what it depends on."""


@dataclass
class Machine:
    """One program with its entries; ``commands``: entries and default actions that were added at run time."""

    root: Tree
    commands: Entries

    def __post_init__(self) -> None:
        root = self.root
        self.known = declarations(root)
        self._actions = {a.text("name"): a for a in root.each("actions")}
        self._by_id = {a.whole("id"): a.text("name") for a in root.each("actions")}
        self._parser = next(root.each("parsers"))
        self._states = {s.text("name"): s for s in self._parser.each("parse_states")}
        self._pipelines = list(root.each("pipelines"))
        self._tables: dict[str, list[RuntimeEntry]] = {}
        for pipeline in self._pipelines:
            for table in pipeline.each("tables"):
                name = table.text("name")
                self._tables[name] = constant_entries(
                    table, [Expressions(self.known).key_bits(key) for key in table.each("key")], self._by_id
                ) + self.commands.tables.get(name, [])

    def run(self, frame: bytes, port: int = 0) -> tuple[list[Decision], str]:
        """Send one packet, without FCS, through the program.

        Returns:
            The decisions in order, and why there are no more of them; empty if the path is complete.

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
                port_sent = state.read("standard_metadata", "egress_spec")
                if port_sent is None:
                    raise UnknownDecisionError("the egress port")
                made.append((f"{pipeline.text('name')} end", "true" if port_sent == DROP_PORT else "false"))
                if port_sent == DROP_PORT:
                    break
        except UnknownDecisionError as reason:
            return made, str(reason)
        return made, ""

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
            found = bits_of(state.frame, state.at + at, width)
            if found is None:
                raise UnknownDecisionError("packets that are too short for their headers")
            state.fields[header, name] = found
            at += width
        state.at += at
        state.valid.add(header)
        return ""

    def _transition(self, tree: Tree, state: State, node: str) -> tuple[str, str | None]:
        keys = list(tree.each("transition_key"))
        widths = [Expressions(self.known).bits(key) for key in keys]
        value: int | None = 0
        for key, bits in zip(keys, widths, strict=True):
            part = state.value(key)
            value = None if value is None or part is None else value << 8 * -(-bits // 8) | part
        for transition in tree.each("transitions"):
            kind = transition.optional("type") or "default"
            after = transition.optional("next_state")
            if kind == "default" or transition.value.get("value") == "default":
                return ("default" if keys else ""), after
            if kind == "parse_vset":
                continue  # value sets are empty until somebody fills them
            if value is None:
                raise UnknownDecisionError(f"what {node} selects on")
            mask = transition.at("mask").number() if transition.has("mask") else -1
            if value & mask == transition.at("value").number() & mask:
                return label_of(transition, widths), after
        return ("default" if keys else ""), None

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
        after, key = following(tree, action, hit=entry is not None)
        return left, after.optional(key)

    def _default(self, tree: Tree, name: str) -> tuple[str, Data]:
        if name in self.commands.defaults:
            return self.commands.defaults[name]
        if not tree.has("default_entry"):
            return "", ()
        entry = tree.at("default_entry")
        return self._by_id.get(entry.whole("action_id"), ""), tuple(d.number() for d in entry.each("action_data"))

    def _lookup(self, tree: Tree, name: str, keys: list[Tree], state: State) -> RuntimeEntry | None:
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

    def _act(self, action: str, data: Data, node: str, state: State, made: list[Decision]) -> bool:
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
        elif op in IN_PLACE or (op in BINARY and len(given) > 2):
            left, *_, right = (state.value(source) for source in (given if op in IN_PLACE else given[1:]))
            sign = OPERATORS[op]
            if left is None or right is None:
                state.write(given[0], None)
            else:
                state.write(given[0], OPERATIONS[sign](left, max(right, 0) if sign in ("<<", ">>") else right))
        else:
            # Whatever else it does: fields that it may write are not known any more.
            for tree in given[:1] if op != "execute_meter" else given[2:]:
                if tree.optional("type") == "field":
                    state.write(tree, None)

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
