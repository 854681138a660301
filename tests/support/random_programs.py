"""Programs that nobody would write: every construct with parameters drawn at random."""

from p4perf.programs.hashes import internet_checksum
from p4perf.programs.ir import (
    METADATA,
    Action,
    AddHeader,
    ApplyTable,
    Assign,
    BinaryOp,
    CallAction,
    Clone,
    Compare,
    Const,
    Counter,
    CountPacket,
    Drop,
    EntrySet,
    Field,
    FieldRef,
    Hash,
    Header,
    HeaderChecksum,
    HeaderValues,
    If,
    IsValid,
    Key,
    Meter,
    MeterPacket,
    Multicast,
    PacketSpec,
    ParameterRef,
    ParserState,
    PassNumber,
    Program,
    Random,
    ReadRegister,
    Recirculate,
    Register,
    RemoveHeader,
    Resubmit,
    SelectCase,
    SetEgress,
    Table,
    VaryingField,
    Workload,
    WriteRegister,
)

WIDTHS = (1, 3, 4, 7, 8, 8, 9, 12, 13, 16, 16, 20, 24, 29, 31, 32, 32, 33, 40, 47, 48, 56, 61, 63, 64, 64, 72, 100, 128)
ALGORITHMS = ("crc16", "crc32", "checksum16")


