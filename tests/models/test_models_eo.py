"""Elementary operations: notation, arithmetic, mapping, composition, memory, placement."""

from dataclasses import replace
from fractions import Fraction

import pytest

from p4perf.errors import UsageError
from p4perf.models.eo import (
    Cache,
    CostRule,
    Demand,
    Hardware,
    HardwareValue,
    Host,
    Links,
    Memory,
    Operation,
    Parameter,
    accesses_per_s,
    estimate,
    make_breakdown,
    operations,
    parse_call,
    parse_expression,
    parse_function,
    place,
    registered_operations,
)
from p4perf.models.eo.hardware import access_time_s
from p4perf.models.estimate import Estimate

KIB = 1 << 10


def rule(cycles, **more):
    stalls = {level: parse_expression(text) for level, text in more.pop("stalls", {}).items()}
    return CostRule(parse_expression(cycles), **{k: parse_expression(v) for k, v in more.items()}, stalls=stalls)


def machine(**changes):
    """A machine of simple numbers: 1 GHz, two caches for tables."""
    rules = {
        "I/O_mem": rule("10", remote_cycles="30", remote_accesses="ceil((hdr + data) / 64)"),
        "mem_I/O": rule("10"),
        "parse": rule("L1 * ceil(b / 8)"),
        "ht_lookup": rule("100", cycles_cached="80", accesses="ceil(HE / 64)", table_bytes="max * HE"),
    }
    latency = HardwareValue(Fraction(5))
    caches = (Cache("L1", 32 * KIB, latency), Cache("L2", 256 * KIB, latency))
    memory = Memory(1 << 30, data_rate_mts=1333, cas_cycles=9, access_bytes=32)
    return replace(Hardware("simple", 1e9, caches, memory, rules, cores=4, exclusive=True), **changes)


def function(*lines, **symbols):
    return parse_function("f", lines, symbols)


# --- arithmetic


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2M", 2 << 20),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("ceil(0.33 * 8 / 8)", 1),
        ("ceil(130 * (1 + 0.1))", 143),  # in binary floating point 144
        ("-b + 8", 1),
        ("max(1, min(2, ceil(b / 3)))", 2),
        ("interp(b, 4, 10, 8, 18)", 16),
        ("interp(b, 1, 1, 3, 5, 5, 6)", 7),  # goes on behind the last point
        ("interp(b, 16, 4, 64, 100)", 0),  # nothing costs less than nothing
        ("1e3 / 4", 250),
    ],
)
def test_arithmetic(text, value):
    assert parse_expression(text).value({"b": Fraction(7)}) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "1)",
        "1 2",
        "ceil()",
        "ceil 3",
        "ceil(1, 2)",
        "f(1)",
        "2X",
        "__import__('os')",
        "b.real",
        "1e999",
        "interp(b, 1, 2)",
        "(" * 60 + "1" + ")" * 60,
        "-" * 60 + "1",
        "1" * 1001,
    ],
)
def test_what_is_no_arithmetic_is_refused(text):
    with pytest.raises(UsageError):
        parse_expression(text)


def test_division_by_zero_and_unknown_names_are_told():
    with pytest.raises(UsageError, match="divides by zero"):
        parse_expression("1 / b").value({"b": Fraction(0)})
    with pytest.raises(UsageError, match="b in 'b' has no value"):
        parse_expression("b").value({})


def test_results_without_measure_are_refused():
    with pytest.raises(UsageError, match="is too large"):
        parse_expression("*".join(["1e99"] * 9)).value({})


# --- notation


def test_the_thirteen_operations_of_table_1():
    source = {o.name for o in registered_operations().values() if o.source.startswith("baldi2018")}
    assert source == {
        *("I/O_mem", "mem_I/O", "parse", "deparse", "increase", "decrease", "sum", "checksum", "inc_checksum"),
        *("array_access", "ht_lookup", "lpm_lookup", "ct_insertion"),
    }


