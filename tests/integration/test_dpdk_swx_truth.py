"""Pipelines of SWX, interpreted and compiled, do what the interpreter of programs says."""

import json
import random
import re
import subprocess
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from support.parser_states import extracting
from support.sampling import sampled
from support.swx_programs import entries_by_rule, own_specification, swx_workload

from p4perf.errors import BuildError, CapabilityError
from p4perf.plugins import plugin_names
from p4perf.programs import ir
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.operators import crc16, crc32c_raw
from p4perf.targets.base import TrialOptions
from p4perf.targets.dpdk_swx import DpdkSwxTarget

pytestmark = [pytest.mark.dpdk, pytest.mark.usefixtures("dpdk")]

QUICK = TrialOptions(mode="plain", windows=1, window_us=200, timeout_ms=200, warmup_ms=0)
PACKETS = 2048

COMPONENTS = {
    "l2fwd": [{}],
    "l2fwd_result": [{}],
    "parser_headers": [{"headers": 2}, {"headers": 12, "header_bits": 24}],
    "parsed_fields": [{"fields": 3}, {"fields": 20, "field_bits": 64}],
    "parser_branches": [{"branches": 3}, {"branches": 4, "depth": 3}],
    "added_headers": [{"headers": 2}, {"headers": 5, "header_bytes": 7}],
    "removed_headers": [{"removed": 2}, {"removed": 3, "kept": 2, "header_bytes": 4}],
    "match_action_table": [
        {"entries": 3},
        {"entries": 100, "match_kind": "lpm"},
        {"entries": 50, "match_kind": "ternary"},
        {"entries": 60, "match_kind": "ternary", "distribution": "classbench"},
        {"entries": 20, "tables": 3, "applications": 2},
    ],
    "header_field_writes": [{"writes": 4}, {"writes": 3, "field_bits": 8, "operation": "set"}],
    "metadata_writes": [{"writes": 2}, {"writes": 9, "field_bits": 8, "operation": "set"}],
    "arithmetic": [{"operations": 2}, {"operations": 5, "operator": "-", "width_bits": 48}],
    "conditionals": [{"conditionals": 2}, {"conditionals": 9, "nested": True}],
    "hash": [
        {"size_bytes": 8},
        {"size_bytes": 40, "algorithm": "checksum16", "repetitions": 2},
        {"size_bytes": 12, "algorithm": "crc16", "repetitions": 2},
    ],
    "checksum": [{"size_bytes": 20, "operation": "update"}, {"size_bytes": 40, "hit_ratio": 0.5}],
    "counter": [{"updates": 2}, {"updates": 3, "size": 4}],
    "meter": [{"executions": 2}, {"executions": 3, "size": 4}],
    "register": [{"accesses": 2}, {"accesses": 4, "width_bits": 8}],
    "recirculate": [{"times": 1}, {"times": 5}],
    "clone": [{"copies": 2}, {"copies": 9}],
    "multicast": [{"ports": 2}, {"ports": 9}],
}

REFUSED = {
    "random": ({"numbers": 2}, "no random"),
    "resubmit": ({"times": 2}, "no resubmit"),
    "clone": ({"copies": 2, "marked": True}, "clones a packet as it is sent"),
    "operator": ({"operator": "htons"}, "no operator"),
    "l2fwd_serial": ({}, "no fence"),
    "vio": ({}, "no virtual I/O"),
}

CASES = [(name, parameters) for name, sets in COMPONENTS.items() for parameters in sets]
FIRST = [(name, sets[0]) for name, sets in list(COMPONENTS.items())[::3]]


@pytest.fixture(params=["compiled", "interpreter"])
def swx(request, facts):
    target = DpdkSwxTarget(() if request.param == "compiled" else ("interpreter",))
    problems = [p.what for p in target.problems(facts) if p.fatal]
    if problems:
        pytest.skip("; ".join(problems))
    return target


