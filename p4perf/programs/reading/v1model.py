"""A P4 program for v1model, as JSON of p4c-bm2-ss, as a :class:`~p4perf.programs.ir.Program`.

What bmv2's simple_switch does between parser, pipelines and deparser stands in the program as control flow of its own:
after ingress the packet is resubmitted, goes to a multicast group, is dropped where the egress port is 511, or leaves;
the metadata with which that is decided are fields like all others.

A graph of tables and conditions becomes nested control flow: a branch ends where all paths from
it meet again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from p4perf.programs import ir
from p4perf.programs.analysis import flattened, read_fields
from p4perf.programs.reading import actions
from p4perf.programs.reading.commands import ControlPlane as ControlPlane
from p4perf.programs.reading.commands import constant_entries
from p4perf.programs.reading.parser import UnrolledParser
from p4perf.programs.reading.tree import Tree
from p4perf.programs.reading.values import (
    TRUE,
    VALID,
    ValueReader,
    check_unique,
    declared,
    distinct,
    equal,
    fragment,
    identifier,
    place,
    truth,
)

VERIFY_CHECKSUMS, UPDATE_CHECKSUMS = "own_verify_checksums", "own_update_checksums"
"""Actions that calculate the checksums of a program."""

BEGIN_EGRESS = "own_begin_egress"

_STANDARD: Mapping[str, ir.Intrinsic] = {
    "ingress_port": ir.Intrinsic("ingress_port"),
    "packet_length": ir.Intrinsic("packet_length"),
    "instance_type": ir.Intrinsic("instance_type"),
    "ingress_global_timestamp": ir.Intrinsic("unknown"),
}
"""What fields of the standard metadata are when a packet comes in."""

_IN_EGRESS: Mapping[str, ir.Expression] = {
    "egress_port": ir.Intrinsic("egress_port"),
    "egress_spec": ir.Const(0),
    "instance_type": ir.Intrinsic("instance_type"),
    "egress_rid": ir.Intrinsic("replication_id"),
    **dict.fromkeys(("egress_global_timestamp", "enq_timestamp", "deq_timedelta"), ir.Intrinsic("unknown")),
    **dict.fromkeys(("enq_qdepth", "deq_qdepth"), ir.Const(0)),
}
"""What they are when a copy comes to egress."""


def read_v1model(root: Tree, plane: ControlPlane | None = None, name: str = "program") -> ir.Program:
    """Read a program.

    Raises:
        DataError: it is not what the format requires, or has what is not supported; with the place.
    """
    return JsonReader(root, plane or ControlPlane()).program(name)


class JsonReader:
    """Reads programs for v1model; those for PSA are read by what differs from it."""

    marker = "standard_metadata"
    """The metadata by which the architecture is recognised."""
    convert_by: type[actions.ActionReader] = actions.ActionReader

    def __init__(self, root: Tree, plane: ControlPlane) -> None:
        self.root = root
        self._plane = plane
        self.names = declared(root)
        if self.marker not in self.names.headers:
            raise root.error(f"is not a program for v1model or PSA: it has no {self.marker}")
        self._lists = {t.whole("id"): t for t in root.each("field_lists")}
        self._made: dict[str, ir.Action] = {}
        self._direct: list[ir.Counter] = []
        self._direct_meters: list[ir.Meter] = []
        kinds = ("register_arrays", "counter_arrays", "meter_arrays")
        self._arrays = check_unique(t for kind in kinds for t in root.each(kind))
        registers, counters, meters = (
            {t.text("name"): t for t in root.each(kind) if not t.flag("is_direct")} for kind in kinds
        )
        self.convert = self.convert_by(
            self.names,
            {n: ir.Register(identifier(n), t.whole("size"), t.whole("bitwidth")) for n, t in registers.items()},
            {n: ir.Counter(identifier(n), t.whole("size")) for n, t in counters.items()},
            {n: ir.Meter(identifier(n), t.whole("size")) for n, t in meters.items()},
            {t.text("name"): t for t in root.each("calculations")},
            {t.whole("id"): t for t in root.each("learn_lists")},
            plane.unknown,
        )
        self._actions = {a.whole("id"): a for a in root.each("actions")}
        self._called = {number: a.text("name") for number, a in self._actions.items()}
        self._action_names: dict[int, str] = {}
        for number, called in self._called.items():
            self._action_names[number] = distinct(identifier(called), self._action_names.values())

    def program(self, name: str) -> ir.Program:
        pipelines = {p.text("name"): p for p in self.root.each("pipelines")}
        if set(pipelines) != {"ingress", "egress"}:
            raise self.root.error("has not the pipelines ingress and egress")
        parser = tuple(UnrolledParser(self.root, self.convert).states())
        tables: list[ir.Table] = []
        control, egress = self._flow(pipelines, tables)
        order = {self.names.header(h): h for h in next(self.root.each("deparsers"), self.root).each("order")}
        for sent in order.keys() & self.names.metadata:
            raise order[sent].error(f"{order[sent].text()!r} is metadata, which is not sent")
        program = ir.Program(
            name=identifier(name),
            headers=tuple(
                ir.Header(n, fields) for n, fields in self.names.headers.items() if n not in self.names.metadata
            ),
            metadata=tuple(self._metadata()),
            parser=parser,
            actions=tuple(self._made.values()),
            tables=tuple(tables),
            control=control,
            emit=tuple(order),
            counters=(*self.convert.counters.values(), *self._direct),
            meters=(*self.convert.meters.values(), *self._direct_meters),
            registers=tuple(self.convert.registers.values()),
            egress=egress,
            initial=tuple(self._initial()),
            parser_error=self._parser_error(),
        )
        return _trimmed(program)

    def _parser_error(self) -> ir.FieldRef:
        return self._standard("parser_error")

    def _flow(self, pipelines: Mapping[str, Tree], tables: list[ir.Table]) -> tuple[ir.Nodes, ir.Nodes]:
        """The control flow, and that of egress; ``tables`` get those that are applied."""
        at = next((place(tree) for tree in self.root.each("checksums")), "")
        control = self._run(VERIFY_CHECKSUMS, *self._verified(), at=at) + self._pipeline(pipelines["ingress"], tables)
        egress = self._pipeline(pipelines["egress"], tables)
        updated = self._run(UPDATE_CHECKSUMS, *self._updated(), at=at)
        if egress or f"own_{actions.CLONE}" in self.names.own:
            egress = (
                *self._run(BEGIN_EGRESS, *self._began(), at=place(pipelines["egress"])),
                *egress,
                *self._clones(actions.EGRESS_CLONE, actions.EGRESS_CLONE_LIST),
                *self._again(actions.RECIRCULATE, ir.Recirculate),
                self._dropped(),
                *updated,
            )
        ended = self._ended()
        return (*control, *ended) if egress else (*control, *updated, *ended), egress

    def _standard(self, name: str) -> ir.FieldRef:
        return self.names.own_ref("standard_metadata", name)

    def _metadata(self) -> Iterator[ir.Field]:
        for header in sorted(self.names.metadata):
            yield from (replace(f, name=f"{header}__{f.name}") for f in self.names.headers[header])
        yield from self.names.own.values()

    def _initial(self) -> Iterator[ir.Assign]:
        """What metadata fields begin with: those of the target, and constants."""
        for f in self.names.headers["standard_metadata"]:
            if f.name in _STANDARD:
                yield ir.Assign(self._standard(f.name), _STANDARD[f.name])
        yield from (ir.Assign(ref, ir.Const(number)) for ref, number in self.convert.constants.items())

    # Actions that simple_switch takes

    def _run(self, name: str, *body: ir.Statement, at: str = "") -> ir.Nodes:
        """Control flow that runs statements, for what stands at a place; nothing if there are none."""
        if not body:
            return ()
        self._made[name] = ir.Action(name, body=body, place=at)
        return (ir.CallAction(name),)

    def _checksums(self, kind: str) -> Iterator[tuple[ir.FieldRef, ir.Condition, Tree]]:
        """The field, the condition and the calculation of each checksum."""
        for tree in self.root.each("checksums"):
            if tree.flag(kind, kind == "update" and not tree.has("verify")):
                ref = self.names.field(tree.at("target"))
                condition = ValueReader(self.names).condition(tree.at("if_cond")) if tree.has("if_cond") else TRUE
                calculation = self.convert.calculations.get(tree.text("calculation"))
                if calculation is None:
                    raise tree.at("calculation").error("there is no calculation of this name")
                yield ref, condition, calculation

    def _verified(self) -> Iterator[ir.Statement]:
        for ref, condition, calculation in self._checksums("verify"):
            right = self.names.scratch("checksum", 16)
            wrong = ir.Assign(self._standard("checksum_error"), ir.Const(1))
            compared = ir.Branch(ir.Compare("!=", right, ref), (wrong,))
            yield from actions.guarded(condition, (self.convert.calculated(right, calculation), compared))

    def _updated(self) -> Iterator[ir.Statement]:
        for ref, condition, calculation in self._checksums("update"):
            yield from actions.guarded(condition, (self.convert.calculated(ref, calculation),))

    def _began(self) -> Iterator[ir.Statement]:
        declared = {f.name for f in self.names.headers["standard_metadata"]}
        yield from (ir.Assign(self._standard(n), value) for n, value in _IN_EGRESS.items() if n in declared)

    def _dropped(self, otherwise: ir.Nodes = ()) -> ir.ControlNode:
        is_drop = equal(self._standard("egress_spec"), actions.DROP_PORT)
        return ir.If(is_drop, self._run("own_drop", ir.Drop()), otherwise)

    def _kept(self, number: int) -> tuple[ir.FieldRef, ...]:
        """The metadata of a list; 0 is none."""
        tree = self._lists.get(number)
        refs = self.convert.pieces(tree, "elements", tree)[0] if tree is not None else []
        return tuple(ref for ref in refs if ref.header == ir.METADATA)

    def _used_lists(self, ref: ir.FieldRef) -> list[int]:
        """The numbers of the lists that are written to a field."""
        found = set()
        for _, value in self._assigned(ref):
            number = value.left if isinstance(value, ir.BinaryOp) and isinstance(value.left, ir.Const) else value
            if not isinstance(number, ir.Const):
                raise self.root.error("a list of fields that is not constant is not supported")
            found.add(number.value)
        return sorted(found)

    def _again(self, flag: str, kind: type[ir.Recirculate | ir.Resubmit], otherwise: ir.Nodes = ()) -> ir.Nodes:
        """The packet goes through again where a flag says so, with the metadata of the list that it names."""
        ref = ir.FieldRef(ir.METADATA, f"own_{flag}")
        for number in self._used_lists(ref):
            then = self._run(f"own_{flag}_{number}", kind(self._kept(number)), at=self._set_at(ref))
            otherwise = (ir.If(equal(ref, number + 1), then, otherwise),)
        return otherwise

    def _clones(self, flag: str, list_field: str) -> Iterator[ir.ControlNode]:
        session, kept = ir.FieldRef(ir.METADATA, f"own_{flag}"), ir.FieldRef(ir.METADATA, f"own_{list_field}")
        for number, port in self._plane.sessions.items():
            for fields in self._used_lists(kept):
                clone = ir.Clone(port, self._kept(fields))
                then = self._run(f"own_{flag}_{number}_{fields}", clone, at=self._set_at(session))
                yield ir.If(ir.And(equal(session, number + 1), equal(kept, fields)), then)

    def _ended(self) -> ir.Nodes:
        """What becomes of a packet after ingress."""
        at = next(filter(None, map(place, self.root.each("pipelines"))), "")
        send = self._run("own_send", ir.SetEgress(self._standard("egress_spec")), at=at)
        rest = self._multicast(self._standard("mcast_grp"), (self._dropped(send),))
        return (*self._clones(actions.CLONE, actions.CLONE_LIST), *self._again(actions.RESUBMIT, ir.Resubmit, rest))

    def _multicast(self, group: ir.FieldRef, otherwise: ir.Nodes, before: ir.Nodes = ()) -> ir.Nodes:
        """The packet goes to the group that a field says, after ``before``, where it may say one."""
        if not self._is_set(group):
            return otherwise
        otherwise = (ir.If(truth(group), self._unconfigured(), otherwise),)
        for number, copies in self._plane.groups.items():
            sent = ir.Multicast(tuple(port for port, _ in copies), tuple(rid for _, rid in copies))
            then = self._run(f"own_multicast_{number}", sent, at=self._set_at(group))
            otherwise = (ir.If(equal(group, number), before + then, otherwise),)
        return otherwise

    def _unconfigured(self) -> ir.Nodes:
        """What becomes of a packet for a multicast group that is not configured."""
        if self._plane.unknown:
            return self._run("own_multicast", ir.Multicast((0,)))
        return self._run("own_drop", ir.Drop())

    def _assigned(self, ref: ir.FieldRef) -> list[tuple[str, ir.Expression]]:
        """The places at which something is assigned to a field, and what."""
        placed = (each for action in self._made.values() for each in action.placed)
        found = ((at, s) for at, statement in placed for s in flattened((statement,)))
        return [(at, s.value) for at, s in found if isinstance(s, ir.Assign) and s.destination == ref]

    def _is_set(self, ref: ir.FieldRef) -> bool:
        """Whether a value that is not zero is assigned to a field."""
        return any(value != ir.Const(0) for _, value in self._assigned(ref))

    def _set_at(self, ref: ir.FieldRef) -> str:
        """Where a value that is not zero is first assigned to a field."""
        return next((at for at, value in self._assigned(ref) if at and value != ir.Const(0)), "")

    # Pipelines

    def _pipeline(self, pipeline: Tree, tables: list[ir.Table]) -> ir.Nodes:
        groups = ("tables", "conditionals", "action_calls")
        nodes = {t.text("name"): (g, t) for g in groups for t in pipeline.each(g)}
        flow = _Flow(self, pipeline, nodes, {a.text("name"): a for a in pipeline.each("action_profiles")}, tables)
        body = tuple(flow.sequence(pipeline.optional("init_table"), None))
        if any(isinstance(s, ir.Exit) for a in flow.called for s in flattened(self._made[a].body)):
            return (ir.Block(body),)
        return body

    def action(self, number: Tree) -> str:
        """The name of an action, which is converted if it was not yet."""
        known = number.whole()
        if known not in self._actions:
            raise number.error("there is no action of this id")
        return self._converted(known)

    def _converted(self, known: int) -> str:
        name = self._action_names[known]
        if name not in self._made:
            self._made[name] = self.convert.action(name, self._actions[known])
        return name

    def of_name(self, name: str, table: Tree) -> str:
        """The name of the action of a table that P4 calls so."""
        numbers = [n.whole() for n in table.each("action_ids")] if table.has("action_ids") else self._actions
        for known in numbers:
            if known in self._actions and self._actions[known].text("name") == name:
                return self._converted(known)
        raise table.error(f"has no action {name!r}")

    def listed(self, table: Tree) -> list[str]:
        """The actions of a table, of which older JSON has the names only."""
        if table.has("action_ids"):
            return [self.action(number) for number in table.each("action_ids")]
        return [self.of_name(name.text(), table) for name in table.each("actions")]

    def ensure(self, name: str, body: ir.Statements = (), at: str = "") -> str:
        self._made.setdefault(name, ir.Action(name, body=body, place=at))
        return name

    def entries_of(self, table: Tree, name: str, keys: Sequence[ir.Key]) -> ir.EntryList:
        """Entries of the JSON, and those that were added."""
        widths = [self.names.width_bits(key.field) for key in keys]
        found = [*constant_entries(table, widths, self._called), *self._plane.tables.get(name, [])]
        kind = table.text("match_type")
        if kind == "lpm":
            found.sort(key=lambda entry: -entry.prefix)
        elif kind != "exact":
            found.sort(key=lambda entry: entry.priority)
        return ir.EntryList(tuple(ir.Entry(e.keys, self.of_name(e.action, table), e.data) for e in found))

    def default_of(self, table: Tree, name: str) -> tuple[str, tuple[int, ...]]:
        if name in self._plane.defaults:
            action, data = self._plane.defaults[name]
            return self.of_name(action, table), data
        if not table.has("default_entry"):
            return self.ensure("own_no_action"), ()
        entry = table.at("default_entry")
        return self.action(entry.at("action_id")), tuple(d.number() for d in entry.each("action_data"))

    def counter_of(self, name: str, tables: Sequence[ir.Entry]) -> str:
        """The counter of the entries of a table."""
        self._direct.append(ir.Counter(f"own_entries_of_{name}", max(len(tables), 1)))
        return self._direct[-1].name

    def metered(self, table: Tree, size: int) -> ir.Statement:
        """What the direct meter of a table does; it says green to packets without an entry as well."""
        declared = self._arrays.get(table.text("direct_meters"))
        if declared is None:
            raise table.at("direct_meters").error("there is no meter of this name")
        meter = ir.Meter(identifier(declared.text("name")), size)
        self._direct_meters.append(meter)
        return ir.MeterPacket(self.names.field(declared.at("result_target")), meter.name, ir.Const(0))


@dataclass
class _Flow:
    """A pipeline as nested control flow; ``called``: the names of all actions that it may run."""

    reader: JsonReader
    pipeline: Tree
    nodes: Mapping[str, tuple[str, Tree]]
    profiles: Mapping[str, Tree]
    tables: list[ir.Table]
    called: set[str] = field(default_factory=set)
    _meets: dict[str, str | None] = field(default_factory=dict)
    _made: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tables, of which a path may come to one that others come to as well."""

    def sequence(self, name: str | None, end: str | None) -> Iterator[ir.ControlNode]:
        """From a node up to another one, None for the end of the pipeline."""
        while name != end and name is not None:
            kind, tree = self._node(name)
            branches = len(set(self._following(kind, tree))) > 1
            meet = self._meeting(name)
            if kind == "conditionals":
                condition = ValueReader(self.reader.names).condition(tree.at("expression"))
                then, otherwise = (
                    tuple(self.sequence(tree.optional(side), meet)) for side in ("true_next", "false_next")
                )
                yield ir.If(condition, then, otherwise, fragment(tree), place=place(tree), label=tree.text("name"))
            elif kind == "action_calls":
                action = self.reader.action(tree.at("action_id"))
                self.called.add(action)
                yield ir.CallAction(action)
            else:
                yield from self._table(name, tree, meet, branches=branches)
            name = meet

    def _node(self, name: str) -> tuple[str, Tree]:
        if name not in self.nodes:
            raise self.pipeline.error(f"there is no table or condition {name!r}")
        return self.nodes[name]

    def _following(self, kind: str, tree: Tree) -> Iterator[str | None]:
        if kind == "conditionals":
            yield from (tree.optional("true_next"), tree.optional("false_next"))
        elif kind == "action_calls":
            yield tree.optional("next_node")
        else:
            after = dict(tree.members("next_tables"))
            yield from (tree.at("next_tables").optional(key) for key in after)
            if not after:
                yield tree.optional("base_default_next")

    def _meeting(self, name: str) -> str | None:
        """The first node that every path from a node comes to; None is the end."""
        if not self._meets:
            after = {n: tuple(dict.fromkeys(self._following(*node))) for n, node in self.nodes.items()}
            try:
                names = {n: [other for other in found if other is not None] for n, found in after.items()}
                order = list(TopologicalSorter(names).static_order())
            except CycleError as error:
                raise self.pipeline.error(f"has a loop: {' -> '.join(reversed(error.args[1]))}") from error
            for n in order:
                found = after.get(n, ())
                chains = [self._chain(following) for following in found] if len(found) > 1 else [list(found) or [None]]
                self._meets[n] = next((m for m in chains[0] if all(m in chain for chain in chains[1:])), None)
        return self._meets[name]

    def _chain(self, name: str | None) -> list[str | None]:
        """A node and those that every path from it comes to."""
        found: list[str | None] = [name]
        while name is not None:
            name = self._meets[name]
            found.append(name)
        return found

    def _table(self, name: str, tree: Tree, meet: str | None, *, branches: bool) -> Iterator[ir.ControlNode]:
        if name not in self._made:
            self._made[name] = self._declared(name, tree)
        table, prepared = self._made[name]
        if prepared:
            yield ir.CallAction(prepared)
        yield self._applied(table, tree, meet) if branches else ir.ApplyTable(table)

    def _declared(self, name: str, tree: Tree) -> tuple[str, str]:
        """What a table is called here, and the action that has to run before it, if there is one."""
        reader, keys, prepared = self.reader, [], []
        for n, key in enumerate(tree.each("key")):
            ref, statement = self._key(name, n, key)
            kind = key.text("match_type")
            keys.append(ir.Key(ref, "exact" if kind == "valid" else kind))  # type: ignore[arg-type]
            prepared += [statement] if statement is not None else []
        entries = reader.entries_of(tree, name, keys)
        default, data = reader.default_of(tree, name)
        label, size = name, tree.whole("max_size") if tree.has("max_size") else 0
        name = distinct(identifier(name), [table.name for table in self.tables])
        selector = self._selector(name, tree)
        if selector is not None:
            prepared.append(selector)
        if tree.has("direct_meters"):
            prepared.append(reader.metered(tree, max(size, 1)))
        before = reader.ensure(f"own_key_of_{name}", tuple(prepared), place(tree)) if prepared else ""
        listed = tuple(dict.fromkeys([*reader.listed(tree), default]))
        counter = reader.counter_of(name, entries.entries) if tree.flag("with_counters") else ""
        chosen = selector.destination if selector is not None else None
        table = ir.Table(name, tuple(keys), listed, default, entries, data, chosen, counter, size)
        self.tables.append(replace(table, place=place(tree), label=label))
        self.called |= set(listed)
        return name, before

    def _applied(self, name: str, tree: Tree, meet: str | None) -> ir.ApplyTable:
        after = tree.at("next_tables")
        if after.names("__HIT__"):
            hit, miss = (tuple(self.sequence(after.optional(key), meet)) for key in ("__HIT__", "__MISS__"))
            return ir.ApplyTable(name, hit, miss)
        cases = ((self.reader.of_name(action, tree), after.optional(action)) for action in after.value)
        found = ((action, tuple(self.sequence(to, meet))) for action, to in cases)
        return ir.ApplyTable(name, cases=tuple((action, nodes) for action, nodes in found if nodes))

    def _key(self, table: str, number: int, key: Tree) -> tuple[ir.FieldRef, ir.Statement | None]:
        """The field of a key, and the statement that computes it, if one has to."""
        target, names, masked = key.at("target"), self.reader.names, key.has("mask")
        if key.text("match_type") == "valid":
            value: ir.Expression = ir.Truth(ir.IsValid(names.header(target)))
        elif not isinstance(target.value, list):
            value = ValueReader(names).value(target)
        elif target.item(1).text() == VALID:
            value = ir.Truth(ir.IsValid(names.header(target.item(0))))
        else:
            value = ref = names.field(target)
            if not masked:
                return ref, None
        width = names.width_bits(value) if isinstance(value, ir.FieldRef) else 1
        if masked:
            value = ir.BinaryOp("&", value, ir.Const(key.at("mask").number()))
        ref = names.scratch(f"key_{number}_of_{identifier(table)}", width)
        return ref, ir.Assign(ref, value)

    def _selector(self, table: str, tree: Tree) -> ir.Hash | ir.Assign | None:
        """What computes the field by which packets choose among the actions of an entry, if they do."""
        profile, convert = self.profiles.get(tree.optional("action_profile") or ""), self.reader.convert
        if profile is None or not profile.has("selector"):
            return None
        selector = profile.at("selector")
        choice = self.reader.names.scratch(f"choice_of_{table}", convert.hash_bits(selector))
        return convert.calculated(choice, selector)


def _trimmed(program: ir.Program) -> ir.Program:
    """The program without the values of the target that nothing reads."""
    read = read_fields(program)
    initial = tuple(a for a in program.initial if a.destination in read)
    actions = [
        replace(a, body=tuple(s for s in a.body if not isinstance(s, ir.Assign) or s.destination in read))
        if a.name == BEGIN_EGRESS
        else a
        for a in program.actions
    ]
    return replace(program, initial=initial, actions=tuple(actions))