def test_a_call_reads_as_it_is_written():
    assert str(parse_call(" I/O_mem( 30,ps - 4 ) ")) == "I/O_mem(30, ps - 4)"
    assert str(parse_call("ht_lookup(1, 12, 2M)")) == str(parse_call("ht_lookup(1, 12, 2M, 0)"))
    assert parse_call("parse(ceil((b + 1) / 2))").values({"b": Fraction(3)}) == {"b": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ht_lokup(1, 12, 2M, 0)", "there is no elementary operation 'ht_lokup'"),
        ("parse", "no elementary operation"),
        ("parse()", "takes 1 arguments, not 0"),
        ("parse(1, 2)", "takes 1 arguments, not 2"),
        ("ht_lookup(1)", "takes 3 to 4 arguments, not 1"),
    ],
)
def test_what_is_no_call_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_call(text)


def test_the_nearest_operation_is_named():
    with pytest.raises(UsageError) as failure:
        parse_call("ht_lokup(1, 12, 2M, 0)")
    assert "did you mean ht_lookup(N, HE, max, p)?" in str(failure.value)


def test_the_line_of_a_function_is_told():
    with pytest.raises(UsageError, match="f, line 3: there is no elementary operation 'pars'"):
        function("parse(1)", "# a remark", "pars(2)  # too short")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("parse(ps - 60)", r"parse\(ps - 60\): b is -14 B, which cannot be negative"),
        ("ht_lookup(1, 12, 0 - 5)", "max is -5, which cannot be negative"),
        ("ht_lookup(1, 12, 5, 2)", "p is 2, but a probability lies between 0 and 1"),
        ("parse(size)", "size in 'size' has no value"),
    ],
)
def test_impossible_values_are_refused(line, message):
    with pytest.raises(UsageError, match=message):
        make_breakdown([function(line, ps="frame - 18")], machine(), frame_bytes=64)


# --- mapping


def test_a_breakdown():
    breakdown = make_breakdown(
        [function("I/O_mem(30, ps)", "parse(12)", "mem_I/O(30, ps)", ps="frame - 18")], machine(), frame_bytes=64
    )
    assert [line.cycles.value for line in breakdown.lines] == [10, 10, 10]
    assert breakdown.cycles.value == 30
    assert breakdown.accesses == {}


@pytest.mark.parametrize(
    ("entries", "cycles", "accesses"),
    [(24 << 10, 80, {"L2": 1}), ((24 << 10) + 1, 100, {"DRAM": 1}), (100, 80, {"L1": 1})],
)
def test_the_size_of_a_table_decides_where_it_lies(entries, cycles, accesses):
    """32 KiB + 256 KiB = 24 Ki entries of 12 B."""
    breakdown = make_breakdown([function(f"ht_lookup(1, 12, {entries})")], machine(), frame_bytes=64)
    assert (breakdown.cycles.value, breakdown.accesses) == (cycles, accesses)


def test_tables_compete_for_the_caches_and_one_table_counts_once():
    two = function("ht_lookup(1, 12, 16K)", "ht_lookup(1, 12, 16K)")
    assert make_breakdown([two], machine(), frame_bytes=64).dram_accesses == 2
    same = replace(two, calls=tuple(replace(call, table="t") for call in two.calls))
    assert make_breakdown([same], machine(), frame_bytes=64).dram_accesses == 0


def test_each_cache_serves_its_share():
    shared = rule("50", accesses="2", table_bytes="max * HE", stalls={"L2": "10", "DRAM": "100"})
    caches = (Cache("L1", 32 * KIB), Cache("L2", 128 * KIB))
    hardware = machine(fit="share", exclusive=False, caches=caches, rules={"ht_lookup": shared})
    breakdown = make_breakdown([function("ht_lookup(1, 256, 1K)")], hardware, frame_bytes=64)
    assert breakdown.shares == {"L1": 0.125, "L2": 0.375, "DRAM": 0.5}
    assert breakdown.accesses == {"L1": 0.25, "L2": 0.75, "DRAM": 1.0}
    assert breakdown.cycles.value == 50 + 2 * (0.375 * 10 + 0.5 * 100)


def test_tables_of_others_take_shared_caches_only():
    shared = rule("50", accesses="1", table_bytes="max * HE", stalls={"DRAM": "100"})
    caches = (Cache("L1", 32 * KIB), Cache("L3", 1 << 20, shared=True))
    hardware = machine(fit="share", exclusive=False, caches=caches, rules={"ht_lookup": shared})
    f = function("ht_lookup(1, 1024, 1K)")
    assert make_breakdown([f], hardware, frame_bytes=64).cycles.value == 50
    assert make_breakdown([f], hardware, frame_bytes=64, others_bytes=3 << 20).cycles.value == 50 + 0.75 * 100