@pytest.fixture
def verified(swx, testbed, facts, tmp_path):
    """Checks a workload; what the harness says of it: the number of packets, or an error."""
    folders = count()

    def run(workload):
        plan = swx.plan(workload, TrafficPlan(workload.packets.frame_size_bytes), facts)
        job = swx.trial(plan, QUICK, facts)
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        result = testbed.run(replace(job, argv=(*job.argv, "--verify-only")), folder)
        record = json.loads(result.stdout.splitlines()[-1])
        return record.get("error", record.get("verified_packets"))

    return run


def test_every_component_is_here():
    assert {*COMPONENTS, *REFUSED} >= set(plugin_names("p4perf.components")) - {"fake"}


@pytest.mark.parametrize("case", sampled(CASES, *FIRST), ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)])
def test_components_do_what_the_interpreter_says(verified, case):
    assert verified(build_workload([case], frame_size_bytes=512)) == PACKETS


@pytest.mark.parametrize("name", REFUSED)
def test_what_swx_lacks_is_refused_with_the_reason(facts, name):
    parameters, reason = REFUSED[name]
    workload = build_workload([(name, parameters)], frame_size_bytes=512)
    with pytest.raises(CapabilityError, match=reason):
        DpdkSwxTarget().plan(workload, TrafficPlan(512), facts)


def test_components_together(verified):
    names = [("match_action_table", {"entries": 10}), ("counter", {"updates": 2}), ("recirculate", {"times": 2})]
    names += [("removed_headers", {"removed": 1}), ("added_headers", {"headers": 1}), ("multicast", {"ports": 3})]
    assert verified(build_workload(names, frame_size_bytes=512)) == PACKETS


@pytest.mark.parametrize("wanted", sampled([3, 12], 3))
def test_random_programs_do_what_the_interpreter_says(verified, wanted):
    ran = 0
    for number in range(400):
        workload = swx_workload(random.Random(number), number)
        try:
            verdict = verified(workload)
        except (CapabilityError, RecursionError):
            continue
        assert verdict == PACKETS, number
        ran += 1
        if ran == wanted:
            break
    assert ran == wanted


ETHERNET = ir.Header("ethernet", (ir.Field("dst", 48), ir.Field("src", 48), ir.Field("kind", 16)))
BENCH = ir.Header(
    "bench",
    (ir.Field("version", 4), ir.Field("length", 4), ir.Field("key", 16), ir.Field("out", 32), ir.Field("pad", 8)),
)
KIND = ir.FieldRef("ethernet", "kind")


def program(control, actions, tables=(), counters=(), metadata=()):
    parser = (
        extracting("start", ("ethernet",), KIND, (ir.SelectCase.of_value(0x88B5, "more"),)),
        extracting("more", ("bench",)),
    )
    return ir.Program(
        "p", (ETHERNET, BENCH), metadata, parser, actions, tables, control, ("ethernet", "bench"), counters
    )


def workload(p, keys=4):
    values = (("key", 0), ("length", 5), ("version", 4))
    headers = (ir.HeaderValues("ethernet", (("kind", 0x88B5),)), ir.HeaderValues("bench", values))
    spec = ir.PacketSpec(headers, (ir.VaryingField(ir.FieldRef("bench", "key"), keys),), 64)
    return ir.Workload(p, build_workload([], frame_size_bytes=64).program, spec)


def test_packets_that_are_dropped_stay_as_they_came(swx, testbed, facts, tmp_path):
    """Their buffers come again and again; SWX takes off what the packet before them in the thread emitted."""
    table = ("match_action_table", {"entries": 64, "key_bits": 32})
    plan = swx.plan(build_workload([table], frame_size_bytes=64), TrafficPlan(64, hit_ratio=0.0), facts)
    options = replace(QUICK, windows=20, timeout_ms=2000)  # one window can be short of packets on a busy machine
    record = swx.parse(testbed.run(swx.trial(plan, options, facts), tmp_path))
    assert record["packets"] > record["verified_packets"]


