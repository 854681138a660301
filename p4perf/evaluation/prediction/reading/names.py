"""What the steps of a program and the decisions of its packets are called: as the program calls them."""

from __future__ import annotations

from collections.abc import Sequence

from p4perf.programs import ir
from p4perf.programs.analysis import control_nodes, flattened
from p4perf.programs.reading.v1model import UPDATE_CHECKSUMS, VERIFY_CHECKSUMS

SENT, LOST = "sent", "dropped"

DROPPED, PORT, RESUBMITTED = "$dropped", "$port", "$resubmitted"
"""Fields in which is remembered whether a packet was dropped, whether it is deparsed because it has a port by which to
leave or goes through the program again, and whether it comes again as it came."""


def called(what: ir.Table | ir.Action | ir.ParserState) -> str:
    return what.label or what.name


def was_read(program: ir.Program) -> bool:
    """Whether a program was read, and not made of components: then its reader added what has no label."""
    return any(state.label for state in program.parser)


CHECKSUMS = {VERIFY_CHECKSUMS: "verify", UPDATE_CHECKSUMS: "update"}


def sites(program: ir.Program) -> dict[int, str]:
    """Names of the places of tables, conditions and calls of actions, and of the branches in actions.

    They are those of the program; conditions without a name are numbered. Keys are the identities of the objects.
    """
    found: dict[int, str] = {}
    taken: dict[str, int] = {}
    added = was_read(program)
    conditions = 0
    for pipeline, nodes in (("ingress", program.control), ("egress", program.egress)):
        for node in control_nodes(nodes):
            if id(node) in found or isinstance(node, ir.Block):
                continue
            if isinstance(node, ir.ApplyTable):
                name = called(program.table(node.table))
            elif isinstance(node, ir.CallAction):
                name = CHECKSUMS.get(node.action, called(program.action(node.action)).removeprefix("own_"))
            elif node.label:
                name = node.label
            else:
                conditions += 1
                name = f"{pipeline} end" if added else f"if@{conditions}"
            taken[name] = taken.get(name, 0) + 1
            found[id(node)] = name if taken[name] == 1 else f"{name}@{taken[name]}"
    for action in program.actions:
        branches = (s for s in flattened(action.body) if isinstance(s, ir.Branch))
        found |= {id(branch): f"@{n}" for n, branch in enumerate(branches, 1)}
    return found


def case_label(case: ir.SelectCase, widths: Sequence[int]) -> str:
    """A case of a select as P4 writes it; values of several fields with commas, masks behind ``&&&``."""
    parts = []
    for match, width in zip(case.matches, widths, strict=True):
        ones = (1 << width) - 1
        mask = match.mask & ones
        part = f"0x{match.low & ones:x}"
        if match.low > match.high:
            part = "value set"
        elif match.low != match.high:
            part += f"..0x{match.high:x}"
        elif mask == 0:
            part = "_"
        elif mask != ones:
            part += f"&&&0x{mask:x}"
        parts.append(part)
    return ",".join(parts)


def located(text: str, place: str) -> str:
    """What something is, with its place in the program behind it if that is known."""
    return ", ".join(part for part in (text, place) if part)
