"""JSON as p4c-bm2-ss writes it, of a program of any size."""

from __future__ import annotations

from typing import Any

STANDARD = (
    "ingress_port",
    "egress_spec",
    "egress_port",
    "mcast_grp",
    "parser_error",
    "checksum_error",
    "instance_type",
)


def field(header: str, name: str) -> dict[str, Any]:
    return {"type": "field", "value": [header, name]}


def large_program(tables: int, headers: int) -> dict[str, Any]:
    """A chain of headers, each announced by the one before, and a chain of tables with two actions each."""
    types = [{"name": "h_t", "id": 0, "fields": [["key", 32, False], ["value", 32, False], ["next", 16, False]]}]
    types.append({"name": "standard_metadata", "id": 1, "fields": [[name, 16, False] for name in STANDARD]})
    named = [{"name": f"h{n}", "id": n, "header_type": "h_t", "metadata": False} for n in range(headers)]
    named.append({"name": "standard_metadata", "id": headers, "header_type": "standard_metadata", "metadata": True})
    states = []
    for n in range(headers):
        more = {"type": "hexstr", "value": f"0x{n + 1:04x}", "mask": None, "next_state": f"s{n + 1}"}
        rest = {"type": "default", "value": None, "mask": None, "next_state": None}
        states.append(
            {
                "name": f"s{n}",
                "id": n,
                "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": f"h{n}"}]}],
                "transition_key": [field(f"h{n}", "next")] if n + 1 < headers else [],
                "transitions": [more, rest] if n + 1 < headers else [rest],
            }
        )
    actions: list[dict[str, Any]] = []
    flow = []
    for n in range(tables):
        header, after = f"h{n % headers}", f"t{n + 1}" if n + 1 < tables else None
        total = {"op": "+", "left": field(header, "value"), "right": {"type": "runtime_data", "value": 0}}
        cut = {
            "op": "&",
            "left": {"type": "expression", "value": total},
            "right": {"type": "hexstr", "value": "0xffffffff"},
        }
        write = {"op": "assign", "parameters": [field(header, "value"), {"type": "expression", "value": cut}]}
        port = {
            "op": "assign",
            "parameters": [field("standard_metadata", "egress_spec"), {"type": "runtime_data", "value": 1}],
        }
        data = [{"name": "by", "bitwidth": 32}, {"name": "port", "bitwidth": 9}]
        actions.append({"name": f"add{n}", "id": 2 * n, "runtime_data": data, "primitives": [write, port]})
        actions.append({"name": f"none{n}", "id": 2 * n + 1, "runtime_data": [], "primitives": []})
        kind = ("exact", "lpm", "ternary")[n % 3]
        flow.append(
            {
                "name": f"t{n}",
                "id": n,
                "match_type": kind,
                "type": "simple",
                "key": [{"match_type": kind, "name": f"{header}.key", "target": [header, "key"], "mask": None}],
                "action_ids": [2 * n, 2 * n + 1],
                "actions": [f"add{n}", f"none{n}"],
                "next_tables": {f"add{n}": after, f"none{n}": after},
                "base_default_next": after,
                "default_entry": {"action_id": 2 * n + 1, "action_data": []},
            }
        )
    return {
        "header_types": types,
        "headers": named,
        "parsers": [{"name": "parser", "id": 0, "init_state": "s0", "parse_states": states}],
        "deparsers": [{"name": "deparser", "id": 0, "order": [f"h{n}" for n in range(headers)]}],
        "actions": actions,
        "pipelines": [
            {"name": "ingress", "id": 0, "init_table": "t0", "tables": flow, "conditionals": []},
            {"name": "egress", "id": 1, "init_table": None, "tables": [], "conditionals": []},
        ],
    }