def test_what_follows_a_drop_still_counts(verified):
    table = ir.Table("t", (ir.Key(ir.FieldRef("bench", "key")),), ("keep",), "toss", ir.EntrySet(3, "keep"))
    actions = (
        ir.Action("keep", (ir.Field("port", 9),), (ir.SetEgress(ir.ParameterRef("port")),)),
        ir.Action("toss", body=(ir.SetEgress(ir.Const(1)), ir.Drop(), ir.CountPacket("seen", ir.Const(1)))),
        ir.Action("late", body=(ir.SetEgress(ir.Const(2)), ir.CountPacket("seen", ir.FieldRef("bench", "length")))),
    )
    control = (ir.ApplyTable("t"), ir.CallAction("late"), ir.ApplyTable("t"))
    assert verified(workload(program(control, actions, (table,), (ir.Counter("seen", 4),)))) == PACKETS


def test_a_clone_of_a_dropped_packet_is_sent(verified):
    actions = (
        ir.Action("split", body=(ir.Clone(7), ir.Clone(3), ir.SetEgress(ir.Const(1)))),
        ir.Action("toss", body=(ir.Drop(),)),
    )
    few = ir.If(ir.Compare("<", ir.FieldRef("bench", "key"), ir.Const(2)), (ir.CallAction("toss"),))
    assert verified(workload(program((ir.CallAction("split"), few), actions))) == PACKETS


def test_headers_that_are_not_there_read_as_zero_and_are_not_written(verified):
    out, key = ir.FieldRef("bench", "out"), ir.FieldRef("bench", "key")
    copied = ir.FieldRef(ir.METADATA, "copied")
    body = (
        ir.Assign(out, ir.BinaryOp("+", out, ir.Const(7))),
        ir.Assign(out, ir.BinaryOp("^", out, key)),
        ir.Assign(copied, out),
        ir.Assign(ir.FieldRef("ethernet", "src"), copied),
        ir.Assign(ir.FieldRef("bench", "version"), ir.BinaryOp("+", ir.FieldRef("bench", "version"), ir.Const(3))),
        ir.SetEgress(ir.Const(1)),
    )
    p = program((ir.CallAction("mix"),), (ir.Action("mix", body=body),), metadata=(ir.Field("copied", 20),))
    assert verified(workload(p)) == PACKETS


def test_a_port_that_nobody_set_drops(verified):
    actions = (ir.Action("send", body=(ir.SetEgress(ir.Const(4)),)),)
    odd = ir.If(ir.Compare(">=", ir.FieldRef("bench", "key"), ir.Const(2)), (ir.CallAction("send"),))
    assert verified(workload(program((odd,), actions))) == PACKETS


def test_crc16_of_fields_anywhere_goes_to_fields_of_any_width(verified):
    """Fields of a header that lie together, others, and metadata; results narrower and wider than 16 bit."""
    names = {"near": 16, "narrow": 5, "wide": 48, "long": 80, "counted": 24}
    near, narrow, wide, long, counted = (ir.FieldRef(ir.METADATA, name) for name in names)
    of_bench = [ir.FieldRef("bench", name) for name in ("key", "out", "pad", "version", "length")]
    source, destination = ir.FieldRef("ethernet", "src"), ir.FieldRef("ethernet", "dst")
    body = (
        ir.Assign(counted, ir.BinaryOp("+", of_bench[0], ir.Const(0x12345))),
        ir.Hash(near, "crc16", tuple(of_bench[:3])),
        ir.Hash(narrow, "crc16", (of_bench[0], counted, source)),
        ir.Hash(wide, "crc16", (counted, near, of_bench[3], of_bench[4])),
        ir.Assign(long, ir.BinaryOp("<<", of_bench[0], ir.Const(64))),
        ir.Hash(long, "crc16", (source,)),
        ir.Hash(of_bench[2], "crc16", (wide,)),
        ir.Hash(of_bench[1], "crc16", (of_bench[0],)),
        ir.Assign(destination, ir.BinaryOp("+", ir.BinaryOp("<<", near, ir.Const(32)), narrow)),
        ir.Assign(
            source, ir.BinaryOp("^", wide, ir.BinaryOp("+", ir.Cast(long, 48), ir.BinaryOp(">>", long, ir.Const(64))))
        ),
        ir.SetEgress(ir.Const(1)),
    )
    p = program(
        (ir.CallAction("mix"),), (ir.Action("mix", body=body),), metadata=tuple(map(ir.Field, names, names.values()))
    )
    assert verified(workload(p, keys=64)) == PACKETS


