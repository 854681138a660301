"""A specification of an SWX pipeline (.spec) as a :class:`~p4perf.programs.ir.Program`.

What comes before the last header that is extracted becomes the parser, with a state for every place to which packets
jump; what comes behind it becomes control flow. Metadata are zero when a packet comes in, and so are headers that are
made valid: on SWX they hold whatever earlier packets left there.

A selector is a table of its groups, each of which has one member: the first one, 0, as long as none is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from p4perf.formats.swx_spec import IMMEDIATE_BITS, Specification, SpecLine, number
from p4perf.programs import ir
from p4perf.programs.analysis import flattened, written_fields
from p4perf.programs.dataflow import follow
from p4perf.programs.reading.commands import ControlPlane
from p4perf.programs.reading.swx_graph import Graph, Structure
from p4perf.programs.reading.swx_statements import IN_PARSER, InstructionReader, Operands
from p4perf.programs.reading.values import distinct, identifier

OF_LINE = "own_line_"
"""Begin of the names of actions that hold instructions of the apply block."""

_KINDS: Mapping[str, ir.MatchKind] = {"exact": "exact", "lpm": "lpm", "wildcard": "ternary"}


def read_swx(spec: Specification, plane: ControlPlane | None = None, name: str = "program") -> ir.Program:
    """Read a specification.

    Raises:
        DataError: it has what is not supported; with the line.
    """
    return SwxReader(spec, plane or ControlPlane()).program(name)


def entries_text(program: ir.Program) -> str:
    """The entries of a program that was read, in the format of DPDK's pipeline application."""
    return "".join(f"{line}\n" for table in program.tables if table.listing for line in _entry_lines(program, table))


def _entry_lines(program: ir.Program, table: ir.Table) -> Iterator[str]:
    yield f"table {table.label}"
    exact = program.match_kind(table) == "exact"
    for priority, entry in enumerate(table.listing):
        action = program.action(entry.action)
        widths = [program.width_bits(key.field) for key in table.keys]
        keys = (
            _hexadecimal(m.low, bits) + ("" if exact else f"/{_hexadecimal(m.mask & ((1 << bits) - 1), bits)}")
            for m, bits in zip(entry.matches, widths, strict=True)
        )
        data = (
            f"{p.name} {_hexadecimal(value, p.width_bits)}"
            for p, value in zip(action.parameters, entry.data, strict=True)
        )
        order = () if exact else ("priority", str(priority))
        yield " ".join(["match", *keys, *order, "action", action.label, *data])


def _hexadecimal(value: int, bits: int) -> str:
    """A number; one of more than 64 bit has all of its digits, as DPDK takes it byte by byte."""
    return f"0x{value:0{bits // 4 if bits > IMMEDIATE_BITS else 1}x}"


