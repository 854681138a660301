"""Operators: what each computes, held against other references, and what their component makes of packets."""

import binascii

import pytest

from p4perf.errors import CapabilityError, SpecError
from p4perf.experiment.planning import point_workload
from p4perf.generators.c.dpdk import OWN_OPERATOR, DpdkC
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.capabilities import constructs
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.interpreter import Interpreter
from p4perf.programs.ir import Operator
from p4perf.programs.operators import OPERATORS, jhash
from p4perf.programs.packets import frame
from p4perf.specs import load_experiment

PACKET = bytes(6) + bytes.fromhex("00000000002a88b5") + bytes(range(50))


def result(name, packet=PACKET, **more):
    return OPERATORS[name](packet, Operator(name, **more))


def workload(operator, size=64, baseline="l2fwd_result", **parameters):
    return build_workload(
        [("operator", {"operator": operator, **parameters})], frame_size_bytes=size, baseline=baseline
    )


def bitwise_crc32c(data):
    """Castagnoli, bit by bit, neither inverted before nor after."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value


def ones_complement_sum(data):
    total = sum(int.from_bytes(data[n : n + 2], "big") for n in range(0, len(data), 2))
    return ~(total % 0xFFFF or 0xFFFF) & 0xFFFF


EXPECTED = {
    "rte_hash_crc": bitwise_crc32c(PACKET),
    "rte_net_crc": binascii.crc32(PACKET),
    "checksum": ones_complement_sum(PACKET),
    "jhash": jhash(PACKET),
    "hash_lookup": (42 * 0x9E3779B1 + 1) % 2**32,
    "hash_insert": 1,
    "htons": 0x88B5,
    "htons_words": sum(256 * a + b for a, b in zip(PACKET[::2], PACKET[1::2], strict=True)),
    "printf_file": len("packet of   64 bytes\n"),
    "printf_null": len("packet of   64 bytes\n"),
    "rte_log": len("USER1: packet of   64 bytes\n"),
    "rte_log_suppressed": 0,
    "memcpy": int.from_bytes(bytes(range(42, 50)), "big"),
    "multiply_chain": 64 * 3**100 % 2**64,
}


def test_what_operators_compute():
    assert {name: result(name) for name in OPERATORS} == EXPECTED


@pytest.mark.parametrize(("initial", "value"), [(0, 0x17770551), (1, 0xCD628161)])
def test_jhash_is_that_of_its_author(initial, value):
    """The values that lookup3.c prints for this text."""
    assert jhash(b"Four score and seven years ago", initial) == value


@pytest.mark.parametrize("length", [0, 1, 3, 11, 12, 13, 24, 25, 60])
def test_jhash_depends_on_every_byte(length):
    data = bytes(range(length))
    others = {jhash(data[:n] + bytes([data[n] ^ 0x80]) + data[n + 1 :]) for n in range(length)}
    assert len(others - {jhash(data)}) == length


def test_lookups_miss_flows_that_are_not_there():
    assert result("hash_lookup", flows=43) != 0
    assert result("hash_lookup", flows=42) == 0
    assert result("hash_lookup", packet=PACKET[:12] + b"\x08\x00" + PACKET[14:]) == 0


@pytest.mark.parametrize("name", ["rte_hash_crc", "rte_net_crc", "checksum", "jhash", "htons_words"])
def test_operators_on_all_bytes_look_at_each(name):
    packet = bytearray(PACKET)
    for at in range(len(packet)):
        packet[at] ^= 0x41
        assert result(name, bytes(packet)) != result(name)
        packet[at] ^= 0x41


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("baseline", ["l2fwd_result", "l2fwd_serial", "l2fwd"])
def test_the_result_is_in_the_packet(name, baseline):
    made = workload(name, baseline=baseline)
    packet = frame(made.program, made.packets, 7)
    (sent,) = Interpreter(made.program).run(packet).sent
    assert sent.data[6:] == packet[6:]
    assert int.from_bytes(sent.data[:6], "big") == result(name, packet) % 2**48


def test_two_operators_are_both_in_the_result():
    made = workload("checksum+rte_net_crc")
    packet = frame(made.program, made.packets, 7)
    (sent,) = Interpreter(made.program).run(packet).sent
    assert int.from_bytes(sent.data[:6], "big") == result("checksum", packet) ^ result("rte_net_crc", packet)


@pytest.mark.parametrize("size", [64, 128, 1500])
def test_an_operator_has_all_bytes_of_the_packet_size(size):
    made = workload("memcpy", size)
    assert len(frame(made.program, made.packets)) == size
    ordinary = build_workload([], frame_size_bytes=size)
    assert len(frame(ordinary.program, ordinary.packets)) == size - 4


def test_packets_belong_to_flows():
    made = workload("hash_lookup", flows=10)
    (varying,) = made.packets.varying
    assert (varying.field.header, varying.field.field, varying.count) == ("ethernet", "src", 10)
    assert frame(made.program, made.packets, 9)[6:12] == bytes(5) + b"\x09"


def test_the_baseline_differs_in_the_operator_only():
    for baseline, used in (("l2fwd_result", ()), ("l2fwd_serial", ("fence",))):
        made = workload("htons", baseline=baseline)
        assert constructs(made.baseline) == used
        assert constructs(made.program) == ("operator", *used)
        program, base = (list(p.control) for p in (made.program, made.baseline))
        added = [node for node in program if node not in base]
        assert [node.action for node in added] == ["run_operator"]
        program.remove(added[0])
        assert program == base


@pytest.mark.parametrize(
    ("operator", "more", "words"),
    [
        ("rte_hash_crk", {}, "there is no operator rte_hash_crk"),
        ("mine", {}, "there is no operator mine"),
        ("htons", {"code": "x"}, "has code of its own"),
        ("mine+yours", {"code": "x"}, "one operator of your own"),
    ],
)
def test_operators_that_there_are_not(operator, more, words):
    with pytest.raises(CapabilityError, match=words):
        workload(operator, **more)


@pytest.mark.parametrize("operator", ["", "a+", "+a", "a+b+c", "A", "a b", "a;b", "$(id)", "../x", "a\nb"])
def test_names_are_words(operator):
    with pytest.raises(SpecError, match=r"program\.parameters\.operator"):
        workload(operator)


def test_what_an_own_operator_does_is_not_known():
    made = workload("mine", code="uint64_t operate(uint8_t *p, uint32_t n) { return 1; }")
    (sent,) = Interpreter(made.program).run(frame(made.program, made.packets)).sent
    assert len(sent.data) == 64
    assert sent.known == bytes(64)
    assert sent.port == 1


def test_the_text_of_an_own_operator_is_a_file_as_it_is():
    code = '/* "*/ #error {{ no }} %s \\n */\nuint64_t operate(uint8_t *p, uint32_t n) { return n; }\n'
    made = workload("mine", code=code)
    files = {f.path: f.text() for f in DpdkC().generate(made, TrafficPlan(64))}
    assert files[OWN_OPERATOR] == code
    assert "no" not in files["program.c"].split("operate(")[0].split("{{")
    assert "operate(p->data, p->length)" in files["program.c"]


@pytest.mark.parametrize("name", [n for n in plugin_names("p4perf.generators") if n not in ("dpdk-c", "moongen")])
def test_others_refuse_operators_with_the_reason(name):
    generator = load_plugin("p4perf.generators", name)()
    with pytest.raises(CapabilityError, match="operators are C functions"):
        generator.generate(workload("htons"), TrafficPlan(64))


@pytest.mark.parametrize("name", [n for n in plugin_names("p4perf.targets") if not n.startswith(("dpdk-c", "fake"))])
def test_other_targets_refuse_operators_as_data(name):
    capabilities = load_plugin("p4perf.targets", name).capabilities
    assert f"{capabilities.owner} has no operator: operators are C functions" in capabilities.refusal(
        workload("htons").program
    )
    fences = build_workload([("operator", {"operator": "htons"})], frame_size_bytes=64, baseline="l2fwd_serial")
    assert "fence" in constructs(fences.program)
    assert {"operator", "fence"}.isdisjoint(capabilities.offers)


POINTS = {"operator/all": 84, "operator/paper": 18, "operator/pairs": 24, "operator/accuracy": 8}


@pytest.mark.parametrize("name", POINTS)
def test_the_experiments(name):
    experiment = load_experiment(name)
    assert len(experiment.points) == POINTS[name]
    workloads = [point_workload(experiment, point)[0] for point in experiment.points]
    assert len({(w.program, w.packets) for w in workloads}) == len(workloads)
    assert len({w.baseline for w in workloads}) == 1
    for made in (workloads[0], workloads[-1]):
        packet = frame(made.program, made.packets)
        assert len(packet) == made.packets.frame_size_bytes
        assert len(set(packet[14:])) > 20, "some operators look at the payload"
        assert Interpreter(made.program).run(packet).sent


def test_all_is_all():
    swept = {p.values["operator"] for p in load_experiment("operator/all").points}
    assert swept == set(OPERATORS)
