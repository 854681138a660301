"""Programs of the IR in steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from p4perf.evaluation.prediction.reading.constructs import (
    GROUPS,
    PORTS,
    Values,
    added_header,
    copied_header,
    for_lookup,
    hashed_bytes,
    of_statement,
    of_table,
    sends,
)
from p4perf.evaluation.prediction.reading.facts import OUTCOME, constant_of, fact_of, hit_actions
from p4perf.evaluation.prediction.reading.left_out import idle_states, looped_states, overwritten, waits
from p4perf.evaluation.prediction.reading.names import DROPPED, LOST, PORT, RESUBMITTED, SENT, STACK_FULL
from p4perf.models.program.graph import Construct, Edge, construct
from p4perf.programs import ir
from p4perf.programs.analysis import (
    IDLE,
    changes_layout,
    control_nodes,
    destination,
    flattened,
    statements,
    unneeded_headers,
    unused_metadata,
)
from p4perf.programs.decisions import (
    CHECKSUMS,
    INDEX_BITS,
    called,
    case_label,
    located,
    sites,
    was_read,
    width_bits,
)
from p4perf.programs.interpreter import MULTICAST
from p4perf.programs.packets import FCS_BYTES
from p4perf.programs.reading.flow import (
    FULL,
    OTHERS,
    Assigned,
    Effect,
    Fact,
    Flow,
    Step,
    Valid,
    oversized,
    too_many,
)
from p4perf.programs.reading.swx import OF_LINE
from p4perf.programs.reading.tree import without_index
from p4perf.programs.reading.v1model import UPDATE_CHECKSUMS, VERIFY_CHECKSUMS
from p4perf.programs.reading.values import FALSE

PACKET_BYTES = 60
"""Size of a packet of which nothing is known: of the smallest frame, without FCS."""

_SOME = -1

_INSTANCE = ir.Intrinsic("instance_type")
"""What kind of copy a packet is: packets are counted as ones that come from a port, until they are multicast."""


def read_own(
    program: ir.Program,
    name: str,
    frame_bytes: int | None,
    *,
    source: str = "p4perf",
    entries: Mapping[str, int] | None = None,
    configured: bool = False,
    apart: bool = False,
) -> Flow:
    """The steps of a program.

    Args:
        frame_bytes: size of its frames, with FCS; None if unknown.
        source: what it was read from.
        entries: how many entries tables hold, by the names that the program has for them; those that are not named
            hold their constant entries, or count as full.
        configured: default actions are those of the program, and not any that may be set.
        apart: whether headers are copied to memory, even those that nothing depends on.
    """
    return _Reader(program, name, frame_bytes, source, entries or {}, configured, apart).read()


_LEFT_OUT = ("write", "compute", "condition", "hash", "register read", "add header", "remove header")
"""Kinds that cost nothing where nothing depends on what they do."""

_Placed = tuple[str, ir.Statement]
"""A statement behind its place in the program."""


@dataclass(frozen=True, slots=True)
class _Site:
    """Where an action runs: the name of its steps, what it is, where an exit goes, and whether a reader added it."""

    name: str
    what: str
    end: str
    added: bool


@dataclass
class _Reader:
    program: ir.Program
    name: str
    frame_bytes: int | None
    source: str
    entries: Mapping[str, int]
    configured: bool = False
    apart: bool = False
    steps: dict[str, Step] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sites = sites(self.program)
        self.was_read = was_read(self.program)
        self.unused = unused_metadata(self.program) if self.was_read else frozenset()
        unneeded = unneeded_headers(self.program) if self.was_read else frozenset()
        self.dead = frozenset() if self.apart else unneeded - set(self.program.emit)
        kept = {name for state in self.program.parser for name in state.extracts} <= set(self.program.emit)
        kept = kept and not self.apart and not changes_layout(self.program)
        self.idle = idle_states(self.program) if kept and self.was_read else set()
        types = (s.destination for s in self.program.initial if s.value == _INSTANCE)
        self.instance = next((f"{ref.header}.{ref.field}" for ref in types), None)
        self.packet_bytes = PACKET_BYTES if self.frame_bytes is None else self.frame_bytes - FCS_BYTES

    def read(self) -> Flow:
        program = self.program
        for name in (SENT, LOST):
            self._add(Step(name, "end"))
        emitted = [(h, construct("emit", f"deparser, {h}", bytes=self._size(h))) for h in program.emit]
        if self.apart:
            emitted += [(h, construct("kept header", f"deparser, {h}", step="written")) for h in program.emit]
        asked: tuple[Construct, ...] = ()
        if not self.apart and changes_layout(program):
            asked = (construct("kept header", "deparser", step="asked"),) * len(program.emit)
        start = self._add(Step("deparser", "deparser", asked, (Edge("", SENT),), "deparser", present=tuple(emitted)))
        for n, checksum in enumerate(program.updated):
            what = construct("checksum update", f"checksum of {checksum.header}", bytes=self._size(checksum.header))
            present = ((checksum.header, what),)
            start = self._add(Step(f"update {n}", "block", (), (Edge("", start),), what.where, present=present))
        if any(isinstance(node, ir.CallAction) and node.action == UPDATE_CHECKSUMS for node in self._nodes()):
            start = self._checksums(UPDATE_CHECKSUMS, start)
        if program.egress:
            start = self._control(program.egress, self._gate(DROPPED, LOST, start))
        start = self._gate(PORT, start, LOST)
        again = any(isinstance(s, ir.Resubmit) for s in statements(program))
        if again:
            start = self._gate(RESUBMITTED, SENT, start)
        start = self._control(program.control, self._gate(DROPPED, LOST, start))
        for n, checksum in enumerate(program.verified):
            what = construct("checksum verify", f"checksum of {checksum.header}", bytes=self._size(checksum.header))
            present = ((checksum.header, what),)
            start = self._add(Step(f"verify {n}", "block", (), (Edge("", start),), what.where, present=present))
        failed = start if program.parser_error is not None else LOST
        start = self._parser(start, failed)
        effects: tuple[Effect, ...] = (Assigned(DROPPED, 0), Assigned(PORT, 0))
        effects += (Assigned(RESUBMITTED, 0),) if again else ()
        for f in program.metadata:
            effects += tuple(self._assigned(ir.FieldRef(ir.METADATA, f.name), ir.Const(0)))
        for statement in program.initial:
            effects += tuple(self._assigned(statement.destination, statement.value))
        clocks = tuple(c for s in program.initial for c in self._clock(s, "start of the program"))
        absent = (construct("kept header", step="cleared"),) * (len(program.headers) if self.apart else 0)
        self._add(Step("begin", "block", clocks + absent, (Edge("", start),), effects=effects))
        return Flow(self.name, self.steps, "begin", self.source, tuple(self.remarks), self.frame_bytes, failed)

    def _nodes(self) -> Iterator[ir.ControlNode]:
        return control_nodes(self.program.control + self.program.egress)

    def _size(self, header: str) -> int:
        return self.program.header(header).size_bytes

    def _remark(self, text: str) -> None:
        self.remarks[text] = None

    def _add(self, step: Step) -> str:
        self.steps[step.name] = step
        return step.name

    def _unique(self, name: str) -> str:
        n, found = 1, name
        while found in self.steps:
            n += 1
            found = f"{name}@{n}"
        return found

    def _gate(self, fact: str, holds: str, otherwise: str) -> str:
        """Where packets go that are dropped, have a port or come again."""
        edges = (Edge("true", holds), Edge("false", otherwise))
        return self._add(Step(self._unique(f"{fact[1:]}?"), "condition", (), edges, test=(fact, 1)))

    # The parser

    def _parser(self, accept: str, failed: str) -> str:
        """The first state of the parser; a loop is unrolled as far as packets are long enough for it."""
        looped = looped_states(self.program)
        copies: dict[str, dict[int, str]] = {}

        def name_of(state: str, taken_bytes: int) -> str:
            numbered = copies.setdefault(state, {})
            if taken_bytes not in numbered:
                called = self.program.state(state).label or f"parser.{state}"
                if numbered:
                    called = (
                        f"{called.removesuffix(']')}+{len(numbered)}]"
                        if "[" in called
                        else f"{called}[+{len(numbered)}]"
                    )
                numbered[taken_bytes] = called
            return numbered[taken_bytes]

        todo = [("start", 0)]
        while todo:
            name, taken_bytes = todo.pop()
            state = self.program.state(name)
            step_name = name_of(name, taken_bytes)
            if step_name in self.steps:
                continue
            after = taken_bytes + self._least_bytes(state) if name in looped else 0
            ends = {ir.ACCEPT: accept}
            for said in dict.fromkeys((*(case.next_state for case in state.cases), state.default)):
                following = ir.ACCEPT if said in self.idle else said
                if following == ir.ACCEPT:
                    ends[said] = accept
                    continue
                needed = after + self._least_bytes(self.program.state(following))
                if following in looped and needed > self.packet_bytes:
                    ends[said] = failed
                    continue
                place = (following, after if following in looped else 0)
                ends[said] = name_of(*place)
                todo.append(place)
            self._add(self._state(state, step_name, ends, accept))
        return name_of("start", 0)

    def _least_bytes(self, state: ir.ParserState) -> int:
        """How many bytes of a packet a state takes at least."""
        found = 0
        for statement in state.body:
            if isinstance(statement, ir.Extract):
                fields = self.program.header(statement.header).fields
                found += sum(f.width_bits for f in fields if not f.varying) // 8
            elif isinstance(statement, ir.Advance) and isinstance(statement.bits, ir.Const):
                found += statement.bits.value // 8
        return found

    def _state(self, state: ir.ParserState, name: str, ends: Mapping[str, str], accept: str) -> Step:
        called = without_index(state.label.partition(".")[2]) or state.name
        where = located(f"parser state {called}", state.place)
        constructs: list[Construct] = []
        effects: list[Effect] = []
        for statement in state.body:
            if isinstance(statement, ir.Verify) and statement.condition == FALSE and self.program.parser_error:
                effects += self._assigned(self.program.parser_error, ir.Intrinsic("unknown"))
                edges: tuple[Edge, ...] = (Edge(STACK_FULL, accept),)
                return Step(name, "parser state", tuple(constructs), edges, where, tuple(effects))
            constructs += self._parsed(statement, where)
            effects += self._parser_effects(statement)
        widths = [width_bits(self.program, e) for e in state.selected]
        labels: dict[str, str] = {}
        for case in state.cases:
            labels.setdefault(case_label(case, widths), ends[case.next_state])
        if len(set(ends.values())) > 1:
            constructs.append(construct("select", where, cases=len(labels), key_bits=sum(widths)))
        labels.setdefault("default" if state.selected else "", ends[state.default])
        edges = tuple(Edge(label, to) for label, to in labels.items())
        return Step(name, "parser state", tuple(constructs), edges, where, tuple(effects))

    def _parsed(self, statement: ir.ParserStatement, where: str) -> Iterator[Construct]:
        match statement:
            case ir.Extract(header, varying_bits):
                if varying_bits is not None:
                    size = self._size(header)
                    self._remark(f"header {header} has a varying length and is counted with its greatest, {size} B")
                    yield from Values(self.program).computed(varying_bits, INDEX_BITS, where)
                yield construct("extract", where, bytes=self._size(header))
                if self.apart:
                    yield construct("kept header", where, step="read")
                if header not in self.program.emit and self.was_read:
                    yield construct("remove header", where, bytes=self._size(header))
            case ir.Advance(bits):
                yield from Values(self.program).computed(bits, INDEX_BITS, where)
                yield construct("unknown", where, name="advance")
            case ir.Verify(condition):
                self._remark("packets that fail a verify of the parser are counted as if they passed")
                yield from Values(self.program).condition(condition, where)
            case _:
                values = Values(self.program)
                for inner in flattened((statement,)) if self._simple(statement) is None else (statement,):
                    yield from self._met(inner, where, values)
                    values.after(inner)

    def _parser_effects(self, statement: ir.ParserStatement) -> list[Effect]:
        if isinstance(statement, ir.Extract):
            return [Valid(statement.header, True)]
        if isinstance(statement, ir.Advance | ir.Verify):
            return []
        if not isinstance(statement, ir.Branch) or self._simple(statement) is not None:
            return self._effects(statement)
        effects = [effect for inner in flattened((statement,)) for effect in self._effects(inner)]
        return [Valid(e.header, None) if isinstance(e, Valid) else Assigned(e.field, None) for e in effects]

    # Control flow

    def _control(self, nodes: Sequence[ir.ControlNode], after: str, end: str | None = None) -> str:
        """The first step of a control flow; ``after``: the step behind it, ``end``: where an exit goes."""
        end = after if end is None else end
        for node in reversed(nodes):
            if isinstance(node, ir.ApplyTable):
                after = self._table(node, after, end)
            elif isinstance(node, ir.Block):
                after = self._control(node.body, after)
            elif isinstance(node, ir.If):
                after = self._condition(node, after, end)
            elif node.action == VERIFY_CHECKSUMS:
                self._remark("checksums are counted as right ones")
                after = self._checksums(VERIFY_CHECKSUMS, after)
            elif node.action != UPDATE_CHECKSUMS:
                after = self._action(self.program.action(node.action), self.sites[id(node)], after, end)
        return after

    def _condition(self, node: ir.If, after: str, end: str) -> str:
        name = self._unique(self.sites[id(node)])
        self._add(Step(name, "condition"))
        then, otherwise = self._control(node.then, after, end), self._control(node.otherwise, after, end)
        added = self.was_read and not node.label
        test, inverted = fact_of(node.condition, added)
        edges = (Edge("true", then), Edge("false", otherwise))
        where = located(f"condition {node.text or name}", node.place)
        constructs = () if added else tuple(Values(self.program).condition(node.condition, where))
        return self._add(Step(name, "condition", constructs, edges, where, (), test, inverted))

    def _table(self, node: ir.ApplyTable, after: str, end: str) -> str:
        program, table = self.program, self.program.table(node.table)
        where = located(f"table {called(table)}", table.place)
        site = self._unique(self.sites[id(node)])
        self._add(Step(site, "table"))
        sides = {True: self._control(node.hit, after, end), False: self._control(node.miss, after, end)}
        cases = dict(node.cases)
        reached: dict[tuple[str, str], str] = {}
        behind: dict[tuple[str, str], str] = {}

        def run(action: str, *, hit: bool) -> str:
            """The first step of an action of the table."""
            to = sides[hit]
            if action in cases:
                if (action, to) not in behind:
                    behind[action, to] = self._control(cases[action], to, end)
                to = behind[action, to]
            if (action, to) not in reached:
                missed = " on miss" if any(a == action for a, _ in reached) else ""
                name = f"{site}:{called(program.action(action))}{missed}"
                reached[action, to] = self._action(program.action(action), name, to, end)
            return reached[action, to]

        constructs = of_table(program, table, where, self._count(table))
        if not table.keys:
            # Without a key there are no entries: only the default action runs, whichever that is.
            named = () if self.configured else tuple(a for a in table.actions if program.action(a).label)
            possible = named or (table.default_action,)
            edges = tuple(Edge(called(program.action(a)), run(a, hit=False)) for a in possible)
            return self._add(Step(site, "table", constructs, edges, where))
        hits = hit_actions(table, not program.action(table.default_action).body)
        if len(hits) == 1:
            found = run(hits[0], hit=True)
        else:
            others = not table.listed and table.default_action in hits
            if others:
                self._remark(OTHERS)
            rare = table.default_action if others else ""
            shares = {rare: 0.0} if others else {}
            edges = tuple(Edge(called(program.action(a)), run(a, hit=True), shares.get(a)) for a in hits)
            found = self._add(Step(f"{site} hit", "block", (), edges, where))
        edges = (Edge("hit", found), Edge("miss", run(table.default_action, hit=False)))
        return self._add(Step(site, "table", constructs, edges, where))

    def _count(self, table: ir.Table) -> int | None:
        """How many entries a table holds; None: those of the program."""
        if (stated := self.entries.get(called(table))) is not None:
            bits = self.program.key_bits(table)
            if stated > 1 << bits and all(key.match_kind == "exact" for key in table.keys):
                raise too_many(called(table), stated, bits, 1 << bits)
            if 0 < table.size < stated:
                self._remark(oversized(called(table), stated, table.size))
            return stated
        if not self.was_read or table.entries.count or not table.keys:
            return None
        self._remark(FULL)
        return table.size

    # Actions

    def _action(self, action: ir.Action, name: str, after: str, end: str) -> str:
        """The first step of an action."""
        stated = action.label or action.name.endswith("_deparser") or action.name.startswith(OF_LINE)
        added = self.was_read and not stated
        site = _Site(self._unique(name), f"action {called(action)}", end, added)
        return self._statements(tuple(action.placed), site, "", after)

    def _statements(self, body: Sequence[_Placed], site: _Site, part: str, after: str) -> str:
        """The first step of statements with their places; ``part`` stands behind the name of their site."""
        ends = next((n for n, (_, s) in enumerate(body) if isinstance(s, ir.Exit)), None)
        if ends is not None:
            body, after = body[:ends], site.end
        left: list[_Placed] = []
        for place, s in reversed(body):
            if isinstance(s, ir.Branch) and self._simple(s) is None:
                after = self._block(left, site, f"{self.sites[id(s)]} end", after)
                after, left = self._branch(s, place, site, after), []
            else:
                left.insert(0, (place, s))
        return self._block(left, site, part, after)

    def _block(self, body: Sequence[_Placed], site: _Site, part: str, after: str) -> str:
        """Statements without branches, as one step if they do anything."""
        lost = overwritten([s for _, s in body])
        kept = [(place, s) for n, (place, s) in enumerate(body) if n not in lost]
        waiting = waits(self.program, [s for _, s in kept])
        constructs: list[Construct] = []
        present: list[tuple[Fact, Construct]] = []
        values = Values(self.program)
        for (place, s), before in zip(kept, waiting, strict=True):
            here = (*before, *self._met(s, located(site.what, place), values, added=site.added))
            values.after(s)
            if (copied := copied_header(s)) is not None:  # one that is not there leaves nothing to be made
                present += [(copied[1], what) for what in here]
            else:
                constructs += here
        effects = tuple(e for _, s in body for e in self._effects(s))
        if not constructs and not effects:
            return after
        where = located(site.what, body[0][0])
        edges = (Edge("", after),)
        return self._add(
            Step(site.name + part, "action", tuple(constructs), edges, where, effects, present=tuple(present))
        )

    def _branch(self, s: ir.Branch, place: str, site: _Site, after: str) -> str:
        name, where = site.name + self.sites[id(s)], located(site.what, place)
        edges = []
        for label, side in (("true", s.then), ("false", s.otherwise)):
            placed = [(place, inner) for inner in side]
            edges.append(Edge(label, self._statements(placed, site, f"{self.sites[id(s)]} {label}", after)))
        test, inverted = fact_of(s.condition, added=False)
        constructs = tuple(self._met(s, where, Values(self.program), added=site.added))
        return self._add(Step(name, "condition", constructs, tuple(edges), where, (), test, inverted))

    def _met(self, statement: ir.Statement, where: str, values: Values, *, added: bool = False) -> Iterator[Construct]:
        """What a packet meets at a statement; of one that a reader added only what belongs to no other."""
        idle = self._for_nothing(statement)
        yield from self._clock(statement, where)
        if added and isinstance(statement, ir.Multicast):
            if not any(statement.ports):
                self._remark("multicast is counted with one port")
        elif added and not isinstance(statement, ir.Resubmit | ir.Recirculate) and not for_lookup(statement):
            return
        if (simple := self._simple(statement, where)) is not None:
            if not idle:
                yield simple
            return
        if isinstance(statement, ir.Hash) and statement.payload:
            self._remark("what is hashed of the payload is not counted")
        for what in of_statement(values, statement, where, self.packet_bytes):
            if idle and what.kind in _LEFT_OUT:
                continue
            if what.kind == "clone":
                self._remark(f"clones are counted with {self.packet_bytes} B")
            elif what.kind in ("add header", "remove header"):
                assert isinstance(statement, ir.AddHeader | ir.RemoveHeader)  # noqa: S101 - of what else
                if statement.header not in self.program.emit:
                    if what.kind == "add header":
                        yield self._placed(statement.header, where)
                    continue
            elif what.kind == "unknown" and self.was_read:
                self._remark(f"{what.size('name')} is not known and counted as unknown")
            yield what

    def _for_nothing(self, statement: ir.Statement) -> bool:
        """Whether a statement changes only what nothing depends on, so that compilers leave it out."""
        match statement:
            case ir.AddHeader(header) | ir.RemoveHeader(header):
                return header in self.dead
            case ir.Branch(_, then, otherwise):
                return all(self._for_nothing(s) for s in (*then, *otherwise))
        to = destination(statement)
        return isinstance(statement, IDLE) and to is not None and (to in self.unused or to.header in self.dead)

    def _clock(self, statement: ir.Statement, where: str) -> Iterator[Construct]:
        """The reading of a clock; other values that a target gives are at hand."""
        asks = isinstance(statement, ir.Assign) and statement.value == ir.Intrinsic("unknown")
        if asks and self.was_read and not self._for_nothing(statement):
            yield construct("clock", where)

    def _simple(self, statement: object, where: str = "") -> Construct | None:
        """What a branch is that adds a header, copies one or sends by a port if there is one; None for all else."""
        if not isinstance(statement, ir.Branch):
            return None
        if sends(statement):
            return construct("set egress", where)
        if (header := added_header(statement)) is not None:
            return self._placed(header, where)
        if (copied := copied_header(statement)) is not None:
            return self._placed(copied[0], where)
        return None

    def _placed(self, header: str, where: str) -> Construct:
        """A header that is made: it is added, or lies in memory where it is never sent."""
        if header in self.program.emit:
            return construct("add header", where, bytes=self._size(header))
        return construct("write", where, bits=8 * self._size(header), to="header")

    def _effects(self, statement: ir.Statement) -> list[Effect]:
        match statement:
            case ir.Drop():
                return [Assigned(DROPPED, 1)]
            case ir.Multicast() if self.instance is not None:
                return [Assigned(PORT, 1), Assigned(self.instance, MULTICAST)]
            case ir.SetEgress() | ir.Multicast() | ir.Recirculate():
                return [Assigned(PORT, 1)]
            case ir.Resubmit():
                return [Assigned(RESUBMITTED, 1)]
            case ir.AddHeader(header):
                return [Valid(header, True)]
            case ir.RemoveHeader(header):
                return [Valid(header, False)]
            case ir.Assign(ref, value):
                return self._assigned(ref, value)
            case ir.Branch():
                if sends(statement):
                    return [Assigned(PORT, 1)]
                if (added := added_header(statement)) is not None:
                    return [Valid(added, True)]
                if (copied := copied_header(statement)) is not None:
                    to, source = copied
                    unknown = (Assigned(f"{to}.{f.name}", None) for f in self.program.header(to).fields)
                    return [*unknown, Valid(to, source)]
        written = destination(statement)
        return [] if written is None else [Assigned(f"{written.header}.{written.field}", None)]

    def _assigned(self, ref: ir.FieldRef, value: ir.Expression) -> list[Effect]:
        name = f"{ref.header}.{ref.field}"
        if value == _INSTANCE and name == self.instance:
            return []
        known = constant_of(value)
        if known is not None:
            known &= (1 << self.program.width_bits(ref)) - 1
        found: list[Effect] = [Assigned(name, known)]
        if ref.header == ir.METADATA and ref.field in (*PORTS, *GROUPS):
            found.append(Assigned(name + OUTCOME, _SOME if known is None else known))
        return found

    # Checksums over chosen fields

    def _checksums(self, name: str, after: str) -> str:
        """The first step of the checksums that an action calculates, each where its condition holds."""
        update = name == UPDATE_CHECKSUMS
        body = self.program.action(name).body
        for number, statement in reversed(list(enumerate(body))):
            match statement:
                case ir.Hash() | ir.Assign():
                    after = self._add(self._checksum(statement, body[number + 1 :], update, number, after))
                case ir.Branch(condition, ((ir.Hash() | ir.Assign()) as hashed, *rest)):
                    step = self._checksum(hashed, rest, update, number, after)
                    test, inverted = fact_of(condition, added=False)
                    if isinstance(test, str) and not inverted:  # a header is valid
                        after = self._add(replace(step, constructs=(), present=((test, step.constructs[0]),)))
                        continue
                    constructs = tuple(Values(self.program).condition(condition, step.where))
                    edges = (Edge("true", self._add(step)), Edge("false", after))
                    asked = CHECKSUMS[name] + self.sites[id(statement)]
                    after = self._add(Step(asked, "condition", constructs, edges, step.where, (), test, inverted))
        return after

    def _checksum(
        self, hashed: ir.Hash | ir.Assign, rest: Sequence[ir.Statement], update: bool, number: int, after: str
    ) -> Step:
        ref = hashed.destination
        if not update and rest and isinstance(rest[0], ir.Branch) and isinstance(rest[0].condition, ir.Compare):
            compared = rest[0].condition.right
            ref = compared if isinstance(compared, ir.FieldRef) else ref
        if isinstance(hashed, ir.Hash) and hashed.payload:
            self._remark(f"the checksum of {ref.header} goes over the payload, which is not counted")
        size = hashed_bytes(self.program, hashed)
        where = f"checksum of {ref.header}"
        what = construct("checksum update" if update else "checksum verify", where, bytes=size)
        return Step(f"{'update' if update else 'verify'} {number}", "block", (what,), (Edge("", after),), where)
