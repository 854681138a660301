"""A P4 program for PSA, as JSON of p4c-bm2-psa, as a :class:`~p4perf.programs.ir.Program`.

What psa_switch does between the blocks stands in the program as control flow, as for v1model. Egress has a parser of
its own, and a program has none: so egress either does nothing but put together what it takes apart, or both take the
same headers, and ingress changes nothing on which that depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from typing_extensions import override

from p4perf.programs import ir
from p4perf.programs.analysis import destination, flattened
from p4perf.programs.reading.actions import ActionReader, one_of
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.v1model import BEGIN_EGRESS, JsonReader
from p4perf.programs.reading.values import ValueReader, equal, identifier, sent_by, truth, unwrapped

RECIRCULATE_PORT = 0xFFFFFFFA

_OUT, _LEAVING = "psa_ingress_output_metadata", "psa_egress_output_metadata"

_KIND = ir.Intrinsic("instance_type")


def _by_kind(default: int, kinds: Mapping[int, int]) -> ir.Expression:
    """A number that depends on the instance type of v1model."""
    found: ir.Expression = ir.Const(default)
    for kind, value in kinds.items():
        found = ir.Conditional(ir.Compare("==", _KIND, ir.Const(kind)), ir.Const(value), found)
    return found


_PORT = ir.Conditional(ir.Compare("==", _KIND, ir.Const(4)), ir.Const(RECIRCULATE_PORT), ir.Intrinsic("ingress_port"))
_PATH = _by_kind(0, {4: 6, 6: 5})

_BEFORE_INGRESS: Mapping[tuple[str, str], ir.Expression] = {
    **{(f"psa_ingress_{block}input_metadata", "ingress_port"): _PORT for block in ("", "parser_")},
    **{(f"psa_ingress_{block}input_metadata", "packet_path"): _PATH for block in ("", "parser_")},
    ("psa_ingress_input_metadata", "ingress_timestamp"): ir.Intrinsic("unknown"),
    (_OUT, "drop"): ir.Const(1),
}
"""What fields of the metadata are when a packet comes in."""

_BEFORE_EGRESS: Mapping[tuple[str, str], ir.Expression] = {
    ("psa_egress_input_metadata", "egress_port"): ir.Intrinsic("egress_port"),
    ("psa_egress_input_metadata", "packet_path"): _by_kind(1, {5: 2, 1: 3, 2: 4}),
    ("psa_egress_input_metadata", "class_of_service"): ir.Conditional(
        ir.Or(*(ir.Compare("==", _KIND, ir.Const(clone)) for clone in (1, 2))),
        ir.Const(0),
        ir.FieldRef(ir.METADATA, f"{_OUT}__class_of_service"),
    ),
    ("psa_egress_input_metadata", "instance"): ir.Intrinsic("replication_id"),
    ("psa_egress_input_metadata", "egress_timestamp"): ir.Intrinsic("unknown"),
    ("psa_egress_deparser_input_metadata", "egress_port"): ir.Intrinsic("egress_port"),
    (_LEAVING, "drop"): ir.Const(0),
    (_LEAVING, "clone"): ir.Const(0),
}
"""What they are when a copy comes to egress."""


_ASKED = ("clone", "clone_session_id", "resubmit", "multicast_group", "egress_port", "class_of_service")
"""What else psa_switch looks at after ingress."""


def is_psa(root: Tree) -> bool:
    return any(header.optional("name") == _OUT for header in root.each("headers"))


class _PsaActions(ActionReader):
    """The methods of PSA's externs besides what v1model has."""

    @override
    def statements(self, call: Tree, values: ValueReader) -> Iterator[ir.Statement]:
        op, given = call.text("op"), list(call.each("parameters"))
        match op, given:
            case "_Counter_count", [counter, index]:
                yield ir.CountPacket(one_of(self.counters, counter, "counter").name, values.value(index))
            case "_Meter_execute", [meter, index, target]:
                colour = self.names.scratch("colour", 2)
                yield ir.MeterPacket(colour, one_of(self.meters, meter, "meter").name, values.value(index))
                # PSA counts red, green, yellow.
                number = ir.BinaryOp("%", ir.BinaryOp("+", colour, ir.Const(1)), ir.Const(3))
                yield from self.stored(values.places(target), number)
            case "_Hash_get_hash", [extern, target, fields]:
                hashed = self._hashed(extern, fields)
                yield hashed
                yield from self.stored(values.places(target), hashed.destination)
            case "_Hash_get_hash_mod", [extern, target, base, fields, most]:
                hashed = self._hashed(extern, fields)
                yield hashed
                number = ir.BinaryOp("%", hashed.destination, values.value(most))
                yield from self.stored(values.places(target), ir.BinaryOp("+", number, values.value(base)))
            case _ if op.startswith("_InternetChecksum_"):
                yield from self._checksum(op.removeprefix("_InternetChecksum_"), given, values)
            case _:
                yield from super().statements(call, values)

    def _hashed(self, extern: Tree, fields: Tree) -> ir.Hash | ir.Assign:
        algorithm = one_of(self.algorithms, extern, "hash")
        tree = _calculation(algorithm.text(), fields)
        return self.calculated(self.names.scratch(f"hash_{algorithm.text()}", self.hash_bits(tree)), tree)

    def _checksum(self, method: str, given: list[Tree], values: ValueReader) -> Iterator[ir.Statement]:
        """The sum of 16-bit words that an internet checksum has so far, and what is done with it."""
        total, ones = self.names.scratch("checksum", 32), ir.Const(0xFFFF)
        match method, given[1:]:
            case "clear", _:
                yield ir.Assign(total, ir.Const(0))
            case (("add" | "subtract"), [fields]):
                part = self.names.scratch("checksum_of_part", 16)
                yield self.hashed(part, _calculation("csum16", fields))
                word = ir.BinaryOp("^", part, ones) if method == "add" else part
                yield ir.Assign(total, ir.BinaryOp("+", total, word))
                halves = ir.BinaryOp("&", total, ones), ir.BinaryOp(">>", total, ir.Const(16))
                yield ir.Assign(total, ir.BinaryOp("+", *halves))
            case (("get" | "get_state"), [target]):
                value = ir.BinaryOp("^", total, ones) if method == "get" else total
                yield from self.stored(values.places(target), value)
            case "set_state", [source]:
                yield ir.Assign(total, values.value(source))
            case _:
                raise given[0].error(f"the method {method} of a checksum is not supported")


