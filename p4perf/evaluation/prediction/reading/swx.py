"""Specifications of SWX pipelines (.spec), as p4c-dpdk writes them and as people do.

Parser, control and deparser are one list of instructions with jumps. It becomes a graph; a loop in it is refused. A
table is applied at one or several places, each with its own continuation; its actions are inserted there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from p4perf.errors import Location
from p4perf.evaluation.prediction.reading.swx_instructions import (
    HIT,
    LOST,
    RAN,
    SENT,
    Pending,
    Translator,
    Waits,
    swaps,
)
from p4perf.formats.swx_spec import JUMPS, Specification, SpecLine, labelled
from p4perf.models.program.graph import Construct, Edge, construct
from p4perf.programs.reading.flow import FULL, OTHERS, Assigned, Flow, Instruction, Step, oversized, steps_of, too_many
from p4perf.programs.reading.tree import match_name

CLONE_BYTES = 60

CODES = ("interpreted", "compiled")
"""How DPDK runs instructions; see :mod:`p4perf.evaluation.prediction.reading.swx_instructions`."""


def is_run(what: Construct, target: str) -> bool:
    """Whether a target meets a construct: what compiled instructions wait for, interpreted ones do not, and reverse."""
    code = what.size("code") if what.kind == "overlap" else None
    return code not in CODES or code == CODES["interpreter" not in target.split(":")[1:]]


GROUP_BITS = 32
"""Width of the number of a group of a selector (rte_swx_table_selector.h)."""


def swx_flow(
    spec: Specification,
    file: str,
    name: str,
    entries: Mapping[str, int],
    clone_bytes: int | None = None,
    used: Mapping[str, frozenset[str]] | None = None,
) -> Flow:
    """The steps of a specification."""
    known = [*spec.tables, *spec.learners, *spec.selectors]
    entries = {match_name(table, known, "table", Location(file)): count for table, count in entries.items()}
    return _Reader(spec, name, entries, clone_bytes or CLONE_BYTES, used or {}).read()


def renamed(flow: Flow, tables: Mapping[str, str]) -> Flow:
    """The same steps, where those of a table and of what follows it have another name of the table."""

    def name(step: str) -> str:
        found = re.match(r"[\w.]+", step)
        return tables.get(found[0], found[0]) + step[found.end() :] if found else step

    steps = {
        name(step.name): replace(step, name=name(step.name), edges=tuple(replace(e, to=name(e.to)) for e in step.edges))
        for step in flow.steps.values()
    }
    return replace(flow, steps=steps, start=name(flow.start))


@dataclass
class _Reader:
    spec: Specification
    name: str
    entries: Mapping[str, int]
    clone_bytes: int
    used: Mapping[str, frozenset[str]]
    steps: dict[str, Step] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)
    sites: dict[str, int] = field(default_factory=dict)
    """How often each table was applied so far."""

    def __post_init__(self) -> None:
        self.numbers = {name: n for n, name in enumerate(self.spec.actions)}
        instructions = labelled(self.spec.apply.lines)[1]
        self.ports = frozenset(i.words[1] for i in instructions if i.words[0] == "tx" and len(i.words) > 1)

    def read(self) -> Flow:
        self.steps = {name: Step(name, "end") for name in (SENT, LOST)}
        own = Translator(self.spec, "apply", self._remark, self.clone_bytes, ports=self.ports)
        code = self._code(self.spec.apply.lines, own)
        parsed = max((n for n, i in enumerate(code) if any(c.kind == "extract" for c in i.constructs)), default=-1)
        steps = steps_of("apply", _with_selects(code, parsed), SENT, kind="block", taken=self.steps)
        for step in steps:
            extracts = any(c.kind in ("extract", "select") for c in step.constructs)
            self.steps[step.name] = replace(step, kind="parser state") if extracts and step.kind != "table" else step
        return Flow(self.name, self.steps, steps[0].name, "swx", tuple(self.remarks))

    def _remark(self, text: str) -> None:
        self.remarks[text] = None

    def _code(self, lines: Sequence[SpecLine], own: Translator) -> list[Instruction]:
        labels, plain = labelled(lines)
        # Tables take two places: their own, and the one where packets meet again after their actions.
        at, count = {}, 0
        for n, line in enumerate(plain):
            at[n] = count
            count += 2 if line.word(0) == "table" else 1
        at[len(plain)] = count
        waiting = self._waiting(own, plain, labels)
        found: list[Instruction] = []
        names = {n: label for label, n in labels.items()}
        for n, line in enumerate(plain):
            label = names.get(n, "")
            if line.word(0) == "table":
                table, rest = self._table(line)
                found += (_with_waits(table, waiting[n]), rest)
                continue
            if line.word(0) in JUMPS:
                if line.word(1) not in labels:
                    raise line.error(f"there is no label {line.word(1)!r}")
                made = own.jump(line, at[labels[line.word(1)]], self.numbers)
            elif line.word(0) == "return":
                made = Instruction(jumps=(("", count),), falls=None)
            else:
                made = own.plain(line)
            made = replace(_with_waits(made, waiting[n]), code=(line,))
            if made.kind == "deparser":
                if found and found[-1].kind == "deparser" and not label:
                    last = found[-1]
                    found[-1] = replace(last, present=last.present + made.present, code=last.code + made.code)
                    found.append(Instruction())
                    continue
                made = replace(made, name=label or "deparser")
            found.append(replace(made, name=label) if label else made)
        return found

    def _waiting(self, own: Translator, plain: list[SpecLine], labels: dict[str, int]) -> list[tuple[Construct, ...]]:
        """What each instruction waits for before it does anything, interpreted and compiled."""
        found: list[tuple[Construct, ...]] = [()] * len(plain)
        for code in CODES:
            after = {} if own.action else self._after_actions[code]
            waits = Waits(self.spec, self.spec.arguments(own.action), after, code == "compiled")
            for n, earlier in enumerate(waits.of(plain, labels)):
                if earlier is not None:
                    where = f"{own.where}, line {plain[n].number}"
                    found[n] += (construct("overlap", where, code=code, earlier=earlier, swaps=swaps(plain[n])),)
        return found

    @cached_property
    def _after_actions(self) -> Mapping[str, Mapping[str, Pending]]:
        return {code: self._after(code == "compiled") for code in CODES}

    def _after(self, compiled: bool) -> Mapping[str, Pending]:
        """Of each table what is on its way after the first of its actions that sends packets on."""
        ends: dict[str, Pending | None] = {}
        found = {}
        for name, table in (*self.spec.tables.items(), *self.spec.learners.items()):
            used = self.used.get(name)
            actions = [line.word(0) for line in _block(table, "actions") if not used or line.word(0) in used]
            for action in actions:
                if action not in ends and action in self.spec.actions:
                    labels, plain = labelled(self.spec.actions[action].lines)
                    waits = Waits(self.spec, self.spec.arguments(action), {}, compiled)
                    waits.of(plain, labels)
                    ends[action] = waits.end
            found[name] = next((end for a in actions if (end := ends.get(a)) is not None), Pending())
        return found

    def _table(self, line: SpecLine) -> tuple[Instruction, Instruction]:
        """A table that is applied, and the place where packets go on after it."""
        name = line.word(1)
        self.sites[name] = self.sites.get(name, 0) + 1
        site = name if self.sites[name] == 1 else f"{name}@{self.sites[name]}"
        after = f"{site} after"
        where = f"table {name}, line {line.number}"
        rest = Instruction(kind="block", name=after, where=where)
        if name in self.spec.selectors:
            constructs = self._selector(self.spec.selectors[name], name, where)
            table = Instruction(constructs, jumps=(("", after),), falls=None, kind="table", name=site, where=where)
            return replace(table, code=(line,)), rest
        found = self.spec.tables.get(name) or self.spec.learners.get(name)
        if found is None:
            raise line.error(f"there is no table {name!r}")
        if name in self.spec.learners:
            self._remark("learner tables are counted as tables with exact matches, what they learn as unknown")
        actions = [self._known_action(a) for a in _block(found, "actions")]
        default = found.inner("default_action")
        default_name = self._known_action(default, 1) if default is not None else None
        constructs = self._lookup(found, name, actions, where)
        starts = {a: self._action(a, site, after) for a in dict.fromkeys([*actions, *filter(None, [default_name])])}
        missed = starts[default_name] if default_name else after
        self._add(Step(f"{site} miss", "block", (), (Edge("", missed),), where, (Assigned(HIT, 0),)))
        if not constructs:
            constructs = (construct("call", where),)
            jumps: tuple[tuple[str, int | str], ...] = ((default_name or "", f"{site} miss"),)
        else:
            known = self.used.get(name)
            hits = [a for a in actions if a in known] if known else self._possible(found, actions)
            edges = tuple(Edge(a if len(hits) > 1 else "", starts[a]) for a in hits) or (Edge("", after),)
            if len(hits) > 1 and default_name in hits and not known:
                self._remark(OTHERS)
                edges = tuple(replace(e, probability=0.0) if e.label == default_name else e for e in edges)
            self._add(Step(f"{site} hit", "block", (), edges, where, (Assigned(HIT, 1),)))
            jumps = (("hit", f"{site} hit"), ("miss", f"{site} miss"))
        made = Instruction(constructs, jumps=jumps, falls=None, kind="table", name=site, where=where)
        return replace(made, code=(line,)), rest

    def _add(self, step: Step) -> None:
        self.steps[step.name] = step

    def _known_action(self, line: SpecLine, word: int = 0) -> str:
        if line.word(word) not in self.spec.actions:
            raise line.error(f"there is no action {line.word(word)!r}")
        return line.word(word)

    def _possible(self, table: SpecLine, actions: list[str]) -> list[str]:
        """Actions that entries may have: not those for the default only."""
        only = {line.word(0) for line in _block(table, "actions") if "@defaultonly" in line.words}
        return [a for a in actions if a not in only] or actions

    def _action(self, action: str, site: str, after: str) -> str:
        own = Translator(self.spec, f"action {action}", self._remark, self.clone_bytes, action, self.ports)
        body = self._code(self.spec.actions[action].lines, own)
        name = f"{site}:{action}"
        steps = steps_of(name, [*body] or [Instruction()], after, where=f"action {action}", taken=self.steps)
        first = replace(steps[0], effects=(Assigned(RAN, self.numbers[action]), *steps[0].effects))
        for step in (first, *steps[1:]):
            self._add(step)
        return name

    def _lookup(self, table: SpecLine, name: str, actions: list[str], where: str) -> tuple[Construct, ...]:
        keys = _block(table, "key")
        if not keys:
            return ()
        kinds = {line.word(1) if len(line.words) > 1 else "exact" for line in keys}
        kind = "ternary" if "wildcard" in kinds else "lpm" if "lpm" in kinds else "exact"
        size = table.inner("size")
        if name not in self.entries:
            self._remark(FULL)
        declared = size.number_at(1) if size is not None else 0
        entries = self.entries.get(name, declared)
        if 0 < declared < entries:
            self._remark(oversized(name, entries, declared))
        bits = sum(self.spec.bits(line.word(0), line) for line in keys)
        if kind == "exact" and name in self.entries and entries > 1 << bits:
            raise too_many(name, entries, bits, 1 << bits)
        data = max((self.spec.argument_bytes(a) for a in actions), default=0)
        sizes = {"entries": entries, "key_bits": bits, "action_data_bytes": data}
        return (construct("lookup", where, match_kind=kind, hit=0.5, **sizes),)

    def _selector(self, selector: SpecLine, name: str, where: str) -> tuple[Construct, ...]:
        fields = _block(selector, "selector")
        bits = sum(self.spec.bits(line.word(0), line) for line in fields)
        groups = selector.inner("n_groups_max")
        most = groups.number_at(1) if groups is not None else 0
        sizes = {"entries": self.entries.get(name, most), "key_bits": GROUP_BITS}
        lookup = construct("lookup", where, match_kind="exact", action_data_bytes=4, hit=1.0, **sizes)
        # rte_swx_table_selector hashes the fields with a signature of its own (rte_swx_table_selector.c).
        return construct("hash", where, algorithm="crc32", bytes=-(-bits // 8)), lookup


def _with_waits(made: Instruction, waits: tuple[Construct, ...]) -> Instruction:
    return replace(made, constructs=(*waits, *made.constructs)) if waits else made


def _block(line: SpecLine, keyword: str) -> tuple[SpecLine, ...]:
    inner = line.inner(keyword)
    return inner.lines if inner is not None else ()


def _with_selects(code: list[Instruction], parsed: int) -> list[Instruction]:
    """Comparisons of one field with constants one after another, up to the last extraction, as one select.

    One that jumps where they are not equal stays a condition, and costs what a select of one case does.
    """
    targets = {to for i in code for _, to in i.jumps}
    found = [_as_select(i) if n <= parsed else i for n, i in enumerate(code)]
    n = 0
    while n <= parsed:
        asked = _asked(code[n])
        run = [n]
        while asked and n + len(run) <= parsed and n + len(run) not in targets:
            other = _asked(code[n + len(run)])
            if other is None or other[0] != asked[0]:
                break
            run.append(n + len(run))
        if asked:
            first = code[n]
            jumps: dict[str, int | str] = {}
            for i in run:
                _, value = _asked(code[i]) or asked
                jumps.setdefault(f"0x{value:x}", code[i].jumps[0][1])
            bits = int(next(c.number("bits") for c in first.constructs if c.kind == "condition"))
            select = construct("select", first.where, cases=len(run), key_bits=bits)
            waits = tuple(c for i in run for c in code[i].constructs if c.kind == "overlap")
            # The instructions keep their places, so that jumps still find theirs: the rest of the run does nothing.
            found[n] = Instruction(
                (*waits, select),
                jumps=tuple(jumps.items()),
                falls="default",
                kind="parser state",
                name=first.name,
                where=first.where,
                code=first.code,
            )
            for i in run[1:]:
                found[i] = Instruction()
        n += len(run)
    return found


def _as_select(instruction: Instruction) -> Instruction:
    test = instruction.test
    if not isinstance(test, tuple) or not test[0].startswith("h.") or not instruction.inverted:
        return instruction
    constructs = tuple(
        construct("select", c.where, cases=1, key_bits=c.number("bits")) if c.kind == "condition" else c
        for c in instruction.constructs
    )
    return replace(instruction, constructs=constructs)


def _asked(instruction: Instruction) -> tuple[str, int] | None:
    """The field and the constant that an instruction compares, if it jumps where they are equal."""
    test = instruction.test
    if not isinstance(test, tuple) or test[0].startswith("$") or instruction.inverted:
        return None
    return test if len(instruction.jumps) == 1 and instruction.falls is not None else None