class SwxReader:
    """Reads one specification; what its apply block does is only asked for the whole program."""

    def __init__(self, spec: Specification, plane: ControlPlane) -> None:
        self.spec = spec
        self._plane = plane
        self.graph = Graph.of(spec.apply.lines)
        self._bodies = {name: Graph.of(line.lines) for name, line in spec.actions.items()}
        self._lines = lines = [line for _, line in self.instructions()]
        self.operands = Operands(spec, frozenset(spec.headers) - _carried(lines))
        self.statements = InstructionReader(self.operands, _counted(spec, lines), {})
        self.made: dict[str, ir.Action] = {}

    def instructions(self) -> Iterator[tuple[str, SpecLine]]:
        """All instructions, and the action that each stands in, empty for the apply block."""
        for action, graph in (("", self.graph), *self._bodies.items()):
            yield from ((action, line) for line in graph.lines)

    def declarations(self, name: str) -> ir.Program:
        """Headers, metadata, tables and arrays; actions without statements, and no control flow."""
        spec, operands, counted = self.spec, self.operands, self.statements.counted
        for action, line in spec.actions.items():
            self.made[identifier(action)] = self._action(action, line)
        tables = [self._table(table, line) for table, line in spec.tables.items()]
        tables += [self._selector(table, line) for table, line in spec.selectors.items()]
        arrays = {n: size for n, size in spec.registers.items() if n not in counted}
        return ir.Program(
            name=identifier(name),
            headers=tuple(self._header(h) for h in spec.headers if h not in operands.memory),
            metadata=tuple(operands.metadata()),
            parser=(),
            actions=tuple(self.made.values()),
            tables=tuple(tables),
            control=(),
            emit=(),
            counters=tuple(ir.Counter(identifier(n), spec.registers[n]) for n in spec.registers if n in counted),
            meters=tuple(ir.Meter(identifier(n), size) for n, size in spec.meters.items()),
            registers=tuple(ir.Register(identifier(n), size, 64) for n, size in arrays.items()),
        )

    def program(self, name: str) -> ir.Program:
        operands, graph = self.operands, self.graph
        whole = self.declarations(name)
        emit, self.statements.hidden = _emitted(graph)
        for action in self.spec.actions:
            made = self.made[identifier(action)]
            self.made[made.name] = replace(made, body=self._body(action))
        received = graph.lines[0] if graph.lines else self.spec.apply
        if received.word(0) != "rx":
            raise received.error("the first instruction is not rx")
        port = ir.Assign(operands.ref(received.word(1), received), ir.Intrinsic("ingress_port"))
        parser = _Parser(self)
        states, control = tuple(parser.states()), tuple(parser.control())
        if any(isinstance(s, ir.Exit) for a in self.made.values() for s in flattened(a.body)):
            control = (ir.Block(control),)
        program = replace(
            whole,
            metadata=tuple(operands.metadata()),
            parser=states,
            actions=tuple(self.made.values()),
            control=control,
            emit=tuple(operands.header_name(h) for h in emit),
            initial=(port,),
        )
        return _trimmed(program) if any(line.words == ("recirculate",) for line in self._lines) else program

    def place(self, line: SpecLine) -> str:
        return f"{line.file.rsplit('/', 1)[-1]}:{line.number}"

    def _header(self, name: str) -> ir.Header:
        varying = self.spec.varying.get(self.spec.headers[name], "")
        pairs = zip(self.operands.refs(name), self.operands.fields(name), strict=True)
        fields = tuple(ir.Field(ref.field, bits, varying=each == varying) for ref, (each, bits) in pairs)
        return ir.Header(self.operands.header_name(name), fields)

    def _action(self, name: str, line: SpecLine) -> ir.Action:
        arguments = self.spec.structs.get(self.spec.arguments(name), ())
        parameters = tuple(ir.Field(identifier(n), bits) for n, bits in arguments)
        return ir.Action(identifier(name), parameters, place=self.place(line), label=name)

    def _body(self, action: str) -> ir.Statements:
        """The statements of an action."""

        def no_table(line: SpecLine, *_: object) -> ir.Statement:
            raise line.error("a table cannot be applied in an action")

        graph = self._bodies[action]
        structure = Structure[ir.Statement](
            graph,
            condition=lambda line: self.operands.condition(line, action),
            plain=lambda lines: (s for line in lines for s in self.statements.of(line, action)),
            branch=lambda condition, then, otherwise, line: ir.Branch(condition, then, otherwise),
            table=no_table,
            actions=lambda line: (),
        )
        return tuple(structure.nested(0, graph.end))

    def control(self) -> Structure[ir.ControlNode]:
        """The control flow of the apply block."""
        return Structure(
            self.graph, self.operands.condition, self._plain, self._branch, self._applied, self._actions_at
        )

    def _plain(self, lines: Sequence[SpecLine]) -> Iterator[ir.ControlNode]:
        body = tuple(s for line in lines for s in self.statements.of(line))
        if body:
            yield self._run(f"{OF_LINE}{lines[0].number}", body, lines[0])

    def _branch(self, condition: ir.Condition, then: ir.Nodes, otherwise: ir.Nodes, line: SpecLine) -> ir.ControlNode:
        text, place = " ".join(line.words), self.place(line)
        return ir.If(condition, then, otherwise, text, place=place, label=f"line {line.number}")

    def _applied(
        self, line: SpecLine, hit: ir.Nodes, miss: ir.Nodes, cases: tuple[tuple[str, ir.Nodes], ...]
    ) -> ir.ControlNode:
        name = line.word(1)
        if name in self.spec.learners:
            raise line.error(f"table {name} is a learner table, which is not supported")
        if name not in self.spec.tables and name not in self.spec.selectors:
            raise line.error(f"there is no table {name!r}")
        return ir.ApplyTable(identifier(name), hit, miss, tuple((identifier(action), nodes) for action, nodes in cases))

    def _actions_at(self, line: SpecLine) -> tuple[str, ...]:
        """The actions of the table that a line applies; none if it has none."""
        table = self.spec.tables.get(line.word(1))
        return self._actions_of(table) if table is not None else ()

    def _run(self, name: str, body: ir.Statements, line: SpecLine) -> ir.CallAction:
        """The control flow that runs statements."""
        same = next((a.name for a in self.made.values() if a.name.startswith(name) and a.body == body), None)
        if same is None:
            same = distinct(name, self.made)
            self.made[same] = ir.Action(same, body=body, place=self.place(line))
        return ir.CallAction(same)

    # Tables

    def _actions_of(self, line: SpecLine) -> tuple[str, ...]:
        """The actions of a table, those of entries first, as the specification calls them."""
        inner, default = line.inner("actions"), line.inner("default_action")
        listed = [each.word(0) for each in (inner.lines if inner is not None else ())]
        found = tuple(dict.fromkeys([*listed, *([default.word(1)] if default is not None else [])]))
        for name in found:
            if name not in self.spec.actions:
                raise line.error(f"there is no action {name!r}")
        return found

    def _table(self, name: str, line: SpecLine) -> ir.Table:
        inner, actions, size = line.inner("key"), line.inner("actions"), line.inner("size")
        keys = tuple(self._key(each) for each in (inner.lines if inner is not None else ()))
        only = [e.word(0) for e in (actions.lines if actions is not None else ()) if "@defaultonly" in e.words]
        known = [a for a in self._actions_of(line) if a not in only]
        default, data = self._default(name, line)
        found = [
            ir.Entry(e.keys, identifier(e.action), e.data)
            for e in sorted(self._plane.tables.get(name, []), key=lambda e: (e.priority, -e.prefix))
        ]
        listed = tuple(dict.fromkeys([*map(identifier, known), default]))
        entries = ir.EntryList(tuple(found))
        most = size.number_at(1) if size is not None else 0
        return ir.Table(
            identifier(name), keys, listed, default, entries, data, place=self.place(line), label=name, size=most
        )

    def _key(self, line: SpecLine) -> ir.Key:
        kind = line.words[1] if len(line.words) > 1 else "exact"
        if kind not in _KINDS:
            raise line.error(f"{kind!r} is no kind of match: exact, lpm, wildcard")
        return ir.Key(self.operands.ref(line.word(0), line), _KINDS[kind])

    def _default(self, table: str, line: SpecLine) -> tuple[str, tuple[int, ...]]:
        if table in self._plane.defaults:
            name, data = self._plane.defaults[table]
            return identifier(name), data
        default = line.inner("default_action")
        if default is None:
            raise line.error("has no default_action")
        parameters = self.spec.structs.get(self.spec.arguments(default.word(1)), ())
        words = default.words[default.words.index("args") + 1 :] if "args" in default.words else ()
        given = {name: number(word) for name, word in zip(words[::2], words[1::2], strict=False)}
        values = [given.get(name) for name, _ in parameters]
        if any(value is None for value in values):
            raise default.error("does not give all arguments of the action")
        return identifier(default.word(1)), tuple(value or 0 for value in values)

    def _selector(self, name: str, line: SpecLine) -> ir.Table:
        group, member, groups = (line.inner(word) for word in ("group_id", "member_id", "n_groups_max"))
        if group is None or member is None:
            raise line.error("has no group_id or no member_id")
        ref = self.operands.ref(member.word(1), member)
        chosen = f"own_member_of_{identifier(name)}"
        parameter = ir.Field("member", self.spec.bits(member.word(1), member))
        self.made[chosen] = ir.Action(chosen, (parameter,), (ir.Assign(ref, ir.ParameterRef("member")),))
        keys = (ir.Key(self.operands.ref(group.word(1), group)),)
        most = groups.number_at(1) if groups is not None else 0
        place = self.place(line)
        return ir.Table(
            identifier(name), keys, (chosen,), chosen, ir.EntryList(), (0,), place=place, label=name, size=most
        )