def test_crc32_of_swx_is_castagnoli():
    """The check value of CRC-32C is the complement of what starts with ones."""
    assert crc32c_raw(b"123456789", 0xFFFFFFFF) ^ 0xFFFFFFFF == 0xE3069283


def test_a_trial_has_the_metrics_that_the_target_promises(swx, testbed, facts, tmp_path):
    plan = swx.plan(
        build_workload([("match_action_table", {"entries": 100})], frame_size_bytes=128), TrafficPlan(128), facts
    )
    options = TrialOptions(mode="plain", windows=20, window_us=200, timeout_ms=2000, warmup_ms=0)
    record = swx.parse(testbed.run(swx.trial(plan, options, facts), tmp_path))
    metrics = {m.metric: m.value for m in swx.summarise(record, None).metrics}
    assert set(metrics) >= set(swx.metrics)
    differences = ("cost_cycles_per_packet", "cost_tsc_cycles_per_packet")
    assert [n for n, value in metrics.items() if value <= 0 and n not in ("compile_time", *differences)] == []
    assert ("code_bytes" in metrics) == (not swx.interpreted)
    assert (metrics["compile_time"] > 0) == (not swx.interpreted)


def instructions_of(specification):
    """Instructions of a specification after SWX merged some, counted from its text by the rules of librte_pipeline.

    Extractions that follow one another are one instruction, up to eight; so are up to eight headers that are emitted
    and the sending by a port in the metadata right behind them. Where a jump leads to, a new instruction begins.
    """
    n = 0
    for block in re.findall(r"^(?:action|apply)\b.*?\{\n(.*?)^\}", specification, re.MULTILINE | re.DOTALL):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        kept = []
        for line in lines:
            extracts = line.startswith("extract ") and len(line.split()) == 2
            if extracts and kept and kept[-1][0] == "extract" and kept[-1][1] < 8:
                kept[-1] = ("extract", kept[-1][1] + 1)
            elif line.startswith("tx m.") and kept and kept[-1][0] == "emit":
                for _ in range(7):
                    if len(kept) > 1 and kept[-1][0] == kept[-2][0] == "emit" and not kept[-1][1]:
                        kept.pop()
            else:
                label, _, rest = line.rpartition(" : ")
                kept.append((rest.split()[0], 1 if rest.startswith("extract ") else bool(label)))
        n += len(kept)
    return n


def functions_of(library):
    """Size of all functions in a library in bytes, by nm."""
    listed = subprocess.run(["nm", "-S", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sum(int(w[1], 16) for w in map(str.split, listed.splitlines()) if len(w) == 4 and w[2] in "tTwW")


def arrays_hold(folder, headers, instructions):
    """Whether the compiler of C finds as many instructions in the arrays that SWX generated."""
    code = (folder / "program.c").read_text()
    names = re.findall(r"^static const struct instruction (\w+)\[\]", code, re.MULTILINE)
    total = " + ".join(f"sizeof({name})" for name in names)
    claim = f'_Static_assert(({total}) / sizeof(struct instruction) == {instructions}, "n");'
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], check=True, capture_output=True, text=True).stdout
    command = ["cc", "-std=gnu11", "-w", "-fsyntax-only", "-DALLOW_EXPERIMENTAL_API", *flags.split()]
    command += [f"-I{headers}", "-xc", "-"]
    return subprocess.run(command, input=f"{code}\n{claim}\n", text=True).returncode == 0