def test_intervals_of_constants_are_intervals_of_estimates():
    value = HardwareValue(Fraction(10), Fraction(8), Fraction(13))
    hardware = machine(constants={"word": value}, rules={"parse": rule("2 * word")})
    breakdown = make_breakdown([function("parse(1)")], hardware, frame_bytes=64)
    assert breakdown.cycles == Estimate(20, 16, 26)


def test_packets_in_the_cache_of_another_socket():
    f = function("I/O_mem(30, 48)", "parse(1)")
    breakdown = make_breakdown([f], machine(), frame_bytes=64, remote=0.5)
    assert (breakdown.lines[0].cycles.value, breakdown.dram_accesses) == (20, 1)
    with pytest.raises(UsageError, match="nothing of packets in the cache of another socket"):
        make_breakdown([function("parse(1)")], machine(), frame_bytes=64, remote=0.5)


def test_a_missing_latency_is_told():
    hardware = machine(caches=(Cache("L1", 32 * KIB),))
    with pytest.raises(UsageError, match="hardware simple gives no latency of L1, which parse needs") as failure:
        make_breakdown([function("parse(1)")], hardware, frame_bytes=64)
    assert "add latency_cycles to L1" in str(failure.value)


def test_a_missing_rule_is_told():
    with pytest.raises(UsageError, match=r"says nothing of sum, and there is no default") as failure:
        make_breakdown([function("sum(1)")], machine(), frame_bytes=64)
    assert "sum(b)" in str(failure.value)


def test_a_rule_that_gives_cycles_back_is_told():
    hardware = machine(rules={"parse": rule("b - 8")})
    with pytest.raises(UsageError, match=r"the rule of parse gives -7 cycles for parse\(1\)"):
        make_breakdown([function("parse(1)")], hardware, frame_bytes=64)


def test_an_operation_brings_its_default():
    own = Operation("encrypt", (Parameter("b", "bytes", "bytes"),), "encrypt", "ours", rule("3 * b"))
    call = parse_call("encrypt(16)", {"encrypt": own})
    f = replace(function("parse(1)"), calls=(call,))
    assert make_breakdown([f], machine(), frame_bytes=64).cycles.value == 48


def test_other_packages_add_operations(monkeypatch):
    own = Operation("encrypt", (Parameter("b", "bytes", "bytes"),), "encrypt", "ours", rule("3 * b"))
    sets = {"ours": lambda: (own,)}
    monkeypatch.setattr(operations, "plugin_names", lambda group: list(sets))
    monkeypatch.setattr(operations, "load_plugin", lambda group, name: sets[name])
    assert make_breakdown([function("encrypt(16)")], machine(), frame_bytes=64).cycles.value == 48
    sets["theirs"] = lambda: (replace(own, summary="another"),)
    with pytest.raises(UsageError, match="theirs has another elementary operation encrypt"):
        registered_operations()


@pytest.mark.parametrize("lines", [["ht_lookup(1, 64, 1G)"], ["ht_lookup(1, 64, 10M)"] * 2])
def test_tables_larger_than_the_memory_are_refused(lines):
    with pytest.raises(UsageError, match="but the memory of simple has 1 GiB"):
        make_breakdown([function(*lines)], machine(), frame_bytes=64)


# --- composition


def test_rates_and_the_resource_that_binds():
    f = function("I/O_mem(1, 1)", "ht_lookup(1, 64, 1M)", "mem_I/O(1, 1)")
    one = estimate([f], machine())
    assert one.mpps_per_core == pytest.approx(1e3 / 120)
    assert one.gbps == pytest.approx(one.mpps_per_core * 84 * 8 / 1e3)
    assert (one.bound, one.wire_bytes) == ("cpu", 84)
    slow = replace(machine().memory, data_rate_mts=100, channels=1)
    assert estimate([f], machine(memory=slow), cores=4).bound == "memory"
    linked = estimate([f], machine(links=Links(1, 1e9)), cores=4)
    assert linked.bound == "link"
    assert linked.gbps == pytest.approx(1.0)


