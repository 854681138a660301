"""What the C of a program has to keep track of: which headers may be missing, whether packets change their layout."""

from __future__ import annotations

from dataclasses import dataclass

from p4perf.programs import ir
from p4perf.programs.analysis import changes_layout, destination, statements, used_actions
from p4perf.programs.dataflow import follow


@dataclass(frozen=True, slots=True)
class DpdkLayout:
    """Static properties of a program; each False lets the generator omit code."""

    always_valid: frozenset[str]
    """Headers that every packet has that gets as far as the control flow, at any time."""
    added: tuple[str, ...]
    """Headers that actions may add."""
    deparses: bool
    """Whether packets may be sent with other headers, or in another order, than they came with."""
    clones: bool
    multicasts: bool
    recirculates: bool
    resubmits: bool
    keeps_original: bool
    """Whether the headers have to be kept as they came, since they are needed after fields were written in place."""

    @property
    def again(self) -> bool:
        """Whether packets may go through the program more than once."""
        return self.recirculates or self.resubmits

    @property
    def copies(self) -> bool:
        """Whether there may be more packets sent than came."""
        return self.clones or self.multicasts


def layout(program: ir.Program) -> DpdkLayout:
    """Look at the actions that can run, at the parser, and at the order of emission."""
    body = list(statements(program))
    removed = {s.header for s in body if isinstance(s, ir.RemoveHeader)}
    added = {s.header for s in body if isinstance(s, ir.AddHeader)}
    in_place = any((ref := destination(s)) is not None and ref.header != ir.METADATA for s in body)
    clones = any(isinstance(s, ir.Clone) for s in body)
    resubmits = any(isinstance(s, ir.Resubmit) for s in body)
    return DpdkLayout(
        always_valid=follow(program).parsed.valid - removed - added,
        added=tuple(h.name for h in program.headers if h.name in added),
        deparses=changes_layout(program) or not emits_as_extracted(program),
        clones=clones,
        multicasts=any(isinstance(s, ir.Multicast) and s.ports for s in body),
        recirculates=any(isinstance(s, ir.Recirculate) for s in body),
        resubmits=resubmits,
        keeps_original=in_place and (clones or resubmits),
    )


def emits_as_extracted(program: ir.Program) -> bool:
    """Whether along every path of the parser the headers come in the order in which they are emitted, each once."""
    place = {name: n for n, name in enumerate(program.emit)}
    if len(place) < len(program.emit):
        return False
    # The headers of a path come in rising places, so a state is left with the place of the last header before it.
    reached: dict[str, int] = {}
    todo = [("start", -1)]
    while todo:
        name, last = todo.pop()
        if name == ir.ACCEPT or reached.get(name, -2) >= last:
            continue
        reached[name] = last
        state = program.state(name)
        for header in state.extracts:
            if place.get(header, -1) <= last:
                return False
            last = place[header]
        todo += [(following, last) for following in (*(c.next_state for c in state.cases), state.default)]
    return True


def program_actions(program: ir.Program) -> tuple[ir.Action, ...]:
    return tuple(program.action(name) for name in used_actions(program))


def first_table(program: ir.Program) -> str | None:
    """The table that is applied to every packet before anything happens that its key depends on, if there is one."""
    written: set[ir.FieldRef] = set()
    for node in program.control:
        if isinstance(node, ir.ApplyTable):
            keys = {key.field for key in program.table(node.table).keys}
            return None if keys & written else node.table
        if not isinstance(node, ir.CallAction):
            return None
        body = program.action(node.action).body
        if any(isinstance(s, ir.AddHeader | ir.RemoveHeader) for s in body):
            return None
        written |= {ref for s in body if (ref := destination(s)) is not None}
    return None
