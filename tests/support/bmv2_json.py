"""Programs for bmv2 of any size, in the JSON that p4c-bm2-ss writes."""

from __future__ import annotations

from typing import Any

FIELDS = [["dst", 48], ["src", 48], ["type", 16]]


def chain_of_tables(tables: int, *, actions: int = 2, entries: int = 1024) -> dict[str, Any]:
    """A program that applies tables one after another; every action adds to a metadata field of its table."""
    names = [f"ingress.t{n}" for n in range(tables)]
    metadata = [[f"m{n}", 32] for n in range(tables)]
    return {
        "header_types": [
            {"name": "ethernet_t", "id": 0, "fields": FIELDS},
            {"name": "metadata_t", "id": 1, "fields": metadata},
            {
                "name": "standard_metadata",
                "id": 2,
                "fields": [["ingress_port", 9], ["packet_length", 32], ["egress_spec", 9], ["egress_port", 9]],
            },
        ],
        "headers": [
            {"name": "ethernet", "id": 0, "header_type": "ethernet_t", "metadata": False},
            {"name": "meta", "id": 1, "header_type": "metadata_t", "metadata": True},
            {"name": "standard_metadata", "id": 2, "header_type": "standard_metadata", "metadata": True},
        ],
        "header_stacks": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": [parser_state("start")]}],
        "deparsers": [{"name": "deparser", "id": 0, "order": ["ethernet"]}],
        "actions": [
            {
                "name": f"ingress.a{n}_{k}",
                "id": n * actions + k,
                "runtime_data": [{"name": "value", "bitwidth": 32}],
                "primitives": [assign(f"m{n}")],
            }
            for n in range(tables)
            for k in range(actions)
        ],
        "pipelines": [
            {
                "name": "ingress",
                "id": 0,
                "init_table": names[0] if names else None,
                "tables": [table(names, n, actions, entries) for n in range(tables)],
                "action_profiles": [],
                "conditionals": [],
            },
            {"name": "egress", "id": 1, "init_table": None, "tables": [], "action_profiles": [], "conditionals": []},
        ],
        "calculations": [],
        "checksums": [],
    }


def parser_state(name: str, number: int = 0) -> dict[str, Any]:
    """A state that extracts Ethernet and ends."""
    return {
        "name": name,
        "id": number,
        "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": "ethernet"}]}],
        "transition_key": [],
        "transitions": [{"type": "default", "value": None, "mask": None, "next_state": None}],
    }


def assign(field: str) -> dict[str, Any]:
    """``meta.field = (meta.field + value) & 0xffffffff``."""
    own = {"type": "field", "value": ["meta", field]}
    total = {"op": "+", "left": own, "right": {"type": "local", "value": 0}}
    cut = {"op": "&", "left": expression(total), "right": {"type": "hexstr", "value": "0xffffffff"}}
    return {"op": "assign", "parameters": [own, expression(expression(cut))]}


def expression(value: dict[str, Any]) -> dict[str, Any]:
    """An operation, or another expression, as a value."""
    return {"type": "expression", "value": value}


def table(names: list[str], n: int, actions: int, entries: int) -> dict[str, Any]:
    """One table of the chain."""
    following = names[n + 1] if n + 1 < len(names) else None
    mine = [f"ingress.a{n}_{k}" for k in range(actions)]
    return {
        "name": names[n],
        "id": n,
        "match_type": "exact",
        "type": "simple",
        "max_size": entries,
        "with_counters": False,
        "direct_meters": None,
        "support_timeout": False,
        "key": [{"match_type": "exact", "name": f"meta.m{n}", "target": ["meta", f"m{n}"], "mask": None}],
        "action_ids": list(range(n * actions, (n + 1) * actions)),
        "actions": mine,
        "next_tables": dict.fromkeys(mine, following),
        "base_default_next": following,
        "default_entry": {"action_id": n * actions, "action_const": False, "action_data": ["0x0"]},
    }