class _Parser:
    """The parser, and where the control flow begins behind it.

    ``inside`` are the instructions of the parser, ``delayed`` those that stand in it and may as well come behind it.
    """

    def __init__(self, reader: SwxReader) -> None:
        self.reader, graph = reader, reader.graph
        reach = {graph.end: False}
        for n in reversed(graph.order):
            taken = graph.lines[n].word(0) in ("extract", "lookahead")
            reach[n] = taken or any(reach[after] for after in graph.following[n])
        self.inside = {n for n in graph.order if reach[n]} or {0}
        exits = self._exits()
        more = graph.between(exits, graph.meet(exits))
        if all(graph.is_test(n) or self._fits(n) for n in more):
            self.inside |= more
            exits = self._exits()
        self.exits = tuple(sorted(exits))
        self.delayed = tuple(self._delay())

    def _exits(self) -> set[int]:
        return {after for n in self.inside for after in self.reader.graph.following[n]} - self.inside

    def _fits(self, n: int) -> bool:
        return self.reader.graph.lines[n].word(0) in ("jmp", *IN_PARSER)

    def _delay(self) -> Iterator[SpecLine]:
        """Instructions that are no parser's: those that every packet meets, and on which nothing there depends."""
        graph = self.reader.graph
        inside = [n for n in graph.order if n in self.inside]
        straight = next((at for at, n in enumerate(inside) if len(graph.following[n]) > 1), len(inside))
        for at, n in enumerate(inside[1:], 1):
            line = graph.lines[n]
            if graph.is_test(n) or self._fits(n):
                continue
            later = [graph.lines[m].words for m in inside[at + 1 :]]
            written = line.word(1) if line.word(0) == "regrd" else ""
            if (
                at > straight
                or line.word(0) != "regrd"
                or any(written in words for words in later)
                or any(words[1:2] == (word,) for words in later for word in line.words[2:])
            ):
                raise line.error(f"{line.word(0)} before headers are extracted is not supported")
            yield line

    def states(self) -> Iterator[ir.ParserState]:
        """The states, ``start`` first."""
        names, todo, several = {0: "start"}, [0], len(self.exits) > 1

        def named(n: int) -> str:
            """The state that goes on at an instruction."""
            if n not in self.inside:
                return f"own_exit_{self.exits.index(n)}" if several else ir.ACCEPT
            if n not in names:
                names[n] = distinct(self._name(n), (*names.values(), ir.ACCEPT))
                todo.append(n)
            return names[n]

        while todo:
            begin = todo.pop()
            yield self._state(names[begin], begin, named)
        if several:
            at = self.reader.operands.scratch("exit", 8)
            for k in range(len(self.exits)):
                yield ir.ParserState(f"own_exit_{k}", (ir.Assign(at, ir.Const(k)),))

    def _name(self, n: int) -> str:
        graph = self.reader.graph
        label = next((label for label, at in graph.labels.items() if at == n), "")
        return identifier(label) if label else f"line_{graph.lines[n].number}"

    def _state(self, name: str, begin: int, named: Callable[[int], str]) -> ir.ParserState:
        """A state up to the next jump."""
        graph, n, body = self.reader.graph, begin, list[ir.ParserStatement]()
        selected: tuple[ir.Expression, ...] = ()
        cases: tuple[ir.SelectCase, ...] = ()
        while n in self.inside and (n == begin or graph.sources[n] == 1):
            line = graph.lines[n]
            if graph.is_test(n):
                field, values, n = self._select(n)
                selected, cases = (field,), tuple(ir.SelectCase.of_value(value, named(to)) for value, to in values)
                break
            if line.word(0) not in ("jmp", "rx") and line not in self.delayed:
                body += self.reader.statements.in_parser(line)
            n = graph.following[n][0]
        return ir.ParserState(
            name, tuple(body), selected, cases, named(n), place=self.reader.place(graph.lines[begin]), label=name
        )

    def _select(self, n: int) -> tuple[ir.Expression, list[tuple[int, int]], int]:
        """What a jump selects on, the values and where they lead, and where others lead.

        Jumps that compare the same field with constants one after another are one.
        """
        graph, values = self.reader.graph, list[tuple[int, int]]()
        selected, value = _case(self.reader.operands.condition(graph.lines[n]))
        if value is None:
            taken, falls = graph.following[n]
            return selected, [(1, taken)], falls
        field = selected
        while value is not None and selected == field:
            taken, falls = graph.following[n]
            if graph.lines[n].word(0) == "jmpneq":
                taken, falls = falls, taken
            values.append((value, taken))
            n, value = falls, None
            if n in self.inside and graph.is_test(n) and graph.sources[n] == 1:
                selected, value = _case(self.reader.operands.condition(graph.lines[n]))
        return field, values, n

    def control(self) -> Iterator[ir.ControlNode]:
        """The control flow behind the parser."""
        reader, graph = self.reader, self.reader.graph
        structure = reader.control()
        yield from structure.plain(self.delayed)
        meet = graph.meet(self.exits)
        if len(self.exits) > 1:
            at = reader.operands.scratch("exit", 8)
            rest: ir.Nodes = ()
            for k in reversed(range(len(self.exits))):
                nodes = tuple(structure.nested(self.exits[k], meet))
                rest = (ir.If(ir.Compare("==", at, ir.Const(k)), nodes, rest),) if k + 1 < len(self.exits) else nodes
            yield from rest
        yield from structure.nested(meet, graph.end)