SIZES = [
    ("header_field_writes", "writes", (1, 2, 4, 8, 16)),
    ("parser_headers", "headers", (1, 3, 9, 12)),
    ("conditionals", "conditionals", (1, 5, 20)),
    ("match_action_table", "tables", (1, 2, 4)),
    ("added_headers", "headers", (1, 2, 5)),
]


@pytest.fixture
def sized(testbed, facts, tmp_path):
    """Runs a program on a variant; its metrics and the folder of its build."""
    folders = count()

    def run(target, component, parameters):
        if problems := [p.what for p in target.problems(facts) if p.fatal]:
            pytest.skip("; ".join(problems))
        workload = build_workload([(component, parameters)], frame_size_bytes=512)
        plan = target.plan(workload, TrafficPlan(512), facts)
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        options = replace(QUICK, windows=20, timeout_ms=2000)
        record = target.parse(testbed.run(target.trial(plan, options, facts), folder))
        metrics = {m.metric: m.value for m in target.summarise(record, None).metrics}
        return metrics, testbed.build(plan.build), folder

    return run


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "parameter", "values"), SIZES, ids=[s[0] for s in SIZES])
def test_more_of_a_component_is_a_larger_program(sized, facts, name, parameter, values):
    """Both variants run the same instructions: those of the specification, some of which SWX merged into one."""
    compiled, interpreted = [], []
    for value in values:
        parameters = {parameter: value, **({"entries": 5} if parameter == "tables" else {})}
        metrics, build, _ = sized(DpdkSwxTarget(), name, parameters)
        instructions = int(metrics["program_instructions"])
        assert instructions == instructions_of((build / "program.spec").read_text())
        assert arrays_hold(build, facts.text("dpdk_source_headers"), instructions)
        assert metrics["code_bytes"] == functions_of(build / "program.so")
        compiled.append((instructions, metrics["code_bytes"]))
        metrics, _, folder = sized(DpdkSwxTarget(("interpreter",)), name, parameters)
        assert instructions_of((folder / "program.spec").read_text()) == instructions
        assert "code_bytes" not in metrics
        interpreted.append(int(metrics["program_instructions"]))
    assert [n for n, _ in compiled] == interpreted
    assert interpreted == sorted(set(interpreted))
    if parameter != "tables":
        assert [n for _, n in compiled] == sorted({n for _, n in compiled})


def test_what_p4c_wrote_is_counted_as_well(sized, facts):
    counted = []
    for writes in (1, 4, 16):
        metrics, build, _ = sized(DpdkSwxTarget(("p4c",)), "header_field_writes", {"writes": writes})
        assert metrics["program_instructions"] == instructions_of((build / "program.spec").read_text())
        assert arrays_hold(build, facts.text("dpdk_source_headers"), int(metrics["program_instructions"]))
        assert metrics["code_bytes"] == functions_of(build / "program.so")
        counted.append(metrics["program_instructions"])
    assert counted[1] - counted[0] == 3
    assert counted[2] - counted[1] == 12


OWN = """
struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> kind
}
struct metadata_t {
	bit<32> port_in
	bit<32> port_out
}
struct send_args_t {
	bit<32> port
}
header ethernet instanceof ethernet_t
metadata instanceof metadata_t
regarray seen size 16 initval 0
action send args instanceof send_args_t {
	mov m.port_out t.port
	return
}
action toss args none {
	drop
}
table stations { ; a comment
	key {
		h.ethernet.dst exact
	}
	actions {
		send
		toss
	}
	default_action toss args none
	size 0x10
}
apply {
	rx m.port_in
	extract h.ethernet
	table stations
	regadd seen m.port_out 1
	emit h.ethernet
	tx m.port_out
}
"""
FRAMES = [n.to_bytes(6, "big") + bytes(6) + b"\x08\x00" + bytes(46) for n in range(16)]


def own(swx, facts, text, entries=""):
    """The job of a specification of a user."""
    plan = swx.plan(own_specification(text, entries, frames=FRAMES), TrafficPlan(64), facts)
    return swx.trial(plan, replace(QUICK, windows=20), facts)