def _calculation(algorithm: str, fields: Tree) -> Tree:
    listed = fields.at("value").value
    return Tree(
        {"algo": algorithm, "input": listed if isinstance(listed, list) else [listed]}, fields.pointer, fields.file
    )


class PsaReader(JsonReader):
    marker = _OUT
    convert_by = _PsaActions

    def __init__(self, root: Tree, plane: ControlPlane) -> None:
        super().__init__(root, plane)
        for header, field in (*_BEFORE_INGRESS, *_BEFORE_EGRESS, *((_OUT, name) for name in _ASKED)):
            self.names.ref(header, field, root)
        first = {
            (t.text("type"), t.text("name")): next(t.each("attribute_values"), t) for t in root.each("extern_instances")
        }
        self.convert.meters.clear()
        for (kind, name), value in first.items():
            if kind == "Meter":
                self.convert.meters[name] = ir.Meter(identifier(name), value.whole("value"))
            elif kind == "Hash":
                self.convert.algorithms[name] = value.at("value")

    @override
    def _parser_error(self) -> ir.FieldRef:
        return self.names.own_ref("psa_ingress_input_metadata", "parser_error")

    @override
    def _initial(self) -> Iterator[ir.Assign]:
        yield from (ir.Assign(self.names.own_ref(*field), value) for field, value in _BEFORE_INGRESS.items())
        yield from (ir.Assign(ref, ir.Const(number)) for ref, number in self.convert.constants.items())

    @override
    def _flow(self, pipelines: Mapping[str, Tree], tables: list[ir.Table]) -> tuple[ir.Nodes, ir.Nodes]:
        control = self._pipeline(pipelines["ingress"], tables)
        if not self._plane.unknown:
            self._check_egress(empty=not pipelines["egress"].optional("init_table"))
        egress = self._pipeline(pipelines["egress"], tables)
        if egress:
            begun = (ir.Assign(self.names.own_ref(*field), value) for field, value in _BEFORE_EGRESS.items())
            port = self.names.own_ref("psa_egress_input_metadata", "egress_port")
            egress = (
                *self._run(BEGIN_EGRESS, *begun),
                *egress,
                *self._deparsed("egress_deparser"),
                *self._cloned(_LEAVING),
                ir.If(truth(self.names.own_ref(_LEAVING, "drop")), self._run("own_drop", ir.Drop())),
                ir.If(equal(port, RECIRCULATE_PORT), self._run("own_recirculate", ir.Recirculate())),
            )
        return (*control, *self._left(with_egress=bool(egress))), egress

    def _left(self, *, with_egress: bool) -> Iterator[ir.ControlNode]:
        """What becomes of a packet after ingress."""
        out, run = self.names.own_ref, self._run
        yield from self._cloned(_OUT)
        port = out(_OUT, "egress_port")
        sent = run("own_send", sent_by(port))
        again = run("own_turn", ir.SetEgress(port)) if with_egress else run("own_recirculate", ir.Recirculate())
        deparsed = self._deparsed("ingress_deparser")
        rest: ir.Nodes = (*deparsed, ir.If(equal(port, RECIRCULATE_PORT), again, sent))
        rest = self._multicast(out(_OUT, "multicast_group"), rest, deparsed)
        resubmit = out(_OUT, "resubmit")
        if self._is_set(resubmit):
            rest = (ir.If(truth(resubmit), run("own_resubmit", ir.Resubmit()), rest),)
        yield ir.If(truth(out(_OUT, "drop")), run("own_drop", ir.Drop()), rest)

    def _cloned(self, block: str) -> Iterator[ir.ControlNode]:
        flag, session = (self.names.own_ref(block, name) for name in ("clone", "clone_session_id"))
        if self._is_set(flag):
            for number, port in self._plane.sessions.items():
                cloned = self._run(f"own_clone_{block}_{number}", ir.Clone(port))
                yield ir.If(ir.And(truth(flag), equal(session, number)), cloned)

    def _deparsed(self, name: str) -> ir.Nodes:
        """What a deparser computes."""
        deparser = self.root.named("deparsers", name) or self.root
        calls = list(deparser.each("primitives"))
        body = self.convert.body(calls, 0, len(calls), ValueReader(self.names))
        return self._run(f"own_{name}", *(statement for _, statement in body))

    def _check_egress(self, *, empty: bool) -> None:
        """Whether the parser of egress may be left out.

        Raises:
            DataError: it may not.
        """
        blocks = ("ingress", "egress")
        first, second = (self.root.named("parsers", f"{block}_parser") or self.root for block in blocks)
        before, after = (self.root.named("deparsers", f"{block}_deparser") for block in blocks)
        if empty and _restores(second, after):
            return
        if _shape(first) != _shape(second) or _order(before) != _order(after):
            raise second.error("an egress with a parser of its own is not supported")
        selected = {ref for state in second.each("parse_states") for ref in self._selected(state)}
        for action in self._made.values():
            for s in flattened(action.body):
                if isinstance(s, ir.AddHeader | ir.RemoveHeader) or destination(s) in selected:
                    raise second.error("an egress that parses what ingress has changed is not supported")

    def _selected(self, state: Tree) -> Iterator[ir.FieldRef]:
        for key in state.each("transition_key"):
            kind, value = unwrapped(key)
            if kind == "field":
                yield self.names.field(value)