def test_functions_in_a_row_receive_and_send_once():
    a, b = function("I/O_mem(1, 1)", "parse(8)", "mem_I/O(1, 1)"), function("I/O_mem(1, 1)", "mem_I/O(1, 1)")
    assert estimate([a, b], machine()).breakdown.cycles.value == 25
    assert estimate([a, b], machine(), keep_io=True).breakdown.cycles.value == 45


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame_bytes": 63}, "a frame of 63 B is none"),
        ({"cores": 5}, "5 cores are not possible: simple has 4"),
        ({"cores": 0}, "0 cores are not possible"),
        ({"remote": 1.5}, "lies between 0 and 1"),
        ({"symbols": {"x": Fraction(1)}}, "has no symbol 'x'"),
    ],
)
def test_impossible_estimates_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        estimate([function("parse(1)")], machine(), **options)


# --- memory


@pytest.mark.parametrize(
    ("rate", "cas", "ns", "mega"), [(1333, 9, 15.75, 63.5), (1600, 11, 15.6, 64.0), (1866, 13, 15.5, 64.4)]
)
def test_the_textbook_time_of_an_access(rate, cas, ns, mega):
    memory = Memory(1, data_rate_mts=rate, cas_cycles=cas, access_bytes=32)
    assert access_time_s(memory) * 1e9 == pytest.approx(ns, rel=0.005)
    assert accesses_per_s(memory) / 1e6 == pytest.approx(mega, rel=0.005)


def test_accesses_in_flight_until_the_channels_are_full():
    memory = Memory(1, data_rate_mts=1600, cas_cycles=11, access_bytes=64, channels=2, outstanding=5)
    latency = (22 + 7) / 1600e6
    assert accesses_per_s(memory) == pytest.approx(5 / latency)
    assert accesses_per_s(memory, cores=100) == pytest.approx(2 * 1600e6 / 8)
    assert accesses_per_s(memory, cores=100, sockets=2) == pytest.approx(4 * 1600e6 / 8)


def test_measured_accesses_take_the_place_of_calculated_ones():
    assert accesses_per_s(Memory(1, accesses_per_s=5e7), cores=2) == 1e8
    with pytest.raises(UsageError, match="the data rate of the memory is not known"):
        accesses_per_s(Memory(1, cas_cycles=9))


# --- placement


def test_which_hosts_can_run_it():
    f = function("I/O_mem(1, 1)", "parse(64)", "mem_I/O(1, 1)")  # 60 cycles: 16.7 Mpps a core
    few, many = Host("few", machine(), 1), Host("many", machine(), 4)
    demands = [Demand("a", (f,), 20.0), Demand("b", (f,), 5.0)]
    small, large = place([few, many], demands)
    assert (small.possible, small.bound, large.possible) == (False, "cpu", True)
    assert [need.cores for need in large.needs] == [2, 1]
    assert small.reason == "cpu is taken 300 %"
    (shared,) = place([Host("two", machine(), 2)], demands, share_cores=True)
    assert shared.possible
    assert shared.use["cpu"] == pytest.approx(25 / (1e3 / 60) / 2)


def test_memory_links_and_capacity_bind():
    f = function("ht_lookup(1, 64, 12M)")
    slow = machine(memory=replace(machine().memory, data_rate_mts=5))
    assert place([Host("slow", slow, 4)], [Demand("a", (f,), 1.0)])[0].bound == "memory"
    linked = machine(links=Links(1, 1e8))
    assert place([Host("linked", linked, 4)], [Demand("a", (f,), 1.0)])[0].bound == "link"
    (full,) = place([Host("full", machine(), 4)], [Demand(n, (f,), 1.0) for n in "ab"])
    assert (full.possible, full.bound) == (False, "capacity")


def test_an_operation_that_a_host_does_not_know_is_its_reason():
    (verdict,) = place([Host("simple", machine(), 1)], [Demand("a", (function("sum(1)"),), 1.0)])
    assert not verdict.possible
    assert "says nothing of sum" in verdict.reason


@pytest.mark.parametrize("load", [0.0, -1.0, float("inf"), float("nan")])
def test_loads_that_are_none_are_refused(load):
    with pytest.raises(UsageError, match="a load of"):
        place([Host("simple", machine(), 1)], [Demand("a", (function("parse(1)"),), load)])