def test_any_specification_is_measured(swx, testbed, facts, tmp_path):
    entries = entries_by_rule(OWN, "stations", "send", 8, port=3)
    record = swx.parse(testbed.run(own(swx, facts, OWN, entries), tmp_path))
    assert record["programs"] == ["program", "baseline"]
    assert record["verified_packets"] > 1000
    assert 0.4 < record["sent"] / record["packets"] < 0.6
    # emit and tx are one; two of action send, one of toss
    assert record["pipelines"]["program"]["instructions"] == 8


def test_a_specification_hashes_by_crc16(swx, testbed, facts, tmp_path):
    """Memory of metadata, whose lowest byte comes first, and of a header; the table looks up what was hashed."""
    hashed = (
        "extract h.ethernet\n\tmov m.key 0x102\n\thash crc16 m.of_key m.key m.key\n"
        "\thash crc16 m.found h.ethernet.dst h.ethernet.kind\n\tmov h.ethernet.kind m.of_key\n"
    )
    text = OWN.replace("\tbit<32> port_out\n", "\tbit<32> port_out\n\tbit<32> key\n\tbit<16> of_key\n\tbit<32> found\n")
    text = text.replace("extract h.ethernet\n", hashed).replace("h.ethernet.dst exact", "m.found exact")
    entries = [f"match 0x{crc16(frame[:14]):x} action send port 0x3\n" for frame in FRAMES[::2]]
    expected = [frame[:12] + crc16(bytes.fromhex("02010000")).to_bytes(2, "big") + frame[14:] for frame in FRAMES[::2]]
    job = own(swx, facts, text, "".join(("table stations\n", *entries)))
    assert all(data in job.files["verify.bin"] for data in expected)
    result = testbed.run(replace(job, argv=(*job.argv, "--verify-only")), tmp_path)
    assert json.loads(result.stdout.splitlines()[-1])["verified_packets"] > 1000


def test_a_pipeline_of_which_nothing_is_compiled_does_not_tell_its_instructions(swx, testbed, facts, tmp_path):
    bare = OWN.replace("\textract h.ethernet\n\ttable stations\n\tregadd seen m.port_out 1\n\temit h.ethernet\n", "")
    bare = bare.replace("tx m.port_out", "tx m.port_in")
    record = swx.parse(testbed.run(own(swx, facts, bare), tmp_path))
    assert "instructions" not in record["pipelines"]["program"]
    metrics = {m.metric for m in swx.summarise(record, None).metrics}
    assert set(swx.metrics) - metrics == {"program_instructions"}