def _order(deparser: Tree | None) -> list[str]:
    return [header.text() for header in deparser.each("order")] if deparser is not None else []


def _shape(parser: Tree) -> object:
    """What a parser does, to be compared."""
    keys, states = ("name", "parser_ops", "transitions", "transition_key"), parser.each("parse_states")
    return [[_plain(state.at(key).value) if state.names(key) else None for key in keys] for state in states]


def _restores(parser: Tree, deparser: Tree | None) -> bool:
    """Whether a deparser puts together what a parser takes apart, and does no more than that."""
    if deparser is None or any(deparser.each("primitives")):
        return False
    place = {header: n for n, header in enumerate(_order(deparser))}
    taken: dict[str, list[int]] = {}
    following: dict[str, list[str | None]] = {}
    for state in parser.each("parse_states"):
        ops, name = list(state.each("parser_ops")), state.text("name")
        if any(op.text("op") != "extract" for op in ops):
            return False
        headers = [unwrapped(op.at("parameters").item(0))[1].value for op in ops]
        if any(not isinstance(h, str) or h not in place for h in headers):
            return False
        taken[name] = [place[h] for h in headers]
        following[name] = [t.optional("next_state") for t in state.each("transitions")]
    for name, here in taken.items():
        later = [n for after in _reached(following, name) for n in taken.get(after, ())]
        if here != sorted(set(here)) or (here and later and max(here) >= min(later)):
            return False
    return True


def _reached(following: Mapping[str, list[str | None]], name: str) -> set[str]:
    """The states that may come after one."""
    found: set[str] = set()
    todo = [name]
    while todo:
        new = {n for n in following.get(todo.pop(), ()) if n} - found
        found |= new
        todo += new
    return found


def _plain(value: object) -> object:
    """The same without where it stands in the program."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if key not in ("source_info", "id")}
    return [_plain(part) for part in value] if isinstance(value, list) else value
