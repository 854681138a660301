"""White-box models: network functions as sequences of elementary operations, mapped on a machine (Baldi & Sapio 2018).

A function is a sequence of operations, the same on every machine. A machine has a rule for each of them. From both
follow cycles and memory accesses of a packet, and from these rates, without any measurement.
"""

from p4perf.models.eo.expressions import Expression, parse_expression
from p4perf.models.eo.hardware import (
    DRAM,
    LEVELS,
    Cache,
    Hardware,
    Links,
    Memory,
    Profile,
    Value,
    access_time_s,
    accesses_per_s,
)
from p4perf.models.eo.mapping import (
    OVERHEAD_BYTES,
    BreakdownLine,
    OperationBreakdown,
    RateEstimate,
    estimate,
    make_breakdown,
)
from p4perf.models.eo.operations import (
    GROUP,
    Call,
    CostRule,
    NetworkFunction,
    Operation,
    Parameter,
    Printed,
    Symbol,
    find_operation,
    make_call,
    merged,
    parse_call,
    parse_function,
    registered_operations,
)
from p4perf.models.eo.placement import CoreNeed, Demand, Host, Verdict, place

__all__ = [
    "DRAM",
    "GROUP",
    "LEVELS",
    "OVERHEAD_BYTES",
    "BreakdownLine",
    "Cache",
    "Call",
    "CoreNeed",
    "CostRule",
    "Demand",
    "Expression",
    "Hardware",
    "Host",
    "Links",
    "Memory",
    "NetworkFunction",
    "Operation",
    "OperationBreakdown",
    "Parameter",
    "Printed",
    "Profile",
    "RateEstimate",
    "Symbol",
    "Value",
    "Verdict",
    "access_time_s",
    "accesses_per_s",
    "estimate",
    "find_operation",
    "make_breakdown",
    "make_call",
    "merged",
    "parse_call",
    "parse_expression",
    "parse_function",
    "place",
    "registered_operations",
]