DAMAGED = {
    "an unknown statement": ("regarray seen", "registers seen", ":16: registers: no statement"),
    "an unknown instruction": ("emit h.ethernet", "omit h.ethernet", "omit: no instruction"),
    "an unknown hash function": (
        "emit h",
        "hash md5 m.port_in m.port_in m.port_in\n\temit h",
        "md5: no hash function: crc16",
    ),
    "a missing operand": ("regadd seen m.port_out 1", "regadd seen m.port_out", "regadd: an operand is missing"),
    "an operand too many": ("drop\n", "drop 1\n", "1: one operand too many"),
    "an unknown field": ("m.port_out t.port", "m.port_out t.prt", "t.prt: neither a field that is known here nor"),
    "an unknown header": ("extract h.ethernet", "extract h.ethernot", "h.ethernot: no header"),
    "an unknown table": ("table stations\n\tregadd", "table station\n\tregadd", "station: no table"),
    "an unknown action": ("\t\ttoss\n", "\t\ttos\n", "tos: no action"),
    "an unknown label": ("table stations\n\tregadd", "jmp NOWHERE\n\tregadd", "NOWHERE: no label"),
    "an unknown structure": ("instanceof ethernet_t", "instanceof ethernot_t", "ethernot_t: no structure"),
    "a field of half a byte": ("bit<16> kind", "bit<12> kind", "bit<12>: the width of a field"),
    "a field twice": ("bit<48> src", "bit<48> dst", "dst: the structure has a field"),
    "a wrong key": ("dst exact", "dst range", "range: a key is exact"),
    "a wrong number": ("size 16", "size many", "many: not a number"),
    "an array without cells": ("size 16", "size 0", "0: an array has at least one cell"),
    "a block that does not end": ("tx m.port_out\n}", "tx m.port_out\n", "a } is missing"),
    "no apply": ("apply {", "action apply args none {", "there is no apply block"),
    "no default action": ("default_action toss args none", "", "stations: there is no default_action"),
    "a second default action": ("size 0x10", "default_action toss args none", "default_action: there is one already"),
    "a name that is too long": ("stations", "s" * 64, "longer than 63 characters"),
    "two arrays of one name": (
        "regarray seen",
        "metarray m size 1\nmetarray m size 1\nregarray seen",
        "m: there is one",
    ),
    "no rx": ("rx m.port_in\n", "\n", "the first instruction of a pipeline has to be rx"),
    "an action that does not end": ("port\n\treturn", "port", "send: DPDK takes each instruction"),
    "a default action of no use": ("send\n\t\ttoss\n", "send\n", "toss: the default action is none of"),
    "an instruction of pipelines in an action": (
        "mov m.port_out t.port",
        "extract h.ethernet",
        ":18: extract h.ethernet: DPDK",
    ),
    "no metadata": ("metadata instanceof metadata_t", "", "there is no metadata"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_specifications_say_what_is_wrong(testbed, facts, tmp_path, damage):
    old, new, what = DAMAGED[damage]
    assert old in OWN
    job = own(DpdkSwxTarget(("interpreter",)), facts, OWN)
    damaged = {**job.files, "program.spec": OWN.replace(old, new).encode()}
    result = testbed.run(replace(job, files=damaged), tmp_path)
    error = json.loads(result.stdout.splitlines()[-1])
    assert error["kind"] == "spec"
    assert error["error"].startswith("program.spec")
    assert what in error["error"]


def test_what_the_translator_refuses_has_a_line(testbed, facts):
    """SWX itself only says of a whole block that it is wrong."""
    plan = own(DpdkSwxTarget(), facts, OWN.replace("mov m.port_out t.port", "ckadd h.ethernet.dst h.ethernet.src"))
    with pytest.raises(BuildError, match=r"program\.spec:18: ckadd h\.ethernet\.dst h\.ethernet\.src: DPDK"):
        testbed.build(plan.build)


def test_a_port_that_is_not_there_is_no_crash(testbed, facts, tmp_path):
    job = own(DpdkSwxTarget(("interpreter",)), facts, OWN)
    text = OWN.replace("drop\n", "mov m.port_out 0xFFFFFFFA\n\treturn\n")
    result = testbed.run(replace(job, files={**job.files, "program.spec": text.encode()}), tmp_path)
    assert "SWX does not check that the port" in json.loads(result.stdout.splitlines()[-1])["error"]


def test_generated_code_needs_two_headers_of_the_source_package_and_nothing_else(testbed, facts):
    """Both are found in the fetched folder; everything else that is included comes with libdpdk-dev."""
    target = DpdkSwxTarget()
    if any(p.fatal for p in target.problems(facts)):
        pytest.skip("there are no headers")
    folder = testbed.build(target.plan(build_workload([], frame_size_bytes=64), TrafficPlan(64), facts).build)
    included = re.findall(r'#include "(.*)"', (folder / "program.c").read_text())
    assert included == ["rte_swx_pipeline_internal.h", "rte_swx_pipeline_spec.h"]
    fetched = Path(facts.text("dpdk_source_headers"))
    assert sorted(p.name for p in fetched.iterdir()) == ["NOTE", *included]
    nested = {name for f in included for name in re.findall(r"#include <(rte_\S+)>", (fetched / f).read_text())}
    assert nested.isdisjoint({"rte_swx_pipeline_internal.h"})
