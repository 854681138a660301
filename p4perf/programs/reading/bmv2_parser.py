"""Primitives and parsers of bmv2 as steps.

The primitives are those of behavioral-model (src/bm_sim/core/primitives.cpp, targets/simple_switch/primitives.cpp) and
the methods of PSA's externs (targets/psa_switch). What is not among them becomes a construct ``unknown``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from p4perf.models.program.graph import Construct, Edge, construct
from p4perf.programs.reading import bmv2_types as types
from p4perf.programs.reading.flow import Assigned, Effect, Step, Valid
from p4perf.programs.reading.tree import Tree

DROPPED = "$dropped"
"""The field in which a packet is remembered as dropped until its pipeline ends."""

DROP_PORT = 511
"""The port of simple_switch that drops (simple_switch.h, default_drop_port)."""

EGRESS = ("standard_metadata.egress_spec", "psa_ingress_output_metadata.egress_port")
DROP = ("psa_ingress_output_metadata.drop", "psa_egress_output_metadata.drop")
GROUP = ("standard_metadata.mcast_grp", "intrinsic_metadata.mcast_grp", "psa_ingress_output_metadata.multicast_group")
BINARY = {
    "add": "+",
    "subtract": "-",
    "bit_xor": "^",
    "bit_or": "|",
    "bit_and": "&",
    "shift_left": "<<",
    "shift_right": ">>",
}
IN_PLACE = {"add_to_field": "+", "subtract_from_field": "-"}
OPERATORS = BINARY | IN_PLACE

Result = tuple[list[Construct], list[Effect]]


@dataclass(frozen=True)
class Primitives:
    """Primitives of one action, with the widths of its parameters, or of the parsers and deparsers of a program."""

    known: types.Declarations
    externs: dict[str, Tree]
    clone_bytes: int
    remark: Callable[[str], None]
    runtime_bits: tuple[int, ...] = ()

    @cached_property
    def values(self) -> types.Expressions:
        return types.Expressions(self.known, self.runtime_bits)

    def translate(self, call: Tree, where: str) -> Result:
        op, given = call.text("op"), list(call.each("parameters"))
        if op == "no_op":
            return [], []
        if op in ("assign", "modify_field", "assign_VL", "set", *OPERATORS):
            return self._assign(op, call, where)
        if op in ("assign_header", "copy_header", "assign_union", "assign_header_stack", "assign_union_stack"):
            return self._copy(call, where)
        if op in ("add_header", "add_header_fast", "remove_header"):
            return self._header(op != "remove_header", call.at("parameters").item(0), where)
        if op in ("push", "pop"):
            return self._shift(op, call.at("parameters"), where)
        if op in ("mark_to_drop", "drop"):
            return [construct("drop", where)], [Assigned(DROPPED, 1)]
        if op.startswith("clone_"):
            self.remark(f"clones are counted with {self.clone_bytes} B")
            return [construct("clone", where, bytes=self.clone_bytes)], []
        if op == "resubmit":
            return [construct("resubmit", where)], []
        if op == "recirculate":
            return [construct("recirculate", where)], []
        found = self._stateful(op, given, where) or self._extern(op, given, where)
        if found is not None:
            return found
        self.remark(f"{op} is not known and counted as unknown")
        return [construct("unknown", where, name=op)], []

    def _assign(self, op: str, call: Tree, where: str) -> Result:
        given = call.at("parameters")
        target = given.item(0)
        sources = [given.item(n) for n in range(1, len(given.value))]
        bits = self.values.bits(target)
        found = [c for source in sources for c in self.values.operations(source, bits, where)]
        if op in OPERATORS:
            found.append(construct("compute", where, operator=OPERATORS[op], bits=bits))
        plain = op not in OPERATORS and len(sources) == 1
        constant = self.values.constant(sources[0], bits) if plain else None
        kind, value = types.unwrapped(target)
        if kind != "field":
            name = value.item(0).text() if kind == "stack_field" else ""
            to = "metadata" if name in self.known.metadata else "header"
            return [*found, construct("write", where, bits=bits, to=to)], []
        if not isinstance(value.item(0).value, str):
            return [*found, construct("write", where, bits=bits, to="header")], []
        header, name = value.item(0).text(), f"{value.item(0).text()}.{value.item(1).text()}"
        if name in EGRESS:
            if constant == DROP_PORT and name == EGRESS[0]:
                return [*found, construct("drop", where)], [Assigned(DROPPED, 1)]
            # PSA keeps its drop flag apart from the port.
            unmarked: list[Effect] = [Assigned(DROPPED, 0)] if name == EGRESS[0] else []
            return [*found, construct("set egress", where)], unmarked
        if name in GROUP and constant != 0:
            self.remark("multicast is counted with one port")
            return [*found, construct("multicast", where, ports=1)], []
        effects: list[Effect] = [Assigned(name, constant)]
        if name in DROP:
            effects.append(Assigned(DROPPED, constant))
            if constant == 1:
                return [*found, construct("drop", where)], effects
        to = "metadata" if header in self.known.metadata else "header"
        return [*found, construct("write", where, bits=bits, to=to)], effects

    def _copy(self, call: Tree, where: str) -> Result:
        (target_kind, target), (_, source) = (types.unwrapped(call.at("parameters").item(n)) for n in range(2))
        if target_kind == "expression":
            return [construct("write", where, bits=self.values.bits(target), to="header")], []
        to, bits = target.text(), self.known.bits(target.text())
        where_to = "metadata" if to in self.known.metadata else "header"
        known = source.text() if isinstance(source.value, str) else None
        effects: list[Effect]
        if known is None:
            effects = [Valid(h, None) for h in self.known.members(to)]
        else:
            pairs = zip(self.known.members(to), self.known.members(known), strict=False)
            effects = [Valid(a, b) for a, b in pairs]
            headers = [h for h in self.known.members(to) if h in self.known.headers]
            # Fields of a header that was overwritten: their values are unknown.
            effects += [Assigned(f"{h}.{name}", None) for h in headers for name, _ in self.known.headers[h].fields]
        return [construct("write", where, bits=bits, to=where_to)], effects

    def _header(self, added: bool, target: Tree, where: str) -> Result:
        kind, value = types.unwrapped(target)
        if kind == "expression":
            size = -(-self.values.bits(target) // 8)
            names: Sequence[str] = ()
        else:
            size = -(-self.known.bits(value.text()) // 8)
            names = (value.text(),)
        what = construct("add header" if added else "remove header", where, bytes=size)
        effects: list[Effect] = []
        for name in names:
            effects += [Valid(other, False) for other in self.known.others(name) if added]
            effects.append(Valid(name, added))
        return [what], effects

    def _shift(self, op: str, given: Tree, where: str) -> Result:
        stack = given.item(0).text("value")
        names = self.known.members(stack)
        kind, value = types.unwrapped(given.item(1)) if len(given.value) > 1 else ("", given)
        count = min(value.number() if kind == "hexstr" else 1, len(names))
        kept = len(names) - count
        effects: list[Effect]
        if op == "pop":
            effects = [Valid(names[i], names[i + count]) for i in range(kept)]
            effects += [Valid(name, False) for name in names[kept:]]
        else:
            effects = [Valid(names[i], names[i - count]) for i in reversed(range(count, len(names)))]
            effects += [Valid(name, False) for name in names[:count]]
        size = self.known.headers[names[0]].bits if names and names[0] in self.known.headers else 0
        moved = [construct("write", where, bits=size * kept, to="header")] if kept and size else []
        change = construct("add header" if op == "push" else "remove header", where, bytes=-(-size * count // 8))
        return [*moved, change], effects

    def _stateful(self, op: str, given: list[Tree], where: str) -> Result | None:
        index = [c for g in given[1:] for c in self._index(g, where)]
        if op == "modify_field_rng_uniform":
            bits = self.values.bits(given[0]) if given else types.FIELD_BITS
            return [construct("random", where, bits=bits)], self._written(given[:1])
        if op == "modify_field_with_hash_based_offset" and len(given) > 2:
            return [self._hash(given[2].text("value"), given[2], where)], self._written(given[:1])
        if op == "count" and given:
            return [*index, construct("counter", where, cells=self.known.counters.get(_name(given[0]), 1))], []
        if op == "execute_meter" and given:
            cells = self.known.meters.get(_name(given[0]), 1)
            return [*index, construct("meter", where, cells=cells)], self._written(given[2:3])
        if op == "register_read" and len(given) > 1:
            cells, bits = self.known.registers.get(_name(given[1]), (1, types.FIELD_BITS))
            return [*index, construct("register read", where, cells=cells, bits=bits)], self._written(given[:1])
        if op == "register_write" and given:
            cells, bits = self.known.registers.get(_name(given[0]), (1, types.FIELD_BITS))
            return [*index, construct("register write", where, cells=cells, bits=bits)], []
        return None

    def _extern(self, op: str, given: list[Tree], where: str) -> Result | None:
        """Methods of PSA's externs: ``_Counter_count``, ``_Register_read``, and so on."""
        if not given or not op.startswith("_") or given[0].optional("type") != "extern":
            return None
        attributes = self._attributes(given[0].text("value"))
        cells = next((attributes[n] for n in ("n_counters", "n_meters", "size", "n_registers") if n in attributes), 1)
        if op == "_Counter_count" or op == "_DirectCounter_count":
            return [construct("counter", where, cells=cells)], []
        if op in ("_Meter_execute", "_DirectMeter_execute"):
            return [construct("meter", where, cells=cells)], self._written(given[2:])
        if op in ("_Hash_get_hash", "_Hash_get_hash_mod") and len(given) > 2:
            bits = sum(self._vector_bits(g) for g in given[2:])
            algorithm = self._algorithm(given[0].text("value"))
            return [construct("hash", where, algorithm=algorithm, bytes=-(-bits // 8))], self._written(given[1:2])
        if op == "_Register_read" and len(given) > 1:
            bits = self.values.bits(given[1])
            return [construct("register read", where, cells=cells, bits=bits)], self._written(given[1:2])
        if op == "_Register_write":
            bits = max((self.values.bits(g) for g in given[2:]), default=0) or types.FIELD_BITS
            return [construct("register write", where, cells=cells, bits=bits)], []
        return None

    def _attributes(self, name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        if name in self.externs:
            for attribute in self.externs[name].each("attribute_values"):
                if attribute.optional("type") == "hexstr":
                    value = attribute.at("value")
                    whole = isinstance(value.value, int)
                    found[attribute.text("name")] = value.whole() if whole else value.number()
        return found

    def _algorithm(self, name: str) -> str:
        for attribute in self.externs[name].each("attribute_values") if name in self.externs else ():
            if attribute.optional("name") in ("algo", "algorithm"):
                return str(attribute.value.get("value"))
        return "unknown"

    def _vector_bits(self, tree: Tree) -> int:
        """Width of what is hashed: of a list the sum."""
        value = tree.value.get("value")
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return sum(self.values.bits(item) for item in tree.at("value").each())
        return 0

    def _index(self, tree: Tree, where: str) -> list[Construct]:
        if tree.optional("type") not in ("expression", "register"):
            return []
        return self.values.operations(tree, types.FIELD_BITS, where)

    def _written(self, targets: Sequence[Tree]) -> list[Effect]:
        """The fields that get an unknown value."""
        found: list[Effect] = []
        for target in targets:
            if target.optional("type") == "field":
                value = target.at("value")
                if isinstance(value.item(0).value, str):
                    found.append(Assigned(f"{value.item(0).text()}.{value.item(1).text()}", None))
        return found

    def _hash(self, name: str, tree: Tree, where: str) -> Construct:
        calculation = self.known.calculations.get(name)
        if calculation is None:
            raise tree.error(f"there is no calculation {name!r}")
        if types.takes_payload(calculation):
            self.remark(f"calculation {name} goes over the payload, which is not counted")
        size = types.calculation_bytes(self.known, calculation)
        return construct("hash", where, algorithm=calculation.text("algo"), bytes=size)


def _name(tree: Tree) -> str:
    return tree.text("value")


PARSER_ERROR = "standard_metadata.parser_error"

Filled = tuple[tuple[str, int], ...]
"""How many elements of stacks are filled."""


@dataclass
class ParserReader:
    """Reads one parser; ``accept`` is the name of the step after it."""

    tree: Tree
    primitives: Primitives
    accept: str

    def __post_init__(self) -> None:
        self.states = types.check_unique(self.tree.each("parse_states"))
        self.known, self.values, self.remark = self.primitives.known, self.primitives.values, self.primitives.remark

    def steps(self) -> list[Step]:
        """Its steps, the first one first."""
        first = (self.tree.text("init_state"), ())
        found: dict[str, Step] = {}
        todo: list[tuple[str, Filled, Tree]] = [(*first, self.tree.at("init_state"))]
        while todo:
            name, filled, asked = todo.pop()
            if self._name(name, filled) in found:
                continue
            if name not in self.states:
                raise asked.error(f"there is no parser state {name!r}")
            step, after = self._step(self.states[name], filled)
            found[step.name] = step
            todo += after
        return list(found.values())

    def _name(self, state: str, filled: Filled) -> str:
        numbers = ",".join(str(n) for _, n in filled)
        return f"{self.tree.text('name')}.{state}" + (f"[{numbers}]" if numbers else "")

    def _step(self, state: Tree, filled: Filled) -> tuple[Step, list[tuple[str, Filled, Tree]]]:
        name = self._name(state.text("name"), filled)
        where = types.located(f"parser state {state.text('name')}", state)
        constructs: list[Construct] = []
        effects: list[Effect] = []
        counts = dict(filled)
        for op in state.each("parser_ops"):
            kind = op.text("op")
            if kind in ("extract", "extract_VL"):
                header = self._extracted(op.at("parameters").item(0), counts)
                if header is None:
                    full = (Edge("stack full", self.accept),)
                    effects.append(Assigned(PARSER_ERROR, None))
                    return Step(name, "parser state", tuple(constructs), full, where, tuple(effects)), []
                constructs += self._extract(op, header, where)
                effects += [*(Valid(other, False) for other in self.known.others(header)), Valid(header, True)]
                continue
            more, settled = self._operation(kind, op, where)
            constructs += more
            effects += settled
        edges, after, select = self._transitions(state, tuple(sorted(counts.items())), where)
        step = Step(name, "parser state", (*constructs, *select), tuple(edges), where, tuple(effects))
        return step, after

    def _extracted(self, target: Tree, counts: dict[str, int]) -> str | None:
        """The header that an extraction fills; None if the stack has no more elements."""
        kind, value = target.text("type"), target.at("value")
        if kind == "regular" and isinstance(value.value, dict):
            return self._computed(value)
        if kind == "regular":
            self.known.header(value)
            return value.text()
        stack = value.text() if kind == "stack" else value.item(0).text()
        if kind == "stack":
            members: tuple[str, ...] = self.known.stacks.get(stack, ())
        elif kind == "union_stack":
            members = self.known.union_stacks.get(stack, ())
        else:
            raise target.error(f"extracts to {kind!r}, which is not known")
        if not members:
            raise value.error(f"there is no header stack {stack!r}")
        at = counts.get(stack, 0)
        if at >= len(members):
            return None
        counts[stack] = at + 1
        if kind == "stack":
            return members[at]
        union, member = members[at], value.item(1).text()
        wanted = [h for h in self.known.unions.get(union, ()) if h.rpartition(".")[2] == member]
        if not wanted:
            raise value.error(f"there is no member {member!r} in {union!r}")
        return wanted[0]

    def _computed(self, value: Tree) -> str:
        """The first element of a stack of which one is extracted that is only known at run time."""
        _, inner = types.unwrapped(value)
        if inner.has("left"):
            _, stack = types.unwrapped(inner.at("left"))
            members = self.known.stacks.get(stack.text(), ()) if isinstance(stack.value, str) else ()
            if members:
                self.remark(
                    f"which element of {stack.text()} is extracted is only known at run time: the first is counted"
                )
                return members[0]
        raise value.error("extracts to something that is not known")

    def _extract(self, op: Tree, header: str, where: str) -> list[Construct]:
        found: list[Construct] = []
        kind = self.known.headers[header]
        if op.text("op") == "extract_VL":
            length = op.at("parameters").item(1)
            found += self.values.operations(length, types.FIELD_BITS, where)
        if kind.varying:
            self.remark(f"header {header} has a varying length and is counted with its greatest, {kind.bits // 8} B")
        return [*found, construct("extract", where, bytes=-(-kind.bits // 8))]

    def _operation(self, kind: str, op: Tree, where: str) -> tuple[list[Construct], list[Effect]]:
        if kind == "set":
            return self.primitives.translate(op, where)
        if kind == "primitive":
            return self.primitives.translate(op.at("parameters").item(0), where)
        if kind == "verify":
            self.remark("packets that fail a verify of the parser are counted as if they passed")
            return self.values.conditions(op.at("parameters").item(0), where), []
        if kind in ("advance", "shift"):
            more = []
            if kind == "advance":
                more = self.values.operations(op.at("parameters").item(0), types.FIELD_BITS, where)
            return [*more, construct("unknown", where, name=kind)], []
        self.remark(f"parser operation {kind} is not known and counted as unknown")
        return [construct("unknown", where, name=kind)], []

    def _transitions(
        self, state: Tree, filled: Filled, where: str
    ) -> tuple[list[Edge], list[tuple[str, Filled, Tree]], list[Construct]]:
        widths = [self.values.bits(part) for part in state.each("transition_key")]
        edges: dict[str, Edge] = {}
        after: list[tuple[str, Filled, Tree]] = []
        ended = False
        for transition in state.each("transitions"):
            kind = transition.optional("type") or "default"
            if kind == "default" or transition.value.get("value") == "default":
                label = "default"
                ended = True
            elif kind == "parse_vset":
                label = transition.text("value")
            else:
                label = label_of(transition, widths)
            to = self.accept
            if transition.has("next_state"):
                to = self._name(transition.text("next_state"), filled)
                after.append((transition.text("next_state"), filled, transition.at("next_state")))
            edges.setdefault(label, Edge(label, to))
            if ended:
                break
        if not ended:
            # No case fits: error.NoMatch ends the parser.
            edges["default"] = Edge("default", self.accept)
        select = []
        if widths:
            select = [construct("select", where, cases=max(len(edges) - 1, 0), key_bits=sum(widths))]
        elif len(edges) == 1:
            edges = {"": Edge("", next(iter(edges.values())).to)}
        return list(edges.values()), after, select


def label_of(transition: Tree, widths: list[int]) -> str:
    """A value of a select as P4 writes it; values of several fields with commas, masks behind ``&&&``."""
    value = transition.at("value").number()
    mask = transition.at("mask").number() if transition.has("mask") else None
    sizes = [8 * -(-bits // 8) for bits in widths]
    parts, left = [], sum(sizes)
    for size, bits in zip(sizes, widths, strict=True):
        left -= size
        ones = (1 << size) - 1
        kept = ones if mask is None else mask >> left & ones
        part = f"0x{value >> left & ones:x}"
        if kept == 0:
            part = "_"
        elif kept & (full := (1 << bits) - 1) != full:
            part += f"&&&0x{kept:x}"
        parts.append(part)
    return ",".join(parts) or f"0x{value:x}"