def _trimmed(program: ir.Program) -> ir.Program:
    """The program with packets that keep only the metadata for another pass which may be read before it is written."""
    found = follow(program)
    early = {r.field for r in (*found.reads, *found.selects.values()) if r.field not in r.state.assigned}
    kept = (early | {a.destination for a in program.initial}) & written_fields(program)

    def trimmed(s: ir.Statement) -> ir.Statement:
        if isinstance(s, ir.Branch):
            return replace(s, then=tuple(map(trimmed, s.then)), otherwise=tuple(map(trimmed, s.otherwise)))
        return ir.Recirculate(tuple(ref for ref in s.keep if ref in kept)) if isinstance(s, ir.Recirculate) else s

    return replace(program, actions=tuple(replace(a, body=tuple(map(trimmed, a.body))) for a in program.actions))


def _case(condition: ir.Condition) -> tuple[ir.Expression, int | None]:
    """The field and the value that are compared for equality; no value if it is another comparison."""
    match condition:
        case ir.Compare("==" | "!=", ir.FieldRef() as field, ir.Const(value)):
            return field, value
    return ir.Truth(condition), None


def _carried(lines: Sequence[SpecLine]) -> frozenset[str]:
    """The headers that packets carry, or that are asked for."""
    at = {"extract": 1, "emit": 1, "jmpv": 2, "jmpnv": 2}
    return frozenset(line.word(at[line.word(0)]).removeprefix("h.") for line in lines if line.word(0) in at)


