"""Programs that nobody would write: every construct with parameters drawn at random."""

from support.parser_states import extracting

from p4perf.programs import ir
from p4perf.programs.operators import internet_checksum

WIDTHS = (1, 3, 4, 7, 8, 8, 9, 12, 13, 16, 16, 20, 24, 29, 31, 32, 32, 33, 40, 47, 48, 56, 61, 63, 64, 64, 72, 100, 128)
ALGORITHMS = ("crc16", "crc32", "checksum16")


class Author:
    """Writes one program."""

    def __init__(self, rng, paths):
        self.rng = rng
        self.paths = paths
        self.tag = ir.Field("tag", 8)
        self.headers = [self.header(n) for n in range(rng.randint(2, 6))]
        self.metadata = [ir.Field(f"m{n}", rng.choice(WIDTHS)) for n in range(rng.randint(1, 3))]
        self.refs = [ir.FieldRef(h.name, f.name) for h in self.headers for f in h.fields]
        self.refs += [ir.FieldRef(ir.METADATA, f.name) for f in self.metadata]
        self.chain = self.headers[: rng.randint(1, len(self.headers))]
        self.counters = [ir.Counter("packets", 8)]
        self.registers = [ir.Register("odd", 4, rng.choice((1, 7, 13, 33, 64))), ir.Register("even", 1, 32)]
        self.meters = [ir.Meter("rate", 4)]

    def header(self, n):
        widths = [self.rng.choice(WIDTHS) for _ in range(self.rng.randint(1, 5))]
        widths.append(-sum(widths) % 8 or 8)
        fields = (self.tag, ir.Field("sum", 16), *(ir.Field(f"f{k}", w) for k, w in enumerate(widths)))
        return ir.Header(f"h{n}", fields)

    def width(self, ref):
        owner = (
            self.metadata if ref.header == ir.METADATA else next(h for h in self.headers if h.name == ref.header).fields
        )
        return next(f.width_bits for f in owner if f.name == ref.field)

    def narrow(self):
        return self.rng.choice([r for r in self.refs if self.width(r) <= 64])

    def leaf(self, parameters=()):
        choices = [self.narrow(), ir.Const(self.rng.choice((0, 1, 255, 2**32 + 5, 2**64 - 1))), ir.PassNumber()]
        choices += [ir.ParameterRef(p.name) for p in parameters]
        return self.rng.choice(choices)

    def expression(self, destination, parameters=()):
        """For a wide destination a plain copy, else anything."""
        if self.width(destination) > 64 or self.rng.random() < 0.3:
            return self.rng.choice([self.rng.choice(self.refs), self.leaf(parameters), ir.Const(2**100 + 77)])
        value = self.leaf(parameters)
        for _ in range(self.rng.randrange(4)):
            value = ir.BinaryOp(self.rng.choice("+-&|^"), value, self.leaf(parameters))
        return value

    def statement(self, parameters=()):
        rng, ref = self.rng, self.rng.choice(self.refs)
        kind = rng.randrange(12)
        if kind == 0:
            header = rng.choice(self.headers)
            chosen = rng.sample(header.fields, rng.randint(0, len(header.fields)))
            values = tuple((f.name, self.expression(ir.FieldRef(header.name, f.name), parameters)) for f in chosen)
            return ir.AddHeader(header.name, values)
        if kind == 1:
            return ir.RemoveHeader(rng.choice(self.headers).name)
        if kind == 2:
            fields = rng.sample(self.refs, rng.randint(1, min(5, len(self.refs))))
            while sum(map(self.width, fields)) % 8:
                fields.pop()
            return ir.Hash(ref, rng.choice(ALGORITHMS), tuple(fields or [ir.FieldRef(self.headers[0].name, "sum")]))
        if kind == 3:
            return ir.CountPacket("packets", self.leaf(parameters))
        if kind == 4:
            return ir.ReadRegister(ref, rng.choice(self.registers).name, self.leaf(parameters))
        if kind == 5:
            return ir.WriteRegister(rng.choice(self.registers).name, self.leaf(parameters), self.leaf(parameters))
        if kind == 6:
            return ir.MeterPacket(ref, "rate", self.leaf(parameters))
        if kind == 7:
            return ir.SetEgress(ir.Const(rng.randint(0, 9)))
        return ir.Assign(ref, self.expression(ref, parameters))

    def path_statement(self):
        choices = [ir.Drop(), ir.SetEgress(ir.Const(4)), *({
            "copies": [ir.Clone(self.rng.randint(0, 9)), ir.Multicast((1, 3, 8)), ir.Multicast(()), ir.Multicast((5,))],
            "again": [ir.Recirculate(), ir.Resubmit()],
            "random": [],
        }[self.paths])]  # fmt: skip
        return self.rng.choice(choices)

    def condition(self):
        if self.rng.random() < 0.4:
            return ir.IsValid(self.rng.choice(self.headers).name)
        return ir.Compare(self.rng.choice(("==", "!=", "<", ">", "<=", ">=")), self.leaf(), self.leaf())

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
        return ir.Table(
            f"t{n}",
            tuple(ir.Key(ref, k) for ref, k in zip(keys, kinds, strict=True)),
            (action.name, "miss"),
            "miss",
            ir.EntrySet(count, action.name, port=self.rng.randint(1, 9), free_bits=free),
        )

    def parser(self):
        states = []
        for n, header in enumerate(self.chain):
            name = "start" if n == 0 else f"s{n}"
            if n + 1 == len(self.chain):
                states.append(extracting(name, (header.name,)))
                continue
            cases = [
                ir.SelectCase.of_value(n, f"s{n + 1}"),
                ir.SelectCase.of_value(200, "accept"),
                ir.SelectCase.of_value(n, "accept"),
            ]
            if n + 2 < len(self.chain):
                cases.append(ir.SelectCase.of_value(1, f"s{n + 2}"))
            default = self.rng.choice(("accept", f"s{n + 1}"))
            states.append(extracting(name, (header.name,), ir.FieldRef(header.name, "tag"), tuple(cases), default))
        return tuple(states)

    def nodes(self, calls, depth=0):
        found = []
        for _ in range(self.rng.randint(1, 4)):
            if depth < 3 and self.rng.random() < 0.35:
                found.append(ir.If(self.condition(), self.nodes(calls, depth + 1), self.nodes(calls, depth + 1)[:1]))
            else:
                found.append(self.rng.choice(calls))
        return tuple(found)

    def program(self):
        rng = self.rng
        parameters = tuple(ir.Field(f"a{k}", rng.choice(WIDTHS)) for k in range(rng.randint(0, 4)))
        body = (ir.SetEgress(ir.Const(2)), *(self.statement(parameters) for _ in range(rng.randint(1, 4))))
        actions = [ir.Action("hit", parameters, body), ir.Action("bare", (), (ir.SetEgress(ir.Const(6)),))]
        actions.append(ir.Action("miss", (), (self.statement(),)))
        actions += [
            ir.Action(f"do{n}", (), tuple(self.statement() for _ in range(rng.randint(1, 4)))) for n in range(3)
        ]
        actions += [ir.Action(f"path{n}", (), (self.path_statement(),)) for n in range(2)]
        tables = [self.table(n, rng.choice(actions[:2])) for n in range(rng.randint(0, 3))]
        calls = [*(ir.ApplyTable(t.name) for t in tables), *(ir.CallAction(f"do{n}") for n in range(3))]
        control = (*self.nodes(calls), ir.CallAction("path0"), *self.nodes(calls)[:2])
        if self.paths == "again":
            control = (
                *control,
                ir.If(ir.Compare("<", ir.PassNumber(), ir.Const(rng.randint(1, 3))), (ir.CallAction("path1"),)),
            )
            control = tuple(n for n in control if n != ir.CallAction("path0"))
        headers, emit = list(self.headers), [h.name for h in self.headers]
        if rng.random() < 0.4:
            rng.shuffle(emit)
        if self.paths == "random":
            headers.append(ir.Header("dice", (ir.Field("low", 13), ir.Field("high", 83))))
            emit.append("dice")
            roll = tuple(ir.Random(ir.FieldRef("dice", f)) for f in ("low", "high"))
            actions.append(ir.Action("roll", (), (ir.AddHeader("dice"), *roll)))
            low = ir.Compare("<", ir.FieldRef("dice", "low"), ir.Const(1 << 12))
            early = ir.Compare("<", ir.Intrinsic("unknown"), ir.Const(1 << 63))
            decided = (ir.If(low, (ir.CallAction("do0"),)), ir.If(early, (ir.CallAction("do1"),)))
            control = (*control, ir.CallAction("roll"), *decided)
        sums = rng.sample(self.headers, 2)
        return ir.Program(
            name="drawn",
            headers=tuple(headers),
            metadata=tuple(self.metadata),
            parser=self.parser(),
            actions=tuple(actions),
            tables=tuple(tables),
            control=(ir.CallAction("bare"), *control),
            emit=tuple(emit),
            counters=tuple(self.counters),
            meters=tuple(self.meters),
            registers=tuple(self.registers),
            verified=(ir.FieldRef(sums[0].name, "sum"),) if rng.random() < 0.3 else (),
            updated=(ir.FieldRef(sums[1].name, "sum"),) if rng.random() < 0.5 else (),
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
            carried.append(ir.HeaderValues(header.name, tuple(values.items())))
        fields = [(h, f) for h in self.chain for f in h.fields if f.name.startswith("f") and 8 <= f.width_bits <= 64]
        header, field = self.rng.choice(fields) if fields else (self.chain[0], self.chain[0].fields[1])
        varying = ir.VaryingField(ir.FieldRef(header.name, field.name), min(300, 1 << (field.width_bits - 1)))
        return ir.PacketSpec(tuple(carried), (varying,), 600)


def random_workload(rng, paths):
    """A workload whose program uses anything; ``paths`` is ``copies``, ``again`` or ``random``."""
    author = Author(rng, paths)
    program = author.program()
    return ir.Workload(program, program, author.packets())