class Author:
    """Writes one program."""

    def __init__(self, rng, paths):
        self.rng = rng
        self.paths = paths
        self.tag = Field("tag", 8)
        self.headers = [self.header(n) for n in range(rng.randint(2, 6))]
        self.metadata = [Field(f"m{n}", rng.choice(WIDTHS)) for n in range(rng.randint(1, 3))]
        self.refs = [FieldRef(h.name, f.name) for h in self.headers for f in h.fields]
        self.refs += [FieldRef(METADATA, f.name) for f in self.metadata]
        self.chain = self.headers[: rng.randint(1, len(self.headers))]
        self.counters = [Counter("packets", 8)]
        self.registers = [Register("odd", 4, rng.choice((1, 7, 13, 33, 64))), Register("even", 1, 32)]
        self.meters = [Meter("rate", 4)]

    def header(self, n):
        widths = [self.rng.choice(WIDTHS) for _ in range(self.rng.randint(1, 5))]
        widths.append(-sum(widths) % 8 or 8)
        fields = (self.tag, Field("sum", 16), *(Field(f"f{k}", w) for k, w in enumerate(widths)))
        return Header(f"h{n}", fields)

    def width(self, ref):
        owner = (
            self.metadata if ref.header == METADATA else next(h for h in self.headers if h.name == ref.header).fields
        )
        return next(f.width_bits for f in owner if f.name == ref.field)

    def narrow(self):
        return self.rng.choice([r for r in self.refs if self.width(r) <= 64])

    def leaf(self, parameters=()):
        choices = [self.narrow(), Const(self.rng.choice((0, 1, 255, 2**32 + 5, 2**64 - 1))), PassNumber()]
        choices += [ParameterRef(p.name) for p in parameters]
        return self.rng.choice(choices)

    def expression(self, destination, parameters=()):
        """For a wide destination a plain copy, else anything."""
        if self.width(destination) > 64 or self.rng.random() < 0.3:
            return self.rng.choice([self.rng.choice(self.refs), self.leaf(parameters), Const(2**100 + 77)])
        value = self.leaf(parameters)
        for _ in range(self.rng.randrange(4)):
            value = BinaryOp(self.rng.choice("+-&|^"), value, self.leaf(parameters))
        return value

    def statement(self, parameters=()):
        rng, ref = self.rng, self.rng.choice(self.refs)
        kind = rng.randrange(12)
        if kind == 0:
            header = rng.choice(self.headers)
            chosen = rng.sample(header.fields, rng.randint(0, len(header.fields)))
            values = tuple((f.name, self.expression(FieldRef(header.name, f.name), parameters)) for f in chosen)
            return AddHeader(header.name, values)
        if kind == 1:
            return RemoveHeader(rng.choice(self.headers).name)
        if kind == 2:
            fields = rng.sample(self.refs, rng.randint(1, min(5, len(self.refs))))
            while sum(map(self.width, fields)) % 8:
                fields.pop()
            return Hash(ref, rng.choice(ALGORITHMS), tuple(fields or [FieldRef(self.headers[0].name, "sum")]))
        if kind == 3:
            return CountPacket("packets", self.leaf(parameters))
        if kind == 4:
            return ReadRegister(ref, rng.choice(self.registers).name, self.leaf(parameters))
        if kind == 5:
            return WriteRegister(rng.choice(self.registers).name, self.leaf(parameters), self.leaf(parameters))
        if kind == 6:
            return MeterPacket(ref, "rate", self.leaf(parameters))
        if kind == 7:
            return SetEgress(Const(rng.randint(0, 9)))
        return Assign(ref, self.expression(ref, parameters))

    def path_statement(self):
        choices = [Drop(), SetEgress(Const(4)), *({
            "copies": [Clone(self.rng.randint(0, 9)), Multicast((1, 3, 8)), Multicast(()), Multicast((5,))],
            "again": [Recirculate(), Resubmit()],
            "random": [],
        }[self.paths])]  # fmt: skip
        return self.rng.choice(choices)

    def condition(self):
        if self.rng.random() < 0.4:
            return IsValid(self.rng.choice(self.headers).name)
        return Compare(self.rng.choice(("==", "!=", "<", ">", "<=", ">=")), self.leaf(), self.leaf())

    def table(self, n, action):
        kind = self.rng.choice(("exact", "lpm", "ternary", "ternary"))
        most = {"exact": 4096, "lpm": 128, "ternary": 2016}[kind]
        keys, bits = [], 0
        for ref in self.rng.sample(self.refs, self.rng.randint(1, 3)):
            if bits + self.width(ref) <= most:
                keys.append(ref)
                bits += self.width(ref)
        last = self.width(keys[-1]) if keys else 0
        if not keys:
            return self.table(n, action)
        free = 0 if kind == "exact" else self.rng.randrange(last)
        kinds = ["exact"] * (len(keys) - 1) + [kind]
        count = min(self.rng.choice((1, 5, 300)), 1 << (bits - free))
        return Table(
            f"t{n}",
            tuple(Key(ref, k) for ref, k in zip(keys, kinds, strict=True)),
            (action.name, "miss"),
            "miss",
            EntrySet(count, action.name, port=self.rng.randint(1, 9), free_bits=free),
        )

    def parser(self):
        states = []
        for n, header in enumerate(self.chain):
            name = "start" if n == 0 else f"s{n}"
            if n + 1 == len(self.chain):
                states.append(ParserState(name, (header.name,)))
                continue
            cases = [SelectCase(n, f"s{n + 1}"), SelectCase(200, "accept"), SelectCase(n, "accept")]
            if n + 2 < len(self.chain):
                cases.append(SelectCase(1, f"s{n + 2}"))
            default = self.rng.choice(("accept", f"s{n + 1}"))
            states.append(ParserState(name, (header.name,), FieldRef(header.name, "tag"), tuple(cases), default))
        return tuple(states)

    def nodes(self, calls, depth=0):
        found = []
        for _ in range(self.rng.randint(1, 4)):
            if depth < 3 and self.rng.random() < 0.35:
                found.append(If(self.condition(), self.nodes(calls, depth + 1), self.nodes(calls, depth + 1)[:1]))
            else:
                found.append(self.rng.choice(calls))
        return tuple(found)

    def program(self):
        rng = self.rng
        parameters = tuple(Field(f"a{k}", rng.choice(WIDTHS)) for k in range(rng.randint(0, 4)))
        body = (SetEgress(Const(2)), *(self.statement(parameters) for _ in range(rng.randint(1, 4))))
        actions = [Action("hit", parameters, body), Action("bare", (), (SetEgress(Const(6)),))]
        actions.append(Action("miss", (), (self.statement(),)))
        actions += [Action(f"do{n}", (), tuple(self.statement() for _ in range(rng.randint(1, 4)))) for n in range(3)]
        actions += [Action(f"path{n}", (), (self.path_statement(),)) for n in range(2)]
        tables = [self.table(n, rng.choice(actions[:2])) for n in range(rng.randint(0, 3))]
        calls = [*(ApplyTable(t.name) for t in tables), *(CallAction(f"do{n}") for n in range(3))]
        control = (*self.nodes(calls), CallAction("path0"), *self.nodes(calls)[:2])
        if self.paths == "again":
            control = (*control, If(Compare("<", PassNumber(), Const(rng.randint(1, 3))), (CallAction("path1"),)))
            control = tuple(n for n in control if n != CallAction("path0"))
        headers, emit = list(self.headers), [h.name for h in self.headers]
        if rng.random() < 0.4:
            rng.shuffle(emit)
        if self.paths == "random":
            headers.append(Header("dice", (Field("low", 13), Field("high", 83))))
            emit.append("dice")
            roll = tuple(Random(FieldRef("dice", f)) for f in ("low", "high"))
            actions.append(Action("roll", (), (AddHeader("dice"), *roll)))
            control = (*control, CallAction("roll"))
        sums = rng.sample(self.headers, 2)
        return Program(
            name="drawn",
            headers=tuple(headers),
            metadata=tuple(self.metadata),
            parser=self.parser(),
            actions=tuple(actions),
            tables=tuple(tables),
            control=(CallAction("bare"), *control),
            emit=tuple(emit),
            counters=tuple(self.counters),
            meters=tuple(self.meters),
            registers=tuple(self.registers),
            verified=(HeaderChecksum(sums[0].name, "sum"),) if rng.random() < 0.3 else (),
            updated=(HeaderChecksum(sums[1].name, "sum"),) if rng.random() < 0.5 else (),
        )

    def packets(self):
        carried = []
        for n, header in enumerate(self.chain):
            values = {
                f.name: self.rng.getrandbits(f.width_bits) >> self.rng.randrange(f.width_bits) for f in header.fields
            }
            values |= {"tag": n, "sum": 0}
            number = 0
            for f in header.fields:
                number = number << f.width_bits | values[f.name]
            values["sum"] = internet_checksum(number.to_bytes(header.size_bytes, "big"))
            carried.append(HeaderValues(header.name, tuple(values.items())))
        fields = [(h, f) for h in self.chain for f in h.fields if f.name.startswith("f") and 8 <= f.width_bits <= 64]
        header, field = self.rng.choice(fields) if fields else (self.chain[0], self.chain[0].fields[1])
        varying = VaryingField(FieldRef(header.name, field.name), min(300, 1 << (field.width_bits - 1)))
        return PacketSpec(tuple(carried), (varying,), 600)


def random_workload(rng, paths):
    """A workload whose program uses anything; ``paths`` is ``copies``, ``again`` or ``random``."""
    author = Author(rng, paths)
    program = author.program()
    return Workload(program, program, author.packets())