def _counted(spec: Specification, lines: Sequence[SpecLine]) -> frozenset[str]:
    """The register arrays that count: the only thing that is done with them is to add one."""
    used = {word: set[tuple[str, ...]]() for word in spec.registers}
    for line in lines:
        for word in line.words[1:]:
            if word in used:
                used[word].add((line.word(0), str(number(line.words[-1]))))
    return frozenset(name for name, found in used.items() if found == {("regadd", "1")})


def _emitted(graph: Graph) -> tuple[tuple[str, ...], dict[int, tuple[str, ...]]]:
    """The headers that are sent, in order, and those of them that are not sent by some lines.

    Raises:
        DataError: they depend on how a packet came to a line, or their order does; or one is sent twice.
    """
    arrived: dict[int, set[tuple[str, ...]]] = {0: {()}}
    sent: dict[int, tuple[str, ...]] = {}
    for n in graph.order:
        line, found = graph.lines[n], arrived.get(n, set())
        if line.word(0) == "tx":
            if len(found) > 1:
                raise line.error("which headers are sent depends on jumps")
            sent[line.number] = next(iter(found))
        if line.word(0) == "emit":
            header = line.word(1).removeprefix("h.")
            if any(header in each for each in found):
                raise line.error(f"header {header} is sent twice")
            found = {(*each, header) for each in found}
        elif line.word(0) in ("validate", "invalidate", "extract") and any(
            line.word(1).removeprefix("h.") in each for each in found
        ):
            raise line.error("changes a header that is being sent")
        for after in graph.following[n]:
            arrived.setdefault(after, set()).update(found)
    order = max(sent.values(), key=len, default=())
    for number_of_line, headers in sent.items():
        places = [order.index(h) if h in order else -1 for h in headers]
        if -1 in places or places != sorted(places):
            line = next(each for each in graph.lines if each.number == number_of_line)
            raise line.error("headers are sent in different orders")
    hidden = {n: tuple(h for h in order if h not in headers) for n, headers in sent.items() if headers != order}
    return order, hidden
